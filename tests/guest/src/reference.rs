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

/// The recorded output of `cargo xtask bench completion` is in here.
const POLICIES: &str = include_str!("../../../docs/completion-policies.md");

/// Interrupts of the transmit queue for each frame on the wire, with our driver under a completion policy
/// in a workload of `bench completion` (`bulk`, `ping`, `ping-preload`).
///
/// # Errors
/// When the book has no such line.
pub fn bench_interrupts_per_packet(workload: &str, policy: &str) -> Result<f64, GuestError> {
    let mut lines = POLICIES.lines().skip_while(|line| *line != workload);
    let heads = lines.nth(1).unwrap_or_default();
    let row = lines
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.first() == Some(&policy));
    // Policy, us, kcyc, packets, interrupts, interrupts a packet.
    let value = row.and_then(|words| words.get(5)?.parse::<f64>().ok());
    match value {
        Some(value) if heads.contains(" irq/p ") => Ok(value),
        _ => Err(GuestError::Check(format!(
            "docs/completion-policies.md records no interrupts of {workload} under {policy}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_recorded_for_every_workload() {
        for workload in ["bulk", "ping", "ping-preload"] {
            for policy in ["ring-empty", "ring-empty-holdoff", "event-idx"] {
                let ratio = bench_interrupts_per_packet(workload, policy).expect("a line");
                assert!((0.0..=1.0).contains(&ratio), "{workload} {policy}: {ratio}");
            }
        }
        // Each request of the thread's second workload costs one at ring empty.
        let ping = bench_interrupts_per_packet("ping", "ring-empty").expect("a line");
        assert_eq!(ping, 1.0);
        assert!(bench_interrupts_per_packet("ping", "ring").is_err());
        assert!(bench_interrupts_per_packet("pings", "ring-empty").is_err());
    }

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
