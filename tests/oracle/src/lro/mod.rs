//! The reference model of hardware LRO.
//!
//! It is given frames with their times and posted buffers, and says what a driver finds: which
//! frames are merged, in which order units are published, with which virtio header, in how many
//! buffers. The RTL is compared with it unit by unit, so everything is decided here:
//!
//! * **Time** is a number of ticks, which may be cycles or nanoseconds. A timer that ends at the
//!   time at which something else happens ends first; of several, the one that ends first, and of
//!   those that end together the oldest context.
//! * **Age** of a context is the order in which contexts were opened. "Oldest" is by age.
//! * **A frame** is dealt with in this order: timers; if its queue has fewer than
//!   [`Config::low_water`] buffers posted, the oldest context of that queue closes; what the frame
//!   closes by the rules (oldest first), the unit before the frame that closes it; if what it needs
//!   is not posted, all contexts of its queue close (oldest first), and if that makes it need more
//!   than is posted it waits; then it passes, is merged, or opens a context, for which the oldest
//!   makes room if all are taken.
//! * **A frame that waits** does so for [`Config::patience`] and is dropped then; frames behind it
//!   wait for it. When buffers come it is dealt with from the start, at that time.
//! * **Opening**: a segment without PSH that is not merged opens a context; one with PSH goes on
//!   alone, since it would end its unit at once.
//! * **Buffers** are taken when bytes arrive: as many as the virtio header and the bytes fill. A
//!   frame that goes on alone may take more than [`Config::max_buffers`].
//! * **Bytes** of a unit are counted from its IP header on, that of IPv6 too.
//! * **The key** of a flow is its VLAN tags (types and all 16 bits of TCI), IP version, addresses and
//!   ports. A frame with three tags, or that says another version than its Ethernet type, is not IP.
//! * **An IPv4 header** with a wrong sum, shorter than 20 bytes or cut off closes its queue whatever
//!   protocol it names; so does an IPv6 header that is cut off. Row 12 comes before row 1.
//! * **Extension headers** of IPv6 are all that IANA lists but ESP, whatever is behind them; ESP and
//!   IPv4's AH are not TCP. IPv4 options and fragments matter for TCP alone.
//! * **Flags of the IPv4 header** are compared whole: the reserved one has to be equal, too.
//! * **Unverified** is what the card does not verify: wrong sums, and those of frames with bytes
//!   behind the packet that are longer than the header window.
//! * **Of several causes** the one counted is the first by the order of [`Cause`].
//!
//! Which rules there are is in `classify` (by the frame alone), `context` (by what is held) and
//! here (the table, timers, buffers); rows are those of the rule table that the test plan follows.

mod cause;
mod classify;
mod context;

use std::collections::{BTreeMap, VecDeque};

pub use cause::Cause;
use classify::{Candidate, Class, classify};
use context::{Context, pushes};

use crate::frames::verdict;
use crate::header::{DATA_VALID, Header};

/// Which rules are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Nothing is merged.
    Off,
    /// What is merged can be cut back into exactly what was on the wire.
    Strict,
    /// Rows 6, 25, 27, 33, 36 and 37 are as lax as other cards have them.
    Relaxed,
}

/// What a frame closes whose flow cannot be told though its addresses can (rows 2, 3, 9 and 11).
#[derive(Clone, Copy, Debug)]
pub enum Star {
    /// All contexts between the same two addresses, in the same direction.
    Addresses,
    /// All contexts whose addresses have the same hash.
    Hash(fn(&[u8]) -> u16),
    /// All contexts of the frame's queue.
    Queue,
}

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rules.
    pub profile: Profile,
    /// GUEST_CSUM was negotiated: without it nothing is merged and nothing said of sums.
    pub csum: bool,
    /// GUEST_TSO4 was negotiated.
    pub tso4: bool,
    /// GUEST_TSO6 was negotiated.
    pub tso6: bool,
    /// How many flows are held at once.
    pub contexts: usize,
    /// Ticks since the last segment after which a context closes.
    pub gap: u64,
    /// Ticks since the first segment after which a context closes.
    pub hold: u64,
    /// Most bytes of a merged packet from its IP header on, of either version; at most 65,535.
    pub max_bytes: usize,
    /// Most buffers of a merged packet.
    pub max_buffers: usize,
    /// Bytes of a buffer.
    pub buffer: usize,
    /// Bytes of the first descriptor of a buffer.
    pub first_descriptor: usize,
    /// Fewer posted buffers than this are few.
    pub low_water: usize,
    /// Ticks for which a frame waits for buffers.
    pub patience: u64,
    /// See [`Star`].
    pub star: Star,
    /// What contexts are found by, of the key of a flow: what a frame closes of its flow, it closes
    /// of a flow with the same tag, and a segment that may be merged is a difference to that flow
    /// ([`Cause::Tag`]). With none, flows are told by their keys.
    pub tag: Option<fn(&[u8]) -> u32>,
}

impl Default for Config {
    /// 16 contexts, and times in nanoseconds.
    fn default() -> Self {
        Self {
            profile: Profile::Strict,
            csum: true,
            tso4: true,
            tso6: true,
            contexts: 16,
            gap: 100_000,
            hold: 400_000,
            max_bytes: 65_535,
            max_buffers: 64,
            buffer: 4096,
            first_descriptor: 4096,
            low_water: 0,
            patience: u64::MAX,
            star: Star::Addresses,
            tag: None,
        }
    }
}

impl Config {
    /// Buffers that a frame of `length` bytes takes.
    pub fn buffers(&self, length: usize) -> usize {
        (Header::LEN + length).div_ceil(self.buffer)
    }

    /// Whether segments of one version of IP are merged (row 14: never without sums).
    fn merges(&self, v6: bool) -> bool {
        let family = if v6 { self.tso6 } else { self.tso4 };
        self.profile != Profile::Off && self.csum && family
    }

    /// Whether what is held of one flow is found when a frame of the other comes.
    fn finds(&self, one: &[u8], other: &[u8]) -> bool {
        match self.tag {
            Some(tag) => tag(one) == tag(other),
            None => one == other,
        }
    }
}

/// What is published at once: one frame, or several segments as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// When it is closed.
    pub at: u64,
    /// For which queue.
    pub queue: u16,
    /// The virtio header; `num_buffers` is how many buffers header and frame fill.
    pub header: Header,
    /// The frame.
    pub frame: Vec<u8>,
    /// How many frames of the wire it is.
    pub segments: usize,
    /// Why it was closed; none if it was never held.
    pub cause: Option<Cause>,
}

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Contexts closed, by cause.
    pub closed: BTreeMap<Cause, u64>,
    /// Frames that were never held.
    pub passed: u64,
    /// Contexts opened.
    pub opened: u64,
    /// Segments appended.
    pub merged: u64,
    /// Frames dropped for want of buffers.
    pub dropped: u64,
}

struct Waiting {
    /// When it is dropped; counts from when it came to the head.
    until: Option<u64>,
    queue: u16,
    frame: Vec<u8>,
}

/// The model.
pub struct Lro {
    config: Config,
    /// By age, oldest first.
    contexts: Vec<Context>,
    posted: BTreeMap<u16, usize>,
    waiting: VecDeque<Waiting>,
    delivered: Vec<Unit>,
    counters: Counters,
}

impl Lro {
    /// A card that holds nothing and has no buffer.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            contexts: Vec::new(),
            posted: BTreeMap::new(),
            waiting: VecDeque::new(),
            delivered: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Units published since the last call, in order.
    pub fn take(&mut self) -> Vec<Unit> {
        std::mem::take(&mut self.delivered)
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many buffers are posted.
    pub fn posted(&self, queue: u16) -> usize {
        self.posted.get(&queue).copied().unwrap_or(0)
    }

    /// How many flows are held.
    pub fn held(&self) -> usize {
        self.contexts.len()
    }

    /// How many frames wait for buffers.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// `count` buffers are posted.
    pub fn post(&mut self, now: u64, queue: u16, count: usize) {
        self.advance(now);
        *self.posted.entry(queue).or_default() += count;
        self.serve(now);
    }

    /// A frame arrives for a queue. Times never go back.
    pub fn receive(&mut self, now: u64, queue: u16, frame: &[u8]) {
        self.advance(now);
        self.waiting.push_back(Waiting {
            until: None,
            queue,
            frame: frame.to_vec(),
        });
        self.serve(now);
    }

    /// When something happens next though nothing arrives: a context closes, a frame is dropped.
    pub fn deadline(&self) -> Option<u64> {
        let timer = self.first_timer().map(|(time, ..)| time);
        let limit = self.waiting.front().and_then(|frame| frame.until);
        timer.into_iter().chain(limit).min()
    }

    /// The context whose timer ends first: when, which, and which timer.
    fn first_timer(&self) -> Option<(u64, usize, Cause)> {
        let ends = self.contexts.iter().enumerate().map(|(i, context)| {
            let gap = context.last.saturating_add(self.config.gap);
            let hold = context.opened.saturating_add(self.config.hold);
            let cause = if gap < hold { Cause::Gap } else { Cause::Hold };
            (gap.min(hold), i, cause)
        });
        ends.min_by_key(|(time, i, _)| (*time, *i))
    }

    /// Time passes: timers that have ended by `now` close their contexts.
    pub fn advance(&mut self, now: u64) {
        while let Some(time) = self.deadline().filter(|time| *time <= now) {
            match self.first_timer() {
                Some((end, i, cause)) if end == time => self.close(time, i, cause),
                _ => {
                    self.waiting.pop_front();
                    self.counters.dropped += 1;
                    self.serve(time);
                }
            }
        }
    }

    /// What is held of some flows closes, as if their time was over.
    pub fn expire(&mut self, now: u64, which: impl Fn(&[u8]) -> bool) {
        self.advance(now);
        self.close_where(now, Cause::Gap, |context| which(&context.key));
    }

    /// A setting changes, or the link goes down: all that is held is delivered first (row 41).
    pub fn stop(&mut self, now: u64) {
        self.advance(now);
        self.close_where(now, Cause::Stopped, |_| true);
    }

    /// New settings.
    pub fn configure(&mut self, now: u64, config: Config) {
        self.stop(now);
        self.config = config;
    }

    /// A queue is stopped: what is held for it is delivered first (row 41).
    pub fn stop_queue(&mut self, now: u64, queue: u16) {
        self.advance(now);
        self.close_where(now, Cause::Stopped, |context| context.queue == queue);
    }

    /// A queue is reset: what is held for it is gone with its buffers, and nothing is published.
    pub fn reset_queue(&mut self, now: u64, queue: u16) {
        self.advance(now);
        self.contexts.retain(|context| context.queue != queue);
        self.posted.remove(&queue);
        self.waiting.retain(|frame| frame.queue != queue);
        self.serve(now);
    }

    /// Deals with frames until one has to wait.
    fn serve(&mut self, now: u64) {
        while let Some(mut head) = self.waiting.pop_front() {
            if !self.accept(now, head.queue, &head.frame) {
                head.until
                    .get_or_insert(now.saturating_add(self.config.patience));
                self.waiting.push_front(head);
                return;
            }
        }
    }

    /// Deals with one frame. False if it has to wait for buffers.
    fn accept(&mut self, now: u64, queue: u16, frame: &[u8]) -> bool {
        if self.posted(queue) < self.config.low_water
            && let Some(oldest) = self.contexts.iter().position(|c| c.queue == queue)
        {
            self.close(now, oldest, Cause::LowWater);
        }
        let room = self.config.buffer.min(self.config.first_descriptor);
        match classify(frame, room) {
            Class::Candidate(candidate) if self.config.merges(candidate.at.v6) => {
                return self.accept_candidate(now, queue, &candidate, frame);
            }
            Class::Candidate(_) | Class::Pass => {}
            Class::PassQueue(cause) => self.close_where(now, cause, |c| c.queue == queue),
            Class::PassAddresses(cause, addresses) => {
                let star = self.config.star;
                self.close_where(now, cause, |c| match star {
                    Star::Addresses => c.addresses() == addresses,
                    Star::Hash(hash) => hash(c.addresses()) == hash(&addresses),
                    Star::Queue => c.queue == queue,
                });
            }
            Class::PassFlow(cause, key) => {
                let config = self.config.clone();
                self.close_where(now, cause, |c| config.finds(&c.key, &key));
            }
        }
        self.pass(now, queue, frame)
    }

    fn accept_candidate(
        &mut self,
        now: u64,
        queue: u16,
        candidate: &Candidate,
        frame: &[u8],
    ) -> bool {
        let config = self.config.clone();
        let same = |c: &Context| config.finds(&c.key, &candidate.key);
        if let Some(i) = self.contexts.iter().position(same) {
            match self.contexts[i].refuses(queue, candidate, frame, &config) {
                Some(cause) => self.close(now, i, cause),
                None => {
                    let context = &mut self.contexts[i];
                    let more = context.buffers_with(candidate, frame, &config) - context.buffers;
                    if self.take_buffers(now, queue, more) {
                        self.counters.merged += 1;
                        let ends = self.contexts[i].append(now, candidate, frame, &config);
                        if let Some(cause) = ends {
                            self.close(now, i, cause);
                        }
                        return true;
                    }
                    // Its own context is closed now, and it begins anew.
                }
            }
        }
        let buffers = config.buffers(frame.len());
        let too_large =
            frame.len() - candidate.at.ip > config.max_bytes || buffers > config.max_buffers;
        if pushes(candidate, frame) || too_large || config.contexts == 0 {
            return self.pass(now, queue, frame);
        }
        if !self.take_buffers(now, queue, buffers) {
            return false;
        }
        // Row 40: the oldest makes room.
        if self.contexts.len() >= config.contexts {
            self.close(now, 0, Cause::Evicted);
        }
        self.counters.opened += 1;
        let context = Context::open(now, queue, candidate.clone(), frame, buffers);
        self.contexts.push(context);
        true
    }

    /// Delivers a frame alone.
    fn pass(&mut self, now: u64, queue: u16, frame: &[u8]) -> bool {
        let buffers = self.config.buffers(frame.len());
        if !self.take_buffers(now, queue, buffers) {
            return false;
        }
        let verified = self.config.csum && verdict(frame).sum_ok;
        self.counters.passed += 1;
        self.delivered.push(Unit {
            at: now,
            queue,
            header: Header {
                flags: if verified { DATA_VALID } else { 0 },
                num_buffers: buffers as u16,
                ..Header::default()
            },
            frame: frame.to_vec(),
            segments: 1,
            cause: None,
        });
        true
    }

    /// Takes posted buffers. If there are too few, all that is held for the queue is delivered, so
    /// that the driver can post them again, and none is taken.
    fn take_buffers(&mut self, now: u64, queue: u16, count: usize) -> bool {
        let posted = self.posted.entry(queue).or_default();
        if let Some(rest) = posted.checked_sub(count) {
            *posted = rest;
            return true;
        }
        self.close_where(now, Cause::NoBuffer, |context| context.queue == queue);
        false
    }

    fn close_where(&mut self, now: u64, cause: Cause, which: impl Fn(&Context) -> bool) {
        let mut i = 0;
        while i < self.contexts.len() {
            if which(&self.contexts[i]) {
                self.close(now, i, cause);
            } else {
                i += 1;
            }
        }
    }

    fn close(&mut self, now: u64, i: usize, cause: Cause) {
        *self.counters.closed.entry(cause).or_default() += 1;
        let unit = self.contexts.remove(i).close(now, cause);
        self.delivered.push(unit);
    }
}
