//! The Internet checksum (RFC 1071).

/// One's complement sum of `bytes` as 16-bit words, not yet folded. A last single byte is padded
/// with zero. Sums of pieces of even length may be added.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    // Words of 32 bits: 2^16 is 1 modulo 2^16 - 1, so the halves add up when folded.
    let mut words = bytes.chunks_exact(4);
    let mut sum = 0_u64;
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum into 16 bits.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Sum of the pseudo header of TCP and UDP (RFC 9293, RFC 768, RFC 8200 section 8.1); `addresses`
/// are both addresses as they stand in the IP header.
pub(crate) fn pseudo(addresses: &[u8], protocol: u8, len: usize) -> u64 {
    sum(addresses) + u64::from(protocol) + len as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_words_is_that_of_rfc_1071() {
        // The example of RFC 1071 section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        for len in 0..=bytes.len() {
            let words = bytes[..len].chunks(2);
            let plain: u64 = words
                .map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b)))
                .sum();
            assert_eq!(fold(sum(&bytes[..len])), fold(plain), "{len}");
        }
        assert_eq!(fold(0xffff_ffff_ffff), 0xffff);
    }
}
