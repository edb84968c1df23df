//! What came out of a measurement.

use super::host::Host;

/// Mean, 99th percentile and largest of some times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Mean.
    pub mean: f64,
    /// The smallest that at least 99 of 100 are not above.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Microseconds of so many cycles of the card.
pub fn us(cycles: u64) -> f64 {
    cycles as f64 / 125.0
}

impl Stats {
    /// Of times in cycles.
    pub fn of(mut cycles: Vec<u64>) -> Self {
        cycles.sort_unstable();
        let Some(max) = cycles.last() else {
            return Self::default();
        };
        let rank = (cycles.len() * 99).div_ceil(100);
        let sum: u64 = cycles.iter().sum();
        Self {
            mean: us(sum) / cycles.len() as f64,
            p99: us(cycles[rank - 1]),
            max: us(*max),
        }
    }
}

/// How equal shares are: 1 if all are, 1/n if one has all (Jain's index); 1 if there are none.
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|x| *x as f64).sum();
    let squares: f64 = shares.iter().map(|x| (*x as f64).powi(2)).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

/// What a workload took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Until the last frame was on the wire, or the last answer was there.
    pub simulated_us: f64,
    /// Cycles of the host.
    pub host_cycles: u64,
    /// Frames on the wire.
    pub packets: u64,
    /// Interrupts of the transmit queue.
    pub interrupts: u64,
    /// Interrupts of the receive queue.
    pub rx_interrupts: u64,
    /// Runs of the driver's timer.
    pub timers: u64,
    /// From the completion of a frame until it was freed.
    pub delay: Stats,
    /// Longest from the wish to close a sender until it was closed.
    pub close_us_max: f64,
    /// Bytes on the wire of each bulk sender, within the time of the measurement.
    pub shares: Vec<u64>,
    /// Rounds of the ping-pong within that time.
    pub rounds: u64,
}

impl Outcome {
    /// Interrupts of the transmit queue for each frame on the wire.
    pub fn interrupts_per_packet(&self) -> f64 {
        self.interrupts as f64 / self.packets.max(1) as f64
    }

    /// Jain's index of the shares.
    pub fn jain(&self) -> f64 {
        jain(&self.shares)
    }

    /// What a host has counted when `simulated` cycles had passed.
    pub(super) fn of(host: Host, simulated: u64, close: u64) -> Self {
        Self {
            simulated_us: us(simulated),
            host_cycles: host.cycles,
            packets: host.peer.packets(),
            interrupts: host.tx_interrupts,
            rx_interrupts: host.rx_interrupts,
            timers: host.timers,
            delay: Stats::of(host.delays),
            close_us_max: us(close),
            shares: Vec::new(),
            rounds: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_shares_and_one_nth_for_one_that_has_all() {
        assert_eq!(jain(&[5, 5, 5, 5]), 1.0);
        assert_eq!(jain(&[9, 0, 0]), 1.0 / 3.0);
        // (1 + 3)^2 / (2 * (1 + 9)).
        assert_eq!(jain(&[1, 3]), 0.8);
        assert_eq!(jain(&[]), 1.0);
    }

    #[test]
    fn stats_are_in_microseconds_by_nearest_rank() {
        let stats = Stats::of((1..=200).map(|n| n * 125).collect());
        assert_eq!((stats.mean, stats.p99, stats.max), (100.5, 198.0, 200.0));
        assert_eq!(Stats::of(vec![]), Stats::default());
        assert_eq!(Stats::of(vec![125]).p99, 1.0);
    }
}
