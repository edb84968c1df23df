//! Many queue pairs at once: as many as the card was built with, and a quarter of that. `cargo xtask
//! test` runs this with 4 and with 64.

use std::collections::BTreeMap;

use etherparse::PacketBuilder;
use ferronic::rss::RssOptions;
use ferronic::{DeviceConfig, PushResult, TxOffload};
use ferronic_cosim_tests::card::{Card, PATIENCE};
use ferronic_cosim_tests::completion::jain;
use ferronic_oracle::Rng;
use ferronic_oracle::rss::{Hash, hash};
use ferronic_sim::SimConfig;
use ferronic_sim::model::QUEUE_PAIRS;
use ferronic_sim::wire::Pace;

/// Preamble, inter-frame gap and FCS, which a frame costs the wire besides.
const WIRE: u64 = 24;

fn numbers() -> Vec<u16> {
    let mut numbers = vec![QUEUE_PAIRS.div_ceil(4), QUEUE_PAIRS];
    numbers.dedup();
    numbers
}

fn open(pairs: u16, seed: u64) -> Card {
    let driver = DeviceConfig {
        queue_pairs: pairs,
        ring_size: Some(256),
        ..DeviceConfig::default()
    };
    Card::open(SimConfig::adversarial(seed), driver)
}

/// A UDP frame of a flow, or a TCP one; its number is the first word of its payload.
fn frame(flow: u32, number: u32, len: usize) -> Vec<u8> {
    let [a, b, c, d] = flow.to_be_bytes();
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ipv4([10, a, b, c], [10, 9, d, 1], 64)
        .udp(5000 + d as u16, 7);
    let mut payload = [flow.to_be_bytes(), number.to_be_bytes()].concat();
    payload.resize(len.max(8), d);
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &payload).unwrap();
    bytes
}

fn number(bytes: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (word(42), word(46))
}

/// Frames of many flows are spread over all pairs, each flow on one and in order, and the pair is
/// the table's where there is one.
#[test]
fn frames_are_spread_over_all_pairs_and_flows_keep_their_order() {
    for pairs in numbers() {
        for by_table in [true, false] {
            let mut rng = Rng::new(u64::from(pairs));
            let mut card = open(pairs, 2);
            let options = RssOptions::equal(pairs).unwrap();
            card.device.set_rss(by_table.then_some(&options)).unwrap();
            let flows: Vec<u32> = (0..12 * u32::from(pairs))
                .map(|i| i << 20 | (rng.next_u64() as u32 & 0xf_ffff))
                .collect();
            let mut sent: BTreeMap<u32, u32> = BTreeMap::new();
            let frames = 3 * flows.len();
            for _ in 0..frames {
                let flow = rng.pick(&flows);
                let count = sent.entry(flow).or_default();
                let len = rng.pick(&[8, 40, 200]);
                card.wire.push(frame(flow, *count, len));
                *count += 1;
            }
            let mut seen: BTreeMap<u32, (u16, u32)> = BTreeMap::new();
            let mut of_pair = vec![0; usize::from(pairs)];
            for got in card.receive_count(frames) {
                let (flow, number) = number(&got.data);
                let (pair, next) = seen.entry(flow).or_insert((got.pair, 0));
                assert_eq!(got.pair, *pair, "{pairs} pairs: flow {flow:#x} moved");
                assert_eq!(
                    number, *next,
                    "{pairs} pairs: flow {flow:#x} is out of order"
                );
                *next += 1;
                of_pair[usize::from(*pair)] += 1;
                if by_table {
                    let types = options.types().bits() as u8;
                    let Hash::Is(_, value) = hash(&got.data, options.key(), types) else {
                        panic!("a frame that is cut");
                    };
                    assert_eq!(*pair, options.table()[value as usize % 128]);
                }
            }
            assert!(
                of_pair.iter().all(|n| *n > 0),
                "{pairs} pairs, table {by_table}: {of_pair:?}"
            );
        }
    }
}

/// What a queue sends all the time.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Frames with so many bytes of payload.
    Plain(usize),
    /// TCP that the card cuts into segments of so many bytes, and so many of them.
    Cut(usize, usize),
}

fn push(card: &mut Card, pair: u16, kind: Kind) -> bool {
    let tx = &mut card.pairs[usize::from(pair)].tx;
    let result = match kind {
        Kind::Plain(len) => tx.push(&frame(u32::from(pair), 0, len)).unwrap(),
        Kind::Cut(size, segments) => {
            let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .tcp(5000 + pair, 7, 1, 1000);
            let mut payload = vec![0; size * segments];
            for segment in payload.chunks_mut(size) {
                segment[..4].copy_from_slice(&u32::from(pair).to_be_bytes());
            }
            let mut bytes = Vec::new();
            builder.write(&mut bytes, &payload).unwrap();
            let len = bytes.len();
            let offload = TxOffload::segment(&mut bytes[..54], len, size as u16).expect("TCP");
            tx.push_offload(&bytes, offload).unwrap()
        }
    };
    result == PushResult::Queued
}

/// The pair that a frame of the wire is of.
fn sender(bytes: &[u8]) -> usize {
    let at = if bytes[23] == 17 { 42 } else { 54 };
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Sixteen backlogged queues (or all there are) with frames of all sizes, some cut by the card, get
/// equal shares of the wire.
#[test]
fn backlogged_queues_of_all_frame_sizes_share_the_wire_equally() {
    let pairs = QUEUE_PAIRS.min(16);
    let mut card = open(pairs, 5);
    // The wire is what they share.
    card.wire.set_pace(Pace::Gigabit);
    let kinds = [
        Kind::Plain(20),
        Kind::Plain(1400),
        Kind::Cut(1448, 8),
        Kind::Plain(300),
        Kind::Cut(536, 16),
        Kind::Plain(64),
        Kind::Plain(8000),
        Kind::Plain(700),
    ];
    let kind = |pair: u16| kinds[usize::from(pair) % kinds.len()];
    let mut bytes = vec![0_u64; usize::from(pairs)];
    let goal = 100_000 * u64::from(pairs);
    let begin = card.function.now();
    let fill = |card: &mut Card| {
        for pair in 0..pairs {
            while push(card, pair, kind(pair)) {}
            let tx = &mut card.pairs[usize::from(pair)].tx;
            tx.flush().unwrap();
            tx.reap().unwrap();
        }
    };
    fill(&mut card);
    // All are backlogged from here on; what left while the first were alone does not count.
    card.function.sim().run(20_000).unwrap();
    card.wire.take_all();
    while bytes.iter().sum::<u64>() < goal {
        fill(&mut card);
        card.device.poll();
        for sent in card.wire.take_all() {
            bytes[sender(&sent.data)] += sent.data.len() as u64 + WIRE;
        }
        assert!(card.function.now() - begin < 20 * PATIENCE, "{bytes:?}");
    }
    let index = jain(&bytes);
    println!("{pairs} queues: Jain index {index:.4} of {bytes:?}");
    assert!(index >= 0.98, "Jain index {index:.4} of {bytes:?}");
    for pair in 0..pairs {
        let tx = card.pairs[usize::from(pair)].tx.stats();
        assert!(tx.frames > 0);
    }
}
