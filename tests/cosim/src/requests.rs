//! Transmits the oracle's requests with a driver that is written by hand, and compares what leaves.

use std::collections::VecDeque;

use ferronic_oracle::{Offloads, Opinion, Outcome, Request, Rng, opinion, transmit_buffer};
use ferronic_sim::SimConfig;
use ferronic_spec::transport::NO_VECTOR;
use ferronic_spec::{Features, window};

use crate::card::PATIENCE;
use crate::raw_driver::{AREA, INDIRECT, NEXT, Raw, RawQueue, descriptor, write};

/// Descriptors of a transmit queue.
const SIZE: u16 = 256;

/// A frame that is to leave.
struct Wanted {
    data: Vec<u8>,
    kind: &'static str,
    /// The card computed all its sums.
    segment: bool,
}

/// A transmit queue, and what must come of its buffers.
struct Queue {
    ring: RawQueue,
    /// The next descriptor that is free.
    free: u16,
    heads: VecDeque<u16>,
    wanted: VecDeque<Wanted>,
    packets: u64,
    bytes: u64,
    drops: u32,
    /// Its counters at the start.
    before: (u64, u64, u32),
}

/// A card, transmit queues, and what is to be seen on the wire.
pub struct Transmitter {
    /// The card.
    pub raw: Raw,
    /// What was negotiated.
    pub offloads: Offloads,
    /// Into how many pieces a buffer is cut, one of these.
    pub pieces: &'static [usize],
    queues: Vec<Queue>,
    /// Dropped frames at the start.
    before: u32,
    /// The next byte of the area that is free.
    place: usize,
    posted: usize,
    frames: usize,
    segments: usize,
}

impl Transmitter {
    /// Opens a card with some transmit queues; what it writes is guarded.
    pub fn open(config: SimConfig, offloads: Offloads, features: Features, queues: u16) -> Self {
        let raw = Raw::new(config);
        raw.function.sim().root.memory.guard_enable();
        let negotiated = Features::VERSION_1
            | Features::INDIRECT_DESC
            | features
            | Features::from_bits_retain(offloads.bits());
        assert!(raw.negotiate(negotiated), "the features are refused");
        let queues: Vec<_> = (0..queues)
            .map(|pair| Queue {
                ring: RawQueue::new(&raw.function, 2 * pair + 1, SIZE),
                free: 0,
                heads: VecDeque::new(),
                wanted: VecDeque::new(),
                packets: 0,
                bytes: 0,
                drops: 0,
                before: counters(&raw, 2 * pair + 1),
            })
            .collect();
        for queue in &queues {
            raw.enable(&queue.ring, NO_VECTOR);
        }
        raw.driver_ok();
        let before = raw.counter(window::TX_BAD_FRAME);
        Self {
            raw,
            offloads,
            pieces: &[1, 2, 3, 8, 40],
            before,
            queues,
            place: 0,
            posted: 0,
            frames: 0,
            segments: 0,
        }
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.posted
    }

    /// Frames that were compared.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Segments of which `etherparse` agreed with every sum.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// Buffers that were dropped.
    pub fn drops(&self) -> u32 {
        self.queues.iter().map(|queue| queue.drops).sum()
    }

    /// Posts a request on any queue, cut into pieces, as a chain or an indirect table, with or
    /// without a doorbell.
    pub fn post(&mut self, request: &Request, rng: &mut Rng) {
        let buffer = request.buffer();
        let pieces = rng.pick(self.pieces);
        let cuts = cuts(buffer.len(), pieces, rng);
        let room = 16 * cuts.len() + buffer.len() + 128 * cuts.len() + 4096;
        let at = rng.below(self.queues.len() as u64) as usize;
        if self.place + room > AREA || usize::from(SIZE - self.queues[at].free) < cuts.len() {
            self.flush(rng);
        }
        let mut parts = Vec::new();
        for pair in cuts.windows(2) {
            let part = &buffer[pair[0]..pair[1]];
            self.place += rng.pick(&[0, 1, 2, 3, 64, 127]);
            write(&self.raw.area, self.place, part);
            let address = self.raw.area.iova() + self.place as u64;
            parts.push((address, part.len() as u32));
            self.place += part.len();
        }
        let queue = &mut self.queues[at];
        let head = queue.free;
        let last = parts.len() - 1;
        let next = |i: usize| if i == last { 0 } else { NEXT };
        if rng.chance(40) {
            self.place = self.place.next_multiple_of(16);
            let table: Vec<u8> = (0..)
                .zip(&parts)
                .flat_map(|(i, (address, len))| descriptor(*address, *len, next(i), (i + 1) as u16))
                .collect();
            write(&self.raw.area, self.place, &table);
            let address = self.raw.area.iova() + self.place as u64;
            let len = table.len() as u32;
            queue.ring.describe(head, address, len, INDIRECT, 0);
            self.place += table.len();
            queue.free += 1;
        } else {
            for (i, (address, len)) in parts.into_iter().enumerate() {
                let at = head + i as u16;
                queue.ring.describe(at, address, len, next(i), at + 1);
            }
            queue.free += last as u16 + 1;
        }
        queue.ring.offer(head);
        queue.heads.push_back(head);
        queue.expect(request, &buffer, self.offloads);
        self.posted += 1;
        if rng.chance(40) {
            self.raw.send(&queue.ring);
        }
    }

    /// Waits until everything is back and on the wire, and compares it.
    ///
    /// # Panics
    /// When something is missing, not wanted, or not as it should be.
    pub fn flush(&mut self, rng: &mut Rng) {
        for queue in &self.queues {
            self.raw.send(&queue.ring);
        }
        let wanted: usize = self.queues.iter().map(|queue| queue.wanted.len()).sum();
        let done = {
            let wire = self.raw.wire.clone();
            let back = |queue: &Queue| queue.ring.used_index() == queue.ring.next;
            let mut sim = self.raw.function.sim();
            sim.run_until(PATIENCE, |_| {
                wire.sent() >= wanted && self.queues.iter().all(back)
            })
            .expect("the card runs")
        };
        // Nothing may come behind.
        self.raw.run(rng.below(500));
        for sent in self.raw.wire.take_all() {
            assert!(!sent.aborted, "a frame was aborted");
            self.compare(&sent.data);
        }
        for queue in &self.queues {
            let (used, next) = (queue.ring.used_index(), queue.ring.next);
            let missing = queue.wanted.front().map(|w| (w.kind, &w.data));
            assert!(
                done,
                "queue {}: used index {used} of {next}, {} frames missing: {missing:02x?}",
                queue.ring.index,
                queue.wanted.len(),
            );
        }
        for queue in &mut self.queues {
            let used = queue.ring.take_used();
            let heads: Vec<_> = queue
                .heads
                .drain(..)
                .map(|head| (u32::from(head), 0))
                .collect();
            assert_eq!(used, heads, "buffers of queue {}", queue.ring.index);
            queue.free = 0;
        }
        self.place = rng.below(4096) as usize;
    }

    fn compare(&mut self, frame: &[u8]) {
        let next = |queue: &Queue| queue.wanted.front().is_some_and(|next| next.data == frame);
        let Some(at) = self.queues.iter().position(next) else {
            let next: Vec<_> = self
                .queues
                .iter()
                .filter_map(|q| q.wanted.front())
                .collect();
            let similar =
                |next: &&&Wanted| next.data.iter().zip(frame).filter(|(a, b)| a == b).count();
            let Some(next) = next.iter().max_by_key(similar) else {
                panic!("a frame of {} bytes where none is wanted", frame.len());
            };
            let place = next.data.iter().zip(frame).position(|(a, b)| a != b);
            let head = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(160)]);
            panic!(
                "a frame of {} bytes instead of {} bytes ({}), they differ at {place:?}:\n{}\n\
                 instead of\n{}",
                frame.len(),
                next.data.len(),
                next.kind,
                head(frame),
                head(&next.data)
            );
        };
        let Some(wanted) = self.queues[at].wanted.pop_front() else {
            return;
        };
        if wanted.segment {
            let said = opinion(frame);
            // Some malformed packets leave that etherparse does not take for one.
            let unknown = said == Opinion::Unknown && wanted.kind != "segmentation";
            assert!(said == Opinion::Right || unknown, "{said:?}: {frame:02x?}");
            self.segments += usize::from(!unknown);
        }
        self.frames += 1;
    }

    /// Compares the counters, then sees that the card still works, and resets it.
    pub fn finish(mut self, rng: &mut Rng) {
        self.flush(rng);
        assert!(!self.raw.needs_reset());
        let dropped = self.raw.counter(window::TX_BAD_FRAME);
        assert_eq!(
            dropped - self.before,
            self.drops(),
            "frames that were dropped"
        );
        for queue in &self.queues {
            let (packets, bytes, drops) = counters(&self.raw, queue.ring.index);
            let before = queue.before;
            let seen = (packets - before.0, bytes - before.1, drops - before.2);
            let wanted = (queue.packets, queue.bytes, queue.drops);
            assert_eq!(seen, wanted, "counters of queue {}", queue.ring.index);
        }
        self.raw.works();
        assert_eq!(self.raw.function.sim().root.take_memory_faults(), []);
    }
}

/// Packets, bytes and drops of a queue since the card was made.
pub fn counters(raw: &Raw, queue: u16) -> (u64, u64, u32) {
    raw.set(window::BASE + window::SNAPSHOT, 4, queue.into());
    let wide = |low, high| u64::from(raw.window(high)) << 32 | u64::from(raw.window(low));
    (
        wide(window::SNAP_PACKETS_LO, window::SNAP_PACKETS_HI),
        wide(window::SNAP_BYTES_LO, window::SNAP_BYTES_HI),
        raw.window(window::SNAP_DROPS),
    )
}

impl Queue {
    fn expect(&mut self, request: &Request, buffer: &[u8], offloads: Offloads) {
        match transmit_buffer(buffer, offloads) {
            Outcome::Sent(frames) => {
                self.packets += frames.len() as u64;
                self.bytes += frames.iter().map(|f| f.len() as u64).sum::<u64>();
                self.wanted.extend(frames.into_iter().map(|data| Wanted {
                    data,
                    kind: request.kind,
                    segment: request.header.gso_type != 0,
                }));
            }
            Outcome::Dropped(_) => self.drops += 1,
        }
    }
}

/// Where a buffer is cut: its ends, and places between.
fn cuts(len: usize, pieces: usize, rng: &mut Rng) -> Vec<usize> {
    let mut cuts = vec![0, len];
    for _ in 1..pieces {
        // Close to the headers, where it hurts.
        let end = if rng.chance(30) { len.min(160) } else { len };
        cuts.push(rng.below(end as u64) as usize);
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}
