//! Following: the card receives the frames of a flow on the pair that last transmitted to it.
//!
//! That is how a card does it while receive-side scaling ([`crate::rss`]) is off. It learns from what
//! is transmitted; a flow of which nothing was is received by a pair that a hash of the flow chooses,
//! and one of which nothing was for long is forgotten.

use std::ops::RangeInclusive;
use std::time::Duration;

use ferronic_spec::window as w;
use thiserror::Error as ThisError;

use crate::device::Device;
use crate::error::Error;
use crate::readback::{Clock, reach, write_back};
use crate::stats::Window;

/// Exponents of periods in cycles.
const EXPONENTS: RangeInclusive<u32> = 10..=40;

/// How the card follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOptions {
    /// Whether it does; else all flows are spread by their hash.
    pub on: bool,
    /// A flow of which nothing is transmitted for two to three of these is forgotten. The card has
    /// powers of two of its clock's cycles, 2^10 to 2^40 (8 us to 2.4 hours at 125 MHz): the next one
    /// up is taken.
    pub period: Duration,
}

impl Default for FollowOptions {
    /// As a card of 125 MHz does it when it is not told otherwise: 2^28 cycles.
    fn default() -> Self {
        Self {
            on: true,
            period: Duration::from_nanos((1 << 28) * 8),
        }
    }
}

/// Why the card does not follow as it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum FollowError {
    /// The card cannot.
    #[error(
        "this card does not follow what is transmitted (FEATURES.steering of its window is 0, or it \
         has no window); it spreads frames over the queue pairs in use by a hash of its own"
    )]
    NotThere,
    /// A period that the card cannot keep.
    #[error("a period of {value:?} is not possible; this card takes more than 0, up to {max:?}")]
    Period {
        /// What was asked for.
        value: Duration,
        /// The longest.
        max: Duration,
    },
}

impl Device {
    /// How the card follows what is transmitted; the period is one that the card has.
    ///
    /// # Errors
    /// [`Error::Follow`] if the card cannot.
    pub fn follow(&self) -> Result<FollowOptions, Error> {
        self.window().ok_or(FollowError::NotThere)?.follow()
    }

    /// Changes how the card follows. What it holds for merging is delivered first.
    ///
    /// # Errors
    /// [`Error::Follow`] for what the card cannot, with nothing changed; [`Error::Readback`].
    pub fn set_follow(&self, options: &FollowOptions) -> Result<(), Error> {
        (self.window().ok_or(FollowError::NotThere)?).set_follow(options)
    }
}

impl Window {
    fn follow_clock(&self) -> Result<Clock, Error> {
        if !self.has_steering() {
            return Err(FollowError::NotThere.into());
        }
        reach(self.registers(), "steering", w::RX_FOLLOW + 4)?;
        Clock::read(self.registers())
    }

    /// How the card follows what is transmitted.
    ///
    /// # Errors
    /// As [`Device::follow`].
    pub fn follow(&self) -> Result<FollowOptions, Error> {
        let clock = self.follow_clock()?;
        let value = self.registers().read32(w::RX_FOLLOW)?;
        let exponent = w::RX_FOLLOW_PERIOD.get(value);
        Ok(FollowOptions {
            on: w::RX_FOLLOW_ENABLE.get(value) == 1,
            period: clock.time(1 << exponent),
        })
    }

    fn set_follow(&self, options: &FollowOptions) -> Result<(), Error> {
        let clock = self.follow_clock()?;
        let cycles = clock.cycles(options.period);
        let limit = 1u64 << EXPONENTS.end();
        if cycles == 0 || cycles > limit.into() {
            let (value, max) = (options.period, clock.time(limit));
            return Err(FollowError::Period { value, max }.into());
        }
        let exponent = cycles.next_power_of_two().ilog2().max(*EXPONENTS.start());
        let on = w::RX_FOLLOW_ENABLE.set(0, options.on.into());
        let value = w::RX_FOLLOW_PERIOD.set(on, exponent);
        write_back(self.registers(), "RX_FOLLOW", w::RX_FOLLOW, value)
    }
}
