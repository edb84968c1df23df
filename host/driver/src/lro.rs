//! Large receive offload (LRO): the card merges TCP segments of a flow into units.
//!
//! [`DeviceConfig::lro`](crate::DeviceConfig::lro) asks for it when a card is opened; what a queue
//! then receives may be a unit ([`RxFrame::is_unit`](crate::RxFrame::is_unit)). Its settings are
//! registers of the card's own window, [`Window::lro`]: a change is complete when the card has
//! delivered what it held. [`crate::gro`] is the same in software.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ferronic_spec::Features;
use ferronic_spec::window as w;
use thiserror::Error;

use crate::error::Error;
use crate::gro::GroOptions;
use crate::readback::{Clock, reach, write_back};
use crate::stats::Window;
use crate::virtio::transport::Registers;

/// Longest time, in cycles, and shortest and longest packet that the card takes.
const MAX_CYCLES: u64 = 8_388_607;
const MIN_BYTES: u32 = 576;
const MAX_BYTES: u32 = 65_535;
/// Most buffers that the card takes as few.
const MAX_LOW_WATER: u32 = 64;

/// Rules by which segments are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// None are.
    Off,
    /// What is merged can be cut back into exactly what was on the wire.
    Strict,
    /// More is merged, and cannot be cut back: segments of any size, advancing acknowledgements and
    /// time stamps, other windows and times to live. Not every card is built with it.
    Relaxed,
}

impl Profile {
    /// Its name in commands and figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Strict => "strict",
            Self::Relaxed => "relaxed",
        }
    }

    const fn number(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Strict => 1,
            Self::Relaxed => 2,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the card merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LroOptions {
    /// By which rules.
    pub profile: Profile,
    /// Longest that a unit waits for its next segment, up to 67 ms.
    pub gap: Duration,
    /// Longest that its first segment waits, up to 67 ms.
    pub hold: Duration,
    /// Longest IP packet of a unit, 576 to 65,535 bytes.
    pub max_bytes: u32,
    /// With fewer buffers than this posted to its queue, a frame first delivers the oldest unit that
    /// is held for this queue; up to 64, 0 for never.
    pub low_water: u32,
}

impl Default for LroOptions {
    /// As the card does when it is not told otherwise.
    fn default() -> Self {
        Self {
            profile: Profile::Strict,
            gap: Duration::from_micros(100),
            hold: Duration::from_micros(400),
            max_bytes: MAX_BYTES,
            low_water: 0,
        }
    }
}

/// Whether the card is to merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LroRequest {
    /// It is not: frames arrive as they were on the wire.
    #[default]
    Off,
    /// If it can; else the driver does without and says so in its log.
    IfThere(LroOptions),
    /// It is an error if it cannot.
    Needed(LroOptions),
}

impl LroRequest {
    /// What is asked for, if anything.
    pub fn options(&self) -> Option<&LroOptions> {
        match self {
            Self::Off => None,
            Self::IfThere(options) | Self::Needed(options) => {
                (options.profile != Profile::Off).then_some(options)
            }
        }
    }
}

/// Why the card does not merge as it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LroError {
    /// The card cannot.
    #[error(
        "this card has no large receive offload (FEATURES.lro of its window is 0, or it has no \
         window); do without, merging in the driver (GRO) needs nothing of the card"
    )]
    NotThere,
    /// The card can, but does not offer it, or it was switched off.
    #[error(
        "large receive offload needs GUEST_TSO4 or GUEST_TSO6, which the card does not offer or \
         which were switched off; see `ferronic-sim serve --features` or DeviceConfig::features"
    )]
    NotOffered,
    /// Something else is missing.
    #[error(
        "large receive offload needs {0:?}, which the card does not offer or which was switched \
         off; see DeviceConfig::features"
    )]
    Needs(Features),
    /// It was not asked for when the card was opened.
    #[error(
        "large receive offload was not negotiated when the card was opened; ask for it in \
         DeviceConfig::lro"
    )]
    NotNegotiated,
    /// A time that the card cannot keep.
    #[error("the {what} of {value:?} is not possible; this card takes 1 cycle to {max:?}")]
    Time {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: Duration,
        /// The longest.
        max: Duration,
    },
    /// A length that the card cannot keep.
    #[error("a longest packet of {0} bytes is not possible; give {MIN_BYTES} to {MAX_BYTES}")]
    Length(u32),
    /// More buffers than the card can call few.
    #[error("a low-water mark of {0} buffers is not possible; give at most {MAX_LOW_WATER}")]
    LowWater(u32),
    /// The card has no such profile.
    #[error("this card does not have the profile `{0}`; it has `off` and `strict`")]
    Profile(Profile),
}

/// Names of the causes for which units are closed, by number.
const CAUSES: [&str; 26] = [
    "untrusted",
    "ip_options",
    "fragment",
    "extension",
    "malformed",
    "trailer",
    "sum",
    "canonical",
    "control",
    "empty",
    "first_buffer",
    "moved",
    "header",
    "sequence",
    "id",
    "larger",
    "length",
    "buffers",
    "push",
    "smaller",
    "evicted",
    "gap",
    "hold",
    "low_water",
    "no_buffer",
    "stopped",
];

const _: () =
    assert!(w::LRO_CLOSED_STOPPED == w::LRO_CLOSED_UNTRUSTED + 4 * (CAUSES.len() as u64 - 1));

/// Counters of the card's merging; they wrap and are never cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LroCounters {
    /// Segments that began a unit.
    pub opened: u32,
    /// Segments that were appended to one.
    pub merged: u32,
    /// Units closed, by cause.
    pub closed: Vec<(&'static str, u32)>,
}

/// Merging registers of a card's window.
pub struct Lro<'a> {
    registers: &'a Registers,
    clock: Clock,
}

impl<'a> Lro<'a> {
    pub(crate) fn new(registers: &'a Registers) -> Result<Self, Error> {
        reach(registers, "LRO", w::LRO_MERGED + 4)?;
        Ok(Self {
            registers,
            clock: Clock::read(registers)?,
        })
    }

    /// Flows that the card holds at once, and buffers of a unit at most.
    pub fn capacity(&self) -> Result<(u32, u32), Error> {
        let caps = self.registers.read32(w::LRO_CAPS)?;
        Ok((
            w::LRO_CAPS_CONTEXTS.get(caps),
            w::LRO_CAPS_MAX_BUFFERS.get(caps),
        ))
    }

    fn cycles(&self, what: &'static str, value: Duration) -> Result<u32, LroError> {
        match u32::try_from(self.clock.cycles(value)) {
            Ok(cycles) if (1..=MAX_CYCLES).contains(&cycles.into()) => Ok(cycles),
            _ => Err(LroError::Time {
                what,
                value,
                max: self.clock.time(MAX_CYCLES),
            }),
        }
    }

    /// The settings that are in force.
    pub fn options(&self) -> Result<LroOptions, Error> {
        let read = |offset| self.registers.read32(offset);
        let profile = match read(w::LRO_PROFILE)? {
            0 => Profile::Off,
            1 => Profile::Strict,
            2 => Profile::Relaxed,
            other => {
                return Err(Error::Window(format!(
                    "LRO_PROFILE is {other}, which this driver does not know; use a driver of the \
                     card's release"
                )));
            }
        };
        Ok(LroOptions {
            profile,
            gap: self
                .clock
                .time(w::LRO_GAP_CYCLES.get(read(w::LRO_GAP)?).into()),
            hold: self
                .clock
                .time(w::LRO_HOLD_CYCLES.get(read(w::LRO_HOLD)?).into()),
            max_bytes: w::LRO_MAX_BYTES_BYTES.get(read(w::LRO_MAX_BYTES)?),
            low_water: w::LRO_LOW_WATER_BUFFERS.get(read(w::LRO_LOW_WATER)?),
        })
    }

    /// Changes the settings. Whatever the card holds is delivered first.
    ///
    /// # Errors
    /// [`Error::Lro`] for what the card cannot; nothing is written then, but for a profile that it
    /// does not have, which it ignores. [`Error::Readback`] if the card does not keep a setting.
    pub fn set(&self, options: &LroOptions) -> Result<(), Error> {
        let gap = self.cycles("gap", options.gap)?;
        let hold = self.cycles("hold time", options.hold)?;
        if !(MIN_BYTES..=MAX_BYTES).contains(&options.max_bytes) {
            return Err(LroError::Length(options.max_bytes).into());
        }
        if options.low_water > MAX_LOW_WATER {
            return Err(LroError::LowWater(options.low_water).into());
        }
        let number = options.profile.number();
        self.registers.write32(w::LRO_PROFILE, number)?;
        if self.registers.read32(w::LRO_PROFILE)? != number {
            return Err(LroError::Profile(options.profile).into());
        }
        for (register, offset, written) in [
            ("LRO_GAP", w::LRO_GAP, gap),
            ("LRO_HOLD", w::LRO_HOLD, hold),
            ("LRO_MAX_BYTES", w::LRO_MAX_BYTES, options.max_bytes),
            ("LRO_LOW_WATER", w::LRO_LOW_WATER, options.low_water),
        ] {
            write_back(self.registers, register, offset, written)?;
        }
        Ok(())
    }

    /// Reads the counters.
    pub fn counters(&self) -> Result<LroCounters, Error> {
        let closed = CAUSES
            .into_iter()
            .zip((w::LRO_CLOSED_UNTRUSTED..).step_by(4))
            .map(|(cause, offset)| Ok((cause, self.registers.read32(offset)?)))
            .collect::<Result<_, Error>>()?;
        Ok(LroCounters {
            opened: self.registers.read32(w::LRO_OPENED)?,
            merged: self.registers.read32(w::LRO_MERGED)?,
            closed,
        })
    }
}

/// The features to ask for beside those of `wanted` that have nothing to do with it; `offered` is
/// what the card offers.
pub(crate) fn features(
    request: &LroRequest,
    window: Option<&Window>,
    wanted: Features,
    offered: Features,
) -> Result<Features, Error> {
    if request.options().is_none() {
        return Ok(Features::empty());
    }
    let there = wanted & offered;
    let cause = if !window.is_some_and(Window::has_lro) {
        LroError::NotThere
    } else if !there.intersects(Features::LRO) {
        LroError::NotOffered
    } else if !there.contains(Features::GUEST_CSUM) {
        LroError::Needs(Features::GUEST_CSUM)
    } else if !there.contains(Features::MRG_RXBUF) {
        // Units would have to fit into one buffer each.
        LroError::Needs(Features::MRG_RXBUF)
    } else {
        return Ok(there & Features::LRO);
    };
    match request {
        LroRequest::Needed(_) => Err(cause.into()),
        _ => {
            log::info!("the card does not merge: {cause}");
            Ok(Features::empty())
        }
    }
}

/// Who merges received segments: the ways that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Nobody.
    None,
    /// The driver ([`crate::gro`]).
    Gro,
    /// The card.
    Lro,
    /// The card, and the driver what the card left.
    LroGro,
}

impl Merging {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Gro, Self::Lro, Self::LroGro];

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::LroGro => "lro+gro",
        }
    }

    /// For [`DeviceConfig::lro`](crate::DeviceConfig::lro), with these settings.
    pub const fn lro(self, options: LroOptions) -> LroRequest {
        match self {
            Self::None | Self::Gro => LroRequest::Off,
            Self::Lro | Self::LroGro => LroRequest::Needed(options),
        }
    }

    /// For [`RxQueue::set_gro`](crate::RxQueue::set_gro), with these settings.
    pub const fn gro(self, options: GroOptions) -> Option<GroOptions> {
        match self {
            Self::None | Self::Lro => None,
            Self::Gro | Self::LroGro => Some(options),
        }
    }
}

impl fmt::Display for Merging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Merging {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.name() == text);
        known.ok_or_else(|| format!("{text} is none of none, gro, lro, lro+gro"))
    }
}
