//! What is delivered, until it is taken.

use zerocopy::{FromBytes, Immutable, IntoBytes, transmute};

use super::unit::Unit;

/// A receive buffer, or what of it belongs to a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C, align(8))]
pub struct Part {
    /// Bytes that were written into the buffer, the skipped ones included; at least `skip`.
    pub len: u32,
    /// Which buffer.
    pub buffer: u16,
    /// Bytes at its start that do not belong to the frame: the virtio header, or the headers of a
    /// merged segment.
    pub skip: u16,
}

impl Part {
    /// The same without `more` bytes at its start.
    #[inline(always)]
    pub(super) fn skipping(self, more: u16) -> Self {
        // One number, as the compiler does not see it.
        let more = Self {
            skip: more,
            ..Self::default()
        };
        let [all, more]: [u64; 2] = [transmute!(self), transmute!(more)];
        transmute!(all.wrapping_add(more))
    }
}

/// Closed units in order, and their parts one behind the other.
pub(super) struct Ready {
    units: Vec<Unit>,
    parts: Vec<Part>,
    /// How many were taken. They are forgotten when the next comes and all were.
    taken: usize,
}

impl Ready {
    /// With room for what the end of a burst may close at once.
    pub(super) fn new(units: usize, parts: usize) -> Self {
        Self {
            units: Vec::with_capacity(units),
            parts: Vec::with_capacity(parts),
            taken: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, unit: Unit, parts: &[Part]) {
        if self.taken == self.units.len() {
            self.clear();
        }
        let first = self.parts.len();
        self.parts.extend_from_slice(parts);
        self.units.push(Unit { first, ..unit });
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Unit> {
        let unit = *self.units.get(self.taken)?;
        self.taken += 1;
        Some(unit)
    }

    #[inline]
    pub(super) fn parts(&self, unit: &Unit) -> &[Part] {
        let end = unit.first + usize::from(unit.buffers);
        self.parts.get(unit.first..end).unwrap_or_default()
    }

    pub(super) fn clear(&mut self) {
        self.units.clear();
        self.parts.clear();
        self.taken = 0;
    }
}
