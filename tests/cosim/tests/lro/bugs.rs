//! Faults that others shipped in merging, by row of the project's list of public reports: on these
//! inputs and on their kind the card is right. Every unit is compared with the model's as well.

use ferronic_cosim_tests::requests::Transmitter;
use ferronic_oracle::lro::Unit;
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{
    Header, NEEDS_CSUM, Offloads, Opinion, Outcome, Request, Rng, opinion, transmit,
};
use ferronic_sim::SimConfig;
use ferronic_sim::model::WIDTHS;
use ferronic_spec::Features;

use crate::bench::Bench;

/// What is delivered, which is the same at each width. That it is what arrived, and that it is what
/// the model makes of it, is looked at.
fn merge_frames(frames: &[Vec<u8>], change: impl Fn(&mut Bench)) -> Vec<Unit> {
    let runs = WIDTHS.iter().map(|data_w| {
        let mut bench = Bench::new(format!("{data_w} bits"), *data_w, 0);
        change(&mut bench);
        bench.compare(frames.to_vec())
    });
    let runs: Vec<_> = runs.collect();
    runs[0].clone()
}

fn merge(segments: &[Segment]) -> Vec<Unit> {
    let frames: Vec<_> = segments.iter().map(Segment::bytes).collect();
    merge_frames(&frames, |_| {})
}

fn sizes(units: &[Unit]) -> Vec<usize> {
    units.iter().map(|unit| unit.segments).collect()
}

fn stream(first: Segment, lengths: &[usize]) -> Vec<Segment> {
    let mut segments = vec![first];
    for length in lengths {
        segments.push(segments[segments.len() - 1].next(*length));
    }
    segments
}

fn both(length: usize) -> [Segment; 2] {
    [Segment::v4(7, length), Segment::v6(7, length)]
}

#[test]
fn bug_16_what_is_forwarded_leaves_as_it_came() {
    let mut rng = Rng::new(16);
    let sim = SimConfig::default();
    let mut port = Transmitter::open(sim, Offloads::ALL, Features::empty(), 1);
    for first in both(1440) {
        for lengths in [&[1440][..], &[1440, 1440, 77]] {
            let segments = stream(first.clone(), lengths);
            let units = merge(&segments);
            assert_eq!(sizes(&units), [segments.len()]);
            let wire: Vec<_> = segments.iter().map(Segment::bytes).collect();
            let unit = &units[0];
            // As a bridge sends it: with the virtio header that it was received with.
            let sent = transmit(&unit.header, &unit.frame, Offloads::ALL);
            assert_eq!(sent, Outcome::Sent(wire));
            // And by a second card, which compares what leaves with that.
            let request = Request {
                kind: "segmentation",
                header: unit.header,
                frame: unit.frame.clone(),
            };
            port.post(&request, &mut rng);
        }
    }
    port.finish(&mut rng);
}

#[test]
fn bug_17_one_segment_is_never_marked_as_several() {
    for first in both(1440) {
        for unit in merge(&[first]) {
            assert_eq!((unit.header.gso_type, unit.header.gso_size), (0, 0));
        }
    }
    // And gso_size is the first payload, not a mean (ixgbe).
    let units = merge(&stream(Segment::v4(7, 1000), &[1000, 1]));
    assert_eq!(units[0].header.gso_size, 1000);
}

#[test]
fn bug_18_sums_of_a_unit_are_those_of_its_own_length() {
    for first in both(1440) {
        let units = merge(&stream(first, &[1440]));
        let [unit] = &units[..] else {
            panic!("{} units", units.len());
        };
        assert_eq!(unit.header.flags, NEEDS_CSUM);
        // Completed as the header asks for, it is right to a parser that knows nothing of this.
        let whole = Header {
            gso_type: 0,
            gso_size: 0,
            ..unit.header
        };
        let Outcome::Sent(frames) = transmit(&whole, &unit.frame, Offloads::ALL) else {
            panic!("not sent");
        };
        assert_eq!(opinion(&frames[0]), Opinion::Right);
    }
}

#[test]
fn bug_19_several_buffers_are_one_unit() {
    for first in both(1440) {
        for (buffer, count) in [(2048, 3), (256, 18)] {
            let frames: Vec<_> = stream(first.clone(), &[1440, 1440])
                .iter()
                .map(Segment::bytes)
                .collect();
            // A unit is published at once or the receiver says so.
            let units = merge_frames(&frames, |bench| bench.plan.sizes = vec![buffer]);
            assert_eq!(sizes(&units), [3]);
            assert_eq!(units[0].header.num_buffers, count);
        }
    }
}

#[test]
fn bug_20_off_delivers_what_is_held_and_stays_off() {
    let segments = stream(Segment::v4(0, 100), &[100; 5]);
    for data_w in WIDTHS {
        let mut receiver = Bench::new("off", *data_w, 0).open();
        let push = |receiver: &mut ferronic_cosim_tests::lro::Receiver, segments: &[Segment]| {
            for segment in segments {
                receiver.raw.wire.push(segment.bytes());
            }
            receiver.settle();
        };
        push(&mut receiver, &segments[..3]);
        assert_eq!(receiver.units, []);
        receiver.stop();
        assert_eq!(sizes(&receiver.units), [3]);
        push(&mut receiver, &segments[3..]);
        assert_eq!(sizes(&receiver.units), [3, 1, 1, 1]);
        receiver.stop();
        assert_eq!(sizes(&receiver.units), [3, 1, 1, 1]);
        receiver.check();
    }
}

#[test]
fn bug_23_length_never_passes_16_bits() {
    for first in both(1440) {
        let units = merge(&stream(first, &[1440; 100]));
        assert!(sizes(&units)[..2].iter().all(|segments| *segments == 45));
        for unit in units {
            assert!(unit.frame.len() - 14 <= 65_535);
        }
    }
    let stamped = Segment::v4(0, 1448).stamps(1, 1);
    let units = merge(&stream(stamped, &[1448; 99]));
    assert_eq!(sizes(&units), [45, 45, 10]);
}

#[test]
fn bug_25_change_of_the_hop_limit_does_not_reorder() {
    for first in both(100) {
        let mut segments = stream(first, &[100; 3]);
        for (segment, ttl) in segments.iter_mut().zip([64, 64, 63, 63]) {
            segment.ttl = ttl;
        }
        assert_eq!(sizes(&merge(&segments)), [2, 2]);
    }
}

#[test]
fn bug_27_cwr_on_all_segments_is_kept_and_ends_with_the_last_of_them() {
    for first in both(100) {
        let mut segments = stream(first, &[100; 7]);
        for segment in &mut segments[2..5] {
            segment.flags |= flag::CWR | flag::AE;
        }
        assert_eq!(sizes(&merge(&segments)), [2, 1, 1, 1, 3]);
    }
}

#[test]
fn bug_28_payload_is_not_looked_at_and_equal_acknowledgements_are_not_asked_for_more() {
    // What looks like TCP and is something else inside: constant acknowledgement, next numbers.
    let mut segments = stream(Segment::v4(0, 100), &[100; 3]);
    segments.iter_mut().for_each(|s| s.ack = 0);
    assert_eq!(sizes(&merge(&segments)), [4]);
    segments[2].ack = 1;
    assert_eq!(sizes(&merge(&segments)), [2, 1, 1]);
}

#[test]
fn bug_29_psh_on_each_delivers_each_and_delays_none() {
    for first in both(100) {
        let mut segments = stream(first, &[100; 4]);
        segments.iter_mut().for_each(|s| s.flags |= flag::PSH);
        for data_w in WIDTHS {
            let mut receiver = Bench::new("PSH", *data_w, 0).open();
            for (i, segment) in segments.iter().enumerate() {
                receiver.raw.wire.push(segment.bytes());
                receiver.settle();
                assert_eq!(receiver.units.len(), i + 1);
                assert_eq!(receiver.units[i].frame, segment.bytes());
            }
            receiver.check();
        }
        assert_eq!(sizes(&merge(&segments)), [1; 5]);
    }
}

#[test]
fn bug_30_fragments_psh_regress_and_padding() {
    // DF and MF; DF clear does merge.
    let with = |change: fn(usize, &mut Segment)| {
        let mut segments = stream(Segment::v4(0, 100), &[100; 3]);
        segments
            .iter_mut()
            .enumerate()
            .for_each(|(i, s)| change(i, s));
        merge(&segments)
    };
    assert_eq!(sizes(&with(|_, s| s.fragment = 0x6000)), [1; 4]);
    assert_eq!(sizes(&with(|_, s| s.fragment = 0)), [4]);
    // PSH of one that is not the last is not overwritten.
    let units = with(|i, s| s.flags |= if i == 1 { flag::PSH } else { 0 });
    assert_eq!(sizes(&units), [2, 2]);
    assert_eq!([units[0].frame[47] & 8, units[1].frame[47] & 8], [8, 0]);
    assert_eq!(sizes(&with(|i, s| s.ack = 9 - i as u32)), [1; 4]);
    // Padding makes no hole.
    let mut padded: Vec<_> = stream(Segment::v4(0, 1), &[1; 3])
        .iter()
        .map(Segment::bytes)
        .collect();
    padded.iter_mut().for_each(|frame| frame.resize(60, 0xee));
    assert_eq!(sizes(&merge_frames(&padded, |_| {})), [1; 4]);
    // Nothing overtakes what is held of its flow.
    let mut segments = stream(Segment::v4(0, 100), &[100; 3]);
    segments[2].flags |= flag::FIN;
    let arrivals = segments.iter().enumerate().map(|(at, segment)| Arrival {
        at: at as u64,
        queue: 0,
        frame: segment.bytes(),
    });
    Bench::new("FIN", 64, 30).undo(arrivals);
}

#[test]
fn bug_31_vlan_ttl_class_identification_and_sizes_count() {
    let two = |change: fn(&mut Segment)| {
        let mut segments = stream(Segment::v4(0, 100), &[100]);
        change(&mut segments[1]);
        sizes(&merge(&segments))
    };
    let changes: [fn(&mut Segment); 6] = [
        |s| s.tags = vec![[0x81, 0, 0, 5]],
        |s| s.ttl = 1,
        |s| s.class = 4,
        |s| s.id += 1,
        |s| s.ack = 0,
        |s| {
            *s = Segment {
                id: s.id,
                ..Segment::v4(s.seq, 101)
            }
        },
    ];
    for change in changes {
        assert_eq!(two(change), [1, 1]);
    }
    assert_eq!(two(|_| {}), [2]);
}
