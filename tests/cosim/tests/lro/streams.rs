//! Random streams: loss, reordering, duplicates, overlaps, options, flags, identifications, VLANs,
//! fragments, padding, wrong sums, garbage. `resegment(LRO(stream)) == stream`, byte for byte and
//! per flow in order, whatever buffers and stalls there are; and where time and buffers do not
//! matter each unit is what the model delivers.
//!
//! Fifty thousand segments in all, at night a million. A failure names its seed; `FERRONIC_SEED`
//! runs one, or a range of them.

use std::env;
use std::ops::RangeInclusive;

use ferronic_cosim_tests::lro::{MERGING, Plan, Settings};
use ferronic_cosim_tests::nightly;
use ferronic_oracle::Rng;
use ferronic_oracle::stream::Traffic;
use ferronic_oracle::vectors::Arrival;
use ferronic_spec::Features;

use crate::bench::Bench;

/// Frames of one seed.
const FRAMES: usize = 1250;

/// 1 to `count`, twenty times as many at night, or what `FERRONIC_SEED` says.
fn seeds(count: u64) -> RangeInclusive<u64> {
    let Ok(text) = env::var("FERRONIC_SEED") else {
        return 1..=count * if nightly() { 20 } else { 1 };
    };
    let number = |text: &str| {
        text.parse()
            .expect("FERRONIC_SEED: a number, or two and ..")
    };
    match text.split_once("..") {
        Some((first, last)) => number(first)..=number(last),
        None => number(&text)..=number(&text),
    }
}

fn frames(traffic: &mut Traffic) -> Vec<Arrival> {
    (0..FRAMES).map(|_| traffic.arrival()).collect()
}

/// Buffers of one size, more of them than are held; nothing ends by time.
fn as_the_model(data_w: u32, count: u64) {
    let (mut segments, mut merged) = (0, 0);
    for seed in seeds(count) {
        let mut rng = Rng::new(seed ^ u64::from(data_w) << 32);
        let stalls = if rng.chance(70) { seed } else { 0 };
        let mut bench = Bench::new(format!("{data_w} bits, seed {seed}"), data_w, stalls);
        let merge = rng.chance(80);
        let flows = rng.pick(&[1, 3, 8, 20, 70]);
        let size = match merge {
            // 64 of these are a unit.
            true if flows <= 8 => rng.pick(&[256, 700, 4096]),
            true => rng.pick(&[1500, 2048, 2049, 4096, 9300, 65_562]),
            false => rng.pick(&[9300, 20_000, 65_562]),
        };
        bench.plan = Plan {
            pairs: rng.range(1, 4) as u16,
            buffers: (16 << 20) / size.max(1 << 14),
            sizes: vec![size],
            features: if merge {
                MERGING
            } else {
                MERGING - Features::MRG_RXBUF
            },
            ..Plan::default()
        };
        bench.settings.max_bytes = rng.pick(&[65_535, 65_535, 9000, 576]);
        let arrivals = frames(&mut Traffic::new(seed, flows, 1, 1));
        let units = bench.compare(arrivals.into_iter().map(|a| a.frame));
        let of = |units: &[ferronic_oracle::lro::Unit]| -> usize {
            units.iter().map(|unit| unit.segments).sum()
        };
        segments += of(&units);
        merged += of(&units) - units.len();
    }
    println!("{data_w} bits: {segments} frames, {merged} merged");
    assert!(merged > segments / 20);
}

#[test]
fn units_of_random_streams_are_those_of_the_model_at_64_bits() {
    as_the_model(64, 10);
}

#[test]
fn units_of_random_streams_are_those_of_the_model_at_512_bits() {
    as_the_model(512, 10);
}

/// Few buffers of any size and shape, short times, pauses.
fn anyhow(data_w: u32, count: u64) {
    let (mut segments, mut merged) = (0, 0);
    for seed in seeds(count) {
        let mut rng = Rng::new(seed ^ u64::from(data_w) << 32 ^ 0x5ca7);
        let stalls = if rng.chance(80) { seed } else { 0 };
        let mut bench = Bench::new(format!("{data_w} bits, seed {seed}"), data_w, stalls);
        let merge = rng.chance(75);
        let sizes: &[usize] = match (merge, rng.below(5)) {
            (false, _) => &[9300, 9301, 20_000, 65_562],
            (true, 0) => &[256],
            (true, 1) => &[200, 201, 333, 1000],
            (true, 2) => &[2048],
            (true, 3) => &[1500, 4096, 9000],
            (true, _) => &[150, 4096, 65_562],
        };
        // The largest frame fits in any case.
        let least = if merge {
            9300_usize.div_ceil(sizes[0])
        } else {
            1
        };
        let pieces: &[usize] = rng.pick(&[&[1][..], &[1], &[1, 2, 3], &[2], &[8]]);
        let indirect = rng.chance(50);
        let most = if indirect {
            256
        } else {
            256 / pieces.last().unwrap_or(&1)
        };
        bench.plan = Plan {
            pairs: rng.range(1, 4) as u16,
            ring: 256,
            buffers: most.min(least + rng.pick(&[0, 1, 5, 30, 256])),
            sizes: sizes.to_vec(),
            pieces: pieces.to_vec(),
            indirect,
            delay: Some(rng.pick(&[0, 100, 3000])),
            features: if merge {
                MERGING
            } else {
                MERGING - Features::MRG_RXBUF
            } | if indirect {
                Features::INDIRECT_DESC
            } else {
                Features::empty()
            },
            ..Plan::default()
        };
        let gap = rng.pick(&[50, 1000, 12_500]);
        bench.settings = Settings {
            gap,
            hold: gap * rng.range(1, 5),
            max_bytes: rng.pick(&[65_535, 9000, 576]),
            low_water: rng.pick(&[0, 0, 1, 16, 64]),
            ..Settings::default()
        };
        let flows = rng.pick(&[1, 3, 8, 20, 70]);
        let arrivals = frames(&mut Traffic::new(seed, flows, 1, gap));
        let (units, closed) = bench.undo(arrivals);
        segments += units.iter().map(|unit| unit.segments).sum::<usize>();
        merged += closed.merged;
    }
    println!("{data_w} bits: {segments} frames, {merged} merged");
    assert!(merged as usize > segments / 50);
}

#[test]
fn random_streams_come_back_from_any_buffers_at_64_bits() {
    anyhow(64, 10);
}

#[test]
fn random_streams_come_back_from_any_buffers_at_512_bits() {
    anyhow(512, 10);
}
