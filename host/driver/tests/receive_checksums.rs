//! Received frames: what is verified in software, and completed.

mod support;

use ferronic::offload::{Admitted, HeaderFault, Refused, Sum, Verdict, admit, verify};
use ferronic::spec::NetHeader;
use support::packets::Packet;

fn shapes() -> impl Iterator<Item = Packet> {
    let bools = [false, true];
    let shapes = bools
        .into_iter()
        .flat_map(move |v6| bools.map(|udp| (v6, udp)));
    shapes.flat_map(|(v6, udp)| {
        (0..3usize).flat_map(move |tags| {
            (0..3usize).flat_map(move |options| {
                [0, 1, 2, 999, 1460].map(|len| Packet {
                    v6,
                    udp,
                    tags,
                    options,
                    payload: vec![0xa5; len],
                    ..Packet::default()
                })
            })
        })
    })
}

#[test]
fn right_packets_of_every_shape_are_right_and_any_changed_bit_is_seen() {
    for packet in shapes() {
        let frame = packet.frame();
        assert_eq!(verify(&frame), Verdict::Right, "{packet:?}");
        let mut padded = frame.clone();
        padded.extend([0x55; 7]);
        assert_eq!(verify(&padded), Verdict::Right, "padding is not counted");
        // Any bit behind the IP addresses that a sum covers.
        for at in packet.transport()..frame.len() {
            let mut broken = frame.clone();
            broken[at] ^= 0x10;
            assert_ne!(verify(&broken), Verdict::Right, "byte {at} of {packet:?}");
        }
        for len in 0..frame.len() {
            let cut = verify(&frame[..len]);
            assert!(
                matches!(cut, Verdict::Unverifiable(_)),
                "{len} bytes of {packet:?}: {cut:?}"
            );
        }
    }
}

#[test]
fn wrong_sums_are_told_apart() {
    let packet = Packet::default();
    for (at, which) in [
        (22, Sum::Ipv4),
        (24, Sum::Ipv4),
        (40, Sum::Tcp),
        (60, Sum::Tcp),
    ] {
        let mut frame = packet.frame();
        frame[at] ^= 1;
        assert_eq!(verify(&frame), Verdict::Wrong(which), "byte {at}");
    }
    // Without an IPv4 sum, addresses are covered by that of UDP.
    let packet = Packet {
        v6: true,
        udp: true,
        ..packet
    };
    for at in [22, 53, 54, 57, 70] {
        let mut frame = packet.frame();
        frame[at] ^= 1;
        assert_eq!(verify(&frame), Verdict::Wrong(Sum::Udp), "byte {at}");
    }
}

#[test]
fn udp_without_a_sum_and_udp_that_sums_to_zero_are_told_apart() {
    let mut packet = Packet {
        udp: true,
        payload: vec![0, 0],
        ..Packet::default()
    };
    // Payload that makes the sum 0, which is sent as 0xffff.
    let frame = packet.frame();
    packet.payload = frame[40..42].to_vec();
    let zero = packet.frame();
    assert_eq!(zero[40..42], [0xff, 0xff]);
    assert_eq!(verify(&zero), Verdict::Right);
    let mut partial = zero.clone();
    ferronic::TxOffload::checksum(&mut partial).expect("there is one");
    let got = admit(&header(1, 34, 6), true, &mut partial);
    assert_eq!((got, partial), (Ok(Admitted::Completed), zero));
    let mut none = frame;
    none[40..42].fill(0);
    assert_eq!(verify(&none), Verdict::NoSum);
    let mut none = Packet {
        v6: true,
        udp: true,
        ..packet
    }
    .frame();
    none[60..62].fill(0);
    assert_eq!(
        verify(&none),
        Verdict::Wrong(Sum::Udp),
        "IPv6 has no UDP without a sum"
    );
}

#[test]
fn what_carries_no_sum_is_told_from_what_cannot_be_verified() {
    let change = |packet: &Packet, at: usize, value: u8| {
        let mut frame = packet.frame();
        frame[at] = value;
        verify(&frame)
    };
    let (v4, v6) = (
        Packet::default(),
        Packet {
            v6: true,
            ..Packet::default()
        },
    );
    let unverifiable = Verdict::Unverifiable;
    assert_eq!(change(&v4, 12, 0x90), Verdict::NoSum, "not IP");
    assert_eq!(change(&v6, 20, 58), Verdict::NoSum, "ICMPv6");
    for at in [20, 21] {
        assert_eq!(change(&v4, at, 0x20), unverifiable(HeaderFault::Fragment));
    }
    assert_eq!(change(&v6, 20, 44), unverifiable(HeaderFault::Fragment));
    for next in [43, 51, 135, 139, 140] {
        assert_eq!(
            change(&v6, 20, next),
            unverifiable(HeaderFault::Extension(next))
        );
    }
    assert_eq!(change(&v4, 14, 0x65), unverifiable(HeaderFault::Version));
    assert_eq!(change(&v6, 14, 0x45), unverifiable(HeaderFault::Version));
    assert_eq!(
        change(&v4, 14, 0x43),
        unverifiable(HeaderFault::HeaderLength)
    );
    assert_eq!(change(&v4, 16, 0xff), unverifiable(HeaderFault::Length));
    // DF is no fragment: the sum of the header tells that the bit was changed.
    assert_eq!(change(&v4, 20, 0), Verdict::Wrong(Sum::Ipv4));
    // A third VLAN tag is not looked through.
    let tagged = Packet {
        tags: 3,
        ..Packet::default()
    };
    assert_eq!(verify(&tagged.frame()), Verdict::NoSum);
    assert_eq!(verify(&[]), unverifiable(HeaderFault::Truncated));
    assert_eq!(verify(&[0xff; 14]), Verdict::NoSum);
}

fn header(flags: u8, start: u16, offset: u16) -> NetHeader {
    NetHeader {
        flags,
        csum_start: start.into(),
        csum_offset: offset.into(),
        ..NetHeader::default()
    }
}

#[test]
fn partial_sums_are_completed_or_refused_and_nothing_else_is_changed() {
    for packet in shapes() {
        let whole = packet.frame();
        let mut partial = whole.clone();
        ferronic::TxOffload::checksum(&mut partial).expect("there is one");
        let (start, offset) = (packet.transport() as u16, packet.sum_offset() as u16);
        for flags in [1, 3, 0xfd] {
            let mut frame = partial.clone();
            let got = admit(&header(flags, start, offset), true, &mut frame);
            assert_eq!(got, Ok(Admitted::Completed));
            assert_eq!(frame, whole);
        }
        let len = whole.len();
        for (start, offset) in [(len as u16 - 1, 0), (0xffff, 0xffff), (0, len as u16 - 1)] {
            let mut frame = partial.clone();
            let got = admit(&header(1, start, offset), true, &mut frame);
            assert_eq!(got, Err(Refused::Outside { start, offset, len }));
            assert_eq!(frame, partial);
        }
    }
    // NEEDS_CSUM speaks of one sum; that of the IPv4 header is verified all the same.
    let mut frame = Packet::default().frame();
    frame[22] ^= 1;
    let got = admit(&header(1, 34, 16), true, &mut frame);
    assert_eq!(got, Err(Refused::Wrong(Sum::Ipv4)));
}
