//! Runs a test for several seeds and says which one failed.

use std::env;

use crate::{Failure, Rng};

/// Calls `test` with generators of `count` seeds, or of the one in `FERRONIC_SEED`.
///
/// # Panics
///
/// If a run fails; the message names the seed.
pub fn for_seeds(count: u64, test: impl Fn(u64, &mut Rng) -> Result<(), Failure>) {
    let seeds = match env::var("FERRONIC_SEED") {
        Ok(text) => match text.parse() {
            Ok(seed) => seed..=seed,
            Err(_) => panic!("FERRONIC_SEED is {text:?}: it must be a number"),
        },
        Err(_) => 1..=count,
    };
    for seed in seeds {
        if let Err(failure) = test(seed, &mut Rng::new(seed)) {
            panic!("{failure}\nseed {seed}: replay with FERRONIC_SEED={seed}");
        }
    }
}
