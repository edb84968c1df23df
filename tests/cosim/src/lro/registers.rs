//! The registers of merging in our own window.

use ferronic_oracle::card::CAUSES;
use ferronic_oracle::lro::{Config, Counters};
use ferronic_spec::window;

use crate::raw_driver::Raw;

/// More than the longest time that gap and hold take.
pub const LONGEST: u64 = 1 << 23;

/// What a test writes into the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Merge by the strict rules.
    pub strict: bool,
    /// Merge by the relaxed rules instead.
    pub relaxed: bool,
    /// Cycles since the last segment.
    pub gap: u64,
    /// Cycles since the first.
    pub hold: u64,
    /// Bytes of a merged packet.
    pub max_bytes: u16,
    /// Fewer buffers are few.
    pub low_water: u8,
}

impl Default for Settings {
    /// Nothing ends by time.
    fn default() -> Self {
        Self {
            strict: true,
            relaxed: false,
            gap: LONGEST - 1,
            hold: LONGEST - 1,
            max_bytes: u16::MAX,
            low_water: 0,
        }
    }
}

impl Settings {
    /// Writes them and waits until they are in force.
    pub fn write(&self, raw: &Raw) {
        let profile = if self.relaxed { 2 } else { self.strict.into() };
        let values = [
            (window::LRO_GAP, self.gap),
            (window::LRO_HOLD, self.hold),
            (window::LRO_MAX_BYTES, self.max_bytes.into()),
            (window::LRO_LOW_WATER, self.low_water.into()),
            (window::LRO_PROFILE, profile),
        ];
        for (register, value) in values {
            raw.set(window::BASE + register, 4, value);
            assert_eq!(u64::from(raw.window(register)), value, "{register:#x}");
        }
    }

    /// The same for the model.
    pub fn apply(&self, config: &mut Config) {
        config.gap = self.gap;
        config.hold = self.hold;
        config.max_bytes = self.max_bytes.into();
        config.low_water = self.low_water.into();
    }
}

/// Contexts that were closed, by cause, opened, and segments that were merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// By cause, in the order of the card's counters.
    pub by: [u32; CAUSES],
    /// Contexts that were opened.
    pub opened: u32,
    /// Segments that were appended.
    pub merged: u32,
}

impl Closed {
    /// What the card has counted since it was made.
    pub fn read(raw: &Raw) -> Self {
        Self {
            by: std::array::from_fn(|i| raw.window(window::LRO_CLOSED_UNTRUSTED + 4 * i as u64)),
            opened: raw.window(window::LRO_OPENED),
            merged: raw.window(window::LRO_MERGED),
        }
    }

    /// What was counted after `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            by: std::array::from_fn(|i| self.by[i].wrapping_sub(before.by[i])),
            opened: self.opened.wrapping_sub(before.opened),
            merged: self.merged.wrapping_sub(before.merged),
        }
    }

    /// All that were closed.
    pub fn all(&self) -> u32 {
        self.by.iter().sum()
    }

    /// What the model counted.
    pub fn of(counters: &Counters) -> Self {
        let mut by = [0; CAUSES];
        for (cause, count) in &counters.closed {
            by[ferronic_oracle::card::counter(*cause)] += *count as u32;
        }
        Self {
            by,
            opened: counters.opened as u32,
            merged: counters.merged as u32,
        }
    }
}
