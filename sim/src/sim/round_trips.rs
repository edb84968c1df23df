//! How long the card takes from a doorbell to an interrupt.

/// Round trips that are kept for the median.
const MAX_ROUND_TRIPS: usize = 4096;

/// Times from a doorbell to the interrupt that follows.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    rung: Option<u64>,
    times: Vec<u64>,
}

impl RoundTrips {
    /// A doorbell is on its way.
    pub fn rung(&mut self, time: u64) {
        self.rung = Some(time);
    }

    /// An interrupt has come.
    pub fn interrupt(&mut self, time: u64) {
        if let Some(rung) = self.rung.take()
            && self.times.len() < MAX_ROUND_TRIPS
        {
            self.times.push(time.saturating_sub(rung));
        }
    }

    /// The median since the last call.
    pub fn take_median(&mut self) -> Option<u64> {
        let mut times = std::mem::take(&mut self.times);
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_of_the_last_doorbell_before_each_interrupt() {
        let mut trips = RoundTrips::default();
        trips.interrupt(5);
        for (rung, interrupt) in [(10, 15), (20, 120), (200, 207)] {
            trips.rung(rung - 1);
            trips.rung(rung);
            trips.interrupt(interrupt);
            trips.interrupt(interrupt + 1);
        }
        assert_eq!(trips.take_median(), Some(7));
        assert_eq!(trips.take_median(), None);
    }
}
