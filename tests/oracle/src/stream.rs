//! Streams of received frames: a bulk transfer as senders make it, and traffic in which everything
//! happens that the rules of merging know of.

use std::collections::VecDeque;

use crate::frames::malformed;
use crate::rng::Rng;
use crate::segment::{Segment, flag, with_sum_of_ones};
use crate::shape::random;
use crate::vectors::Arrival;

/// A bulk transfer: no PSH, constant acknowledgement, window and time stamps.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// How many at once, a segment each by turns.
    pub flows: u16,
    /// In each round the flows come in another order, by this seed.
    pub shuffled: Option<u64>,
    /// By IPv6.
    pub v6: bool,
    /// With time stamps.
    pub stamps: bool,
    /// Bytes of an IP packet.
    pub mtu: usize,
    /// Segments of each flow.
    pub segments: usize,
    /// Ticks for eight bytes of a frame.
    pub ticks: u64,
    /// Queues that the flows are spread over.
    pub queues: u16,
}

impl Default for Bulk {
    /// One flow by IPv4 as fast as a data path of 64 bits takes it at 125 MHz, in nanoseconds.
    fn default() -> Self {
        Self {
            flows: 1,
            shuffled: None,
            v6: false,
            stamps: false,
            mtu: 1500,
            segments: 440,
            ticks: 8,
            queues: 1,
        }
    }
}

impl Bulk {
    /// The frames.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let headers = 40 + if self.v6 { 20 } else { 0 } + if self.stamps { 12 } else { 0 };
        let payload = self.mtu - headers;
        let mut flows: Vec<Segment> = (0..self.flows)
            .map(|flow| {
                let mut first = Segment::v4(0x1000 * u32::from(flow), payload);
                (first.v6, first.ports[0]) = (self.v6, 10_000 + flow);
                if self.stamps {
                    first = first.stamps(77, 88);
                }
                first
            })
            .collect();
        let mut order: Vec<usize> = (0..flows.len()).collect();
        let mut rng = Rng::new(self.shuffled.unwrap_or(0));
        let (mut arrivals, mut at) = (Vec::new(), 0);
        for _ in 0..self.segments {
            if self.shuffled.is_some() {
                for i in (1..order.len()).rev() {
                    order.swap(i, rng.below(i as u64 + 1) as usize);
                }
            }
            for &flow in &order {
                let frame = flows[flow].bytes();
                flows[flow] = flows[flow].next(payload);
                at += frame.len().div_ceil(8) as u64 * self.ticks;
                let queue = flow as u16 % self.queues;
                arrivals.push(Arrival { at, queue, frame });
            }
        }
        arrivals
    }
}

struct Flow {
    /// The segment that comes next, without payload.
    next: Segment,
    size: usize,
    queue: u16,
    last: Option<Segment>,
}

/// Traffic in which everything happens: loss, reordering, duplicates, overlaps, options, flags,
/// identifications, VLANs, fragments, padding, wrong sums, flows that change queues, garbage.
pub struct Traffic {
    rng: Rng,
    flows: Vec<Flow>,
    queues: u16,
    pause: u64,
    now: u64,
    turn: usize,
    /// Made already, and to come after so many others.
    late: VecDeque<(u64, Arrival)>,
}

impl Traffic {
    /// `flows` flows over `queues` queues; now and then nothing comes for up to twice `pause`
    /// ticks.
    pub fn new(seed: u64, flows: usize, queues: u16, pause: u64) -> Self {
        let mut rng = Rng::new(seed);
        let flows = (0..flows).map(|i| Flow::new(i, queues, &mut rng)).collect();
        Self {
            rng,
            flows,
            queues,
            pause,
            now: 0,
            turn: 0,
            late: VecDeque::new(),
        }
    }

    /// The next frame.
    pub fn arrival(&mut self) -> Arrival {
        let late = self.late.iter_mut();
        late.for_each(|(others, _)| *others = others.saturating_sub(1));
        let due = self.late.iter().position(|(others, _)| *others == 0);
        let mut arrival = match due.and_then(|i| self.late.remove(i)) {
            Some((_, arrival)) => arrival,
            None => {
                let arrival = self.make();
                if self.rng.chance(2) {
                    self.late.push_back((self.rng.range(2, 4), arrival));
                    self.make()
                } else {
                    arrival
                }
            }
        };
        self.now += arrival.frame.len().div_ceil(8) as u64;
        if self.rng.chance(2) {
            self.now += self.rng.below(2 * self.pause);
        }
        arrival.at = self.now;
        arrival
    }

    fn make(&mut self) -> Arrival {
        let rng = &mut self.rng;
        if rng.chance(40) {
            self.turn = rng.below(self.flows.len() as u64) as usize;
        }
        let flow = &mut self.flows[self.turn];
        let frame = if rng.chance(80) {
            flow.advance(flow.size).bytes()
        } else {
            event(flow, self.queues, rng)
        };
        let queue = flow.queue;
        Arrival {
            at: 0,
            queue,
            frame,
        }
    }
}

impl Flow {
    fn new(number: usize, queues: u16, rng: &mut Rng) -> Self {
        let any = rng.next_u64() as u32;
        let seq = rng.pick(&[0, 0xffff_f000, any]);
        let mut next = Segment::v4(seq, 0);
        next.v6 = rng.chance(50);
        // Few addresses, so that flows share them.
        next.hosts = [1 + (number % 3) as u8, 100];
        next.ports = [1000 + number as u16 / 2, 5001];
        // Every second is the VLAN of the one before.
        next.tags = match number % 8 {
            1 => vec![[0x81, 0, 0, 10]],
            3 => vec![[0x88, 0xa8, 0, 1], [0x81, 0, 0, 20]],
            _ => Vec::new(),
        };
        if number % 8 == 1 {
            next.v6 = rng.chance(10);
        }
        next.id = rng.pick(&[0, 0xfff0, 0x1234]);
        next.fragment = rng.pick(&[0, 0x4000, 0x4000]);
        next.class = rng.pick(&[0, 0, 2, 0x20]);
        next.label = rng.pick(&[0, 0x1_2345]);
        match rng.below(4) {
            0 => {}
            3 => next.options = vec![1; 4 * rng.range(1, 10) as usize],
            _ => next = next.stamps(seq, 9),
        }
        Self {
            size: rng.pick(&[1, 7, 100, 100, 331, 536, 1000, 1448]),
            queue: rng.below(queues.into()) as u16,
            last: None,
            next,
        }
    }

    /// The segment that comes next, with `length` bytes.
    fn advance(&mut self, length: usize) -> Segment {
        // Behind a segment without payload: only that has bytes.
        let empty = Segment {
            payload: Vec::new(),
            id: self.next.id.wrapping_sub(1),
            ..self.next.clone()
        };
        let segment = empty.next(length);
        self.next = Segment {
            payload: Vec::new(),
            seq: segment.seq.wrapping_add(length as u32),
            id: segment.id.wrapping_add(1),
            ..self.next.clone()
        };
        self.last = Some(segment.clone());
        segment
    }
}

/// Something that is not the next full segment.
fn event(flow: &mut Flow, queues: u16, rng: &mut Rng) -> Vec<u8> {
    let size = flow.size;
    match rng.below(16) {
        0 => {
            // Of another size, often the last of a burst.
            let length = match rng.below(4) {
                0 => size + rng.range(1, 50) as usize,
                _ => 1 + rng.below(size as u64) as usize,
            };
            let mut segment = flow.advance(length);
            if rng.chance(50) {
                segment.flags |= flag::PSH;
            }
            segment.bytes()
        }
        1 => {
            let mut segment = flow.advance(size);
            segment.flags |= flag::PSH;
            segment.bytes()
        }
        2..4 => lost(flow, rng),
        4 => flags(flow, rng),
        5 => {
            let mut segment = flow.advance(0);
            match rng.below(4) {
                0 => segment.seq = segment.seq.wrapping_sub(1),
                1 => segment.window ^= 0x55,
                2 => segment.ack = segment.ack.wrapping_add(100),
                _ => {}
            }
            padded(segment.bytes(), rng)
        }
        6..9 => fields(flow, rng),
        9 => options(flow, rng),
        10 => {
            // Small frames are padded by those who send them.
            let frame = flow.advance(rng.range(1, 5) as usize).bytes();
            padded(frame, rng)
        }
        11..13 => sums(flow, rng),
        13 => elsewhere(flow, rng),
        14 => {
            flow.queue = rng.below(queues.into()) as u16;
            flow.advance(size).bytes()
        }
        _ => match rng.below(3) {
            0 => malformed(rng),
            1 => {
                let mut arp = random(rng, 60);
                arp[12..14].copy_from_slice(&[0x08, 0x06]);
                arp
            }
            _ => {
                let mut frame = flow.advance(size).bytes();
                let bit = rng.below(8 * frame.len() as u64) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
                frame
            }
        },
    }
}

fn padded(mut frame: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    if frame.len() < 60 && rng.chance(70) {
        frame.resize(60, 0);
    }
    frame
}

/// Loss, duplicates, overlaps, holes.
fn lost(flow: &mut Flow, rng: &mut Rng) -> Vec<u8> {
    let size = flow.size;
    match rng.below(6) {
        0..2 => {
            flow.advance(size);
            flow.advance(size).bytes()
        }
        2 => match flow.last.clone() {
            Some(last) => last.bytes(),
            None => flow.advance(size).bytes(),
        },
        3 => {
            let back = rng.range(1, 2 * size as u64) as u32;
            flow.next.seq = flow.next.seq.wrapping_sub(back);
            flow.advance(size).bytes()
        }
        4 => {
            flow.next.seq = flow.next.seq.wrapping_add(rng.pick(&[1, 2, 0x8000_0000]));
            flow.advance(size).bytes()
        }
        _ => {
            let id = rng.pick(&[0, 1, 0x100, 0xffff]);
            flow.next.id = flow.next.id.wrapping_sub(id);
            flow.advance(size).bytes()
        }
    }
}

fn flags(flow: &mut Flow, rng: &mut Rng) -> Vec<u8> {
    let lasting = [flag::ECE, flag::AE, 0x800, 0x200];
    let once = [
        flag::FIN,
        flag::SYN,
        flag::RST,
        flag::URG,
        flag::CWR,
        flag::ACK,
    ];
    if rng.chance(30) {
        flow.next.flags ^= rng.pick(&lasting);
        return flow.advance(flow.size).bytes();
    }
    let mut segment = flow.advance(rng.pick(&[0, flow.size]));
    segment.flags ^= rng.pick(&once);
    segment.bytes()
}

/// Fields that are the same in all segments of a unit change, for good or once.
fn fields(flow: &mut Flow, rng: &mut Rng) -> Vec<u8> {
    let before = flow.next.clone();
    let next = &mut flow.next;
    match rng.below(12) {
        0..2 => next.window ^= 1 << rng.below(16),
        2..4 => next.ack = next.ack.wrapping_add(100),
        4 => next.ack = next.ack.wrapping_sub(100),
        5 => next.urgent ^= 1 << rng.below(16),
        6 => next.ttl ^= 1 << rng.below(8),
        7 => next.class ^= 1 << rng.below(8),
        8 => next.label ^= 1 << rng.below(20),
        9 => next.fragment ^= rng.pick(&[0x4000, 0x8000]),
        10 => next.macs[rng.below(12) as usize] ^= 1,
        _ => match next.tags.first_mut() {
            Some(tag) => tag[3] ^= 1,
            None => next.tags.push([0x81, 0, 0, 10]),
        },
    }
    let segment = flow.advance(flow.size);
    if rng.chance(60) {
        let (seq, id) = (flow.next.seq, flow.next.id);
        flow.next = Segment { seq, id, ..before };
    }
    segment.bytes()
}

fn options(flow: &mut Flow, rng: &mut Rng) -> Vec<u8> {
    let stamped = flow.next.options.len() == 12;
    match rng.below(5) {
        // The time stamp advances, goes back; its echo advances.
        0..2 if stamped => flow.next.options[7] = flow.next.options[7].wrapping_add(1),
        2 if stamped => flow.next.options[6] ^= 0x80,
        3 if stamped => flow.next.options[11] = flow.next.options[11].wrapping_add(1),
        _ => {
            let mut segment = flow.advance(flow.size);
            match rng.below(3) {
                0 => segment.options.clear(),
                1 if !segment.options.is_empty() => segment.options.rotate_left(1),
                _ => segment.options = vec![1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9],
            }
            return segment.bytes();
        }
    }
    flow.advance(flow.size).bytes()
}

/// Sums that are wrong, or right as no sender writes them, and bytes behind the packet.
fn sums(flow: &mut Flow, rng: &mut Rng) -> Vec<u8> {
    let segment = flow.advance(flow.size);
    let mut frame = segment.bytes();
    match rng.below(6) {
        0 if segment.payload.len() > 1 => return with_sum_of_ones(segment),
        0..2 => frame[segment.tcp() + 16] ^= 1,
        2 => {
            let end = frame.len() as u64 - 1;
            frame[rng.range(segment.tcp() as u64 + 20, end) as usize] ^= 4;
        }
        3 if !segment.v6 => frame[segment.ip() + 10] ^= 1,
        4 => frame.truncate(rng.range(14, frame.len() as u64) as usize),
        _ => {
            let more = rng.pick(&[1, 3, 200]);
            frame.extend(random(rng, more));
        }
    }
    frame
}

/// Headers that are not where those of other segments are.
fn elsewhere(flow: &mut Flow, rng: &mut Rng) -> Vec<u8> {
    let mut segment = flow.advance(flow.size);
    if segment.v6 {
        let kind = rng.pick(&[0, 43, 44, 60]);
        segment.extension = Some((kind, vec![0, 1, 4, 0, 0, 0, 0]));
    } else if rng.chance(50) {
        segment.ip_options = vec![1; 4 * rng.range(1, 10) as usize];
    } else {
        segment.fragment = rng.pick(&[0x2000, 0x6000, 0x0001, 0x1fff]);
    }
    let data_offset = segment.tcp() + 12;
    let mut frame = segment.bytes();
    if rng.chance(20) {
        frame[data_offset] = 0x40;
    }
    frame
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};

    use super::*;
    use crate::frames::verdict;
    use crate::packet::{Protocol, parse};

    fn word(frame: &[u8], at: usize) -> u32 {
        frame[at..at + 4]
            .iter()
            .fold(0, |w, b| w << 8 | u32::from(*b))
    }

    #[test]
    fn everything_happens_in_random_traffic() {
        let mut traffic = Traffic::new(1, 16, 3, 10_000);
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut frames = HashSet::new();
        // Of each flow: queue, highest identification and sequence number behind the last frame.
        let mut last: HashMap<Vec<u8>, (u16, u16, u32)> = HashMap::new();
        for _ in 0..20_000 {
            let Arrival { queue, frame, .. } = traffic.arrival();
            let mut note = |what, holds: bool| *seen.entry(what).or_default() += usize::from(holds);
            note("a sum that is not right", !verdict(&frame).sum_ok);
            let Some(packet) = parse(&frame).filter(|p| p.protocol == Protocol::Tcp) else {
                note("no TCP that can be read", true);
                continue;
            };
            let (ip, tcp) = (packet.ip, packet.transport);
            note("two tags", ip == 22);
            note("one tag", ip == 18);
            note("IPv6", packet.v6);
            note("IPv4 options", !packet.v6 && tcp > ip + 20);
            note("extensions", packet.v6 && tcp > ip + 40);
            note("an option area", packet.payload > tcp + 20);
            for (bit, what) in ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"]
                .iter()
                .enumerate()
            {
                note(what, frame[tcp + 13] >> bit & 1 == 1);
            }
            note("a frame again", !frames.insert(frame.clone()));
            let length = if packet.v6 { 40 } else { 0 };
            let at = ip + if packet.v6 { 4 } else { 2 };
            let end = ip + length + (word(&frame, at) >> 16) as usize;
            note("bytes behind", end < frame.len());
            note("no payload", end == packet.payload);

            let key = [&frame[12..ip], &frame[tcp - 8..tcp + 4]].concat();
            let (id, seq) = ((word(&frame, ip + 4) >> 16) as u16, word(&frame, tcp + 4));
            let next = seq.wrapping_add(end.saturating_sub(packet.payload) as u32);
            if let Some((of, highest, expected)) = last.insert(key, (queue, id, next)) {
                let ahead = seq.wrapping_sub(expected) as i32;
                note("in order", ahead == 0);
                note("a hole", ahead > 0);
                note(
                    "an overlap",
                    ahead < 0 && !packet.v6 && id == highest.wrapping_add(1),
                );
                let back = highest.wrapping_sub(id);
                note(
                    "an earlier one",
                    ahead < 0 && !packet.v6 && (1..5).contains(&back),
                );
                note("another queue", of != queue);
            }
        }
        for (what, count) in &seen {
            assert!(*count > 20, "{what}: {count} of 20,000");
        }
        assert!(seen["in order"] > 10_000 && seen.len() == 24, "{seen:?}");
    }

    #[test]
    fn bulk_is_as_fast_as_the_data_path_and_every_flow_in_order() {
        let bulk = Bulk {
            flows: 3,
            segments: 5,
            queues: 2,
            shuffled: Some(1),
            ..Bulk::default()
        };
        let arrivals = bulk.arrivals();
        assert_eq!(arrivals.len(), 15);
        for (i, arrival) in (1..).zip(&arrivals) {
            assert_eq!((arrival.at, arrival.frame.len()), (i * 190 * 8, 1514));
        }
        for flow in 0..3 {
            let of = arrivals
                .iter()
                .filter(|a| word(&a.frame, 34) >> 16 == 10_000 + flow);
            let numbers: Vec<u32> = of.map(|a| word(&a.frame, 38)).collect();
            let wanted: Vec<u32> = (0..5).map(|i| 0x1000 * flow + 1460 * i).collect();
            assert_eq!(numbers, wanted);
        }
    }
}
