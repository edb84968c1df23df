//! Rows 38 to 43: limits of a unit, the table, time, order, and what merging is for.

use super::{STEP, Vector, Want, bulk, bulk6, frames, run};
use crate::lro::Cause::*;
use crate::lro::Profile;
use crate::segment::{Segment, flag};

pub(super) fn vectors() -> Vec<Vector> {
    [
        length(),
        buffers(),
        scarcity(),
        table(),
        time(),
        order(),
        off(),
    ]
    .concat()
}

/// Row 38.
fn length() -> Vec<Vector> {
    // 65,535 bytes of IP: seven segments of 8,960 bytes, 40 of headers, and 2,775.
    let big = |first: fn(u32, usize) -> Segment, rest: &[usize]| {
        let lengths = [&[8960; 6][..], rest].concat();
        frames(&run(first(0, 8960), &lengths))
    };
    let exact: &[Want] = &[(&[0, 1, 2, 3, 4, 5, 6, 7], Some(Smaller))];
    let above: &[Want] = &[
        (&[0, 1, 2, 3, 4, 5, 6], Some(Length)),
        (&[7], Some(Stopped)),
    ];
    // IPv6's header is 20 bytes longer, and counts.
    let v6 = 65_535 - 60 - 7 * 8960;
    let small = frames(&run(Segment::v4(0, 100), &[100, 100]));
    vec![
        Vector::new(38, "exactly 65,535", big(Segment::v4, &[2775]), exact),
        Vector::new(38, "one more", big(Segment::v4, &[2776]), above),
        Vector::new(38, "a whole segment more", big(Segment::v4, &[8960]), above),
        Vector::new(38, "exactly, by IPv6", big(Segment::v6, &[v6]), exact),
        Vector::new(38, "one more, by IPv6", big(Segment::v6, &[v6 + 1]), above),
        Vector::new(
            38,
            "the remainder and more of it",
            big(Segment::v4, &[2776, 2776]),
            &[
                (&[0, 1, 2, 3, 4, 5, 6], Some(Length)),
                (&[7, 8], Some(Stopped)),
            ],
        ),
        Vector::new(
            38,
            "a setting of 240",
            small.clone(),
            &[(&[0, 1], Some(Length)), (&[2], Some(Stopped))],
        )
        .config(|c| c.max_bytes = 240),
        Vector::new(
            38,
            "a setting below one segment",
            small,
            &[(&[0], None), (&[1], None), (&[2], None)],
        )
        .config(|c| c.max_bytes = 139),
    ]
}

/// Row 39, and the room for headers.
fn buffers() -> Vec<Vector> {
    // Header, 54 of headers, 62 of payload: 128; then 128 for each.
    let first = |rest: &[usize]| frames(&run(Segment::v4(0, 318), rest));
    let small = |c: &mut crate::lro::Config| {
        (c.buffer, c.first_descriptor, c.max_buffers) = (128, 128, 4);
    };
    let together: &[Want] = &[(&[0, 1], Some(Smaller))];
    let apart: &[Want] = &[(&[0], Some(Buffers)), (&[1], Some(Stopped))];
    let many = run(Segment::v4(0, 128), &[128; 70]);
    let many = frames(&many);
    let long = bulk(1)[0].next(9000);
    let stamped = bulk(2)
        .into_iter()
        .map(|s| s.stamps(1, 1))
        .collect::<Vec<_>>();
    let vector = |what, frames, want: &[Want]| Vector::new(39, what, frames, want).config(small);
    vec![
        vector("4 buffers are filled", first(&[128]), together),
        vector("one byte more", first(&[129]), apart),
        Vector::new(
            39,
            "64 of 128 bytes",
            many,
            &[(&MANY[..63], Some(Buffers)), (&MANY[63..71], Some(Stopped))],
        )
        .config(|c| (c.buffer, c.first_descriptor) = (128, 128)),
        Vector::new(
            39,
            "a frame of more than 64 is never held",
            [long.bytes()],
            &[(&[0], None)],
        )
        .config(|c| (c.buffer, c.first_descriptor) = (128, 128)),
        Vector::new(
            39,
            "headers fill the first descriptor",
            frames(&bulk(2)),
            &[(&[0, 1], Some(Stopped))],
        )
        .config(|c| c.first_descriptor = 66),
        Vector::new(
            39,
            "headers do not fit it",
            frames(&bulk(2)),
            &[(&[0], None), (&[1], None)],
        )
        .config(|c| c.first_descriptor = 65),
        Vector::new(
            39,
            "nor do those of the same flow with options",
            frames(&[bulk(2)[0].clone(), stamped[1].clone()]),
            &[(&[0], Some(FirstBuffer)), (&[1], None)],
        )
        .config(|c| c.first_descriptor = 66),
        Vector::new(
            39,
            "a buffer below the headers",
            frames(&bulk(1)),
            &[(&[0], None)],
        )
        .config(|c| c.buffer = 65),
    ]
}

const MANY: [usize; 71] = {
    let mut numbers = [0; 71];
    let mut i = 0;
    while i < 71 {
        numbers[i] = i;
        i += 1;
    }
    numbers
};

/// Row 39: few or no buffers posted.
fn scarcity() -> Vec<Vector> {
    let flows = |count: u8| {
        let flow = |port| Segment {
            ports: [u16::from(port), 1],
            ..Segment::v4(0, 100)
        };
        frames(&(0..count).map(flow).collect::<Vec<_>>())
    };
    let mut below = Vector::new(
        39,
        "below the mark the oldest closes",
        flows(4),
        &[
            (&[0], Some(LowWater)),
            (&[1], Some(LowWater)),
            (&[2], Some(Stopped)),
            (&[3], Some(Stopped)),
        ],
    )
    .config(|c| c.low_water = 3);
    below.posted = 4;
    let mut none = Vector::new(
        39,
        "without a buffer all of the queue close",
        flows(3),
        &[(&[0], Some(NoBuffer)), (&[1], Some(NoBuffer))],
    );
    none.posted = 2;
    let mut other = Vector::new(
        39,
        "another queue's stay",
        flows(4),
        &[
            (&[1], Some(NoBuffer)),
            (&[2], Some(NoBuffer)),
            (&[0], Some(Stopped)),
        ],
    )
    .queue(1, 1)
    .queue(2, 1)
    .queue(3, 1);
    other.posted = 2;
    // Three segments fill one buffer. The fourth needs another, and waits for it.
    let want: &[Want] = &[(&[0, 1, 2], Some(NoBuffer))];
    let mut full =
        Vector::new(39, "its own, too", frames(&bulk(4)), want).config(|c| c.buffer = 400);
    full.posted = 1;
    vec![below, none, other, full]
}

/// Row 40.
fn table() -> Vec<Vector> {
    let flow = |port: u16, seq| Segment {
        ports: [port, 1],
        ..Segment::v4(seq, 100)
    };
    // The oldest is the one opened first, though it had a segment last.
    let mut segments = vec![flow(1, 0), flow(2, 0)];
    segments.push(segments[0].next(100));
    segments.push(flow(3, 0));
    let nine: Vec<_> = (0..9).map(|port| flow(port, 0)).collect();
    vec![
        Vector::new(
            40,
            "three flows in two contexts",
            frames(&segments),
            &[
                (&[0, 2], Some(Evicted)),
                (&[1], Some(Stopped)),
                (&[3], Some(Stopped)),
            ],
        )
        .config(|c| c.contexts = 2),
        Vector::new(
            40,
            "nine flows in eight contexts",
            frames(&nine),
            &[
                (&[0], Some(Evicted)),
                (&[1], Some(Stopped)),
                (&[2], Some(Stopped)),
                (&[3], Some(Stopped)),
                (&[4], Some(Stopped)),
                (&[5], Some(Stopped)),
                (&[6], Some(Stopped)),
                (&[7], Some(Stopped)),
                (&[8], Some(Stopped)),
            ],
        )
        .config(|c| c.contexts = 8),
        Vector::new(
            40,
            "a flow that makes room for itself evicts no other",
            frames(&[flow(1, 0), flow(2, 0), flow(2, 7)]),
            &[
                (&[1], Some(Sequence)),
                (&[0], Some(Stopped)),
                (&[2], Some(Stopped)),
            ],
        )
        .config(|c| c.contexts = 2),
        Vector::new(
            40,
            "what is not held evicts none",
            frames(&[flow(1, 0), flow(2, 0).flags(flag::ACK | flag::PSH)]),
            &[(&[1], None), (&[0], Some(Stopped))],
        )
        .config(|c| c.contexts = 1),
        Vector::new(
            40,
            "two flows of one tag",
            frames(&[flow(1, 0), flow(3, 0), flow(2, 0)]),
            &[
                (&[0], Some(Tag)),
                (&[1], Some(Stopped)),
                (&[2], Some(Stopped)),
            ],
        )
        // The last bit of the source's port.
        .config(|c| c.tag = Some(|key| u32::from(key[key.len() - 3] & 1))),
    ]
}

/// Row 41.
fn time() -> Vec<Vector> {
    let set = |c: &mut crate::lro::Config| (c.gap, c.hold) = (10 * STEP, 25 * STEP);
    let pair: &[Want] = &[(&[0, 1], Some(Stopped))];
    let gap: &[Want] = &[(&[0], Some(Gap)), (&[1], Some(Stopped))];
    let mut slow = Vector::new(
        41,
        "the hold time is since the first",
        frames(&bulk(5)),
        &[(&[0, 1, 2, 3], Some(Hold)), (&[4], Some(Stopped))],
    )
    .config(set);
    for (arrival, at) in slow.arrivals.iter_mut().zip([0, 9, 18, 24, 25]) {
        arrival.at = at * STEP;
    }
    let two =
        || Vector::new(41, "the gap time is since the last", frames(&bulk(2)), gap).config(set);
    let mut within = two().later(1, 9 * STEP - 1);
    within.want = pair.to_vec();
    vec![
        within,
        two().later(1, 9 * STEP),
        two().later(1, 1000 * STEP),
        slow,
        // Both contexts end between two frames: the one that ends first is first.
        Vector::new(
            41,
            "the order of ends",
            {
                let other = Segment {
                    ports: [1, 1],
                    ..Segment::v4(0, 100)
                };
                let bulk = bulk(3);
                frames(&[bulk[0].clone(), other, bulk[1].clone(), bulk[2].clone()])
            },
            &[
                (&[1], Some(Gap)),
                (&[0, 2], Some(Gap)),
                (&[3], Some(Stopped)),
            ],
        )
        .config(set)
        .later(3, 50 * STEP),
    ]
}

/// Row 42: also when a flow comes to another queue.
fn order() -> Vec<Vector> {
    let other = |s: Segment| Segment { ports: [1, 1], ..s };
    let (a, b) = (bulk(4), bulk(4).into_iter().map(other).collect::<Vec<_>>());
    let mixed = [&a[0], &b[0], &b[1], &a[1], &a[3], &b[2], &a[2], &b[3]].map(Segment::bytes);
    vec![
        Vector::new(
            42,
            "two flows, one with a hole",
            mixed,
            &[
                (&[0, 3], Some(Sequence)),
                (&[4], Some(Sequence)),
                (&[1, 2, 5, 7], Some(Stopped)),
                (&[6], Some(Stopped)),
            ],
        ),
        Vector::new(
            42,
            "to another queue",
            frames(&bulk(4)),
            &[(&[0, 1], Some(Moved)), (&[2, 3], Some(Stopped))],
        )
        .queue(2, 1)
        .queue(3, 1),
        Vector::new(
            42,
            "to another queue and back",
            frames(&bulk6(3)),
            &[
                (&[0], Some(Moved)),
                (&[1], Some(Moved)),
                (&[2], Some(Stopped)),
            ],
        )
        .queue(1, 3),
    ]
}

/// Row 43: what is forwarded is merged so that it can be undone, or not at all.
fn off() -> Vec<Vector> {
    let alone: &[Want] = &[(&[0], None), (&[1], None)];
    vec![
        Vector::new(43, "off", frames(&bulk(2)), alone).config(|c| c.profile = Profile::Off),
        Vector::new(43, "no IPv4", frames(&bulk(2)), alone).config(|c| c.tso4 = false),
        Vector::new(43, "no IPv6", frames(&bulk6(2)), alone).config(|c| c.tso6 = false),
        Vector::new(
            43,
            "IPv4 though no IPv6",
            frames(&bulk(2)),
            &[(&[0, 1], Some(Stopped))],
        )
        .config(|c| c.tso6 = false),
        Vector::new(
            43,
            "IPv6 though no IPv4",
            frames(&bulk6(2)),
            &[(&[0, 1], Some(Stopped))],
        )
        .config(|c| c.tso4 = false),
        Vector::new(
            43,
            "two full segments to forward",
            frames(&run(Segment::v4(0, 1460), &[1460])),
            &[(&[0, 1], Some(Stopped))],
        ),
    ]
}
