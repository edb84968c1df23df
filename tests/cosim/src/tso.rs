//! Transmission of TCP as stacks do it, in the steady state: in frames of up to 64 KB that the card cuts
//! into segments, from one buffer or scattered ones.

use ferronic::{DmaBuffer, PushResult, QueuePair, TxOffload, TxPart};
use ferronic_sim::root_complex::LinkStats;

use crate::card::{Card, PATIENCE};

/// Ethernet, IPv4, and TCP with time stamps.
pub const HEADERS: usize = 14 + 20 + 32;
/// Payload of a segment where the MTU is 1,500.
pub const GSO_SIZE: u16 = 1448;
/// The largest frame.
pub const FRAME: usize = 14 + 65_535;
/// A whole segment.
pub const SEGMENT: usize = HEADERS + GSO_SIZE as usize;
/// A frame of so many whole segments; of one, the card only completes the checksum.
pub const fn frame_of(segments: usize) -> usize {
    HEADERS + segments * GSO_SIZE as usize
}

/// Segments that the start of a measurement leaves out.
const WARM: usize = 300;

/// Where the driver has the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// Copied with the headers into its own buffers: eight descriptors in an indirect table.
    Copied,
    /// In one piece, read in place: a descriptor for the headers, one for it.
    Shared,
}

impl Buffers {
    /// As figures name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::Shared => "shared",
        }
    }
}

/// What must be reached of the data path's limit, in wire bytes.
pub fn bound(data_w: u32) -> Option<f64> {
    match data_w {
        64 => Some(0.95),
        512 => Some(0.85),
        _ => None,
    }
}

/// A frame of `len` bytes, headers included; its sums are for [`TxOffload`] to ask for.
pub fn frame(len: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0x9c, 0x40, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x18]);
    bytes.extend([0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(
        bytes.len(),
        HEADERS,
        "the headers are those that are counted"
    );
    bytes.extend((0..len - HEADERS).map(|i| (i * 7 + i / 251) as u8));
    // 65,535 is the longest.
    bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    bytes
}

/// Pushes until the ring is full.
fn fill(pair: &mut QueuePair, frame: &[u8], payload: Option<&DmaBuffer>, offload: TxOffload) {
    let (head, rest) = frame.split_at(HEADERS);
    loop {
        let rest = match payload {
            Some(buffer) => TxPart::Shared(buffer.slice(0, rest.len()).expect("it fits")),
            None => TxPart::Bytes(rest),
        };
        let pushed = pair.tx.push_parts(&[TxPart::Bytes(head), rest], offload);
        if pushed.expect("a sound request") == PushResult::Full {
            break;
        }
    }
    pair.tx.flush().expect("the device behaves");
    pair.tx.arm().expect("the device behaves");
}

/// What was measured.
pub struct Steady {
    /// Cycles.
    pub cycles: u64,
    /// Cycles that the frames of this time take on the data path.
    pub beats: u64,
    /// Segments.
    pub frames: usize,
    /// What passed over PCIe.
    pub link: LinkStats,
}

impl Steady {
    /// Of the cycles, those in which the data path could not have done more.
    pub fn share(&self) -> f64 {
        self.beats as f64 / self.cycles as f64
    }
}

/// Sends frames of `len` bytes with the ring kept full, and measures `count` segments of them, or as
/// many more as end with a frame. `card` waits for interrupts.
///
/// # Panics
/// When a segment is wrong, or nothing moves for [`PATIENCE`] cycles.
pub fn steady(card: &mut Card, len: usize, buffers: Buffers, count: usize) -> Steady {
    let mut frame = frame(len);
    let offload = match len {
        ..=SEGMENT => TxOffload::checksum(&mut frame).expect("TCP"),
        _ => TxOffload::segment(&mut frame[..HEADERS], len, GSO_SIZE).expect("TCP"),
    };
    let each = (len - HEADERS).div_ceil(GSO_SIZE.into());
    let (warm, count) = (WARM.next_multiple_of(each), count.next_multiple_of(each));
    let shared = card.device.buffer(len).expect("memory");
    shared.write(0, &frame[HEADERS..]).expect("it fits");
    let payload = (buffers == Buffers::Shared).then_some(&shared);
    let word = usize::from(card.device.window().expect("the card has one").data_bytes());
    let mut last = card.function.now();
    let mut begin: Option<(u64, LinkStats)> = None;
    let (mut sent, mut beats) = (0, 0);
    loop {
        fill(&mut card.pairs[0], &frame, payload, offload);
        card.device.poll();
        while let Some(out) = card.wire.take() {
            last = card.function.now();
            assert!(
                !out.aborted && out.data.len() <= SEGMENT,
                "a segment is wrong"
            );
            sent += 1;
            beats += out.data.len().div_ceil(word) as u64;
            if sent == warm {
                begin = Some((out.time, card.function.sim().root.stats));
                beats = 0;
            }
            if let Some((from, link)) = begin
                && sent == warm + count
            {
                return Steady {
                    cycles: out.time - from,
                    beats,
                    frames: count,
                    link: card.function.sim().root.stats.since(&link),
                };
            }
        }
        let silent = card.function.now() - last;
        assert!(silent < PATIENCE, "nothing moves after {sent} segments");
    }
}
