//! What the relaxed profile changes, and that it changes nothing else.

mod common;

use std::collections::BTreeMap;

use common::{Host, run, seeds};
use ferronic_oracle::lro::{Config, Lro, Profile, Unit};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::stream::Traffic;
use ferronic_oracle::vectors::{Arrival, all};
use ferronic_oracle::{parse, resegment};

/// Rows that it changes; 18, 38 and others differ where a smaller segment no longer ends a unit.
const CHANGED: [u8; 6] = [6, 25, 27, 33, 36, 37];

const HOST: Host = Host {
    buffers: 10_000,
    delay: 0,
};

fn relaxed() -> Config {
    Config {
        profile: Profile::Relaxed,
        ..Config::default()
    }
}

fn merge(segments: &[Segment]) -> Vec<Unit> {
    let arrivals: Vec<Arrival> = segments
        .iter()
        .enumerate()
        .map(|(i, segment)| Arrival {
            at: i as u64,
            queue: 0,
            frame: segment.bytes(),
        })
        .collect();
    let (units, _) = run(Lro::new(relaxed()), HOST, &arrivals);
    units
}

/// Three segments of 100 bytes, or of these lengths, by both versions of IP.
fn three(lengths: [usize; 3], change: impl Fn(usize, &mut Segment)) -> [Vec<Segment>; 2] {
    [Segment::v4(9, lengths[0]), Segment::v6(9, lengths[0])].map(|first| {
        let mut segments = vec![first];
        for length in &lengths[1..] {
            segments.push(segments[segments.len() - 1].next(*length));
        }
        segments
            .iter_mut()
            .enumerate()
            .for_each(|(i, s)| change(i, s));
        segments
    })
}

fn word(frame: &[u8], at: usize) -> u32 {
    frame[at..at + 4]
        .iter()
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// The one unit, where its TCP header is, and that it is sound.
#[track_caller]
fn one(segments: &[Segment]) -> (Unit, usize) {
    let units = merge(segments);
    let [unit] = &units[..] else {
        panic!("{} units", units.len());
    };
    assert_eq!(unit.segments, segments.len());
    resegment(&unit.header, &unit.frame).expect("the unit is sound");
    (unit.clone(), segments[0].tcp())
}

#[test]
fn relaxed_keeps_least_ttl_last_window_and_last_acknowledgement() {
    for segments in three([100; 3], |i, s| s.ttl = [9, 7, 8][i]) {
        let (unit, tcp) = one(&segments);
        let ttl = if segments[0].v6 { tcp - 33 } else { tcp - 12 };
        assert_eq!(unit.frame[ttl], 7);
    }
    for segments in three([100; 3], |i, s| s.window = [10, 30, 20][i]) {
        let (unit, tcp) = one(&segments);
        assert_eq!(word(&unit.frame, tcp + 14) >> 16, 20);
    }
    for segments in three([100; 3], |i, s| s.ack = [0xffff_ffff, 0, 5][i]) {
        let (unit, tcp) = one(&segments);
        assert_eq!(word(&unit.frame, tcp + 8), 5);
    }
    for segments in three([100; 3], |i, s| s.ack = [5, 9, 8][i]) {
        assert_eq!(merge(&segments).len(), 2);
    }
}

#[test]
fn relaxed_keeps_first_time_stamp_and_last_echo() {
    let stamps = |values: [u32; 3]| {
        three([100; 3], move |i, s| {
            *s = s.clone().stamps(values[i], 50 + i as u32)
        })
    };
    for segments in stamps([0xffff_fffe, 1, 1]) {
        let (unit, tcp) = one(&segments);
        assert_eq!(word(&unit.frame, tcp + 24), 0xffff_fffe);
        assert_eq!(word(&unit.frame, tcp + 28), 52);
    }
    // Not before the last, though after the first.
    for segments in stamps([5, 9, 8]) {
        assert_eq!(merge(&segments).len(), 2);
    }
    // Nor if all bytes are those of the first.
    for segments in three([100; 3], |i, s| *s = s.clone().stamps([5, 9, 5][i], 50)) {
        assert_eq!(merge(&segments).len(), 2);
    }
    // Other layouts are compared as they are.
    for mut segments in stamps([5, 6, 7]) {
        segments.iter_mut().for_each(|s| s.options.rotate_left(1));
        assert_eq!(merge(&segments).len(), 3);
    }
}

#[test]
fn relaxed_takes_any_size_and_tells_the_largest() {
    for segments in three([100, 50, 120], |_, _| {}) {
        let (unit, _) = one(&segments);
        assert_eq!(unit.header.gso_size, 120);
    }
    for segments in three([100, 50, 120], |i, s| {
        s.flags |= if i == 1 { flag::PSH } else { 0 }
    }) {
        assert_eq!(merge(&segments).len(), 2);
    }
}

#[test]
fn relaxed_is_strict_in_all_other_rules() {
    let mut alike = 0;
    for mut vector in all() {
        if CHANGED.contains(&vector.rule) || vector.config.profile != Profile::Strict {
            continue;
        }
        let strict = vector.run();
        vector.config.profile = Profile::Relaxed;
        let relaxed = vector.run();
        let count = |units: &[Unit]| units.iter().map(|u| u.segments).collect::<Vec<_>>();
        // Rows whose smallest stream ends with a smaller segment close one step later.
        if !vector
            .want
            .iter()
            .any(|(_, cause)| *cause == Some(ferronic_oracle::lro::Cause::Smaller))
        {
            assert_eq!(
                count(&strict),
                count(&relaxed),
                "rule {}, {}",
                vector.rule,
                vector.what
            );
            alike += 1;
        }
    }
    assert!(alike > 150, "only {alike} vectors");
}

/// Bytes of each flow, in the order of delivery. A smaller time to live or another acknowledgement
/// is not a change of them.
fn bytes<'a>(frames: impl Iterator<Item = &'a [u8]>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut flows: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for frame in frames {
        if let Some(packet) = parse(frame) {
            let addresses = packet.ip + if packet.v6 { 8 } else { 12 };
            let key = [
                &frame[12..packet.ip],
                &frame[addresses..packet.transport + 4],
            ]
            .concat();
            flows
                .entry(key)
                .or_default()
                .extend(&frame[packet.payload..]);
        }
    }
    flows
}

#[test]
fn relaxed_loses_no_byte_of_random_streams() {
    for seed in seeds(4) {
        let mut traffic = Traffic::new(seed, 8, 1, 20_000);
        let arrivals: Vec<_> = (0..2500).map(|_| traffic.arrival()).collect();
        let (units, counters) = run(Lro::new(relaxed()), HOST, &arrivals);
        for unit in &units {
            resegment(&unit.header, &unit.frame).expect("units are sound");
        }
        let came = bytes(arrivals.iter().map(|a| &a.frame[..]));
        let went = bytes(units.iter().map(|u| &u.frame[..]));
        assert_eq!(came, went, "seed {seed}");
        let (_, strict) = run(Lro::new(Config::default()), HOST, &arrivals);
        assert!(counters.merged > strict.merged, "seed {seed}");
    }
}
