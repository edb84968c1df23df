//! Coalescing: the card interrupts after so many packets, or so long after the first.
//!
//! As virtio's notification coalescing has it: a notification is due when a queue has used so many
//! packets since the last one, or when the first of them is so old, whichever comes first; if either
//! is 0, after every packet. A change is looked at at once. It is for queues that are notified by
//! virtio's own means; the interrupts of [`crate::completion`] through the card's window are beside it.

use std::time::Duration;

use ferronic_spec::window as w;
use thiserror::Error as ThisError;

use crate::device::Device;
use crate::error::Error;
use crate::readback::{Clock, reach, write_back};
use crate::stats::Window;

/// Longest time, in cycles.
const MAX_CYCLES: u64 = 8_388_607;
/// Most packets.
const MAX_PACKETS: u32 = 65_535;

/// One half of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The receive queue.
    Receive,
    /// The transmit queue.
    Transmit,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Receive, Self::Transmit];

    /// Its name in commands and figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "rx",
            Self::Transmit => "tx",
        }
    }

    /// The virtqueue of a pair.
    const fn queue(self, pair: u16) -> u64 {
        2 * pair as u64 + matches!(self, Self::Transmit) as u64
    }
}

/// When a queue is notified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// After so many packets, up to 65,535; 0: after every packet.
    pub packets: u32,
    /// So long after the first packet, up to 67 ms at 125 MHz, rounded up to a cycle of the card; 0:
    /// after every packet.
    pub time: Duration,
}

/// Why the card does not coalesce as it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum CoalesceError {
    /// The card cannot.
    #[error(
        "this card does not coalesce notifications (FEATURES.coalescing of its window is 0, or it \
         has no window); a completion policy that waits (`ferronic send --completion coalesced`) \
         needs nothing of the card"
    )]
    NotThere,
    /// More packets than the card counts.
    #[error("{0} packets are not possible; give at most {MAX_PACKETS}")]
    Packets(u32),
    /// A time that the card cannot keep.
    #[error("a time of {value:?} is not possible; this card takes up to {max:?}")]
    Time {
        /// What was asked for.
        value: Duration,
        /// The longest.
        max: Duration,
    },
    /// A pair that is not there, or not opened.
    #[error(
        "queue pair {pair} is not there: there are {pairs}, 0 to {}; name one of them",
        .pairs.saturating_sub(1)
    )]
    NoPair {
        /// The pair.
        pair: u16,
        /// Pairs that were opened.
        pairs: u16,
    },
}

impl Device {
    /// When a queue of a pair is notified.
    ///
    /// # Errors
    /// [`Error::Coalesce`] if the card cannot, or the pair is not there.
    pub fn coalescing(&self, pair: u16, direction: Direction) -> Result<Coalescing, Error> {
        self.coalescing_window(pair)?.coalescing(pair, direction)
    }

    /// Changes when a queue of a pair is notified, until it is reset.
    ///
    /// # Errors
    /// [`Error::Coalesce`] for what the card cannot, with nothing changed; [`Error::Readback`].
    pub fn set_coalescing(
        &self,
        pair: u16,
        direction: Direction,
        coalescing: &Coalescing,
    ) -> Result<(), Error> {
        let window = self.coalescing_window(pair)?;
        let offset = COAL.at(direction.queue(pair));
        window.set_coalescing_at(&offset, coalescing)
    }

    /// Changes when all receive queues are notified, or all transmit queues, those too that are
    /// enabled later.
    ///
    /// # Errors
    /// As [`Device::set_coalescing`].
    pub fn set_all_coalescing(
        &self,
        direction: Direction,
        coalescing: &Coalescing,
    ) -> Result<(), Error> {
        let window = self.coalescing_window(0)?;
        window.set_coalescing_at(&ALL[direction as usize], coalescing)
    }

    fn coalescing_window(&self, pair: u16) -> Result<&Window, Error> {
        let window = self.window().ok_or(CoalesceError::NotThere)?;
        let pairs = self.queue_pairs();
        if pair >= pairs {
            return Err(CoalesceError::NoPair { pair, pairs }.into());
        }
        Ok(window)
    }
}

/// The two registers of a queue, or of all of a kind.
struct Place {
    packets: (&'static str, u64),
    time: (&'static str, u64),
}

impl Place {
    /// The registers of a row.
    const fn at(&self, row: u64) -> Self {
        Self {
            packets: (
                self.packets.0,
                self.packets.1 + w::COAL_PACKETS_STRIDE * row,
            ),
            time: (self.time.0, self.time.1 + w::COAL_TIME_STRIDE * row),
        }
    }
}

const COAL: Place = Place {
    packets: ("COAL_PACKETS", w::COAL_PACKETS),
    time: ("COAL_TIME", w::COAL_TIME),
};

/// By [`Direction`].
const ALL: [Place; 2] = [
    Place {
        packets: ("COAL_RX_PACKETS", w::COAL_RX_PACKETS),
        time: ("COAL_RX_TIME", w::COAL_RX_TIME),
    },
    Place {
        packets: ("COAL_TX_PACKETS", w::COAL_TX_PACKETS),
        time: ("COAL_TX_TIME", w::COAL_TX_TIME),
    },
];

impl Window {
    fn coalescing_clock(&self) -> Result<Clock, Error> {
        if !self.has_coalescing() {
            return Err(CoalesceError::NotThere.into());
        }
        reach(self.registers(), "coalescing", w::COAL_TX_TIME + 4)?;
        Clock::read(self.registers())
    }

    /// When a queue of a pair is notified.
    ///
    /// # Errors
    /// As [`Device::coalescing`].
    pub fn coalescing(&self, pair: u16, direction: Direction) -> Result<Coalescing, Error> {
        let clock = self.coalescing_clock()?;
        let place = COAL.at(direction.queue(pair));
        let packets = self.registers().read32(place.packets.1)?;
        let cycles = self.registers().read32(place.time.1)?;
        Ok(Coalescing {
            packets: w::COAL_PACKETS_PACKETS.get(packets),
            time: clock.time(w::COAL_TIME_CYCLES.get(cycles).into()),
        })
    }

    fn set_coalescing_at(&self, place: &Place, coalescing: &Coalescing) -> Result<(), Error> {
        let clock = self.coalescing_clock()?;
        let Coalescing { packets, time } = *coalescing;
        if packets > MAX_PACKETS {
            return Err(CoalesceError::Packets(packets).into());
        }
        let cycles = clock.cycles(time);
        if cycles > MAX_CYCLES.into() {
            let (value, max) = (time, clock.time(MAX_CYCLES));
            return Err(CoalesceError::Time { value, max }.into());
        }
        // At most MAX_CYCLES.
        let cycles = cycles as u32;
        write_back(self.registers(), place.packets.0, place.packets.1, packets)?;
        write_back(self.registers(), place.time.0, place.time.1, cycles)
    }
}
