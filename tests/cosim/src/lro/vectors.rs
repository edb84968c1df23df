//! The smallest stream for each rule through the whole card.

use ferronic_oracle::card::{self, pair};
use ferronic_oracle::frames::verdict;
use ferronic_oracle::lro::{Profile, Star};
use ferronic_oracle::order;
use ferronic_oracle::vectors::Vector;
use ferronic_sim::SimConfig;
use ferronic_spec::Features;

use super::{Expected, Plan, Receiver, Settings};

/// Where time is what a vector is about, a tick is so many cycles, so that a few cycles do not count.
const TICK: u64 = 300;

/// Why a vector cannot be had on the whole card.
pub fn impossible(vector: &Vector) -> Option<&'static str> {
    let config = &vector.config;
    let steers = |pairs| {
        let queue = |frame: &[u8]| pair(verdict(frame).hash(), pairs);
        vector.arrivals.iter().all(|a| queue(&a.frame) == a.queue)
    };
    let why = [
        (matches!(config.star, Star::Queue), "it closes by addresses"),
        (config.max_buffers != 64, "a unit has at most 64 buffers"),
        (config.contexts != 16, "it has 16 contexts"),
        (config.tag.is_some(), "it has a tag of its own"),
        (config.max_bytes < 576, "576 bytes are the least setting"),
        (
            !(1..=4).any(steers),
            "a flow changes its queue, or shares it",
        ),
    ];
    why.iter().find(|(so, _)| *so).map(|(_, why)| *why)
}

/// Runs a vector and compares units and counters with what the model delivers, by which flows of one
/// tag evict each other.
///
/// # Errors
/// With the first difference.
pub fn run(vector: &Vector, data_w: u32) -> Result<(), String> {
    let name = format!("rule {}, {}, {data_w} bits", vector.rule, vector.what);
    let config = &vector.config;
    let pairs = (1..=4).find(|pairs| {
        let queue = |frame: &[u8]| pair(verdict(frame).hash(), *pairs);
        vector.arrivals.iter().all(|a| queue(&a.frame) == a.queue)
    });
    let mut features = Features::VERSION_1 | Features::MRG_RXBUF;
    for (bit, on) in [
        (Features::GUEST_CSUM, config.csum),
        (Features::GUEST_TSO4, config.csum && config.tso4),
        (Features::GUEST_TSO6, config.csum && config.tso6),
    ] {
        features.set(bit, on);
    }
    let split = config.first_descriptor < config.buffer;
    let plan = Plan {
        pairs: pairs.unwrap_or(1),
        ring: 256,
        buffers: vector.posted.min(if split { 128 } else { 256 }),
        sizes: vec![config.buffer],
        pieces: vec![if split { 2 } else { 1 }],
        first: split.then_some(config.first_descriptor),
        delay: None,
        features,
        ..Plan::default()
    };
    let timed = vector.rule == 41;
    let tick = if timed { TICK } else { 1 };
    // Half a tick less: what comes at the end of a time comes behind it.
    let cycles = |ticks: u64| ticks * tick - if timed { tick / 2 } else { 0 };
    let settings = Settings {
        strict: config.profile == Profile::Strict,
        relaxed: config.profile == Profile::Relaxed,
        gap: cycles(config.gap),
        hold: cycles(config.hold),
        max_bytes: config.max_bytes as u16,
        low_water: config.low_water as u8,
    };
    let sim = SimConfig {
        data_w,
        ..SimConfig::default()
    };
    let mut receiver = Receiver::open(&name, sim, plan, Some(settings));
    receiver.push_timed(&vector.arrivals, tick);
    let mut model = config.clone();
    (model.tag, model.star) = (card::config().tag, card::config().star);
    let expected = Expected::posted(model, &vector.arrivals, vector.posted);
    if expected.waiting > 0 {
        let end = vector.arrivals.last().map_or(0, |last| last.at) * tick;
        receiver.run(end + 20_000);
    } else {
        receiver.settle();
    }
    receiver.stop();
    receiver.check();
    let named = |error| format!("{name}: {error}");
    let closed = receiver.closed();
    let units = expected
        .compare(&receiver.units, &closed, &vector.arrivals)
        .map_err(named)?;
    // What was compared is what the table says, unless tags are equal.
    if expected.units == vector.run() && order::is_of_one_queue(&expected.units) {
        vector.compare(&units)?;
    }
    receiver.close();
    Ok(())
}
