//! The rules that need nothing but the arriving frame.

use super::cause::Cause;
use crate::frames::verdict;
use crate::header::Header;
use crate::segment::flag;
use crate::sum::{fold, sum};

/// What a frame asks for, before anything that is held is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Not of a flow that is ever held: it goes on alone.
    Pass,
    /// It goes on alone, behind all that is held for its queue: none of its fields can be trusted.
    PassQueue(Cause),
    /// It goes on alone, behind all flows between these addresses: which it is of cannot be told.
    PassAddresses(Cause, Vec<u8>),
    /// It goes on alone, behind what is held of its flow.
    PassFlow(Cause, Vec<u8>),
    /// It may be merged.
    Candidate(Candidate),
}

/// A segment that may be merged: sound, verified, with payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What tells its flow: VLAN tags, version, addresses and ports.
    pub key: Vec<u8>,
    /// Where its headers are.
    pub at: Layout,
}

/// Offsets of a segment's headers. Those of IP have no options and no extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub v6: bool,
    pub ip: usize,
    pub tcp: usize,
    pub payload: usize,
}

impl Layout {
    /// Where the addresses are.
    pub fn addresses(&self) -> std::ops::Range<usize> {
        self.ip + if self.v6 { 8 } else { 12 }..self.tcp
    }
}

/// Extension headers of IPv6 in front of what may be TCP (IANA, "IPv6 Extension Header Types",
/// without ESP, which hides what it carries, and the two for experiments).
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
const TCP: u8 = 6;
/// With any of these a segment is never merged.
const CONTROL: u16 = flag::FIN | flag::SYN | flag::RST | flag::URG | flag::CWR;

/// Rows 1 to 3, 9 to 15, 19 to 21, 23 and 29, in the order in which a parser meets them. `room` is
/// how many bytes the first descriptor of a buffer has, virtio header included.
pub(super) fn classify(frame: &[u8], room: usize) -> Class {
    let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);

    // Row 1: up to two VLAN tags, then IPv4 or IPv6.
    let mut ip = 14;
    while ip < 22 && frame.len() >= ip && matches!(half(ip - 2), 0x8100 | 0x88a8) {
        ip += 4;
    }
    if frame.len() <= ip {
        return Class::Pass;
    }
    let v6 = match (half(ip - 2), frame[ip] >> 4) {
        (0x0800, 4) => false,
        (0x86dd, 6) => true,
        _ => return Class::Pass,
    };

    // Row 12: can the header be trusted at all?
    let words = usize::from(frame[ip] & 15);
    let header = if v6 { 40 } else { 4 * words };
    if frame.len() < ip + header || (!v6 && words < 5) {
        return Class::PassQueue(Cause::Untrusted);
    }
    if !v6 && fold(sum(&frame[ip..ip + header])) != 0xffff {
        return Class::PassQueue(Cause::Untrusted);
    }

    // Rows 1 and 44: not TCP. Rows 9, 2 and 3: TCP that may be anywhere, or in another packet.
    let at = Layout {
        v6,
        ip,
        tcp: ip + if v6 { 40 } else { 20 },
        payload: 0,
    };
    let behind = |cause| Class::PassAddresses(cause, frame[at.addresses()].to_vec());
    let protocol = frame[ip + if v6 { 6 } else { 9 }];
    if v6 && EXTENSIONS.contains(&protocol) {
        return behind(Cause::Extension);
    }
    if protocol != TCP {
        return Class::Pass;
    }
    if !v6 && words != 5 {
        return behind(Cause::IpOptions);
    }
    if !v6 && half(ip + 6) & 0x3fff != 0 {
        return behind(Cause::Fragment);
    }

    // Row 11: IP length against frame, header lengths against IP length.
    let end = ip
        + if v6 {
            40 + usize::from(half(ip + 4))
        } else {
            half(ip + 2).into()
        };
    if end > frame.len() || end < at.tcp + 20 {
        return behind(Cause::Malformed);
    }
    let header = 4 * usize::from(frame[at.tcp + 12] >> 4);
    if header < 20 || end < at.tcp + header {
        return behind(Cause::Malformed);
    }

    // From here on the flow is known.
    let at = Layout {
        payload: at.tcp + header,
        ..at
    };
    let key = [
        &frame[12..ip],
        &frame[at.addresses()],
        &frame[at.tcp..at.tcp + 4],
    ]
    .concat();
    let flags = half(at.tcp + 12) & 0x0fff;
    let cause = if end < frame.len() {
        Cause::Trailer
    } else if !verdict(frame).sum_ok {
        Cause::Sum
    } else if half(at.tcp + 16) == 0xffff || (!v6 && half(ip + 10) == 0xffff) {
        // The sums have addends that are not 0, so their complements are never all ones.
        Cause::Canonical
    } else if flags & CONTROL != 0 || flags & flag::ACK == 0 {
        Cause::Control
    } else if at.payload == end {
        Cause::Empty
    } else if Header::LEN + at.payload > room {
        Cause::FirstBuffer
    } else {
        return Class::Candidate(Candidate { key, at });
    };
    Class::PassFlow(cause, key)
}
