//! A wire whose other end is code in the same process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Pace, RxFrame, Wire};

/// A frame that the card sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// Cycle in which its last beat was taken.
    pub time: u64,
    /// The bytes.
    pub data: Vec<u8>,
    /// It ended with an error.
    pub aborted: bool,
}

#[derive(Debug, Default)]
struct Shared {
    to_card: VecDeque<(u64, RxFrame)>,
    from_card: VecDeque<SentFrame>,
    pace: Pace,
    echo: bool,
}

/// The end of a [`QueueWire`] that a test holds.
#[derive(Clone, Debug, Default)]
pub struct WireQueue(Arc<Mutex<Shared>>);

/// The end that the simulator holds.
#[derive(Debug)]
pub struct QueueWire(WireQueue);

impl WireQueue {
    /// A queue and the wire that serves it.
    pub fn new() -> (Self, Box<QueueWire>) {
        let queue = Self::default();
        (queue.clone(), Box::new(QueueWire(queue)))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the pace of both directions (default: [`Pace::Line`]).
    pub fn set_pace(&self, pace: Pace) {
        self.lock().pace = pace;
    }

    /// Frames that the card sends come back to it too (they are recorded all the same).
    pub fn set_echo(&self, echo: bool) {
        self.lock().echo = echo;
    }

    /// Sends a frame to the card as soon as the wire is free.
    pub fn push(&self, frame: impl Into<Vec<u8>>) {
        self.push_at(0, frame);
    }

    /// Sends a frame to the card, not before `time`; frames keep their order.
    pub fn push_at(&self, time: u64, frame: impl Into<Vec<u8>>) {
        let frame = RxFrame {
            data: frame.into(),
            abort: false,
        };
        self.lock().to_card.push_back((time, frame));
    }

    /// Sends a frame that ends with an error.
    pub fn push_aborted(&self, frame: impl Into<Vec<u8>>) {
        let frame = RxFrame {
            data: frame.into(),
            abort: true,
        };
        self.lock().to_card.push_back((0, frame));
    }

    /// Frames that the card has not begun to take.
    pub fn waiting(&self) -> usize {
        self.lock().to_card.len()
    }

    /// Frames that the card sent and nobody took yet.
    pub fn sent(&self) -> usize {
        self.lock().from_card.len()
    }

    /// The oldest frame that the card sent.
    pub fn take(&self) -> Option<SentFrame> {
        self.lock().from_card.pop_front()
    }

    /// All frames that the card sent.
    pub fn take_all(&self) -> Vec<SentFrame> {
        self.lock().from_card.drain(..).collect()
    }

    /// Forgets frames that wait for the card.
    pub fn clear(&self) {
        self.lock().to_card.clear();
    }
}

impl Wire for QueueWire {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        let mut shared = self.0.lock();
        if shared.to_card.front()?.0 > now {
            return None;
        }
        shared.to_card.pop_front().map(|(_, frame)| frame)
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.0
            .lock()
            .to_card
            .front()
            .map(|(time, _)| *time.max(&now))
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        let mut shared = self.0.lock();
        if shared.echo && !aborted {
            let frame = RxFrame {
                data: frame.to_vec(),
                abort: false,
            };
            shared.to_card.push_back((now, frame));
        }
        shared.from_card.push_back(SentFrame {
            time: now,
            data: frame.to_vec(),
            aborted,
        });
    }

    fn pace(&self) -> Pace {
        self.0.lock().pace
    }
}
