//! Faults that others shipped in merging, by row of the project's list of public reports: on these
//! inputs and on their kind the reference is right.

mod common;

use common::{Host, run};
use ferronic_oracle::lro::{Cause, Config, Lro, Profile, Unit};
use ferronic_oracle::order::{cut, same};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{NEEDS_CSUM, Offloads, Opinion, Outcome, opinion, transmit};

fn arrivals(segments: &[Segment]) -> Vec<Arrival> {
    let segments = segments.iter().enumerate();
    segments
        .map(|(i, segment)| Arrival {
            at: i as u64,
            queue: 0,
            frame: segment.bytes(),
        })
        .collect()
}

/// What is delivered; that it is what arrived is looked at.
fn merge(config: Config, segments: &[Segment]) -> Vec<Unit> {
    let host = Host {
        buffers: 1000,
        delay: 0,
    };
    let arrivals = arrivals(segments);
    let (units, _) = run(Lro::new(config), host, &arrivals);
    same(&arrivals, &cut(&units).expect("units are sound")).expect("the stream comes back");
    units
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
    for first in both(1440) {
        let segments = stream(first, &[1440, 1440, 77]);
        let units = merge(Config::default(), &segments);
        assert_eq!(sizes(&units), [4]);
        // As a bridge sends it: with the virtio header that it was received with.
        let sent = transmit(&units[0].header, &units[0].frame, Offloads::ALL);
        let wire: Vec<_> = segments.iter().map(Segment::bytes).collect();
        assert_eq!(sent, Outcome::Sent(wire));
    }
}

#[test]
fn bug_17_one_segment_is_never_marked_as_several() {
    for first in both(1440) {
        for unit in merge(Config::default(), &[first]) {
            assert_eq!((unit.header.gso_type, unit.header.gso_size), (0, 0));
            assert_eq!(unit.cause, Some(Cause::Stopped));
        }
    }
    // And gso_size is the first payload, not a mean (ixgbe).
    let units = merge(Config::default(), &stream(Segment::v4(7, 1000), &[1000, 1]));
    assert_eq!(units[0].header.gso_size, 1000);
}

#[test]
fn bug_18_sums_of_a_unit_are_those_of_its_own_length() {
    for first in both(1440) {
        let units = merge(Config::default(), &stream(first, &[1440]));
        let [unit] = &units[..] else {
            panic!("{} units", units.len());
        };
        assert_eq!(unit.header.flags, NEEDS_CSUM);
        // Completed as the header asks for, it is right to a parser that knows nothing of this.
        let whole = ferronic_oracle::Header {
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
    let config = Config {
        buffer: 2048,
        first_descriptor: 2048,
        ..Config::default()
    };
    for first in both(1440) {
        let units = merge(config.clone(), &stream(first, &[1440, 1440]));
        assert_eq!(sizes(&units), [3]);
        assert_eq!(units[0].header.num_buffers, 3);
    }
}

#[test]
fn bug_20_off_delivers_what_is_held_and_stays_off() {
    let segments = stream(Segment::v4(0, 100), &[100; 5]);
    let mut lro = Lro::new(Config::default());
    lro.post(0, 0, 100);
    for segment in &segments[..3] {
        lro.receive(1, 0, &segment.bytes());
    }
    assert_eq!(lro.take(), []);
    let off = Config {
        profile: Profile::Off,
        ..Config::default()
    };
    lro.configure(2, off);
    let units = lro.take();
    assert_eq!((sizes(&units), units[0].at), (vec![3], 2));
    for segment in &segments[3..] {
        lro.receive(3, 0, &segment.bytes());
        assert_eq!(lro.take()[0].frame, segment.bytes());
    }
    assert_eq!(lro.held(), 0);
}

#[test]
fn bug_23_length_never_passes_16_bits() {
    for first in both(1440) {
        let units = merge(Config::default(), &stream(first, &[1440; 100]));
        assert!(sizes(&units)[..2].iter().all(|segments| *segments == 45));
        for unit in units {
            assert!(unit.frame.len() - 14 <= 65_535);
        }
    }
    let stamped = Segment::v4(0, 1448).stamps(1, 1);
    let units = merge(Config::default(), &stream(stamped, &[1448; 99]));
    assert_eq!(sizes(&units), [45, 45, 10]);
}

#[test]
fn bug_25_change_of_the_hop_limit_does_not_reorder() {
    for first in both(100) {
        let mut segments = stream(first, &[100; 3]);
        for (segment, ttl) in segments.iter_mut().zip([64, 64, 63, 63]) {
            segment.ttl = ttl;
        }
        // `merge` looks at the order of the flow.
        assert_eq!(sizes(&merge(Config::default(), &segments)), [2, 2]);
    }
}

#[test]
fn bug_27_cwr_on_all_segments_is_kept_and_ends_with_the_last_of_them() {
    for first in both(100) {
        let mut segments = stream(first, &[100; 7]);
        for segment in &mut segments[2..5] {
            segment.flags |= flag::CWR | flag::AE;
        }
        assert_eq!(sizes(&merge(Config::default(), &segments)), [2, 1, 1, 1, 3]);
    }
}

#[test]
fn bug_28_payload_is_not_looked_at_and_equal_acknowledgements_are_not_asked_for_more() {
    // What looks like TCP and is something else inside: constant acknowledgement, next numbers.
    let mut segments = stream(Segment::v4(0, 100), &[100; 3]);
    segments.iter_mut().for_each(|s| s.ack = 0);
    let units = merge(Config::default(), &segments);
    assert_eq!(sizes(&units), [4]);
    segments[2].ack = 1;
    assert_eq!(sizes(&merge(Config::default(), &segments)), [2, 1, 1]);
}

#[test]
fn bug_29_psh_on_each_delivers_each_and_delays_none() {
    for first in both(100) {
        let mut segments = stream(first, &[100; 4]);
        segments.iter_mut().for_each(|s| s.flags |= flag::PSH);
        let units = merge(Config::default(), &segments);
        assert_eq!(sizes(&units), [1; 5]);
        for (i, unit) in units.iter().enumerate() {
            assert_eq!((unit.at, unit.cause), (i as u64, None));
        }
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
        merge(Config::default(), &segments)
    };
    assert_eq!(sizes(&with(|_, s| s.fragment = 0x6000)), [1; 4]);
    assert_eq!(sizes(&with(|_, s| s.fragment = 0)), [4]);
    // PSH of one that is not the last is not overwritten.
    let units = with(|i, s| s.flags |= if i == 1 { flag::PSH } else { 0 });
    assert_eq!(sizes(&units), [2, 2]);
    assert_eq!([units[0].frame[47] & 8, units[1].frame[47] & 8], [8, 0]);
    assert_eq!(sizes(&with(|i, s| s.ack = 9 - i as u32)), [1; 4]);
    // Padding makes no hole.
    let segments = stream(Segment::v4(0, 1), &[1; 3]);
    let mut padded = arrivals(&segments);
    padded.iter_mut().for_each(|a| a.frame.resize(60, 0xee));
    let host = Host {
        buffers: 100,
        delay: 0,
    };
    let (units, counters) = run(Lro::new(Config::default()), host, &padded);
    same(&padded, &cut(&units).expect("units are sound")).expect("the stream comes back");
    assert_eq!(counters.passed, 4);
}

#[test]
fn bug_31_vlan_ttl_class_identification_and_sizes_count() {
    let two = |change: fn(&mut Segment)| {
        let mut segments = stream(Segment::v4(0, 100), &[100]);
        change(&mut segments[1]);
        sizes(&merge(Config::default(), &segments))
    };
    let changes: [fn(&mut Segment); 6] = [
        |s| s.tags = vec![[0x81, 0, 0, 5]],
        |s| s.ttl = 1,
        |s| s.class = 4,
        |s| s.id += 1,
        |s| s.ack = 0,
        |s| {
            *s = Segment {
                seq: s.seq,
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
