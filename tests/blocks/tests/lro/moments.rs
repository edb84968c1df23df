//! Pauses, resets, flushes and settings at any moment.

use std::collections::HashMap;

use ferronic_block_tests::{Failure, Rng, ensure, for_seeds, layout, nightly};
use ferronic_oracle::order;
use ferronic_oracle::vectors::Arrival;

use crate::bench::{Bench, Posting, Rates, Settings};
use crate::streams::traffic;

fn seeds(count: u64) -> u64 {
    if nightly() { 20 * count } else { count }
}

fn bench(width: usize, seed: u64, pairs: u16, rng: &mut Rng) -> Result<Bench, Failure> {
    let mut bench = Bench::new(width, seed)?;
    bench.rates = Rates::any(rng);
    bench.posting = Posting {
        buffers: rng.pick(&[40, 200]),
        sizes: rng.pick(&[&[256][..], &[4096], &[700, 2000]]).to_vec(),
        queues: pairs.into(),
        ..Posting::default()
    };
    bench.pairs(pairs.into());
    let gap = rng.pick(&[300, 5000, (1 << 22) - 1]);
    bench.set(Settings {
        gap,
        hold: 2 * gap,
        low_water: rng.pick(&[0, 0, 60]),
        ..Settings::LONG
    });
    Ok(bench)
}

/// Waits until nothing is in flight, as the card does before it resets a queue.
fn pause(bench: &mut Bench, rng: &mut Rng) -> Result<(), Failure> {
    bench.block.set("pause_i", true);
    let mut quiet = 0;
    for _ in 0..100_000 {
        bench.cycle(rng)?;
        let idle = bench.writes() == 0 && bench.block.is("idle_o");
        quiet = if idle { quiet + 1 } else { 0 };
        if quiet == 16 {
            return Ok(());
        }
    }
    Err(Failure::Contract("a pause does not end".to_owned()))
}

/// None of the frames is delivered more often than it was sent.
fn none_twice(arrivals: &[Arrival], bench: &Bench) -> Result<usize, Failure> {
    let delivered = order::cut(&bench.units).map_err(Failure::Contract)?;
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    for arrival in arrivals {
        *left.entry(&arrival.frame).or_default() += 1;
    }
    for (number, (_, frame)) in delivered.iter().enumerate() {
        match left.get_mut(&frame[..]) {
            Some(count) if *count > 0 => *count -= 1,
            _ => {
                return Err(Failure::Contract(format!(
                    "frame {number} that was delivered was not sent, or not so often: {:02x?}",
                    &frame[..frame.len().min(96)]
                )));
            }
        }
    }
    Ok(delivered.len())
}

/// Flushes, pauses, a link that goes down and other settings: nothing is lost.
fn harmless(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let pairs = 3;
    let mut bench = bench(width, seed, pairs, rng)?;
    let arrivals = traffic(seed, rng.pick(&[2, 8, 30]), 250, pairs);
    for arrival in &arrivals {
        bench.send(&arrival.frame);
    }
    while bench.waiting() > 0 {
        bench.cycles(rng.below(600), rng)?;
        match rng.below(4) {
            0 => {
                bench.flush(rng)?;
                if rng.chance(50) {
                    // Such a setting takes effect in a flush.
                    let max_bytes = rng.pick(&[576, 3000, 65_535]);
                    bench.set(Settings {
                        strict: rng.chance(80),
                        max_bytes,
                        gap: rng.pick(&[100, 3000]),
                        low_water: rng.pick(&[0, 30]),
                        ..Settings::LONG
                    });
                }
            }
            1 => {
                pause(&mut bench, rng)?;
                bench.cycles(rng.below(300), rng)?;
                bench.block.set("pause_i", false);
            }
            2 => {
                bench.block.set("link_up_i", false);
                bench.cycles(rng.below(300), rng)?;
                bench.block.set("link_up_i", true);
            }
            _ => {}
        }
    }
    bench.settle(rng)?;
    bench.flush(rng)?;
    ensure!(bench.dropped() == 0, "dropped: {:?}", bench.drops);
    let closed: u64 = bench.events.closed.iter().sum();
    ensure!(closed == bench.events.opened, "{:?}", bench.events);
    bench.undone(&arrivals)
}

#[test]
fn flushes_pauses_and_settings_at_any_moment_lose_nothing() {
    for_seeds(seeds(10), |seed, rng| harmless(64, seed, rng));
    for_seeds(seeds(10), |seed, rng| harmless(512, seed, rng));
}

/// A function reset for any number of cycles: what was held is gone, and what comes is right.
fn reset(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let pairs = 2;
    let mut bench = bench(width, seed, pairs, rng)?;
    let mut arrivals = Vec::new();
    for round in 0..8 {
        let more = traffic(100 * seed + round, 8, 40, pairs);
        for arrival in &more {
            bench.send(&arrival.frame);
        }
        arrivals.extend(more);
        bench.cycles(rng.below(4000), rng)?;
        bench.reset(rng.range(1, 20), rng)?;
    }
    let more = traffic(100 * seed + 99, 8, 100, pairs);
    bench.clear_wire();
    bench.cycles(3000, rng)?;
    bench.settle(rng)?;
    bench.flush(rng)?;
    none_twice(&arrivals, &bench)?;
    bench.units.clear();
    for arrival in &more {
        bench.send(&arrival.frame);
    }
    bench.settle(rng)?;
    bench.flush(rng)?;
    bench.undone(&more)
}

#[test]
fn function_resets_at_any_moment_publish_nothing_and_leave_a_block_that_works() {
    for_seeds(seeds(10), |seed, rng| reset(64, seed, rng));
    for_seeds(seeds(10), |seed, rng| reset(512, seed, rng));
}

/// Resets of one queue: what is held for it is gone, the other loses nothing.
fn queue_reset(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let pairs = 2;
    let mut bench = bench(width, seed, pairs, rng)?;
    let arrivals = traffic(seed, 8, 200, pairs);
    for arrival in &arrivals {
        bench.send(&arrival.frame);
    }
    for _ in 0..6 {
        bench.cycles(rng.below(3000), rng)?;
        pause(&mut bench, rng)?;
        let clear = layout("vq_clear_t").pack(&[("valid", 1), ("q", 0)]);
        bench.block.set("clear_i", clear);
        bench.forget_queue(0);
        let posting = bench.posting.clone();
        bench.posting.left = 0;
        bench.cycles(4, rng)?;
        bench.block.set("clear_i", false);
        bench.posting = posting;
        bench.block.set("pause_i", false);
    }
    bench.settle(rng)?;
    bench.flush(rng)?;
    ensure!(bench.dropped() == 0, "dropped: {:?}", bench.drops);
    none_twice(&arrivals, &bench)?;
    let other = |queue: u16| queue == 1;
    let came: Vec<_> = arrivals
        .iter()
        .filter(|a| other(a.queue))
        .cloned()
        .collect();
    bench.units.retain(|unit| other(unit.queue));
    bench.undone(&came)
}

#[test]
fn queue_resets_at_any_moment_forget_what_is_held_for_it_alone() {
    for_seeds(seeds(10), |seed, rng| queue_reset(64, seed, rng));
    for_seeds(seeds(10), |seed, rng| queue_reset(512, seed, rng));
}

/// Flows change their queue as the number of pairs in use does: each queue has them in order.
fn moved(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = bench(width, seed, 4, rng)?;
    let mut arrivals = Vec::new();
    for round in 0..8 {
        let pairs = rng.range(1, 4) as u16;
        bench.settle(rng)?;
        bench.pairs(pairs.into());
        // The same flows again, so that they are held still.
        let more: Vec<_> = traffic(seed, 6, 30 * (round + 1), pairs)
            .into_iter()
            .skip(30 * round)
            .collect();
        for arrival in &more {
            bench.send(&arrival.frame);
        }
        arrivals.extend(more);
    }
    bench.settle(rng)?;
    bench.flush(rng)?;
    // All queues are seen by one: a flow's frames are in order, whichever they went to.
    order::cut(&bench.units)
        .and_then(|delivered| order::same(&arrivals, &delivered))
        .map_err(Failure::Contract)
}

#[test]
fn flow_that_comes_to_another_queue_leaves_the_first_before() {
    for_seeds(seeds(8), |seed, rng| moved(64, seed, rng));
    for_seeds(seeds(8), |seed, rng| moved(512, seed, rng));
}

/// No segment is held longer than the hold time, nor a lone one longer than the gap time.
fn times(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(width, seed)?;
    let (gap, hold) = (rng.pick(&[60, 400, 2500]), rng.pick(&[3000, 7000]));
    bench.set(Settings {
        gap,
        hold,
        ..Settings::LONG
    });
    let arrivals = traffic(seed, 10, 150, 1);
    let mut came = HashMap::new();
    for arrival in &arrivals {
        bench.send(&arrival.frame);
        while bench.waiting() > 0 {
            bench.cycle(rng)?;
        }
        came.entry(arrival.frame.clone()).or_insert(bench.time());
        let pause = rng.pick(&[0, 0, 10, gap / 2, 2 * gap]);
        bench.cycles(pause, rng)?;
    }
    bench.cycles(hold + 1000, rng)?;
    bench.undone(&arrivals)?;
    // What a frame takes that is not held, and others in front of it.
    let slack = 1500;
    for (number, unit) in bench.units.iter().enumerate() {
        let frames = ferronic_oracle::resegment(&unit.header, &unit.frame).unwrap_or_default();
        let Some(first) = frames.first().and_then(|frame| came.get(frame)) else {
            continue;
        };
        let (waited, most) = (
            unit.at - first,
            if frames.len() == 1 {
                gap.min(hold)
            } else {
                hold
            },
        );
        // The same frame may have come twice.
        let once = arrivals.iter().filter(|a| a.frame == frames[0]).count() == 1;
        ensure!(
            !once || waited <= most + slack,
            "unit {number} of {} frames waited {waited} cycles, {most} are allowed",
            frames.len()
        );
    }
    Ok(())
}

#[test]
fn nothing_is_held_longer_than_its_time() {
    for_seeds(seeds(4), |seed, rng| times(64, seed, rng));
    for_seeds(seeds(4), |seed, rng| times(512, seed, rng));
}
