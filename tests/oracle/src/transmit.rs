//! What leaves for a transmitted buffer.

use crate::header::{Header, NEEDS_CSUM, Offloads, gso};
use crate::packet::{Packet, Protocol, parse};
use crate::sum::{fold, sum};

/// Smallest frame: an Ethernet header.
pub const MIN_FRAME: usize = 14;
/// Largest frame on the wire, without FCS.
pub const MAX_FRAME: usize = 9216;
/// Largest frame in memory: an IP packet of 65,535 bytes behind two VLAN tags.
const MAX_REQUEST: usize = 22 + 65_535;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Why nothing leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// No whole Ethernet header.
    Short,
    /// A frame, or the first segment, is larger than the card takes.
    Long,
    /// An offload that was not negotiated or cannot be done.
    Offload,
}

/// What becomes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// These frames leave, in this order.
    Sent(Vec<Vec<u8>>),
    /// Nothing leaves. Where several causes hold a card tells one of them.
    Dropped(Vec<Cause>),
}

/// What becomes of a whole buffer, virtio header included.
pub fn transmit_buffer(buffer: &[u8], offloads: Offloads) -> Outcome {
    match Header::read(buffer) {
        Some(header) => transmit(&header, &buffer[Header::LEN..], offloads),
        None => Outcome::Dropped(vec![Cause::Short]),
    }
}

/// What becomes of a frame with its virtio header, where `offloads` were negotiated (virtio 1.2,
/// "Packet Transmission" of the network device).
pub fn transmit(header: &Header, frame: &[u8], offloads: Offloads) -> Outcome {
    let most = if offloads.segments() {
        MAX_REQUEST
    } else {
        MAX_FRAME
    };
    if frame.len() < MIN_FRAME {
        return Outcome::Dropped(vec![Cause::Short]);
    }
    if frame.len() > most {
        return Outcome::Dropped(vec![Cause::Long]);
    }
    let mut causes = Vec::new();
    let frames = if header.gso_type == gso::NONE {
        if frame.len() > MAX_FRAME {
            causes.push(Cause::Long);
        }
        if header.flags & NEEDS_CSUM == 0 {
            vec![frame.to_vec()]
        } else {
            match complete(header, frame) {
                Some(frame) if offloads.csum => vec![frame],
                _ => {
                    causes.push(Cause::Offload);
                    Vec::new()
                }
            }
        }
    } else {
        let packet = parse(frame).filter(|packet| is_of_type(packet, header.gso_type));
        if let Some(packet) = packet
            && frame
                .len()
                .min(packet.payload + usize::from(header.gso_size))
                > MAX_FRAME
        {
            causes.push(Cause::Long);
        }
        match packet {
            Some(packet) if offloads.allows(header.gso_type) && header.gso_size > 0 => {
                segment(&packet, frame, usize::from(header.gso_size))
            }
            _ => {
                causes.push(Cause::Offload);
                Vec::new()
            }
        }
    };
    if causes.is_empty() {
        Outcome::Sent(frames)
    } else {
        Outcome::Dropped(causes)
    }
}

fn is_of_type(packet: &Packet, gso_type: u8) -> bool {
    match gso_type & !gso::ECN {
        gso::TCPV4 => packet.protocol == Protocol::Tcp && !packet.v6,
        gso::TCPV6 => packet.protocol == Protocol::Tcp && packet.v6,
        gso::UDP_L4 => packet.protocol == Protocol::Udp,
        _ => false,
    }
}

/// The sum over all from `csum_start` on, put at `csum_offset` from there. What the driver left at
/// that place, the sum of the pseudo header, is summed too. `None` if it is outside the frame.
pub(crate) fn complete(header: &Header, frame: &[u8]) -> Option<Vec<u8>> {
    let start = usize::from(header.csum_start);
    let place = start + usize::from(header.csum_offset);
    let mut frame = frame.to_vec();
    let mut check = !fold(sum(frame.get(start..)?));
    // A UDP sum of 0 means that there is none (RFC 768); its place tells UDP from others.
    if check == 0 && usize::from(header.csum_offset) == Protocol::Udp.sum_at() {
        check = 0xffff;
    }
    frame
        .get_mut(place..place + 2)?
        .copy_from_slice(&check.to_be_bytes());
    Some(frame)
}

/// Cuts a frame into segments of `size` bytes of payload. One of no payload is one segment.
pub(crate) fn segment(packet: &Packet, frame: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (headers, payload) = frame.split_at(packet.payload);
    let mut pieces: Vec<&[u8]> = payload.chunks(size).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let count = pieces.len();
    let mut segments = Vec::with_capacity(count);
    for (i, piece) in pieces.into_iter().enumerate() {
        let mut bytes = [headers, piece].concat();
        network(packet, &mut bytes, i);
        match packet.protocol {
            Protocol::Tcp => tcp(packet, &mut bytes, i * size, i == 0, i + 1 == count),
            Protocol::Udp => udp(packet, &mut bytes),
        }
        segments.push(bytes);
    }
    segments
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Length, and of IPv4 the identification and the header's sum.
fn network(packet: &Packet, bytes: &mut [u8], number: usize) {
    let ip = packet.ip;
    if packet.v6 {
        let length = bytes.len() - ip - 40;
        put(bytes, ip + 4, length as u16);
    } else {
        let length = bytes.len() - ip;
        put(bytes, ip + 2, length as u16);
        let id = half(bytes, ip + 4).wrapping_add(number as u16);
        put(bytes, ip + 4, id);
        put(bytes, ip + 10, 0);
        let header = 4 * usize::from(bytes[ip] & 15);
        let check = !fold(sum(&bytes[ip..ip + header]));
        put(bytes, ip + 10, check);
    }
}

/// Sequence number, flags and sum. `before` bytes of payload are in the segments before.
fn tcp(packet: &Packet, bytes: &mut [u8], before: usize, first: bool, last: bool) {
    let at = packet.transport;
    let sequence = &mut bytes[at + 4..at + 8];
    let number = sequence.iter().fold(0, |n, b| n << 8 | u32::from(*b));
    sequence.copy_from_slice(&number.wrapping_add(before as u32).to_be_bytes());
    if !first {
        bytes[at + 13] &= !CWR;
    }
    if !last {
        bytes[at + 13] &= !(FIN | PSH);
    }
    put(bytes, at + 16, 0);
    let check = !transport_sum(packet, bytes);
    put(bytes, at + 16, check);
}

/// Length and sum.
fn udp(packet: &Packet, bytes: &mut [u8]) {
    let at = packet.transport;
    let length = bytes.len() - at;
    put(bytes, at + 4, length as u16);
    put(bytes, at + 6, 0);
    let check = match !transport_sum(packet, bytes) {
        0 => 0xffff,
        check => check,
    };
    put(bytes, at + 6, check);
}

/// Sum over pseudo header (RFC 793, section 3.1; RFC 8200, section 8.1), header and payload.
fn transport_sum(packet: &Packet, bytes: &[u8]) -> u16 {
    let addresses = if packet.v6 {
        &bytes[packet.ip + 8..packet.ip + 40]
    } else {
        &bytes[packet.ip + 12..packet.ip + 20]
    };
    let rest = &bytes[packet.transport..];
    fold(sum(addresses) + u64::from(packet.protocol.number()) + rest.len() as u64 + sum(rest))
}
