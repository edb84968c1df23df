//! Chains that break the rules end in an error, after the segments that are good.

use ferronic_block_tests::{Failure, Rng, configure, ensure, for_seeds};

use super::{Bench, Descriptor, INDIRECT, NEXT, Segment, WRITE};

/// Posts a chain of `count` with a table of `table` descriptors, breaks it, and sees the error.
fn broken(
    seed: u64,
    rng: &mut Rng,
    indirect: bool,
    (count, table): (u64, u64),
    spoil: impl Fn(&mut Bench, u64, &[u64], &mut Rng),
) -> Result<(), Failure> {
    let mut bench = Bench::new(seed, indirect, rng)?;
    let q = 6;
    configure(&mut bench.block, q, 8, 0)?;
    bench.queues[q as usize].size = 8;
    bench.queues[q as usize].free = (0..8).rev().collect();
    let (head, numbers) = bench.chain(q, count, table, rng);
    spoil(&mut bench, q, &numbers, rng);
    bench.post(q, head, numbers);
    bench.cycle(rng)?;
    let wanted = bench.walk(q, head);
    ensure!(
        wanted.last() == Some(&Segment::Error),
        "the test spoiled nothing: {wanted:x?}"
    );
    let segments = bench.take(q, 0, rng)?;
    ensure!(segments == wanted, "{segments:x?} instead of {wanted:x?}");
    Ok(())
}

impl Bench {
    /// Changes the descriptor at an address.
    fn spoil(&mut self, address: u64, change: impl Fn(&mut Descriptor)) {
        let mut descriptor = self.descriptor(address);
        change(&mut descriptor);
        self.put(address, descriptor);
    }

    fn direct(&self, q: u64, number: u64) -> u64 {
        self.queues[q as usize].table + 16 * number
    }

    /// Address of the table of the chain's last descriptor.
    fn table_of(&self, q: u64, numbers: &[u64]) -> u64 {
        let last = numbers.last().copied().unwrap_or(0);
        self.descriptor(self.direct(q, last)).addr
    }
}

#[test]
fn loops_end_in_an_error() {
    for_seeds(8, |seed, rng| {
        let back = rng.below(4);
        broken(seed, rng, true, (4, 0), |bench, q, numbers, _| {
            let at = bench.direct(q, numbers[3]);
            let to = numbers[back as usize];
            bench.spoil(at, |d| (d.flags, d.next) = (d.flags | NEXT, to));
        })?;
        broken(seed, rng, true, (5, 4), |bench, q, numbers, _| {
            let at = bench.table_of(q, numbers);
            bench.spoil(at, |d| (d.flags, d.next) = (d.flags | NEXT, 0));
        })
    });
}

#[test]
fn numbers_outside_the_table_lengths_of_0_and_wrong_directions_are_errors() {
    for_seeds(4, |seed, rng| {
        for place in 0..3 {
            broken(seed, rng, true, (4, 0), |bench, q, numbers, rng| {
                let (at, to) = (bench.direct(q, numbers[place]), rng.range(8, 0xffff));
                bench.spoil(at, |d| d.next = to);
            })?;
            broken(seed, rng, true, (4, 0), |bench, q, numbers, _| {
                let at = bench.direct(q, numbers[place]);
                bench.spoil(at, |d| d.len = 0);
            })?;
            broken(seed, rng, true, (4, 0), |bench, q, numbers, _| {
                let at = bench.direct(q, numbers[place]);
                bench.spoil(at, |d| d.flags &= !WRITE);
            })?;
        }
        broken(seed, rng, true, (3, 3), |bench, q, numbers, _| {
            let at = bench.table_of(q, numbers);
            bench.spoil(at, |d| (d.flags, d.next) = (d.flags | NEXT, 9));
        })
    });
}

#[test]
fn malformed_tables_are_errors() {
    for_seeds(2, |seed, rng| {
        for len in [0, 8, 24, 16 * 9, 0x10_0010, 0xffff_fff0] {
            broken(seed, rng, true, (3, 2), |bench, q, numbers, _| {
                let at = bench.direct(q, numbers[1]);
                bench.spoil(at, |d| d.len = len);
            })?;
        }
        // Together with NEXT, nested, and without the feature.
        broken(seed, rng, true, (3, 2), |bench, q, numbers, _| {
            let at = bench.direct(q, numbers[1]);
            bench.spoil(at, |d| (d.flags, d.next) = (d.flags | NEXT, 0));
        })?;
        broken(seed, rng, true, (2, 2), |bench, q, numbers, _| {
            let at = bench.table_of(q, numbers);
            bench.spoil(at, |d| (d.flags, d.len) = (INDIRECT, 16));
        })?;
        broken(seed, rng, false, (2, 2), |_, _, _, _| {})
    });
}

#[test]
fn chain_as_long_as_the_ring_is_good_and_a_longer_one_is_not() {
    for_seeds(2, |seed, rng| {
        let mut bench = Bench::new(seed, true, rng)?;
        let q = 6;
        let size = bench.queues[q as usize].size;
        let (head, numbers) = bench.chain(q, size, 0, rng);
        bench.post(q, head, numbers);
        bench.cycle(rng)?;
        let segments = bench.take(q, 0, rng)?;
        ensure!(
            segments == bench.walk(q, head),
            "{} segments",
            segments.len()
        );
        ensure!(
            segments.len() as u64 == size,
            "{} of {size} segments",
            segments.len()
        );
        // One of 8 in front of a table of 8: 15 in all.
        broken(seed, rng, true, (8, 1), |bench, q, numbers, rng| {
            let at = bench.direct(q, numbers[7]);
            bench.spoil(at, |d| d.len = 8 * 16);
            let table = bench.table_of(q, numbers);
            for i in 0..8 {
                let addr = rng.next_u64() >> 8;
                let (flags, next) = (WRITE | NEXT, i + 1);
                bench.put(
                    table + 16 * i,
                    Descriptor {
                        addr,
                        len: 1,
                        flags,
                        next,
                    },
                );
            }
        })
    });
}

#[test]
fn failed_read_of_descriptors_is_an_error() {
    for_seeds(2, |seed, rng| {
        let mut bench = Bench::new(seed, true, rng)?;
        bench.host.errors = 100;
        let (head, numbers) = bench.chain(0, 2, 0, rng);
        bench.post(0, head, numbers);
        bench.cycle(rng)?;
        let segments = bench.take(0, 0, rng)?;
        ensure!(
            segments.len() == 2 && segments[1] == Segment::Error,
            "{segments:x?} though nothing was read"
        );
        Ok(())
    });
}
