//! What is delivered, and the header of a unit.

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, HeaderFlags, gso};
use zerocopy::IntoBytes;

use super::head::PSH;
use super::mask::{WINDOW, Window};
use super::table::Flow;
use crate::offload::checksum::{fold, pseudo, sum};

/// Bytes of what is written in front of a unit's payload: the virtio header and all headers.
pub(super) const FRONT: usize = HEADER_LEN + WINDOW;

/// Who knows that a delivered frame's checksums are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The virtio header tells, as the card wrote it.
    Device,
    /// They were verified here.
    Here,
    /// All segments of the unit were verified; its own checksum is partial.
    Unit,
}

/// A frame to be delivered: several segments, or what the card received.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The virtio header.
    pub header: NetHeader,
    /// Bytes of the frame.
    pub len: u32,
    /// Segments, at least 1.
    pub segments: u16,
    /// What is known of its checksums.
    pub verified: Verified,
    /// Receive buffers.
    pub buffers: u16,
    /// The first of them.
    pub(super) first: u16,
}

/// The headers of a unit of several segments, written behind the virtio header into `front`; `window`
/// has those of the segment that would come next.
pub(super) fn headers(flow: &Flow, window: &Window, front: &mut [u8; FRONT]) -> NetHeader {
    let (ip, tcp) = (usize::from(flow.ip), usize::from(flow.tcp));
    let header = NetHeader {
        flags: HeaderFlags::NEEDS_CSUM.bits(),
        gso_type: if flow.v6 { gso::TCPV6 } else { gso::TCPV4 },
        hdr_len: u16::from(flow.headers).into(),
        gso_size: flow.mss.into(),
        csum_start: u16::from(flow.tcp).into(),
        csum_offset: 16.into(),
        num_buffers: flow.parts.into(),
    };
    let (virtio, bytes) = front.split_at_mut(HEADER_LEN);
    virtio.copy_from_slice(header.as_bytes());
    bytes.copy_from_slice(&window.0);
    let mut put = |at: usize, value: u16| {
        if let Some(place) = bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    };
    let packet = flow.len as usize - ip;
    // What the first segment had.
    let payload = flow.len - u32::from(flow.headers);
    let seq = u32::from_be_bytes(window.array(tcp + 4)).wrapping_sub(payload);
    put(tcp + 4, (seq >> 16) as u16);
    put(tcp + 6, seq as u16);
    // At most 65,535 bytes of IP packet are held.
    if flow.v6 {
        put(ip + 4, (packet - 40) as u16);
    } else {
        put(ip + 2, packet as u16);
        put(ip + 4, window.half(ip + 4).wrapping_sub(flow.segments));
        put(ip + 10, 0);
    }
    let addresses = if flow.v6 {
        ip + 8..ip + 40
    } else {
        ip + 12..ip + 20
    };
    let partial = pseudo(&window.0[addresses], 6, flow.len as usize - tcp);
    put(tcp + 16, fold(partial));
    if !flow.v6 {
        let check = !fold(sum(&bytes[ip..ip + 20]));
        bytes[ip + 10..ip + 12].copy_from_slice(&check.to_be_bytes());
    }
    if flow.push {
        bytes[tcp + 13] |= PSH;
    }
    header
}
