//! The root complex: what is at the other end of the card's link.
//!
//! Upstream everything that the card sends goes into one queue in the order of acceptance and
//! takes effect half the read latency later, so that a read sees every write that was accepted
//! before it, and a completion or an interrupt passes none. A read and the end of a write that
//! are accepted in the same cycle count as read first: the card had no right to rely on it.

mod checker;
mod completer;
mod credits;
mod effects;
mod faults;
mod memory;
mod ranges;
mod requester;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use checker::{LinkLimits, Violation};
pub use credits::{CreditLimit, CreditType};
pub use faults::{Fault, FaultPlan, FaultRule};
pub use memory::{Access, Backing, FaultReason, HostMemory, MapError, MemoryFault};
pub use ranges::RangeSet;
pub use requester::{Completion, RequestTag};
pub use stats::{LinkStats, TlpCount};

use crate::model::{Beat, Inputs, Outputs, beat_bytes};
use crate::rng::Rng;
use crate::tlp::{self, Header, Kind};
use checker::Checker;
use completer::Completer;
use credits::CreditPool;
use requester::Requester;

/// Writes into this window are MSI-X messages.
pub const MSI_WINDOW: std::ops::Range<u64> = 0xfee0_0000..0xfef0_0000;

/// Id of the card: bus 1, device 0, function 0.
pub const CARD_ID: u16 = 0x0100;

/// Random stalls, each in thousandths of the cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// The link is not ready for posted writes.
    pub posted: u16,
    /// The link is not ready for reads.
    pub reads: u16,
    /// The link is not ready for the card's completions.
    pub card_completions: u16,
    /// Gaps between beats of requests to the card.
    pub requests: u16,
    /// Gaps between beats of completions to the card.
    pub completions: u16,
}

/// How the root complex behaves.
#[derive(Clone, Debug)]
pub struct RootComplexConfig {
    /// Cycles from a read request to its first completion byte; writes take half of it.
    pub read_latency: u64,
    /// Up to so many cycles more, at random, for each read.
    pub latency_jitter: u64,
    /// Read completion boundary in bytes.
    pub rcb: usize,
    /// Largest completion in bytes.
    pub max_completion: usize,
    /// Completions end at random multiples of RCB instead of as late as possible.
    pub random_split: bool,
    /// Completions of different tags come in any order.
    pub reorder: bool,
    /// Random stalls.
    pub stalls: Stalls,
    /// Credits: posted, non-posted, completion.
    pub credits: [CreditLimit; 3],
    /// Cycles after which the credits of a TLP come back.
    pub credit_return: u64,
    /// Check what the card sends.
    pub checks: bool,
}

impl Default for RootComplexConfig {
    fn default() -> Self {
        Self {
            read_latency: 125,
            latency_jitter: 0,
            rcb: 64,
            max_completion: 256,
            random_split: false,
            reorder: false,
            stalls: Stalls::default(),
            credits: [CreditLimit::default(); 3],
            credit_return: 30,
            checks: true,
        }
    }
}

/// An MSI-X message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiMessage {
    /// When it took effect.
    pub time: u64,
    /// Address written.
    pub address: u64,
    /// Data written.
    pub data: u32,
}

struct Up {
    due: u64,
    /// When the card's link took it.
    accepted: u64,
    header: Header,
    payload: Vec<u8>,
}

/// A TLP that is being taken beat by beat.
#[derive(Default)]
struct Receiver {
    active: bool,
    header: Header,
    payload: Vec<u8>,
}

/// The root complex. [`RootComplex::cycle`] runs it for one cycle of the card.
pub struct RootComplex {
    /// How it behaves; may be changed at any time.
    pub config: RootComplexConfig,
    /// Host memory.
    pub memory: HostMemory,
    /// Faults on demand.
    pub faults: FaultPlan,
    /// Counters.
    pub stats: LinkStats,
    /// What the card may do by its configuration.
    pub limits: LinkLimits,
    /// Offset of the card's PCIe capability, once known: writes to Device Control are watched.
    pub pcie_capability: Option<u16>,
    width: usize,
    rng: Rng,
    checker: Checker,
    completer: Completer,
    requester: Requester,
    credits: [CreditPool; 3],
    up: VecDeque<Up>,
    /// TLPs that went into and came out of `up`.
    up_in: u64,
    up_out: u64,
    posted: Receiver,
    completion: Receiver,
    spare: Vec<Vec<u8>>,
    messages: VecDeque<MsiMessage>,
    memory_faults: Vec<MemoryFault>,
}

const MAX_MEMORY_FAULTS: usize = 1024;

impl RootComplex {
    /// A root complex for a card with beats of `width` bytes.
    pub fn new(config: RootComplexConfig, width: usize, seed: u64) -> Self {
        let credits = config.credits.map(CreditPool::new);
        Self {
            config,
            memory: HostMemory::new(),
            faults: FaultPlan::default(),
            stats: LinkStats::default(),
            limits: LinkLimits::default(),
            pcie_capability: None,
            width,
            rng: Rng::new(seed),
            checker: Checker::default(),
            completer: Completer::default(),
            requester: Requester::default(),
            credits,
            up: VecDeque::new(),
            up_in: 0,
            up_out: 0,
            posted: Receiver::default(),
            completion: Receiver::default(),
            spare: Vec::new(),
            messages: VecDeque::new(),
            memory_faults: Vec::new(),
        }
    }

    /// Nothing is under way in either direction.
    pub fn is_idle(&self) -> bool {
        self.up.is_empty()
            && !self.posted.active
            && !self.completion.active
            && self.completer.is_idle()
            && self.requester.is_idle()
    }

    /// No DMA of the card is under way as far as the link knows.
    pub fn dma_drained(&self) -> bool {
        self.up.is_empty() && !self.posted.active && self.completer.is_idle()
    }

    /// A mark for [`RootComplex::took_effect`]: what the link has taken from the card so far, a
    /// write that it is taking now included.
    pub fn accepted(&self) -> u64 {
        self.up_in + u64::from(self.posted.active)
    }

    /// True if everything up to a mark has taken effect.
    pub fn took_effect(&self, mark: u64) -> bool {
        self.up_out >= mark
    }

    /// When the next thing happens that does not need the card; `None`: nothing will.
    pub fn next_event(&self) -> Option<u64> {
        [
            self.up.front().map(|up| up.due),
            self.completer.next_event(),
            self.requester.next_event(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Starves one credit type until `time` (cycles of the time base).
    pub fn starve_until(&mut self, kind: CreditType, time: u64) {
        self.credits[kind as usize].starve_until(time);
    }

    /// Changes the credits of one type; TLPs under way are forgotten.
    pub fn set_credits(&mut self, kind: CreditType, limit: CreditLimit) {
        self.config.credits[kind as usize] = limit;
        self.credits[kind as usize] = CreditPool::new(limit);
    }

    /// A posted write of 1 to 8 bytes that stay within two DWs.
    pub fn write(&mut self, now: u64, address: u64, data: &[u8]) {
        let due = now + self.config.read_latency / 2;
        self.requester.write(due, address, data);
    }

    /// A read of 1 to 8 bytes that stay within two DWs.
    pub fn read(&mut self, now: u64, address: u64, len: usize) -> RequestTag {
        let due = now + self.config.read_latency / 2;
        self.requester.read(due, address, len)
    }

    /// A configuration read of the DW at `offset`.
    pub fn config_read(&mut self, now: u64, offset: u16, first_be: u8) -> RequestTag {
        let due = now + self.config.read_latency / 2;
        self.requester
            .configuration(due, CARD_ID, offset, first_be, None, None)
    }

    /// A configuration write of the enabled bytes of the DW at `offset`.
    pub fn config_write(
        &mut self,
        now: u64,
        offset: u16,
        first_be: u8,
        data: [u8; 4],
    ) -> RequestTag {
        let due = now + self.config.read_latency / 2;
        let after = self.limits_after(offset, first_be, data);
        let control = self.pcie_capability.map(|capability| capability + 8);
        if control == Some(offset) && first_be & 2 != 0 && data[1] & 0x80 != 0 {
            self.stats.function_resets += 1;
        }
        if let Some(after) = after {
            // The card may use the new limits before the host knows that it does.
            self.limits = self.limits.union(after);
        }
        self.requester
            .configuration(due, CARD_ID, offset, first_be, Some(data), after)
    }

    /// A non-posted request with any header; its tag is put in.
    pub fn raw_request(&mut self, now: u64, header: Header, payload: [u8; 8]) -> RequestTag {
        let due = now + self.config.read_latency / 2;
        self.requester.raw(due, header, payload)
    }

    /// How a request ended, if it did. Asked for once.
    pub fn take_completion(&mut self, tag: RequestTag) -> Option<Completion> {
        self.requester.take(tag)
    }

    /// Gives up waiting for a request.
    pub fn forget(&mut self, tag: RequestTag) {
        self.requester.forget(tag);
    }

    /// Requests to the card that it has not taken yet.
    pub fn queued_requests(&self) -> usize {
        self.requester.queued()
    }

    /// The next MSI-X message.
    pub fn take_message(&mut self) -> Option<MsiMessage> {
        self.messages.pop_front()
    }

    /// True if a message waits to be taken.
    pub fn has_message(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Accesses to host memory that were refused since the last call (at most 1,024 are kept).
    pub fn take_memory_faults(&mut self) -> Vec<MemoryFault> {
        std::mem::take(&mut self.memory_faults)
    }

    /// True if the card broke a rule.
    pub fn has_violations(&self) -> bool {
        self.checker.any()
    }

    /// Rules that the card broke since the last call.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        self.checker.take()
    }

    fn limits_after(&self, offset: u16, first_be: u8, data: [u8; 4]) -> Option<LinkLimits> {
        let mut limits = self.limits;
        if offset == 4 && first_be & 1 != 0 {
            limits.bus_master = data[0] & 4 != 0;
            return Some(limits);
        }
        if self.pcie_capability.map(|c| c + 8) == Some(offset) {
            if first_be & 1 != 0 {
                limits.max_payload = 128 << (data[0] >> 5).min(5);
            }
            if first_be & 2 != 0 {
                limits.max_read = 128 << (data[1] >> 4 & 7).min(5);
                limits.ext_tag = data[1] & 1 != 0;
            }
            return Some(limits);
        }
        None
    }

    /// One cycle: takes what the card shows in `output` and decides what it is given in `input`.
    /// `now` is the time base in this cycle.
    pub fn cycle(&mut self, now: u64, output: &Outputs, input: &mut Inputs) {
        while self.up.front().is_some_and(|up| up.due <= now)
            && let Some(up) = self.up.pop_front()
        {
            self.up_out += 1;
            self.take_effect(now, up);
        }

        input.np_ready = 0;
        if output.np.valid == 0 {
            self.checker.nothing(now, 1);
        }
        if output.np.valid == 1 {
            let ready = self.ready(CreditType::NonPosted, now, &output.np, false);
            input.np_ready = u8::from(ready);
            if self.config.checks {
                self.checker.beat(now, 1, &output.np, ready);
            }
            if ready {
                self.accept_read(now, &output.np.hdr);
            }
        }
        input.cc_ready = 0;
        if output.cc.valid == 0 {
            self.checker.nothing(now, 2);
        }
        if output.cc.valid == 1 {
            let active = self.completion.active;
            let ready = self.ready(CreditType::Completion, now, &output.cc, active);
            input.cc_ready = u8::from(ready);
            if self.config.checks {
                self.checker.beat(now, 2, &output.cc, ready);
            }
            if ready {
                let mut receiver = std::mem::take(&mut self.completion);
                self.accept_beat(now, &mut receiver, &output.cc);
                self.completion = receiver;
            }
        }
        input.pt_ready = 0;
        if output.pt.valid == 0 {
            self.checker.nothing(now, 0);
        }
        if output.pt.valid == 1 {
            let active = self.posted.active;
            let ready = self.ready(CreditType::Posted, now, &output.pt, active);
            input.pt_ready = u8::from(ready);
            if self.config.checks {
                self.checker.beat(now, 0, &output.pt, ready);
            }
            if ready {
                let mut receiver = std::mem::take(&mut self.posted);
                self.accept_beat(now, &mut receiver, &output.pt);
                self.posted = receiver;
            }
        }

        let ready = output.rc_ready == 1;
        let begun =
            self.completer
                .drive(now, &self.config, &mut self.rng, self.width, ready, input);
        if let Some(header) = begun {
            self.stats.down(&header);
        }
        if input.rc.valid == 1 && !ready && self.config.checks {
            let rule = "a completion was held off: space must be reserved before a read";
            self.checker.violate(now, rule, &input.rc.hdr);
        }
        let ready = output.rq_ready == 1;
        let begun =
            self.requester
                .drive(now, &self.config, &mut self.rng, self.width, ready, input);
        if let Some(header) = begun {
            self.stats.down(&header);
        }
    }

    fn ready(&mut self, kind: CreditType, now: u64, beat: &Beat, under_way: bool) -> bool {
        let stalls = &self.config.stalls;
        let stall = match kind {
            CreditType::Posted => stalls.posted,
            CreditType::NonPosted => stalls.reads,
            CreditType::Completion => stalls.card_completions,
        };
        if self.rng.chance(stall) {
            return false;
        }
        if under_way {
            return true;
        }
        let pool = &mut self.credits[kind as usize];
        let allowed = pool.allows(&beat.hdr, now);
        if allowed {
            pool.take(&beat.hdr, now + self.config.credit_return);
        }
        allowed
    }

    fn accept_read(&mut self, now: u64, header: &Header) {
        self.stats.up(header);
        if self.config.checks {
            self.checker
                .memory_request(now, header, &self.limits, CARD_ID);
            let tag = tlp::request_tag(header);
            let in_queue = self.up.iter().any(|up| {
                tlp::kind(&up.header) == Kind::MemRead && tlp::request_tag(&up.header) == tag
            });
            if in_queue || self.completer.is_outstanding(tag) {
                let rule = "a tag that is outstanding was used again";
                self.checker.violate(now, rule, header);
            }
            if self.posted.active && overlap(header, &self.posted.header) {
                let rule = "a read overtook a write to the same address";
                self.checker.violate(now, rule, header);
            }
        }
        self.push_up(now, *header, Vec::new());
    }

    fn accept_beat(&mut self, now: u64, receiver: &mut Receiver, beat: &Beat) {
        if (beat.sop == 1) == receiver.active {
            let rule = "first beat of a TLP inside another, or a beat outside any";
            self.checker.violate(now, rule, &beat.hdr);
        }
        if beat.sop == 1 {
            receiver.active = true;
            receiver.header = beat.hdr;
            receiver.payload = self.spare.pop().unwrap_or_default();
            receiver.payload.clear();
            if self.config.checks && tlp::kind(&beat.hdr) == Kind::MemWrite {
                self.checker
                    .memory_request(now, &beat.hdr, &self.limits, CARD_ID);
            }
        }
        let wanted = tlp::payload_bytes(&receiver.header);
        let here = wanted
            .saturating_sub(receiver.payload.len())
            .min(self.width);
        receiver
            .payload
            .extend_from_slice(&beat_bytes(&beat.data)[..here]);
        if (beat.eop == 1) != (receiver.payload.len() == wanted) {
            let rule = "the length of a TLP is not that of its header";
            self.checker.violate(now, rule, &receiver.header);
        }
        if beat.eop == 1 {
            receiver.active = false;
            self.stats.up(&receiver.header);
            let payload = std::mem::take(&mut receiver.payload);
            self.push_up(now, receiver.header, payload);
        }
    }

    fn push_up(&mut self, now: u64, header: Header, payload: Vec<u8>) {
        self.up_in += 1;
        self.up.push_back(Up {
            due: now + self.config.read_latency / 2,
            accepted: now,
            header,
            payload,
        });
    }
}

fn overlap(a: &Header, b: &Header) -> bool {
    let span = |h: &Header| {
        let start = tlp::address(h);
        (start, start.saturating_add(tlp::length_dw(h) as u64 * 4))
    };
    let ((a0, a1), (b0, b1)) = (span(a), span(b));
    a0 < b1 && b0 < a1
}
