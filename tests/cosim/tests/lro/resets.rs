//! Resets and a link that goes down at any moment while segments are held: nothing is published
//! twice, nothing is written after the reset was acknowledged, and the card works at once.

use ferronic::pci::PciFunction;
use ferronic_cosim_tests::lro::{MERGING, Plan, Receiver, Settings, steered, undone};
use ferronic_cosim_tests::nightly;
use ferronic_oracle::Rng;
use ferronic_oracle::stream::{Bulk, Traffic};
use ferronic_oracle::vectors::Arrival;
use ferronic_sim::SimConfig;
use ferronic_sim::model::WIDTHS;
use ferronic_spec::{Features, window};

use crate::bench::Bench;

/// Moments of each kind of reset.
fn rounds() -> u64 {
    if nightly() { 400 } else { 25 }
}

/// A few flows that are held, with anything between.
fn busy(seed: u64, count: usize) -> Vec<Arrival> {
    let mut traffic = Traffic::new(seed, 4, 1, 1);
    let bulk = Bulk {
        flows: 5,
        segments: count,
        mtu: 600,
        ..Bulk::default()
    };
    let frames = bulk.arrivals().into_iter().flat_map(|arrival| {
        let other = traffic.arrival();
        [arrival, other]
    });
    frames.collect()
}

fn bench(data_w: u32, seed: u64, pairs: u16) -> Bench {
    let mut bench = Bench::new(format!("{data_w} bits, seed {seed}"), data_w, seed);
    bench.plan = Plan {
        pairs,
        ring: 256,
        buffers: 256,
        sizes: vec![1000],
        features: MERGING | Features::RING_RESET,
        ..Plan::default()
    };
    bench
}

/// A stream, whole, on new rings.
fn works(mut receiver: Receiver, seed: u64) -> Receiver {
    receiver.raw.wire.clear();
    // What is on its way in comes to its end.
    receiver.run(3000);
    let plan = Plan {
        buffers: 256,
        ring: 256,
        ..Plan::default()
    };
    let name = format!("{}, afterwards", receiver.name);
    let settings = Some(Settings::default());
    let mut receiver = Receiver::over(&name, receiver.raw, plan, settings);
    let arrivals = steered(busy(seed + 1000, 10), 1);
    receiver.push(&arrivals);
    receiver.settle();
    receiver.stop();
    receiver.check();
    if let Err(difference) = undone(&arrivals, &receiver.units) {
        receiver.fail(&difference);
    }
    receiver
}

/// Disturbs a card that receives, at any moment.
fn at_any_moment(what: fn(&mut Receiver)) {
    for data_w in WIDTHS {
        for seed in 1..=rounds() {
            let mut rng = Rng::new(seed);
            let mut receiver = bench(*data_w, seed, 2).open();
            receiver.push(&busy(seed, 40));
            receiver.run(rng.below(4000));
            what(&mut receiver);
            receiver.forget();
            receiver.raw.wire.clear();
            receiver.run(20_000);
            receiver.check_silent();
            works(receiver, seed);
        }
    }
}

#[test]
fn virtio_reset_forgets_what_is_held() {
    at_any_moment(|receiver| receiver.raw.reset());
}

#[test]
fn function_level_reset_forgets_what_is_held() {
    at_any_moment(|receiver| {
        receiver.raw.function.reset().expect("the FLR ends");
        let mut sim = receiver.raw.function.sim();
        sim.set_bus_master(true).expect("the card answers");
    });
}

#[test]
fn queue_reset_forgets_what_is_held_for_it_and_leaves_the_others() {
    for data_w in WIDTHS {
        for seed in 1..=rounds() {
            let mut rng = Rng::new(seed);
            let mut receiver = bench(*data_w, seed, 2).open();
            let arrivals = steered(busy(seed, 40), 2);
            receiver.push(&arrivals);
            receiver.run(rng.below(4000));
            let queue = rng.below(2) as u16;
            receiver.reset_queue(queue);
            receiver.run(rng.below(2000));
            receiver.enable_queue(queue);
            receiver.settle();
            receiver.stop();
            // Frames of a queue that is not there are dropped.
            receiver.check_silent();
            assert!(!receiver.raw.needs_reset());
            // The other queue has lost nothing; this one what was held, and delivers nothing twice.
            let other = 1 - queue;
            let of = |queue: u16| -> Vec<Arrival> {
                let of = arrivals.iter().filter(|a| a.queue == queue);
                of.cloned().collect()
            };
            let units = |queue: u16| -> Vec<_> {
                let of = receiver.units.iter().filter(|unit| unit.queue == queue);
                of.cloned().collect()
            };
            if let Err(difference) = undone(&of(other), &units(other)) {
                receiver.fail(&difference);
            }
            let delivered = ferronic_oracle::order::cut(&units(queue)).expect("units are sound");
            let mut left: Vec<_> = of(queue).into_iter().map(|a| Some(a.frame)).collect();
            for (_, frame) in delivered {
                let place = left.iter_mut().find(|f| f.as_ref() == Some(&frame));
                match place {
                    Some(place) => *place = None,
                    None => receiver.fail(&format!("twice, or never sent: {frame:02x?}")),
                }
            }
            works(receiver, seed);
        }
    }
}

#[test]
fn link_that_goes_down_delivers_what_is_held() {
    for data_w in WIDTHS {
        for seed in 1..=rounds() {
            let mut rng = Rng::new(seed);
            let mut receiver = bench(*data_w, seed, 2).open();
            let arrivals = steered(busy(seed, 40), 2);
            receiver.push(&arrivals);
            let moment = rng.below(4000);
            if rng.chance(30) {
                receiver.settle();
            } else {
                receiver.run(moment);
            }
            receiver.set_link(false);
            let all = receiver.raw.wire.waiting() == 0;
            if all {
                // What was held comes without a timer.
                receiver.run(20_000);
                assert_eq!(receiver.segments(), arrivals.len(), "{}", receiver.name);
            }
            receiver.set_link(true);
            receiver.settle();
            receiver.stop();
            receiver.check();
            if let Err(difference) = undone(&arrivals, &receiver.units) {
                receiver.fail(&difference);
            }
            works(receiver, seed);
        }
    }
}

#[test]
fn reset_while_a_setting_waits_for_what_is_held_is_answered() {
    for data_w in WIDTHS {
        for seed in 1..=rounds() {
            let mut rng = Rng::new(seed);
            let mut receiver = bench(*data_w, seed, 1).open();
            receiver.push(&busy(seed, 40));
            receiver.run(rng.below(4000));
            // A posted write, and the reset right behind it.
            receiver.raw.set(window::BASE + window::LRO_GAP, 4, 999);
            receiver.run(rng.below(50));
            receiver.raw.reset();
            receiver.forget();
            receiver.raw.wire.clear();
            receiver.run(20_000);
            receiver.check_silent();
            works(receiver, seed);
        }
    }
}

#[test]
fn card_without_buffers_answers_settings_and_resets() {
    for data_w in WIDTHS {
        for seed in 0..4 {
            let config = SimConfig {
                data_w: *data_w,
                ..SimConfig::default()
            };
            let plan = Plan {
                ring: 256,
                buffers: 3,
                sizes: vec![2048],
                delay: None,
                ..Plan::default()
            };
            let name = format!("{data_w} bits, {seed}");
            let settings = Some(Settings::default());
            let mut receiver = Receiver::open(&name, config, plan, settings);
            receiver.push(&busy(seed, 5));
            // All buffers are filled, and a frame waits for one.
            receiver.run(20_000);
            if seed % 2 == 0 {
                receiver.stop();
                let count = receiver.units.len();
                receiver.run(5000);
                assert_eq!(receiver.units.len(), count);
            }
            receiver.raw.reset();
            receiver.forget();
            works(receiver, seed);
        }
    }
}
