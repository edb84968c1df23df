//! Software GRO: received TCP segments merged into units that can be cut back into exactly what was
//! on the wire.
//!
//! The rules are those of the strict profile of the card's own merging (LRO), of which this is the
//! fallback, and which it is compared with: segments are merged only if nothing but their sequence
//! numbers, IPv4 identifications (which must count up by one), lengths, checksums and PSH differ.
//! No payload is copied: a unit is a list of parts of receive buffers, the first with the headers of
//! all, which are rewritten there. A frame never overtakes held bytes of its own flow.
//!
//! [`RxQueue::set_gro`](crate::RxQueue::set_gro) switches it on for a queue, which then hands units
//! out as the card would. [`Gro`] itself works on any buffers.

mod engine;
mod foreseen;
mod head;
mod mask;
mod ready;
mod table;
mod unit;
mod verify;

use std::time::Duration;

use crate::pci::PciError;

pub use engine::{Arrival, Gro};
pub use ready::Part;
pub use unit::{Unit, Verified};

/// Most buffers of a unit.
pub const MAX_PARTS: u16 = 64;
/// Longest IP packet of a unit.
pub const MAX_IP: usize = 65_535;

/// How long segments are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroOptions {
    /// Longest since the first segment of a unit; zero: units end with the burst.
    pub hold: Duration,
    /// Longest since the last segment of a unit, where `hold` is not zero.
    pub gap: Duration,
    /// Longest IP packet of a unit, at most [`MAX_IP`].
    pub max_ip: usize,
    /// Buffers that may be held; then the oldest units end. `None`: half of them where `hold` is not
    /// zero, so that the card does not run dry, else all.
    pub max_held: Option<u16>,
}

impl Default for GroOptions {
    fn default() -> Self {
        Self {
            hold: Duration::ZERO,
            gap: Duration::from_micros(100),
            max_ip: MAX_IP,
            max_held: None,
        }
    }
}

/// Counters, in a cache line that only their owner writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct GroStats {
    /// TCP segments that could be merged.
    pub segments: u64,
    /// What was delivered of them: units, and segments that remained alone.
    pub units: u64,
    /// Other frames.
    pub others: u64,
    /// Units that ended because the next segment of their flow did not fit to them.
    pub misfits: u64,
    /// Units that ended because the longest packet or the most buffers were reached.
    pub full: u64,
    /// Units that ended because another flow, or the card, needed their place.
    pub evicted: u64,
    /// Units that ended with the burst, or because they had been held long enough.
    pub flushed: u64,
    /// Segments whose checksums were verified here.
    pub verified: u64,
}

const _: () = assert!(size_of::<GroStats>() == 64 && align_of::<GroStats>() == 64);

impl GroStats {
    /// Segments a unit, on average.
    pub fn segments_a_unit(&self) -> f64 {
        self.segments as f64 / self.units.max(1) as f64
    }

    /// The sum of two queues' counters.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            segments: self.segments + other.segments,
            units: self.units + other.units,
            others: self.others + other.others,
            misfits: self.misfits + other.misfits,
            full: self.full + other.full,
            evicted: self.evicted + other.evicted,
            flushed: self.flushed + other.flushed,
            verified: self.verified + other.verified,
        }
    }
}

/// Receive buffers, which are only copied from and to: the card may write to them at any time.
pub trait Buffers {
    /// Copies out of a buffer, perhaps more than the card wrote.
    ///
    /// # Errors
    /// When it has no such bytes.
    fn read(&self, buffer: u16, from: usize, out: &mut [u8]) -> Result<(), PciError>;

    /// Copies into a buffer.
    ///
    /// # Errors
    /// When it has no such bytes.
    fn write(&self, buffer: u16, from: usize, data: &[u8]) -> Result<(), PciError>;
}
