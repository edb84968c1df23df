//! Rows 18 to 37: flags, numbers, options and sizes of TCP.

use super::{Vector, Want, bulk, bulk6, each, frames, run, with};
use crate::lro::Cause::{self, *};
use crate::lro::Profile;
use crate::segment::Segment;
use crate::segment::flag::{ACK, AE, CWR, ECE, FIN, PSH, RST, SYN, URG};

pub(super) fn vectors() -> Vec<Vector> {
    [
        flags(),
        control(),
        fields(),
        acks(),
        sequence(),
        options(),
        sizes(),
    ]
    .concat()
}

/// Two segments, of which the second differs and is held by itself.
fn two(rule: u8, what: &'static str, change: fn(&mut Segment), cause: Cause) -> Vec<Vector> {
    let want: &[Want] = &[(&[0], Some(cause)), (&[1], Some(Stopped))];
    let v4 = Vector::new(rule, what, frames(&with(bulk(2), 1, change)), want);
    let v6 = Vector::new(rule, what, frames(&with(bulk6(2), 1, change)), want);
    vec![v4, v6]
}

/// Two segments that are alike in something and merge.
fn alike(rule: u8, what: &'static str, change: fn(&mut Segment)) -> Vec<Vector> {
    let want: &[Want] = &[(&[0, 1], Some(Stopped))];
    let v4 = Vector::new(rule, what, frames(&each(bulk(2), change)), want);
    let v6 = Vector::new(rule, what, frames(&each(bulk6(2), change)), want);
    vec![v4, v6]
}

/// Two segments, one that goes on alone, and two.
fn aside(rule: u8, what: &'static str, change: fn(&mut Segment), cause: Cause) -> Vec<Vector> {
    let want: &[Want] = &[
        (&[0, 1], Some(cause)),
        (&[2], None),
        (&[3, 4], Some(Stopped)),
    ];
    let v4 = Vector::new(rule, what, frames(&with(bulk(5), 2, change)), want);
    let v6 = Vector::new(rule, what, frames(&with(bulk6(5), 2, change)), want);
    vec![v4, v6]
}

/// Row 18.
fn flags() -> Vec<Vector> {
    let push = |s: &mut Segment| s.flags |= PSH;
    let pushed: &[Want] = &[(&[0, 1, 2], Some(Push)), (&[3, 4], Some(Stopped))];
    let mut hole = with(bulk(3), 1, push);
    hole.iter_mut().skip(1).for_each(|s| s.seq += 100);
    vec![
        Vector::new(
            18,
            "the third of five",
            frames(&with(bulk(5), 2, push)),
            pushed,
        ),
        Vector::new(18, "by IPv6", frames(&with(bulk6(5), 2, push)), pushed),
        Vector::new(
            18,
            "alone",
            frames(&with(bulk(1), 0, push)),
            &[(&[0], None)],
        ),
        Vector::new(
            18,
            "on each",
            frames(&each(bulk(2), push)),
            &[(&[0], None), (&[1], None)],
        ),
        Vector::new(
            18,
            "with a reason not to merge",
            frames(&hole),
            &[(&[0], Some(Sequence)), (&[1], None), (&[2], Some(Stopped))],
        ),
        Vector::new(
            18,
            "on a shorter one",
            frames(&with(run(Segment::v4(0, 100), &[50, 100]), 1, push)),
            &[(&[0, 1], Some(Push)), (&[2], Some(Stopped))],
        ),
    ]
}

/// Rows 19 to 21 and 23, with payload and without.
fn control() -> Vec<Vector> {
    let empty = |rule, what, change: fn(&mut Segment)| {
        let mut segments = bulk(2);
        let mut middle = segments[1].next(0);
        change(&mut middle);
        segments.push(middle);
        for _ in 0..2 {
            segments.push(segments[segments.len() - 1].next(100).flags(ACK));
        }
        let want: &[Want] = &[
            (&[0, 1], Some(Control)),
            (&[2], None),
            (&[3, 4], Some(Stopped)),
        ];
        vec![Vector::new(rule, what, frames(&segments), want)]
    };
    let lone: &[Want] = &[(&[0], None), (&[1], None)];
    [
        aside(19, "FIN with payload", |s| s.flags |= FIN, Control),
        empty(19, "FIN alone", |s| s.flags |= FIN),
        empty(20, "SYN", |s| s.flags = SYN),
        empty(20, "RST", |s| s.flags = RST),
        empty(20, "RST with ACK", |s| s.flags |= RST),
        empty(20, "URG", |s| s.flags |= URG),
        aside(20, "SYN with payload", |s| s.flags |= SYN, Control),
        aside(20, "RST with payload", |s| s.flags |= RST, Control),
        aside(
            20,
            "URG with payload",
            |s| (s.flags, s.urgent) = (ACK | URG, 5),
            Control,
        ),
        aside(21, "no flag", |s| s.flags = 0, Control),
        aside(21, "PSH only", |s| s.flags = PSH, Control),
        aside(23, "CWR in the middle", |s| s.flags |= CWR, Control),
        vec![
            Vector::new(
                23,
                "CWR on all",
                frames(&each(bulk(2), |s| s.flags |= CWR)),
                lone,
            ),
            Vector::new(
                23,
                "CWR on the first",
                frames(&with(bulk(3), 0, |s| s.flags |= CWR)),
                &[(&[0], None), (&[1, 2], Some(Stopped))],
            ),
        ],
    ]
    .concat()
}

/// Rows 22 and 24 to 26.
fn fields() -> Vec<Vector> {
    [
        two(22, "ECE, then set", |s| s.flags |= ECE, Flags),
        alike(22, "ECE on both", |s| s.flags |= ECE),
        two(24, "AE toggles", |s| s.flags |= AE, Flags),
        two(24, "a reserved flag toggles", |s| s.flags |= 0x800, Flags),
        two(
            24,
            "the other reserved flags toggle",
            |s| s.flags |= 0x600,
            Flags,
        ),
        alike(24, "AE on both", |s| s.flags |= AE),
        two(24, "data offset", |s| s.options = vec![1, 1, 1, 1], Flags),
        two(25, "1000, 1001", |s| s.window = 1001, Window),
        two(25, "the high byte", |s| s.window += 256, Window),
        two(26, "0, 5 with URG clear", |s| s.urgent = 5, Urgent),
        alike(26, "5 on both", |s| s.urgent = 5),
    ]
    .concat()
}

/// Rows 27 to 29.
fn acks() -> Vec<Vector> {
    let mut back = bulk(2);
    (back[0].ack, back[1].ack) = (101, 1);
    let mut acks = bulk(1);
    for _ in 0..2 {
        acks.push(acks[0].next(0));
    }
    let three = each(acks, |s| {
        s.payload.clear();
        s.seq = 7;
    });
    let lone: &[Want] = &[(&[0], None), (&[1], None), (&[2], None)];
    let pure = |change: fn(&mut Segment)| {
        let mut segments = bulk(1);
        let mut middle = segments[0].next(0);
        change(&mut middle);
        let mut last = middle.next(100);
        (last.ack, last.window, last.seq) = (1, 1000, segments[0].seq + 100);
        segments.extend([middle, last]);
        frames(&segments)
    };
    let aside: &[Want] = &[(&[0], Some(Empty)), (&[1], None), (&[2], Some(Stopped))];
    let mut vectors = vec![
        Vector::new(
            28,
            "101, 1",
            frames(&back),
            &[(&[0], Some(Ack)), (&[1], Some(Stopped))],
        ),
        Vector::new(29, "three", frames(&three), lone),
        Vector::new(29, "a duplicate between data", pure(|_| {}), aside),
        Vector::new(
            29,
            "a window update between data",
            pure(|s| s.window = 2000),
            aside,
        ),
        Vector::new(
            29,
            "an acknowledgement between data",
            pure(|s| s.ack = 9),
            aside,
        ),
        Vector::new(29, "keep-alive", pure(|s| s.seq -= 1), aside),
    ];
    vectors.extend(two(27, "1, 101", |s| s.ack = 101, Ack));
    vectors.extend(two(27, "the highest bit", |s| s.ack ^= 0x8000_0000, Ack));
    vectors
}

/// Rows 30 and 31.
fn sequence() -> Vec<Vector> {
    let wrap: &[Want] = &[(&[0, 1], Some(Stopped))];
    let twice: &[Want] = &[(&[0], Some(Sequence)), (&[1], Some(Stopped))];
    let first = Segment::v4(0xffff_ffce, 100);
    let mut order = bulk(3);
    order.swap(1, 2);
    let mut ids = order.iter_mut().zip(8..);
    ids.by_ref().for_each(|(s, id)| s.id = id);
    let mut vectors = vec![
        Vector::new(
            30,
            "over the end of numbers",
            frames(&run(first, &[100])),
            wrap,
        ),
        Vector::new(
            30,
            "many",
            frames(&run(Segment::v6(0xffff_ff00, 100), &[100; 9])),
            &[(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], Some(Stopped))],
        ),
        Vector::new(
            31,
            "a hole that is filled",
            frames(&order),
            &[
                (&[0], Some(Sequence)),
                (&[1], Some(Sequence)),
                (&[2], Some(Stopped)),
            ],
        ),
    ];
    let again = |s: &mut Segment| s.seq = 5000;
    vectors.push(Vector::new(
        31,
        "the same twice",
        frames(&with(bulk(2), 1, again)),
        twice,
    ));
    vectors.extend(two(31, "+1", |s| s.seq += 1, Sequence));
    vectors.extend(two(31, "-1", |s| s.seq -= 1, Sequence));
    vectors.extend(two(
        31,
        "half the circle away",
        |s| s.seq ^= 0x8000_0000,
        Sequence,
    ));
    vectors
}

/// Rows 32 to 35.
fn options() -> Vec<Vector> {
    let stamps = |stamps: &[(u32, u32)]| {
        let segments = bulk(stamps.len()).into_iter().zip(stamps);
        segments
            .map(|(s, (value, echo))| s.stamps(*value, *echo).bytes())
            .collect::<Vec<_>>()
    };
    let pair: &[Want] = &[(&[0, 1], Some(Stopped))];
    let apart: &[Want] = &[(&[0], Some(Options)), (&[1], Some(Stopped))];
    // Two of 0, then 100 with its NOPs in three places.
    let mut selftest = bulk(5);
    for (segment, value) in selftest.iter_mut().zip([0, 0, 100, 100, 100]) {
        *segment = segment.clone().stamps(value, 7);
    }
    selftest[3].options.rotate_left(1);
    selftest[4].options.rotate_left(2);
    let mut missing = bulk(2);
    missing[0] = missing[0].clone().stamps(1, 1);
    let selective = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9];
    let mut equal = bulk(2);
    equal
        .iter_mut()
        .for_each(|s| s.options = selective.to_vec());
    let mut different = equal.clone();
    different[1].options[11] = 10;
    let mut mixed = bulk(3);
    mixed[2].options = vec![1; 12];
    mixed[0] = mixed[0].clone().stamps(1, 1);
    mixed[1] = mixed[1].clone().stamps(1, 1);
    vec![
        Vector::new(32, "equal stamps", stamps(&[(5, 6), (5, 6)]), pair),
        Vector::new(
            32,
            "40 bytes of options",
            frames(&each(bulk(2), |s| s.options = (0..40).collect())),
            pair,
        ),
        Vector::new(33, "1, 2", stamps(&[(1, 7), (2, 7)]), apart),
        Vector::new(33, "the echo advances", stamps(&[(1, 7), (1, 8)]), apart),
        Vector::new(
            33,
            "0, 0, 100, 100', 100''",
            frames(&selftest),
            &[
                (&[0, 1], Some(Options)),
                (&[2], Some(Options)),
                (&[3], Some(Options)),
                (&[4], Some(Stopped)),
            ],
        ),
        Vector::new(34, "2, 1", stamps(&[(2, 7), (1, 7)]), apart),
        Vector::new(
            34,
            "missing on the second",
            frames(&missing),
            &[(&[0], Some(Flags)), (&[1], Some(Stopped))],
        ),
        Vector::new(34, "an echo of 0 on both", stamps(&[(2, 0), (2, 0)]), pair),
        Vector::new(35, "equal SACK", frames(&equal), pair),
        Vector::new(35, "another SACK", frames(&different), apart),
        Vector::new(
            35,
            "another option",
            frames(&mixed),
            &[(&[0, 1], Some(Options)), (&[2], Some(Stopped))],
        ),
    ]
}

/// Rows 36 and 37, and that these and others are as lax as they should be with the other profile
/// is tested elsewhere, since it cannot be undone.
fn sizes() -> Vec<Vector> {
    let sizes = |rule, what, first: usize, rest: &[usize], want: &[Want]| {
        let v4 = frames(&run(Segment::v4(0, first), rest));
        let v6 = frames(&run(Segment::v6(0, first), rest));
        [v4, v6]
            .map(|frames| Vector::new(rule, what, frames, want))
            .to_vec()
    };
    let relaxed = |mut vectors: Vec<Vector>| {
        vectors
            .iter_mut()
            .for_each(|v| v.config.profile = Profile::Relaxed);
        vectors
    };
    [
        sizes(36, "100, 50", 100, &[50], &[(&[0, 1], Some(Smaller))]),
        sizes(
            36,
            "100, 100, 99, 100",
            100,
            &[100, 99, 100],
            &[(&[0, 1, 2], Some(Smaller)), (&[3], Some(Stopped))],
        ),
        sizes(
            36,
            "100, 1, 100",
            100,
            &[1, 100],
            &[(&[0, 1], Some(Smaller)), (&[2], Some(Stopped))],
        ),
        relaxed(sizes(
            36,
            "100, 100, 50, relaxed",
            100,
            &[100, 50],
            &[(&[0, 1, 2], Some(Stopped))],
        )),
        sizes(
            37,
            "50, 100",
            50,
            &[100],
            &[(&[0], Some(Larger)), (&[1], Some(Stopped))],
        ),
        sizes(
            37,
            "100, 101, 101",
            100,
            &[101, 101],
            &[(&[0], Some(Larger)), (&[1, 2], Some(Stopped))],
        ),
        sizes(
            37,
            "100, 100, 101, PSH not needed",
            100,
            &[100, 101],
            &[(&[0, 1], Some(Larger)), (&[2], Some(Stopped))],
        ),
    ]
    .concat()
}
