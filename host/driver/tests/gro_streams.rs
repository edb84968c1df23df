//! Merging undone is what was on the wire: random streams, captures and bytes without sense.

#[path = "support/captures.rs"]
mod captures;
#[path = "support/merging.rs"]
mod merging;

use std::collections::BTreeMap;
use std::time::Duration;

use ferronic::gro::GroOptions;
use ferronic_oracle::lro::{Config, Lro};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::{Rng, frames};
use merging::{Delivered, Merger};
use zerocopy::IntoBytes;

/// Segments of the random streams.
const SEGMENTS: u64 = 60_000;

/// A random generator and its seed, which `FERRONIC_SEED` sets.
fn seeded(number: u64) -> (Rng, u64) {
    let seed = std::env::var("FERRONIC_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1_u64);
    println!("FERRONIC_SEED={seed}");
    let nightly =
        std::env::var_os("FERRONIC_NIGHTLY").is_some_and(|value| !value.is_empty() && value != "0");
    let count = if nightly { 20 * SEGMENTS } else { SEGMENTS };
    (Rng::new(seed.wrapping_mul(8).wrapping_add(number)), count)
}

/// A stream that goes on, with what may happen to its segments.
struct Stream {
    next: Segment,
    size: usize,
}

impl Stream {
    fn new(number: u64, rng: &mut Rng) -> Self {
        let size = rng.pick(&[1, 33, 100, 536, 1448]);
        let plain = if rng.chance(50) {
            Segment::v6(rng.next_u64() as u32, size)
        } else {
            Segment::v4(rng.next_u64() as u32, size)
        };
        let tags = (0..rng.pick(&[0, 0, 0, 1, 2]))
            .map(|_| [0x81, 0, 0, rng.pick(&[1, 2])])
            .collect();
        let next = Segment {
            ports: [number as u16, 80],
            id: rng.pick(&[0, 0xfff0]),
            tags,
            ..plain
        };
        let next = match rng.below(4) {
            0 => next,
            1 => Segment {
                options: (0..4 * rng.below(11)).map(|b| b as u8).collect(),
                ..next
            },
            _ => next.stamps(7, 9),
        };
        Self { next, size }
    }

    /// The next frame; mostly what continues the stream.
    fn frame(&mut self, rng: &mut Rng) -> Vec<u8> {
        let now = self.next.clone();
        self.next = now.next(self.size);
        if rng.chance(75) {
            return now.bytes();
        }
        let mut odd = now.clone();
        let bits = rng.next_u64();
        match rng.below(22) {
            0 => odd.seq = odd.seq.wrapping_add(rng.pick(&[1, u32::MAX, 1 << 31])),
            1 => odd.id = odd.id.wrapping_add(rng.pick(&[1, 0xffff])),
            2 => odd.flags ^= 1 << rng.below(12),
            3 => odd.flags |= flag::PSH,
            4 => odd.window ^= 1,
            5 => odd.ack = odd.ack.wrapping_add(1000),
            6 => odd.ttl -= 1,
            7 => odd.class ^= 3,
            8 => odd.macs[6] ^= 2,
            9 => odd
                .payload
                .truncate(rng.below(odd.payload.len() as u64 + 1) as usize),
            10 => odd.payload.push(bits as u8),
            11 if !odd.v6 => odd.fragment = rng.pick(&[0, 0x2000, 0x8000, 0x4001]),
            11 => odd.label ^= 1,
            12 => odd.options = vec![1; 4 * rng.below(11) as usize],
            13 if odd.v6 => odd.extension = Some((60, vec![0, 1, 4, 0, 0, 0, 0])),
            13 => odd.ip_options = vec![1; 4],
            14 => odd.urgent = 1,
            // Lost, or sent again.
            15 => {
                self.next = self.next.next(self.size);
                return self.frame(rng);
            }
            16 => self.next = now,
            // From here on, all are like this.
            17 => {
                self.next.ack = self.next.ack.wrapping_add(1);
                self.next.id = bits as u16;
            }
            18 => {
                let mut frame = odd.bytes();
                let bit = rng.below(8 * frame.len() as u64) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
                return frame;
            }
            19 => {
                let mut frame = odd.bytes();
                frame.resize(frame.len() + 1 + rng.below(60) as usize, bits as u8);
                return frame;
            }
            20 => {
                let mut frame = odd.bytes();
                frame.truncate(14 + rng.below(frame.len() as u64 - 13) as usize);
                return frame;
            }
            _ => return frames::frame(rng),
        }
        odd.bytes()
    }
}

/// What tells the flow of a frame, as far as it does: tags, protocol, addresses, ports as they stand. Frames
/// that say nothing are of one flow.
fn flow(frame: &[u8]) -> Vec<u8> {
    let mut ip = 14;
    while ip < 22 && frame.len() > ip && matches!(frame[ip - 2..ip], [0x81, 0] | [0x88, 0xa8]) {
        ip += 4;
    }
    let (protocol, range) = match frame.get(ip - 2..ip) {
        Some([0x08, 0x00]) if frame.get(ip) == Some(&0x45) => (ip + 9, ip + 12..ip + 24),
        Some([0x86, 0xdd]) if frame.get(ip).is_some_and(|b| b >> 4 == 6) => {
            (ip + 6, ip + 8..ip + 44)
        }
        _ => return Vec::new(),
    };
    match frame.get(range) {
        Some(flow) => [&frame[12..ip], &frame[protocol..=protocol], flow].concat(),
        None => Vec::new(),
    }
}

fn by_flow(frames: impl IntoIterator<Item = Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows = BTreeMap::<_, Vec<_>>::new();
    for frame in frames {
        flows.entry(flow(&frame)).or_default().push(frame);
    }
    flows
}

/// Merges `frames` in bursts, cuts the result back, and compares flow by flow. Returns segments and
/// units.
fn there_and_back(mut merger: Merger, frames: &[Vec<u8>], burst: usize) -> (u64, u64) {
    let buffers = merger.free();
    let mut now = 0;
    for frames in frames.chunks(burst) {
        for frame in frames {
            merger.offer(frame, now);
        }
        now += 700;
        merger.end_of_burst(now);
    }
    merger.flush();
    assert_eq!(merger.free(), buffers, "every buffer came back");
    let cut = merger
        .take()
        .iter()
        .flat_map(Delivered::cut)
        .collect::<Vec<_>>();
    let (got, want) = (by_flow(cut), by_flow(frames.to_vec()));
    assert!(got.keys().eq(want.keys()));
    for (flow, want) in want {
        let got = &got[&flow];
        let wrong = got.iter().zip(&want).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "frame of flow {flow:02x?}");
        assert_eq!(got.len(), want.len());
    }
    let stats = merger.gro.stats();
    assert_eq!(stats.segments + stats.others, frames.len() as u64);
    (stats.segments, stats.units)
}

fn held() -> GroOptions {
    GroOptions {
        hold: Duration::from_nanos(5000),
        gap: Duration::from_nanos(1500),
        ..GroOptions::default()
    }
}

fn random_streams(number: u64) {
    let (mut rng, count) = seeded(number);
    let (mut segments, mut units, mut left) = (0, 0, count);
    while left > 0 {
        let n = rng.range(1, 2000).min(left);
        left -= n;
        let mut streams: Vec<_> = (0..rng.pick(&[1, 1, 2, 5, 20]))
            .map(|i| Stream::new(i, &mut rng))
            .collect();
        let mut frames = Vec::new();
        while (frames.len() as u64) < n {
            let stream = rng.below(streams.len() as u64) as usize;
            // Trains of segments, as senders make them.
            for _ in 0..rng.pick(&[1, 1, 4, 50]) {
                frames.push(streams[stream].frame(&mut rng));
            }
            if rng.chance(2) {
                // Out of order.
                let last = frames.len() - 1;
                frames.swap(last, rng.below(last as u64 + 1) as usize);
            }
        }
        let options = if rng.chance(50) {
            held()
        } else {
            GroOptions::default()
        };
        let size = rng.pick(&[128, 129, 512, 2048]);
        let mut merger = Merger::new(options, 2048, size);
        merger.card_verifies = rng.chance(50);
        let (s, u) = there_and_back(merger, &frames, rng.range(1, 64) as usize);
        (segments, units) = (segments + s, units + u);
    }
    println!("{count} frames, {segments} segments in {units} units");
    assert!(
        segments > count / 2 && units * 2 < segments,
        "they show little"
    );
}

#[test]
fn random_streams_come_back_first_half() {
    random_streams(0);
}

#[test]
fn random_streams_come_back_second_half() {
    random_streams(1);
}

/// Merges in bursts of one buffer a frame, and compares everything that is delivered with what the
/// reference model of the card delivers for the same frames.
fn as_the_model(frames: &[Vec<u8>], burst: usize) {
    let mut merger = Merger::new(GroOptions::default(), 64, 2048);
    let plenty = 1 << 30;
    let mut model = Lro::new(Config {
        contexts: plenty,
        gap: u64::MAX,
        hold: u64::MAX,
        buffer: plenty,
        first_descriptor: plenty,
        ..Config::default()
    });
    model.post(0, 0, plenty);
    for frames in frames.chunks(burst) {
        for frame in frames {
            merger.offer(frame, 0);
            model.receive(0, 0, frame);
        }
        merger.end_of_burst(0);
        model.stop(0);
        let (got, want) = (merger.take(), model.take());
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(usize::from(got.segments), want.segments);
            assert!(
                got.frame == want.frame,
                "{:02x?}",
                &got.frame[..64.min(got.frame.len())]
            );
            // All but the number of buffers.
            let header = got.header.as_bytes();
            assert_eq!(header[..10], want.header.bytes()[..10], "{want:?}");
        }
        assert_eq!(got.len(), want.len());
    }
}

#[test]
fn what_is_delivered_is_what_the_model_of_the_card_delivers() {
    let (mut rng, count) = seeded(3);
    let mut left = count / 2;
    while left > 0 {
        let n = rng.range(1, 1000).min(left);
        left -= n;
        let mut stream = Stream::new(1, &mut rng);
        let mut other = Stream::new(2, &mut rng);
        let frames: Vec<_> = (0..n)
            .map(|_| {
                let stream = if rng.chance(70) {
                    &mut stream
                } else {
                    &mut other
                };
                stream.frame(&mut rng)
            })
            .collect();
        as_the_model(&frames, rng.range(1, 64) as usize);
    }
    for (_, frames) in captures::all() {
        let short: Vec<_> = frames.into_iter().filter(|f| f.len() <= 2036).collect();
        as_the_model(&short, 64);
    }
}

#[test]
fn captures_come_back() {
    for (name, frames) in captures::all() {
        for (options, burst) in [(GroOptions::default(), 64), (held(), 7)] {
            let merger = Merger::new(options, 2048, 2048);
            let (segments, units) = there_and_back(merger, &frames, burst);
            println!(
                "{name}: {} frames, {segments} segments in {units} units",
                frames.len()
            );
        }
    }
}

#[test]
fn bytes_without_sense_come_back_and_nothing_panics() {
    let (mut rng, count) = seeded(2);
    let mut merger = Merger::new(held(), 64, 512);
    for i in 0..count {
        let mut frame = if rng.chance(50) {
            frames::malformed(&mut rng)
        } else {
            frames::frame(&mut rng)
        };
        frame.truncate(2000);
        // The card may call anything verified.
        let verified = rng.chance(50);
        let header = ferronic::spec::NetHeader {
            flags: rng.next_u64() as u8,
            gso_type: rng.pick(&[0, 0, 1, 4, 0xff]),
            ..Default::default()
        };
        merger.offer_with(header, verified, &frame, i);
        if rng.chance(5) {
            merger.end_of_burst(i);
        }
    }
    merger.flush();
    assert_eq!((merger.free(), merger.gro.held()), (64, 0));
    let segments: u64 = merger
        .take()
        .iter()
        .map(|out| u64::from(out.segments))
        .sum();
    assert_eq!(segments, count);
}
