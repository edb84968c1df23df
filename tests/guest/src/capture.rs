//! Captures for the wire to replay.

use std::fs;
use std::path::Path;

use crate::GuestError;

/// Classic pcap: magic number, version 2.4, zone, accuracy, longest packet, Ethernet.
const HEAD: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1];

/// Writes frames as a capture, one each microsecond.
pub fn write(path: &Path, frames: &[Vec<u8>]) -> Result<(), GuestError> {
    let mut bytes = Vec::new();
    let mut put = |words: &[u32], frame: &[u8]| {
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend_from_slice(frame);
    };
    put(&HEAD, &[]);
    for (n, frame) in (0_u32..).zip(frames) {
        let len = frame.len() as u32;
        put(&[n / 1_000_000, n % 1_000_000, len, len], frame);
    }
    fs::write(path, bytes).map_err(GuestError::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferronic_sim::wire::read_capture;

    #[test]
    fn captures_are_read_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("frames.pcap");
        let frames = vec![vec![1; 60], vec![2; 1514]];
        write(&path, &frames).expect("written");
        let read = read_capture(&path).expect("read");
        assert!(read.iter().map(|frame| &frame.data).eq(&frames));
    }
}
