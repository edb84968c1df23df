//! Streams of segments whose headers drift as the relaxed profile allows, and now and then further.

use crate::rng::Rng;
use crate::segment::{Segment, flag};
use crate::vectors::Arrival;

/// NOP, NOP and time stamps in another order, which no profile looks into.
const ODD: [u8; 12] = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1];

/// So many flows by turns, by both versions of IP, tagged or not, with time stamps or without.
pub fn drift(seed: u64, flows: usize, count: usize) -> Vec<Arrival> {
    let mut rng = Rng::new(seed ^ 0xd21f7);
    let mut heads: Vec<Segment> = (0..flows)
        .map(|flow| {
            let mut segment = Segment::v4(rng.next_u64() as u32, 0);
            segment.v6 = rng.chance(50);
            segment.ports = [1000 + flow as u16, 80];
            segment.tags = vec![[0x81, 0, 0, 9]; rng.below(3) as usize];
            segment.ack = rng.pick(&[1, 0x7fff_ffff, 0xffff_ff00]);
            segment.id = rng.pick(&[8, 0xfff8]);
            match rng.below(4) {
                0 => segment,
                1 => {
                    segment.options = ODD.to_vec();
                    segment
                }
                _ => segment.stamps(rng.pick(&[1, 0x7fff_fff0, 0xffff_fff0]), 5),
            }
        })
        .collect();
    let arrivals = (0..count as u64).map(|at| {
        let flow = rng.below(flows as u64) as usize;
        let length = rng.pick(&[1, 2, 99, 100, 100, 536, 1448]);
        let mut next = heads[flow].next(length);
        next.flags = flag::ACK | if rng.chance(4) { flag::PSH } else { 0 };
        if rng.chance(30) {
            next.ttl = rng.pick(&[64, 63, 200, 1, 255]);
        }
        if rng.chance(40) {
            next.window = rng.next_u64() as u16;
        }
        if rng.chance(50) {
            let step = rng.pick(&[1, 1, 100, 100, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX]);
            next.ack = next.ack.wrapping_add(step);
        }
        if next.options.starts_with(&[1, 1, 8, 10]) && rng.chance(50) {
            let word = |at: usize| {
                let bytes = &next.options[at..at + 4];
                bytes
                    .iter()
                    .fold(0, |word: u32, byte| word << 8 | u32::from(*byte))
            };
            let step = rng.pick(&[0, 1, 1, 1, 70_000, 0x7fff_ffff, 0x8000_0000, u32::MAX]);
            let (value, echo) = (word(4).wrapping_add(step), word(8));
            let echo = if rng.chance(50) {
                echo
            } else {
                rng.next_u64() as u32
            };
            next = next.stamps(value, echo);
        }
        match rng.below(60) {
            0 => next.class = rng.pick(&[0, 1]),
            1 => next.options = vec![1; 4 * rng.below(4) as usize],
            2 => next.id = next.id.wrapping_add(1),
            3 => next.urgent = rng.pick(&[0, 7]),
            _ => {}
        }
        heads[flow] = next.clone();
        Arrival {
            at,
            queue: 0,
            frame: next.bytes(),
        }
    });
    arrivals.collect()
}
