//! Traffic classes: ranges of transmit queues, chosen by a packet's priority.

use std::ops::Range;

/// Most classes, and one more than the highest priority.
pub(super) const MOST: usize = 16;

/// Which class a priority has, and which queues a class has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Classes {
    /// 0: the queues are not divided.
    count: u8,
    of_priority: [u8; MOST],
    /// First queue and number of queues.
    queues: [(u16, u16); MOST],
}

impl Classes {
    /// Classes without queues, all priorities in class 0.
    pub(super) fn new(count: u8) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }

    pub(super) fn count(&self) -> u8 {
        self.count
    }

    /// The class of a packet of this priority, of which the lowest 4 bits count.
    pub(super) fn of(&self, priority: u32) -> u8 {
        self.of_priority[priority as usize % MOST]
    }

    pub(super) fn set_priority(&mut self, priority: u8, class: u8) {
        self.of_priority[usize::from(priority) % MOST] = class;
    }

    pub(super) fn set_queues(&mut self, class: u8, queues: &Range<u16>) {
        self.queues[usize::from(class) % MOST] = (queues.start, queues.len() as u16);
    }

    /// Where a hash may choose from, for a packet of this priority: first queue and number of queues.
    pub(super) fn range(&self, priority: u32, queues: u16) -> (u16, u16) {
        match self.queues[usize::from(self.of(priority)) % MOST] {
            _ if self.count == 0 => (0, queues),
            // A class that was given none.
            (_, 0) => (0, queues),
            range => range,
        }
    }

    /// The class to which a queue belongs; class 0 if they are not divided.
    pub(super) fn of_queue(&self, queue: u16) -> Option<u8> {
        if self.count == 0 {
            return Some(0);
        }
        let has = |&(first, count): &(u16, u16)| queue.wrapping_sub(first) < count;
        self.queues.iter().position(has).map(|class| class as u8)
    }

    /// The classes that are left when only `queues` are. Without queues for class 0 none are;
    /// priorities of another class that lost some have class 0 then.
    pub(super) fn limited(&self, queues: u16) -> Self {
        let fits = |class: u8| {
            let (first, count) = self.queues[usize::from(class) % MOST];
            u32::from(first) + u32::from(count) <= u32::from(queues)
        };
        if self.count == 0 || !fits(0) {
            return Self::default();
        }
        let mut left = *self;
        for class in &mut left.of_priority {
            if !fits(*class) {
                *class = 0;
            }
        }
        left
    }
}
