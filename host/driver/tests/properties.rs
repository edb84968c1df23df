//! Random traffic against the card in software: nothing lost, reordered or changed.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::pci::PciFunction;
use ferronic::spec::Features;
use ferronic::spec::net::{HEADER_LEN, gso};
use ferronic::{Device, DeviceConfig, PushResult, TxOffload, TxPart, Wakeup};
use proptest::prelude::*;
use support::packets::{Packet, on_the_wire};
use support::{Function, OFFER, SoftCard, frame, seeds};

/// What may differ from run to run.
#[derive(Clone, Debug)]
struct Setting {
    offer: Features,
    config: DeviceConfig,
    tx_per_run: usize,
}

fn setting() -> impl Strategy<Value = Setting> {
    let flags = prop::collection::vec(any::<bool>(), 5);
    let sizes = (
        prop_oneof![128usize..2100, Just(65_536usize)],
        0usize..64,
        1u16..6,
    );
    (flags, sizes, 6u32..9, 1usize..20).prop_map(|(flags, (size, offset, chain), log, tx)| {
        let mut offer = OFFER;
        for (flag, feature) in flags.iter().zip([
            Features::INDIRECT_DESC,
            Features::EVENT_IDX,
            Features::NOTIFICATION_DATA,
        ]) {
            offer.set(feature, *flag);
        }
        let wakeup = if flags[3] {
            Wakeup::Interrupt
        } else {
            Wakeup::Polled
        };
        // Frames must fit into what a ring holds.
        let chain = if size < 400 { 1 } else { chain };
        let config = DeviceConfig {
            buffer_size: size,
            buffer_offset: offset,
            rx_chain: chain,
            indirect: flags[4],
            ring_size: Some(1 << log),
            wakeup,
            ..DeviceConfig::default()
        };
        Setting {
            offer,
            config,
            tx_per_run: tx,
        }
    })
}

/// Lengths of frames: the edges, and everything between.
fn lengths(max: usize) -> impl Strategy<Value = Vec<usize>> {
    let len = prop_oneof![Just(14usize), Just(60), Just(1514), 14usize..=max];
    prop::collection::vec(len, 1..200)
}

#[test]
fn property_transmitted_frames_arrive_in_order_and_whole() {
    let strategy = (setting(), lengths(9216), any::<u64>());
    seeds::runner(60)
        .run(&strategy, |(setting, lens, choice)| {
            let card = SoftCard::new(setting.offer, 1, 256);
            let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
            let (_device, mut pairs) = Device::open(function, setting.config).unwrap();
            card.model().tx_per_run = setting.tx_per_run;
            let tx = &mut pairs[0].tx;
            for (i, len) in (0u64..).zip(&lens) {
                let bytes = frame(i, *len);
                let pieces = 1 + (choice >> (i % 32) & 7) as usize;
                let parts: Vec<_> = bytes.chunks(len.div_ceil(pieces)).collect();
                let mut push = || match pieces {
                    1 => tx.push(&bytes),
                    _ => tx.push_pieces(&parts),
                };
                while push().unwrap() == PushResult::Full {
                    card.run();
                }
                if choice >> (i % 61) & 1 == 1 {
                    tx.flush().unwrap();
                    card.run();
                }
            }
            tx.drain(Duration::from_secs(20)).unwrap();
            let sent = std::mem::take(&mut card.model().sent);
            prop_assert_eq!(sent.len(), lens.len());
            for (i, ((_, bytes), len)) in (0u64..).zip(sent.iter().zip(&lens)) {
                prop_assert!(bytes[HEADER_LEN..] == frame(i, *len), "frame {}", i);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn property_received_frames_arrive_in_order_and_whole() {
    let strategy = (setting(), lengths(1514), any::<u64>());
    seeds::runner(60)
        .run(&strategy, |(setting, lens, choice)| {
            let card = SoftCard::new(setting.offer, 1, 256);
            let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
            let (device, mut pairs) = Device::open(function, setting.config.clone()).unwrap();
            let rx = &mut pairs[0].rx;
            let mut given = 0;
            let mut got = 0u64;
            while got < lens.len() as u64 {
                let burst = 1 + (choice >> (got % 59) & 15) as usize;
                let until = lens.len().min(given + burst);
                for (i, len) in (given as u64..).zip(&lens[given..until]) {
                    card.model().to_receive[0].push_back(frame(i, *len));
                }
                given = until;
                if setting.config.wakeup == Wakeup::Polled {
                    device.poll();
                } else if !rx.arm().unwrap() {
                    let event = device.wait(Duration::from_secs(1)).unwrap();
                    prop_assert!(event.is_some(), "no interrupt after {} frames", got);
                }
                let max = 1 + (choice >> (got % 53) & 63) as usize;
                rx.receive(max, |one| {
                    let mut bytes = Vec::new();
                    one.copy_to(&mut bytes);
                    assert!(bytes == frame(got, lens[got as usize]), "frame {got}");
                    got += 1;
                })
                .unwrap();
            }
            prop_assert_eq!(rx.stats().frames, lens.len() as u64);
            Ok(())
        })
        .unwrap();
}

/// Packets of all shapes, with headers within the first 144 bytes.
fn packet() -> impl Strategy<Value = Packet> {
    let lens = prop_oneof![0usize..200, 1400usize..1500, 0usize..65_000];
    let shape = (
        0usize..3,
        any::<bool>(),
        any::<bool>(),
        0usize..3,
        0usize..11,
    );
    (shape, any::<u8>(), lens, any::<u8>()).prop_map(
        |((tags, v6, udp, options, tcp_options), tcp_flags, len, salt)| Packet {
            tags,
            v6,
            udp,
            options,
            tcp_options,
            tcp_flags,
            payload: (0..len).map(|i| (i * 7 + i / 251) as u8 ^ salt).collect(),
        },
    )
}

#[test]
fn property_segmented_frames_are_seen_as_asked_in_any_parts() {
    let choices = (any::<[bool; 4]>(), any::<u64>(), 1u16..3000, 3u32..9);
    let strategy = (prop::collection::vec(packet(), 1..12), choices);
    seeds::runner(60)
        .run(&strategy, |(packets, (flags, choice, size, log))| {
            let mut offer = OFFER;
            offer.set(Features::INDIRECT_DESC, flags[0]);
            offer.set(Features::EVENT_IDX, flags[1]);
            let config = DeviceConfig {
                indirect: flags[2],
                ring_size: Some(1 << log),
                ..DeviceConfig::default()
            };
            let card = SoftCard::new(offer, 1, 256);
            let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
            let (device, mut pairs) = Device::open(function, config).unwrap();
            let tx = &mut pairs[0].tx;
            let buffer = device.buffer(1 << 17).unwrap();
            for (i, packet) in packets.iter().enumerate() {
                let frame = packet.frame();
                let mut asked = frame.clone();
                let len = asked.len();
                let offload = TxOffload::segment(&mut asked, len, size).unwrap();
                let mut whole = frame.clone();
                prop_assert!(TxOffload::checksum(&mut whole).is_some());
                prop_assert!(asked == whole, "the sum of the pseudo header is the same");
                // Copied as a whole, or cut at a place, what is behind it in memory of ours.
                let bits = choice >> (i % 50);
                let at = (bits as usize >> 3) % len;
                buffer.write(0, &asked).unwrap();
                let cut = [
                    TxPart::Bytes(&asked[..at]),
                    TxPart::Shared(buffer.slice(at, len - at).unwrap()),
                ];
                let whole = [TxPart::Bytes(&asked)];
                let parts = if bits & 1 == 1 { &cut[..] } else { &whole };
                while tx.push_parts(parts, offload).unwrap() == PushResult::Full {
                    card.run();
                }
                tx.drain(Duration::from_secs(20)).unwrap();
                let (_, bytes) = card.model().sent.pop().unwrap();
                prop_assert!(bytes[HEADER_LEN..] == asked);
                let ecn = !packet.udp && packet.tcp_flags & 0x80 != 0;
                let want = match (packet.udp, packet.v6) {
                    (true, _) => gso::UDP_L4,
                    (false, true) => gso::TCPV6,
                    (false, false) => gso::TCPV4,
                };
                prop_assert_eq!(bytes[1], want | if ecn { gso::ECN } else { 0 });
                let wire = on_the_wire(&bytes);
                let cut = packet.payload.len().div_ceil(size.into()).max(1);
                prop_assert_eq!(wire.len(), cut);
                if cut == 1 {
                    prop_assert!(wire[0] == frame, "one segment is the packet");
                }
            }
            Ok(())
        })
        .unwrap();
}
