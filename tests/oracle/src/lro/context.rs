//! What is held of one flow, and the rules that compare a segment with it.

use super::cause::Cause;
use super::classify::{Candidate, Layout};
use super::{Config, Profile, Unit};
use crate::header::{DATA_VALID, Header, NEEDS_CSUM, gso};
use crate::segment::flag;
use crate::sum::{fold, sum};

/// NOP, NOP, time stamps: the one layout of options that the relaxed profile looks into.
const STAMPS: [u8; 4] = [1, 1, 8, 10];

/// An open unit.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub key: Vec<u8>,
    pub queue: u16,
    /// When its first segment came.
    pub opened: u64,
    /// When its last segment came.
    pub last: u64,
    /// Buffers that it has taken.
    pub buffers: usize,
    at: Layout,
    /// The first frame and the payload of the others. Its header is the first's; what the relaxed
    /// profile takes from later ones is in it already.
    frame: Vec<u8>,
    segments: usize,
    /// Payload of the first segment; with the relaxed profile of the largest.
    size: usize,
    /// Time stamp of the last segment, if the options are those.
    stamp: Option<u32>,
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) << 16 | u32::from(half(bytes, at + 2))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Whether `a` is before `b` on the circle of 32 bits.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn stamp(frame: &[u8], at: &Layout) -> Option<u32> {
    let options = &frame[at.tcp + 20..at.payload];
    (options.len() == 12 && options[..4] == STAMPS).then(|| word(options, 4))
}

/// Whether a segment has PSH, which ends a unit (row 18).
pub(super) fn pushes(candidate: &Candidate, frame: &[u8]) -> bool {
    half(frame, candidate.at.tcp + 12) & flag::PSH != 0
}

impl Context {
    pub fn open(now: u64, queue: u16, candidate: Candidate, frame: &[u8], buffers: usize) -> Self {
        Self {
            queue,
            opened: now,
            last: now,
            buffers,
            frame: frame.to_vec(),
            segments: 1,
            size: frame.len() - candidate.at.payload,
            stamp: stamp(frame, &candidate.at),
            at: candidate.at,
            key: candidate.key,
        }
    }

    /// The addresses of its flow.
    pub fn addresses(&self) -> &[u8] {
        &self.frame[self.at.addresses()]
    }

    /// Buffers that it takes with the payload of `frame` merged.
    pub fn buffers_with(&self, candidate: &Candidate, frame: &[u8], config: &Config) -> usize {
        config.buffers(self.frame.len() + frame.len() - candidate.at.payload)
    }

    /// Why a segment of the same flow cannot be appended: the first difference by the order of
    /// [`Cause`]. Rows 4 to 8, 16, 22, 24 to 28, 30 to 35 and 37 to 39.
    pub fn refuses(
        &self,
        queue: u16,
        candidate: &Candidate,
        frame: &[u8],
        config: &Config,
    ) -> Option<Cause> {
        if queue != self.queue {
            return Some(Cause::Moved);
        }
        if candidate.key != self.key {
            return Some(Cause::Tag);
        }
        if frame[..12] != self.frame[..12] {
            return Some(Cause::Mac);
        }
        let network = self.network(frame, config);
        let transport = || self.transport(candidate, frame, config);
        network
            .or_else(transport)
            .or_else(|| self.limits(candidate, frame, config))
    }

    fn network(&self, frame: &[u8], config: &Config) -> Option<Cause> {
        let ip = self.at.ip;
        let (held, new) = (&self.frame[ip..], &frame[ip..]);
        let relaxed = config.profile == Profile::Relaxed;
        let ttl = if self.at.v6 { 7 } else { 8 };
        if self.at.v6 {
            let differ = word(held, 0) ^ word(new, 0);
            if differ & 0x0ff0_0000 != 0 {
                return Some(Cause::Class);
            }
            if differ & 0x000f_ffff != 0 {
                return Some(Cause::Label);
            }
        } else {
            if held[1] != new[1] {
                return Some(Cause::Class);
            }
            if half(held, 6) != half(new, 6) {
                return Some(Cause::DontFragment);
            }
        }
        (held[ttl] != new[ttl] && !relaxed).then_some(Cause::Ttl)
    }

    fn transport(&self, candidate: &Candidate, frame: &[u8], config: &Config) -> Option<Cause> {
        let (held, new) = (&self.frame[self.at.tcp..], &frame[candidate.at.tcp..]);
        let relaxed = config.profile == Profile::Relaxed;
        if (half(held, 12) ^ half(new, 12)) & !flag::PSH != 0 {
            return Some(Cause::Flags);
        }
        if half(held, 14) != half(new, 14) && !relaxed {
            return Some(Cause::Window);
        }
        if half(held, 18) != half(new, 18) {
            return Some(Cause::Urgent);
        }
        let (ack, now) = (word(held, 8), word(new, 8));
        if ack != now && (!relaxed || before(now, ack)) {
            return Some(Cause::Ack);
        }
        // Equal data offsets: options of equal length.
        let header = 20..self.at.payload - self.at.tcp;
        let refused = match (self.stamp, stamp(frame, &candidate.at)) {
            (Some(last), Some(now)) if relaxed => before(now, last),
            _ => held[header.clone()] != new[header],
        };
        if refused {
            return Some(Cause::Options);
        }
        let carried = (self.frame.len() - self.at.payload) as u32;
        if word(new, 4) != word(held, 4).wrapping_add(carried) {
            return Some(Cause::Sequence);
        }
        let id = |frame: &[u8]| half(frame, self.at.ip + 4);
        let next = id(&self.frame).wrapping_add(self.segments as u16);
        (!self.at.v6 && id(frame) != next).then_some(Cause::Id)
    }

    fn limits(&self, candidate: &Candidate, frame: &[u8], config: &Config) -> Option<Cause> {
        let payload = frame.len() - candidate.at.payload;
        if payload > self.size && config.profile == Profile::Strict {
            return Some(Cause::Larger);
        }
        if self.frame.len() + payload - self.at.ip > config.max_bytes {
            return Some(Cause::Length);
        }
        let buffers = self.buffers_with(candidate, frame, config);
        (buffers > config.max_buffers).then_some(Cause::Buffers)
    }

    /// Appends a segment that is not [refused](Self::refuses), and tells why that ends the unit, if
    /// it does (rows 18 and 36).
    pub fn append(
        &mut self,
        now: u64,
        candidate: &Candidate,
        frame: &[u8],
        config: &Config,
    ) -> Option<Cause> {
        self.buffers = self.buffers_with(candidate, frame, config);
        let payload = &frame[candidate.at.payload..];
        let size = self.size;
        if config.profile == Profile::Relaxed {
            self.take_latest(frame);
            self.size = size.max(payload.len());
        }
        self.frame.extend(payload);
        self.segments += 1;
        self.last = now;
        if pushes(candidate, frame) {
            self.frame[self.at.tcp + 13] |= flag::PSH as u8;
            return Some(Cause::Push);
        }
        let short = payload.len() < size && config.profile == Profile::Strict;
        short.then_some(Cause::Smaller)
    }

    /// The relaxed profile: least time to live, last window, acknowledgement and echoed time stamp.
    fn take_latest(&mut self, frame: &[u8]) {
        let ttl = self.at.ip + if self.at.v6 { 7 } else { 8 };
        self.frame[ttl] = self.frame[ttl].min(frame[ttl]);
        let tcp = self.at.tcp;
        let mut take = |at: std::ops::Range<usize>| {
            self.frame[at.clone()].copy_from_slice(&frame[at]);
        };
        take(tcp + 8..tcp + 12);
        take(tcp + 14..tcp + 16);
        if self.stamp.is_some() {
            take(tcp + 28..tcp + 32);
            self.stamp = stamp(frame, &self.at);
        }
    }

    /// What is delivered. One segment is the frame as it came.
    pub fn close(self, now: u64, cause: Cause) -> Unit {
        let Self { at, mut frame, .. } = self;
        let mut header = Header {
            flags: DATA_VALID,
            num_buffers: self.buffers as u16,
            ..Header::default()
        };
        if self.segments > 1 {
            let (total, tcp) = (frame.len() - at.ip, frame.len() - at.tcp);
            if at.v6 {
                put(&mut frame, at.ip + 4, (total - 40) as u16);
            } else {
                put(&mut frame, at.ip + 2, total as u16);
                put(&mut frame, at.ip + 10, 0);
                let check = !fold(sum(&frame[at.ip..at.tcp]));
                put(&mut frame, at.ip + 10, check);
            }
            let pseudo = fold(sum(&frame[at.addresses()]) + 6 + tcp as u64);
            put(&mut frame, at.tcp + 16, pseudo);
            header = Header {
                flags: NEEDS_CSUM,
                gso_type: if at.v6 { gso::TCPV6 } else { gso::TCPV4 },
                hdr_len: at.payload as u16,
                gso_size: self.size as u16,
                csum_start: at.tcp as u16,
                csum_offset: 16,
                ..header
            };
        }
        Unit {
            at: now,
            queue: self.queue,
            header,
            frame,
            segments: self.segments,
            cause: Some(cause),
        }
    }
}
