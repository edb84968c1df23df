//! Checksums of segments that the card did not verify, summed in the receive buffers.

use super::head::Segment;
use super::mask::Window;
use super::{Buffers, Part};
use crate::offload::checksum::{fold, pseudo, sum};
use crate::pci::PciError;

/// Bytes that are copied and summed at a time.
pub(super) const PIECE: usize = 2048;

/// True if the TCP checksum of a segment is right. The packet ends with the frame.
pub(super) fn is_right<B: Buffers>(
    memory: &B,
    window: &Window,
    segment: &Segment,
    parts: &[Part],
    piece: &mut [u8; PIECE],
) -> Result<bool, PciError> {
    let (ip, tcp) = (usize::from(segment.ip), usize::from(segment.tcp));
    let headers = usize::from(segment.headers);
    let addresses = if segment.v6 {
        ip + 8..ip + 40
    } else {
        ip + 12..ip + 20
    };
    let len = headers - tcp + usize::from(segment.payload);
    let mut total = pseudo(&window.0[addresses], 6, len) + sum(&window.0[tcp..headers]);
    // The first part has all headers.
    let mut skip = headers;
    let mut odd = false;
    for part in parts {
        let mut at = usize::from(part.skip) + skip;
        let end = part.len as usize;
        skip = 0;
        while at < end {
            let bytes = &mut piece[..(end - at).min(PIECE)];
            memory.read(part.buffer, at, bytes)?;
            let part = fold(sum(bytes));
            total += u64::from(if odd { part.swap_bytes() } else { part });
            odd ^= bytes.len() % 2 == 1;
            at += bytes.len();
        }
    }
    Ok(fold(total) == 0xffff)
}
