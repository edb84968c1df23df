//! Which queue pair a received frame comes to, on the whole card: by the table of receive-side
//! scaling, by where its flow was last sent from (S3-R9), and not at all if a filter says so.

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;
use ferronic::filter::{FilterOptions, Filtered, Modes, Vlans};
use ferronic::follow::FollowOptions;
use ferronic::rss::{HashTypes, RssOptions};
use ferronic::{DeviceConfig, LroOptions, LroRequest};
use ferronic_cosim_tests::card::{Card, Received};
use ferronic_oracle::rss::{Hash, KEY, PUBLISHED_KEY, SUITE, hash};
use ferronic_oracle::{Rng, Segment, frames};
use ferronic_sim::SimConfig;
use ferronic_sim::model::{QUEUE_PAIRS, WIDTHS};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A card of which as many pairs receive as it was built with.
fn card(data_w: u32, seed: Option<u64>) -> Card {
    let sim = seed.map_or_else(SimConfig::default, SimConfig::adversarial);
    let driver = DeviceConfig {
        queue_pairs: QUEUE_PAIRS,
        ..DeviceConfig::default()
    };
    Card::open(SimConfig { data_w, ..sim }, driver)
}

/// A frame of UDP, or of TCP.
fn frame(source: SocketAddr, destination: SocketAddr, tcp: bool, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], MAC);
    let builder = match (source.ip(), destination.ip()) {
        (IpAddr::V4(s), IpAddr::V4(d)) => builder.ipv4(s.octets(), d.octets(), 64),
        (IpAddr::V6(s), IpAddr::V6(d)) => builder.ipv6(s.octets(), d.octets(), 64),
        _ => panic!("addresses of two families"),
    };
    let mut bytes = Vec::new();
    if tcp {
        let builder = builder
            .tcp(source.port(), destination.port(), 1, 1000)
            .ack(1);
        builder.write(&mut bytes, payload).unwrap();
    } else {
        let builder = builder.udp(source.port(), destination.port());
        builder.write(&mut bytes, payload).unwrap();
    }
    bytes
}

fn flow(rng: &mut Rng) -> (SocketAddr, SocketAddr) {
    let mut address = || {
        let port = 1 + rng.below(65_535) as u16;
        SocketAddr::from(([10, 0, rng.below(256) as u8, rng.below(256) as u8], port))
    };
    (address(), address())
}

/// Queues and whole cards are compared by what the table says of the oracle's hash.
fn expected(bytes: &[u8], key: &[u8; KEY], types: HashTypes, table: &[u16], other: u16) -> u16 {
    match hash(bytes, key, types.bits() as u8) {
        Hash::Is(0, _) => other,
        Hash::Is(_, value) => table[value as usize % table.len()],
        Hash::Cut => panic!("a frame that is cut"),
    }
}

fn push(card: &Card, frames: &[Vec<u8>]) {
    for frame in frames {
        card.wire.push(frame.clone());
    }
}

#[test]
fn published_vectors_choose_their_entries_of_the_table() {
    for &data_w in WIDTHS {
        let mut card = card(data_w, None);
        let table: Vec<u16> = (0..128).map(|i| (i / 3) % QUEUE_PAIRS).collect();
        for ports in [true, false] {
            let types = if ports {
                HashTypes::all()
            } else {
                HashTypes::IPV4 | HashTypes::IPV6
            };
            let options = RssOptions::equal(QUEUE_PAIRS).unwrap().with_types(types);
            let options = options.with_table(table.clone()).unwrap();
            assert_eq!(options.key(), &PUBLISHED_KEY);
            card.device.set_rss(Some(&options)).unwrap();
            for tcp in [true, false] {
                let mut want = Vec::new();
                for (destination, to, source, from, plain, with_ports) in SUITE {
                    let source = SocketAddr::new(source.parse().unwrap(), from);
                    let destination = SocketAddr::new(destination.parse().unwrap(), to);
                    card.wire.push(frame(source, destination, tcp, b"suite"));
                    let hash = if ports { with_ports } else { plain };
                    want.push(table[hash as usize % 128]);
                }
                let mut got = card.receive_count(SUITE.len());
                got.sort_by_key(|f| SUITE.iter().position(|row| is_of(&f.data, row)));
                let got: Vec<u16> = got.iter().map(|frame| frame.pair).collect();
                assert_eq!(got, want, "{data_w} bits, ports {ports}, TCP {tcp}");
            }
        }
    }
}

/// Whether the ports of a frame of the suite are those of a row.
fn is_of(data: &[u8], row: &(&str, u16, &str, u16, u32, u32)) -> bool {
    let at = if data[12] == 8 { 34 } else { 54 };
    let v6 = row.0.contains(':');
    v6 == (data[12] != 8) && data[at..at + 4] == [row.3.to_be_bytes(), row.1.to_be_bytes()].concat()
}

/// Frames with headers of all kinds, while tables and keys change; each queue in order.
fn random(data_w: u32, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut card = card(data_w, Some(seed));
    for round in 0..4 {
        let bits = rng.below(8) as u32;
        let table: Vec<u16> = (0..1 << bits)
            .map(|_| rng.below(u64::from(QUEUE_PAIRS)) as u16)
            .collect();
        let types = HashTypes::from_bits_truncate(if round == 0 {
            0x3f
        } else {
            rng.below(64) as u32
        });
        let key = std::array::from_fn(|_| rng.next_u64() as u8);
        let other = rng.below(u64::from(QUEUE_PAIRS)) as u16;
        let options = RssOptions::equal(QUEUE_PAIRS)
            .unwrap()
            .with_types(types)
            .with_key(key);
        let options = options
            .with_table(table.clone())
            .unwrap()
            .with_unclassified(other)
            .unwrap();
        card.device.set_rss(Some(&options)).unwrap();
        let mut sent = Vec::new();
        while sent.len() < 120 {
            let frame = frames::frame(&mut rng);
            if hash(&frame, &key, types.bits() as u8) != Hash::Cut {
                sent.push(frame);
            }
        }
        push(&card, &sent);
        let got = card.receive_count(sent.len());
        for pair in 0..QUEUE_PAIRS {
            let came: Vec<_> = got
                .iter()
                .filter(|f| f.pair == pair)
                .map(|f| &f.data)
                .collect();
            let want = sent
                .iter()
                .filter(|f| expected(f, &key, types, &table, other) == pair);
            let want: Vec<_> = want.collect();
            assert!(
                came == want,
                "{data_w} bits, seed {seed}, round {round}, pair {pair}"
            );
        }
    }
}

#[test]
fn frames_of_all_kinds_come_to_the_pair_of_the_table_in_order() {
    for &data_w in WIDTHS {
        for seed in 0..3 {
            random(data_w, seed);
        }
    }
}

fn pair_of(card: &mut Card, frame: Vec<u8>) -> u16 {
    card.wire.push(frame);
    card.receive_count(1)[0].pair
}

/// Sends a frame on a queue and waits until it is on the wire.
fn send(card: &mut Card, pair: u16, frame: &[u8]) {
    let before = card.wire.sent();
    let tx = &mut card.pairs[usize::from(pair)].tx;
    assert_eq!(tx.push(frame).unwrap(), ferronic::PushResult::Queued);
    tx.flush().unwrap();
    while card.wire.sent() == before {
        card.device.poll();
    }
    card.pairs[usize::from(pair)].tx.reap().unwrap();
    card.wire.take_all();
}

/// S3-R9: without RSS replies arrive where the flow was sent from, with it where the table says.
#[test]
fn s3_r9_replies_arrive_on_the_queue_that_sent_or_on_the_tables() {
    for &data_w in WIDTHS {
        let mut rng = Rng::new(9);
        let mut card = card(data_w, None);
        let options = RssOptions::equal(QUEUE_PAIRS).unwrap();
        let mut moved = 0;
        for i in 0..60 {
            let (here, there) = flow(&mut rng);
            let tcp = rng.chance(50);
            let reply = frame(there, here, tcp, b"reply");
            let spread = pair_of(&mut card, reply.clone());
            for _ in 0..2 {
                let pair = rng.below(u64::from(QUEUE_PAIRS)) as u16;
                send(&mut card, pair, &frame(here, there, tcp, b"request"));
                assert_eq!(
                    pair_of(&mut card, reply.clone()),
                    pair,
                    "{data_w} bits, flow {i}"
                );
                moved += u32::from(pair != spread);
            }
            if i % 10 == 0 {
                card.device.set_rss(Some(&options)).unwrap();
                let want = expected(&reply, options.key(), options.types(), options.table(), 0);
                assert_eq!(pair_of(&mut card, reply.clone()), want, "by the table");
                card.device.set_rss(None).unwrap();
            }
            if i % 20 == 5 {
                let off = FollowOptions {
                    on: false,
                    ..FollowOptions::default()
                };
                card.device.set_follow(&off).unwrap();
                assert_eq!(pair_of(&mut card, reply), spread, "not followed");
                card.device.set_follow(&FollowOptions::default()).unwrap();
                // It takes a cycle for each place of a flow until flows are known again.
                card.function.sim().run(5000).unwrap();
            }
        }
        assert!(moved > 30, "{moved}");
    }
}

/// A flow is remembered in idle time too, for two to three periods, and a reset forgets it.
#[test]
fn flows_that_nothing_is_sent_to_are_forgotten() {
    let mut rng = Rng::new(3);
    let mut card = card(WIDTHS[0], None);
    let shorter = FollowOptions {
        on: true,
        period: std::time::Duration::from_millis(8),
    };
    card.device.set_follow(&shorter).unwrap();
    // 2^20 cycles of 8 ns are the next power of two.
    let period = 1 << 20;
    for _ in 0..8 {
        let (here, there) = flow(&mut rng);
        let reply = frame(there, here, false, b"reply");
        let spread = pair_of(&mut card, reply.clone());
        let pair = (spread + 1) % QUEUE_PAIRS;
        card.function.sim().run(rng.below(2 * period)).unwrap();
        send(&mut card, pair, &frame(here, there, false, b"request"));
        card.function.sim().run(2 * period - 10_000).unwrap();
        assert_eq!(
            pair_of(&mut card, reply.clone()),
            pair,
            "forgotten too early"
        );
        card.function.sim().run(period + 20_000).unwrap();
        assert_eq!(pair_of(&mut card, reply), spread, "remembered too long");
    }
}

/// Large receive offload with several queues: a flow that moves is delivered in order, and a change
/// of the table or of the number of pairs delivers first what is held.
#[test]
fn merged_flows_move_between_queues_in_order() {
    for &data_w in WIDTHS {
        let driver = DeviceConfig {
            queue_pairs: QUEUE_PAIRS,
            lro: LroRequest::Needed(LroOptions::default()),
            ..DeviceConfig::default()
        };
        let sim = SimConfig {
            data_w,
            ..SimConfig::default()
        };
        let mut card = Card::open(sim, driver);
        let all = |pair: u16| {
            let options = RssOptions::equal(QUEUE_PAIRS).unwrap();
            options.with_table(vec![pair]).unwrap()
        };
        let mut segment = Segment::v4(1000, 1000);
        let mut sent = Vec::new();
        let mut got: Vec<Received> = Vec::new();
        for round in 0..12_u16 {
            let pair = round % QUEUE_PAIRS;
            // What is held now was steered by the table before.
            card.device.set_rss(Some(&all(pair))).unwrap();
            got.extend(card.receive());
            let delivered: usize = got.iter().map(|frame| payload(&frame.data).len()).sum();
            assert_eq!(
                delivered,
                1000 * sent.len(),
                "{data_w} bits: what was held is delivered"
            );
            for _ in 0..7 {
                card.wire.push(segment.bytes());
                sent.push(pair);
                segment = segment.next(1000);
            }
            while card.wire.waiting() > 0 {
                card.device.poll();
            }
            card.function.sim().run(2000).unwrap();
        }
        card.device
            .set_lro(&LroOptions {
                profile: ferronic::lro::Profile::Off,
                ..LroOptions::default()
            })
            .unwrap();
        got.extend(card.receive());
        // By sequence number: each unit is of one pair, and the bytes are all there.
        let merged = got.len();
        let mut next = 1000_u32;
        for unit in &got {
            let seq = u32::from_be_bytes(unit.data[38..42].try_into().unwrap());
            assert_eq!(seq, next, "{data_w} bits: order");
            let first = (seq - 1000) as usize / 1000;
            let segments = payload(&unit.data).len() / 1000;
            for pair in &sent[first..first + segments] {
                assert_eq!(
                    unit.pair, *pair,
                    "{data_w} bits: the pair of segment {first}"
                );
            }
            next += payload(&unit.data).len() as u32;
        }
        assert_eq!(next as usize, 1000 + 1000 * sent.len());
        assert!(merged < sent.len() / 3, "{merged} units");
    }
}

/// Bytes of a TCP frame over IPv4 behind its headers.
fn payload(data: &[u8]) -> &[u8] {
    let total = usize::from(u16::from_be_bytes([data[16], data[17]]));
    let ip = 4 * usize::from(data[14] & 15);
    let tcp = 4 * usize::from(data[14 + ip + 12] >> 4);
    &data[14 + ip + tcp..14 + total]
}

/// Addresses and VLANs on the whole card; what is dropped is counted.
#[test]
fn filters_drop_and_count_what_is_not_asked_for() {
    for &data_w in WIDTHS {
        let mut rng = Rng::new(4);
        let mut card = card(data_w, Some(1));
        let mut dropped = 0;
        for round in 0..12 {
            let own = MAC;
            let group = [0x33, 0x33, 0, 0, 0, round];
            let vlans = Vlans::of([5, 100 + u16::from(round)]).unwrap();
            let mut options = FilterOptions::station(own).with_address(group);
            if round % 3 == 1 {
                options = options.with_modes(Modes::ALL_MULTICAST);
            }
            if round % 2 == 1 {
                options = options.with_vlans(vlans);
            }
            assert_eq!(card.device.set_filter(&options).unwrap(), Filtered::AsAsked);
            let mut want = Vec::new();
            for _ in 0..60 {
                let (here, there) = flow(&mut rng);
                let mut bytes = frame(there, here, true, &[7; 40]);
                let destination = rng.pick(&[
                    own,
                    group,
                    [0xff; 6],
                    [2, 0, 0, 0, 0, 9],
                    [0x33, 0x33, 0, 0, 1, 1],
                ]);
                bytes[..6].copy_from_slice(&destination);
                let vlan = rng.pick(&[
                    None,
                    None,
                    Some(5),
                    Some(6),
                    Some(100 + u16::from(round)),
                    Some(4095),
                ]);
                if let Some(vlan) = vlan {
                    let tag = [[0x81, 0], vlan.to_be_bytes()].concat();
                    bytes.splice(12..12, tag);
                }
                let by_address = destination == own
                    || destination == group
                    || destination == [0xff; 6]
                    || (destination[0] & 1 != 0 && round % 3 == 1);
                let listed = vlan.is_none_or(|id| id == 5 || id == 100 + u16::from(round));
                if by_address && (listed || round % 2 == 0) {
                    want.push(bytes.clone());
                } else {
                    dropped += 1;
                }
                card.wire.push(bytes);
            }
            let mut got: Vec<_> = card
                .receive_count(want.len())
                .into_iter()
                .map(|f| f.data)
                .collect();
            card.function.sim().run(3000).unwrap();
            assert!(card.receive().is_empty(), "more came than was asked for");
            got.sort();
            want.sort();
            assert!(got == want, "{data_w} bits, round {round}");
        }
        let counted = card.device.card_stats().unwrap().device;
        assert!(counted.contains(&("rx_filtered", dropped)), "{counted:?}");
        // More addresses than there is room for.
        let many = (0..17).fold(FilterOptions::station(MAC), |o, i| {
            o.with_address([2, 0, 0, 0, 7, i])
        });
        let all = card.device.set_filter(&many).unwrap();
        assert_eq!(
            all,
            Filtered::Promiscuous {
                wanted: 18,
                room: 16
            }
        );
        card.wire.push(vec![0x22; 60]);
        card.receive_count(1);
    }
}
