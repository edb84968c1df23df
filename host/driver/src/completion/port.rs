//! Senders that share a transmit queue, each with a send buffer of its own.

use std::collections::VecDeque;
use std::time::Duration;

use super::{CompletionError, Release};
use crate::error::Error;
use crate::offload::TxOffload;
use crate::queue::{PushResult, TxPart, TxQueue, Wanted};
use crate::xps::InFlight;

/// A sender of a [`TxPort`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId {
    slot: u32,
    /// Which of those that had the slot one after the other.
    turn: u32,
}

/// What came of a frame of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a frame that was not queued was not sent"]
pub enum Push {
    /// It is in the ring, or will be shown to the card by [`TxPort::flush`]. Its memory, if shared, is
    /// the card's until its bytes are given back.
    Queued,
    /// The sender's buffer is used up; [`TxPort::next_ready`] names it when it may go on.
    NoBudget,
    /// The ring is full, likewise.
    NoRoom,
}

/// What came of a frame of a sender's [`Flow`](crate::xps::Flow).
#[derive(Debug)]
#[must_use = "a frame that was not queued was not sent"]
pub enum PushFlow {
    /// As [`Push::Queued`]; the frame is in flight until the card has completed it.
    Queued,
    /// As [`Push::NoBudget`]. Try again with what is given back, on this queue: the flow counts the
    /// frame as in flight, so that its next one does not go another way. To drop the frame, drop it.
    NoBudget(InFlight),
    /// As [`Push::NoRoom`], likewise.
    NoRoom(InFlight),
}

#[derive(Debug)]
struct Sender {
    turn: u32,
    open: bool,
    closing: bool,
    /// Bytes of its send buffer, and of its frames that take from it.
    budget: usize,
    charged: usize,
    /// Bytes of a frame that found its buffer used up.
    waits: Option<usize>,
}

impl Sender {
    fn has_budget(&self, len: usize) -> bool {
        self.charged + len <= self.budget
    }

    /// Waking it for each frame would cost a wake-up a frame: half of its buffer is free by then.
    fn may_go_on(&self) -> bool {
        self.waits
            .is_some_and(|len| self.has_budget(len.max(self.budget / 2)))
    }
}

/// Bytes that a frame takes from a sender.
#[derive(Clone, Copy, Debug)]
struct Charge {
    sender: SenderId,
    bytes: usize,
}

/// A frame of a flow. If the port goes while the card may still send it, its flow stays where it is.
#[derive(Debug, Default)]
struct Held(Option<InFlight>);

impl Drop for Held {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

/// Room in the ring that is kept for a sender.
#[derive(Clone, Copy, Debug)]
struct Turn {
    sender: SenderId,
    /// Frames, at least 1.
    frames: u16,
    /// So many completed frames, and it is over.
    until: u64,
}

/// A transmit queue that is shared by senders, owned by one thread.
///
/// A sender's frames take from its budget until they are completed, so that one that is fast cannot
/// hold the whole ring. Where all budgets together are more than the ring holds, those who wait for room
/// share it alike under the default policy, whoever runs first. How soon that is, is for the queue's
/// [`CompletionPolicy`](crate::CompletionPolicy); without one nothing is found unless
/// [`TxPort::service`] is called. Where a policy gives the bytes back when a frame is queued, what
/// would be read in place is copied: who has his bytes back may write to his memory.
pub struct TxPort {
    tx: TxQueue,
    senders: Vec<Sender>,
    free_slots: Vec<u32>,
    /// By the name of a frame, which is one more than the index.
    charges: Vec<Option<Charge>>,
    /// Likewise; shorter where frames of no flow have these names.
    flights: Vec<Held>,
    free_names: Vec<u32>,
    /// Waiting for room in the ring, in the order of their coming.
    stopped: VecDeque<SenderId>,
    /// Room that is kept for those who had to wait for it and were told that they may go on.
    turns: Vec<Turn>,
    ready: VecDeque<SenderId>,
    closed: VecDeque<SenderId>,
    /// Senders that wait for bytes, to go on or to be closed, in the order of their coming.
    waiting: VecDeque<SenderId>,
    /// Where what must not be read in place is copied to.
    copy: Vec<u8>,
}

impl TxPort {
    /// A port on this queue, without senders.
    pub fn new(tx: TxQueue) -> Self {
        Self {
            tx,
            senders: Vec::new(),
            free_slots: Vec::new(),
            charges: Vec::new(),
            flights: Vec::new(),
            free_names: Vec::new(),
            stopped: VecDeque::new(),
            turns: Vec::new(),
            ready: VecDeque::new(),
            closed: VecDeque::new(),
            waiting: VecDeque::new(),
            copy: Vec::new(),
        }
    }

    /// The queue.
    pub fn queue(&self) -> &TxQueue {
        &self.tx
    }

    /// The queue, for example to reset it: what its frames took is given back, and flows are told, when
    /// the port is next told to do something.
    pub fn queue_mut(&mut self) -> &mut TxQueue {
        &mut self.tx
    }

    /// A new sender with a send buffer of `budget` bytes of frames.
    pub fn open(&mut self, budget: usize) -> SenderId {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.senders.push(Sender {
                turn: 0,
                open: false,
                closing: false,
                budget: 0,
                charged: 0,
                waits: None,
            });
            (self.senders.len() - 1) as u32
        });
        let sender = &mut self.senders[slot as usize];
        (sender.open, sender.closing) = (true, false);
        (sender.budget, sender.charged, sender.waits) = (budget, 0, None);
        SenderId {
            slot,
            turn: sender.turn,
        }
    }

    fn sender(&mut self, id: SenderId) -> Result<&mut Sender, Error> {
        let sender = self.senders.get_mut(id.slot as usize);
        Ok(sender
            .filter(|sender| sender.open && sender.turn == id.turn)
            .ok_or(CompletionError::NoSender)?)
    }

    /// Bytes that a sender has outstanding.
    ///
    /// # Errors
    /// When it was closed.
    pub fn charged(&mut self, id: SenderId) -> Result<usize, Error> {
        Ok(self.sender(id)?.charged)
    }

    /// Queues a frame of a sender: [`TxQueue::push_parts`].
    ///
    /// # Errors
    /// As there, and [`Error::Completion`] if the sender was closed or the frame is longer than its
    /// send buffer.
    pub fn send(
        &mut self,
        id: SenderId,
        parts: &[TxPart<'_>],
        offload: TxOffload,
    ) -> Result<Push, Error> {
        self.send_held(id, parts, offload, &mut None)
    }

    /// Queues a frame of a flow ([`Flow::send`](crate::xps::Flow::send)) of a sender: the frame is in
    /// flight until *the card* has completed it, also where the policy gives the sender's bytes back
    /// before. So senders that share a queue may each have flows that move between queues.
    ///
    /// # Errors
    /// As [`TxPort::send`]; the frame is not in flight then.
    pub fn send_flow(
        &mut self,
        id: SenderId,
        flight: InFlight,
        parts: &[TxPart<'_>],
        offload: TxOffload,
    ) -> Result<PushFlow, Error> {
        let mut flight = Some(flight);
        let pushed = self.send_held(id, parts, offload, &mut flight);
        Ok(match (pushed?, flight) {
            (Push::NoBudget, Some(flight)) => PushFlow::NoBudget(flight),
            (Push::NoRoom, Some(flight)) => PushFlow::NoRoom(flight),
            (_, flight) => {
                drop(flight);
                PushFlow::Queued
            }
        })
    }

    /// Queues a frame; what was held is with the frame then. Compiled once for frames without a flow.
    #[inline(always)]
    fn send_held(
        &mut self,
        id: SenderId,
        parts: &[TxPart<'_>],
        offload: TxOffload,
        flight: &mut Option<InFlight>,
    ) -> Result<Push, Error> {
        let len = parts.iter().map(TxPart::len).sum();
        let sender = self.sender(id)?;
        if sender.closing {
            return Err(CompletionError::NoSender.into());
        }
        let budget = sender.budget;
        if len > budget {
            return Err(CompletionError::Budget { len, budget }.into());
        }
        let charge = match self.tx.release() {
            Release::Used => true,
            Release::Queued => false,
            // One that waits already is not overtaken by its own next frame.
            Release::QueuedBelowHalf => self.tx.is_half_full(),
        };
        while !self.has_turn(id) {
            if self.tx.stop()? {
                self.wait_for_room(id);
                return Ok(Push::NoRoom);
            }
            self.settle();
        }
        let sender = self.sender(id)?;
        if charge && !sender.has_budget(len) {
            if sender.waits.replace(len).is_none() {
                self.waiting.push_back(id);
            }
            self.turns.retain(|turn| turn.sender != id);
            self.want()?;
            return Ok(Push::NoBudget);
        }
        let charged = charge.then_some(Charge {
            sender: id,
            bytes: len,
        });
        let name = match (charged, &flight) {
            // Nobody is told of its completion.
            (None, None) => 0,
            _ => self.name(charged),
        };
        let pushed = match charge {
            true => self.push(name, parts, offload),
            false => self.push_copied(name, parts, offload),
        };
        if matches!(pushed, Ok(PushResult::Queued)) {
            if let Some(flight) = flight.take() {
                self.hold(name, flight);
            }
        } else if name != 0 {
            self.complete(name);
        }
        let pushed = pushed?;
        self.settle();
        if pushed == PushResult::Queued {
            self.take_turn(id);
            return Ok(Push::Queued);
        }
        self.wait_for_room(id);
        Ok(Push::NoRoom)
    }

    /// False if room is kept for others, or others wait for it. Only under policies by which who waits
    /// for completions is told soon: elsewhere the ring is for who comes first.
    fn has_turn(&self, id: SenderId) -> bool {
        if self.stopped.is_empty() && self.turns.is_empty() {
            return true;
        }
        let own = self.turns.iter().any(|turn| turn.sender == id);
        own || self.tx.outstanding() == 0 || !self.tx.has_demand()
    }

    fn take_turn(&mut self, id: SenderId) {
        if let Some(at) = self.turns.iter().position(|turn| turn.sender == id) {
            self.turns[at].frames -= 1;
            if self.turns[at].frames == 0 {
                self.turns.swap_remove(at);
            }
        }
    }

    fn wait_for_room(&mut self, id: SenderId) {
        self.turns.retain(|turn| turn.sender != id);
        if !self.stopped.contains(&id) {
            self.stopped.push_back(id);
        }
    }

    /// Room came up: those who waited may go on, each for as many frames as all others.
    fn give_turns(&mut self) {
        if self.stopped.is_empty() && self.turns.is_empty() || self.tx.is_stopped() {
            return;
        }
        let completed = self.tx.stats().completed;
        let idle = self.tx.outstanding() == 0;
        // Who does not come in the time of a whole ring has nothing to send.
        self.turns.retain(|turn| !idle && completed < turn.until);
        let kept: usize = self.turns.iter().map(|turn| usize::from(turn.frames)).sum();
        let size = self.tx.size();
        let room = usize::from(self.tx.room()).saturating_sub(kept);
        let fair = self.tx.has_demand();
        if self.stopped.is_empty() {
            return;
        }
        if fair && !idle && room < usize::from(size / 4) {
            // A wake-up for each frame would cost too much: the next interrupt is in the middle again.
            self.tx.stay_stopped();
            return;
        }
        if fair {
            let frames = (room / self.stopped.len()).clamp(1, size.into()) as u16;
            let until = completed + u64::from(size);
            self.turns.extend(self.stopped.iter().map(|id| Turn {
                sender: *id,
                frames,
                until,
            }));
        }
        self.ready.append(&mut self.stopped);
    }

    /// Pushes, once more if room came up while the queue was being stopped.
    fn push(
        &mut self,
        name: u32,
        parts: &[TxPart<'_>],
        offload: TxOffload,
    ) -> Result<PushResult, Error> {
        loop {
            self.tx.set_name(name);
            let pushed = self.tx.push_parts(parts, offload);
            self.tx.set_name(0);
            if pushed? == PushResult::Queued {
                return Ok(PushResult::Queued);
            }
            if self.tx.stop()? {
                return Ok(PushResult::Full);
            }
        }
    }

    /// Pushes a frame whose memory is not the card's afterwards.
    fn push_copied(
        &mut self,
        name: u32,
        parts: &[TxPart<'_>],
        offload: TxOffload,
    ) -> Result<PushResult, Error> {
        if !parts.iter().any(|part| matches!(part, TxPart::Shared(_))) {
            return self.push(name, parts, offload);
        }
        let mut copy = std::mem::take(&mut self.copy);
        copy.clear();
        let mut result = Ok(());
        for part in parts {
            let from = copy.len();
            copy.resize(from + part.len(), 0);
            result = result.and_then(|()| part.peek(&mut copy[from..]).map(drop));
        }
        let result = result.and_then(|()| self.push(name, &[TxPart::Bytes(&copy)], offload));
        self.copy = copy;
        result
    }

    /// A name for a frame, which gives back what it takes from its sender's buffer.
    fn name(&mut self, charge: Option<Charge>) -> u32 {
        if let Some(charge) = charge {
            self.senders[charge.sender.slot as usize].charged += charge.bytes;
        }
        match self.free_names.pop() {
            Some(name) => {
                self.charges[name as usize - 1] = charge;
                name
            }
            None => {
                self.charges.push(charge);
                self.charges.len() as u32
            }
        }
    }

    /// Holds on to what says that the frame of this name is in flight.
    #[inline(never)]
    fn hold(&mut self, name: u32, flight: InFlight) {
        let at = name as usize - 1;
        if self.flights.len() <= at {
            self.flights.resize_with(at + 1, Held::default);
        }
        self.flights[at].0 = Some(flight);
    }

    /// Lets go of it. By itself, for ports without flows are spared its code.
    #[inline(never)]
    fn land(&mut self, name: u32) {
        if let Some(held) = self.flights.get_mut(name as usize - 1) {
            drop(held.0.take());
        }
    }

    /// A frame is completed, or never was: nothing of it is in flight.
    fn complete(&mut self, name: u32) {
        if !self.flights.is_empty() {
            self.land(name);
        }
        let charge = self.charges[name as usize - 1].take();
        self.free_names.push(name);
        let Some(charge) = charge else {
            return;
        };
        let id = charge.sender;
        let sender = &mut self.senders[id.slot as usize];
        sender.charged -= charge.bytes;
        if sender.may_go_on() {
            sender.waits = None;
            self.waiting.retain(|other| *other != id);
            self.ready.push_back(id);
        }
        if sender.closing && sender.charged == 0 {
            self.waiting.retain(|other| *other != id);
            self.retire(id);
            self.closed.push_back(id);
        }
    }

    /// The slot of a closed sender can be had by another.
    fn retire(&mut self, id: SenderId) {
        let sender = &mut self.senders[id.slot as usize];
        (sender.open, sender.closing) = (false, false);
        sender.turn = sender.turn.wrapping_add(1);
        self.free_slots.push(id.slot);
    }

    /// What the one needs that waits longest.
    fn wanted(&self) -> Option<Wanted> {
        let id = self.waiting.front()?;
        let sender = &self.senders[id.slot as usize];
        let of = sender.charged;
        let need = match sender.waits {
            Some(len) => (of + len.max(sender.budget / 2)).saturating_sub(sender.budget),
            // All, to be closed. Others may have sent since, so half of the way is looked at first.
            None => of.div_ceil(2),
        };
        Some(Wanted { need, of })
    }

    /// Sees to it that those who wait for bytes get them.
    fn want(&mut self) -> Result<(), Error> {
        // What is not shown to the card is not completed either.
        self.tx.flush()?;
        self.tx.set_wanted(self.wanted())?;
        self.settle();
        Ok(())
    }

    /// Gives back what completed frames took, and lets those go on who waited for it.
    fn settle(&mut self) {
        while let Some(name) = self.tx.take_completed() {
            self.complete(name);
        }
        self.tx.update_wanted(self.wanted());
        self.give_turns();
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

    /// After an interrupt for the queue: [`TxQueue::service`]. Returns how many frames were completed.
    ///
    /// # Errors
    /// As there.
    pub fn service(&mut self) -> Result<usize, Error> {
        let mut count = 0;
        loop {
            count += self.tx.reap()?;
            // Before the next is asked for: who was served wants none.
            self.settle();
            if !self.tx.ask()? {
                return Ok(count);
            }
        }
    }

    /// Lets the policy's timer run, if it has one: [`TxQueue::tick`].
    ///
    /// # Errors
    /// As there.
    pub fn tick(&mut self, now: Duration) -> Result<Option<Duration>, Error> {
        let next = self.tx.tick(now);
        self.settle();
        next
    }

    /// The next sender that had to wait and may go on, in the order in which they could.
    pub fn next_ready(&mut self) -> Option<SenderId> {
        loop {
            let id = self.ready.pop_front()?;
            if self.sender(id).is_ok_and(|sender| !sender.closing) {
                return Some(id);
            }
        }
    }

    /// Closes a sender. True if nothing of it is outstanding; else it is closed when its bytes are
    /// back, and [`TxPort::next_closed`] names it.
    ///
    /// # Errors
    /// When it was closed before.
    pub fn close(&mut self, id: SenderId) -> Result<bool, Error> {
        self.flush()?;
        let sender = self.sender(id)?;
        if sender.closing {
            return Err(CompletionError::NoSender.into());
        }
        sender.waits = None;
        sender.closing = sender.charged > 0;
        let closing = sender.closing;
        self.waiting.retain(|other| *other != id);
        self.stopped.retain(|other| *other != id);
        self.turns.retain(|turn| turn.sender != id);
        if closing {
            self.waiting.push_back(id);
            self.want()?;
            // It may have been the last look that found them.
            return Ok(self.take_closed(id));
        }
        self.retire(id);
        Ok(true)
    }

    /// The next sender whose closing was waited for and is done.
    pub fn next_closed(&mut self) -> Option<SenderId> {
        self.closed.pop_front()
    }

    fn take_closed(&mut self, id: SenderId) -> bool {
        let at = self.closed.iter().position(|closed| *closed == id);
        at.and_then(|at| self.closed.remove(at)).is_some()
    }

    /// Gives the queue up; what senders have outstanding is sent all the same, and flows of which
    /// something is stay on it.
    pub fn into_queue(self) -> TxQueue {
        self.tx
    }
}
