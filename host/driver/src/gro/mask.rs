//! Which bits of its headers two segments of a unit have in common.
//!
//! What a re-segmenter makes anew may differ; everything else must be equal: that is the whole of
//! the strict profile's rules about single fields (MAC addresses, tags, DF, TTL, traffic class, flow
//! label, acknowledgement, window, flags, options). So one masked comparison decides them all.

/// Bytes at the start of a frame in which headers are looked for: two VLAN tags, IPv6 and a TCP
/// header with 40 bytes of options have 122.
pub(super) const WINDOW: usize = 128;
/// Vectors of 16 bytes of a window.
pub(super) const VECTORS: usize = WINDOW / 16;
/// Bytes in which nearly all headers lie: IPv6 with time stamps has 86.
pub(super) const SHORT: usize = 96;
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

    /// Writes some bytes.
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(to) = self.0.get_mut(at..at + N) {
            to.copy_from_slice(&bytes);
        }
    }
}

/// Where a frame's headers are: the row of the table of masks.
#[inline]
pub(super) const fn row(tags: usize, v6: bool, tcp_words: usize) -> usize {
    (2 * tags + v6 as usize) * TCP_LENGTHS + tcp_words - 5
}

/// All of both.
static EVERYTHING: Window = Window([0xff; WINDOW]);
/// What all segments of a unit have in common.
static COMMON: [Window; SHAPES * TCP_LENGTHS] = masks(false);
/// What a segment that is foreseen in all but its payload has: everything but the TCP checksum.
static FORESEEN: [Window; SHAPES * TCP_LENGTHS] = masks(true);

const fn masks(foreseen: bool) -> [Window; SHAPES * TCP_LENGTHS] {
    let mut table = [Window::EMPTY; SHAPES * TCP_LENGTHS];
    let mut shape = 0;
    while shape < SHAPES {
        let mut words = 5;
        while words < 5 + TCP_LENGTHS {
            table[row(shape / 2, shape % 2 == 1, words)] =
                mask(shape / 2, shape % 2 == 1, words, foreseen);
            words += 1;
        }
        shape += 1;
    }
    table
}

/// The mask of one kind of header: all of it, without what segments of one unit differ in, or, if
/// that is foreseen, without the TCP checksum.
const fn mask(tags: usize, v6: bool, tcp_words: usize, foreseen: bool) -> Window {
    let ip = 14 + 4 * tags;
    let tcp = ip + if v6 { 40 } else { 20 };
    let mut mask = [0; WINDOW];
    let mut at = 0;
    while at < tcp + 4 * tcp_words {
        mask[at] = 0xff;
        at += 1;
    }
    mask[tcp + 16] = 0;
    mask[tcp + 17] = 0;
    if foreseen {
        return Window(mask);
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
    // Sequence number, PSH.
    at = tcp + 4;
    while at < tcp + 8 {
        mask[at] = 0;
        at += 1;
    }
    mask[tcp + 13] = !super::head::PSH;
    Window(mask)
}

/// The mask of a row for headers that were foreseen.
pub(super) fn foreseen(row: u8) -> &'static Window {
    FORESEEN.get(usize::from(row)).unwrap_or(&EVERYTHING)
}

/// True if two frames have headers of the kind of `row`, equal in all that a unit keeps once.
pub(super) fn equal(a: &Window, b: &Window, row: u8) -> bool {
    let mask = COMMON.get(usize::from(row)).unwrap_or(&EVERYTHING);
    agree::<0, VECTORS, WINDOW>(&a.0, b, mask)
}

/// True if the first `TO` vectors of 16 bytes of two windows are equal: the first `ALL` of them
/// whatever the mask says, the others under it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn agree<const ALL: usize, const TO: usize, const LEN: usize>(
    a: &[u8; LEN],
    b: &Window,
    mask: &Window,
) -> bool {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_load_si128, _mm_loadu_si128, _mm_movemask_epi8,
        _mm_or_si128, _mm_setzero_si128, _mm_xor_si128,
    };
    const { assert!(ALL <= TO && TO <= VECTORS && 16 * TO <= LEN) };
    let vector = |window: &Window, i: usize| {
        // SAFETY: a window is aligned to 64 bytes, and `i` is less than the vectors that it has.
        // SSE2 belongs to every x86-64.
        unsafe { _mm_load_si128(window.0.as_ptr().cast::<__m128i>().add(i)) }
    };
    // SAFETY: SSE2 belongs to every x86-64.
    unsafe {
        let zero = _mm_setzero_si128();
        let mut differ = zero;
        for i in 0..TO {
            // SAFETY: 16 bytes of `a`, which has as many vectors.
            let a = _mm_loadu_si128(a.as_ptr().cast::<__m128i>().add(i));
            let mut here = _mm_xor_si128(a, vector(b, i));
            if i >= ALL {
                here = _mm_and_si128(here, vector(mask, i));
            }
            differ = _mm_or_si128(differ, here);
        }
        _mm_movemask_epi8(_mm_cmpeq_epi8(differ, zero)) == 0xffff
    }
}

/// The same on other machines.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn agree<const ALL: usize, const TO: usize, const LEN: usize>(
    a: &[u8; LEN],
    b: &Window,
    mask: &Window,
) -> bool {
    agree_by_words::<ALL, TO, LEN>(a, b, mask)
}

/// [`agree`] where there are no vectors; elsewhere it is what `agree` is tested against.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn agree_by_words<const ALL: usize, const TO: usize, const LEN: usize>(
    a: &[u8; LEN],
    b: &Window,
    mask: &Window,
) -> bool {
    let mut differ = 0;
    for i in 0..2 * TO {
        let here = word(a, i) ^ word(&b.0, i);
        differ |= if i < 2 * ALL {
            here
        } else {
            here & word(&mask.0, i)
        };
    }
    differ == 0
}

#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn word(bytes: &[u8], i: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * i..8 * i + 8]);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_words_agree_on_every_bit() {
        let mask = foreseen(row(0, false, 8) as u8);
        for bit in 0..8 * WINDOW {
            let mut other = Window::EMPTY;
            other.0[bit / 8] = 1 << (bit % 8);
            let by_words = agree_by_words::<3, 5, WINDOW>(&other.0, &Window::EMPTY, mask);
            assert_eq!(
                agree::<3, 5, WINDOW>(&other.0, &Window::EMPTY, mask),
                by_words
            );
            // Whatever the mask says of the first three vectors, and nothing behind the fifth.
            let counts = bit < 8 * 48 || (bit < 8 * 80 && mask.0[bit / 8] >> (bit % 8) & 1 == 1);
            assert_eq!(by_words, !counts, "bit {bit}");
        }
    }

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
                    equal(&Window::EMPTY, &other, row as u8),
                    may,
                    "bit {bit} of {row}"
                );
            }
        }
    }
}
