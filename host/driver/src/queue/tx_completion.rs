//! A transmit queue under a completion policy.

use std::sync::Arc;
use std::time::Duration;

use super::tx::TxQueue;
use crate::completion::{Completion, CompletionPolicy, EventRule, Release};
use crate::device::Core;
use crate::error::Error;
use crate::virtio::split::SplitQueue;

/// Time in which a full transmit FIFO leaves on a wire of 1 Gbit/s, and some more.
const LEAVES: Duration = Duration::from_micros(400);

/// Frames whose way is followed until they are on the wire ([`TxQueue::watch`]).
///
/// A frame that is completed was read by the card and may still be in it: "completed" is not "sent".
#[derive(Clone, Debug)]
pub struct Watch {
    /// Head descriptor and number of the frames that the card has not read.
    frames: Vec<(u16, u32)>,
    /// When the last of them was found to be read.
    read: Option<Duration>,
}

/// How far watched frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The card has not read all of them.
    Queued,
    /// The card has read them; at this time they will have left, if the wire is of 1 Gbit/s or faster
    /// and nothing holds it up.
    Read(Duration),
    /// They have left.
    Sent,
}

/// What a sender that waits needs to have back, of what it has outstanding: bytes, at least 1 of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub need: usize,
    pub of: usize,
}

impl Wanted {
    /// After how many of `visible` frames it has that, if its frames are spread among those of others.
    /// If they are not, it asks again; so never after less than a quarter.
    fn frames(self, visible: u16) -> u16 {
        let frames = (usize::from(visible) * self.need).div_ceil(self.of.max(1));
        let least = usize::from(visible / 4).max(1);
        frames.clamp(least, visible.max(1).into()) as u16
    }
}

/// Asks for an interrupt when three quarters of what is outstanding is used; true if it is already.
fn arm_three_quarters(queue: &mut SplitQueue) -> Result<bool, Error> {
    match queue.visible() {
        0 => {
            queue.disarm();
            Ok(false)
        }
        outstanding => queue.arm_after((u32::from(outstanding) * 3 / 4) as u16 + 1),
    }
}

impl TxQueue {
    pub(crate) fn belongs_to(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Takes a policy on; what is outstanding is of it, too.
    pub(crate) fn adopt(&mut self, completion: Completion) -> Result<(), Error> {
        completion.apply()?;
        self.completion = Some(completion);
        self.queue.disarm();
        self.service()?;
        Ok(())
    }

    /// Tells the card the policy again, after a reset of the queue.
    pub(crate) fn resume(&mut self) -> Result<(), Error> {
        match &self.completion {
            Some(completion) => completion.apply()?,
            None => return Ok(()),
        }
        self.ask()?;
        Ok(())
    }

    /// How completed frames are found, if by a policy ([`Device::set_completion`]).
    ///
    /// [`Device::set_completion`]: crate::Device::set_completion
    pub fn completion(&self) -> Option<CompletionPolicy> {
        self.completion.as_ref().map(|c| c.policy)
    }

    /// Completed frames that the device shows and that were not taken back yet. Changes nothing and
    /// is not checked: for looking on.
    pub fn peek_completed(&self) -> u16 {
        self.queue.peek_used()
    }

    /// After frames were shown to the device: takes completed ones back, so that a queue that is
    /// always busy does not wait for an interrupt that comes when it is not.
    pub(super) fn posted(&mut self) -> Result<(), Error> {
        let Some(completion) = &self.completion else {
            return Ok(());
        };
        let event = completion.rules.event;
        self.reap()?;
        let again = match event {
            EventRule::Never => false,
            // It stays where it is until it has come.
            EventRule::Ahead(_) => !self.queue.armed(),
            EventRule::ThreeQuarters | EventRule::WhileCharged => true,
        };
        if again {
            while self.ask()? {
                self.reap()?;
            }
        }
        Ok(())
    }

    /// Asks for the interrupt that the policy wants from the driver's side. True if what it would
    /// tell of is there already: then none need come, and the caller looks again.
    pub(crate) fn ask(&mut self) -> Result<bool, Error> {
        let demand = self.completion.as_ref().is_some_and(|c| c.rules.demand);
        let wanted = self.wanted.filter(|_| demand);
        let queue = &mut self.queue;
        let visible = queue.visible();
        if visible > 0 && self.stopped {
            return queue.arm_after(visible / 2);
        }
        if let (1.., Some(wanted)) = (visible, wanted) {
            return queue.arm_after(wanted.frames(visible));
        }
        let Some(completion) = &self.completion else {
            return Ok(false);
        };
        match completion.rules.event {
            EventRule::ThreeQuarters => arm_three_quarters(queue),
            EventRule::WhileCharged if self.named > 0 => arm_three_quarters(queue),
            EventRule::Ahead(count) => queue.arm_ahead(count),
            EventRule::Never | EventRule::WhileCharged => {
                if queue.armed() {
                    queue.disarm();
                }
                Ok(false)
            }
        }
    }

    /// Takes completed frames back and asks for the next interrupt: what to do when one came for this
    /// queue, whether it has a reason or not. Returns how many frames were completed.
    ///
    /// # Errors
    /// [`Error::Queue`] if the device broke the rules.
    pub fn service(&mut self) -> Result<usize, Error> {
        let mut count = 0;
        loop {
            count += self.reap()?;
            // Once more if some were completed before the interrupt was asked for.
            if !self.ask()? {
                return Ok(count);
            }
        }
    }

    /// After a frame found no room: asks for an interrupt when half of what is outstanding is used,
    /// whatever the policy. False if there is room already, so that no interrupt need come.
    ///
    /// # Errors
    /// As [`TxQueue::service`].
    pub fn stop(&mut self) -> Result<bool, Error> {
        self.flush()?;
        self.stopped = true;
        if self.queue.visible() > 0 && !self.ask()? {
            return Ok(true);
        }
        self.service()?;
        Ok(false)
    }

    /// Lets the driver's own timer run: to be called when it is due and after frames were sent.
    /// Returns when to call it next, if the policy has a timer and anything is outstanding.
    ///
    /// `now` is the time since some moment that stays the same; it must not go back.
    ///
    /// # Errors
    /// As [`TxQueue::service`].
    pub fn tick(&mut self, now: Duration) -> Result<Option<Duration>, Error> {
        let Some(period) = self.completion.as_ref().and_then(|c| c.rules.timer) else {
            return Ok(None);
        };
        let due = self.completion.as_ref().and_then(|c| c.due);
        if due.is_some_and(|due| due <= now) {
            self.service()?;
        }
        let waits = self.queue.outstanding() > 0;
        let Some(completion) = &mut self.completion else {
            return Ok(None);
        };
        completion.due = match due {
            _ if !waits => None,
            Some(due) if due > now => Some(due),
            _ => Some(now + period),
        };
        Ok(completion.due)
    }

    /// Follows all frames that were queued so far: for those who wait until something is sent, which
    /// is later than when its bytes are given back.
    pub fn watch(&self) -> Watch {
        let heads = (0u16..).zip(&self.tags);
        Watch {
            frames: heads
                .filter(|(_, tag)| tag.serial != 0)
                .map(|(head, tag)| (head, tag.serial))
                .collect(),
            read: None,
        }
    }

    /// How far watched frames are, by what was taken back so far; `now` as in [`TxQueue::tick`].
    pub fn progress(&self, watch: &mut Watch, now: Duration) -> Progress {
        let there = |&(head, serial): &(u16, u32)| {
            let tag = self.tags.get(usize::from(head));
            tag.is_some_and(|tag| tag.serial == serial)
        };
        watch.frames.retain(there);
        if !watch.frames.is_empty() {
            return Progress::Queued;
        }
        let gone = *watch.read.get_or_insert(now) + LEAVES;
        if now >= gone {
            Progress::Sent
        } else {
            Progress::Read(gone)
        }
    }

    /// More than half of the ring is taken.
    pub(crate) fn is_half_full(&self) -> bool {
        u32::from(self.queue.free()) * 2 < u32::from(self.queue.size())
    }

    /// Whether somebody waits for bytes to come back: who begins to has an interrupt asked for, if the
    /// policy has it.
    pub(crate) fn set_wanted(&mut self, wanted: Option<Wanted>) -> Result<(), Error> {
        let begins = wanted.is_some() && self.wanted.is_none();
        self.wanted = wanted;
        if begins && self.ask()? {
            self.service()?;
        }
        Ok(())
    }

    /// Changes what [`TxQueue::set_wanted`] said; what was asked for may still come.
    pub(crate) fn update_wanted(&mut self, wanted: Option<Wanted>) {
        self.wanted = wanted;
    }

    /// What room came up is not enough.
    pub(crate) fn stay_stopped(&mut self) {
        self.stopped = true;
    }

    /// Who waits for completions is told soon, whatever others do.
    pub(crate) fn has_demand(&self) -> bool {
        self.completion.as_ref().is_some_and(|c| c.rules.demand)
    }

    /// Descriptors of the ring.
    pub(crate) fn size(&self) -> u16 {
        self.queue.size()
    }

    /// Frames of one descriptor that find room.
    pub(crate) fn room(&self) -> u16 {
        self.queue.free()
    }

    /// No room was found, and nothing was completed since.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// When the senders of frames get their bytes back.
    pub(crate) fn release(&self) -> Release {
        let completion = self.completion.as_ref();
        completion.map_or(Release::Used, |c| c.rules.release)
    }

    /// The next frame has this name, unless it is 0, which is told when it is completed.
    pub(crate) fn set_name(&mut self, name: u32) {
        self.name = name;
    }

    /// The next completed frame that has a name.
    pub(crate) fn take_completed(&mut self) -> Option<u32> {
        self.completed.pop_front()
    }
}
