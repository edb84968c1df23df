//! Random streams with stalls on every side.

use ferronic_block_tests::{Failure, Rng, ensure, for_seeds, nightly};
use ferronic_oracle::card;
use ferronic_oracle::frames::verdict;
use ferronic_oracle::lro::{Config, Profile};
use ferronic_oracle::stream::{Bulk, Traffic};
use ferronic_oracle::vectors::Arrival;

use crate::bench::{Bench, Posting, Rates, Settings};

/// Frames of one seed.
const FRAMES: usize = 400;

/// Seeds in CI, twenty times as many at night.
fn seeds(count: u64) -> u64 {
    if nightly() { 20 * count } else { count }
}

/// Random traffic with the queues that the block gives it.
pub fn traffic(seed: u64, flows: usize, count: usize, pairs: u16) -> Vec<Arrival> {
    let mut traffic = Traffic::new(seed, flows, 1, 1000);
    let mut arrivals = Vec::new();
    while arrivals.len() < count {
        let mut arrival = traffic.arrival();
        arrival.queue = card::pair(verdict(&arrival.frame).hash(), pairs);
        if (14..=9216).contains(&arrival.frame.len()) {
            arrivals.push(arrival);
        }
    }
    arrivals
}

/// Buffers of one size, more than are held; nothing ends by time.
fn as_the_model(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(width, seed)?;
    bench.rates = Rates::any(rng);
    let pairs = rng.range(1, 4) as u16;
    let flows = rng.pick(&[1, 3, 8, 20, 70]);
    let size = match flows {
        ..=8 => rng.pick(&[160, 256, 700, 4096]),
        _ => rng.pick(&[1500, 2049, 4096, 9300]),
    };
    let settings = Settings {
        max_bytes: rng.pick(&[65_535, 65_535, 9000, 576, 300]),
        ..Settings::LONG
    };
    let arrivals = traffic(seed, flows, FRAMES, pairs);
    alike(&mut bench, size, pairs, settings, &arrivals, rng)
}

/// Compares with the model what becomes of frames in buffers of one size, of which there are enough.
pub fn alike(
    bench: &mut Bench,
    size: u64,
    pairs: u16,
    settings: Settings,
    arrivals: &[Arrival],
    rng: &mut Rng,
) -> Result<(), Failure> {
    bench.posting = Posting {
        buffers: 1024,
        sizes: vec![size],
        queues: pairs.into(),
        ..Posting::default()
    };
    bench.pairs(pairs.into());
    let config = Config {
        profile: if settings.relaxed {
            Profile::Relaxed
        } else {
            Profile::Strict
        },
        max_bytes: settings.max_bytes as usize,
        buffer: size as usize,
        first_descriptor: size as usize,
        ..card::config()
    };
    bench.set(settings);
    for arrival in arrivals {
        bench.send(&arrival.frame);
    }
    bench.settle(rng)?;
    bench.flush(rng)?;
    ensure!(bench.dropped() == 0, "dropped: {:?}", bench.drops);
    bench.as_model(config, arrivals, 1 << 30)
}

#[test]
fn units_are_those_of_the_model_whatever_stalls() {
    for_seeds(seeds(6), |seed, rng| as_the_model(64, seed, rng));
    for_seeds(seeds(6), |seed, rng| as_the_model(512, seed, rng));
}

/// Few buffers of any shape, short times.
fn anyhow(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(width, seed)?;
    bench.rates = Rates::any(rng);
    let pairs = rng.range(1, 4) as u16;
    let merge = rng.chance(80);
    bench.block.set("mrg_rxbuf_i", merge);
    let sizes = match merge {
        false => vec![9300, 65_562],
        true => match rng.below(4) {
            0 => vec![150],
            1 => vec![200, 333, 1000],
            2 => vec![2048, 9300],
            _ => vec![150, 4096, 65_562],
        },
    };
    let least = if merge {
        9300 / sizes[0] as usize + 1
    } else {
        1
    };
    bench.posting = Posting {
        buffers: least + rng.pick(&[0, 1, 8, 60]),
        segments: rng.pick(&[(1, 1), (1, 1), (1, 3), (2, 2), (6, 6)]),
        often: rng.pick(&[1, 10, 100]),
        sizes,
        queues: pairs.into(),
        ..Posting::default()
    };
    bench.pairs(pairs.into());
    let gap = rng.pick(&[20, 200, 3000]);
    bench.set(Settings {
        gap,
        hold: gap * rng.range(1, 5),
        low_water: rng.pick(&[0, 0, 1, 10, 64]),
        ..Settings::LONG
    });
    let flows = rng.pick(&[1, 3, 8, 20, 70]);
    let arrivals = traffic(seed, flows, FRAMES, pairs);
    for arrival in &arrivals {
        bench.send(&arrival.frame);
        // Now and then a pause, so that times end.
        if rng.chance(5) {
            bench.settle(rng)?;
            bench.cycles(rng.below(2 * gap), rng)?;
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
fn streams_come_back_from_few_buffers_of_any_shape() {
    for_seeds(seeds(12), |seed, rng| anyhow(64, seed, rng));
    for_seeds(seeds(12), |seed, rng| anyhow(512, seed, rng));
}

/// The bound of what must be merged: 64 flows by turns as fast as the data path takes them, 64
/// contexts, 1,280 buffers of 4 KiB, times of 250 us and 8 ms.
fn interleaved(width: usize, shuffled: Option<u64>, rng: &mut Rng) -> Result<(), Failure> {
    let bulk = Bulk {
        flows: 64,
        segments: 88,
        shuffled,
        ..Bulk::default()
    };
    let arrivals = bulk.arrivals();
    let mut bench = Bench::of(&format!("rx_path_lro_{width}_64"), width, 1)?;
    bench.posting.buffers = 1280;
    bench.set(Settings {
        gap: 31_250,
        hold: 1_000_000,
        ..Settings::LONG
    });
    for arrival in &arrivals {
        bench.send(&arrival.frame);
    }
    bench.settle(rng)?;
    bench.flush(rng)?;
    let config = Config {
        contexts: 64,
        ..card::config()
    };
    bench.as_model(config, &arrivals, 1 << 30)?;
    let per_unit = arrivals.len() as f64 / bench.units.len() as f64;
    println!("{width} bits, shuffled {shuffled:?}: {per_unit:.1} segments a unit");
    ensure!(per_unit >= 30.0, "{per_unit:.1} segments a unit");
    Ok(())
}

#[test]
fn sixty_four_flows_fill_the_units_of_as_many_contexts() {
    for_seeds(1, |_, rng| interleaved(64, None, rng));
    for_seeds(1, |seed, rng| interleaved(512, Some(seed), rng));
}
