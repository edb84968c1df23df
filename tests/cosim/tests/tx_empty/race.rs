//! Posting while the ring runs empty.

use crate::bench::{Bench, ON};
use ferronic_cosim_tests::nightly;
use ferronic_cosim_tests::raw_driver::read;
use ferronic_sim::SimConfig;
use ferronic_spec::window as w;

/// A small generator: the seed says it all.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Publishes what was offered and rings as a driver does: if avail_event asks for it.
fn publish(bench: &Bench, before: u16) -> bool {
    bench.tx.publish();
    let end = 4 + 8 * usize::from(bench.tx.size);
    let bytes = read(&bench.tx.used, end, 2);
    let event = u16::from_le_bytes([bytes[0], bytes[1]]);
    let past = bench.tx.next.wrapping_sub(event).wrapping_sub(1);
    let rings = past < bench.tx.next.wrapping_sub(before);
    if rings {
        bench.raw.kick(1);
    }
    rings
}

/// Posts around the moment at which the queue runs empty, or its hold-off ends, until the driver
/// stops: then it is told of all, and was never told for nothing.
fn run(seed: u64, config: SimConfig, overtaken: &mut u32) {
    let mut rng = Rng(seed);
    let mut bench = Bench::new(config, 64);
    for round in 0..25 {
        let holdoff = [0, 50, 300, 2_000][rng.below(4) as usize];
        let age = [0, 0, 3_000][rng.below(3) as usize];
        bench.set(w::TX_EMPTY, ON | holdoff);
        bench.set(w::TX_MAX_AGE, age);
        let posts = 1 + rng.below(12);
        let (mut told, mut reported) = (0u32, bench.tx.used_index());
        let before = bench.causes();
        // Used at an interrupt of before, or of now.
        let hear = |bench: &Bench, told: &mut u32, reported: &mut u16| {
            while bench.raw.function.sim().take_vector().is_some() {
                *told += 1;
                *reported = bench.tx.used_index();
            }
        };
        for _ in 0..posts {
            while bench.outstanding() > 48 {
                bench.raw.run(100);
                hear(&bench, &mut told, &mut reported);
            }
            let old = bench.tx.next;
            for _ in 0..=rng.below(3) {
                bench.offer(60);
            }
            publish(&bench, old);
            // Until the card is about to find out, or a random time.
            let wait = match rng.below(3) {
                0 => rng.below(200),
                1 => rng.below(1_500),
                _ => {
                    bench.used();
                    u64::from(holdoff) + rng.below(500)
                }
            };
            let end = bench.raw.function.now() + wait;
            while bench.raw.function.now() < end {
                let left = end - bench.raw.function.now();
                bench.raw.run(left.min(20));
                hear(&bench, &mut told, &mut reported);
            }
        }
        bench.used();
        for _ in 0..400 {
            bench.raw.run(20);
            hear(&bench, &mut told, &mut reported);
        }
        assert_eq!(
            reported, bench.tx.next,
            "seed {seed}, round {round}: not told of the last"
        );
        let after = bench.causes();
        let count: u32 = (0..3).map(|cause| after[cause] - before[cause]).sum();
        assert_eq!(told, count, "seed {seed}, round {round}");
        assert!(
            u64::from(told) <= posts,
            "seed {seed}, round {round}: {told} interrupts for {posts} posts"
        );
        *overtaken += after[3] - before[3];
    }
    assert!(!bench.raw.needs_reset(), "seed {seed}: the card broke");
}

#[test]
fn posts_while_the_ring_runs_empty_are_neither_lost_nor_untold() {
    let seeds = if nightly() { 200 } else { 12 };
    let mut overtaken = 0;
    for seed in 0..seeds {
        run(seed, SimConfig::default(), &mut overtaken);
        run(seed, SimConfig::adversarial(seed), &mut overtaken);
    }
    println!("overtaken {overtaken} times");
    assert!(overtaken > 0, "the race never happened");
}
