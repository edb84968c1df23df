//! Which cache has a line of memory: one that writes has it alone, those that read share it.

use std::collections::BTreeMap;

/// What a CPU does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It writes, or reads and writes in one.
    Write,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The CPUs that have it.
    holders: u128,
    moves: u64,
}

/// The caches of up to 128 CPUs, which are large enough.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    lines: BTreeMap<usize, Line>,
}

impl Caches {
    /// Caches that have nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A CPU touches the line that an address is in. True if the line, or the right to write to it,
    /// had to come from another CPU; what comes from memory is not counted.
    pub fn touch(&mut self, cpu: usize, address: usize, access: Access) -> bool {
        let line = self.lines.entry(address / 64).or_default();
        let own = 1 << (cpu % 128);
        let moved = match access {
            Access::Read => line.holders & own == 0 && line.holders != 0,
            Access::Write => line.holders & !own != 0,
        };
        line.holders = match access {
            Access::Read => line.holders | own,
            Access::Write => own,
        };
        line.moves += u64::from(moved);
        moved
    }

    /// How often lines moved from one CPU to another.
    pub fn moves(&self) -> u64 {
        self.lines.values().map(|line| line.moves).sum()
    }

    /// How often the line that an address is in did.
    pub fn moves_of(&self, address: usize) -> u64 {
        self.lines.get(&(address / 64)).map_or(0, |line| line.moves)
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    /// Seed 0.2: a stamp that all write moves with every packet, one of each queue never.
    #[test]
    fn shared_stamp_moves_with_every_packet_and_own_ones_never() {
        for cpus in [2, 4, 16] {
            let mut shared = Caches::new();
            let mut own = Caches::new();
            for packet in 0..1000 {
                shared.touch(packet % cpus, 0, Access::Write);
                own.touch(packet % cpus, packet % cpus * 64, Access::Write);
            }
            assert_eq!((shared.moves(), own.moves()), (999, 0), "{cpus} CPUs");
        }
    }

    /// Seed 0.2: written once a tick, it moves once to the writer and once to each who looks.
    #[test]
    fn stamp_that_is_written_once_a_tick_moves_once_to_each_reader() {
        let (cpus, ticks) = (4, 100);
        let mut caches = Caches::new();
        for _ in 0..ticks {
            for packet in 0..64 {
                caches.touch(packet % cpus, 8, Access::Read);
                if packet == 0 {
                    caches.touch(0, 8, Access::Write);
                }
            }
        }
        // To the writer and to each of the others; in the first tick it comes from memory.
        assert_eq!(caches.moves_of(0), (ticks * cpus - 1) as u64);
    }
}
