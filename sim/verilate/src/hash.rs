//! A 128-bit content hash for the cache: two FNV-1a streams. Not for adversaries.

/// The state of one hash.
pub struct Hasher(u64, u64);

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher {
    /// The hash of nothing.
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325, 0x8422_2325_cbf2_9ce4)
    }

    /// Adds `data` and its length.
    pub fn bytes(&mut self, data: &[u8]) {
        for byte in (data.len() as u64).to_le_bytes().iter().chain(data) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            self.1 = (self.1 ^ u64::from(*byte))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
    }

    /// Adds `text` and its length.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The hash as a name for a directory.
    pub fn finish(&self) -> String {
        format!("{:016x}{:016x}", self.0, self.1)
    }
}
