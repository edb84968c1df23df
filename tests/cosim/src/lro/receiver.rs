//! A driver of receive queues, written by hand: gives buffers out, takes used ones back, and puts the
//! units together that lie in them.
//!
//! What the card writes is guarded: a buffer may be written to from when it is given out until it
//! is published, and nothing else at any time.

use std::collections::BTreeMap;

use ferronic::pci::{DmaRegion, PciFunction};
use ferronic_oracle::lro::Unit;
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{Header, Rng, resegment};
use ferronic_sim::{Sim, SimConfig};
use ferronic_spec::transport::{NO_VECTOR, common};
use ferronic_spec::{Features, window};

use super::{Closed, Settings};
use crate::card::PATIENCE;
use crate::raw_driver::{INDIRECT, NEXT, Raw, RawQueue, WRITE, descriptor, read, write};
use crate::requests::counters;

/// Everything that merging by the card needs.
pub const MERGING: Features = Features::VERSION_1
    .union(Features::MRG_RXBUF)
    .union(Features::GUEST_CSUM)
    .union(Features::GUEST_TSO4)
    .union(Features::GUEST_TSO6);

/// Bytes between two parts of a buffer that nobody may write to, at most.
const SPACE: usize = 64;

/// How buffers are given out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Queue pairs that receive.
    pub pairs: u16,
    /// Size of each ring.
    pub ring: u16,
    /// Buffers given out at once, for each queue.
    pub buffers: usize,
    /// Bytes of a buffer: any of these.
    pub sizes: Vec<usize>,
    /// Descriptors of a buffer: any of these.
    pub pieces: Vec<usize>,
    /// Bytes of the first descriptor, if it is not any.
    pub first: Option<usize>,
    /// Descriptors lie in indirect tables.
    pub indirect: bool,
    /// A buffer that came back is given out again after at most so many cycles, or never.
    pub delay: Option<u64>,
    /// What is negotiated.
    pub features: Features,
}

impl Default for Plan {
    /// More buffers of 4 KiB than 16 contexts hold.
    fn default() -> Self {
        Self {
            pairs: 1,
            ring: 1024,
            buffers: 1024,
            sizes: vec![4096],
            pieces: vec![1],
            first: None,
            indirect: false,
            delay: Some(0),
            features: MERGING,
        }
    }
}

impl Plan {
    fn most_pieces(&self) -> usize {
        self.pieces.iter().copied().max().unwrap_or(1)
    }

    /// Bytes from one buffer to the next.
    fn stride(&self) -> usize {
        let longest = self.sizes.iter().copied().max().unwrap_or(0);
        (longest + SPACE * (self.most_pieces() + 1)).next_multiple_of(64)
    }
}

/// A buffer that was given out: where its parts lie in the area, and their bytes.
struct Buffer {
    slot: usize,
    parts: Vec<(usize, usize)>,
}

impl Buffer {
    fn len(&self) -> usize {
        self.parts.iter().map(|(_, len)| len).sum()
    }
}

struct Queue {
    ring: RawQueue,
    /// By the number of the first descriptor.
    out: BTreeMap<u16, Buffer>,
    /// Slots that are given out again, and when.
    back: Vec<(u64, usize)>,
}

/// A card, receive queues, and what came out of them.
pub struct Receiver {
    /// The card.
    pub raw: Raw,
    /// How buffers are given out; may be changed at any time.
    pub plan: Plan,
    /// What is printed in front of each failure.
    pub name: String,
    /// Units in the order in which they were seen; the time is when.
    pub units: Vec<Unit>,
    area: DmaRegion,
    tables: DmaRegion,
    queues: Vec<Queue>,
    rng: Rng,
    stride: usize,
    pieces: usize,
    before: Closed,
    drops: [u32; 5],
    /// Frames and bytes that each queue had received before.
    received: Vec<(u64, u64)>,
    /// When the last frame comes.
    last: u64,
}

/// Frames that are dropped for any reason.
const DROPS: [u64; 5] = [
    window::RX_SHORT,
    window::RX_LONG,
    window::RX_ABORT,
    window::RX_NO_BUFFER,
    window::RX_FIFO_FULL,
];

impl Receiver {
    /// Opens a card and gives its queues their buffers.
    pub fn open(name: &str, mut config: SimConfig, plan: Plan, settings: Option<Settings>) -> Self {
        config.strap.queue_size = config.strap.queue_size.max(plan.ring);
        Self::over(name, Raw::new(config), plan, settings)
    }

    /// The same with a card that exists and takes rings of that size; it is reset first.
    pub fn over(name: &str, raw: Raw, plan: Plan, settings: Option<Settings>) -> Self {
        let rng = Rng::new(raw.function.sim().config().seed);
        {
            let mut sim = raw.function.sim();
            sim.root.memory.guard_disable();
            sim.root.memory.guard_enable();
        }
        assert!(raw.negotiate(plan.features), "the features are refused");
        let (stride, pieces) = (plan.stride(), plan.most_pieces());
        let slots = plan.buffers * usize::from(plan.pairs);
        let alloc = |len| raw.function.dma_alloc(len).expect("DMA memory");
        let (area, tables) = (alloc(stride * slots + SPACE), alloc(16 * pieces * slots));
        let queues: Vec<_> = (0..plan.pairs)
            .map(|pair| Queue {
                ring: RawQueue::new(&raw.function, 2 * pair, plan.ring),
                out: BTreeMap::new(),
                back: (0..plan.buffers).map(|slot| (0, slot)).collect(),
            })
            .collect();
        for queue in &queues {
            raw.enable(&queue.ring, NO_VECTOR);
        }
        raw.set(window::BASE + window::PAIRS_IN_USE, 4, plan.pairs.into());
        if let Some(settings) = settings {
            settings.write(&raw);
        }
        raw.driver_ok();
        let before = Closed::read(&raw);
        let drops = DROPS.map(|counter| raw.counter(counter));
        let mut receiver = Self {
            raw,
            plan,
            name: name.to_owned(),
            units: Vec::new(),
            area,
            tables,
            queues,
            rng,
            stride,
            pieces,
            before,
            drops,
            received: Vec::new(),
            last: 0,
        };
        receiver.received = receiver.counted();
        receiver.give();
        receiver
    }

    /// Ends, and leaves the card.
    pub fn close(self) -> Raw {
        self.raw.reset();
        self.raw
    }

    /// Fails with the name of the test.
    #[track_caller]
    pub fn fail(&self, what: &str) -> ! {
        panic!("{}: {what}", self.name)
    }

    /// The time in cycles.
    pub fn now(&self) -> u64 {
        self.raw.function.now()
    }

    /// Puts frames on the wire, as fast as the data path takes them.
    pub fn push(&self, arrivals: &[Arrival]) {
        for arrival in arrivals {
            self.raw.wire.push(arrival.frame.clone());
        }
    }

    /// Puts frames on the wire at their times, `ticks` cycles each, counted from now.
    pub fn push_timed(&mut self, arrivals: &[Arrival], ticks: u64) {
        // The first buffers are read by then.
        let start = self.now() + 3000;
        for arrival in arrivals {
            let at = start + arrival.at * ticks;
            self.raw.wire.push_at(at, arrival.frame.clone());
            self.last = self.last.max(at);
        }
    }

    /// Gives out what is due to be given out.
    fn give(&mut self) {
        let now = self.now();
        for number in 0..self.queues.len() {
            let back = std::mem::take(&mut self.queues[number].back);
            let (due, later): (Vec<_>, Vec<_>) = back.into_iter().partition(|(due, _)| *due <= now);
            self.queues[number].back = later;
            for (_, slot) in &due {
                self.give_slot(number, *slot);
            }
            if !due.is_empty() {
                self.raw.send(&self.queues[number].ring);
            }
        }
    }

    fn give_slot(&mut self, number: usize, slot: usize) {
        let rng = &mut self.rng;
        let len = rng.pick(&self.plan.sizes);
        let pieces = rng.pick(&self.plan.pieces).min(len);
        let mut cuts = vec![0, len];
        if pieces > 1 {
            cuts.extend(self.plan.first);
            while cuts.len() < pieces + 1 {
                let least = self.plan.first.unwrap_or(1) as u64;
                // Often close to the headers.
                let end = if rng.chance(50) { len.min(200) } else { len };
                cuts.push(rng.range(least, (end as u64).max(least)) as usize);
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut at = self.stride * (number * self.plan.buffers + slot) + SPACE;
        let mut buffer = Buffer {
            slot,
            parts: Vec::new(),
        };
        let base = self.area.iova();
        for pair in cuts.windows(2) {
            let len = pair[1] - pair[0];
            buffer.parts.push((at, len));
            let mut sim = self.raw.function.sim();
            sim.root.memory.guard_allow(base + at as u64, len as u64);
            at += len + rng.below(SPACE as u64) as usize;
        }
        let queue = &mut self.queues[number];
        let last = buffer.parts.len() - 1;
        let flags = |i: usize| WRITE | if i == last { 0 } else { NEXT };
        let head = if self.plan.indirect {
            let place = 16 * self.pieces * (number * self.plan.buffers + slot);
            for (i, (at, len)) in buffer.parts.iter().enumerate() {
                let addr = base + *at as u64;
                let bytes = descriptor(addr, *len as u32, flags(i), i as u16 + 1);
                write(&self.tables, place + 16 * i, &bytes);
            }
            let (addr, len) = (self.tables.iova() + place as u64, 16 * (last as u32 + 1));
            let head = slot as u16;
            queue.ring.describe(head, addr, len, INDIRECT, 0);
            head
        } else {
            let head = (slot * self.pieces) as u16;
            for (i, (at, len)) in (0..).zip(&buffer.parts) {
                let addr = base + *at as u64;
                let flags = flags(i.into());
                let number = head + i;
                queue
                    .ring
                    .describe(number, addr, *len as u32, flags, number + 1);
            }
            head
        };
        queue.ring.offer(head);
        queue.out.insert(head, buffer);
    }

    /// Something was published that was not taken.
    fn has_used(queues: &[Queue]) -> bool {
        queues
            .iter()
            .any(|queue| queue.ring.used_index() != queue.ring.seen)
    }

    /// Takes what was published: whole units, or the card is wrong.
    pub fn collect(&mut self) {
        let now = self.now();
        for number in 0..self.queues.len() {
            let used = self.queues[number].ring.take_used();
            let mut used = used.as_slice();
            while let Some((id, _)) = used.first() {
                let count = match self.queues[number].out.get(&(*id as u16)) {
                    Some(buffer) => {
                        let bytes = self.bytes(buffer, Header::LEN.min(buffer.len()));
                        Header::read(&bytes).map_or(1, |header| header.num_buffers)
                    }
                    None => self.fail(&format!("queue {number}: {id} was not given out")),
                };
                if count == 0 || usize::from(count) > used.len() {
                    self.fail(&format!(
                        "queue {number}: a unit of {count} buffers with {} published at {now}",
                        used.len()
                    ));
                }
                let (unit, rest) = used.split_at(count.into());
                self.take_unit(number, now, unit);
                used = rest;
            }
        }
    }

    fn bytes(&self, buffer: &Buffer, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        for (at, len) in &buffer.parts {
            let len = (*len).min(count - bytes.len());
            bytes.extend(read(&self.area, *at, len));
        }
        bytes
    }

    fn take_unit(&mut self, number: usize, now: u64, used: &[(u32, u32)]) {
        let mut bytes = Vec::new();
        for (i, (id, len)) in used.iter().enumerate() {
            let Some(buffer) = self.queues[number].out.remove(&(*id as u16)) else {
                self.fail(&format!(
                    "queue {number}: {id} of {used:?} was not given out"
                ));
            };
            let (len, room) = (*len as usize, buffer.len());
            let last = i + 1 == used.len();
            if len == 0 || len > room || (!last && len != room) {
                self.fail(&format!(
                    "queue {number}: {len} bytes in buffer {i} of {room} bytes, of {used:?}"
                ));
            }
            bytes.extend(self.bytes(&buffer, len));
            let mut sim = self.raw.function.sim();
            for (at, len) in &buffer.parts {
                let at = self.area.iova() + *at as u64;
                sim.root.memory.guard_revoke(at, *len as u64);
            }
            drop(sim);
            if let Some(delay) = self.plan.delay {
                let due = now + self.rng.below(delay + 1);
                self.queues[number].back.push((due, buffer.slot));
            }
        }
        let Some(header) = Header::read(&bytes) else {
            self.fail(&format!("queue {number}: {} bytes", bytes.len()));
        };
        let frame = bytes.split_off(Header::LEN);
        let segments = match resegment(&header, &frame) {
            Ok(frames) => frames.len(),
            Err(error) => self.fail(&format!(
                "queue {number}, unit {} at {now}: {error}: {header:?} {:02x?}",
                self.units.len(),
                &frame[..frame.len().min(96)]
            )),
        };
        self.units.push(Unit {
            at: now,
            queue: number as u16,
            header,
            frame,
            segments,
            cause: None,
        });
    }

    /// Simulates until `done`, taking and giving buffers; false if `cycles` passed first.
    pub fn run_until(&mut self, cycles: u64, mut done: impl FnMut(&mut Sim) -> bool) -> bool {
        let end = self.now() + cycles;
        loop {
            self.collect();
            self.give();
            let now = self.now();
            let back = self.queues.iter().flat_map(|queue| &queue.back);
            let due = back.map(|(due, _)| *due).min().unwrap_or(u64::MAX);
            let limit = end.min(due.max(now + 1));
            let queues = &self.queues;
            let mut over = false;
            let result = self.raw.function.sim().run_until(limit - now, |sim| {
                over = done(sim);
                over || Self::has_used(queues)
            });
            if let Err(error) = result {
                self.fail(&error.to_string());
            }
            if over || self.now() >= end {
                self.collect();
                self.give();
                return over;
            }
        }
    }

    /// Simulates `cycles` cycles.
    pub fn run(&mut self, cycles: u64) {
        self.run_until(cycles, |_| false);
    }

    /// Simulates until all frames are taken and nothing happens but timers.
    pub fn settle(&mut self) {
        let wire = self.raw.wire.clone();
        let mut last = (usize::MAX, usize::MAX);
        loop {
            let quiet = |sim: &mut Sim| {
                wire.waiting() == 0 && sim.quiet_until() > sim.now() && sim.root.is_idle()
            };
            if self.run_until(PATIENCE, quiet) {
                // A frame may wait for a buffer that is not given out yet, or of which the doorbell is
                // still on its way: then more comes soon.
                let came = self.units.len();
                self.run(300);
                let given = self.queues.iter().all(|queue| queue.back.is_empty());
                if given && self.units.len() == came && quiet(&mut self.raw.function.sim()) {
                    return;
                }
                continue;
            }
            let now = (wire.waiting(), self.units.len());
            if now == last && self.now() > self.last + PATIENCE {
                self.fail(&format!(
                    "{} frames wait on the wire, {} units came, and nothing more happens",
                    now.0, now.1
                ));
            }
            last = now;
        }
    }

    /// Switches merging off. What was held is there when that is acknowledged.
    pub fn stop(&mut self) {
        self.raw.set(window::BASE + window::LRO_PROFILE, 4, 0);
        assert_eq!(self.raw.window(window::LRO_PROFILE), 0, "the profile");
        self.collect();
    }

    /// From now on the card may write nowhere: it was reset, and the driver takes its memory back.
    pub fn forget(&mut self) {
        self.collect();
        for queue in &mut self.queues {
            queue.out.clear();
            queue.back.clear();
        }
        let mut sim = self.raw.function.sim();
        sim.root.memory.guard_disable();
        sim.root.memory.guard_enable();
    }

    /// Resets a queue by RING_RESET, and takes its buffers back when that is acknowledged.
    pub fn reset_queue(&mut self, queue: u16) {
        self.raw.select(2 * queue);
        self.raw.set(common::QUEUE_RESET, 2, 1);
        let raw = &self.raw;
        let done = (0..1000).any(|_| raw.get(common::QUEUE_RESET, 2) == 0);
        assert!(done, "{}: the reset does not end", self.name);
        self.collect();
        let (stride, buffers) = (self.stride, self.plan.buffers);
        let queue_area = stride * buffers;
        let base = self.area.iova() + u64::from(queue) * queue_area as u64;
        let queue = &mut self.queues[usize::from(queue)];
        queue.out.clear();
        queue.back.clear();
        let mut sim = self.raw.function.sim();
        // Distances between buffers are part of it.
        let from = base + SPACE as u64;
        sim.root.memory.guard_revoke(from, queue_area as u64);
        let used_len = queue.ring.used.len() as u64;
        sim.root
            .memory
            .guard_revoke(queue.ring.used.iova(), used_len);
    }

    /// Enables a queue again, on new rings.
    pub fn enable_queue(&mut self, queue: u16) {
        let ring = RawQueue::new(&self.raw.function, 2 * queue, self.plan.ring);
        self.raw.enable(&ring, NO_VECTOR);
        let slots = (0..self.plan.buffers).map(|slot| (0, slot)).collect();
        let queue = &mut self.queues[usize::from(queue)];
        (queue.ring, queue.back) = (ring, slots);
        self.give();
    }

    /// Plugs the cable in or pulls it.
    pub fn set_link(&mut self, up: bool) {
        let result = self.raw.function.sim().set_link(up);
        if let Err(error) = result {
            self.fail(&error.to_string());
        }
        self.collect();
    }

    /// Frames and bytes that each queue has counted.
    fn counted(&self) -> Vec<(u64, u64)> {
        let queues = self.queues.iter();
        let counted = queues.map(|queue| counters(&self.raw, queue.ring.index));
        counted.map(|(frames, bytes, _)| (frames, bytes)).collect()
    }

    /// The counters of each queue tell of the frames of the wire, whatever was merged.
    pub fn check_counters(&self, arrivals: &[Arrival]) {
        for (pair, (now, before)) in (0..).zip(self.counted().iter().zip(&self.received)) {
            let frames = arrivals.iter().filter(|arrival| arrival.queue == pair);
            let bytes: u64 = frames.clone().map(|a| a.frame.len() as u64).sum();
            let counted = (now.0 - before.0, now.1 - before.1);
            let came = (frames.count() as u64, bytes);
            if counted != came {
                self.fail(&format!(
                    "queue {pair} counted {counted:?} frames and bytes, {came:?} came"
                ));
            }
        }
    }

    /// The card wrote nothing that it may not.
    pub fn check_silent(&self) {
        let faults = self.raw.function.sim().root.take_memory_faults();
        if !faults.is_empty() {
            self.fail(&format!("the card may not touch {faults:x?}"));
        }
    }

    /// What was counted of contexts since the start.
    pub fn closed(&self) -> Closed {
        Closed::read(&self.raw).since(&self.before)
    }

    /// The card wrote nowhere else, dropped nothing, and is well.
    pub fn check(&self) {
        self.check_silent();
        let drops = DROPS.map(|counter| self.raw.counter(counter));
        if drops != self.drops {
            self.fail(&format!("dropped: {:?}, then {drops:?}", self.drops));
        }
        if self.raw.needs_reset() {
            self.fail("the card needs a reset");
        }
    }

    /// Segments of all units.
    pub fn segments(&self) -> usize {
        self.units.iter().map(|unit| unit.segments).sum()
    }
}
