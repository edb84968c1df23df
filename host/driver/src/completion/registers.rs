//! The registers of the ring-empty interrupt of one transmit queue, in the card's own window.

use std::time::Duration;

use ferronic_spec::ring::DescFlags;
use ferronic_spec::window as w;

use super::CompletionError;
use super::policy::Rules;
use crate::error::Error;
use crate::readback::{Clock, reach, write_back};
use crate::virtio::transport::Registers;

/// Longest time, in cycles, that the card takes.
const MAX_CYCLES: u32 = 8_388_607;

/// Why the card interrupted for a transmit queue, other than by virtio's own means. Counters wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxInterrupts {
    /// It ran empty.
    pub empty: u32,
    /// A completion was too old.
    pub max_age: u32,
    /// A marked frame was completed.
    pub marker: u32,
    /// How often something was posted just before an interrupt for running empty.
    pub overtaken: u32,
}

impl TxInterrupts {
    /// All of them by name, as figures have it.
    pub fn by_cause(&self) -> [(&'static str, u32); 4] {
        [
            ("empty", self.empty),
            ("max_age", self.max_age),
            ("marker", self.marker),
            ("overtaken", self.overtaken),
        ]
    }
}

/// The row of one queue pair.
#[derive(Clone)]
pub(crate) struct TxEmpty {
    registers: Registers,
    pair: u16,
    clock: Clock,
}

impl TxEmpty {
    /// `registers` are those of a window whose FEATURES promises them.
    pub fn new(registers: &Registers, pair: u16) -> Result<Self, Error> {
        reach(registers, "ring-empty", w::TX_EMPTY_CAPS + 4)?;
        Ok(Self {
            registers: registers.clone(),
            pair,
            clock: Clock::read(registers)?,
        })
    }

    fn at(&self, register: u64) -> u64 {
        register + w::TX_EMPTY_STRIDE * u64::from(self.pair)
    }

    fn cycles(&self, what: &'static str, value: Duration, min: u32) -> Result<u32, Error> {
        match u32::try_from(self.clock.cycles(value)) {
            Ok(cycles) if (min..=MAX_CYCLES).contains(&cycles) => Ok(cycles),
            _ => {
                let longest = self.clock.time(MAX_CYCLES.into());
                let must = format!("this card takes {min} cycles to {longest:?}");
                Err(CompletionError::Time { what, value, must }.into())
            }
        }
    }

    /// Asks for what the rules want and switches the rest off. Nothing is written if the card cannot.
    pub fn set(&self, rules: &Rules) -> Result<(), Error> {
        let empty = match rules.holdoff {
            Some(holdoff) => {
                let cycles = self.cycles("hold-off", holdoff, 0)?;
                w::TX_EMPTY_ENABLE.set(w::TX_EMPTY_HOLDOFF.set(0, cycles), 1)
            }
            None => 0,
        };
        let age = match rules.max_age {
            Some(age) => w::TX_MAX_AGE_CYCLES.set(0, self.cycles("max-age", age, 1)?),
            None => 0,
        };
        let marker = w::TX_MARKER_ENABLE.set(0, rules.mark.is_some().into());
        for (register, offset, written) in [
            ("TX_EMPTY", w::TX_EMPTY, empty),
            ("TX_MAX_AGE", w::TX_MAX_AGE, age),
            ("TX_MARKER", w::TX_MARKER, marker),
        ] {
            let register = format!("{register} of pair {}", self.pair);
            write_back(&self.registers, register, self.at(offset), written)?;
        }
        Ok(())
    }

    /// The flag of a marked frame's first descriptor.
    pub fn marker(&self) -> Result<DescFlags, Error> {
        let caps = self.registers.read32(w::TX_EMPTY_CAPS)?;
        let bit = w::TX_EMPTY_CAPS_MARKER_FLAG.get(caps);
        let flag = DescFlags::from_bits_retain(1 << bit);
        if flag.intersects(DescFlags::NEXT | DescFlags::WRITE | DescFlags::INDIRECT) {
            return Err(Error::Window(format!(
                "TX_EMPTY_CAPS names bit {bit} of a descriptor as marker, which means something else"
            )));
        }
        Ok(flag)
    }

    pub fn counters(&self) -> Result<TxInterrupts, Error> {
        let read = |offset| self.registers.read32(self.at(offset));
        Ok(TxInterrupts {
            empty: read(w::TX_IRQ_EMPTY)?,
            max_age: read(w::TX_IRQ_MAX_AGE)?,
            marker: read(w::TX_IRQ_MARKER)?,
            overtaken: read(w::TX_OVERTAKEN)?,
        })
    }
}
