//! What the card reaches without a guest, as the book records it.

use crate::GuestError;

/// The recorded output of `cargo xtask bench cosim` is in here.
const BOOK: &str = include_str!("../../../docs/benchmarks.md");

/// Bytes a cycle in the bench, in one direction (`rx`, `tx`) with frames of so many bytes: 64 bits, one
/// pair, 125 cycles of latency, MPS 256.
///
/// # Errors
/// When the book has no such line.
pub fn bench_bytes_per_cycle(direction: &str, frame: u32) -> Result<f64, GuestError> {
    let frame_bytes = frame.to_string();
    let head = ["64", "1", "125", &frame_bytes, direction, "256"];
    let cycles = BOOK.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let same = head.iter().all(|want| words.next() == Some(want));
        same.then(|| words.next()?.parse::<f64>().ok()).flatten()
    });
    match cycles {
        Some(cycles) if cycles > 0.0 => Ok(f64::from(frame) / cycles),
        _ => Err(GuestError::Check(format!(
            "docs/benchmarks.md records no figure of `bench cosim` for frames of {frame} bytes, \
             {direction}, at 64 bits"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_is_recorded_for_the_frames_of_every_transfer() {
        for direction in ["rx", "tx"] {
            for mtu in [1500, 9000] {
                let rate = bench_bytes_per_cycle(direction, mtu + 14).expect("a line");
                assert!(rate > 1.0 && rate <= 8.0, "{direction} {mtu}: {rate}");
            }
        }
        assert!(bench_bytes_per_cycle("rx", 1515).is_err());
    }
}
