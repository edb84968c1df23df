//! The surroundings of `vq_empty`: a driver that posts, a card that uses, `vq_avail` that answers
//! questions and `vq_notify` that interrupts, each at random times; and what must hold meanwhile.

use std::collections::VecDeque;

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, layout};
use ferronic_spec::window as w;

/// Bytes of BAR 0 before the window.
const WINDOW: u64 = 0x8000;
/// Cycles between two answers of `vq_avail`.
const ANSWERS_APART: u64 = 9;

/// One transmit queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Settings as they were taken.
    pub empty: u32,
    pub max_age: u32,
    pub marker: u32,
    /// Posted by the driver; known to the card; used by it; published.
    pub posted: u64,
    pub known: u64,
    pub used: u64,
    pub published: u64,
    /// Since when the oldest entry waits that no interrupt has reported.
    pub oldest: Option<u64>,
    /// When that was published.
    noticed: u64,
    /// Since when a marker's interrupt is due.
    pub marked: Option<u64>,
    /// The queue has a vector.
    pub vector: bool,
    /// The time of the answer by which it became empty.
    empty_from: Option<u64>,
    /// The last question.
    question: Option<Question>,
    /// When an answer justified an interrupt; when one last counted as overtaken.
    justified: u64,
    overtaken_at: u64,
    /// Until when a setting may be the old or the new one.
    loose: u64,
    /// When anything last happened that bears on its being empty.
    changed: u64,
    /// When becoming empty last began anew.
    forgot: u64,
    /// A doorbell is on its way until then.
    rings: Option<u64>,
    /// The card is done with the next buffer then.
    done: Option<u64>,
    /// The driver wants an interrupt of virtio's own kind then.
    wanted: Option<u64>,
    /// Interrupts: asked for by this block and sent; at least and at most by cause, in the order of
    /// the counters; overtaken at least and at most.
    pub told: u64,
    pub by_cause: [(u64, u64); 3],
    pub overtaken: (u64, u64),
}

impl Queue {
    fn holdoff(&self) -> u64 {
        w::TX_EMPTY_HOLDOFF.get(self.empty).into()
    }

    fn is_on(&self) -> bool {
        w::TX_EMPTY_ENABLE.get(self.empty) != 0
    }

    /// Becoming empty begins anew.
    fn forget(&mut self, now: u64) {
        self.changed = now;
        self.forgot = now;
        self.empty_from = None;
        if let Some(question) = &mut self.question {
            question.void = true;
        }
    }

    /// Nothing is under way, and the driver has told all that it posted.
    fn is_still(&self) -> bool {
        self.known == self.published && self.rings.is_none() && self.wanted.is_none()
    }
}

/// What `vq_avail` was asked.
#[derive(Clone, Copy, Debug)]
struct Question {
    at: u64,
    /// The hold-off was over.
    late: bool,
    /// Something came meanwhile: the answer is of no interest.
    void: bool,
}

/// A read of avail.idx.
struct Read {
    q: usize,
    asked: u64,
    due: u64,
    sample: u64,
    seen: u64,
}

/// What `vq_notify` does.
#[derive(Clone, Copy, PartialEq)]
enum Notify {
    Free,
    /// Interrupts for a queue then: by this block's wish or not.
    Busy(u64, usize, bool),
    /// Does something else until then.
    Away(u64),
}

/// How lively everything is, in hundredths a cycle.
#[derive(Clone, Copy)]
pub struct Rates {
    pub post: u64,
    pub ready: u64,
    /// Of the publications, those that the driver wants an interrupt for.
    pub wish: u64,
    pub marker: u64,
    /// Of the posts, those whose doorbell comes.
    pub doorbell: u64,
    /// Cycles from a question to its answer, at most.
    pub latency: u64,
}

pub struct Bench {
    pub block: Block,
    pub queues: Vec<Queue>,
    pub time: u64,
    pub rates: Rates,
    /// Cycles after which what is due must have been asked for.
    pub soon: u64,
    publishing: Option<(usize, bool, u64, bool)>,
    notify: Notify,
    reads: VecDeque<Read>,
    last_answer: u64,
    telling: Option<usize>,
    /// Since when a question is offered.
    offered: Option<u64>,
    causes: [bool; 3],
}

impl Bench {
    pub fn new(name: &str, pairs: usize, seed: u64, rng: &mut Rng) -> Result<Self, Failure> {
        let mut block = Block::new(name, seed)?;
        // As the reset of the function does.
        block.set("fn_rst_i", true);
        for q in 0..2 * pairs as u64 {
            for area in 0..4u64 {
                let clear = layout("vq_clear_t").pack(&[("valid", 1), ("q", q)]);
                block.set("clear_i", clear);
                block.set("clear_area_i", area);
                block.tick()?;
            }
        }
        block.set("clear_i", Bits::ZERO);
        block.set("fn_rst_i", false);
        let mut queues = vec![Queue::default(); pairs];
        for queue in &mut queues {
            queue.vector = rng.chance(90);
        }
        Ok(Self {
            block,
            queues,
            time: rng.below(1 << 30) + 100_000,
            rates: Rates {
                post: 5,
                ready: 70,
                wish: 10,
                marker: 20,
                doorbell: 70,
                latency: 60,
            },
            soon: 400 + 60 * pairs as u64,
            publishing: None,
            notify: Notify::Free,
            reads: VecDeque::new(),
            last_answer: 0,
            telling: None,
            offered: None,
            causes: [false; 3],
        })
    }

    /// One cycle; what the block answers to an access if it does.
    pub fn cycle(&mut self, rng: &mut Rng) -> Result<Option<u32>, Failure> {
        let now = self.time;
        let rates = self.rates;
        // The driver and the data path.
        for queue in &mut self.queues {
            if rng.below(10_000) < rates.post && queue.posted - queue.published < 8 {
                queue.posted += 1;
                queue.changed = now;
                // A doorbell is only needed from a driver that was asked for it: if it does not
                // come, the read that the card has under way sees the post.
                if rng.chance(rates.doorbell) || queue.question.is_none() {
                    queue.rings = Some(now + rng.below(60));
                }
            }
            // Nor does one get lost for good.
            if queue.posted > queue.known && queue.question.is_none() {
                queue.rings.get_or_insert(now + 100);
            }
            if queue.rings.is_some_and(|at| at <= now) {
                queue.rings = None;
                queue.known = queue.posted;
            }
            if queue.known > queue.used && queue.done.is_none() {
                queue.done = Some(now + rng.below(100));
            }
            if queue.done.is_some_and(|at| at <= now) {
                queue.done = None;
                queue.used = queue.known.min(queue.used + rng.range(1, 4));
            }
        }
        if self.publishing.is_none() {
            let count = self.queues.len() as u64;
            let q = rng.below(count) as usize;
            if self.queues[q].used > self.queues[q].published && rng.chance(20) {
                self.publishing = Some((q, rng.chance(rates.marker), rng.below(64), false));
            }
        }
        self.block.set("pub_valid_i", self.publishing.is_some());
        if let Some((q, marker, age, _)) = self.publishing {
            self.block.set("pub_q_i", 2 * q as u64 + 1);
            self.block.set("pub_idx_i", self.queues[q].used & 0xffff);
            self.block.set("pub_marker_i", marker);
            self.block.set("pub_age_i", age);
        }
        // vq_notify: one thing at a time.
        let mut told = None;
        match self.notify {
            Notify::Free => {
                let due = (0..self.queues.len())
                    .find(|q| self.queues[*q].wanted.is_some_and(|at| at <= now));
                if let Some(q) = due.filter(|_| rng.chance(50)) {
                    self.queues[q].wanted = None;
                    self.notify = Notify::Busy(now + rng.range(3, 12), q, false);
                }
            }
            Notify::Busy(at, q, asked) if at <= now => {
                told = Some((q, asked));
                self.notify = Notify::Away(now + 2);
            }
            Notify::Away(at) if at <= now => self.notify = Notify::Free,
            _ => {}
        }
        let free = self.notify == Notify::Free && rng.chance(rates.ready);
        self.block.set("tell_ready_i", free);
        self.block.set("told_valid_i", told.is_some());
        let sent = told.is_some_and(|(q, asked)| !asked || self.queues[q].vector);
        if let Some((q, asked)) = told {
            self.block.set("told_q_i", 2 * q as u64 + 1);
            self.block.set("told_asked_i", asked);
            self.block.set("told_sent_i", sent);
        }
        // vq_avail.
        self.block.set("ask_ready_i", rng.chance(rates.ready));
        for read in &mut self.reads {
            if read.sample == now {
                read.seen = self.queues[read.q].posted;
            }
        }
        let due = self
            .reads
            .front()
            .is_some_and(|read| read.due <= now && now >= self.last_answer + ANSWERS_APART);
        let read = if due { self.reads.pop_front() } else { None };
        self.block.set("ans_valid_i", false);
        let mut answered = None;
        if let Some(read) = read {
            self.last_answer = now;
            let queue = &mut self.queues[read.q];
            queue.known = queue.known.max(read.seen);
            if let Some(question) = queue.question.take_if(|last| last.at == read.asked) {
                self.block.set("ans_valid_i", true);
                self.block.set("ans_q_i", 2 * read.q as u64 + 1);
                self.block.set("ans_idx_i", read.seen & 0xffff);
                answered = Some((read.q, question, read.seen));
            }
        }
        self.block.set("time_i", now & 0xff_ffff);
        self.block.settle()?;
        let tell = self.block.is("tell_valid_o");
        self.block.set("pub_ready_i", free && !tell);
        self.block.settle()?;

        self.asked(rng)?;
        if let Some((q, question, seen)) = answered {
            self.answer(q, question, seen);
        }
        self.tells(rng)?;
        if let Some((q, asked)) = told {
            self.told(q, asked, sent)?;
        }
        self.overdue()?;
        let response = self.block.get("rsp_o");
        let fields = layout("reg_rsp_t");
        let response = (fields.get(&response, "ack") == 1).then(|| fields.get(&response, "rdata"));
        let published = self.block.fires("pub_valid_i", "pub_ready_i");
        self.block.tick()?;
        if published {
            self.published(rng);
        }
        self.time += 1;
        Ok(response.map(|value| value as u32))
    }

    /// A question is taken.
    fn asked(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        if !self.block.is("ask_valid_o") {
            return Ok(());
        }
        let offered = *self.offered.get_or_insert(self.time);
        if !self.block.is("ask_ready_i") {
            return Ok(());
        }
        self.offered = None;
        let (now, q) = (self.time, (self.block.word("ask_q_o") / 2) as usize);
        ensure!(self.block.word("ask_q_o") % 2 == 1, "not a transmit queue");
        let queue = &mut self.queues[q];
        ensure!(
            queue.is_on() || now < queue.changed + self.soon,
            "{q} is asked about though off"
        );
        queue.question = None;
        if queue.known > queue.published {
            return Ok(()); // work at hand
        }
        let late = queue.empty_from.is_some();
        if late {
            let from = queue.empty_from.unwrap_or(0);
            ensure!(
                now >= from + queue.holdoff(),
                "{q} is asked about {} cycles after it became empty",
                now - from
            );
        }
        queue.question = Some(Question {
            at: now,
            late,
            // As something came since it was offered, another one follows.
            void: queue.forgot + 1 >= offered,
        });
        let due = now + rng.range(8, self.rates.latency);
        self.reads.push_back(Read {
            q,
            asked: now,
            due,
            sample: rng.range(now + 1, due - 1),
            seen: 0,
        });
        Ok(())
    }

    fn answer(&mut self, q: usize, question: Question, seen: u64) {
        let now = self.time;
        let queue = &mut self.queues[q];
        if question.void {
            return;
        }
        if seen != queue.published {
            if question.late {
                queue.overtaken.0 += 1;
                queue.overtaken.1 += 1;
                queue.overtaken_at = now;
            }
            queue.empty_from = None;
        } else if question.late || queue.holdoff() == 0 {
            queue.justified = now;
        } else {
            queue.empty_from = Some(now);
        }
    }

    /// An interrupt is asked for: is there a reason?
    fn tells(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        let now = self.time;
        if !self.block.is("tell_valid_o") {
            return Ok(());
        }
        let q = (self.block.word("tell_q_o") / 2) as usize;
        if self.telling != Some(q) {
            let queue = &self.queues[q];
            let aged = queue.max_age != 0
                && queue
                    .oldest
                    .is_some_and(|oldest| now > oldest + u64::from(queue.max_age));
            let empty = now < queue.justified + 20;
            self.causes = [empty, aged, queue.marked.is_some()];
            ensure!(
                queue.oldest.is_some(),
                "{q}: everything that is used was reported"
            );
            if now < queue.loose {
                self.causes = [true; 3];
            }
            ensure!(
                self.causes.contains(&true),
                "{q}: an interrupt for no reason at {now:x}: {queue:x?}"
            );
            self.telling = Some(q);
        }
        if self.block.is("tell_ready_i") {
            self.notify = Notify::Busy(now + rng.range(2, 12), q, true);
        }
        Ok(())
    }

    fn told(&mut self, q: usize, asked: bool, sent: bool) -> Result<(), Failure> {
        let causes = self.causes;
        let queue = &mut self.queues[q];
        if asked {
            ensure!(self.telling.take() == Some(q), "{q} was not asked for");
            if sent {
                queue.told += 1;
                let one = causes.iter().filter(|cause| **cause).count() == 1;
                for (cause, (least, most)) in causes.iter().zip(&mut queue.by_cause) {
                    *least += u64::from(*cause && one);
                    *most += u64::from(*cause);
                }
            }
        } else if self.telling == Some(q) {
            self.telling = None;
        }
        queue.oldest = None;
        queue.marked = None;
        if let Some((waiting, _, _, known)) = &mut self.publishing {
            *known |= *waiting == q;
        }
        Ok(())
    }

    fn published(&mut self, rng: &mut Rng) {
        let now = self.time;
        let Some((q, marker, age, known)) = self.publishing.take() else {
            return;
        };
        let queue = &mut self.queues[q];
        queue.published = queue.used;
        queue.forget(now);
        if now < queue.overtaken_at + 14 {
            queue.overtaken.0 -= 1; // may have come before that answer was looked at
            queue.overtaken_at = 0;
        }
        if !known {
            if queue.oldest.is_none() {
                queue.oldest = Some(now - 16 * age);
                queue.noticed = now;
            }
            if marker && queue.marker != 0 {
                queue.marked.get_or_insert(now);
            }
        }
        if rng.chance(self.rates.wish) {
            queue.wanted = Some(now + rng.below(200));
        }
        let away = now + rng.range(3, 10);
        self.notify = Notify::Away(away);
    }

    /// What should have been told by now.
    fn overdue(&self) -> Result<(), Failure> {
        let now = self.time;
        for (q, queue) in self.queues.iter().enumerate() {
            let Some(oldest) = queue.oldest else { continue };
            if let Some(marked) = queue.marked {
                ensure!(
                    now < marked + self.soon,
                    "{q}: a marker waits since {marked}"
                );
            }
            if queue.max_age != 0 {
                let end = oldest + u64::from(queue.max_age);
                let end = end.max(queue.noticed).max(queue.loose);
                ensure!(now < end + self.soon, "{q}: {} cycles old", now - oldest);
            }
            if queue.is_on() && queue.posted == queue.published {
                let end = queue.changed + queue.holdoff() + 2 * self.rates.latency;
                ensure!(
                    now < end + self.soon,
                    "{q}: empty for {} cycles",
                    now - queue.changed
                );
            }
        }
        Ok(())
    }

    /// Skips idle time; how much.
    pub fn skip(&mut self) -> u64 {
        let still = self.queues.iter().all(Queue::is_still)
            && self.publishing.is_none()
            && self.reads.is_empty()
            && self.notify == Notify::Free;
        if !still || !self.block.is("idle_o") || !self.block.is("timer_armed_o") {
            return 0;
        }
        let left = self.block.word("timer_left_o").saturating_sub(1);
        self.time += left;
        left
    }

    /// One access to the row of a queue pair, or beyond.
    pub fn access(
        &mut self,
        offset: u64,
        write: Option<u32>,
        be: u64,
        rng: &mut Rng,
    ) -> Result<u32, Failure> {
        let request = layout("reg_req_t").pack(&[
            ("valid", 1),
            ("write", write.is_some().into()),
            ("addr", WINDOW + offset),
            ("be", be),
            ("wdata", write.unwrap_or(0).into()),
        ]);
        for _ in 0..60 {
            self.block.set("req_i", request);
            if let Some(value) = self.cycle(rng)? {
                self.block.set("req_i", Bits::ZERO);
                // What was written counts from now on.
                return Ok(value);
            }
        }
        Err(Failure::Contract(format!("no answer at {offset:#x}")))
    }

    /// Writes a setting of a queue, and takes note if it is sound.
    pub fn set(&mut self, q: usize, word: u64, value: u32, rng: &mut Rng) -> Result<(), Failure> {
        let sound = match word {
            w::TX_EMPTY => value & 0x7f80_0000 == 0,
            w::TX_MAX_AGE => value <= 8_388_607,
            w::TX_MARKER => value <= 1,
            _ => false,
        };
        let before = self.queues[q].clone();
        if sound {
            // When it takes effect is not seen.
            let queue = &mut self.queues[q];
            queue.loose = self.time + 1000;
            match word {
                w::TX_EMPTY => {
                    queue.forget(self.time);
                    queue.empty = value | (before.empty & 0x8000_0000);
                }
                w::TX_MAX_AGE => queue.max_age = 0,
                _ => queue.marker = 0,
            }
        }
        self.access(w::TX_EMPTY_STRIDE * q as u64 + word, Some(value), 15, rng)?;
        if sound {
            let now = self.time;
            let queue = &mut self.queues[q];
            queue.loose = now + self.soon;
            match word {
                w::TX_EMPTY => {
                    queue.empty = value;
                    queue.forget(now);
                }
                w::TX_MAX_AGE => {
                    queue.max_age = value;
                    if before.max_age == 0 && queue.oldest.is_some() {
                        queue.oldest = Some(now - 4); // of the access
                    }
                }
                _ => queue.marker = value,
            }
        }
        Ok(())
    }
}
