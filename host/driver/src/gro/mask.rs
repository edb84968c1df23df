//! Which bits of its headers two segments of a unit have in common.
//!
//! What a re-segmenter makes anew may differ; everything else must be equal: that is the whole of
//! the strict profile's rules about single fields (MAC addresses, tags, DF, TTL, traffic class, flow
//! label, acknowledgement, window, flags, options). So one masked comparison decides them all.

/// Bytes at the start of a frame in which headers are looked for: two VLAN tags, IPv6 and a TCP
/// header with 40 bytes of options have 122.
pub(super) const WINDOW: usize = 128;
/// Words of a window.
const WORDS: usize = WINDOW / 8;
/// Words of headers without extensions: IPv4 with time stamps has 66 bytes, IPv6 without has 74.
const SHORT: usize = 10;
/// Lengths of a TCP header, in words of 4 bytes: 5 to 15.
const TCP_LENGTHS: usize = 11;
/// Up to two VLAN tags, two IP versions.
const SHAPES: usize = 6;

/// The first bytes of a frame.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Window(pub(super) [u8; WINDOW]);

const _: () = assert!(size_of::<Window>() == 128 && align_of::<Window>() == 64);

impl Window {
    pub(super) const EMPTY: Self = Self([0; WINDOW]);

    /// Two bytes at an offset that lies within the window.
    #[inline(always)]
    pub(super) fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at % WINDOW], self.0[(at + 1) % WINDOW]])
    }

    /// Some bytes at an offset; the window is large enough for every offset that `head` has checked.
    #[inline(always)]
    pub(super) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        if let Some(from) = self.0.get(at..at + N) {
            bytes.copy_from_slice(from);
        }
        bytes
    }

    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[8 * i..8 * i + 8]);
        u64::from_ne_bytes(bytes)
    }
}

/// Where a frame's headers are: the row of the table of masks.
#[inline]
pub(super) const fn row(tags: usize, v6: bool, tcp_words: usize) -> usize {
    (2 * tags + v6 as usize) * TCP_LENGTHS + tcp_words - 5
}

static MASKS: [Window; SHAPES * TCP_LENGTHS] = masks();

const fn masks() -> [Window; SHAPES * TCP_LENGTHS] {
    let mut table = [Window::EMPTY; SHAPES * TCP_LENGTHS];
    let mut shape = 0;
    while shape < SHAPES {
        let mut words = 5;
        while words < 5 + TCP_LENGTHS {
            table[row(shape / 2, shape % 2 == 1, words)] = mask(shape / 2, shape % 2 == 1, words);
            words += 1;
        }
        shape += 1;
    }
    table
}

/// The mask of one kind of header: all of it, without what segments of one unit differ in.
const fn mask(tags: usize, v6: bool, tcp_words: usize) -> Window {
    let ip = 14 + 4 * tags;
    let tcp = ip + if v6 { 40 } else { 20 };
    let mut mask = [0; WINDOW];
    let mut at = 0;
    while at < tcp + 4 * tcp_words {
        mask[at] = 0xff;
        at += 1;
    }
    if v6 {
        // Payload length.
        mask[ip + 4] = 0;
        mask[ip + 5] = 0;
    } else {
        // Total length, identification, checksum.
        mask[ip + 2] = 0;
        mask[ip + 3] = 0;
        mask[ip + 4] = 0;
        mask[ip + 5] = 0;
        mask[ip + 10] = 0;
        mask[ip + 11] = 0;
    }
    // Sequence number, PSH, checksum.
    at = tcp + 4;
    while at < tcp + 8 {
        mask[at] = 0;
        at += 1;
    }
    mask[tcp + 13] = !super::head::PSH;
    mask[tcp + 16] = 0;
    mask[tcp + 17] = 0;
    Window(mask)
}

/// True if two frames have headers of the kind of `row`, which end at `headers`, equal in all that a
/// unit keeps once.
#[inline(always)]
pub(super) fn equal(a: &Window, b: &Window, row: usize, headers: usize) -> bool {
    let Some(mask) = MASKS.get(row) else {
        return false;
    };
    // Most headers are short, and behind their end the mask is 0.
    let short = differ(a, b, mask, 0, SHORT);
    if headers <= 8 * SHORT {
        return short == 0;
    }
    short | differ(a, b, mask, SHORT, WORDS) == 0
}

/// The bits in which some words differ, one over the other.
#[inline(always)]
fn differ(a: &Window, b: &Window, mask: &Window, from: usize, to: usize) -> u64 {
    let mut differ = 0;
    for i in from..to {
        differ |= (a.word(i) ^ b.word(i)) & mask.word(i);
    }
    differ
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_header_counts_but_those_that_segmentation_makes_anew() {
        for (tags, v6, words) in [(0, false, 5), (0, false, 8), (1, true, 8), (2, true, 15)] {
            let (ip, row) = (14 + 4 * tags, row(tags, v6, words));
            let tcp = ip + if v6 { 40 } else { 20 };
            let mut free = vec![tcp + 4, tcp + 5, tcp + 6, tcp + 7, tcp + 16, tcp + 17];
            free.extend(if v6 {
                vec![ip + 4, ip + 5]
            } else {
                vec![ip + 2, ip + 3, ip + 4, ip + 5, ip + 10, ip + 11]
            });
            for bit in 0..8 * WINDOW {
                let mut other = Window::EMPTY;
                other.0[bit / 8] = 1 << (bit % 8);
                let psh = bit == 8 * (tcp + 13) + 3;
                let may = bit / 8 >= tcp + 4 * words || free.contains(&(bit / 8)) || psh;
                assert_eq!(
                    equal(&Window::EMPTY, &other, row, tcp + 4 * words),
                    may,
                    "bit {bit} of {row}"
                );
            }
        }
    }
}
