//! What our driver's transfers cost: frames as they are, and TCP by a stack of our own.

use ferronic_figures::Figure;
use ferronic_guest_agent::{Exit, Request};
use serde_json::Value;

use super::Ours;
use crate::reference::bench_bytes_per_cycle;
use crate::scenario::Bench;
use crate::scenario::tools::{Direction, GUEST, PEER, until};
use crate::{Counters, GuestError, PATIENCE, ensure};

/// Bytes of a TCP transfer.
const BULK: u32 = 4 << 20;
/// Bytes of a packet at most, however many segments are in it.
const MOST: u32 = 65_535;
/// IP and TCP headers without options.
const HEADERS: u32 = 40;
/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

/// What is to pass.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Where to.
    pub direction: Direction,
    /// How many frames, about.
    pub frames: usize,
    /// MTU of a TCP transfer; others have frames of many sizes.
    pub mtu: Option<u32>,
    /// No driver had the card since the machine was started.
    pub first: bool,
}

/// Runs our command for a transfer and records what its middle cost: the kernel reads all of
/// configuration space when the card is opened, which is no part of it.
pub fn measured(
    bench: &mut Bench,
    ours: &mut Ours<'_>,
    arguments: &[&str],
    expected: &Expected,
) -> Result<Exit, GuestError> {
    let before = ours.counters()?;
    let pid = ours.spawn(arguments)?;
    let counter = format!("frames {}", expected.direction.name());
    let after = |ours: &mut Ours<'_>, frames: usize| {
        until("a transfer", PATIENCE, || {
            let now = ours.counters()?;
            Ok((now.since(&before).get(&counter) >= frames as f64).then_some(now))
        })
    };
    if expected.first {
        // The wire replays frames as soon as a driver is ready.
        after(ours, 1)?;
        let boot = ours.machine.started.elapsed().as_secs_f64();
        println!("  first frame {boot:.1} s after the start of QEMU");
        bench.record(Figure::new("boot_s", boot, "s").with("driver", "ferronic"));
    }
    let first = after(ours, expected.frames / 8)?;
    let last = after(ours, expected.frames * 3 / 4)?;
    let timeout_ms = 60_000;
    let exit: Exit = ours.guest().ask(Request::Wait { pid, timeout_ms })?;
    ensure!(
        exit.code == Some(0),
        "ferronic {arguments:?} ended in {:?}: {}",
        exit.code,
        exit.stderr
    );
    rate(bench, &last.since(&first), expected)?;
    Ok(exit)
}

fn rate(bench: &mut Bench, counters: &Counters, expected: &Expected) -> Result<(), GuestError> {
    let direction = expected.direction.name();
    let frames = counters.get(&format!("frames {direction}"));
    let bytes = counters.get(&format!("bytes {direction}"));
    // Of TCP the acknowledgements count, as with the other drivers.
    let all = match expected.mtu {
        Some(_) => counters.get("frames rx") + counters.get("frames tx"),
        None => frames,
    };
    let per_cycle = bytes / counters.get("outstanding_cycles");
    let interrupts = counters.get("interrupts") / all;
    let doorbells = counters.get("doorbells") / all;
    let what = expected.mtu.map_or_else(
        || format!("frames {direction}"),
        |mtu| format!("TCP {direction}, MTU {mtu}"),
    );
    println!(
        "  {what}: {per_cycle:.2} bytes a cycle ({frames:.0} frames), \
         {interrupts:.3} interrupts and {doorbells:.3} doorbells a frame"
    );
    for (name, value, unit) in [
        ("bytes_per_cycle", per_cycle, "B"),
        ("interrupts_per_frame", interrupts, "1"),
        ("doorbells_per_frame", doorbells, "1"),
    ] {
        bench.record(figure(name, value, unit, expected));
    }
    if let Some(mtu) = expected.mtu {
        let share = per_cycle / bench_bytes_per_cycle(direction, mtu + ETHERNET)?;
        bench.record(figure("share_of_bench", share, "1", expected));
    }
    Ok(())
}

fn figure(name: &str, value: f64, unit: &str, expected: &Expected) -> Figure {
    let figure = Figure::new(name, value, unit)
        .with("driver", "ferronic")
        .with("direction", expected.direction.name())
        .with("tso", "off");
    match expected.mtu {
        Some(mtu) => figure.with("mtu", mtu),
        None => figure,
    }
}

/// TCP both ways, with frames of the usual size and jumbo; every byte is checked at both ends.
pub fn tcp(bench: &mut Bench, ours: &mut Ours<'_>) -> Result<(), GuestError> {
    let (peer, local) = (PEER.to_string(), format!("{GUEST}/24"));
    let (bytes, file) = (BULK.to_string(), "/tmp/tcp.json");
    for mtu in [1500, 9000] {
        for (seed, direction) in (1..).zip(Direction::BOTH) {
            let way = match direction {
                Direction::Transmit => "send",
                Direction::Receive => "receive",
            };
            let (limit, seed) = (mtu.to_string(), seed.to_string());
            let line = [
                "tcp", way, &peer, "--local", &local, "--bytes", &bytes, "--seed", &seed, "--mtu",
                &limit, "--lro", "strict", "--json", file,
            ];
            let expected = Expected {
                direction,
                frames: (BULK / (mtu - HEADERS)) as usize,
                mtu: Some(mtu),
                first: false,
            };
            measured(bench, ours, &line, &expected)?;
            let report = report(ours, file)?;
            let passed = value(&report, "tcp_bytes");
            ensure!(
                passed == f64::from(BULK) && report["figures"][0]["params"]["intact"] == true,
                "{way}, MTU {mtu}: not every byte arrived: {report}"
            );
            let mbit = value(&report, "tcp_mbit_s");
            let units = value(&report, "units_by_card");
            println!(
                "    {bytes} bytes, SHA-256 agrees, {mbit:.1} Mbit/s of the host, {units} units merged by the card"
            );
            // All but a few of the segments are in one.
            let least = (BULK / MOST) as f64;
            ensure!(
                direction == Direction::Transmit || units >= least,
                "{way}, MTU {mtu}: the card merged {units} units, {least} at least were due"
            );
            bench.record(figure("tcp_mbit_s", mbit, "Mbit/s", &expected));
        }
    }
    Ok(())
}

/// What our command wrote with `--json`.
pub fn report(ours: &mut Ours<'_>, file: &str) -> Result<Value, GuestError> {
    let text = ours.guest().read(file)?;
    serde_json::from_str(&text)
        .map_err(|error| GuestError::Check(format!("{file}: {error}: {text}")))
}

/// A figure of a report; not a number if there is none.
pub fn value(report: &Value, name: &str) -> f64 {
    let mut figures = report["figures"].as_array().into_iter().flatten();
    figures
        .find(|figure| figure["name"] == name)
        .and_then(|figure| figure["value"].as_f64())
        .unwrap_or(f64::NAN)
}
