//! The host's own requests: configuration accesses, register reads and writes.

use std::collections::VecDeque;

use crate::model::Inputs;
use crate::rng::Rng;
use crate::tlp::{self, Header, Kind};

use super::RootComplexConfig;
use super::checker::LinkLimits;
use super::completer::{ROOT_ID, Sender};

/// A request that waits for its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTag(u8);

/// How a request of the host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// 0 successful, 1 unsupported request, 4 completer abort.
    pub status: u8,
    /// Data from the first DW of the request on.
    pub data: [u8; 8],
}

#[derive(Debug)]
struct Outstanding {
    tag: u8,
    header: Header,
    completion: Option<Completion>,
    /// Limits in force once the completion is there.
    limits: Option<LinkLimits>,
}

struct Down {
    due: u64,
    header: Header,
    payload: [u8; 8],
}

/// The requester side of the root complex.
#[derive(Default)]
pub(super) struct Requester {
    queue: VecDeque<Down>,
    sender: Sender,
    outstanding: Vec<Outstanding>,
    next_tag: u8,
}

impl Requester {
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
            && !self.sender.is_active()
            && self.outstanding.iter().all(|o| o.completion.is_some())
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        if self.sender.is_active() {
            return Some(0);
        }
        self.queue.front().map(|down| down.due)
    }

    /// Posted requests that the card has not taken yet.
    pub(super) fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.sender.is_active())
    }

    pub(super) fn write(&mut self, due: u64, address: u64, data: &[u8]) {
        let (start, dws, enables) = tlp::cover(address, data.len());
        let mut payload = [0; 8];
        let skip = (address & 3) as usize;
        payload[skip..skip + data.len()].copy_from_slice(data);
        let header = tlp::memory(true, start, dws, enables, ROOT_ID, 0);
        self.queue.push_back(Down {
            due,
            header,
            payload,
        });
    }

    pub(super) fn read(&mut self, due: u64, address: u64, len: usize) -> RequestTag {
        let (start, dws, enables) = tlp::cover(address, len);
        self.request(due, [0; 8], None, |tag| {
            tlp::memory(false, start, dws, enables, ROOT_ID, tag)
        })
    }

    pub(super) fn configuration(
        &mut self,
        due: u64,
        target: u16,
        offset: u16,
        first_be: u8,
        write: Option<[u8; 4]>,
        limits: Option<LinkLimits>,
    ) -> RequestTag {
        let mut payload = [0; 8];
        if let Some(data) = write {
            payload[..4].copy_from_slice(&data);
        }
        self.request(due, payload, limits, |tag| {
            tlp::configuration(write.is_some(), target, offset, first_be, ROOT_ID, tag)
        })
    }

    /// A non-posted request as it is, for tests of what the card should refuse.
    pub(super) fn raw(&mut self, due: u64, mut header: Header, payload: [u8; 8]) -> RequestTag {
        self.request(due, payload, None, |tag| {
            header[1] = header[1] & 0xffff_00ff | u32::from(tag) << 8;
            header
        })
    }

    fn request(
        &mut self,
        due: u64,
        payload: [u8; 8],
        limits: Option<LinkLimits>,
        header: impl FnOnce(u8) -> Header,
    ) -> RequestTag {
        let tag = self.next_tag;
        self.next_tag = (self.next_tag + 1) % 32;
        let header = header(tag);
        // A request of long ago that nobody asked about makes room.
        self.outstanding.retain(|o| o.tag != tag);
        self.outstanding.push(Outstanding {
            tag,
            header,
            completion: None,
            limits,
        });
        self.queue.push_back(Down {
            due,
            header,
            payload,
        });
        RequestTag(tag)
    }

    pub(super) fn take(&mut self, tag: RequestTag) -> Option<Completion> {
        let index = self
            .outstanding
            .iter()
            .position(|o| o.tag == tag.0 && o.completion.is_some())?;
        self.outstanding.swap_remove(index).completion
    }

    pub(super) fn forget(&mut self, tag: RequestTag) {
        self.outstanding.retain(|o| o.tag != tag.0);
    }

    /// A completion of the card arrived. Gives the limits that are in force from now on, or what
    /// is wrong with it.
    pub(super) fn complete(
        &mut self,
        header: &Header,
        payload: &[u8],
        card: u16,
    ) -> Result<Option<LinkLimits>, &'static str> {
        if tlp::completion_requester(header) != ROOT_ID {
            return Err("a completion for another requester");
        }
        let tag = tlp::completion_tag(header);
        let request = self
            .outstanding
            .iter_mut()
            .find(|o| o.tag == tag && o.completion.is_none())
            .ok_or("a completion that nobody waits for")?;
        let status = tlp::completion_status(header);
        let asked = &request.header;
        let reads = matches!(tlp::kind(asked), Kind::MemRead | Kind::CfgRead);
        let data = tlp::payload_bytes(header);
        let mut wrong = None;
        if status == 0 && reads != (data != 0) {
            wrong = Some("data in a completion against the request's kind");
        } else if status == 0 && reads {
            let memory = tlp::kind(asked) == Kind::MemRead;
            let (first, count) = if memory {
                tlp::enabled_span(asked)
            } else {
                (0, 4)
            };
            if data != tlp::length_dw(asked) * 4 {
                wrong = Some("a completion of another length than the request");
            } else if tlp::completion_byte_count(header) != count {
                wrong = Some("a wrong byte count in a completion");
            } else if tlp::completion_lower_address(header) != (first & 0x7f) as u8 {
                wrong = Some("a wrong lower address in a completion");
            }
        }
        // Before the first configuration write the card does not know its id.
        let completer = (header[1] >> 16) as u16;
        if wrong.is_none() && completer != card && completer != 0 {
            wrong = Some("another completer id than the function's");
        }
        let mut bytes = [0; 8];
        let n = payload.len().min(8);
        bytes[..n].copy_from_slice(&payload[..n]);
        request.completion = Some(Completion {
            status,
            data: bytes,
        });
        match wrong {
            Some(rule) => Err(rule),
            None => Ok(request.limits.filter(|_| status == 0)),
        }
    }

    /// One cycle of the request channel; the header of a request that was begun.
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
        if !self.sender.is_active()
            && self.queue.front().is_some_and(|down| down.due <= now)
            && let Some(down) = self.queue.pop_front()
        {
            let bytes = tlp::payload_bytes(&down.header).min(8);
            self.sender.start(down.header, &down.payload[..bytes]);
            begun = Some(down.header);
        }
        let stall = rng.chance(config.stalls.requests);
        self.sender.drive(&mut input.rq, width, ready, stall);
        begun
    }
}
