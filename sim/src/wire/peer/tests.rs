//! The peer as a host on the wire sees it.

use super::ip::{ICMP, UDP, checksum, packet, pseudo_header};
use super::*;

const ASKER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ASKER_IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const ASKER_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 2);
const V4: (IpAddr, IpAddr) = (
    IpAddr::V4(ASKER_IPV4),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
);
const V6: (IpAddr, IpAddr) = (IpAddr::V6(ASKER_IPV6), IpAddr::V6(PEER_IPV6));

fn peer() -> PeerWire {
    PeerWire::new(None, Pace::Line).expect("a peer")
}

fn ask(peer: &mut PeerWire, frame: &[u8]) -> Option<Vec<u8>> {
    peer.sent(0, frame, false);
    peer.next_frame(0).map(|f| f.data)
}

fn frame(to: [u8; 6], kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend(ASKER);
    frame.extend(kind.to_be_bytes());
    frame.extend(body);
    frame
}

fn arp(asker: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut body = vec![0, 1, 8, 0, 6, 4, 0, 1];
    body.extend(ASKER);
    body.extend(asker);
    body.extend([0; 6]);
    body.extend(target);
    frame([0xff; 6], ARP, &body)
}

/// A frame with a message whose sum, at `at`, is made right.
fn message(
    (from, to): (IpAddr, IpAddr),
    protocol: u8,
    hop_limit: Option<u8>,
    at: usize,
    bytes: &[u8],
) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let before = match protocol {
        ICMP => 0,
        _ => pseudo_header(from, to, protocol, bytes.len() as u32),
    };
    bytes[at..at + 2].fill(0);
    let sum = checksum(before, &bytes);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    let kind = if from.is_ipv4() { IPV4 } else { IPV6 };
    let body = packet(from, to, protocol, hop_limit, &bytes).expect("a packet");
    frame(PEER_MAC, kind, &body)
}

fn ping(ends: (IpAddr, IpAddr)) -> Vec<u8> {
    let (protocol, kind) = if ends.0.is_ipv4() {
        (ICMP, 8)
    } else {
        (ICMPV6, 128)
    };
    message(
        ends,
        protocol,
        None,
        2,
        &[kind, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4, 5],
    )
}

fn datagram(ends: (IpAddr, IpAddr)) -> Vec<u8> {
    message(
        ends,
        UDP,
        None,
        6,
        &[0x12, 0x34, 0, 7, 0, 11, 0, 0, 1, 2, 3],
    )
}

fn solicitation(source: Ipv6Addr, target: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
    let mut bytes = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(target.octets());
    if !source.is_unspecified() {
        bytes.extend([1, 1]);
        bytes.extend(ASKER);
    }
    let group = "ff02::1:ff00:1".parse().expect("an address");
    let ends = (IpAddr::V6(source), IpAddr::V6(group));
    let mut frame = message(ends, ICMPV6, Some(hop_limit), 2, &bytes);
    frame[..6].copy_from_slice(&[0x33, 0x33, 0xff, 0, 0, 1]);
    frame
}

/// The packet in a frame, with right sums.
fn read(frame: &[u8]) -> Packet<'_> {
    let kind = u16::from_be_bytes([frame[12], frame[13]]);
    let packet = Packet::parse(kind, &frame[ETHERNET..]).expect("a packet");
    packet.verify().expect("right sums");
    packet
}

#[test]
fn arp_is_answered_but_not_for_the_asker() {
    let mut peer = peer();
    let reply = ask(&mut peer, &arp([10, 0, 0, 2], [10, 0, 0, 1])).expect("answer");
    assert_eq!(reply[..6], ASKER);
    assert_eq!(reply[20..22], [0, 2]);
    assert_eq!(reply[28..32], [10, 0, 0, 1]);
    assert!(ask(&mut peer, &arp([10, 0, 0, 2], [10, 0, 0, 2])).is_none());
    assert!(ask(&mut peer, &arp([0; 4], [10, 0, 0, 2])).is_none());
    let mut one = PeerWire::new(Some(Ipv4Addr::new(10, 0, 0, 9)), Pace::Line).expect("a peer");
    assert!(ask(&mut one, &arp([10, 0, 0, 2], [10, 0, 0, 1])).is_none());
}

#[test]
fn neighbour_solicitation_is_answered_for_the_one_address() {
    let mut peer = peer();
    let reply = ask(&mut peer, &solicitation(ASKER_IPV6, PEER_IPV6, 255)).expect("answer");
    assert_eq!(reply[..12], [ASKER, PEER_MAC].concat());
    let told = read(&reply);
    assert_eq!((told.source, told.target), (V6.1, V6.0));
    assert_eq!(told.hop_limit, 255);
    assert_eq!(told.payload[0], 136);
    // Solicited, override.
    assert_eq!(told.payload[4], 0x60);
    assert_eq!(told.payload[8..24], PEER_IPV6.octets());
    assert_eq!(told.payload[24..], [&[2, 1], &PEER_MAC[..]].concat());

    // Somebody about to take our address.
    let probe = solicitation(Ipv6Addr::UNSPECIFIED, PEER_IPV6, 255);
    let reply = ask(&mut peer, &probe).expect("answer");
    assert_eq!(reply[..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(read(&reply).payload[4], 0x20);

    assert!(ask(&mut peer, &solicitation(ASKER_IPV6, ASKER_IPV6, 255)).is_none());
    // From another link.
    assert!(ask(&mut peer, &solicitation(ASKER_IPV6, PEER_IPV6, 254)).is_none());
}

#[test]
fn echo_request_is_answered_with_right_checksums() {
    let mut peer = peer();
    for (ends, kind) in [(V4, 0), (V6, 129)] {
        let asked = ping(ends);
        let reply = ask(&mut peer, &asked).expect("answer");
        let told = read(&reply);
        assert_eq!((told.source, told.target), (ends.1, ends.0));
        assert_eq!(told.payload[0], kind);
        assert_eq!(told.payload[4..], read(&asked).payload[4..]);
    }
}

#[test]
fn datagram_comes_back_with_right_checksums() {
    let mut peer = peer();
    for ends in [V4, V6] {
        let reply = ask(&mut peer, &datagram(ends)).expect("answer");
        let told = read(&reply);
        assert_eq!((told.source, told.target), (ends.1, ends.0));
        assert_eq!(told.payload[..6], [0, 7, 0x12, 0x34, 0, 11]);
        assert_eq!(told.payload[8..], [1, 2, 3]);
    }
}

#[test]
fn datagram_without_a_checksum_is_taken_by_ipv4_only() {
    for (ends, head, taken) in [(V4, 20, true), (V6, 40, false)] {
        let mut asked = datagram(ends);
        asked[ETHERNET + head + 6..][..2].fill(0);
        assert_eq!(ask(&mut peer(), &asked).is_some(), taken);
    }
}

/// Any bit of what a sum covers, and any of the sum itself.
#[test]
fn packet_with_a_wrong_bit_is_lost() {
    let mut peer = peer();
    let frames = [ping(V4), ping(V6), datagram(V4), datagram(V6)];
    let mut wrong = 0;
    for good in frames {
        let v4 = good[12..14] == IPV4.to_be_bytes();
        for at in ETHERNET..good.len() {
            // IPv6 has no sum over the first bytes of its header: only addresses are covered.
            if !v4 && at < ETHERNET + 8 {
                continue;
            }
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(ask(&mut peer, &bad).is_none(), "byte {at}, bit {bit}");
                wrong += 1;
            }
        }
        assert!(ask(&mut peer, &good).is_some());
    }
    // The others are refused for their form.
    assert!(peer.wrong_sums() > wrong * 9 / 10, "{}", peer.wrong_sums());
}

/// The other end of a connection hears nothing if a segment was changed on its way.
#[test]
fn segment_with_a_wrong_sum_is_lost() {
    for ends in [V4, V6] {
        let mut syn = vec![
            0x12, 0x34, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff,
        ];
        syn.extend([0; 4]);
        let good = message(ends, TCP, None, 16, &syn);
        let mut bad = good.clone();
        *bad.last_mut().expect("a byte") = 1;
        let mut peer = peer();
        assert!(ask(&mut peer, &bad).is_none());
        let reply = ask(&mut peer, &good).expect("answer");
        // SYN and ACK.
        assert_eq!(read(&reply).payload[13], 0x12);
    }
}

/// A connection to the sink, with data that waits until a gap, until there is enough, or until PSH.
#[test]
fn data_that_follows_closely_is_acknowledged_once() {
    let segment = |flags: u8, sequence: u32, acknowledged: u32, data: &[u8]| {
        let mut bytes = vec![0x12, 0x34, 0, 9];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(acknowledged.to_be_bytes());
        bytes.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(data);
        message(V4, TCP, None, 16, &bytes)
    };
    let number = |frame: &[u8], at: usize| {
        u32::from_be_bytes(*read(frame).payload[at..].first_chunk().expect("a word"))
    };
    let mut peer = peer();
    let reply = ask(&mut peer, &segment(2, 99, 0, &[])).expect("answer");
    let theirs = number(&reply, 4).wrapping_add(1);
    assert!(ask(&mut peer, &segment(0x10, 100, theirs, &[])).is_none());

    let data = [7; 1000];
    let mut next = 100;
    let mut send = |peer: &mut PeerWire, now: u64, flags: u8| {
        peer.sent(now, &segment(flags, next, theirs, &data), false);
        next += 1000;
        next
    };
    // A gap.
    send(&mut peer, 10, 0x10);
    let end = send(&mut peer, 20, 0x10);
    assert_eq!(peer.next_event(20), Some(20 + GAP));
    assert!(peer.next_frame(19 + GAP).is_none());
    let reply = peer.next_frame(20 + GAP).expect("answer").data;
    assert_eq!(number(&reply, 8), end);
    assert_eq!(peer.next_event(30 + GAP), None);
    // Enough.
    let mut sent = 0;
    let reply = loop {
        let end = send(&mut peer, 5000, 0x10);
        sent += 1;
        if let Some(reply) = peer.next_frame(5000) {
            assert_eq!(number(&reply.data, 8), end);
            break reply;
        }
    };
    assert_eq!(sent, PIECE.div_ceil(1020), "{reply:?}");
    // PSH.
    send(&mut peer, 6000, 0x10);
    let end = send(&mut peer, 6000, 0x18);
    let reply = peer.next_frame(6000).expect("answer").data;
    assert_eq!(number(&reply, 8), end);
    assert!(peer.next_frame(6000).is_none());
}

#[test]
fn cut_frames_are_ignored() {
    let mut peer = peer();
    let frames = [
        ping(V4),
        ping(V6),
        datagram(V4),
        datagram(V6),
        arp([10, 0, 0, 2], [10, 0, 0, 1]),
        solicitation(ASKER_IPV6, PEER_IPV6, 255),
    ];
    for frame in frames {
        for len in 0..frame.len() {
            assert!(ask(&mut peer, &frame[..len]).is_none(), "{len}");
        }
    }
}
