//! The relaxed profile of the whole card: its units are those of the model.

use ferronic_cosim_tests::lro::{Plan, Settings};
use ferronic_cosim_tests::nightly;
use ferronic_oracle::drift::drift;
use ferronic_oracle::lro::Unit;
use ferronic_oracle::stream::Traffic;
use ferronic_oracle::{Rng, order};
use ferronic_sim::model::WIDTHS;

use crate::bench::Bench;

/// Frames of one seed.
const FRAMES: usize = 800;

fn as_the_model(data_w: u32, seed: u64, frames: &[Vec<u8>]) -> Vec<Unit> {
    let mut rng = Rng::new(seed ^ u64::from(data_w) << 32);
    let stalls = if rng.chance(70) { seed } else { 0 };
    let mut bench = Bench::new(format!("{data_w} bits, seed {seed}"), data_w, stalls);
    let size = rng.pick(&[1500, 2048, 4096, 65_562]);
    bench.plan = Plan {
        pairs: rng.range(1, 4) as u16,
        buffers: (16 << 20) / size.max(1 << 14),
        sizes: vec![size],
        ..Plan::default()
    };
    bench.settings = Settings {
        strict: false,
        relaxed: true,
        max_bytes: rng.pick(&[65_535, 9000]),
        ..Settings::default()
    };
    bench.compare(frames.iter().cloned())
}

#[test]
fn relaxed_units_are_those_of_the_model() {
    let seeds = if nightly() { 80 } else { 4 };
    for data_w in WIDTHS {
        let mut units = 0;
        for seed in 1..=seeds {
            let flows = [1, 3, 8, 14][seed as usize % 4];
            let arrivals = drift(seed, flows, FRAMES);
            let frames: Vec<_> = arrivals.into_iter().map(|a| a.frame).collect();
            units += as_the_model(*data_w, seed, &frames).len();
            let mut traffic = Traffic::new(seed, flows, 1, 1);
            let frames: Vec<_> = (0..FRAMES).map(|_| traffic.arrival().frame).collect();
            as_the_model(*data_w, seed, &frames);
        }
        println!(
            "{data_w} bits: {} drifting frames in {units} units",
            seeds as usize * FRAMES
        );
        assert!(units < seeds as usize * FRAMES / 2);
    }
}

/// What the strict profile holds apart, the relaxed one merges.
#[test]
fn relaxed_merges_what_strict_does_not() {
    let frames: Vec<_> = drift(7, 4, FRAMES).into_iter().map(|a| a.frame).collect();
    let found = [false, true].map(|relaxed| {
        let mut bench = Bench::new(format!("relaxed {relaxed}"), WIDTHS[0], 0);
        bench.settings.relaxed = relaxed;
        let units = bench.compare(frames.clone());
        if !relaxed {
            assert!(order::cut(&units).is_ok_and(|cut| cut.len() == FRAMES));
        }
        units.len()
    });
    println!(
        "{FRAMES} frames: {} units strict, {} relaxed",
        found[0], found[1]
    );
    assert!(2 * found[1] < found[0]);
}
