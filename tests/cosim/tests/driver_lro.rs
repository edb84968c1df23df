//! The real driver on a card that merges: the four ways of merging give the same stream, and a
//! setting that changes delivers what is held.

use std::time::Duration;

use ferronic::gro::GroOptions;
use ferronic::lro::Profile;
use ferronic::{DeviceConfig, LroOptions, Merging};
use ferronic_cosim_tests::card::{Card, PATIENCE, Received};
use ferronic_oracle::stream::{Bulk, Traffic};
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{Segment, order, resegment_buffer};
use ferronic_sim::SimConfig;
use ferronic_sim::model::WIDTHS;
use zerocopy::IntoBytes;

/// The frames that a delivered one stands for.
fn cut(received: &Received) -> Vec<Vec<u8>> {
    let bytes = [received.header.as_bytes(), &received.data].concat();
    resegment_buffer(&bytes).unwrap_or_else(|e| panic!("{e}: {:?}", received.header))
}

fn open(sim: SimConfig, mode: Merging, options: LroOptions, config: DeviceConfig) -> Card {
    let config = DeviceConfig {
        lro: mode.lro(options),
        ..config
    };
    let mut card = Card::open(sim, config);
    for pair in &mut card.pairs {
        let gro = mode.gro(GroOptions::default());
        pair.rx.set_gro(gro).expect("nothing is held");
    }
    card
}

/// Receives until everything that was put on the wire is there.
fn receive(card: &mut Card, frames: usize) -> Vec<Received> {
    let (mut got, mut count) = (Vec::new(), 0);
    let mut last = card.function.now();
    while count < frames {
        // Bursts of some frames, so that the driver has something to merge.
        for _ in 0..400 {
            card.device.poll();
        }
        let more = card.receive();
        if more.is_empty() {
            let silent = card.function.now() - last;
            assert!(silent < PATIENCE, "{count} of {frames} frames came");
            continue;
        }
        last = card.function.now();
        count += more.iter().map(|unit| cut(unit).len()).sum::<usize>();
        got.extend(more);
    }
    got
}

#[test]
fn every_way_of_merging_gives_the_stream_of_the_wire() {
    let bulk = |flows, v6, stamps| -> Vec<Arrival> {
        let segments = 300 / usize::from(flows);
        let bulk = Bulk {
            flows,
            v6,
            stamps,
            segments,
            ..Bulk::default()
        };
        bulk.arrivals()
    };
    let mut random = Traffic::new(7, 6, 1, 0);
    let random: Vec<Arrival> = (0..600).map(|_| random.arrival()).collect();
    let streams = [bulk(1, false, false), bulk(5, true, true), random];
    for (number, arrivals) in streams.iter().enumerate() {
        for (data_w, buffer_size) in [(WIDTHS[0], 2048), (WIDTHS[WIDTHS.len() - 1], 4096)] {
            for mode in Merging::ALL {
                let sim = SimConfig {
                    data_w,
                    ..SimConfig::adversarial(number as u64)
                };
                let config = DeviceConfig {
                    buffer_size,
                    ..DeviceConfig::default()
                };
                let what = format!("stream {number}, {data_w} bits, {mode}");
                let mut card = open(sim, mode, LroOptions::default(), config);
                for arrival in arrivals {
                    card.wire.push(arrival.frame.clone());
                }
                let got = receive(&mut card, arrivals.len());
                let delivered: Vec<_> = got.iter().flat_map(cut).map(|frame| (0, frame)).collect();
                if let Err(why) = order::same(arrivals, &delivered) {
                    panic!("{what}: {why}");
                }
                check(&mut card, mode, &got, &what);
            }
        }
    }
}

/// What the counters say of it.
fn check(card: &mut Card, mode: Merging, got: &[Received], what: &str) {
    let units = got.iter().filter(|unit| unit.header.gso_type != 0).count();
    let by_card = card.pairs[0].rx.stats().units;
    let lro = card.device.card_stats().expect("counters").lro;
    let lro = lro.expect("the card has LRO");
    assert_eq!(units > 0, mode != Merging::None, "{what}");
    match mode {
        Merging::None | Merging::Gro => {
            assert_eq!((by_card, lro.opened, lro.merged), (0, 0, 0), "{what}");
        }
        Merging::Lro => {
            assert_eq!(units as u64, by_card, "{what}");
            let merged: usize = got.iter().map(|unit| cut(unit).len() - 1).sum();
            assert_eq!(merged as u32, lro.merged, "{what}");
        }
        Merging::LroGro => assert!(by_card > 0 && units as u64 >= by_card, "{what}"),
    }
    let closed: u32 = lro.closed.iter().map(|(_, count)| count).sum();
    assert_eq!(
        closed, lro.opened,
        "{what}: everything that was opened is closed"
    );
}

/// Five segments, which are held for long.
fn hold(card: &mut Card) -> Vec<Vec<u8>> {
    let mut segment = Segment::v4(1, 1_000);
    let frames: Vec<_> = (0..5)
        .map(|_| {
            let frame = segment.bytes();
            segment = segment.next(1_000);
            frame
        })
        .collect();
    for frame in &frames {
        card.wire.push(frame.clone());
    }
    for _ in 0..2_000 {
        card.device.poll();
        assert!(card.receive().is_empty(), "held");
    }
    frames
}

fn long() -> LroOptions {
    LroOptions {
        gap: Duration::from_millis(60),
        hold: Duration::from_millis(60),
        ..LroOptions::default()
    }
}

#[test]
fn setting_that_changes_delivers_what_is_held_before_it_returns() {
    for data_w in [WIDTHS[0], WIDTHS[WIDTHS.len() - 1]] {
        let sim = SimConfig {
            data_w,
            ..SimConfig::default()
        };
        let mut card = open(sim, Merging::Lro, long(), DeviceConfig::default());
        let short = LroOptions {
            gap: Duration::from_micros(1),
            ..long()
        };
        let off = LroOptions {
            profile: Profile::Off,
            ..long()
        };
        for options in [short, long(), off] {
            card.device.set_lro(&long()).expect("the card takes it");
            let frames = hold(&mut card);
            card.device.set_lro(&options).expect("the card takes it");
            // Without a cycle more.
            let got = card.receive();
            assert_eq!(got.len(), 1, "{options:?}");
            assert!(cut(&got[0]) == frames);
        }
        assert_eq!(card.device.lro().expect("it answers"), None);
        // Nothing is merged any more, and nothing waits.
        let frame = Segment::v4(1, 500);
        for frame in [frame.bytes(), frame.next(500).bytes()] {
            card.wire.push(frame);
        }
        assert_eq!(card.receive_count(2).len(), 2);
    }
}

#[test]
fn reset_of_a_queue_forgets_what_is_held_and_merging_goes_on() {
    let mut card = open(
        SimConfig::default(),
        Merging::Lro,
        long(),
        DeviceConfig::default(),
    );
    hold(&mut card);
    let rx = &mut card.pairs[0].rx;
    card.device.reset_queue_rx(rx).expect("it ends");
    assert!(card.receive().is_empty(), "nothing is delivered");
    card.device
        .set_lro(&LroOptions::default())
        .expect("the card takes it");
    let mut segment = Segment::v6(9, 1_000).stamps(1, 1);
    let mut frames = Vec::new();
    for _ in 0..90 {
        frames.push(segment.bytes());
        card.wire.push(segment.bytes());
        segment = segment.next(1_000);
    }
    let got = receive(&mut card, frames.len());
    assert!(got.iter().flat_map(cut).collect::<Vec<_>>() == frames);
    assert!(got.len() < 10, "{} units", got.len());
}

#[test]
fn relaxed_profile_is_set_and_what_it_merges_is_received() {
    for data_w in [WIDTHS[0], WIDTHS[WIDTHS.len() - 1]] {
        let sim = SimConfig {
            data_w,
            ..SimConfig::default()
        };
        let options = LroOptions {
            profile: Profile::Relaxed,
            low_water: 4,
            ..long()
        };
        let mut card = open(sim, Merging::Lro, options, DeviceConfig::default());
        assert_eq!(card.device.lro().expect("it answers"), Some(options));
        let (mut segment, mut payload) = (Segment::v4(1, 500).stamps(9, 1), Vec::new());
        for (i, length) in [500, 700, 100].into_iter().enumerate() {
            if i > 0 {
                segment = segment.next(length).stamps(9 + i as u32, 1 + i as u32);
            }
            (segment.window, segment.ttl) = (1000 + i as u16, 64 - i as u8);
            segment.ack += 1;
            payload.extend(&segment.payload);
            card.wire.push(segment.bytes());
        }
        for _ in 0..2_000 {
            card.device.poll();
            assert!(card.receive().is_empty(), "held");
        }
        let off = LroOptions {
            profile: Profile::Off,
            ..options
        };
        card.device.set_lro(&off).expect("the card takes it");
        let got = card.receive();
        assert_eq!(got.len(), 1);
        let (header, data) = (got[0].header, &got[0].data);
        assert_eq!((header.gso_size.get(), data.len()), (700, 66 + 1300));
        assert_eq!((data[22], &data[66..]), (62, &payload[..]));
        let word =
            |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        assert_eq!((word(42), word(58), word(62)), (4, 9, 3));
        assert_eq!(word(48) >> 16, 1002);
    }
}
