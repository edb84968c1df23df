//! Settings in registers of the card's own window: written, and read back.

use std::time::Duration;

use ferronic_spec::window as w;
use thiserror::Error;

use crate::error::Error;
use crate::virtio::transport::Registers;

/// The card did not keep what was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{register} is {found:#x} after writing {written:#x}; reset the card and try again")]
pub struct ReadbackError {
    /// Which register, with its row if it has rows.
    pub register: String,
    /// What it reads.
    pub found: u32,
    /// What was written.
    pub written: u32,
}

/// Writes a register that keeps what is written to it, or says that it did not.
pub(crate) fn write_back(
    registers: &Registers,
    register: impl Into<String>,
    offset: u64,
    written: u32,
) -> Result<(), Error> {
    registers.write32(offset, written)?;
    let found = registers.read32(offset)?;
    if found == written {
        return Ok(());
    }
    Err(ReadbackError {
        register: register.into(),
        found,
        written,
    }
    .into())
}

/// An error unless the window has all of the registers that a bit of FEATURES promises, `end` being
/// where they end.
pub(crate) fn reach(registers: &Registers, what: &str, end: u64) -> Result<(), Error> {
    if registers.len() < end {
        return Err(Error::Window(format!(
            "it has {} bytes, too few for the registers of {what} that FEATURES promises",
            registers.len()
        )));
    }
    Ok(())
}

/// The clock in whose cycles the card's registers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    hz: u64,
}

impl Clock {
    pub fn read(registers: &Registers) -> Result<Self, Error> {
        match registers.read32(w::CLOCK_HZ)? {
            0 => Err(Error::Window(
                "CLOCK_HZ is 0, so times mean nothing; reset the card".into(),
            )),
            hz => Ok(Self { hz: hz.into() }),
        }
    }

    /// So many cycles as time, to the nanosecond below.
    pub fn time(self, cycles: u64) -> Duration {
        let nanos = u128::from(cycles) * 1_000_000_000 / u128::from(self.hz);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// A time in cycles, rounded up.
    pub fn cycles(self, time: Duration) -> u128 {
        (time.as_nanos() * u128::from(self.hz)).div_ceil(1_000_000_000)
    }
}
