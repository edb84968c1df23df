//! Rows 1 to 17 and 44: what is not TCP, IP headers, sums, Ethernet.

use super::{Vector, bulk, bulk6, each, frames, resum, with};
use crate::lro::Cause::*;
use crate::lro::Star;
use crate::segment::{Segment, with_sum_of_ones};

pub(super) fn vectors() -> Vec<Vector> {
    [strangers(), ipv4(), ipv6(), lengths(), sums(), ethernet()].concat()
}

/// Two segments with a frame between them.
fn between(middle: Vec<u8>) -> Vec<Vec<u8>> {
    let bulk = frames(&bulk(2));
    vec![bulk[0].clone(), middle, bulk[1].clone()]
}

fn between6(middle: Vec<u8>) -> Vec<Vec<u8>> {
    let bulk = frames(&bulk6(2));
    vec![bulk[0].clone(), middle, bulk[1].clone()]
}

/// Rows 1 and 44: passes at once, and what is held stays held.
fn strangers() -> Vec<Vector> {
    let want: &[super::Want] = &[(&[1], None), (&[0, 2], Some(Stopped))];
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let protocol = |number: u8| {
        let mut frame = bulk(1)[0].bytes();
        frame[23] = number;
        resum(&mut frame);
        frame
    };
    let mut tagged = bulk(1)[0].clone();
    tagged.tags = vec![[0x81, 0, 0, 1]; 3];
    let mut version = bulk(1)[0].bytes();
    version[14] = 0x65;
    let mut router_alert = Segment {
        ip_options: vec![0x94, 4, 0, 0],
        ..bulk(1)[0].clone()
    }
    .bytes();
    router_alert[23] = 2;
    resum(&mut router_alert);
    let esp6 = |next: u8| {
        let mut frame = bulk6(1)[0].bytes();
        frame[20] = next;
        frame
    };
    vec![
        Vector::new(1, "ARP", between(arp), want),
        Vector::new(1, "UDP of the same ports", between(protocol(17)), want),
        Vector::new(1, "ICMP", between(protocol(1)), want),
        Vector::new(1, "IGMP with an option", between(router_alert), want),
        Vector::new(1, "a tunnel", between(protocol(4)), want),
        Vector::new(1, "three VLAN tags", between(tagged.bytes()), want),
        Vector::new(1, "another version", between(version), want),
        Vector::new(
            1,
            "type and nothing",
            between(bulk(1)[0].bytes()[..14].to_vec()),
            want,
        ),
        Vector::new(1, "UDP by IPv6", between6(esp6(17)), want),
        Vector::new(44, "ESP", between(protocol(50)), want),
        Vector::new(44, "AH", between(protocol(51)), want),
        Vector::new(44, "ESP by IPv6", between6(esp6(50)), want),
    ]
}

/// Rows 2 to 7.
fn ipv4() -> Vec<Vector> {
    let starred = |cause| vec![(&[0][..], Some(cause)), (&[1], None), (&[2], Some(Stopped))];
    let apart: &[super::Want] = &[(&[0], None), (&[1], None)];
    let option: fn(&mut Segment) = |s| s.ip_options = vec![1, 1, 1, 0];
    let options = frames(&with(bulk(3), 1, option));
    let others = [bulk(3)[0].bytes(), with(bulk(3), 1, option)[1].bytes()];
    let other = |change: fn(&mut Segment)| {
        let mut segment = bulk(1)[0].clone();
        segment.ports = [7, 7];
        change(&mut segment);
        vec![segment.bytes(), others[1].clone()]
    };
    let fragment = |field: u16| frames(&with(bulk(3), 1, |s| s.fragment = field));
    let ids = |ids: &[u16]| {
        let mut segments = bulk(ids.len());
        segments.iter_mut().zip(ids).for_each(|(s, id)| s.id = *id);
        frames(&segments)
    };
    let two = |rule, what, change: fn(&mut Segment), cause| {
        let want: &[super::Want] = &[(&[0], Some(cause)), (&[1], Some(Stopped))];
        Vector::new(rule, what, frames(&with(bulk(2), 1, change)), want)
    };
    vec![
        Vector::new(2, "an option in the middle", options, &starred(IpOptions)),
        Vector::new(
            2,
            "another flow between the same addresses closes too",
            other(|_| {}),
            &[(&[0], Some(IpOptions)), (&[1], None)],
        ),
        Vector::new(
            2,
            "between other addresses none does",
            other(|s| s.hosts = [1, 9]),
            &[(&[1], None), (&[0], Some(Stopped))],
        ),
        Vector::new(
            2,
            "by queue, it does",
            other(|s| s.hosts = [1, 9]),
            &[(&[0], Some(IpOptions)), (&[1], None)],
        )
        .config(|c| c.star = Star::Queue),
        Vector::new(2, "options on all", frames(&each(bulk(2), option)), apart),
        Vector::new(3, "DF and MF", fragment(0x6000), &starred(Fragment)),
        Vector::new(3, "MF", fragment(0x2000), &starred(Fragment)),
        Vector::new(3, "the last fragment", fragment(0x0001), &starred(Fragment)),
        Vector::new(
            3,
            "an offset of only high bits",
            fragment(0x1000),
            &starred(Fragment),
        ),
        two(4, "DF, then not", |s| s.fragment = 0, DontFragment),
        two(
            4,
            "the reserved flag, then set",
            |s| s.fragment = 0xc000,
            DontFragment,
        ),
        Vector::new(5, "8, 9", ids(&[8, 9]), &[(&[0, 1], Some(Stopped))]),
        Vector::new(
            5,
            "8, 8",
            ids(&[8, 8]),
            &[(&[0], Some(Id)), (&[1], Some(Stopped))],
        ),
        Vector::new(
            5,
            "8, 9, 9",
            ids(&[8, 9, 9]),
            &[(&[0, 1], Some(Id)), (&[2], Some(Stopped))],
        ),
        Vector::new(
            5,
            "8, 8, 9",
            ids(&[8, 8, 9]),
            &[(&[0], Some(Id)), (&[1, 2], Some(Stopped))],
        ),
        Vector::new(5, "65535, 0", ids(&[65535, 0]), &[(&[0, 1], Some(Stopped))]),
        Vector::new(
            5,
            "8, 9, 11",
            ids(&[8, 9, 11]),
            &[(&[0, 1], Some(Id)), (&[2], Some(Stopped))],
        ),
        Vector::new(
            5,
            "9, 8",
            ids(&[9, 8]),
            &[(&[0], Some(Id)), (&[1], Some(Stopped))],
        ),
        Vector::new(
            5,
            "the same without DF",
            frames(&each(bulk(3), |s| s.fragment = 0)),
            &[(&[0, 1, 2], Some(Stopped))],
        ),
        Vector::new(
            5,
            "equal with DF clear",
            frames(&each(bulk(2), |s| (s.fragment, s.id) = (0, 3))),
            &[(&[0], Some(Id)), (&[1], Some(Stopped))],
        ),
        two(6, "8, 7", |s| s.ttl = 63, Ttl),
        two(7, "not ECT, then CE", |s| s.class = 3, Class),
        two(7, "another class of service", |s| s.class = 0x20, Class),
        Vector::new(
            7,
            "CE on both",
            frames(&each(bulk(2), |s| s.class = 3)),
            &[(&[0, 1], Some(Stopped))],
        ),
    ]
}

/// Rows 6 to 9.
fn ipv6() -> Vec<Vector> {
    let two = |rule, what, change: fn(&mut Segment), cause| {
        let want: &[super::Want] = &[(&[0], Some(cause)), (&[1], Some(Stopped))];
        Vector::new(rule, what, frames(&with(bulk6(2), 1, change)), want)
    };
    let starred: &[super::Want] = &[(&[0], Some(Extension)), (&[1], None), (&[2], Some(Stopped))];
    let extension = |kind: u8| {
        let options = vec![0, 1, 4, 0, 0, 0, 0];
        frames(&with(bulk6(3), 1, |s| s.extension = Some((kind, options))))
    };
    let both = |last: [u8; 2]| {
        let mut segments = bulk6(2);
        for (segment, last) in segments.iter_mut().zip(last) {
            segment.extension = Some((0, vec![0, 0x1e, 4, 0, 0, 0, last]));
        }
        frames(&segments)
    };
    let mut vectors = vec![
        two(6, "hop limit 64, 63", |s| s.ttl = 63, Ttl),
        two(7, "traffic class by IPv6, low bits", |s| s.class = 1, Class),
        two(
            7,
            "traffic class by IPv6, high bits",
            |s| s.class = 0x40,
            Class,
        ),
        two(8, "label 0, then 1", |s| s.label = 1, Label),
        two(
            8,
            "label 0, then the high bit",
            |s| s.label = 0x8_0000,
            Label,
        ),
        Vector::new(
            8,
            "equal labels",
            frames(&each(bulk6(2), |s| s.label = 0xf_1234)),
            &[(&[0, 1], Some(Stopped))],
        ),
        Vector::new(
            9,
            "hop-by-hop, equal",
            both([0, 0]),
            &[(&[0], None), (&[1], None)],
        ),
        Vector::new(
            9,
            "hop-by-hop, different",
            both([0, 1]),
            &[(&[0], None), (&[1], None)],
        ),
    ];
    for kind in [0, 43, 44, 51, 60, 135, 139, 140] {
        vectors.push(Vector::new(9, "in the middle", extension(kind), starred));
    }
    vectors
}

/// Rows 10 and 11.
fn lengths() -> Vec<Vector> {
    let padded = |mut frame: Vec<u8>, length: usize| {
        frame.resize(length.max(frame.len()), 0);
        frame
    };
    let single: Vec<_> = super::run(Segment::v4(9, 1), &[1])
        .iter()
        .map(|s| padded(s.bytes(), 60))
        .collect();
    let trailer = |length| {
        let mut frames = frames(&bulk(3));
        frames[1] = padded(frames[1].clone(), length);
        frames
    };
    let trailed: &[super::Want] = &[(&[0], Some(Trailer)), (&[1], None), (&[2], Some(Stopped))];
    let starred: &[super::Want] = &[(&[0], Some(Malformed)), (&[1], None), (&[2], Some(Stopped))];
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut frames = frames(&bulk(3));
        change(&mut frames[1]);
        resum(&mut frames[1]);
        frames
    };
    let broken6 = |change: fn(&mut Vec<u8>)| {
        let mut frames = frames(&bulk6(3));
        change(&mut frames[1]);
        frames
    };
    let malformed = |what, change| Vector::new(11, what, broken(change), starred);
    let malformed6 = |what, change| Vector::new(11, what, broken6(change), starred);
    vec![
        Vector::new(
            10,
            "1 byte padded to 60",
            single,
            &[(&[0], None), (&[1], None)],
        ),
        Vector::new(10, "one byte behind", trailer(155), trailed),
        Vector::new(10, "many bytes behind", trailer(1514), trailed),
        malformed("IP length above the frame's", |f| f[17] += 1),
        malformed("data offset 4", |f| f[46] = 0x40),
        malformed("data offset 0", |f| f[46] = 0x00),
        malformed("TCP header beyond the packet", |f| {
            f[16..18].copy_from_slice(&[0, 43]);
            f[46] = 0x60;
        }),
        malformed("IP length below the headers'", |f| {
            f[16..18].copy_from_slice(&[0, 39])
        }),
        malformed("IP length 0", |f| f[16..18].copy_from_slice(&[0, 0])),
        malformed("cut inside the TCP header", |f| f.truncate(50)),
        malformed("cut inside it, and the IP length says so", |f| {
            f.truncate(39);
            f[16..18].copy_from_slice(&[0, 25]);
        }),
        malformed6("IPv6 length above the frame's", |f| f[19] += 1),
        malformed6("IPv6 length 0", |f| f[19] = 0),
        malformed6("IPv6 cut inside the TCP header", |f| f.truncate(60)),
    ]
}

/// Rows 12 to 15.
fn sums() -> Vec<Vector> {
    // Two flows, what is wrong, and a third segment of the first.
    let queue = |frame: Vec<u8>| {
        let mut other = bulk(1)[0].clone();
        other.hosts = [8, 9];
        let bulk = frames(&bulk(2));
        vec![bulk[0].clone(), other.bytes(), frame, bulk[1].clone()]
    };
    let all: &[super::Want] = &[
        (&[0], Some(Untrusted)),
        (&[1], Some(Untrusted)),
        (&[2], None),
        (&[3], Some(Stopped)),
    ];
    let change = |change: fn(&mut Vec<u8>)| {
        let mut frame = bulk(1)[0].bytes();
        change(&mut frame);
        frame
    };
    let flow = |cause| vec![(&[0][..], Some(cause)), (&[1], None), (&[2], Some(Stopped))];
    let wrong = |mut segments: Vec<Vec<u8>>, at: usize| {
        segments[1][at] ^= 1;
        segments
    };
    // An identification that makes the header's sum 0.
    let mut ones = bulk(3);
    let check = ones[1].bytes();
    let check = u16::from_be_bytes([check[24], check[25]]);
    ones[1].id = crate::sum::fold(u64::from(ones[1].id) + u64::from(check));
    let mut ones = frames(&ones);
    ones[1][24..26].fill(0xff);
    let mut sum_of_ones = frames(&bulk(3));
    sum_of_ones[1] = with_sum_of_ones(bulk(3)[1].clone());
    let mut sum_of_ones6 = frames(&bulk6(3));
    sum_of_ones6[1] = with_sum_of_ones(bulk6(3)[1].clone());
    vec![
        Vector::new(
            12,
            "a bit of the header",
            queue(change(|f| f[16] ^= 1)),
            all,
        ),
        Vector::new(
            12,
            "of a header that says UDP",
            queue(change(|f| f[23] = 17)),
            all,
        ),
        Vector::new(
            12,
            "a header of 16 bytes",
            queue(change(|f| f[14] = 0x44)),
            all,
        ),
        Vector::new(
            12,
            "cut inside the header",
            queue(change(|f| f.truncate(33))),
            all,
        ),
        Vector::new(
            12,
            "another queue keeps what it holds",
            queue(change(|f| f[16] ^= 1)),
            &[
                (&[1], Some(Untrusted)),
                (&[2], None),
                (&[0, 3], Some(Stopped)),
            ],
        )
        .queue(1, 1)
        .queue(2, 1),
        Vector::new(13, "check - 1", wrong(frames(&bulk(3)), 51), &flow(Sum)),
        Vector::new(
            13,
            "a bit of the payload",
            wrong(frames(&bulk(3)), 100),
            &flow(Sum),
        ),
        Vector::new(13, "by IPv6", wrong(frames(&bulk6(3)), 100), &flow(Sum)),
        Vector::new(
            14,
            "sums off",
            frames(&bulk(2)),
            &[(&[0], None), (&[1], None)],
        )
        .config(|c| c.csum = false),
        Vector::new(15, "all ones for 0", sum_of_ones, &flow(Canonical)),
        Vector::new(15, "by IPv6", sum_of_ones6, &flow(Canonical)),
        Vector::new(15, "in the IPv4 header", ones, &flow(Canonical)),
    ]
}

/// Rows 16 and 17.
fn ethernet() -> Vec<Vector> {
    let mac: &[super::Want] = &[(&[0], Some(Mac)), (&[1], Some(Stopped))];
    let macs = |at: usize| frames(&with(bulk(2), 1, |s| s.macs[at] ^= 1));
    // Two streams of the same addresses and ports, with these tags, by turns.
    let tags = |first: &[[u8; 4]], second: &[[u8; 4]]| {
        let of = |tags: &[[u8; 4]]| {
            let tags = tags.to_vec();
            bulk(2).into_iter().map(move |s| Segment {
                tags: tags.clone(),
                ..s
            })
        };
        let pairs = of(first).zip(of(second));
        frames(&pairs.flat_map(|(a, b)| [a, b]).collect::<Vec<_>>())
    };
    let apart: &[super::Want] = &[(&[0, 2], Some(Stopped)), (&[1, 3], Some(Stopped))];
    let c = |vid| [0x81, 0, 0, vid];
    let s = |vid| [0x88, 0xa8, 0, vid];
    vec![
        Vector::new(16, "two sources", macs(11), mac),
        Vector::new(16, "two destinations", macs(0), mac),
        Vector::new(17, "VID 10 and 20", tags(&[c(10)], &[c(20)]), apart),
        Vector::new(17, "one tagged", tags(&[c(0)], &[]), apart),
        Vector::new(
            17,
            "two priorities",
            tags(&[[0x81, 0, 0x20, 5]], &[c(5)]),
            apart,
        ),
        Vector::new(17, "two types", tags(&[c(5)], &[s(5)]), apart),
        Vector::new(17, "inner tags", tags(&[s(1), c(2)], &[s(1), c(3)]), apart),
        Vector::new(17, "outer tags", tags(&[s(1), c(2)], &[s(4), c(2)]), apart),
    ]
}
