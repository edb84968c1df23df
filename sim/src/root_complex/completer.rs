//! Answers to the card's reads: split, delayed, reordered across tags, and wrong on demand.

use crate::model::{Beat, Inputs, fill_beat};
use crate::rng::Rng;
use crate::tlp::{self, CompletionFields, Header};

use super::RootComplexConfig;
use super::faults::Fault;

/// Id of the root port.
pub(super) const ROOT_ID: u16 = 0x0000;

/// A read of the card whose data was taken from memory.
pub(super) struct PendingRead {
    pub ready_at: u64,
    pub requester: u16,
    pub tag: u8,
    /// First enabled byte.
    pub first: u64,
    /// Bytes from the first to the last enabled one.
    pub count: usize,
    /// Memory from the first DW on.
    pub image: Vec<u8>,
    /// Bytes already given.
    pub done: usize,
    pub fault: Option<Fault>,
}

/// A TLP on its way over a channel towards the card.
#[derive(Default)]
pub(super) struct Sender {
    header: Header,
    payload: Vec<u8>,
    sent: usize,
    active: bool,
    /// The beat on the channel was shown and not taken.
    shown: bool,
}

impl Sender {
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    pub(super) fn start(&mut self, header: Header, payload: &[u8]) {
        self.header = header;
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        self.sent = 0;
        self.active = true;
        self.shown = false;
    }

    /// Puts a beat on the channel; true if that ends the TLP.
    pub(super) fn drive(
        &mut self,
        beat: &mut Beat,
        width: usize,
        ready: bool,
        stall: bool,
    ) -> bool {
        if !self.active || (stall && !self.shown) {
            beat.valid = 0;
            return false;
        }
        let end = (self.sent + width).min(self.payload.len());
        beat.valid = 1;
        beat.sop = u8::from(self.sent == 0);
        beat.eop = u8::from(end == self.payload.len());
        beat.hdr = self.header;
        fill_beat(&mut beat.data, &self.payload[self.sent..end]);
        self.shown = !ready;
        if !ready {
            return false;
        }
        self.sent = end;
        self.active = end < self.payload.len();
        !self.active
    }
}

/// The completer of the card's reads.
#[derive(Default)]
pub(super) struct Completer {
    pending: Vec<PendingRead>,
    spare: Vec<Vec<u8>>,
    sender: Sender,
    /// To be sent once more.
    surplus: Option<(Header, Vec<u8>)>,
}

impl Completer {
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn add(&mut self, read: PendingRead) {
        self.pending.push(read);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && !self.sender.is_active() && self.surplus.is_none()
    }

    pub(super) fn is_outstanding(&self, tag: u8) -> bool {
        self.pending.iter().any(|r| r.tag == tag)
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        if self.sender.is_active() || self.surplus.is_some() {
            return Some(0);
        }
        self.pending.iter().map(|r| r.ready_at).min()
    }

    /// One cycle of the completion channel; the header of a completion that was begun.
    pub(super) fn drive(
        &mut self,
        now: u64,
        config: &RootComplexConfig,
        rng: &mut Rng,
        width: usize,
        ready: bool,
        input: &mut Inputs,
    ) -> Option<Header> {
        let mut begun = None;
        if !self.sender.is_active() {
            begun = self.begin(now, config, rng);
        }
        let stall = rng.chance(config.stalls.completions);
        self.sender.drive(&mut input.rc, width, ready, stall);
        begun
    }

    fn begin(&mut self, now: u64, config: &RootComplexConfig, rng: &mut Rng) -> Option<Header> {
        if let Some((header, payload)) = self.surplus.take() {
            self.sender.start(header, &payload);
            return Some(header);
        }
        let index = self.choose(now, config, rng)?;
        let read = &mut self.pending[index];
        let (header, bytes) = completion(read, config, rng);
        self.sender.start(header, &read.image[bytes.clone()]);
        if tlp::is_poisoned(&header) {
            self.sender.payload.iter_mut().for_each(|b| *b = !*b);
        }
        let data = tlp::payload_bytes(&header) != 0;
        let over = !data || read.done >= read.count || read.fault == Some(Fault::LostTail);
        if over {
            if read.fault == Some(Fault::Surplus) {
                self.surplus = Some((header, read.image[bytes].to_vec()));
            }
            // Order among the others stays that of the requests.
            let mut read = self.pending.remove(index);
            read.image.clear();
            self.spare.push(read.image);
        } else if read.fault == Some(Fault::WrongTag) {
            read.fault = None;
        }
        Some(header)
    }

    fn choose(&self, now: u64, config: &RootComplexConfig, rng: &mut Rng) -> Option<usize> {
        if !config.reorder {
            return self
                .pending
                .first()
                .filter(|r| r.ready_at <= now)
                .map(|_| 0);
        }
        let ready = self.pending.iter().filter(|r| r.ready_at <= now).count();
        let nth = rng.below(ready as u64) as usize;
        self.pending
            .iter()
            .enumerate()
            .filter(|(_, r)| r.ready_at <= now)
            .nth(nth)
            .map(|(i, _)| i)
    }
}

/// The next completion of a read: its header and the bytes of the image that go with it.
fn completion(
    read: &mut PendingRead,
    config: &RootComplexConfig,
    rng: &mut Rng,
) -> (Header, std::ops::Range<usize>) {
    let status = match read.fault {
        Some(Fault::UnsupportedRequest) => 1,
        Some(Fault::CompleterAbort) => 4,
        Some(Fault::AbortTail) if read.done > 0 => 4,
        _ => 0,
    };
    let address = read.first + read.done as u64;
    let mut fields = CompletionFields {
        completer: ROOT_ID,
        requester: read.requester,
        tag: read.tag,
        status,
        byte_count: read.count - read.done,
        lower_address: (address & 0x7f) as u8,
        length_dw: 0,
    };
    if status != 0 {
        // Without data the lower address is reserved.
        fields.lower_address = 0;
        return (tlp::completion(&fields), 0..0);
    }
    let bytes = chunk(address, read.count - read.done, config, rng);
    let skip = (read.first & 3) as usize;
    let start = (skip + read.done) & !3;
    let end = (skip + read.done + bytes).next_multiple_of(4);
    fields.length_dw = (end - start) / 4;
    if read.fault == Some(Fault::WrongTag) {
        fields.tag = read.tag.wrapping_add(0x80);
        return (tlp::completion(&fields), start..end);
    }
    read.done += bytes;
    let mut header = tlp::completion(&fields);
    if read.fault == Some(Fault::Poisoned) {
        tlp::poison(&mut header);
    }
    (header, start..end)
}

/// Bytes of the next completion: up to a multiple of RCB, at most the largest completion.
fn chunk(address: u64, left: usize, config: &RootComplexConfig, rng: &mut Rng) -> usize {
    let rcb = config.rcb as u64;
    let furthest = (address + config.max_completion as u64) / rcb * rcb;
    let nearest = (address / rcb + 1) * rcb;
    let end = if config.random_split && furthest > nearest {
        nearest + rng.below((furthest - nearest) / rcb + 1) * rcb
    } else {
        furthest.max(nearest)
    };
    left.min((end - address) as usize)
}
