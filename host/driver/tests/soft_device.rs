//! Receive and transmit against rings by `virtio-queue`.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::pci::PciFunction;
use ferronic::spec::Features;
use ferronic::spec::net::HEADER_LEN;
use ferronic::{Device, DeviceConfig, Error, PushResult, QueuePair, Wakeup};
use support::{Function, OFFER, SoftCard, frame};

const TIMEOUT: Duration = Duration::from_secs(20);

fn open(offer: Features, config: DeviceConfig) -> (Arc<SoftCard>, Device, Vec<QueuePair>) {
    let card = SoftCard::new(offer, 4, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let (device, pairs) = Device::open(function, config).unwrap();
    (card, device, pairs)
}

/// Every combination of features that changes the rings.
fn offers() -> [Features; 4] {
    [
        OFFER,
        OFFER - Features::INDIRECT_DESC,
        OFFER - Features::EVENT_IDX,
        Features::VERSION_1,
    ]
}

#[test]
fn open_reads_what_the_card_is() {
    let (_card, device, pairs) = open(
        OFFER,
        DeviceConfig {
            queue_pairs: 3,
            ..Default::default()
        },
    );
    assert_eq!(device.mac(), support::config_space::MAC);
    assert_eq!(pairs.len(), 3);
    assert_eq!(device.features(), OFFER);
    assert_eq!(device.mtu(), None);
    let link = device.link().unwrap();
    assert_eq!(
        (link.up, link.mbit_s, link.full_duplex),
        (true, Some(1000), Some(true))
    );
    assert_eq!(device.window().unwrap().pairs_in_use().unwrap(), 3);
}

#[test]
fn open_with_impossible_settings_says_so() {
    let card = SoftCard::new(OFFER, 4, 256);
    let try_open = |config| {
        let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
        Device::open(function, config).err().map(|e| e.to_string())
    };
    let default = DeviceConfig::default;
    for (config, word) in [
        (
            DeviceConfig {
                queue_pairs: 5,
                ..default()
            },
            "queue pairs",
        ),
        (
            DeviceConfig {
                queue_pairs: 0,
                ..default()
            },
            "queue pairs",
        ),
        (
            DeviceConfig {
                ring_size: Some(512),
                ..default()
            },
            "ring size",
        ),
        (
            DeviceConfig {
                ring_size: Some(100),
                ..default()
            },
            "ring size",
        ),
        (
            DeviceConfig {
                buffer_size: 127,
                ..default()
            },
            "buffer size",
        ),
        (
            DeviceConfig {
                buffer_size: 65_537,
                ..default()
            },
            "buffer size",
        ),
        (
            DeviceConfig {
                rx_chain: 0,
                ..default()
            },
            "chains",
        ),
        (
            DeviceConfig {
                rx_buffers: Some(257),
                ..default()
            },
            "receive buffers",
        ),
    ] {
        let error = try_open(config).expect("an error");
        assert!(error.contains(word), "{error}");
    }
    // And after all those errors the card still opens.
    assert_eq!(try_open(default()), None);
}

#[test]
fn transmit_every_layout_arrives_whole() {
    for offer in offers() {
        let (card, _device, mut pairs) = open(offer, DeviceConfig::default());
        let tx = &mut pairs[0].tx;
        let mut expected = Vec::new();
        for (i, len) in (0..).zip([14, 15, 60, 64, 1514, 4096, 9216]) {
            let bytes = frame(i, len);
            assert_eq!(tx.push(&bytes).unwrap(), PushResult::Queued);
            for pieces in [1, 2, 5, 16] {
                let parts: Vec<_> = bytes.chunks(len.div_ceil(pieces)).collect();
                assert_eq!(tx.push_pieces(&parts).unwrap(), PushResult::Queued);
            }
            expected.extend(vec![bytes; 5]);
            tx.drain(TIMEOUT).unwrap();
        }
        let sent = std::mem::take(&mut card.model().sent);
        let frames: Vec<_> = sent
            .iter()
            .map(|(_, bytes)| bytes[HEADER_LEN..].to_vec())
            .collect();
        assert!(frames == expected, "with {offer:?}");
        assert!(
            sent.iter()
                .all(|(queue, bytes)| *queue == 1 && bytes[..HEADER_LEN] == [0; 12])
        );
        let stats = tx.stats();
        assert_eq!((stats.frames, stats.completed), (35, 35));
    }
}

#[test]
fn transmit_of_impossible_frames_is_refused() {
    let (card, _device, mut pairs) = open(OFFER, DeviceConfig::default());
    let tx = &mut pairs[0].tx;
    for len in [0, 13, 9217] {
        assert!(matches!(
            tx.push(&frame(0, len)),
            Err(Error::FrameLength { .. })
        ));
    }
    let bytes = frame(0, 100);
    let pieces: Vec<_> = bytes.chunks(1).collect();
    assert!(matches!(
        tx.push_pieces(&pieces),
        Err(Error::Segments { .. })
    ));
    assert_eq!(tx.push(&bytes).unwrap(), PushResult::Queued);
    tx.drain(TIMEOUT).unwrap();
    assert_eq!(card.model().sent.len(), 1);
}

#[test]
fn transmit_full_ring_goes_on_after_reap() {
    for pieces in [false, true] {
        let offer = OFFER - Features::INDIRECT_DESC;
        let (card, _device, mut pairs) = open(offer, DeviceConfig::default());
        let tx = &mut pairs[0].tx;
        card.model().awake = false;
        let bytes = frame(1, 100);
        let mut queued = 0;
        let push = |tx: &mut ferronic::TxQueue| {
            if pieces {
                tx.push_pieces(&[&bytes[..14], &bytes[14..]])
            } else {
                tx.push(&bytes)
            }
        };
        while push(tx).unwrap() == PushResult::Queued {
            queued += 1;
        }
        assert_eq!(queued, if pieces { 85 } else { 256 });
        card.model().awake = true;
        card.run();
        assert_eq!(push(tx).unwrap(), PushResult::Queued);
        tx.drain(TIMEOUT).unwrap();
        assert_eq!(card.model().sent.len(), queued + 1);
    }
}

#[test]
fn receive_every_buffer_size_and_layout_arrives_whole() {
    for offer in offers() {
        for (size, offset, chain) in [
            (128, 0, 1),
            (129, 1, 1),
            (1000, 63, 3),
            (2048, 2, 1),
            (2048, 7, 16),
            (65_536, 0, 2),
        ] {
            let mergeable = offer.contains(Features::MRG_RXBUF);
            if !mergeable && size < 12 + 9216 {
                continue;
            }
            let config = DeviceConfig {
                buffer_size: size,
                buffer_offset: offset,
                rx_chain: chain,
                ring_size: Some(128),
                ..Default::default()
            };
            let (card, _device, mut pairs) = open(offer, config);
            let rx = &mut pairs[0].rx;
            let lens = [14, 60, size - 12, size - 11, 1514, 9216].map(|len| len.clamp(14, 9216));
            for round in 0..40 {
                let sent: Vec<_> = lens.iter().map(|len| frame(round, *len)).collect();
                let mut got = Vec::new();
                for one in &sent {
                    card.model().to_receive[0].push_back(one.clone());
                    card.run();
                    rx.receive(64, |frame| {
                        let mut bytes = Vec::new();
                        frame.copy_to(&mut bytes);
                        let buffers = (frame.len() + HEADER_LEN).div_ceil(size);
                        assert_eq!(usize::from(frame.num_buffers()), buffers);
                        assert_eq!(usize::from(frame.header().num_buffers.get()), buffers);
                        got.push(bytes);
                    })
                    .unwrap();
                }
                assert!(got == sent, "{size} {offset} {chain} {offer:?}");
            }
        }
    }
}

#[test]
fn receive_burst_takes_at_most_what_is_asked() {
    let (card, _device, mut pairs) = open(OFFER, DeviceConfig::default());
    let rx = &mut pairs[0].rx;
    card.model().to_receive[0].extend((0..200).map(|i| frame(i, 64)));
    card.run();
    assert_eq!(rx.receive(10, |_| {}).unwrap(), 10);
    assert_eq!(rx.receive(0, |_| {}).unwrap(), 0);
    assert_eq!(rx.receive(1000, |_| {}).unwrap(), 64);
    assert_eq!(rx.receive(64, |_| {}).unwrap(), 64);
    assert_eq!(rx.receive(64, |_| {}).unwrap(), 62);
    assert_eq!(rx.posted(), 256, "every buffer is posted again");
}

#[test]
fn indexes_wrap_past_65536_in_both_directions() {
    let config = DeviceConfig {
        ring_size: Some(64),
        ..Default::default()
    };
    let (card, _device, mut pairs) = open(OFFER, config);
    let QueuePair { rx, tx, .. } = &mut pairs[0];
    let mut received = 0u64;
    for round in 0..2100u64 {
        for i in 0..32 {
            let bytes = frame(32 * round + i, 60);
            card.model().to_receive[0].push_back(bytes.clone());
            assert_eq!(tx.push(&bytes).unwrap(), PushResult::Queued);
        }
        tx.flush().unwrap();
        card.run();
        rx.receive(64, |frame_| {
            let mut bytes = Vec::new();
            frame_.copy_to(&mut bytes);
            assert!(bytes == frame(received, 60));
            received += 1;
        })
        .unwrap();
        tx.reap().unwrap();
        for (i, (_, bytes)) in (32 * round..).zip(std::mem::take(&mut card.model().sent)) {
            assert!(bytes[HEADER_LEN..] == frame(i, 60));
        }
    }
    assert_eq!(received, 67_200);
    assert_eq!(tx.stats().completed, 67_200);
}

#[test]
fn data_path_reads_no_register_and_rings_once_a_burst() {
    for wakeup in [Wakeup::Polled, Wakeup::Interrupt] {
        let config = DeviceConfig {
            wakeup,
            ..Default::default()
        };
        let (card, _device, mut pairs) = open(OFFER, config);
        let QueuePair { rx, tx, .. } = &mut pairs[0];
        let before = card.accesses();
        for round in 0..100 {
            card.model().to_receive[0].extend((0..64).map(|i| frame(i, 200)));
            card.run();
            while rx.receive(64, |_| {}).unwrap() > 0 {}
            for i in 0..64 {
                assert_eq!(tx.push(&frame(round + i, 200)).unwrap(), PushResult::Queued);
            }
            tx.flush().unwrap();
            card.run();
            tx.reap().unwrap();
            if wakeup == Wakeup::Interrupt {
                rx.arm().unwrap();
                tx.arm().unwrap();
            }
        }
        let after = card.accesses();
        assert_eq!(
            after.reads, before.reads,
            "registers were read on the data path"
        );
        // The card is awake between bursts and asks to be told of each; receive buffers it has.
        assert_eq!(after.doorbells - before.doorbells, 100);
        assert_eq!(after.writes - before.writes, 100);
        let polled = wakeup == Wakeup::Polled;
        assert_eq!(card.model().irqs_sent == 0, polled);
    }
}

#[test]
fn doorbell_carries_the_index_if_negotiated() {
    for (offer, expected) in [
        (OFFER, 3 << 16 | 1),
        (OFFER - Features::NOTIFICATION_DATA, 1),
    ] {
        let (card, _device, mut pairs) = open(offer, DeviceConfig::default());
        let tx = &mut pairs[0].tx;
        for i in 0..3 {
            assert_eq!(tx.push(&frame(i, 60)).unwrap(), PushResult::Queued);
        }
        assert!(tx.flush().unwrap());
        assert_eq!(card.model().last_notification, Some(expected));
    }
}

#[test]
fn queues_of_several_pairs_are_independent() {
    let (card, _device, mut pairs) = open(
        OFFER,
        DeviceConfig {
            queue_pairs: 4,
            ..Default::default()
        },
    );
    for (i, pair) in pairs.iter_mut().enumerate() {
        card.model().to_receive[i].push_back(frame(i as u64, 100 + i));
        assert_eq!(
            pair.tx.push(&frame(10 + i as u64, 200)).unwrap(),
            PushResult::Queued
        );
        pair.tx.flush().unwrap();
    }
    card.run();
    for (i, pair) in pairs.iter_mut().enumerate() {
        let got = pair.rx.receive_vec(64).unwrap();
        assert_eq!(got.len(), 1);
        assert!(got[0].1 == frame(i as u64, 100 + i));
        pair.tx.drain(TIMEOUT).unwrap();
    }
    let queues: Vec<_> = card.model().sent.iter().map(|(queue, _)| *queue).collect();
    assert_eq!(queues, [1, 3, 5, 7]);
}

#[test]
fn ring_reset_starts_a_queue_again() {
    let (card, mut device, mut pairs) = open(OFFER, DeviceConfig::default());
    let QueuePair { rx, tx, .. } = &mut pairs[0];
    card.model().awake = false;
    for i in 0..100 {
        assert_eq!(tx.push(&frame(i, 60)).unwrap(), PushResult::Queued);
    }
    tx.flush().unwrap();
    device.reset_queue_tx(tx).unwrap();
    device.reset_queue_rx(rx).unwrap();
    assert_eq!(tx.outstanding(), 0);
    card.model().awake = true;
    for i in 0..300 {
        card.model().to_receive[0].push_back(frame(i, 61));
        assert_eq!(tx.push(&frame(i, 62)).unwrap(), PushResult::Queued);
        tx.drain(TIMEOUT).unwrap();
        assert!(rx.receive_vec(1).unwrap()[0].1 == frame(i, 61));
    }
    assert_eq!(card.model().sent.len(), 300);
}

#[test]
fn needs_reset_is_reported() {
    let (card, device, _pairs) = open(OFFER, DeviceConfig::default());
    device.check().unwrap();
    card.model().status |= 64;
    assert!(matches!(device.check(), Err(Error::NeedsReset)));
}

#[test]
fn close_resets_the_card_even_while_queues_live() {
    let (card, device, pairs) = open(OFFER, DeviceConfig::default());
    device.close().unwrap();
    assert_eq!(card.model().status, 0);
    drop(pairs);
    let (card, device, pairs) = open(OFFER, DeviceConfig::default());
    drop(device);
    assert_ne!(card.model().status, 0, "queues still use it");
    drop(pairs);
    assert_eq!(card.model().status, 0);
}

#[test]
fn selftest_passes_on_a_good_card() {
    let card = SoftCard::new(OFFER, 4, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let mut failed = Vec::new();
    let mut skipped = Vec::new();
    ferronic::selftest::run(
        &function,
        &DeviceConfig::default(),
        ferronic::selftest::Options::default(),
        || false,
        |check| match check.outcome {
            ferronic::selftest::Outcome::Failed(_) => failed.push(check.name),
            ferronic::selftest::Outcome::Skipped(_) => skipped.push(check.name),
            ferronic::selftest::Outcome::Passed(_) => {}
        },
    );
    // The time base and the counters of the card in software stand still.
    assert_eq!(failed, ["window", "transmit", "offload"]);
    // It has no power management, nothing comes back from its wire, and it does not merge.
    assert_eq!(skipped, ["power", "receive", "merging"]);
}
