//! The limits of merging: bytes, buffers, flows and times; and what is not of the usual shape.

#[path = "support/merging.rs"]
mod merging;

use std::time::Duration;

use ferronic::gro::{GroOptions, Verified};
use ferronic::spec::NetHeader;
use ferronic_oracle::segment::Segment;
use merging::{Delivered, Merger, stream};

#[test]
fn row_38_units_have_at_most_65535_bytes_of_ip() {
    for first in [Segment::v4(1, 2000), Segment::v6(1, 2000)] {
        let header = first.tcp() - 14 + 20;
        let mut all = vec![first.clone()];
        while header + all.len() * 2000 + 2000 <= 65_535 {
            all.push(all[all.len() - 1].next(2000));
        }
        let rest = 65_535 - header - all.len() * 2000;
        let last = all[all.len() - 1].clone();
        for (more, want) in [(rest, all.len() as u16 + 1), (rest + 1, all.len() as u16)] {
            let mut stream = all.clone();
            stream.push(last.next(more));
            let frames: Vec<_> = stream.iter().map(Segment::bytes).collect();
            let mut merger = Merger::new(GroOptions::default(), 64, 4096);
            for frame in &frames {
                merger.offer(frame, 0);
            }
            merger.end_of_burst(0);
            let out = merger.take();
            assert_eq!(out[0].segments, want);
            assert_eq!(
                out.iter().flat_map(Delivered::cut).collect::<Vec<_>>(),
                frames
            );
        }
        // All of one length.
        let mut merger = Merger::new(GroOptions::default(), 128, 4096);
        let mut segment = first;
        for _ in 0..100 {
            merger.offer(&segment.bytes(), 0);
            segment = segment.next(2000);
        }
        merger.end_of_burst(0);
        let counts: Vec<_> = merger.take().iter().map(|out| out.segments).collect();
        assert_eq!(counts, [32, 32, 32, 4]);
    }
}

#[test]
fn row_39_units_have_at_most_64_buffers() {
    let all = stream(&Segment::v4(1, 100), 130);
    let mut merger = Merger::new(GroOptions::default(), 256, 2048);
    for segment in &all {
        merger.offer(&segment.bytes(), 0);
    }
    merger.end_of_burst(0);
    let counts: Vec<_> = merger.take().iter().map(|out| out.segments).collect();
    assert_eq!(counts, [64, 64, 2]);
    assert_eq!(merger.gro.stats().full, 2);
    // Two buffers each.
    let mut merger = Merger::new(GroOptions::default(), 256, 128);
    for segment in all.iter().take(40) {
        merger.offer(&segment.bytes(), 0);
    }
    merger.end_of_burst(0);
    let counts: Vec<_> = merger.take().iter().map(|out| out.segments).collect();
    assert_eq!(counts, [32, 8]);
}

#[test]
fn row_40_more_flows_than_places_lose_nothing() {
    let flows: Vec<_> = (0..600u16)
        .map(|i| Segment {
            ports: [i, 80],
            ..Segment::v4(1, 100)
        })
        .collect();
    let mut merger = Merger::new(GroOptions::default(), 2000, 256);
    for flow in flows
        .iter()
        .cloned()
        .chain(flows.iter().map(|s| s.next(100)))
    {
        merger.offer(&flow.bytes(), 0);
    }
    merger.end_of_burst(0);
    let out = merger.take();
    assert!(merger.gro.stats().evicted > 300);
    for flow in &flows {
        let cut: Vec<_> = out
            .iter()
            .flat_map(Delivered::cut)
            .filter(|frame| frame[34..38] == flow.bytes()[34..38])
            .collect();
        assert_eq!(cut, [flow.bytes(), flow.next(100).bytes()]);
    }
}

#[test]
fn row_41_held_as_long_as_the_times_say_and_oldest_first() {
    let options = GroOptions {
        hold: Duration::from_nanos(1000),
        gap: Duration::from_nanos(100),
        ..GroOptions::default()
    };
    let mut merger = Merger::new(options, 64, 2048);
    let mut segment = Segment::v4(1, 100);
    let other = Segment {
        ports: [3, 3],
        ..Segment::v4(1, 100)
    };
    assert_eq!(merger.gro.deadline(), None);
    for i in 0..12 {
        merger.offer(&segment.bytes(), 90 * i);
        assert_eq!(merger.gro.deadline(), Some((90 * i + 100).min(1000)));
        merger.end_of_burst(90 * i);
        segment = segment.next(100);
        if i < 11 {
            assert!(merger.out.is_empty(), "held");
        }
    }
    // 990 is before the hold time ends, 1,000 is not.
    merger.end_of_burst(999);
    assert!(merger.out.is_empty());
    merger.offer(&other.bytes(), 999);
    merger.end_of_burst(1000);
    assert_eq!(merger.take()[0].segments, 12);
    merger.end_of_burst(1098);
    assert!(merger.out.is_empty());
    merger.end_of_burst(1099);
    assert_eq!(merger.take()[0].frame, other.bytes(), "the gap was over");
    merger.offer(&other.bytes(), 2000);
    merger.offer(&segment.bytes(), 2000);
    merger.flush();
    let out = merger.take();
    assert_eq!(
        [&out[0].frame, &out[1].frame],
        [&other.bytes(), &segment.bytes()]
    );
}

#[test]
fn held_buffers_are_bounded() {
    let options = GroOptions {
        hold: Duration::from_secs(1),
        ..GroOptions::default()
    };
    let mut merger = Merger::new(options, 64, 2048);
    for i in 0..200u16 {
        let flow = Segment {
            ports: [i, 80],
            ..Segment::v4(1, 100)
        };
        merger.offer(&flow.bytes(), 0);
        assert!(merger.free() >= 32, "half of the buffers are the card's");
    }
    assert_eq!(merger.gro.held(), 32);
    merger.flush();
    assert_eq!((merger.take().len(), merger.gro.held()), (200, 0));
    // One flow.
    for segment in stream(&Segment::v4(1, 100), 100) {
        merger.offer(&segment.bytes(), 0);
        assert!(merger.free() >= 32, "half of the buffers are the card's");
    }
    merger.flush();
    let counts: Vec<_> = merger.take().iter().map(|out| out.segments).collect();
    assert_eq!(counts, [33, 33, 33, 1]);
}

#[test]
fn options_are_equal_to_the_last_byte() {
    for first in [Segment::v4(1, 100), Segment::v6(1, 100)] {
        for words in 0..=10 {
            let first = Segment {
                options: vec![1; 4 * words],
                ..first.clone()
            };
            let mut all = stream(&first, 5);
            if let Some(last) = all[3].options.last_mut() {
                *last = 0;
            }
            let want: &[_] = if words == 0 { &[5] } else { &[3, 1, 1] };
            let mut merger = Merger::new(GroOptions::default(), 16, 2048);
            for segment in &all {
                merger.offer(&segment.bytes(), 0);
            }
            merger.end_of_burst(0);
            let counts: Vec<_> = merger.take().iter().map(|out| out.segments).collect();
            assert_eq!(counts, want, "{words}");
        }
    }
}

#[test]
fn segments_of_a_unit_may_lie_in_different_numbers_of_buffers() {
    for pieces in [[200, 2048, 2048], [2048, 200, 2048], [150, 200, 300]] {
        let mut segment = Segment::v4(1, 400);
        let mut frames = Vec::new();
        for _ in 0..12 {
            frames.push(segment.bytes());
            segment = segment.next(400);
        }
        let mut merger = Merger::new(GroOptions::default(), 64, 2048);
        for (i, frame) in frames.iter().enumerate() {
            merger.piece = pieces[i % 3];
            merger.offer(frame, 0);
        }
        merger.end_of_burst(0);
        assert_eq!((merger.free(), merger.gro.held()), (64, 0));
        let out = merger.take();
        assert_eq!((out.len(), out[0].segments), (1, 12), "{pieces:?}");
        assert!(out[0].cut() == frames, "{pieces:?}");
    }
}

#[test]
fn units_of_the_card_go_alone() {
    let first = Segment::v4(1, 100);
    let header = NetHeader {
        flags: 1,
        gso_type: 1,
        gso_size: 100.into(),
        ..NetHeader::default()
    };
    // Of another length, and just what would continue the flow.
    for (verified, unit) in [false, true]
        .into_iter()
        .flat_map(|verified| [300, 100].map(|length| (verified, first.next(length))))
    {
        let mut merger = Merger::new(GroOptions::default(), 8, 2048);
        merger.offer(&first.bytes(), 0);
        merger.offer_with(header, verified, &unit.bytes(), 0);
        let out = merger.take();
        assert_eq!(out[0].frame, first.bytes());
        assert_eq!(
            (out[1].frame.clone(), out[1].header.gso_type),
            (unit.bytes(), 1)
        );
        assert_eq!(out[1].verified, Verified::Device);
    }
}

#[test]
fn first_buffer_without_all_headers_goes_alone() {
    // 12 bytes of virtio header and 54 of others fit exactly, or not quite.
    for (size, want) in [(66, &[3][..]), (65, &[1, 1, 1])] {
        let mut merger = Merger::new(GroOptions::default(), 64, size);
        let all = stream(&Segment::v4(1, 100), 3);
        for segment in &all {
            merger.offer(&segment.bytes(), 0);
        }
        merger.end_of_burst(0);
        let out = merger.take();
        assert_eq!(out.iter().map(|o| o.segments).collect::<Vec<_>>(), want);
        let frames: Vec<_> = all.iter().map(Segment::bytes).collect();
        assert_eq!(
            out.iter().flat_map(Delivered::cut).collect::<Vec<_>>(),
            frames
        );
    }
}

#[test]
fn header_sums_and_identifications_that_wrap_are_foreseen() {
    // The sum counts down as the identification counts up.
    let first = Segment::v4(1, 100);
    let near_zero = (0..=u16::MAX)
        .map(|id| Segment {
            id,
            ..first.clone()
        })
        .find(|segment| segment.bytes()[24..26] == [0, 2])
        .expect("some identification makes any sum");
    let near_wrap = Segment {
        id: 0xfffd,
        ..first
    };
    for first in [near_zero, near_wrap] {
        let frames: Vec<_> = stream(&first, 8).iter().map(Segment::bytes).collect();
        let mut merger = Merger::new(GroOptions::default(), 8, 2048);
        for frame in &frames {
            merger.offer(frame, 0);
        }
        merger.end_of_burst(0);
        let out = merger.take();
        assert_eq!((out.len(), out[0].cut()), (1, frames));
    }
}

#[test]
fn header_sum_is_right_where_the_identification_wraps() {
    // One more in the identification is one less in the sum, but not there: a wrong sum that counts
    // on is no reason to merge, whatever the card says.
    let first = Segment {
        id: 0xfffd,
        ..Segment::v4(1, 100)
    };
    let mut frames: Vec<_> = stream(&first, 4).iter().map(Segment::bytes).collect();
    let sum = u16::from_be_bytes([frames[2][24], frames[2][25]]);
    frames[3][24..26].copy_from_slice(&sum.wrapping_sub(1).to_be_bytes());
    let mut merger = Merger::new(GroOptions::default(), 8, 2048);
    for frame in &frames {
        merger.offer_with(NetHeader::default(), true, frame, 0);
    }
    merger.end_of_burst(0);
    let out = merger.take();
    let segments: Vec<_> = out.iter().map(|out| out.segments).collect();
    assert_eq!(segments, [3, 1]);
    assert_eq!(out[1].frame, frames[3]);
}

#[test]
fn short_frames_are_foreseen_within_their_buffers() {
    // Shorter than what is copied to be compared; buffers that hold just that much, and less.
    for first in [Segment::v4(1, 7), Segment::v6(1, 7)] {
        let mut segments = vec![first];
        for _ in 0..9 {
            segments.push(segments[segments.len() - 1].next(7));
        }
        let frames: Vec<_> = segments.iter().map(Segment::bytes).collect();
        for size in [108, 12 + frames[0].len()] {
            let mut merger = Merger::new(GroOptions::default(), 16, size);
            for frame in &frames {
                merger.offer(frame, 0);
            }
            merger.end_of_burst(0);
            let out = merger.take();
            assert_eq!((out.len(), out[0].cut()), (1, frames.clone()), "{size}");
        }
    }
}
