//! What is delivered, and the header of a unit.

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, HeaderFlags, gso};
use zerocopy::IntoBytes;

use super::head::PSH;
use super::mask::{WINDOW, Window};
use super::table::Flow;

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
    /// Where their list begins.
    pub(super) first: usize,
}

/// The headers of a unit of several segments, written behind the virtio header into `front`; `next`
/// has those of the segment that would come next.
#[inline]
pub(super) fn headers(flow: &Flow, next: &Window, front: &mut [u8; FRONT]) -> NetHeader {
    let header = NetHeader {
        flags: HeaderFlags::NEEDS_CSUM.bits(),
        gso_type: if flow.v6 { gso::TCPV6 } else { gso::TCPV4 },
        hdr_len: u16::from(flow.headers).into(),
        gso_size: flow.mss.into(),
        csum_start: u16::from(flow.tcp).into(),
        csum_offset: 16.into(),
        num_buffers: u16::from(flow.parts).into(),
    };
    let (virtio, bytes) = front.split_at_mut(HEADER_LEN);
    virtio.copy_from_slice(header.as_bytes());
    bytes.copy_from_slice(&next.0);
    // At most 65,535 bytes of IP packet are held.
    let packet = (flow.len - u32::from(flow.ip)) as u16;
    // What the first segment had.
    let seq = flow.seq.wrapping_sub(flow.len - u32::from(flow.headers));
    let rest = &mut bytes[usize::from(flow.ip) % WINDOW..];
    if flow.v6 {
        if let Some(bytes) = rest.first_chunk_mut::<{ 40 + TCP }>() {
            let packet = packet.wrapping_sub(40);
            put(bytes, 4, packet.to_be_bytes());
            finish(bytes, words::<8>(bytes, 8), 40, packet, seq, flow.push);
        }
    } else if let Some(bytes) = rest.first_chunk_mut::<{ 20 + TCP }>() {
        put(bytes, 2, packet.to_be_bytes());
        let id = ((flow.fields >> 48) as u16).wrapping_sub(flow.segments.into());
        put(bytes, 4, id.to_be_bytes());
        put(bytes, 10, [0; 2]);
        let check = !folded(words::<5>(bytes, 0));
        put(bytes, 10, check.to_ne_bytes());
        let packet = packet.wrapping_sub(20);
        finish(bytes, words::<2>(bytes, 12), 20, packet, seq, flow.push);
    }
    header
}

/// Bytes of a TCP header up to its checksum.
const TCP: usize = 18;

#[inline(always)]
fn put<const N: usize>(bytes: &mut [u8; N], at: usize, value: [u8; 2]) {
    (bytes[at], bytes[at + 1]) = (value[0], value[1]);
}

/// Makes the TCP header at `at` that of the unit: `addresses` is their sum, `len` what TCP header and
/// payload have.
#[inline(always)]
fn finish<const N: usize>(
    bytes: &mut [u8; N],
    addresses: u64,
    at: usize,
    len: u16,
    seq: u32,
    push: bool,
) {
    bytes[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
    if push {
        bytes[at + 13] |= PSH;
    }
    let pseudo = addresses + u64::from(6_u16.to_be()) + u64::from(len.to_be());
    put(bytes, at + 16, folded(pseudo).to_ne_bytes());
}

/// The sum of some words of 32 bits in the order of bytes that the machine has: a one's complement
/// sum does not care.
#[inline(always)]
pub(super) fn words<const COUNT: usize>(bytes: &[u8], from: usize) -> u64 {
    let mut total = 0;
    for word in bytes[from..from + 4 * COUNT].chunks_exact(4) {
        total += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    total
}

/// Folds a sum of less than 2^16 words.
#[inline(always)]
pub(super) fn folded(total: u64) -> u16 {
    // Less than 2^32 + 2^16, then less than 2^17, then at most 2^16.
    let total = (total >> 32) + (total & 0xffff_ffff);
    let total = (total >> 16) + (total & 0xffff);
    let total = (total >> 16) + (total & 0xffff);
    (total + (total >> 16)) as u16
}
