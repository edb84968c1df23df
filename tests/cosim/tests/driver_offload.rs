//! What the driver asks of the card for transmitted frames, on the wire: completed and cut as the
//! oracle of transmission says, and right for `etherparse`.

use ferronic::spec::net::{HEADER_WINDOW, MAX_FRAME};
use ferronic::{DeviceConfig, OffloadError, PushResult, Segmentation, TxOffload, TxPart, Wakeup};
use ferronic_cosim_tests::card::{Card, PATIENCE};
use ferronic_cosim_tests::tso::{self, Buffers};
use ferronic_oracle::{
    Header, Limits, Offloads, Opinion, Outcome, Request, Rng, Shape, gso, opinion, request,
    transmit,
};
use ferronic_sim::SimConfig;
use ferronic_sim::model::WIDTHS;
use ferronic_spec::Features;
use zerocopy::IntoBytes;

const ALL: Offloads = Offloads::ALL;

fn open(data_w: u32, driver: DeviceConfig) -> Card {
    let sim = SimConfig {
        data_w,
        ..SimConfig::default()
    };
    let card = Card::open(sim, driver);
    assert_eq!(card.pairs[0].tx.offloads(), Features::TX_OFFLOADS);
    card
}

/// Waits until so many frames have left, and takes them.
fn wire(card: &mut Card, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut last = card.function.now();
    while frames.len() < count {
        card.device.poll();
        for pair in &mut card.pairs {
            pair.tx.reap().expect("the device behaves");
        }
        while let Some(frame) = card.wire.take() {
            assert!(!frame.aborted, "a frame was cut off");
            frames.push(frame.data);
            last = card.function.now();
        }
        let silent = card.function.now() - last;
        assert!(silent < PATIENCE, "{} of {count} frames left", frames.len());
    }
    frames
}

/// Pushes a frame, and what the oracle says of its virtio header.
fn push(
    card: &mut Card,
    pair: usize,
    parts: &[TxPart<'_>],
    frame: &[u8],
    offload: TxOffload,
) -> Vec<Vec<u8>> {
    let tx = &mut card.pairs[pair].tx;
    let head = &frame[..frame.len().min(HEADER_WINDOW)];
    let header = offload
        .header(Features::TX_OFFLOADS, head, frame.len())
        .expect("a sound request");
    let header = Header::read(header.as_bytes()).expect("12 bytes");
    let Outcome::Sent(want) = transmit(&header, frame, ALL) else {
        panic!("the oracle drops what the driver takes: {offload:?}");
    };
    while tx.push_parts(parts, offload).expect("a sound request") == PushResult::Full {
        tx.relax();
    }
    tx.flush().expect("the device behaves");
    want
}

/// The driver's request for one of the oracle's, if it has one.
fn offload(request: &Request) -> Option<TxOffload> {
    let header = &request.header;
    match header.gso_type & !gso::ECN {
        gso::NONE if header.flags & 1 == 0 => Some(TxOffload::None),
        gso::NONE => Some(TxOffload::Checksum {
            start: header.csum_start,
            offset: header.csum_offset,
        }),
        _ => {
            let mut head = request.frame.clone();
            let len = head.len();
            let offload = TxOffload::segment(&mut head, len, header.gso_size).ok()?;
            let head = &head[..len.min(HEADER_WINDOW)];
            offload.header(Features::TX_OFFLOADS, head, len).ok()?;
            Some(offload)
        }
    }
}

/// The same as it stands, however wrong; `None` if no request of the driver's says that.
fn verbatim(request: &Request) -> Option<TxOffload> {
    let header = &request.header;
    let kind = match header.gso_type & !gso::ECN {
        // Marks alone cannot be asked for.
        gso::NONE if header.gso_type == gso::NONE => return offload(request),
        gso::TCPV4 => Segmentation::TcpV4,
        gso::TCPV6 => Segmentation::TcpV6,
        gso::UDP_L4 => Segmentation::Udp,
        _ => return None,
    };
    Some(TxOffload::Segment {
        kind,
        size: header.gso_size,
        ecn: header.gso_type & gso::ECN != 0,
    })
}

#[test]
fn largest_frame_leaves_in_segments_of_mtu_size() {
    for &data_w in WIDTHS {
        let mut card = open(data_w, DeviceConfig::default());
        let mut rng = Rng::new(7);
        for v6 in [false, true] {
            let mut shape = Shape::random(&mut rng);
            shape.v6 = v6;
            shape.protocol = ferronic_oracle::Protocol::Tcp;
            (shape.tags, shape.ip_options, shape.tcp_options) = (0, 0, 3);
            shape.extensions.clear();
            let mut frame = shape.headers(&mut rng);
            let headers = frame.len();
            frame.extend((0..14 + 65_535 - headers).map(|i| (i * 7 + i / 251) as u8));
            let len = frame.len();
            let size = (1514 - headers) as u16;
            let asked = TxOffload::segment(&mut frame[..headers], len, size).expect("TCP");
            let whole = [TxPart::Bytes(&frame)];
            let want = push(&mut card, 0, &whole, &frame, asked);
            assert_eq!(want.len(), (len - headers).div_ceil(size.into()));
            let got = wire(&mut card, want.len());
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                assert!(
                    got == want,
                    "segment {i} of {data_w} bits:\n{got:02x?}\n{want:02x?}"
                );
                assert_eq!(opinion(got), Opinion::Right, "segment {i}");
            }
            assert!(got[..got.len() - 1].iter().all(|frame| frame.len() == 1514));
        }
        card.device.check().expect("the card is well");
    }
}

#[test]
fn requests_of_all_kinds_leave_as_asked_from_any_parts() {
    for &data_w in WIDTHS {
        for seed in 0..2 {
            let config = DeviceConfig {
                queue_pairs: 2,
                indirect: seed == 0,
                buffer_offset: 5,
                ..DeviceConfig::default()
            };
            let mut card = open(data_w, config);
            let buffer = card.device.buffer(1 << 17).expect("memory");
            let mut rng = Rng::new(100 + seed);
            let limits = Limits {
                packet: 20_000,
                segments: 40,
            };
            let (mut sent, mut segments) = (0, 0);
            for _ in 0..120 {
                let request = request::sound(&limits, ALL, &mut rng);
                let Some(offload) = offload(&request) else {
                    continue;
                };
                let frame = &request.frame;
                let cut = rng.below(frame.len() as u64) as usize;
                let at = rng.below(5000) as usize;
                buffer.write(at, &frame[cut..]).expect("it fits");
                let shared = buffer.slice(at, frame.len() - cut).expect("it fits");
                let scattered = [TxPart::Bytes(&frame[..cut]), TxPart::Shared(shared)];
                let whole = [TxPart::Bytes(frame)];
                let parts = if rng.chance(50) {
                    &whole[..]
                } else {
                    &scattered
                };
                let pair = rng.below(2) as usize;
                let want = push(&mut card, pair, parts, frame, offload);
                let got = wire(&mut card, want.len());
                assert!(
                    got == want,
                    "{data_w} bits: {offload:?} of {:02x?}",
                    request.frame
                );
                sent += 1;
                segments += want.len();
            }
            assert!(
                sent > 80 && segments > 3 * sent,
                "{sent} frames in {segments}"
            );
            card.device.check().expect("the card is well");
        }
    }
}

#[test]
fn malformed_frames_are_refused_by_the_driver_and_dropped_by_the_card() {
    for &data_w in WIDTHS {
        let mut card = open(data_w, DeviceConfig::default());
        let mut rng = Rng::new(9);
        let mut refused = 0;
        for _ in 0..300 {
            let request = request::malformed(ALL, &mut rng);
            let frame = &request.frame;
            let Outcome::Dropped(_) = transmit(&request.header, frame, ALL) else {
                continue;
            };
            if let Some(offload) = verbatim(&request) {
                let pushed = card.pairs[0].tx.push_offload(frame, offload);
                assert!(
                    pushed.is_err(),
                    "{}: {offload:?} of {frame:02x?}",
                    request.kind
                );
            }
            refused += 1;
        }
        assert!(refused > 150, "{refused}");
        // Behind the driver's back the card drops the same, and the queue goes on.
        let header = ferronic_spec::NetHeader {
            flags: 1,
            csum_start: 100.into(),
            ..Default::default()
        };
        let frame = [0x5a; 100];
        let tx = &mut card.pairs[0].tx;
        assert_eq!(
            tx.push_with(header, &[&frame], false).expect("sound"),
            PushResult::Queued
        );
        let outside = TxOffload::Checksum {
            start: 100,
            offset: 0,
        };
        let error = tx
            .push_offload(&frame, outside)
            .expect_err("outside")
            .to_string();
        let want = OffloadError::ChecksumOutside {
            start: 100,
            offset: 0,
            len: 100,
        };
        assert!(error.contains(&want.to_string()), "{error}");
        assert_eq!(tx.push(&frame).expect("sound"), PushResult::Queued);
        tx.flush().expect("the device behaves");
        assert_eq!(wire(&mut card, 1), [frame]);
        card.function.run(20_000).expect("the card runs");
        assert_eq!(card.wire.sent(), 0, "nothing else left");
        let stats = card.device.card_stats().expect("counters");
        assert_eq!(stats.queues[1].drops, 1);
        card.device.check().expect("the card is well");
    }
}

#[test]
fn each_offload_can_be_left_out_and_is_refused_then() {
    let mut rng = Rng::new(3);
    let mut headers = |v6, protocol| {
        let shape = Shape {
            tags: 0,
            v6,
            protocol,
            ip_options: 0,
            extensions: Vec::new(),
            tcp_options: 0,
        };
        let mut frame = shape.headers(&mut rng);
        frame.resize(frame.len() + 3000, 0x33);
        if protocol == ferronic_oracle::Protocol::Tcp {
            frame[shape.transport() + 13] = 0x18;
        }
        frame
    };
    use ferronic_oracle::Protocol::{Tcp, Udp};
    let (tcp4, tcp6, udp) = (headers(false, Tcp), headers(true, Tcp), headers(true, Udp));
    for (feature, frame) in [
        (Features::HOST_TSO4, &tcp4),
        (Features::HOST_TSO6, &tcp6),
        (Features::HOST_USO, &udp),
    ] {
        let config = DeviceConfig {
            features: DeviceConfig::default().features - feature,
            ..DeviceConfig::default()
        };
        let mut card = Card::open(SimConfig::default(), config);
        assert_eq!(card.pairs[0].tx.offloads(), Features::TX_OFFLOADS - feature);
        let mut asked = frame.clone();
        let len = asked.len();
        let offload = TxOffload::segment(&mut asked, len, 1000).expect("TCP or UDP");
        let error = card.pairs[0]
            .tx
            .push_offload(&asked, offload)
            .expect_err("not negotiated");
        assert!(
            error.to_string().contains(&format!("{feature:?}")),
            "{error}"
        );
        // Without it the frame goes, in one piece.
        assert!(frame.len() < MAX_FRAME);
        assert_eq!(
            card.pairs[0].tx.push(frame).expect("sound"),
            PushResult::Queued
        );
        card.pairs[0].tx.flush().expect("the device behaves");
        assert_eq!(wire(&mut card, 1)[0], *frame);
    }
}

#[test]
fn large_frames_reach_the_bounds_of_the_data_path() {
    for &data_w in WIDTHS {
        for buffers in [Buffers::Copied, Buffers::Shared] {
            let config = DeviceConfig {
                wakeup: Wakeup::Interrupt,
                ..DeviceConfig::default()
            };
            let mut card = open(data_w, config);
            let share = tso::steady(&mut card, tso::FRAME, buffers, 180).share();
            let bound = tso::bound(data_w).unwrap_or_default();
            assert!(
                share >= bound,
                "{share:.3} at {data_w} bits, {buffers:?}: {bound} is needed"
            );
        }
    }
}
