//! A stream through the card: under the driver, for what it costs on the bus, and under receive
//! queues that are looked at in every cycle, for when its units come and whether the model agrees.

use ferronic::DeviceConfig;
use ferronic::lro::{LroOptions, LroRequest};
use ferronic::queue::Wakeup;
use ferronic::spec::NetHeader;
use ferronic_cosim_tests::card::{Card, PATIENCE};
use ferronic_cosim_tests::lro::{Closed, Expected, Plan, Receiver, Settings};
use ferronic_oracle::lro::Unit;
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{card, order};
use ferronic_sim::root_complex::LinkStats;
use ferronic_sim::{Sim, SimConfig};
use ferronic_spec::window;

use crate::streams::Stream;

/// Ring, buffers and bytes of each.
pub const RING: u16 = 2048;
pub const BUFFERS: u16 = 1280;
pub const BUFFER: usize = 4096;
/// Cycles since the last and since the first segment: 250 us and 8 ms.
pub const GAP: u64 = 31_250;
pub const HOLD: u64 = 1_000_000;
/// Cycles from an interrupt until the host takes all that is there: 88 us, in which 60 frames of
/// 1,514 bytes come at 64 bits.
pub const WAKE: u64 = 11_000;
/// Which counter tells of contexts that had to make room.
const EVICTED: usize = 20;

/// A received frame or unit.
pub struct Frame {
    pub header: NetHeader,
    pub bytes: Vec<u8>,
}

/// What the driver saw.
pub struct Driven {
    /// By the interrupt that they were taken after.
    pub bursts: Vec<Vec<Frame>>,
    /// On the bus, doorbells included.
    pub link: LinkStats,
    /// Cycles until the last frame was on its way into the card.
    pub cycles: u64,
}

fn config(data_w: u32) -> SimConfig {
    let mut config = SimConfig {
        data_w,
        ..SimConfig::default()
    };
    config.strap.queue_size = config.strap.queue_size.max(RING);
    config
}

/// Settings of the card's merging in all of this.
pub fn options() -> LroOptions {
    LroOptions {
        gap: std::time::Duration::from_nanos(8 * GAP),
        hold: std::time::Duration::from_nanos(8 * HOLD),
        ..LroOptions::default()
    }
}

/// Receives a stream with the driver, by interrupts.
pub fn drive(stream: &Stream, data_w: u32, lro: bool) -> Driven {
    let driver = DeviceConfig {
        ring_size: Some(RING),
        rx_buffers: Some(BUFFERS),
        buffer_size: BUFFER,
        wakeup: Wakeup::Interrupt,
        lro: if lro {
            LroRequest::Needed(options())
        } else {
            LroRequest::Off
        },
        ..DeviceConfig::default()
    };
    let mut card = Card::open(config(data_w), driver);
    card.wire.set_pace(stream.pace);
    let rx = &mut card.pairs[0].rx;
    rx.arm().expect("the device behaves");
    // Until the card has fetched what it needs to begin.
    card.function.run(20_000).expect("the card runs");
    while card.function.sim().take_vector().is_some() {}
    let before = card.function.sim().root.stats;
    let from = card.function.now();
    for arrival in &stream.arrivals {
        card.wire.push(arrival.frame.clone());
    }
    let wire = card.wire.clone();
    let (mut bursts, mut cycles) = (Vec::new(), None);
    loop {
        let patience = if cycles.is_none() { PATIENCE } else { 2 * GAP };
        let woken = card
            .function
            .sim()
            .run_until(patience, |sim: &mut Sim| {
                if cycles.is_none() && wire.waiting() == 0 {
                    cycles = Some(sim.now() - from);
                }
                sim.root.has_message()
            })
            .expect("the card runs");
        if !woken && cycles.is_some() {
            break;
        }
        assert!(woken, "the card is silent while frames wait");
        card.function.run(WAKE).expect("the card runs");
        while card.function.sim().take_vector().is_some() {}
        let mut burst = Vec::new();
        loop {
            let count = rx.receive(64, |frame| {
                let mut bytes = Vec::with_capacity(frame.len());
                frame.copy_to(&mut bytes);
                let header = frame.header();
                burst.push(Frame { header, bytes });
            });
            if count.expect("the device behaves") == 0 && !rx.arm().expect("the device behaves") {
                break;
            }
        }
        bursts.push(burst);
    }
    let link = card.function.sim().root.stats.since(&before);
    Driven {
        bursts,
        link,
        cycles: cycles.unwrap_or(1),
    }
}

/// What came out of receive queues that take no time.
pub struct Watched {
    pub units: Vec<Unit>,
    /// What the model makes of the same stream.
    pub model: Vec<Unit>,
    /// How they differ, if they do.
    pub difference: Option<String>,
    /// Flows that had to make room for others.
    pub evicted: u32,
    /// How many flows the card merges at once.
    pub contexts: usize,
}

impl Watched {
    pub fn segments_a_unit(units: &[Unit]) -> f64 {
        let segments: usize = units.iter().map(|unit| unit.segments).sum();
        segments as f64 / units.len().max(1) as f64
    }
}

fn receiver(name: &str, data_w: u32, strict: bool) -> Receiver {
    let plan = Plan {
        ring: RING,
        buffers: BUFFERS.into(),
        ..Plan::default()
    };
    let settings = Settings {
        strict,
        gap: GAP,
        hold: HOLD,
        ..Settings::default()
    };
    Receiver::open(name, config(data_w), plan, Some(settings))
}

/// Receives a stream and looks in every cycle.
pub fn watch(stream: &Stream, data_w: u32, strict: bool) -> Watched {
    let mut receiver = receiver(&stream.name, data_w, strict);
    let contexts = (receiver.raw.window(window::LRO_CAPS) & 0xffff) as usize;
    receiver.raw.wire.set_pace(stream.pace);
    receiver.push(&stream.arrivals);
    receiver.settle();
    receiver.run(2 * GAP);
    receiver.stop();
    receiver.check();
    let closed: Closed = receiver.closed();
    let mut model = card::config();
    (model.gap, model.hold, model.contexts) = (GAP, HOLD, contexts);
    if !strict {
        model.profile = ferronic_oracle::lro::Profile::Off;
    }
    let expected = Expected::of(model, &stream.arrivals);
    let difference = order::units(&expected.units, &receiver.units, &stream.arrivals).err();
    Watched {
        units: std::mem::take(&mut receiver.units),
        model: expected.units,
        difference,
        evicted: closed.by[EVICTED],
        contexts,
    }
}

/// Mean and longest time by which segments come later than they do without merging, in cycles.
pub fn delays(merged: &[Unit], alone: &[Unit]) -> Result<(f64, u64), String> {
    use std::collections::BTreeMap;
    // Of each segment its flow, by ports and addresses, and when it came.
    let mut times: BTreeMap<Vec<u8>, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for (units, second) in [(alone, false), (merged, true)] {
        for unit in units {
            let v6 = unit.frame[12] == 0x86;
            let key = unit.frame[if v6 { 22..58 } else { 26..38 }].to_vec();
            let (one, other) = times.entry(key).or_default();
            let list = if second { other } else { one };
            list.extend(std::iter::repeat_n(unit.at, unit.segments));
        }
    }
    let (mut sum, mut most, mut count) = (0, 0, 0);
    for (one, other) in times.values() {
        if one.len() != other.len() {
            return Err("segments are missing".to_owned());
        }
        for (early, late) in one.iter().zip(other) {
            let delay = late.saturating_sub(*early);
            (sum, most, count) = (sum + delay, most.max(delay), count + 1);
        }
    }
    Ok((sum as f64 / count.max(1) as f64, most))
}

/// Cycles a frame in the steady state, by when the card takes frames.
pub fn cycles_per_frame(arrivals: &[Arrival], data_w: u32, strict: bool, warm: usize) -> f64 {
    let mut receiver = receiver("cycles per frame", data_w, strict);
    receiver.push(arrivals);
    let wire = receiver.raw.wire.clone();
    let mut at = |left: usize| {
        let there = receiver.run_until(PATIENCE, |_| wire.waiting() <= left);
        assert!(there, "the card takes no more frames");
        receiver.now()
    };
    let from = at(arrivals.len() - warm);
    let to = at(warm);
    (to - from) as f64 / (arrivals.len() - 2 * warm) as f64
}
