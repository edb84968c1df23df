//! How the block is set and fed, and what it tells.

use ferronic_block_tests::Rng;
use ferronic_oracle::card::{self, CAUSES};
use ferronic_oracle::lro::Counters;

/// How buffers are posted.
#[derive(Clone, Debug)]
pub struct Posting {
    /// Buffers of a queue at most, those that the block holds among them.
    pub buffers: usize,
    /// Bytes of a segment, any of these.
    pub sizes: Vec<u64>,
    /// Segments of a buffer, at least and at most.
    pub segments: (u64, u64),
    /// Bytes of the first segment of a buffer of several, if not any.
    pub first: Option<u64>,
    /// How often one is posted, of hundred cycles.
    pub often: u64,
    /// No more than these in all, for each queue.
    pub left: u64,
    /// Queues that have any.
    pub queues: u64,
}

impl Default for Posting {
    fn default() -> Self {
        Self {
            buffers: 1100,
            sizes: vec![4096],
            segments: (1, 1),
            first: None,
            often: 100,
            left: u64::MAX,
            queues: 1,
        }
    }
}

/// Settings of the block.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub strict: bool,
    pub relaxed: bool,
    pub gap: u64,
    pub hold: u64,
    pub max_bytes: u64,
    pub low_water: u64,
}

impl Settings {
    /// Nothing ends by time.
    pub const LONG: Self = Self {
        strict: true,
        relaxed: false,
        gap: (1 << 23) - 1,
        hold: (1 << 23) - 1,
        max_bytes: 65_535,
        low_water: 0,
    };
}

/// Stalls, in hundredths of the cycles that go on.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub wire: u64,
    pub commands: u64,
    pub used: u64,
    pub reads: u64,
    /// Cycles until a write is done, at most.
    pub write: u64,
}

impl Rates {
    pub const FULL: Self = Self {
        wire: 100,
        commands: 100,
        used: 100,
        reads: 100,
        write: 3,
    };

    pub fn any(rng: &mut Rng) -> Self {
        let mut rate = || rng.pick(&[5, 30, 70, 100, 100]);
        Self {
            wire: rate(),
            commands: rate(),
            used: rate(),
            reads: rate(),
            write: rng.pick(&[1, 30, 200]),
        }
    }
}

/// What the block told of contexts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub closed: [u64; CAUSES],
    pub opened: u64,
    pub merged: u64,
}

impl Events {
    pub fn of(counters: &Counters) -> Self {
        let mut events = Self {
            opened: counters.opened,
            merged: counters.merged,
            ..Self::default()
        };
        for (cause, count) in &counters.closed {
            events.closed[card::counter(*cause)] += count;
        }
        events
    }
}
