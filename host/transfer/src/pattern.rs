//! The bytes of a transfer: a sequence that a seed determines, and its digest.

use sha2::{Digest, Sha256};

/// SplitMix64 as a stream of bytes.
#[derive(Clone, Debug)]
pub struct Pattern {
    state: u64,
    word: [u8; 8],
    used: usize,
}

impl Pattern {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            word: [0; 8],
            used: 8,
        }
    }

    /// The next bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        let left = (self.word.len() - self.used).min(buffer.len());
        let (head, rest) = buffer.split_at_mut(left);
        head.copy_from_slice(&self.word[self.used..self.used + left]);
        self.used += left;
        // Word by word: an emulated processor is slow.
        let mut words = rest.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
        let tail = words.into_remainder();
        if !tail.is_empty() {
            self.word = self.next().to_le_bytes();
            self.used = tail.len();
            tail.copy_from_slice(&self.word[..tail.len()]);
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// SHA-256 of bytes that come in pieces.
#[derive(Clone, Default)]
pub struct Sum(Sha256);

impl Sum {
    /// More bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all of them.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// In hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_does_not_depend_on_the_pieces() {
        let mut whole = [0; 100];
        Pattern::new(5).fill(&mut whole);
        let mut pieces = [0; 100];
        let mut pattern = Pattern::new(5);
        for piece in pieces.chunks_mut(7) {
            pattern.fill(piece);
        }
        assert_eq!(whole, pieces);
        let mut other = [0; 100];
        Pattern::new(6).fill(&mut other);
        assert_ne!(whole, other);
    }

    #[test]
    fn sum_is_that_of_the_standard() {
        let mut sum = Sum::default();
        sum.add(b"a");
        sum.add(b"bc");
        let digest = hex(&sum.finish());
        assert!(digest.starts_with("ba7816bf8f01cfea"), "{digest}");
        assert!(digest.ends_with("f20015ad"), "{digest}");
    }
}
