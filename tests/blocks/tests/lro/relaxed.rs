//! The relaxed profile: units are those of the model, which are more, and cannot be undone.

use ferronic_block_tests::{Failure, Rng, ensure, for_seeds, nightly};
use ferronic_oracle::card::pair;
use ferronic_oracle::drift::drift;
use ferronic_oracle::frames::verdict;
use ferronic_oracle::lro::Profile;
use ferronic_oracle::vectors::{Arrival, all};

use crate::bench::{Bench, Rates, Settings};
use crate::rules::{impossible, run};
use crate::streams::{alike, traffic};

fn seeds(count: u64) -> u64 {
    if nightly() { 20 * count } else { count }
}

/// Buffers of one size, more than are held; nothing ends by time.
fn as_the_model(
    width: usize,
    seed: u64,
    arrivals: impl Fn(u64, usize, u16) -> Vec<Arrival>,
    rng: &mut Rng,
) -> Result<(), Failure> {
    let mut bench = Bench::relaxed(width, seed)?;
    bench.rates = if rng.chance(30) {
        Rates::FULL
    } else {
        Rates::any(rng)
    };
    let pairs = rng.range(1, 3) as u16;
    let flows = rng.pick(&[1, 3, 8, 20]);
    let size = rng.pick(&[256, 1500, 4096, 9300]);
    let settings = Settings {
        strict: false,
        relaxed: true,
        max_bytes: rng.pick(&[65_535, 65_535, 9000]),
        ..Settings::LONG
    };
    let arrivals = arrivals(seed, flows, pairs);
    alike(&mut bench, size, pairs, settings, &arrivals, rng)?;
    ensure!(bench.events.merged > 0, "none was merged");
    Ok(())
}

#[test]
fn relaxed_units_of_drifting_headers_are_those_of_the_model() {
    let stream = |seed, flows, pairs| {
        let mut arrivals = drift(seed, flows, 400);
        for arrival in &mut arrivals {
            arrival.queue = pair(verdict(&arrival.frame).hash(), pairs);
        }
        arrivals
    };
    for_seeds(seeds(8), |seed, rng| as_the_model(64, seed, stream, rng));
    for_seeds(seeds(8), |seed, rng| as_the_model(512, seed, stream, rng));
}

#[test]
fn relaxed_units_of_random_streams_are_those_of_the_model() {
    let stream = |seed, flows, pairs| traffic(seed, flows, 400, pairs);
    for_seeds(seeds(5), |seed, rng| as_the_model(64, seed, stream, rng));
    for_seeds(seeds(5), |seed, rng| as_the_model(512, seed, stream, rng));
}

/// The smallest streams of all rows, those that it changes and those that it does not.
#[test]
fn relaxed_rows_are_those_of_the_model() {
    let mut count = 0;
    for mut vector in all() {
        vector.config.profile = Profile::Relaxed;
        if impossible(&vector).is_none() {
            count += 1;
            for width in [64, 512] {
                if let Err(failure) = run(&vector, width, false) {
                    let (rule, what) = (vector.rule, vector.what);
                    panic!("rule {rule}, {what}, {width} bits: {failure}");
                }
            }
        }
    }
    assert!(count > 150, "only {count} vectors");
}
