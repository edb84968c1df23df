//! What a received frame means to the flows that are held.
//!
//! Everything is decided on a copy of the frame's first bytes: the card may change the buffer at any
//! time. No length is believed before it was compared with what is there.

use super::mask::{WINDOW, Window, row};
use super::unit::{folded, words};
use crate::offload::checksum::{fold, sum};

/// TCP flags.
pub(super) const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

const TCP: u8 = 6;
const ETHERNET: usize = 14;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
/// "Don't fragment" and the reserved bit are no fragment.
const FRAGMENT: u16 = 0x3fff;
/// Extension headers, which may hide TCP: hop-by-hop, routing, fragment, authentication, destination,
/// mobility, HIP, shim6.
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
/// A sum never comes out as this, though it verifies: one of its summands is not 0.
pub(super) const NOT_CANONICAL: u16 = 0xffff;

/// What a frame means that is no segment that may be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// It is not of TCP: nothing held is concerned.
    NotTcp,
    /// Its addresses cannot be believed, or read: everything held goes first.
    Broken,
    /// It may be of any flow between its two addresses.
    Pair {
        /// Where the IP header is.
        ip: usize,
        /// Its version.
        v6: bool,
    },
    /// Of this flow, and never merged.
    Alone {
        /// Flow.
        tag: u32,
    },
}

/// A segment that may be merged if its checksum is right, as its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Flow.
    pub tag: u32,
    /// Sequence number.
    pub seq: u32,
    /// Identification, fragment, time to live, protocol and checksum of the IPv4 header, which is
    /// right; else 0.
    pub fields: u64,
    /// Bytes of payload, at least 1.
    pub payload: u16,
    /// Row of the masks.
    pub row: u8,
    /// Where the IP header is.
    pub ip: u8,
    /// Where the TCP header is.
    pub tcp: u8,
    /// Where the payload is.
    pub headers: u8,
    /// By its ports ([`hint`]).
    pub hint: u8,
    /// IP version 6.
    pub v6: bool,
    /// PSH is set.
    pub push: bool,
}

/// A number below 64 for the ports of a flow, as they stand in the frame.
#[inline(always)]
pub(super) fn hint(from: u16, to: u16) -> usize {
    ((u32::from(from) + 2 * u32::from(to)).wrapping_mul(0x9e37_79b1) >> 26) as usize
}

#[inline(always)]
fn ports(window: &Window, at: usize) -> u32 {
    u32::from_ne_bytes(window.array(at))
}

#[inline(always)]
fn v4_addresses(window: &Window, ip: usize) -> u64 {
    u64::from_ne_bytes(window.array(ip + 12))
}

#[inline(always)]
fn v6_addresses(window: &Window, ip: usize) -> u64 {
    let [a, b, c, d] = [8, 16, 24, 32].map(|at| u64::from_ne_bytes(window.array(ip + at)));
    // Rotated, so that no two halves of one address, or the two addresses, cancel out.
    a ^ b.rotate_left(13) ^ c.rotate_left(29) ^ d.rotate_left(43)
}

/// Looks at a frame of `len` bytes, the first `there` of which (at most [`WINDOW`]) are in `window`.
#[inline(always)]
pub(super) fn read(window: &Window, there: usize, len: usize) -> Result<Segment, Other> {
    if there < ETHERNET {
        return Err(Other::NotTcp);
    }
    // With numbers that the compiler knows, as nearly all frames are.
    match window.half(ETHERNET - 2) {
        0x0800 => v4(window, there, len, ETHERNET, 0),
        0x86dd => v6(window, there, len, ETHERNET, 0),
        0x8100 | 0x88a8 => tagged(window, there, len),
        _ => Err(Other::NotTcp),
    }
}

#[inline(never)]
fn tagged(window: &Window, there: usize, len: usize) -> Result<Segment, Other> {
    let (mut ip, mut tags) = (ETHERNET, 0);
    let mut kind = window.half(ip - 2);
    while matches!(kind, 0x8100 | 0x88a8) && tags < 2 {
        ip += 4;
        tags += 1;
        kind = window.half(ip - 2);
    }
    if there < ip {
        return Err(Other::NotTcp);
    }
    match kind {
        0x0800 => v4(window, there, len, ip, tags),
        0x86dd => v6(window, there, len, ip, tags),
        _ => Err(Other::NotTcp),
    }
}

#[inline(always)]
fn v4(window: &Window, there: usize, len: usize, ip: usize, tags: usize) -> Result<Segment, Other> {
    if window.0[ip % WINDOW] != 0x45 || there < ip + IPV4_LEN {
        return unusual_v4(window, there, ip);
    }
    let header: [u8; IPV4_LEN] = window.array(ip);
    if folded(words::<5>(&header, 0)) != 0xffff {
        return Err(Other::Broken);
    }
    if header[9] != TCP {
        return Err(Other::NotTcp);
    }
    if window.half(ip + 6) & FRAGMENT != 0 {
        return Err(Other::Pair { ip, v6: false });
    }
    let end = ip + usize::from(window.half(ip + 2));
    let canonical = window.half(ip + 10) != NOT_CANONICAL;
    let place = Place {
        ip,
        tags,
        v6: false,
        end,
        canonical,
    };
    tcp(window, there, len, &place, v4_addresses(window, ip))
}

/// Options, or what is no IPv4 header at all.
#[cold]
fn unusual_v4(window: &Window, there: usize, ip: usize) -> Result<Segment, Other> {
    let first = window.0[ip % WINDOW];
    if there <= ip || first >> 4 != 4 {
        return Err(Other::NotTcp);
    }
    let len = 4 * usize::from(first & 15);
    if len < IPV4_LEN || there < ip + len {
        return Err(Other::Broken);
    }
    if fold(sum(&window.0[ip..ip + len])) != 0xffff {
        return Err(Other::Broken);
    }
    match window.0[ip + 9] {
        TCP => Err(Other::Pair { ip, v6: false }),
        _ => Err(Other::NotTcp),
    }
}

#[inline(always)]
fn v6(window: &Window, there: usize, len: usize, ip: usize, tags: usize) -> Result<Segment, Other> {
    if there <= ip || window.0[ip % WINDOW] >> 4 != 6 {
        return Err(Other::NotTcp);
    }
    if there < ip + IPV6_LEN {
        return Err(Other::Broken);
    }
    match window.0[(ip + 6) % WINDOW] {
        TCP => {}
        next if EXTENSIONS.contains(&next) => return Err(Other::Pair { ip, v6: true }),
        _ => return Err(Other::NotTcp),
    }
    let end = ip + IPV6_LEN + usize::from(window.half(ip + 4));
    let place = Place {
        ip,
        tags,
        v6: true,
        end,
        canonical: true,
    };
    tcp(window, there, len, &place, v6_addresses(window, ip))
}

/// What the IP header says of the TCP header behind it.
struct Place {
    ip: usize,
    tags: usize,
    v6: bool,
    /// Where the packet ends by its own length.
    end: usize,
    canonical: bool,
}

#[inline(always)]
fn tcp(
    window: &Window,
    there: usize,
    len: usize,
    place: &Place,
    addresses: u64,
) -> Result<Segment, Other> {
    let &Place { ip, tags, v6, .. } = place;
    let at = ip + if v6 { IPV6_LEN } else { IPV4_LEN };
    let pair = Err(Other::Pair { ip, v6 });
    if place.end > len || there < at + TCP_LEN {
        return pair;
    }
    let words = usize::from(window.0[(at + 12) % WINDOW] >> 4);
    let headers = at + 4 * words;
    if words < 5 || headers > place.end {
        return pair;
    }
    let ports = ports(window, at);
    let vlan = match tags {
        0 => 0,
        1 => u64::from(u32::from_ne_bytes(window.array(12))) << 32 | 1,
        _ => u64::from_ne_bytes(window.array(12)).rotate_left(7) ^ 2,
    };
    let tag = tag(addresses, ports, vlan);
    let flags = window.0[(at + 13) % WINDOW];
    let sound = place.canonical && window.half(at + 16) != NOT_CANONICAL;
    // Padding, headers that go on in the next buffer, no payload, SYN, FIN, RST, URG, CWR, no ACK.
    let alone = place.end != len
        || headers > there
        || headers == place.end
        || flags & !(PSH | ECE) != ACK
        || !sound;
    if alone {
        return Err(Other::Alone { tag });
    }
    Ok(Segment {
        tag,
        seq: u32::from_be_bytes(window.array(at + 4)),
        fields: if v6 {
            0
        } else {
            u64::from_be_bytes(window.array(ip + 4))
        },
        // An IP length has 16 bits.
        payload: (place.end - headers) as u16,
        row: row(tags, v6, words) as u8,
        ip: ip as u8,
        tcp: at as u8,
        headers: headers as u8,
        hint: hint(
            u16::from_ne_bytes(window.array(at)),
            u16::from_ne_bytes(window.array(at + 2)),
        ) as u8,
        v6,
        push: flags & PSH != 0,
    })
}

/// A number for a flow: its addresses, ports and VLAN tags. Flows of one number are taken for one,
/// which merges less but nothing wrong: whether two segments fit is decided by all bytes.
#[inline(always)]
fn tag(addresses: u64, ports: u32, vlan: u64) -> u32 {
    let mixed = (addresses ^ u64::from(ports).rotate_left(24) ^ vlan)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(u64::from(ports) << 32);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 32) as u32
}
