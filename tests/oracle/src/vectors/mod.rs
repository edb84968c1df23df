//! The smallest stream that shows each row of the rule table of LRO, and what is delivered for it.
//!
//! Rows 1 to 17 and 44, which are of Ethernet and IP, are in one file, those of TCP in another, and
//! those of the card (sizes, buffers, the table, time) in a third.

mod card;
mod ip;
mod tcp;

use crate::frames::verdict;
use crate::header::DATA_VALID;
use crate::lro::{Cause, Config, Lro, Unit};
use crate::resegment::resegment;
use crate::segment::Segment;
use crate::sum::{fold, sum};

/// A frame that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: u64,
    /// For which queue.
    pub queue: u16,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What is delivered at once: which frames, by number, and why; no cause if never held.
pub type Want = (&'static [usize], Option<Cause>);

/// A stream and what becomes of it.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Row of the rule table.
    pub rule: u8,
    /// What it shows.
    pub what: &'static str,
    /// Settings.
    pub config: Config,
    /// Buffers posted for each queue.
    pub posted: usize,
    /// What arrives.
    pub arrivals: Vec<Arrival>,
    /// What is delivered. After the last frame the card is stopped.
    pub want: Vec<Want>,
}

/// Ticks between two frames of a vector.
const STEP: u64 = 1000;

impl Vector {
    /// Frames for one queue, one each 1,000 ticks, with default settings and enough buffers.
    fn new(
        rule: u8,
        what: &'static str,
        frames: impl IntoIterator<Item = Vec<u8>>,
        want: &[Want],
    ) -> Self {
        let frames = frames.into_iter().enumerate();
        Self {
            rule,
            what,
            config: Config::default(),
            posted: 10_000,
            arrivals: frames
                .map(|(i, frame)| Arrival {
                    at: i as u64 * STEP,
                    queue: 0,
                    frame,
                })
                .collect(),
            want: want.to_vec(),
        }
    }

    fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Frame `i` comes for another queue.
    fn queue(mut self, i: usize, queue: u16) -> Self {
        self.arrivals[i].queue = queue;
        self
    }

    /// Frame `i` and those behind it come later.
    fn later(mut self, i: usize, ticks: u64) -> Self {
        self.arrivals[i..].iter_mut().for_each(|a| a.at += ticks);
        self
    }

    /// What the reference model delivers.
    pub fn run(&self) -> Vec<Unit> {
        let mut lro = Lro::new(self.config.clone());
        for queue in 0..4 {
            lro.post(0, queue, self.posted);
        }
        for arrival in &self.arrivals {
            lro.receive(arrival.at, arrival.queue, &arrival.frame);
        }
        lro.stop(self.arrivals.last().map_or(0, |last| last.at));
        lro.take()
    }

    /// Compares what some card delivered with what is wanted: order, frames byte for byte, counts.
    ///
    /// # Errors
    /// With the first difference.
    pub fn compare(&self, units: &[Unit]) -> Result<(), String> {
        let name = format!("rule {}, {}", self.rule, self.what);
        for (number, unit) in units.iter().enumerate() {
            let frames = resegment(&unit.header, &unit.frame)
                .map_err(|error| format!("{name}: unit {number}: {error}"))?;
            let Some((want, cause)) = self.want.get(number) else {
                return Err(format!("{name}: unit {number} is one too many"));
            };
            let wanted = want.iter().map(|i| &self.arrivals[*i].frame);
            if !frames.iter().eq(wanted) || unit.segments != frames.len() {
                let count = frames.len();
                return Err(format!(
                    "{name}: unit {number} is not of frames {want:?} but of {count} others \
                     ({:?})",
                    unit.cause
                ));
            }
            // What is said of the sum of a frame that is not merged.
            let valid = self.config.csum && verdict(&unit.frame).sum_ok;
            let flags = if valid { DATA_VALID } else { 0 };
            if unit.segments == 1 && unit.header.flags != flags {
                return Err(format!(
                    "{name}: unit {number} has flags {}, not {flags}",
                    unit.header.flags
                ));
            }
            if unit.cause != *cause {
                return Err(format!(
                    "{name}: unit {number} closed by {:?}, not by {cause:?}",
                    unit.cause
                ));
            }
        }
        if units.len() != self.want.len() {
            return Err(format!(
                "{name}: {} units instead of {}",
                units.len(),
                self.want.len()
            ));
        }
        Ok(())
    }
}

/// All vectors, by row.
pub fn all() -> Vec<Vector> {
    [ip::vectors(), tcp::vectors(), card::vectors()].concat()
}

/// Runs the vectors of one row through the reference model.
///
/// # Errors
/// With the first difference, or if the row has no vector.
pub fn check(rule: u8) -> Result<(), String> {
    let vectors: Vec<Vector> = all().into_iter().filter(|v| v.rule == rule).collect();
    if vectors.is_empty() {
        return Err(format!("no vector for rule {rule}"));
    }
    vectors.iter().try_for_each(|v| v.compare(&v.run()))
}

/// A stream without gaps: `first`, and segments of these lengths behind it.
fn run(first: Segment, lengths: &[usize]) -> Vec<Segment> {
    let mut segments = vec![first];
    for length in lengths {
        segments.push(segments[segments.len() - 1].next(*length));
    }
    segments
}

/// `count` segments of 100 bytes.
fn bulk(count: usize) -> Vec<Segment> {
    run(Segment::v4(5000, 100), &vec![100; count - 1])
}

/// The same by IPv6.
fn bulk6(count: usize) -> Vec<Segment> {
    run(Segment::v6(5000, 100), &vec![100; count - 1])
}

/// With segment `i` changed.
fn with(mut segments: Vec<Segment>, i: usize, change: impl FnOnce(&mut Segment)) -> Vec<Segment> {
    change(&mut segments[i]);
    segments
}

/// With all changed.
fn each(mut segments: Vec<Segment>, change: impl Fn(&mut Segment)) -> Vec<Segment> {
    segments.iter_mut().for_each(change);
    segments
}

fn frames(segments: &[Segment]) -> Vec<Vec<u8>> {
    segments.iter().map(Segment::bytes).collect()
}

/// Makes the sum of an IPv4 header without VLAN tag right again.
fn resum(frame: &mut [u8]) {
    let end = 14 + 4 * usize::from(frame[14] & 15);
    frame[24..26].fill(0);
    let check = !fold(sum(&frame[14..end]));
    frame[24..26].copy_from_slice(&check.to_be_bytes());
}
