//! Values of ports: up to 512 bits.

/// A value of at most 512 bits, least significant word first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits(pub [u64; 8]);

impl Bits {
    /// All zero.
    pub const ZERO: Self = Self([0; 8]);

    /// The `width` (at most 64) bits from bit `low` on.
    pub fn get(&self, low: u32, width: u32) -> u64 {
        let (word, shift) = ((low / 64) as usize, low % 64);
        let mut value = self.0[word] >> shift;
        if shift != 0 && word + 1 < self.0.len() {
            value |= self.0[word + 1] << (64 - shift);
        }
        value & mask(width)
    }

    /// Sets the `width` (at most 64) bits from bit `low` on.
    pub fn set(&mut self, low: u32, width: u32, value: u64) {
        let (word, shift) = ((low / 64) as usize, low % 64);
        let (mask, value) = (mask(width), value & mask(width));
        self.0[word] = self.0[word] & !(mask << shift) | value << shift;
        if shift + width > 64 {
            let done = 64 - shift;
            self.0[word + 1] = self.0[word + 1] & !(mask >> done) | value >> done;
        }
    }

    /// From bytes, byte 0 in bits 7:0.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut bits = Self::ZERO;
        for (word, chunk) in bits.0.iter_mut().zip(bytes.chunks(8)) {
            for (i, byte) in chunk.iter().enumerate() {
                *word |= u64::from(*byte) << (8 * i);
            }
        }
        bits
    }

    /// All 64 bytes.
    pub fn bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (chunk, word) in bytes.chunks_mut(8).zip(&self.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

impl From<u64> for Bits {
    fn from(value: u64) -> Self {
        let mut bits = Self::ZERO;
        bits.0[0] = value;
        bits
    }
}

impl From<bool> for Bits {
    fn from(value: bool) -> Self {
        u64::from(value).into()
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_across_words_come_back() {
        for low in 0..448 {
            for width in [1, 7, 32, 63, 64] {
                let mut bits = Bits([u64::MAX; 8]);
                bits.set(low, width, 0x1234_5678_9abc_def0);
                assert_eq!(bits.get(low, width), 0x1234_5678_9abc_def0 & mask(width));
                bits.set(low, width, u64::MAX);
                assert_eq!(bits, Bits([u64::MAX; 8]));
            }
        }
    }

    #[test]
    fn bytes_are_little_endian() {
        let bits = Bits::from_bytes(&[1, 2, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!((bits.0[0], bits.0[1], bits.bytes()[8]), (0x201, 3, 3));
    }
}
