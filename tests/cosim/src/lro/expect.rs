//! What the model delivers for a stream, and whether the card did.

use ferronic_oracle::card::pair;
use ferronic_oracle::frames::verdict;
use ferronic_oracle::lro::{Config, Counters, Lro, Profile, Unit};
use ferronic_oracle::order::{as_cut, cut, same, units};
use ferronic_oracle::vectors::Arrival;

use super::Closed;

/// The frames with the queue that the card gives each to where `pairs` receive; what is too short or
/// too long to be received is left out.
pub fn steered(arrivals: impl IntoIterator<Item = Arrival>, pairs: u16) -> Vec<Arrival> {
    let sizes = ferronic_spec::net::MIN_FRAME..=ferronic_spec::net::MAX_FRAME;
    let mut arrivals: Vec<Arrival> = arrivals.into_iter().collect();
    arrivals.retain(|arrival| sizes.contains(&arrival.frame.len()));
    for arrival in &mut arrivals {
        arrival.queue = pair(verdict(&arrival.frame).hash(), pairs);
    }
    arrivals
}

/// What the model makes of a stream.
pub struct Expected {
    /// What it delivers.
    pub units: Vec<Unit>,
    /// What it counts.
    pub counters: Counters,
    /// Frames that wait for buffers in the end.
    pub waiting: usize,
}

impl Expected {
    /// Enough buffers, and a stop at the end.
    pub fn of(config: Config, arrivals: &[Arrival]) -> Self {
        Self::posted(config, arrivals, 1 << 30)
    }

    /// So many buffers for each queue, and a stop at the end.
    pub fn posted(config: Config, arrivals: &[Arrival], buffers: usize) -> Self {
        let relaxed = config.profile == Profile::Relaxed;
        let mut lro = Lro::new(config);
        for queue in 0..64 {
            lro.post(0, queue, buffers);
        }
        for arrival in arrivals {
            lro.receive(arrival.at, arrival.queue, &arrival.frame);
        }
        lro.stop(arrivals.last().map_or(0, |last| last.at));
        Self {
            units: if relaxed {
                as_cut(lro.take())
            } else {
                lro.take()
            },
            counters: lro.counters().clone(),
            waiting: lro.waiting(),
        }
    }

    /// Compares units and counters, and gives back the units in the order of the model's, with
    /// their causes.
    ///
    /// # Errors
    /// With the first difference.
    pub fn compare(
        &self,
        found: &[Unit],
        closed: &Closed,
        arrivals: &[Arrival],
    ) -> Result<Vec<Unit>, String> {
        let ordered = units(&self.units, found, arrivals)?;
        let wanted = Closed::of(&self.counters);
        if *closed != wanted {
            return Err(format!(
                "the units are right, but {closed:?} was counted instead of {wanted:?}"
            ));
        }
        Ok(ordered)
    }
}

/// That what was delivered, cut back, is what arrived, in each queue and flow in order.
///
/// # Errors
/// With the first difference.
pub fn undone(arrivals: &[Arrival], found: &[Unit]) -> Result<(), String> {
    let delivered = cut(found)?;
    let mut queues: Vec<u16> = arrivals.iter().map(|a| a.queue).collect();
    queues.extend(delivered.iter().map(|(queue, _)| *queue));
    queues.sort_unstable();
    queues.dedup();
    for queue in queues {
        let came: Vec<Arrival> = arrivals
            .iter()
            .filter(|a| a.queue == queue)
            .cloned()
            .collect();
        let went: Vec<_> = delivered
            .iter()
            .filter(|(q, _)| *q == queue)
            .cloned()
            .collect();
        same(&came, &went).map_err(|error| format!("queue {queue}: {error}"))?;
    }
    Ok(())
}
