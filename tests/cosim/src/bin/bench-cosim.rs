//! Cycles, TLPs and PCIe bytes a frame of the whole card, driver included, in process.
//!
//! Conditions are those of docs/benchmarks.md: 125 MHz, read latency 125 cycles unless said, MPS 256,
//! MRRS 512, rings of 256, receive buffers of 2,048 bytes, one transmit descriptor a frame, bursts of
//! 64, wire as fast as the data path. The driver takes no simulated time.

#[path = "bench-cosim/plot.rs"]
mod plot;
#[path = "bench-cosim/tso.rs"]
mod tso;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ferronic::queue::Wakeup;
use ferronic::{DeviceConfig, PushResult};
use ferronic_cosim_tests::bench::{Output, exit};
use ferronic_cosim_tests::card::{Card, PATIENCE};
use ferronic_figures::Figure;
use ferronic_sim::SimConfig;
use ferronic_sim::root_complex::LinkStats;

/// Cycles, TLPs and bytes per frame of the whole card, and the simulator's own speed.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Only frames that the card segments
    #[arg(long)]
    tso: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Rx,
    Tx,
    Both,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Both => "both",
        }
    }
}

#[derive(Clone, Copy)]
struct Case {
    data_w: u32,
    queues: u16,
    latency: u64,
    mps: u16,
    frame: usize,
    direction: Direction,
    /// Indirect tables for what takes several descriptors.
    indirect: bool,
}

/// Frames in flight that the start and the end of a measurement leave out.
const WARM: usize = 300;

struct Steady {
    cycles: f64,
    link: LinkStats,
    frames: usize,
    khz: f64,
}

fn card(case: Case, wakeup: Wakeup) -> Card {
    let mut sim = SimConfig {
        data_w: case.data_w,
        ..SimConfig::default()
    };
    sim.root.read_latency = case.latency;
    let driver = DeviceConfig {
        queue_pairs: case.queues,
        ring_size: Some(256),
        indirect: case.indirect,
        wakeup,
        ..DeviceConfig::default()
    };
    let card = Card::open(sim, driver);
    let mut sim = card.function.sim();
    let pcie = sim.function().expect("the card is enumerated").pcie;
    let control = sim.device_control(pcie).expect("the card answers");
    let coded = (case.mps / 128).trailing_zeros() as u16;
    let control = control & !(7 << 5) | coded << 5;
    sim.config_write(pcie + 8, &control.to_le_bytes())
        .expect("the card answers");
    drop(sim);
    card
}

/// A frame that the flow hash sends to one of several pairs.
fn frame(len: usize, flow: u8) -> Vec<u8> {
    let mut bytes = vec![0x5a; len];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[20..22].fill(0);
    bytes[23] = 17;
    bytes[26..34].copy_from_slice(&[10, 0, 0, flow, 10, 0, 1, 1]);
    bytes
}

fn steady(case: Case, count: usize) -> Steady {
    let mut card = card(case, Wakeup::Interrupt);
    let receives = case.direction != Direction::Tx;
    let transmits = case.direction != Direction::Rx;
    let total = count + 2 * WARM;
    if receives {
        for n in 0..total {
            card.wire.push(frame(case.frame, n as u8));
        }
    }
    for pair in &mut card.pairs {
        pair.rx.arm().expect("the device behaves");
        pair.tx.arm().expect("the device behaves");
    }
    let (mut received, mut queued, mut sent) = (0, 0, 0);
    let mut start: Option<(u64, usize, LinkStats)> = None;
    let evaluated = card.function.sim().stats();
    let mut last = (card.function.now(), 0);
    loop {
        for pair in &mut card.pairs {
            if receives {
                while pair
                    .rx
                    .receive(64, |_| received += 1)
                    .expect("the device behaves")
                    == 64
                {}
                pair.rx.arm().expect("the device behaves");
            }
            if transmits {
                pair.tx.reap().expect("the device behaves");
                while queued < total + WARM
                    && pair
                        .tx
                        .push(&frame(case.frame, queued as u8))
                        .expect("a sound frame")
                        == PushResult::Queued
                {
                    queued += 1;
                    if queued % 64 == 0 {
                        pair.tx.flush().expect("the device behaves");
                    }
                }
                pair.tx.flush().expect("the device behaves");
                pair.tx.arm().expect("the device behaves");
            }
        }
        card.device.poll();
        while card.wire.take().is_some() {
            sent += 1;
        }
        let done = match case.direction {
            Direction::Rx => received,
            Direction::Tx => sent,
            Direction::Both => received.min(sent),
        };
        let now = card.function.now();
        if done != last.1 {
            last = (now, done);
        }
        assert!(now - last.0 < PATIENCE, "nothing moves after {done} frames");
        match start {
            None if done >= WARM => start = Some((now, done, card.function.sim().root.stats)),
            Some((from, first, link)) if done >= WARM + count => {
                let sim = card.function.sim();
                let frames = done - first;
                let spent = sim.stats();
                let busy = (spent.busy - evaluated.busy).as_secs_f64();
                return Steady {
                    cycles: (now - from) as f64 / frames as f64,
                    link: sim.root.stats.since(&link),
                    frames,
                    khz: (spent.evaluated - evaluated.evaluated) as f64 / busy / 1000.0,
                };
            }
            _ => {}
        }
    }
}

/// Doorbell to the first beat on the wire, and first beat in to the used index and to the interrupt.
fn latencies(case: Case, notification_data: bool) -> BTreeMap<&'static str, u64> {
    let mut sim = SimConfig {
        data_w: case.data_w,
        ..SimConfig::default()
    };
    sim.root.read_latency = case.latency;
    let mut driver = DeviceConfig {
        ring_size: Some(256),
        wakeup: Wakeup::Interrupt,
        ..DeviceConfig::default()
    };
    if !notification_data {
        driver
            .features
            .remove(ferronic_spec::Features::NOTIFICATION_DATA);
    }
    let mut card = Card::open(sim, driver);
    let beats = case.frame.div_ceil(case.data_w as usize / 8) as u64;
    let mut found = BTreeMap::new();
    // The second round is measured: in the first the rings are still being filled.
    for _ in 0..2 {
        card.function.run(20_000).expect("the card runs");
        let tx = &mut card.pairs[0].tx;
        let queued = tx.push(&frame(case.frame, 0)).expect("a sound frame");
        assert_eq!(queued, PushResult::Queued, "the ring is empty");
        let from = card.function.now();
        tx.flush().expect("the device behaves");
        card.function.run(4_000).expect("the card runs");
        let out = card.wire.take().expect("the frame left");
        found.insert("doorbell_to_wire_cycles", out.time - (beats - 1) - from);
        card.pairs[0].tx.reap().expect("the device behaves");

        let rx = &mut card.pairs[0].rx;
        rx.arm().expect("the device behaves");
        card.function.run(20_000).expect("the card runs");
        while card.function.sim().take_vector().is_some() {}
        let from = card.function.now();
        card.wire.push(frame(case.frame, 0));
        let mut used = None;
        let mut interrupt = None;
        while used.is_none() || interrupt.is_none() {
            card.function.run(1).expect("the card runs");
            let now = card.function.now();
            assert!(now - from < 100_000, "the frame never came up");
            if rx.receive(64, |_| ()).expect("the device behaves") > 0 {
                used.get_or_insert(now - from);
            }
            if card.function.sim().take_vector().is_some() {
                interrupt.get_or_insert(now - from);
            }
        }
        found.insert("wire_to_used_cycles", used.unwrap_or_default());
        found.insert("wire_to_interrupt_cycles", interrupt.unwrap_or_default());
    }
    found
}

/// Host time for a second in which nothing happens on a card with a driver, in milliseconds: the
/// median of nine.
fn idle_second_ms(case: Case) -> f64 {
    let card = card(case, Wakeup::Interrupt);
    card.function.run(20_000).expect("the card runs");
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            card.function.run(125_000_000).expect("the card runs");
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What a peer needs for the same, see docs/benchmarks.md.
fn peer(case: Case) -> Option<f64> {
    let at = |values: [f64; 3]| match case.frame {
        64 => Some(values[0]),
        256 => Some(values[1]),
        1514 => Some(values[2]),
        _ => None,
    };
    match (case.data_w, case.direction, case.queues, case.latency) {
        (64, Direction::Tx, 1, 125) => at([16.8, 57.6, 312.0]),
        (64, Direction::Rx, 1, 125) => at([16.8, 55.2, 306.8]),
        (512, Direction::Tx, 1, 125) => at([12.9, 13.9, 30.7]),
        (512, Direction::Rx, 1, 125) => at([15.7, 16.7, 30.7]),
        (512, Direction::Tx, 4, 8) if case.frame == 64 => Some(6.9),
        (512, Direction::Rx, 4, 8) if case.frame == 64 => Some(7.8),
        _ => None,
    }
}

fn figure(case: Case, name: &str, value: f64, unit: &str) -> Figure {
    Figure::new(name, value, unit)
        .with("data_w", case.data_w)
        .with("frame_bytes", case.frame)
        .with("direction", case.direction.name())
        .with("queues", case.queues)
        .with("latency_ns", case.latency * 8)
        .with("mps", case.mps)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let count = if arguments.output.quick { 300 } else { 2000 };
    let mut figures = Vec::new();
    println!(
        "{:>6} {:>6} {:>7} {:>5} {:>4} {:>5} {:>9} {:>7} {:>6} {:>6} {:>8} {:>6} {:>6}",
        "data_w",
        "queues",
        "latency",
        "frame",
        "dir",
        "mps",
        "cycles",
        "peer",
        "share",
        "TLPs",
        "PCIe B",
        "irqs",
        "kHz"
    );
    for &data_w in ferronic_sim::model::WIDTHS {
        if arguments.tso {
            tso::measure(data_w, arguments.output.quick, &mut figures);
            continue;
        }
        let mut cases = Vec::new();
        let base = Case {
            data_w,
            queues: 1,
            latency: 125,
            mps: 256,
            frame: 64,
            direction: Direction::Rx,
            indirect: true,
        };
        for direction in [Direction::Rx, Direction::Tx, Direction::Both] {
            for frame in [64, 256, 1514, 9014] {
                if !arguments.output.quick || frame == 64 || frame == 1514 {
                    cases.push(Case {
                        frame,
                        direction,
                        ..base
                    });
                }
            }
            cases.push(Case {
                queues: 4,
                latency: 8,
                direction,
                ..base
            });
            cases.push(Case {
                mps: 128,
                frame: 1514,
                direction,
                ..base
            });
        }
        for case in cases {
            let got = steady(case, count);
            let limit = (case.frame + 12).div_ceil(data_w as usize / 8) as f64;
            let per = |value: u64| value as f64 / got.frames as f64;
            println!(
                "{:>6} {:>6} {:>7} {:>5} {:>4} {:>5} {:>9.1} {:>7} {:>6.3} {:>6.2} {:>8.1} {:>6.3} {:>6.0}",
                data_w,
                case.queues,
                case.latency,
                case.frame,
                case.direction.name(),
                case.mps,
                got.cycles,
                peer(case).map_or("-".to_owned(), |p| format!("{p:.1}")),
                limit / got.cycles,
                per(got.link.tlps()),
                per(got.link.wire_bytes()),
                per(got.link.interrupts),
                got.khz
            );
            figures.push(figure(case, "cycles_per_frame", got.cycles, "cycles"));
            figures.push(figure(case, "share_of_limit", limit / got.cycles, "1"));
            figures.push(figure(
                case,
                "bytes_per_cycle",
                case.frame as f64 / got.cycles,
                "bytes",
            ));
            figures.push(figure(case, "tlps_per_frame", per(got.link.tlps()), "TLPs"));
            figures.push(figure(
                case,
                "pcie_bytes_per_frame",
                per(got.link.wire_bytes()),
                "bytes",
            ));
            figures.push(figure(
                case,
                "interrupts_per_frame",
                per(got.link.interrupts),
                "interrupts",
            ));
            figures.push(figure(case, "sim_khz", got.khz, "kHz"));
        }
        tso::measure(data_w, arguments.output.quick, &mut figures);
        let idle = idle_second_ms(base);
        println!("{data_w:>6} idle_second_ms = {idle:.3} (limit 10)");
        figures.push(Figure::new("idle_second_ms", idle, "ms").with("data_w", data_w));
        for notification_data in [true, false] {
            let found = latencies(base, notification_data);
            for (name, value) in found {
                println!("{data_w:>6} {name} = {value} (NOTIFICATION_DATA {notification_data})");
                figures.push(
                    figure(base, name, value as f64, "cycles")
                        .with("notification_data", notification_data),
                );
            }
        }
    }
    let output = &arguments.output;
    exit(output.write("bench cosim", figures, plot::cycles_per_frame))
}
