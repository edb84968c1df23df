//! The Internet checksum (RFC 1071).

/// Sum of the big-endian 16-bit words of `bytes`; a last single byte is filled up with a zero.
pub fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|c| u64::from(c[0]) << 8 | c.get(1).map_or(0, |b| u64::from(*b)))
        .sum()
}

/// The one's complement sum in 16 bits.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_is_that_of_the_example_in_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(sum(&[0x12]), 0x1200);
        assert_eq!((fold(0), fold(0xffff), fold(0x1_ffff)), (0, 0xffff, 1));
    }
}
