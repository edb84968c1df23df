//! Transmit queues of different speeds on one wire, and whether flows keep their order behind them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Queues that each send one frame after the other, each in a time of its own.
#[derive(Debug)]
pub struct Queues<T> {
    now: u64,
    /// Time that a frame takes, by queue.
    periods: Vec<u64>,
    waiting: Vec<VecDeque<T>>,
    /// When the first frame of a queue will have left.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<T> Queues<T> {
    /// Queues whose frames take these times, each at least 1.
    pub fn new(periods: impl IntoIterator<Item = u64>) -> Self {
        let periods: Vec<u64> = periods.into_iter().map(|p| p.max(1)).collect();
        Self {
            now: 0,
            waiting: periods.iter().map(|_| VecDeque::new()).collect(),
            periods,
            next: BinaryHeap::new(),
        }
    }

    /// The time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Frames in a queue.
    pub fn len(&self, queue: usize) -> usize {
        self.waiting[queue].len()
    }

    /// No frame is in any queue.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Puts a frame into a queue.
    pub fn send(&mut self, queue: usize, frame: T) {
        self.waiting[queue].push_back(frame);
        if self.waiting[queue].len() == 1 {
            self.next
                .push(Reverse((self.now + self.periods[queue], queue)));
        }
    }

    /// The next frame that leaves before or at this time, and its queue.
    pub fn leave(&mut self, until: u64) -> Option<(usize, T)> {
        let Some(&Reverse((at, queue))) = self.next.peek() else {
            self.now = self.now.max(until);
            return None;
        };
        if at > until {
            self.now = self.now.max(until);
            return None;
        }
        self.next.pop();
        self.now = at;
        let frame = self.waiting[queue].pop_front()?;
        if !self.waiting[queue].is_empty() {
            self.next.push(Reverse((at + self.periods[queue], queue)));
        }
        Some((queue, frame))
    }

    /// Throws away what is in a queue.
    pub fn flush(&mut self, queue: usize) -> impl Iterator<Item = T> + '_ {
        self.next.retain(|Reverse((_, q))| *q != queue);
        self.waiting[queue].drain(..)
    }
}

/// What arrived of each flow.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The largest number that arrived, by flow.
    last: Vec<Option<u64>>,
    reordered: u64,
}

impl Order {
    /// A frame of a flow arrives; frames of a flow are numbered in the order of their sending.
    pub fn arrive(&mut self, flow: usize, number: u64) {
        if self.last.len() <= flow {
            self.last.resize(flow + 1, None);
        }
        let last = &mut self.last[flow];
        if *last >= Some(number) {
            self.reordered += 1;
        } else {
            *last = Some(number);
        }
    }

    /// Frames that came behind one that was sent after them.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }
}
