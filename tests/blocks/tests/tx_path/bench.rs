//! What lies around `tx_path`: queues, the wire; and what must come out.

use std::collections::{HashMap, VecDeque};

use ferronic_block_tests::{Bits, Block, Buffer, Failure, Rng, Walker, ensure, layout};
use ferronic_oracle::{Cause, Header, Offloads, Outcome, transmit_buffer};

use crate::host::Host;

pub const PAIRS: u64 = 4;
/// Bytes of a buffer at most, where frames are cut into segments.
const MAX_BUFFER: usize = 12 + 22 + 65_535;
/// Cycles without anything happening after which a test gives up.
const PATIENCE: u64 = 20_000;

/// What else is wrong with a buffer than its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A read of one of its bytes fails.
    Read,
    /// Its chain breaks off.
    Broken,
}

const CAUSES: [(&str, Option<Cause>, Fault); 5] = [
    ("drop_short_o", Some(Cause::Short), Fault::None),
    ("drop_long_o", Some(Cause::Long), Fault::None),
    ("drop_offload_o", Some(Cause::Offload), Fault::None),
    ("drop_read_o", None, Fault::Read),
    ("drop_other_o", None, Fault::Broken),
];

/// What must come of a buffer: frames, all of them or, if it is dropped later on, the first ones.
#[derive(Debug)]
struct Expected<T> {
    id: u64,
    kind: &'static str,
    left: VecDeque<T>,
    dropped: bool,
}

/// A queue's buffers that are not back, frames that are to leave, events that are to be counted.
#[derive(Default)]
struct Queue {
    back: VecDeque<(u64, Fault)>,
    wire: VecDeque<Expected<Vec<u8>>>,
    events: VecDeque<Expected<u64>>,
}

impl Queue {
    fn is_done(&self) -> bool {
        self.back.iter().all(|(_, fault)| *fault == Fault::Broken)
            && self.wire.iter().all(|expected| expected.dropped)
            && self.events.is_empty()
    }
}

pub struct Bench {
    pub block: Block,
    pub walker: Walker,
    pub offloads: Offloads,
    /// Hundredths of the cycles in which wire and used ring take something.
    pub ready: u64,
    /// Frames on the wire.
    pub sent: u64,
    /// Bytes on the wire by queue.
    pub bytes: HashMap<u64, u64>,
    /// Pulses of `queue_error_o`.
    pub errors: u64,
    width: usize,
    queues: HashMap<u64, Queue>,
    /// Buffers that were dropped, by the causes that are right for them.
    dropped: Vec<(Vec<Cause>, Fault)>,
    pulses: [u64; 5],
    counted: u64,
    host: Host,
    out: Vec<u8>,
    work: Option<u64>,
    next: u64,
    active: u64,
    /// The function was reset: what was on its way may end or be aborted.
    resetting: bool,
    /// What the buffers were.
    notes: Vec<String>,
}

impl Bench {
    pub fn new(width: usize, seed: u64, offloads: Offloads) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new(&format!("tx_path_{width}"), seed)?,
            walker: Walker::default(),
            offloads,
            ready: 100,
            sent: 0,
            bytes: HashMap::new(),
            errors: 0,
            width,
            queues: HashMap::new(),
            dropped: Vec::new(),
            pulses: [0; 5],
            counted: 0,
            host: Host::new(width),
            out: Vec::new(),
            work: None,
            next: 0,
            active: 0,
            resetting: false,
            notes: Vec::new(),
        };
        let negotiated = [
            ("csum", u64::from(offloads.csum)),
            ("tso4", u64::from(offloads.tso4)),
            ("tso6", u64::from(offloads.tso6)),
            ("ecn", u64::from(offloads.ecn)),
            ("uso", u64::from(offloads.uso)),
        ];
        bench
            .block
            .set("offload_i", layout("tx_offload_t").pack(&negotiated));
        bench.block.set("fn_rst_i", true);
        bench.block.tick()?;
        bench.block.set("fn_rst_i", false);
        for _ in 0..16 {
            bench.block.tick()?; // the scheduler clears its RAM
        }
        Ok(bench)
    }

    /// Posts a buffer, header included, cut into `pieces` at random places.
    pub fn post(
        &mut self,
        q: u64,
        kind: &'static str,
        bytes: &[u8],
        pieces: u64,
        fault: Fault,
        rng: &mut Rng,
    ) {
        self.next += 1;
        let id = self.next & 0xffff;
        let segments = self.host.store(self.next << 20, bytes, pieces, rng);
        if fault == Fault::Read {
            let (address, len) = rng.pick(&segments);
            self.host.bad.push(address + rng.below(len));
        }
        self.expect(q, id, kind, bytes, fault);
        let head = &bytes[..bytes.len().min(160)];
        self.notes.push(format!(
            "{:x?}, {} bytes in pieces of {:?} bytes: {head:02x?}",
            Header::read(bytes),
            bytes.len(),
            segments.iter().map(|(_, len)| len).collect::<Vec<_>>()
        ));
        let buffer = Buffer {
            id,
            segments,
            broken: fault == Fault::Broken,
        };
        self.walker.posted.entry(q).or_default().push_back(buffer);
        self.work = Some(q);
        self.active = self.block.cycle();
    }

    /// Notes what must come of a buffer.
    fn expect(&mut self, q: u64, id: u64, kind: &'static str, bytes: &[u8], fault: Fault) {
        let mut frames = Vec::new();
        let mut dropped = fault != Fault::None;
        let mut causes = Vec::new();
        match transmit_buffer(bytes, self.offloads) {
            Outcome::Sent(segments) => {
                frames = segments;
                if dropped {
                    frames.pop();
                }
            }
            Outcome::Dropped(why) => {
                causes = why;
                dropped = true;
                // It is found out when the card has come so far: segments may have left.
                let known = &bytes[..bytes.len().min(MAX_BUFFER)];
                let header = Header::read(bytes);
                if bytes.len() > known.len()
                    && header.is_some_and(|header| header.gso_type != 0)
                    && let Outcome::Sent(segments) = transmit_buffer(known, self.offloads)
                {
                    frames = segments;
                    frames.pop();
                }
            }
        }
        if dropped {
            let causes = if fault == Fault::None {
                causes
            } else {
                Vec::new()
            };
            self.dropped.push((causes, fault));
        }
        let queue = self.queues.entry(q).or_default();
        queue.back.push_back((id, fault));
        queue.events.push_back(Expected {
            id,
            kind,
            left: frames.iter().map(|frame| frame.len() as u64).collect(),
            dropped,
        });
        if !frames.is_empty() {
            queue.wire.push_back(Expected {
                id,
                kind,
                left: frames.into(),
                dropped,
            });
        }
    }

    pub fn cycle(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        self.walker.drive(&mut self.block, rng);
        self.block.set("work_valid_i", self.work.is_some());
        self.block.set("work_q_i", self.work.unwrap_or(1));
        self.block.set("used_ready_i", rng.chance(self.ready));
        self.block.set("tx_ready_i", rng.chance(self.ready));
        if self.host.drive(&mut self.block, rng) {
            self.active = self.block.cycle();
        }
        self.block.settle()?;
        let check = self.block.word("check_q_o");
        // As the walker has it: what is in hand is not committed.
        self.block.set("has_work_i", self.walker.has(check));
        self.block.settle()?;

        let segment = layout("vq_seg_t").get(&self.block.get("seg_i"), "err");
        let broken = segment != 0 && self.block.fires("seg_valid_i", "seg_ready_o");
        self.walker.observe(&self.block, false, rng)?;
        if broken {
            // The queue is stopped.
            self.walker.taken = 0;
            self.walker.posted.remove(&self.walker.queue);
        }
        if self.block.fires("rd_req_valid_o", "rd_req_ready_i") {
            self.host.request(&self.block, rng)?;
        }
        if self.block.fires("used_valid_o", "used_ready_i") {
            self.used()?;
        }
        self.errors += u64::from(self.block.is("queue_error_o"));
        for (count, (port, _, _)) in self.pulses.iter_mut().zip(CAUSES) {
            *count += u64::from(self.block.is(port));
        }
        self.event()?;
        if self.block.fires("tx_valid_o", "tx_ready_i") {
            self.beat()?;
        }
        self.work = None;
        self.block.tick()
    }

    fn used(&mut self) -> Result<(), Failure> {
        let fields = layout("vq_used_t");
        let used = self.block.get("used_o");
        let get = |name| fields.get(&used, name);
        let (q, id, len) = (get("q"), get("id"), get("len"));
        ensure!(
            len == 0 && get("publish") == 1,
            "used entry {id} of {len} bytes"
        );
        ensure!(!self.resetting, "a used entry behind a reset");
        let first = self.queues.entry(q).or_default().back.pop_front();
        ensure!(
            first.is_some_and(|(wanted, fault)| wanted == id && fault != Fault::Broken),
            "buffer {id} of queue {q} is back, {first:?} is next"
        );
        self.active = self.block.cycle();
        Ok(())
    }

    /// What is told to the counters is what became of the buffers of a queue, in their order.
    fn event(&mut self) -> Result<(), Failure> {
        let fields = layout("frame_event_t");
        let event = self.block.get("event_o");
        let get = |name| fields.get(&event, name);
        if get("valid") == 0 || self.resetting {
            return Ok(());
        }
        let (q, drop, bytes) = (get("q"), get("drop") != 0, get("bytes"));
        self.counted += u64::from(!drop);
        self.active = self.block.cycle();
        let events = &mut self.queues.entry(q).or_default().events;
        let Some(first) = events.front_mut() else {
            return Err(Failure::Contract(format!(
                "an event of queue {q}, of which everything was counted"
            )));
        };
        if drop {
            ensure!(
                first.dropped,
                "buffer {} of queue {q} ({}) was counted as dropped by {:?}:\n{}",
                first.id,
                first.kind,
                CAUSES.map(|(port, ..)| (port, self.block.is(port))),
                self.notes[first.id as usize - 1]
            );
            events.pop_front();
        } else {
            let wanted = first.left.pop_front();
            ensure!(
                wanted == Some(bytes),
                "a frame of {bytes} bytes of buffer {} of queue {q} ({}) was counted, not {wanted:?}:\n\
                 {}",
                first.id,
                first.kind,
                self.notes[first.id as usize - 1]
            );
            if first.left.is_empty() && !first.dropped {
                events.pop_front();
            }
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), Failure> {
        self.active = self.block.cycle();
        let lanes = self.width / 8;
        let (last, bytes) = (
            self.block.is("tx_last_o"),
            self.block.word("tx_bytes_o") as usize,
        );
        ensure!(
            bytes == lanes || last && bytes > 0 && bytes < lanes,
            "a beat of {bytes} bytes, last is {last}"
        );
        self.out
            .extend_from_slice(&self.block.get("tx_data_o").bytes()[..bytes]);
        if !last {
            return Ok(());
        }
        let frame = std::mem::take(&mut self.out);
        if self.resetting && self.block.is("tx_abort_o") {
            return Ok(());
        }
        ensure!(!self.block.is("tx_abort_o"), "a frame was aborted");
        for (q, queue) in &mut self.queues {
            // What is dropped later on may have sent less than it could.
            let candidates = queue.wire.iter().take_while(|expected| expected.dropped);
            let count = candidates.count() + 1;
            let found = queue.wire.iter().take(count);
            let mut found = found.map(|expected| expected.left.front() == Some(&frame));
            if let Some(at) = found.position(|found| found) {
                queue.wire.drain(..at);
                queue.wire[0].left.pop_front();
                if queue.wire[0].left.is_empty() {
                    queue.wire.pop_front();
                }
                self.sent += 1;
                *self.bytes.entry(*q).or_default() += frame.len() as u64;
                return Ok(());
            }
        }
        Err(Failure::Contract(self.unexpected(&frame)))
    }

    /// Says how a frame differs from the most similar one of those that are next.
    fn unexpected(&self, frame: &[u8]) -> String {
        let next = self.queues.iter().filter_map(|(q, queue)| {
            let expected = queue.wire.front()?;
            let wanted = expected.left.front()?;
            let same = frame.iter().zip(wanted).filter(|(a, b)| a == b).count();
            Some((same, q, expected, wanted))
        });
        let Some((_, q, expected, wanted)) = next.max_by_key(|(same, ..)| *same) else {
            return format!("a frame of {} bytes where none is to leave", frame.len());
        };
        let place = frame.iter().zip(wanted).position(|(a, b)| a != b);
        let place = place.unwrap_or(frame.len().min(wanted.len()));
        let head = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(160)]);
        format!(
            "a frame of {} bytes instead of {} bytes of buffer {} of queue {q} ({}), with {} to go; \
             they differ at byte {place}:\n{}\ninstead of\n{}\n{}",
            frame.len(),
            wanted.len(),
            expected.id,
            expected.kind,
            expected.left.len(),
            head(frame),
            head(wanted),
            self.notes[expected.id as usize - 1]
        )
    }

    /// Buffers that are posted and not back.
    pub fn pending(&self) -> usize {
        self.queues.values().map(|queue| queue.back.len()).sum()
    }

    /// Those of one queue.
    pub fn pending_of(&self, q: u64) -> usize {
        self.queues.get(&q).map_or(0, |queue| queue.back.len())
    }

    /// Whether everything of a queue is out.
    pub fn is_done(&self, q: u64) -> bool {
        self.queues.get(&q).is_none_or(Queue::is_done)
    }

    /// Resets the function; what was posted is forgotten, what is being read is still read.
    pub fn reset(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        self.resetting = true;
        self.walker = Walker::default();
        self.block.set("seg_valid_i", false);
        self.block.set("buf_req_ready_i", false);
        self.block.set("rd_req_ready_i", false);
        self.block.set("used_ready_i", false);
        self.block.set("tx_ready_i", false);
        self.block.set("work_valid_i", false);
        self.block.set("has_work_i", false);
        self.block.set("rd_done_i", false);
        self.block.set("ram_we_i", Bits::ZERO);
        self.block.set("fn_rst_i", true);
        for _ in 0..rng.range(1, 3) {
            self.block.tick()?;
        }
        self.block.set("fn_rst_i", false);
        self.ready = 50;
        // What is being read is read to the end.
        while !self.host.is_idle() {
            self.cycle(rng)?;
        }
        for _ in 0..100 {
            self.cycle(rng)?;
        }
        ensure!(self.out.is_empty(), "a frame was left without its end");
        ensure!(self.block.is("idle_o"), "not idle behind a reset");
        self.resetting = false;
        self.queues.clear();
        self.dropped.clear();
        self.pulses = [0; 5];
        (self.counted, self.sent, self.errors) = (0, 0, 0);
        Ok(())
    }

    /// Runs until everything is out and counted.
    pub fn drain(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        self.block.set("pause_i", false);
        self.active = self.block.cycle();
        loop {
            self.cycle(rng)?;
            if self.queues.values().all(Queue::is_done) && self.block.is("idle_o") {
                break;
            }
            let silent = self.block.cycle() - self.active;
            ensure!(silent < PATIENCE, "{}", self.stuck());
        }
        for _ in 0..4 {
            self.cycle(rng)?;
        }
        ensure!(
            self.counted == self.sent,
            "{} frames left, {} were counted",
            self.sent,
            self.counted
        );
        self.check_pulses()
    }

    fn stuck(&self) -> String {
        let mut text = format!(
            "nothing happens any more, idle is {}",
            self.block.is("idle_o")
        );
        for (q, queue) in &self.queues {
            let next = queue.events.front();
            text += &format!(
                "\nqueue {q}: {} buffers are not back, {:?} are to leave, {:?} is next",
                queue.back.len(),
                queue.wire.iter().map(|e| e.left.len()).collect::<Vec<_>>(),
                next.map(|e| (e.id, e.kind, e.dropped))
            );
        }
        text
    }

    /// A pulse for each buffer that was dropped, of a cause that is right for it.
    fn check_pulses(&self) -> Result<(), Failure> {
        for ((port, cause, fault), seen) in CAUSES.into_iter().zip(self.pulses) {
            let (mut least, mut most) = (0, 0);
            for (causes, of) in &self.dropped {
                let holds = cause.map_or(*of == fault, |cause| causes.contains(&cause));
                most += u64::from(holds);
                least += u64::from(holds && causes.len() <= 1);
            }
            ensure!(
                (least..=most).contains(&seen),
                "{port}: {seen} instead of {least} to {most}"
            );
        }
        let seen: u64 = self.pulses.iter().sum();
        let wanted = self.dropped.len() as u64;
        ensure!(seen == wanted, "{seen} drops instead of {wanted}");
        Ok(())
    }
}
