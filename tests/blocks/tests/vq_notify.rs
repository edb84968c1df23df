//! `vq_notify` against `vring_need_event` (virtio 1.2, "Used Buffer Notification Suppression").

use std::collections::VecDeque;

use ferronic_block_tests::{
    Block, ControlHost, Failure, Rng, clear_queues, configure, ensure, for_seeds, layout,
};

const QUEUES: u64 = 32;
const NO_VECTOR: u64 = 0xffff;

/// What the driver and the card know of one queue.
#[derive(Clone, Default)]
struct Queue {
    size: u64,
    vector: u64,
    published: u64,
    told: u64,
    /// The index that was published when the read under way was asked for.
    reading: Option<u64>,
}

struct Bench {
    block: Block,
    host: ControlHost,
    queues: Vec<Queue>,
    event_idx: bool,
    msix: bool,
    /// Queues whose interrupt is due, in order; interrupts of the ISR that are due.
    due: VecDeque<u64>,
    isr_due: u64,
    publishing: Option<(u64, u64)>,
    /// An interrupt that is asked for whatever the driver wishes; one that was accepted.
    telling: Option<u64>,
    tell_due: Option<u64>,
}

impl Bench {
    fn new(seed: u64, event_idx: bool, msix: bool, rng: &mut Rng) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new("vq_notify", seed)?,
            host: ControlHost::default(),
            queues: vec![Queue::default(); QUEUES as usize],
            event_idx,
            msix,
            due: VecDeque::new(),
            isr_due: 0,
            publishing: None,
            telling: None,
            tell_due: None,
        };
        bench.block.set("event_idx_i", event_idx);
        bench.block.set("msix_enabled_i", msix);
        for q in 0..QUEUES {
            let queue = &mut bench.queues[q as usize];
            queue.size = rng.pick(&[1, 4, 256, 2048]);
            queue.vector = if msix && rng.chance(90) { q } else { NO_VECTOR };
            configure(&mut bench.block, q, queue.size, queue.vector)?;
            let base = (q + 1) << 32 | rng.below(1 << 12) << 1;
            bench.host.areas.insert((q, 1), base);
        }
        clear_queues(&mut bench.block, QUEUES)?;
        Ok(bench)
    }

    /// The driver writes what it wants to be told.
    fn wish(&mut self, q: u64, wish: u64) {
        let offset = if self.event_idx {
            4 + 2 * self.queues[q as usize].size
        } else {
            0
        };
        let base = self.host.areas[&(q, 1)];
        self.host
            .memory
            .store(base + offset, &wish.to_le_bytes()[..2]);
    }

    fn cycle(&mut self, irq_rate: u64, rng: &mut Rng) -> Result<(), Failure> {
        let mut events = self.host.drive(&mut self.block, rng);
        self.block.set("pub_valid_i", self.publishing.is_some());
        if let Some((q, index)) = self.publishing {
            self.block.set("pub_q_i", q);
            self.block.set("pub_idx_i", index & 0xffff);
        }
        self.block.set("irq_ready_i", rng.chance(irq_rate));
        self.block.set("tell_valid_i", self.telling.is_some());
        self.block.set("tell_q_i", self.telling.unwrap_or(0));
        self.block.settle()?;
        self.host.answer(&mut self.block, rng, &mut events)?;

        if let Some(read) = events.accepted {
            let queue = &mut self.queues[read.q as usize];
            let offset = if self.event_idx {
                4 + 2 * queue.size
            } else {
                0
            };
            ensure!(
                (read.area, read.offset, read.len) == (1, offset, 2),
                "the wish is not there: {read:?}"
            );
            ensure!(queue.reading.is_none(), "two reads for queue {}", read.q);
            queue.reading = Some(queue.published);
        }
        if let Some((read, err)) = events.done {
            let event = self.host.memory.number(read.address, 2);
            let queue = &mut self.queues[read.q as usize];
            let Some(published) = queue.reading.take() else {
                return Err(Failure::Contract("a read nobody asked for".to_owned()));
            };
            let batch = published - queue.told;
            let wanted = if err {
                batch > 0
            } else if self.event_idx {
                (queue.told..published).any(|index| index & 0xffff == event)
            } else {
                event & 1 == 0 && batch > 0
            };
            queue.told = published;
            if wanted {
                self.isr_due += 1;
                if queue.vector != NO_VECTOR {
                    self.due.push_back(read.q);
                }
            }
        }
        self.isr_due = match (self.block.is("isr_set_o"), self.isr_due) {
            (false, due) => due,
            (true, 0) => return Err(Failure::Contract("an interrupt nobody wants".to_owned())),
            (true, due) => due - 1,
        };
        let irq = self.block.get("irq_o");
        let fields = layout("irq_req_t");
        if fields.get(&irq, "valid") != 0 && self.block.is("irq_ready_i") {
            let (q, vector) = (self.block.word("irq_q_o"), fields.get(&irq, "vector"));
            let asked = self.block.is("told_asked_o");
            let due = if asked {
                self.tell_due.take()
            } else {
                self.due.pop_front()
            };
            ensure!(
                due == Some(q) && vector == self.queues[q as usize].vector,
                "vector {vector} for queue {q} is not what is due"
            );
            ensure!(
                self.block.is("told_valid_o") && self.block.is("told_sent_o"),
                "an interrupt is not reported"
            );
        } else if self.block.is("told_valid_o") {
            // Nobody to be told: answered without.
            let q = self.block.word("irq_q_o");
            ensure!(
                self.tell_due.take() == Some(q)
                    && self.queues[q as usize].vector == NO_VECTOR
                    && self.block.is("told_asked_o")
                    && !self.block.is("told_sent_o"),
                "an interrupt of queue {q} is reported that was not sent"
            );
        }
        if self.block.fires("tell_valid_i", "tell_ready_o") {
            ensure!(self.tell_due.is_none(), "two at a time");
            self.tell_due = self.telling.take();
            self.isr_due += 1;
        }
        let published = self.block.fires("pub_valid_i", "pub_ready_o");
        self.block.tick()?;
        if published && let Some((q, index)) = self.publishing.take() {
            let queue = &mut self.queues[q as usize];
            queue.published = index;
            if self.msix && queue.vector == NO_VECTOR {
                queue.told = index; // nobody can be told
            }
        }
        Ok(())
    }

    /// Every publication is decided, and every decision carried out.
    fn drain(&mut self, limit: u64, rng: &mut Rng) -> Result<(), Failure> {
        for _ in 0..limit {
            self.cycle(100, rng)?;
            if self.publishing.is_none()
                && self.telling.is_none()
                && self.tell_due.is_none()
                && self.due.is_empty()
                && self.isr_due == 0
                && self
                    .queues
                    .iter()
                    .all(|queue| queue.told == queue.published)
                && self.block.is("idle_o")
            {
                return Ok(());
            }
        }
        let open: Vec<_> = (0..QUEUES)
            .filter(|q| self.queues[*q as usize].told != self.queues[*q as usize].published)
            .collect();
        Err(Failure::Contract(format!(
            "after {limit} cycles: queues {open:?} undecided, due {:?} and {}, idle {}",
            self.due,
            self.isr_due,
            self.block.is("idle_o")
        )))
    }
}

fn random(seed: u64, event_idx: bool, msix: bool, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(seed, event_idx, msix, rng)?;
    bench.host.errors = 2;
    let active = rng.pick(&[1, 3, QUEUES]);
    for _ in 0..8000 {
        if bench.publishing.is_none() && rng.chance(20) {
            let q = rng.below(active);
            let queue = &bench.queues[q as usize];
            let most = rng.pick(&[1, 4, 64]);
            let step = rng.range(1, most);
            bench.publishing = Some((q, queue.published + step));
        }
        if bench.telling.is_none() && bench.tell_due.is_none() && rng.chance(2) {
            bench.telling = Some(rng.below(active));
        }
        if rng.chance(10) {
            let q = rng.below(active);
            let near = bench.queues[q as usize].published + rng.below(16);
            let wish = if event_idx {
                near.wrapping_sub(8) & 0xffff
            } else {
                rng.below(2)
            };
            bench.wish(q, wish);
        }
        bench.cycle(rng.pick(&[20, 100]), rng)?;
    }
    bench.drain(4000, rng)
}

#[test]
fn interrupts_come_exactly_if_the_wish_is_among_what_was_published() {
    for_seeds(12, |seed, rng| random(seed, true, true, rng));
}

#[test]
fn flags_are_asked_without_event_idx() {
    for_seeds(6, |seed, rng| random(seed, false, true, rng));
}

#[test]
fn isr_is_set_without_msix() {
    for_seeds(6, |seed, rng| random(seed, true, false, rng));
}

#[test]
fn range_test_holds_where_indexes_wrap() {
    for_seeds(2, |seed, rng| {
        let mut bench = Bench::new(seed, true, true, rng)?;
        let step = 1500;
        for i in 1..200 {
            let q = 5;
            let published = bench.queues[q as usize].published;
            bench.wish(q, (published + rng.below(2 * step)) & 0xffff);
            bench.publishing = Some((q, i * step));
            bench.drain(500, rng)?;
        }
        Ok(())
    });
}

#[test]
fn many_queues_within_one_read_latency_do_not_hang() {
    for_seeds(4, |seed, rng| {
        let mut bench = Bench::new(seed, true, true, rng)?;
        bench.host.latency = (500, 500);
        bench.host.ready = 100;
        for round in 1..4 {
            for q in 0..QUEUES {
                bench.wish(q, round - 1); // each wants to hear of this one
                bench.publishing = Some((q, round));
                for _ in 0..2000 {
                    bench.cycle(100, rng)?;
                    if bench.publishing.is_none() {
                        break;
                    }
                }
                ensure!(
                    bench.publishing.is_none(),
                    "queue {q} waits for 2000 cycles"
                );
            }
            bench.drain(4000, rng)?;
        }
        Ok(())
    });
}
