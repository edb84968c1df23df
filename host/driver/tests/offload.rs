//! Requests for checksums and segmentation: what the card sees is what was asked for.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::offload::HeaderFault;
use ferronic::pci::PciFunction;
use ferronic::spec::net::{HEADER_LEN, HeaderFlags, gso};
use ferronic::spec::{Features, NetHeader};
use ferronic::{
    Device, DeviceConfig, Error, OffloadError, PushResult, QueuePair, Segmentation, TxOffload,
    TxPart, TxQueue,
};
use support::packets::{Packet, on_the_wire};
use support::{Function, OFFER, SoftCard};
use zerocopy::FromBytes;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Ethernet header and the longest IP packet.
const LARGEST: usize = 14 + 65_535;

fn open(offer: Features, config: DeviceConfig) -> (Arc<SoftCard>, Device, QueuePair) {
    let card = SoftCard::new(offer, 1, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let (device, mut pairs) = Device::open(function, config).unwrap();
    (card, device, pairs.remove(0))
}

/// Sends everything and takes what the card saw.
fn seen(card: &SoftCard, tx: &mut TxQueue) -> Vec<(NetHeader, Vec<u8>)> {
    tx.drain(TIMEOUT).unwrap();
    let sent = std::mem::take(&mut card.model().sent);
    let parse = |bytes: Vec<u8>| NetHeader::read_from_bytes(&bytes[..HEADER_LEN]).unwrap();
    sent.into_iter()
        .map(|(_, bytes)| (parse(bytes.clone()), bytes[HEADER_LEN..].to_vec()))
        .collect()
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// A TCP packet of the largest size.
fn largest() -> Packet {
    Packet {
        payload: payload(LARGEST - 54),
        ..Packet::default()
    }
}

const fn tcp4(size: u16) -> TxOffload {
    TxOffload::Segment {
        kind: Segmentation::TcpV4,
        size,
        ecn: false,
    }
}

fn fault(result: Result<PushResult, Error>) -> OffloadError {
    match result {
        Err(Error::Offload(fault)) => fault,
        other => panic!("{other:?} is no refusal of an offload"),
    }
}

#[test]
fn offloads_are_negotiated_with_what_they_require() {
    for (without, left) in [
        (Features::empty(), Features::TX_OFFLOADS),
        (Features::CSUM, Features::empty()),
        (
            Features::HOST_TSO4,
            Features::TX_OFFLOADS - Features::HOST_TSO4,
        ),
        (
            Features::HOST_TSO6 | Features::HOST_TSO4,
            Features::CSUM | Features::HOST_USO,
        ),
        (
            Features::HOST_USO,
            Features::TX_OFFLOADS - Features::HOST_USO,
        ),
        (
            Features::HOST_ECN,
            Features::TX_OFFLOADS - Features::HOST_ECN,
        ),
    ] {
        // Not wanted by the driver, and not offered by the card.
        let features = DeviceConfig::default().features - without;
        let config = DeviceConfig {
            features,
            ..DeviceConfig::default()
        };
        for (offer, config) in [(OFFER, config), (OFFER - without, DeviceConfig::default())] {
            let (_card, device, pair) = open(offer, config);
            assert_eq!(pair.tx.offloads(), left, "without {without:?}");
            assert_eq!(device.features() & Features::TX_OFFLOADS, left);
        }
    }
}

#[test]
fn checksum_request_is_seen_as_asked() {
    let (card, _device, mut pair) = open(OFFER, DeviceConfig::default());
    for udp in [false, true] {
        let packet = Packet {
            udp,
            tags: 1,
            ..Packet::default()
        };
        let whole = packet.frame();
        let mut frame = whole.clone();
        let offload = TxOffload::checksum(&mut frame).expect("there is a checksum");
        let (start, offset) = (packet.transport() as u16, packet.sum_offset() as u16);
        assert_eq!(offload, TxOffload::Checksum { start, offset });
        assert_ne!(
            frame, whole,
            "the sum of the pseudo header is not the checksum"
        );
        assert_eq!(
            pair.tx.push_offload(&frame, offload).unwrap(),
            PushResult::Queued
        );
        let got = seen(&card, &mut pair.tx);
        let want = NetHeader {
            flags: HeaderFlags::NEEDS_CSUM.bits(),
            csum_start: start.into(),
            csum_offset: offset.into(),
            ..NetHeader::default()
        };
        assert_eq!(got, [(want, frame.clone())]);
        let buffer = [zerocopy::IntoBytes::as_bytes(&want), &frame].concat();
        assert_eq!(
            on_the_wire(&buffer),
            [whole],
            "the completed frame is the packet"
        );
    }
}

#[test]
fn frames_without_a_checksum_are_left_alone() {
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut fragment = Packet::default().frame();
    fragment[20] = 0x20;
    let mut icmp = Packet::default().frame();
    icmp[23] = 1;
    let mut padded = Packet::default().frame();
    padded.push(1);
    for mut frame in [arp, fragment, icmp, padded, vec![8, 0], Vec::new()] {
        let before = frame.clone();
        assert_eq!(TxOffload::checksum(&mut frame), None);
        assert_eq!(frame, before);
    }
    let mut padded = Packet::default().frame();
    padded.push(0);
    assert!(TxOffload::checksum(&mut padded).is_some());
}

#[test]
fn largest_frame_takes_few_descriptors_and_arrives_whole() {
    for (offer, ring_size) in [
        (OFFER, 256),
        (OFFER - Features::INDIRECT_DESC, 256),
        (OFFER, 8),
        (OFFER, 1),
        (OFFER - Features::INDIRECT_DESC, 8),
    ] {
        let config = DeviceConfig {
            ring_size: Some(ring_size),
            ..DeviceConfig::default()
        };
        let (card, _device, mut pair) = open(offer, config);
        let tx = &mut pair.tx;
        assert_eq!(tx.max_segmented(), Some(65_557));
        let mut frame = largest().frame();
        let len = frame.len();
        assert_eq!(len, LARGEST);
        let offload = TxOffload::segment(&mut frame[..54], len, 1448).unwrap();
        assert_eq!(offload, tcp4(1448));
        for _ in 0..3 {
            assert!(tx.has_room_for(len).unwrap());
            assert_eq!(
                tx.push_offload(&frame, offload).unwrap(),
                PushResult::Queued
            );
            let got = seen(&card, tx);
            let want = NetHeader {
                flags: HeaderFlags::NEEDS_CSUM.bits(),
                gso_type: gso::TCPV4,
                hdr_len: 54.into(),
                gso_size: 1448.into(),
                csum_start: 34.into(),
                csum_offset: 16.into(),
                ..NetHeader::default()
            };
            assert!(got == [(want, frame.clone())], "{offer:?} {ring_size}");
        }
        let layouts = std::mem::take(&mut card.model().layouts);
        assert!(
            layouts.iter().all(|layout| layout.len() == 8),
            "{layouts:?}"
        );
        let stats = tx.stats();
        assert_eq!(
            (stats.frames, stats.segmented, stats.descriptors),
            (3, 3, 24)
        );
    }
}

#[test]
fn short_ring_limits_what_can_be_segmented() {
    let config = DeviceConfig {
        ring_size: Some(4),
        ..DeviceConfig::default()
    };
    let (_card, _device, mut pair) = open(OFFER - Features::INDIRECT_DESC, config);
    let max = pair.tx.max_segmented().unwrap();
    assert_eq!(max, 4 * 9228 - 12);
    for (len, fits) in [(max, true), (max + 1, false)] {
        let frame = Packet {
            payload: payload(len - 54),
            ..Packet::default()
        }
        .frame();
        match pair.tx.push_offload(&frame, tcp4(1448)) {
            Ok(PushResult::Queued) => assert!(fits),
            Err(Error::Segments {
                segments: 5,
                limit: 4,
            }) => assert!(!fits),
            other => panic!("{other:?}"),
        }
        pair.tx.drain(TIMEOUT).unwrap();
    }
}

#[test]
fn full_ring_of_large_frames_goes_on_after_reap() {
    for offer in [OFFER, OFFER - Features::INDIRECT_DESC] {
        let (card, _device, mut pair) = open(offer, DeviceConfig::default());
        let tx = &mut pair.tx;
        card.model().awake = false;
        let frame = largest().frame();
        let mut queued = 0;
        while tx.has_room_for(frame.len()).unwrap() {
            assert_eq!(
                tx.push_offload(&frame, tcp4(1448)).unwrap(),
                PushResult::Queued
            );
            queued += 1;
        }
        assert_eq!(queued, 256 / 8);
        assert_eq!(
            tx.push_offload(&frame, tcp4(1448)).unwrap(),
            PushResult::Full
        );
        assert_eq!(tx.push(&frame[..60]).unwrap(), PushResult::Full);
        card.model().awake = true;
        card.run();
        assert_eq!(
            tx.push_offload(&frame, tcp4(1448)).unwrap(),
            PushResult::Queued
        );
        let got = seen(&card, tx);
        assert_eq!(got.len(), queued + 1);
        assert!(got.iter().all(|(_, bytes)| *bytes == frame));
        // All buffers came back: as many small frames as the ring has entries.
        card.model().awake = false;
        while tx.push(&frame[..60]).unwrap() == PushResult::Queued {
            queued += 1;
        }
        assert_eq!(queued, 32 + 256);
    }
}

#[test]
fn shared_parts_are_read_in_place() {
    let (card, device, mut pair) = open(OFFER, DeviceConfig::default());
    let tx = &mut pair.tx;
    let frame = largest().frame();
    let buffer = device.buffer(70_000).unwrap();
    buffer.write(3, &frame[54..]).unwrap();
    let middle = 30_001;
    let slice = |from: usize, to: usize| buffer.slice(3 + from - 54, to - from).unwrap();
    let parts = [
        TxPart::Bytes(&frame[..20]),
        TxPart::Bytes(&frame[20..54]),
        TxPart::Shared(slice(54, middle)),
        TxPart::Bytes(&[]),
        TxPart::Shared(slice(middle, frame.len() - 5)),
        TxPart::Bytes(&frame[frame.len() - 5..]),
    ];
    assert_eq!(
        tx.push_parts(&parts, tcp4(1448)).unwrap(),
        PushResult::Queued
    );
    let got = seen(&card, tx);
    assert!(got.len() == 1 && got[0].1 == frame);
    assert_eq!(got[0].0.hdr_len.get(), 54, "headers are found across parts");
    let layout = card.model().layouts.pop().unwrap();
    let lens: Vec<_> = layout.iter().map(|(_, len)| *len as usize).collect();
    assert_eq!(lens, [12 + 54, middle - 54, frame.len() - 5 - middle, 5]);
    assert_eq!(
        layout[1].0 + u64::from(layout[1].1),
        layout[2].0,
        "they lie as they were"
    );

    // Headers in shared memory are found, too, and a frame may be shared as a whole.
    buffer.write(0, &frame).unwrap();
    let whole = [TxPart::Shared(buffer.slice(0, frame.len()).unwrap())];
    assert_eq!(
        tx.push_parts(&whole, tcp4(1448)).unwrap(),
        PushResult::Queued
    );
    let got = seen(&card, tx);
    assert!(got.len() == 1 && got[0].1 == frame && got[0].0.gso_size.get() == 1448);
    assert!(buffer.slice(0, buffer.len() + 1).is_err());
    assert!(buffer.slice(usize::MAX, 2).is_err());
}

#[test]
fn shared_memory_is_kept_until_the_card_has_read_it() {
    let (card, device, pair) = open(OFFER, DeviceConfig::default());
    let QueuePair { mut tx, rx, .. } = pair;
    let regions = card.regions();
    let frame = Packet::default().frame();
    let queue = |tx: &mut TxQueue| {
        let buffer = device.buffer(4096).unwrap();
        buffer.write(0, &frame).unwrap();
        let part = TxPart::Shared(buffer.slice(0, frame.len()).unwrap());
        let queued = tx.push_parts(&[part, part], TxOffload::None).unwrap();
        assert_eq!(queued, PushResult::Queued);
    };
    card.model().awake = false;
    queue(&mut tx);
    tx.flush().unwrap();
    assert_eq!(
        card.regions(),
        regions + 1,
        "the queue has it, the caller has not"
    );
    card.model().awake = true;
    let got = seen(&card, &mut tx);
    assert!(got.len() == 1 && got[0].1 == [&frame[..], &frame].concat());
    assert_eq!(card.regions(), regions, "it was read");

    // The card of another device cannot read it.
    let (_other, other_device, _pair) = open(OFFER, DeviceConfig::default());
    let foreign = other_device.buffer(4096).unwrap();
    let part = TxPart::Shared(foreign.slice(0, 60).unwrap());
    let refused = tx.push_parts(&[part], TxOffload::None);
    assert!(matches!(refused, Err(Error::ForeignBuffer)), "{refused:?}");
    assert!(seen(&card, &mut tx).is_empty());

    // A queue that goes leaves what the card may still read to the end of the device.
    card.model().awake = false;
    queue(&mut tx);
    tx.flush().unwrap();
    drop(tx);
    assert_eq!(card.regions(), regions + 1);
    drop((device, rx));
    assert_eq!(card.regions(), 0);
}

#[test]
fn requests_that_were_not_negotiated_are_refused() {
    let frame = Packet::default().frame();
    let segment = |kind, ecn| TxOffload::Segment {
        kind,
        size: 100,
        ecn,
    };
    let checksum = TxOffload::Checksum {
        start: 34,
        offset: 16,
    };
    for (without, offload, needed) in [
        (Features::CSUM, checksum, Features::CSUM),
        (Features::HOST_TSO4, tcp4(100), Features::HOST_TSO4),
        (Features::CSUM, tcp4(100), Features::HOST_TSO4),
        (
            Features::HOST_TSO6,
            segment(Segmentation::TcpV6, false),
            Features::HOST_TSO6,
        ),
        (
            Features::HOST_USO,
            segment(Segmentation::Udp, false),
            Features::HOST_USO,
        ),
        (
            Features::HOST_ECN,
            segment(Segmentation::TcpV4, true),
            Features::HOST_ECN,
        ),
    ] {
        let (card, _device, mut pair) = open(OFFER - without, DeviceConfig::default());
        let refused = fault(pair.tx.push_offload(&frame, offload));
        assert_eq!(refused, OffloadError::NotNegotiated(needed));
        assert!(refused.to_string().contains("DeviceConfig::features"));
        // Nothing of it was sent, and the queue goes on.
        assert_eq!(pair.tx.push(&frame).unwrap(), PushResult::Queued);
        let got = seen(&card, &mut pair.tx);
        assert_eq!(got, [(NetHeader::default(), frame.clone())]);
    }
    let (_card, _device, pair) = open(OFFER - Features::CSUM, DeviceConfig::default());
    assert_eq!(pair.tx.max_segmented(), None);
}

#[test]
fn requests_that_do_not_fit_the_frame_are_refused() {
    let (card, _device, mut pair) = open(OFFER, DeviceConfig::default());
    let tx = &mut pair.tx;
    let tcp = Packet::default();
    let udp = Packet {
        udp: true,
        ..Packet::default()
    };
    let frame = tcp.frame();
    let len = frame.len();
    let checksum = |start, offset| TxOffload::Checksum { start, offset };
    // At the very end of the frame is within; one byte on is not.
    let last = checksum(len as u16 - 2, 0);
    assert_eq!(tx.push_offload(&frame, last).unwrap(), PushResult::Queued);
    for (start, offset) in [(len as u16 - 1, 0), (0, len as u16 - 1), (0xffff, 0xffff)] {
        let refused = fault(tx.push_offload(&frame, checksum(start, offset)));
        assert_eq!(
            refused,
            OffloadError::ChecksumOutside { start, offset, len }
        );
    }
    let mut refuse = |packet: &Packet, change: &dyn Fn(&mut Vec<u8>), offload| {
        let mut frame = packet.frame();
        change(&mut frame);
        fault(tx.push_offload(&frame, offload))
    };
    let same = |_: &mut Vec<u8>| {};
    let headers = OffloadError::Headers;
    assert_eq!(refuse(&tcp, &same, tcp4(0)), OffloadError::SegmentSize);
    let kind = refuse(&udp, &same, tcp4(100));
    assert!(
        matches!(kind, OffloadError::Kind { found: "UDP", .. }),
        "{kind:?}"
    );
    let v6 = Packet {
        v6: true,
        ..Packet::default()
    };
    let kind = refuse(&v6, &same, tcp4(100));
    assert!(
        matches!(kind, OffloadError::Kind { found, .. } if found.contains("IPv6")),
        "{kind}"
    );
    let uso = |ecn| TxOffload::Segment {
        kind: Segmentation::Udp,
        size: 100,
        ecn,
    };
    assert_eq!(refuse(&udp, &same, uso(true)), OffloadError::EcnOfUdp);
    let cwr = Packet {
        tcp_flags: 0x98,
        ..Packet::default()
    };
    assert_eq!(refuse(&cwr, &same, tcp4(100)), OffloadError::CwrWithoutEcn);
    assert_eq!(
        refuse(&tcp, &|f| f[20] = 0x20, tcp4(100)),
        headers(HeaderFault::Fragment)
    );
    assert_eq!(
        refuse(&tcp, &|f| f[12] = 0x90, tcp4(100)),
        headers(HeaderFault::NotIp)
    );
    assert_eq!(
        refuse(&tcp, &|f| f[14] = 0x44, tcp4(100)),
        headers(HeaderFault::HeaderLength)
    );
    assert_eq!(
        refuse(&tcp, &|f| f[46] = 0x40, tcp4(100)),
        headers(HeaderFault::HeaderLength)
    );
    assert_eq!(
        refuse(&tcp, &|f| f.truncate(53), tcp4(100)),
        headers(HeaderFault::Truncated)
    );
    // 14 + 8 + 60 + 60 bytes of headers are within the first 144, 14 + 40 + 8 * 9 + 20 are not.
    let long = Packet {
        v6: true,
        options: 9,
        ..Packet::default()
    };
    let tso6 = TxOffload::Segment {
        kind: Segmentation::TcpV6,
        size: 100,
        ecn: false,
    };
    assert_eq!(refuse(&long, &same, tso6), headers(HeaderFault::Truncated));
    let mut large = largest();
    large.payload.push(0);
    assert_eq!(
        refuse(&large, &same, tcp4(1448)),
        OffloadError::IpLength(65_536)
    );
    assert_eq!(
        refuse(&largest(), &same, tcp4(9216 - 53)),
        OffloadError::SegmentLength(9217)
    );
    let deep = Packet {
        tags: 2,
        options: 10,
        tcp_options: 10,
        ..Packet::default()
    };
    assert_eq!(deep.headers(), 142);
    for (packet, size) in [(largest(), 9216 - 54), (deep, 1), (tcp.clone(), u16::MAX)] {
        assert_eq!(
            tx.push_offload(&packet.frame(), tcp4(size)).unwrap(),
            PushResult::Queued
        );
    }
    // Without segmentation the limit is the card's largest frame.
    for offload in [TxOffload::None, checksum(0, 0)] {
        let refused = tx.push_offload(&[0; 9217], offload);
        assert!(matches!(
            refused,
            Err(Error::FrameLength {
                len: 9217,
                max: 9216,
                ..
            })
        ));
    }
    assert_eq!(seen(&card, tx).len(), 4);
}
