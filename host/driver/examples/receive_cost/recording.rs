//! What a card delivered: bursts of frames with the virtio header of each.
//!
//! All numbers are little-endian words of 32 bits: how many bursts; of each how many frames; of each
//! frame 12 bytes of virtio header, how long it is, and its bytes.

use std::fs;
use std::path::Path;

/// A received frame.
pub struct Frame {
    /// The virtio header.
    pub header: [u8; 12],
    /// The frame.
    pub bytes: Vec<u8>,
}

/// Frames by the burst in which the driver finds them.
pub type Recording = Vec<Vec<Frame>>;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or("the recording is cut short; record it again")?;
        self.0 = rest;
        Ok(head)
    }

    fn word(&mut self) -> Result<usize, String> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    }
}

/// Reads a recording.
///
/// # Errors
/// When the file is none.
pub fn read(path: &Path) -> Result<Recording, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut reader = Reader(&bytes);
    let mut bursts = Vec::new();
    for _ in 0..reader.word()? {
        let mut burst = Vec::new();
        for _ in 0..reader.word()? {
            let mut header = [0; 12];
            header.copy_from_slice(reader.take(12)?);
            let len = reader.word()?;
            let bytes = reader.take(len)?.to_vec();
            burst.push(Frame { header, bytes });
        }
        bursts.push(burst);
    }
    Ok(bursts)
}
