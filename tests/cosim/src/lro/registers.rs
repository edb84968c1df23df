//! The registers of merging in our own window.

use ferronic_oracle::card::CAUSES;
use ferronic_oracle::lro::{Config, Counters};
use ferronic_spec::window;

use crate::raw_driver::Raw;

/// Offsets in the window.
pub mod reg {
    /// Contexts in bits 15:0, most buffers of a unit in bits 23:16.
    pub const CAPS: u64 = 0x100;
    /// 0 off, 1 strict.
    pub const PROFILE: u64 = 0x104;
    /// Cycles since the last segment.
    pub const GAP: u64 = 0x108;
    /// Cycles since the first segment.
    pub const HOLD: u64 = 0x10c;
    /// Bytes of a merged packet.
    pub const MAX_BYTES: u64 = 0x110;
    /// Closed contexts by cause, four bytes each.
    pub const CLOSED: u64 = 0x140;
    /// Contexts that were opened.
    pub const OPENED: u64 = 0x1b0;
    /// Segments that were appended.
    pub const MERGED: u64 = 0x1b4;
    /// The longest time that GAP and HOLD take.
    pub const LONGEST: u64 = 1 << 23;
}

/// What a test writes into the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Merge by the strict rules.
    pub strict: bool,
    /// Cycles since the last segment.
    pub gap: u64,
    /// Cycles since the first.
    pub hold: u64,
    /// Bytes of a merged packet.
    pub max_bytes: u16,
}

impl Default for Settings {
    /// Nothing ends by time.
    fn default() -> Self {
        Self {
            strict: true,
            gap: reg::LONGEST - 1,
            hold: reg::LONGEST - 1,
            max_bytes: u16::MAX,
        }
    }
}

impl Settings {
    /// Writes them and waits until they are in force.
    pub fn write(&self, raw: &Raw) {
        let values = [
            (reg::GAP, self.gap),
            (reg::HOLD, self.hold),
            (reg::MAX_BYTES, self.max_bytes.into()),
            (reg::PROFILE, self.strict.into()),
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
            by: std::array::from_fn(|i| raw.window(reg::CLOSED + 4 * i as u64)),
            opened: raw.window(reg::OPENED),
            merged: raw.window(reg::MERGED),
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
