//! Captures come back whole, and how much the reference merges: of captures, and of bulk transfers
//! as senders make them.

mod common;

use common::{Host, captures, per_unit, run};
use ferronic_oracle::frames::verdict;
use ferronic_oracle::lro::{Cause, Config, Counters, Lro, Profile};
use ferronic_oracle::order::{cut, same};
use ferronic_oracle::stream::Bulk;
use ferronic_oracle::vectors::Arrival;

const PLENTY: Host = Host {
    buffers: 1280,
    delay: 1000,
};

/// As fast as the data path takes them (64 bits, 125 MHz), or as they were captured.
fn paced(frames: &[(u64, Vec<u8>)], captured: bool, queues: u16) -> Vec<Arrival> {
    let start = frames.first().map_or(0, |(at, _)| *at);
    let mut now = 0;
    let arrivals = frames.iter().map(|(at, frame)| {
        now += frame.len().div_ceil(8) as u64 * 8;
        Arrival {
            at: if captured { at - start } else { now },
            queue: verdict(frame).hash() % queues,
            frame: frame.clone(),
        }
    });
    arrivals.collect()
}

#[test]
fn captures_come_back_byte_for_byte_and_in_order() {
    for (name, frames) in captures() {
        let mut figures = Vec::new();
        for (captured, queues) in [(false, 1), (false, 4), (true, 1), (true, 4)] {
            let arrivals = paced(&frames, captured, queues);
            let (units, counters) = run(Lro::new(Config::default()), PLENTY, &arrivals);
            cut(&units)
                .and_then(|delivered| same(&arrivals, &delivered))
                .unwrap_or_else(|difference| panic!("{name}: {difference}"));
            figures.push(format!("{:.2}", per_unit(&counters)));
        }
        println!("{name}: segments a unit {}", figures.join(", "));
    }
}

#[test]
fn off_is_the_identity_for_captures() {
    for (name, frames) in captures() {
        let arrivals = paced(&frames, false, 2);
        let config = Config {
            profile: Profile::Off,
            ..Config::default()
        };
        let (units, _) = run(Lro::new(config), PLENTY, &arrivals);
        let delivered = units.iter().map(|unit| (unit.queue, &unit.frame));
        assert!(
            arrivals.iter().map(|a| (a.queue, &a.frame)).eq(delivered),
            "{name}"
        );
    }
}

/// Whole units that the card was not stopped in.
fn bulk(bulk: &Bulk, config: Config) -> (f64, Counters) {
    let arrivals = bulk.arrivals();
    let (units, counters) = run(Lro::new(config), PLENTY, &arrivals);
    let delivered = cut(&units).expect("units are sound");
    same(&arrivals, &delivered).expect("what arrived is delivered");
    (per_unit(&counters), counters)
}

#[test]
fn bulk_transfer_fills_its_units() {
    for v6 in [false, true] {
        for stamps in [false, true] {
            let stream = Bulk {
                v6,
                stamps,
                ..Bulk::default()
            };
            let (figure, counters) = bulk(&stream, Config::default());
            println!("IPv6 {v6}, stamps {stamps}: {figure:.1} segments a unit");
            assert!(figure >= 40.0, "{figure} {counters:?}");
        }
    }
    let jumbo = Bulk {
        mtu: 9000,
        segments: 70,
        ..Bulk::default()
    };
    let (figure, _) = bulk(&jumbo, Config::default());
    println!("9,000 bytes: {figure:.1} segments a unit");
    assert!(figure >= 7.0, "{figure}");
}

#[test]
fn interleaved_flows_fill_their_units_if_contexts_buffers_and_time_suffice() {
    let config = Config {
        contexts: 64,
        gap: 250_000,
        hold: 8_000_000,
        ..Config::default()
    };
    for shuffled in [None, Some(1)] {
        for v6 in [false, true] {
            let stream = Bulk {
                flows: 64,
                segments: 132,
                shuffled,
                v6,
                ..Bulk::default()
            };
            let (figure, counters) = bulk(&stream, config.clone());
            println!("64 flows, shuffled {shuffled:?}, IPv6 {v6}: {figure:.1} segments a unit");
            assert!(figure >= 30.0, "{figure} {counters:?}");
            assert!(!counters.closed.contains_key(&Cause::Evicted));
            // With half the contexts nearly nothing is left of it.
            let half = Config {
                contexts: 32,
                ..config.clone()
            };
            let (figure, counters) = bulk(&stream, half);
            assert!(
                figure < 4.0 && counters.closed[&Cause::Evicted] > 1000,
                "{figure}"
            );
        }
    }
}
