//! Waiting for interrupts: of a card, or of one of its queue pairs.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::error::Error;
use crate::pci::{Interrupts, Woken};

/// What an interrupt was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The device configuration changed: the link, for example.
    Config,
    /// The receive queue of this pair.
    Receive(u16),
    /// The transmit queue of this pair.
    Transmit(u16),
}

/// What ended a wait for an interrupt or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// An interrupt.
    Event(Event),
    /// The other descriptor can be read.
    Readable,
    /// Nothing in time.
    TimedOut,
}

/// What a vector is about.
pub(crate) fn event(vector: u16) -> Event {
    match vector.checked_sub(1) {
        None => Event::Config,
        Some(queue) if queue % 2 == 0 => Event::Receive(queue / 2),
        Some(queue) => Event::Transmit(queue / 2),
    }
}

/// Something that can be waited for: a card, or the interrupts of a pair.
pub trait Wait {
    /// Waits for an interrupt; `None` if none came in time.
    ///
    /// # Errors
    /// When the card cannot be reached, or met an error.
    fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error>;

    /// Waits for an interrupt, or until `other` can be read.
    ///
    /// # Errors
    /// As [`Wait::wait`].
    fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Wake, Error>;
}

/// The interrupts of one queue pair, with the thread that has it
/// ([`Device::take_waiter`](crate::Device::take_waiter)).
pub struct Waiter {
    pub(crate) interrupts: Box<dyn Interrupts>,
}

impl Wait for Waiter {
    fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error> {
        Ok(self.interrupts.wait(timeout)?.map(event))
    }

    fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Wake, Error> {
        Ok(match self.interrupts.wait_or(other, timeout)? {
            Woken::Vector(vector) => Wake::Event(event(vector)),
            Woken::Readable => Wake::Readable,
            Woken::TimedOut => Wake::TimedOut,
        })
    }
}
