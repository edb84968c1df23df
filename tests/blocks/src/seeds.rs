//! Runs a test for several seeds and says which one failed.

use std::env;
use std::ops::RangeInclusive;

use crate::{Failure, Rng};

/// Calls `test` with generators of `count` seeds, or of those in `FERRONIC_SEED`: a number, or the
/// first and last of a range (`5..900`).
///
/// # Panics
///
/// If a run fails; the message names the seed.
pub fn for_seeds(count: u64, test: impl Fn(u64, &mut Rng) -> Result<(), Failure>) {
    let seeds = match env::var("FERRONIC_SEED") {
        Ok(text) => match seeds_of(&text) {
            Some(seeds) => seeds,
            None => panic!("FERRONIC_SEED is {text:?}: it must be a number, or two and .. between"),
        },
        Err(_) => 1..=count,
    };
    for seed in seeds {
        if let Err(failure) = test(seed, &mut Rng::new(seed)) {
            panic!("{failure}\nseed {seed}: replay with FERRONIC_SEED={seed}");
        }
    }
}

/// Whether the longer versions of tests are asked for (`cargo xtask test --nightly`).
pub fn nightly() -> bool {
    env::var_os("FERRONIC_NIGHTLY").is_some_and(|value| !value.is_empty() && value != "0")
}

fn seeds_of(text: &str) -> Option<RangeInclusive<u64>> {
    match text.split_once("..") {
        Some((first, last)) => Some(first.parse().ok()?..=last.parse().ok()?),
        None => text.parse().ok().map(|seed| seed..=seed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_one_or_a_range() {
        assert_eq!(seeds_of("7"), Some(7..=7));
        assert_eq!(seeds_of("5..900"), Some(5..=900));
        assert_eq!(seeds_of("5..").or(seeds_of("x")), None);
    }
}
