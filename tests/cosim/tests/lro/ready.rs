//! The cases of Linux's self-test of merging (tools/testing/selftests/net/gro.c) through the whole
//! card: which payloads are delivered. Order and headers are compared with the model's.

use ferronic_oracle::lro::Unit;
use ferronic_oracle::parse;
use ferronic_oracle::segment::{Segment, flag};
use ferronic_sim::model::WIDTHS;

use crate::bench::Bench;

/// Bytes of payload of each unit.
fn payloads(frames: Vec<Vec<u8>>) -> Vec<usize> {
    let runs = WIDTHS.iter().map(|data_w| {
        let bench = Bench::new(format!("{data_w} bits"), *data_w, 0);
        sizes(&bench.compare(frames.clone()))
    });
    let runs: Vec<_> = runs.collect();
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    runs[0].clone()
}

fn sizes(units: &[Unit]) -> Vec<usize> {
    let payload = |frame: &[u8]| {
        // The length of the IP packet tells what is padding.
        parse(frame).map_or(frame.len(), |packet| {
            let half = |at| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
            let end = match packet.v6 {
                true => packet.ip + 40 + half(packet.ip + 4),
                false => packet.ip + half(packet.ip + 2),
            };
            end - packet.payload
        })
    };
    units.iter().map(|unit| payload(&unit.frame)).collect()
}

/// By IPv4 and IPv6: a first segment of this length, these behind it, each changed.
fn both(lengths: &[usize], change: impl Fn(usize, &mut Segment)) -> [Vec<usize>; 2] {
    [Segment::v4(1, lengths[0]), Segment::v6(1, lengths[0])].map(|first| {
        let mut plain = first;
        let mut frames = Vec::new();
        for (i, length) in lengths.iter().enumerate() {
            if i > 0 {
                plain = plain.next(*length);
            }
            let mut segment = plain.clone();
            change(i, &mut segment);
            frames.push(segment.bytes());
        }
        payloads(frames)
    })
}

#[track_caller]
fn expect(lengths: &[usize], change: impl Fn(usize, &mut Segment), wanted: &[usize]) {
    for found in both(lengths, change) {
        assert_eq!(found, wanted);
    }
}

#[test]
fn ready_data_of_equal_smaller_and_larger_size() {
    expect(&[100, 100], |_, _| {}, &[200]);
    expect(&[100, 50], |_, _| {}, &[150]);
    expect(&[50, 100], |_, _| {}, &[50, 100]);
}

#[test]
fn ready_acks_are_not_merged() {
    expect(&[0, 0, 0], |_, _| {}, &[0, 0, 0]);
}

#[test]
fn ready_flags() {
    let third = |change: fn(&mut Segment)| {
        move |i: usize, s: &mut Segment| {
            if i == 2 {
                change(s);
            }
        }
    };
    expect(&[100; 5], third(|s| s.flags |= flag::PSH), &[300, 200]);
    for bits in [flag::SYN, flag::RST | flag::ACK, flag::URG | flag::ACK] {
        let set = move |i: usize, s: &mut Segment| {
            if i == 2 {
                s.flags = bits;
            }
        };
        expect(&[100, 100, 0, 100, 100], set, &[200, 0, 200]);
    }
}

#[test]
fn ready_sum_and_sequence() {
    let mut frames = [Segment::v4(1, 100), Segment::v4(1, 100).next(100)];
    let mut bad: Vec<_> = frames.iter().map(Segment::bytes).collect();
    bad[1][51] = bad[1][51].wrapping_sub(1);
    assert_eq!(payloads(bad), [100, 100]);
    frames[1].seq += 1;
    assert_eq!(
        payloads(frames.iter().map(Segment::bytes).collect()),
        [100, 100]
    );
    let hole = |i: usize, s: &mut Segment| s.seq += i as u32;
    expect(&[100, 100], hole, &[100, 100]);
}

#[test]
fn ready_time_stamps_and_options() {
    // 0, 0, 100, and 100 with its NOPs elsewhere, twice.
    let stamps = |i: usize, s: &mut Segment| {
        *s = s.clone().stamps(if i < 2 { 0 } else { 100 }, 0);
        s.options.rotate_left(i.saturating_sub(2));
    };
    expect(&[100; 5], stamps, &[200, 100, 100, 100]);
    let other = |i: usize, s: &mut Segment| {
        if i == 2 {
            s.options = vec![2, 4, 1, 0];
        } else {
            *s = s.clone().stamps(0, 0);
        }
    };
    expect(&[100; 3], other, &[200, 100]);
}

#[test]
fn ready_headers_of_ip() {
    expect(&[100, 100], |i, s| s.class = i as u8, &[100, 100]);
    expect(&[100, 100], |i, s| s.class = 0x10 * i as u8, &[100, 100]);
    expect(&[100, 100], |i, s| s.ttl = 8 - i as u8, &[100, 100]);
    let v4 = |change: fn(usize, &mut Segment), lengths: &[usize]| {
        let [v4, _] = both(lengths, change);
        v4
    };
    let option = |i: usize, s: &mut Segment| {
        if i == 1 {
            s.ip_options = vec![1, 1, 1, 0];
        }
    };
    let fragment = |i: usize, s: &mut Segment| {
        if i == 1 {
            s.fragment = 0x2000;
        }
    };
    assert_eq!(v4(option, &[100; 3]), [100, 100, 100]);
    // The parser takes no fragment, so its bytes are counted.
    assert_eq!(v4(fragment, &[100; 3]), [100, 154, 100]);
    let v6 = |change: fn(usize, &mut Segment), lengths: &[usize]| {
        let [_, v6] = both(lengths, change);
        v6
    };
    let third = |i: usize, s: &mut Segment| {
        if i == 2 {
            s.extension = Some((44, vec![0, 0, 0, 0, 0, 0, 1]));
        }
    };
    assert_eq!(v6(third, &[100; 4]), [200, 14 + 40 + 8 + 120, 100]);
    let same = |_: usize, s: &mut Segment| s.extension = Some((0, vec![0, 1, 4, 0, 0, 0, 0]));
    let other = |i: usize, s: &mut Segment| {
        s.extension = Some((0, vec![0, 1, 4, 0, 0, 0, i as u8]));
    };
    assert_eq!(v6(same, &[100, 100]), [100, 100]);
    assert_eq!(v6(other, &[100, 100]), [100, 100]);
}

#[test]
fn ready_identifications() {
    for df in [0x4000, 0] {
        let ids = |ids: &'static [u16]| {
            let [v4, _] = both(&vec![100; ids.len()], |i, s| {
                (s.id, s.fragment) = (ids[i], df)
            });
            v4
        };
        assert_eq!(ids(&[8, 9]), [200]);
        assert_eq!(ids(&[8, 8]), [100, 100]);
        assert_eq!(ids(&[8, 9, 9]), [200, 100]);
        assert_eq!(ids(&[8, 8, 9]), [100, 200]);
        assert_eq!(ids(&[65535, 0]), [200]);
    }
}

#[test]
fn ready_largest_packets() {
    for (v6, headers) in [(false, 40), (true, 60)] {
        let size = 1500 - headers;
        let most = 65_535 - headers;
        let rest = most % size;
        let full = most / size;
        let large = |ends: &[usize]| {
            let lengths = [&vec![size; full][..], ends].concat();
            both(&lengths, |_, _| {})[usize::from(v6)].clone()
        };
        assert_eq!(large(&[rest]), [most]);
        assert_eq!(large(&[rest, rest]), [most, rest]);
        // The remainder is too large by one, so it begins a unit of its own.
        assert_eq!(large(&[rest + 1]), [most - rest, rest + 1]);
        assert_eq!(large(&[rest + 1, size]), [most - rest, rest + 1, size]);
    }
}
