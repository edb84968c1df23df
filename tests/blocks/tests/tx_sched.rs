//! `tx_sched`: deficit round robin in bytes on the wire (M. Shreedhar and G. Varghese, "Efficient
//! fair queueing using deficit round robin").

use std::collections::VecDeque;

use ferronic_block_tests::{Block, Failure, Rng, ensure, for_seeds};

const PAIRS: u64 = 16;
const QUANTUM: u64 = 2048;
const HEADER: u64 = 12;

/// What a queue sends: bytes behind the virtio header, and into how many segments it is cut, each
/// with a copy of 54 bytes of headers.
#[derive(Clone, Copy, Debug)]
struct Kind {
    bytes: u64,
    segments: u64,
}

impl Kind {
    fn wire(self) -> u64 {
        self.bytes + (self.segments - 1) * 54
    }
}

struct Bench {
    block: Block,
    /// By pair: what it sends, and whether it has anything to send.
    kinds: Vec<Option<Kind>>,
    sent: Vec<u64>,
    /// The pair that is served, and cycles until its frame was read.
    served: Option<(u64, u64)>,
    returning: Option<u64>,
    extras: VecDeque<u64>,
    extra_wait: u64,
    turns: Vec<u64>,
}

impl Bench {
    fn new(seed: u64) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new("tx_sched", seed)?,
            kinds: vec![None; PAIRS as usize],
            sent: vec![0; PAIRS as usize],
            served: None,
            returning: None,
            extras: VecDeque::new(),
            extra_wait: 0,
            turns: Vec::new(),
        };
        for _ in 0..=PAIRS {
            bench.cycle(None)?;
        }
        Ok(bench)
    }

    fn start(&mut self, pair: u64, kind: Kind) -> Result<(), Failure> {
        self.kinds[pair as usize] = Some(kind);
        self.cycle(Some(pair))
    }

    /// One cycle of what tx_reader and tx_offload do, with a pulse of work for a pair.
    fn cycle(&mut self, work: Option<u64>) -> Result<(), Failure> {
        let queue = |pair: u64| 2 * pair + 1;
        self.block.set("work_valid_i", work.is_some());
        self.block.set("work_q_i", queue(work.unwrap_or(0)));
        let idle = self.served.is_none() && self.returning.is_none();
        self.block.set("seek_i", idle);
        self.block.set("ret_valid_i", self.returning.is_some());
        self.block
            .set("ret_q_i", queue(self.returning.unwrap_or(0)));
        self.block.set("ret_off_i", false);
        let done = match &mut self.served {
            Some((pair, left)) => {
                *left -= 1;
                (*left == 0).then_some(*pair)
            }
            None => None,
        };
        let kind = done.and_then(|pair| self.kinds[pair as usize]);
        let served = self.served.and_then(|(pair, _)| self.kinds[pair as usize]);
        self.block
            .set("cost_i", served.map_or(0, |kind| kind.bytes + HEADER));
        self.block.set("spent_i", kind.is_some());
        self.block
            .set("spent_bytes_i", kind.map_or(0, |kind| kind.bytes + HEADER));
        self.extra_wait = self.extra_wait.saturating_sub(1);
        let extra = if self.extra_wait == 0 {
            self.extras.pop_front()
        } else {
            None
        };
        if extra.is_some() {
            self.extra_wait = 4;
        }
        self.block.set("extra_i", extra.is_some());
        self.block.set("extra_q_i", queue(extra.unwrap_or(0)));
        self.block.set("extra_bytes_i", 54);
        self.block.settle()?;
        let check = self.block.word("check_q_o") / 2;
        self.block
            .set("has_work_i", self.kinds[check as usize].is_some());
        let take = idle && self.block.is("next_valid_o");
        self.block.set("next_take_i", take);
        self.block.settle()?;

        if self.block.fires("ret_valid_i", "ret_ready_o") {
            self.returning = None;
        }
        let mut next = None;
        if take {
            next = Some(self.block.word("next_q_o") / 2);
            self.turns.extend(next);
        }
        if let (Some(pair), Some(kind)) = (done, kind) {
            self.sent[pair as usize] += kind.wire();
            self.extras.extend((1..kind.segments).map(|_| pair));
            if self.block.is("keep_o") {
                next = Some(pair);
            } else {
                self.served = None;
                self.returning = Some(pair);
            }
        }
        if let Some(pair) = next {
            let Some(kind) = self.kinds[pair as usize] else {
                return Err(Failure::Contract(format!("pair {pair} has no work")));
            };
            // The wire takes 64 bytes a cycle and a frame no less than five cycles.
            self.served = Some((pair, (kind.wire() / 64).max(kind.segments * 5).max(5)));
        }
        self.block.tick()
    }
}

fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}

const SMALL: Kind = Kind {
    bytes: 64,
    segments: 1,
};
const LARGE: Kind = Kind {
    bytes: 65_000,
    segments: 45,
};

fn any(rng: &mut Rng) -> Kind {
    match rng.below(4) {
        0 => LARGE,
        1 => SMALL,
        // Mostly headers: what counts is what leaves.
        2 => Kind {
            bytes: 3_000,
            segments: rng.range(2, 60),
        },
        _ => Kind {
            bytes: rng.range(60, 9216),
            segments: 1,
        },
    }
}

#[test]
fn backlogged_queues_get_equal_shares_of_the_wire() {
    for_seeds(3, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        for pair in 0..PAIRS {
            let kind = match pair {
                0 => SMALL,
                1 => LARGE,
                _ => any(rng),
            };
            bench.start(pair, kind)?;
        }
        for _ in 0..400_000 {
            bench.cycle(None)?;
        }
        let index = jain(&bench.sent);
        ensure!(index >= 0.98, "Jain index {index:.3} of {:?}", bench.sent);
        Ok(())
    });
}

#[test]
fn a_queue_pays_only_for_what_it_took_from_others() {
    for_seeds(2, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        // Alone for a long time, with large frames: no debt is left when another comes.
        bench.start(3, LARGE)?;
        for _ in 0..rng.range(50_000, 60_000) {
            bench.cycle(None)?;
        }
        bench.start(7, SMALL)?;
        while bench.sent[7] == 0 {
            bench.cycle(None)?;
        }
        let before = bench.sent.clone();
        while bench.sent[3] == before[3] {
            bench.cycle(None)?;
        }
        // One large frame was on its way when the other came, and is paid for.
        let small = bench.sent[7] - before[7];
        ensure!(
            small <= LARGE.wire() + 2 * QUANTUM,
            "{small} bytes before the large frames go on"
        );
        Ok(())
    });
}

#[test]
fn a_queue_with_work_waits_for_one_round() {
    for_seeds(2, |seed, _| {
        let mut bench = Bench::new(seed)?;
        for pair in 0..PAIRS - 1 {
            bench.start(pair, SMALL)?;
        }
        for _ in 0..10_000 {
            bench.cycle(None)?;
        }
        let before = bench.turns.len();
        bench.start(PAIRS - 1, SMALL)?;
        while bench.sent[PAIRS as usize - 1] == 0 {
            bench.cycle(None)?;
        }
        let turns = bench.turns.len() - before;
        ensure!(turns as u64 <= PAIRS + 1, "{turns} turns of others first");
        Ok(())
    });
}
