//! A hash of what a result depends on.

/// FNV-1a of 128 bits: the same with every compiler, and nobody here forges a source file.
pub struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    /// Adds `bytes` and their number, so that neighbours do not run together.
    pub fn add(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// The hash of all that was added.
    pub const fn value(&self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn parts_of_a_hash_do_not_run_together() {
        let of = |parts: &[&str]| {
            let mut hash = Fnv::default();
            parts.iter().for_each(|part| hash.add(part.as_bytes()));
            hash.value()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
