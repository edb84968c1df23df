//! The rules of merging, row by row of the rule table, with the least vectors that show them.

#[path = "support/merging.rs"]
mod merging;

use ferronic::gro::{GroOptions, Verified};
use ferronic::spec::NetHeader;
use ferronic_oracle::segment::{Segment, flag, with_sum_of_ones};
use merging::{Delivered, Merger, stream};

/// Merges a burst in every way: sums verified by the card or here, frames in one buffer or several.
/// What comes out is cut back into what went in, in order; returns it.
fn burst(frames: &[Vec<u8>]) -> Vec<Delivered> {
    let ways = [(2048, true), (2048, false), (256, true), (129, false)];
    let mut all = ways.into_iter().map(|(size, card_verifies)| {
        let mut merger = Merger::new(GroOptions::default(), 1024, size);
        merger.card_verifies = card_verifies;
        for frame in frames {
            merger.offer(frame, 0);
        }
        merger.end_of_burst(0);
        assert_eq!(merger.free(), 1024, "every buffer came back");
        let out = merger.take();
        let cut: Vec<_> = out.iter().flat_map(Delivered::cut).collect();
        assert!(cut == frames, "{size} {card_verifies}: {:?}", out.len());
        out
    });
    let first = all.next().expect("there are several ways");
    for other in all {
        let frames = |out: &[Delivered]| out.iter().map(|d| d.frame.clone()).collect::<Vec<_>>();
        assert!(frames(&other) == frames(&first), "merged otherwise");
    }
    first
}

/// How many segments each thing delivered has.
fn counts(segments: &[Segment]) -> Vec<u16> {
    let frames: Vec<_> = segments.iter().map(Segment::bytes).collect();
    counts_of(&frames)
}

fn counts_of(frames: &[Vec<u8>]) -> Vec<u16> {
    burst(frames).iter().map(|out| out.segments).collect()
}

/// Both versions of IP, with and without time stamps and tags.
fn firsts() -> Vec<Segment> {
    let mut all = Vec::new();
    for plain in [Segment::v4(0xffff_ffce, 100), Segment::v6(7, 100)] {
        for tags in 0..3 {
            let tagged = Segment {
                tags: vec![[0x81, 0, 0x20, 7]; tags],
                ..plain.clone()
            };
            all.push(tagged.clone().stamps(5, 0));
            all.push(tagged);
        }
    }
    all
}

/// Two segments, of which the second is changed, are not merged; a third like it is.
fn parts(change: impl Fn(&mut Segment)) {
    for first in firsts() {
        let mut second = first.next(100);
        change(&mut second);
        let third = second.next(100);
        assert_eq!(counts(&[first, second, third]), [1, 2]);
    }
}

/// The second of three segments, changed, goes alone: what was held first.
fn alone(change: impl Fn(&mut Segment)) {
    for first in firsts() {
        let mut second = first.next(100);
        change(&mut second);
        let third = second.next(100);
        let third = Segment {
            flags: first.flags,
            ..third
        };
        assert_eq!(counts(&[first, second, third]), [1, 1, 1]);
    }
}

#[test]
fn segments_of_every_shape_are_merged() {
    for first in firsts() {
        let segments = stream(&first, 30);
        let out = burst(&segments.iter().map(Segment::bytes).collect::<Vec<_>>());
        assert_eq!(out.len(), 1);
        assert_eq!((out[0].segments, out[0].verified), (30, Verified::Unit));
    }
}

#[test]
fn header_of_a_unit_is_what_a_card_would_write() {
    let segments = stream(&Segment::v4(1, 100).stamps(1, 1), 3);
    let out = burst(&segments.iter().map(Segment::bytes).collect::<Vec<_>>());
    let want = NetHeader {
        flags: 1,
        gso_type: 1,
        hdr_len: 66.into(),
        gso_size: 100.into(),
        csum_start: 34.into(),
        csum_offset: 16.into(),
        num_buffers: 3.into(),
    };
    assert_eq!(out[0].header, want);
    let six = stream(&Segment::v6(1, 100), 2);
    let out = burst(&six.iter().map(Segment::bytes).collect::<Vec<_>>());
    assert_eq!(
        (out[0].header.gso_type, out[0].header.csum_start),
        (4, 54.into())
    );
}

#[test]
fn lone_segment_is_delivered_as_it_came() {
    let frame = Segment::v4(1, 100).bytes();
    let out = burst(std::slice::from_ref(&frame));
    assert_eq!(
        (out.len(), out[0].header.flags, out[0].header.gso_type),
        (1, 2, 0)
    );
    assert_eq!((&out[0].frame, out[0].verified), (&frame, Verified::Device));
}

#[test]
fn row_1_other_frames_pass_and_end_nothing() {
    let [a, b] = [0, 1].map(|i| stream(&Segment::v4(1, 100), 2)[i].bytes());
    let mut arp = vec![0xff; 12];
    arp.extend([0x08, 0x06]);
    arp.resize(60, 0);
    let out = {
        let mut merger = Merger::new(GroOptions::default(), 8, 2048);
        for frame in [&a, &arp, &b] {
            merger.offer(frame, 0);
        }
        merger.end_of_burst(0);
        merger.take()
    };
    assert_eq!(out.iter().map(|o| o.segments).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(out[0].frame, arp);
    assert_eq!(out[1].cut(), [a, b]);
}

#[test]
fn rows_2_3_9_11_end_all_flows_between_the_addresses() {
    // Another flow between the same hosts is concerned, too; one of another host is not.
    for first in [Segment::v4(1, 100), Segment::v6(1, 100)] {
        let second = first.next(100);
        let mut odd = Vec::new();
        if first.v6 {
            for kind in [0, 60] {
                odd.push(
                    Segment {
                        extension: Some((kind, vec![0, 1, 4, 0, 0, 0, 0])),
                        ..second.clone()
                    }
                    .bytes(),
                );
            }
            for kind in [43, 44, 51, 135] {
                let mut frame = second.bytes();
                frame[20] = kind;
                odd.push(frame);
            }
        } else {
            odd.push(
                Segment {
                    ip_options: vec![1; 4],
                    ..second.clone()
                }
                .bytes(),
            );
            for fragment in [0x2000, 0x6000, 1, 0x4001] {
                odd.push(
                    Segment {
                        fragment,
                        ..second.clone()
                    }
                    .bytes(),
                );
            }
        }
        // Lengths: more than there is, a TCP header of 16 bytes, one that does not end.
        let mut long = second.bytes();
        long.pop();
        odd.push(long);
        for offset in [0x40, 0xf0] {
            let mut frame = Segment {
                payload: vec![0; 4],
                ..second.clone()
            }
            .bytes();
            let at = second.tcp() + 12;
            frame[at] = offset;
            odd.push(frame);
        }
        let sister = Segment {
            ports: [1, 2],
            ..first.clone()
        };
        let stranger = Segment {
            hosts: [9, 2],
            ..first.clone()
        };
        for odd in odd {
            let mut merger = Merger::new(GroOptions::default(), 8, 2048);
            for frame in [&first, &sister, &stranger].map(Segment::bytes) {
                merger.offer(&frame, 0);
            }
            merger.offer(&odd, 0);
            let now: Vec<_> = merger.take().into_iter().map(|out| out.frame).collect();
            assert_eq!(
                now,
                [first.bytes(), sister.bytes(), odd.clone()],
                "{odd:02x?}"
            );
            merger.end_of_burst(0);
            assert_eq!(merger.take()[0].frame, stranger.bytes());
        }
    }
}

#[test]
fn rows_4_to_8_fields_of_ip_are_equal() {
    let v4 = |change: fn(&mut Segment), want: &[u16]| {
        let first = Segment::v4(1, 100);
        let mut second = first.next(100);
        change(&mut second);
        let third = second.next(100);
        assert_eq!(counts(&[first, second, third]), want);
    };
    v4(|s| s.fragment = 0, &[1, 2]);
    v4(|s| s.fragment = 0xc000, &[1, 2]);
    parts(|s| s.ttl = 63);
    parts(|s| s.class = 3);
    let first = Segment::v6(1, 100);
    let second = Segment {
        label: 0x10001,
        ..first.next(100)
    };
    assert_eq!(counts(&[first, second.clone(), second.next(9)]), [1, 2]);
    // CE that is equal merges.
    let all = stream(
        &Segment {
            class: 3,
            ..Segment::v4(1, 100)
        },
        3,
    );
    assert_eq!(counts(&all), [3]);
}

#[test]
fn row_5_identifications_count_up_by_one() {
    for (ids, want) in [
        (&[8, 9][..], &[2][..]),
        (&[8, 8], &[1, 1]),
        (&[8, 9, 9], &[2, 1]),
        (&[8, 8, 9], &[1, 2]),
        (&[0xffff, 0], &[2]),
        (&[8, 10], &[1, 1]),
        (&[9, 8], &[1, 1]),
    ] {
        for fragment in [0x4000, 0] {
            let mut all = stream(&Segment::v4(1, 100), ids.len());
            for (segment, id) in all.iter_mut().zip(ids) {
                (segment.id, segment.fragment) = (*id, fragment);
            }
            assert_eq!(counts(&all), want, "{ids:?}");
        }
    }
}

#[test]
fn row_10_padded_frames_go_alone_with_their_padding() {
    for first in [Segment::v4(1, 100), Segment::v6(1, 100)] {
        let mut padded = first.next(1).bytes();
        padded.resize(padded.len() + 5, 0);
        let third = first.next(1).next(100).bytes();
        assert_eq!(counts_of(&[first.bytes(), padded, third]), [1, 1, 1]);
    }
}

#[test]
fn row_12_wrong_header_sum_ends_everything() {
    let first = Segment::v4(1, 100);
    let other = Segment {
        hosts: [7, 8],
        ..Segment::v6(1, 100)
    };
    let mut wrong = first.next(100).bytes();
    wrong[22] ^= 1;
    let frames = [first.bytes(), other.bytes(), wrong.clone()];
    let mut merger = Merger::new(GroOptions::default(), 8, 2048);
    for frame in &frames {
        merger.offer(frame, 0);
    }
    let now: Vec<_> = merger.take().into_iter().map(|out| out.frame).collect();
    assert_eq!(now, frames);
}

#[test]
fn rows_13_and_14_unverified_sums_are_verified_and_wrong_ones_go_alone() {
    for first in firsts() {
        let second = first.next(100);
        let third = second.next(100);
        let mut wrong = second.bytes();
        let at = second.tcp() + 16;
        wrong[at] ^= 1;
        assert_eq!(counts_of(&[first.bytes(), wrong, third.bytes()]), [1, 1, 1]);
        let mut merger = Merger::new(GroOptions::default(), 8, 2048);
        merger.card_verifies = false;
        merger.offer(&first.bytes(), 0);
        merger.end_of_burst(0);
        assert_eq!(merger.take()[0].verified, Verified::Here);
        assert_eq!(merger.gro.stats().verified, 1);
    }
}

#[test]
fn row_15_sums_that_no_sender_writes_go_alone() {
    for first in firsts() {
        let second = first.next(100);
        let third = second.next(100);
        let ones = with_sum_of_ones(second);
        assert_eq!(counts_of(&[first.bytes(), ones, third.bytes()]), [1, 1, 1]);
    }
    // The IPv4 header's, too.
    let first = Segment::v4(1, 100);
    let second = first.next(100);
    let mut ones = second.clone();
    ones.id = 0;
    let rest = ones.bytes()[24..26].to_vec();
    ones.id = u16::from_be_bytes([rest[0], rest[1]]);
    let mut frame = ones.bytes();
    assert_eq!(frame[24..26], [0, 0]);
    frame[24..26].fill(0xff);
    // As held, and as what would be merged.
    let before = Segment {
        id: ones.id.wrapping_sub(1),
        ..first
    };
    assert_eq!(
        counts_of(&[before.bytes(), frame, ones.next(100).bytes()]),
        [1, 1, 1]
    );
}

#[test]
fn row_16_mac_addresses_are_equal() {
    parts(|s| s.macs[11] = 9);
    parts(|s| s.macs[0] = 0x62);
}

#[test]
fn row_17_vlans_are_kept_apart() {
    for v6 in [false, true] {
        let tagged = |tags: &[[u8; 4]]| Segment {
            v6,
            tags: tags.to_vec(),
            ..Segment::v4(1, 100)
        };
        let ten = [0x81, 0, 0, 10];
        let flows = [
            tagged(&[]),
            tagged(&[ten]),
            tagged(&[[0x81, 0, 0, 20]]),
            tagged(&[[0x88, 0xa8, 0, 10]]),
            tagged(&[ten, [0x81, 0, 0, 1]]),
            tagged(&[ten, [0x81, 0, 0, 2]]),
        ];
        let mut merger = Merger::new(GroOptions::default(), 32, 2048);
        for flow in flows
            .iter()
            .cloned()
            .chain(flows.iter().map(|s| s.next(100)))
        {
            merger.offer(&flow.bytes(), 0);
        }
        merger.end_of_burst(0);
        let out = merger.take();
        assert_eq!(out.len(), flows.len());
        for (out, flow) in out.iter().zip(&flows) {
            assert_eq!(out.cut(), [flow.bytes(), flow.next(100).bytes()]);
        }
    }
    // A third tag is not looked through.
    let three = Segment {
        tags: vec![[0x81, 0, 0, 1]; 3],
        ..Segment::v4(1, 100)
    };
    assert_eq!(counts(&stream(&three, 2)), [1, 1]);
}

#[test]
fn row_18_psh_ends_the_unit_with_its_segment() {
    for first in firsts() {
        let mut all = stream(&first, 5);
        all[2].flags |= flag::PSH;
        let out = burst(&all.iter().map(Segment::bytes).collect::<Vec<_>>());
        assert_eq!(out.iter().map(|o| o.segments).collect::<Vec<_>>(), [3, 2]);
        let at = first.tcp() + 13;
        assert_eq!([out[0].frame[at] & 8, out[1].frame[at] & 8], [8, 0]);
        // Alone, it is not held.
        let mut merger = Merger::new(GroOptions::default(), 8, 2048);
        merger.offer(&all[2].bytes(), 0);
        assert_eq!(merger.take().len(), 1);
    }
}

#[test]
fn rows_19_to_21_23_29_other_flags_and_no_payload_go_alone() {
    for flags in [flag::FIN, flag::SYN, flag::RST, flag::URG, flag::CWR] {
        alone(|s| s.flags |= flags);
    }
    alone(|s| s.flags = 0);
    alone(|s| s.flags = flag::PSH);
    for first in firsts() {
        let ack = first.next(0);
        assert_eq!(counts(&[ack.clone(), ack.clone(), ack]), [1, 1, 1]);
        // The selftest's: data, SYN without payload, data.
        let mut all = stream(&first, 5);
        all[2].payload.clear();
        all[2].flags |= flag::SYN;
        assert_eq!(counts(&all), [2, 1, 2]);
    }
}

#[test]
fn rows_22_24_to_28_fields_of_tcp_are_equal() {
    parts(|s| s.flags |= flag::ECE);
    parts(|s| s.flags |= flag::AE);
    parts(|s| s.window = 1001);
    parts(|s| s.urgent = 5);
    parts(|s| s.ack = 101);
    parts(|s| s.ack = 0);
    for first in firsts() {
        assert_eq!(counts(&stream(&first.flags(flag::ACK | flag::ECE), 3)), [3]);
    }
}

#[test]
fn rows_30_and_31_only_the_next_byte_continues() {
    parts(|s| s.seq = s.seq.wrapping_add(1));
    parts(|s| s.seq = s.seq.wrapping_sub(1));
    parts(|s| s.seq = s.seq.wrapping_sub(100));
    parts(|s| s.seq = s.seq.wrapping_add(1 << 31));
}

#[test]
fn rows_32_to_35_options_are_equal_byte_for_byte() {
    for first in [Segment::v4(1, 100), Segment::v6(1, 100)] {
        let mut all = stream(&first, 5);
        let orders = [
            [1, 1, 8, 10],
            [1, 1, 8, 10],
            [1, 1, 8, 10],
            [1, 8, 10, 1],
            [8, 10, 1, 1],
        ];
        let stamps = [0, 0, 100, 100, 100];
        for ((segment, order), stamp) in all.iter_mut().zip(orders).zip(stamps) {
            *segment = segment.clone().stamps(stamp, 7);
            segment.options[..4].copy_from_slice(&order);
        }
        assert_eq!(counts(&all), [2, 1, 1, 1]);
        let stamped = first.clone().stamps(5, 1);
        let plain = Segment {
            options: Vec::new(),
            ..stamped.next(100)
        };
        let again = plain.next(100).stamps(5, 1);
        assert_eq!(
            counts(&[stamped, plain, again.clone(), again.next(100)]),
            [1, 1, 2]
        );
        let full = Segment {
            options: (0..40).collect(),
            ..first
        };
        assert_eq!(counts(&stream(&full, 3)), [3]);
    }
}

#[test]
fn rows_36_and_37_a_shorter_segment_ends_and_a_longer_one_begins() {
    for first in firsts() {
        let short = first.next(50);
        assert_eq!(
            counts(&[first.clone(), short.clone(), short.next(50)]),
            [2, 1]
        );
        let small = Segment {
            payload: first.payload[..50].to_vec(),
            ..first
        };
        assert_eq!(counts(&[small.clone(), small.next(100)]), [1, 1]);
    }
}
