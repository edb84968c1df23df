//! A transmit queue that knows which flows its frames are of.

use super::flow::InFlight;
use crate::error::Error;
use crate::offload::TxOffload;
use crate::queue::{PushResult, TxPart, TxQueue};

/// A transmit queue with frames of [`Flow`](super::Flow)s, owned by one thread.
///
/// A frame is in flight until the card has completed it, whatever the queue's completion policy does
/// with the sender's bytes. Somebody always waits for that: `orphan-half` asks for interrupts as if a
/// sender did.
pub struct Lane {
    tx: TxQueue,
    /// By the name of a frame, which is one more than the index.
    flights: Vec<Option<InFlight>>,
    free_names: Vec<u32>,
}

/// What came of a frame.
#[derive(Debug)]
#[must_use = "a frame that found no room was not sent"]
pub enum Sent {
    /// It is in the ring; [`Lane::flush`] shows it to the card.
    Queued,
    /// The ring is full: try again with what is given back, on this queue, for the flow counts the
    /// frame as in flight. To drop the frame, drop it.
    Full(InFlight),
}

impl Lane {
    /// A lane on this queue. Frames that are outstanding are of no flow.
    pub fn new(tx: TxQueue) -> Self {
        Self {
            tx,
            flights: Vec::new(),
            free_names: Vec::new(),
        }
    }

    /// The queue.
    pub fn queue(&self) -> &TxQueue {
        &self.tx
    }

    /// The queue, for example to reset it: frames that are gone by that are not in flight once the
    /// lane is next told to do something.
    pub fn queue_mut(&mut self) -> &mut TxQueue {
        &mut self.tx
    }

    /// Queues a frame: [`TxQueue::push_parts`].
    ///
    /// # Errors
    /// As there; the frame is not in flight then.
    pub fn send(
        &mut self,
        flight: InFlight,
        parts: &[TxPart<'_>],
        offload: TxOffload,
    ) -> Result<Sent, Error> {
        self.send_by(flight, |tx| tx.push_parts(parts, offload))
    }

    /// Queues a frame, each piece with a descriptor of its own: [`TxQueue::push_pieces`].
    ///
    /// # Errors
    /// As there; the frame is not in flight then.
    pub fn send_pieces(&mut self, flight: InFlight, pieces: &[&[u8]]) -> Result<Sent, Error> {
        self.send_by(flight, |tx| tx.push_pieces(pieces))
    }

    fn send_by(
        &mut self,
        flight: InFlight,
        push: impl Fn(&mut TxQueue) -> Result<PushResult, Error>,
    ) -> Result<Sent, Error> {
        let mut pushed = self.push(&push)?;
        if pushed.is_none() && self.service()? > 0 {
            pushed = self.push(&push)?;
        }
        match pushed {
            Some(name) => {
                self.flights[name as usize - 1] = Some(flight);
                Ok(Sent::Queued)
            }
            None => Ok(Sent::Full(flight)),
        }
    }

    /// The name of the frame if there was room.
    fn push(
        &mut self,
        push: impl Fn(&mut TxQueue) -> Result<PushResult, Error>,
    ) -> Result<Option<u32>, Error> {
        let name = self.free_names.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() as u32
        });
        self.tx.set_name(name);
        let pushed = push(&mut self.tx);
        self.tx.set_name(0);
        self.settle();
        if matches!(pushed, Ok(PushResult::Queued)) {
            return Ok(Some(name));
        }
        self.free_names.push(name);
        pushed.map(|_| None)
    }

    /// Shows what was queued to the card: [`TxQueue::flush`].
    ///
    /// # Errors
    /// As there.
    pub fn flush(&mut self) -> Result<bool, Error> {
        let rung = self.tx.flush();
        self.settle();
        rung
    }

    /// Takes completed frames back: [`TxQueue::service`]. Returns how many there were.
    ///
    /// # Errors
    /// As there.
    pub fn service(&mut self) -> Result<usize, Error> {
        let count = self.tx.service();
        self.settle();
        count
    }

    /// Frames that are in flight, as far as was looked.
    pub fn in_flight(&self) -> usize {
        self.flights.len() - self.free_names.len()
    }

    fn settle(&mut self) {
        while let Some(name) = self.tx.take_completed() {
            if let Some(flight) = self.flights.get_mut(name as usize - 1) {
                drop(flight.take());
                self.free_names.push(name);
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.settle();
        // The card may still send these: their flows stay where they are.
        self.flights.drain(..).for_each(std::mem::forget);
    }
}
