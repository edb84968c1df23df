//! The device as virtio 1.2 describes it: status, features, queues, configuration.

use ferronic_cosim_tests::raw_driver::{NEXT, Raw, RawQueue, WRITE, read, write};
use ferronic_sim::{SimConfig, Strap};
use ferronic_spec::pci::bar0;
use ferronic_spec::transport::{NO_VECTOR, Status, common};
use ferronic_spec::{Features, window};

const QUEUES: u16 = 8;
const VECTORS: u16 = QUEUES + 1;

fn raw() -> Raw {
    Raw::new(SimConfig::default())
}

fn status(bits: u8) -> Status {
    Status::from_bits_retain(bits)
}

#[test]
fn reset_values_of_the_common_structure() {
    let raw = raw();
    assert!(raw.status().is_empty());
    assert_eq!(raw.get(common::NUM_QUEUES, 2), u64::from(QUEUES));
    assert_eq!(raw.get(common::CONFIG_MSIX_VECTOR, 2), u64::from(NO_VECTOR));
    for queue in 0..QUEUES {
        raw.select(queue);
        assert_eq!(raw.get(common::QUEUE_SELECT, 2), u64::from(queue));
        assert_eq!(raw.get(common::QUEUE_SIZE, 2), 256);
        assert_eq!(raw.get(common::QUEUE_MSIX_VECTOR, 2), u64::from(NO_VECTOR));
        assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0);
        assert_eq!(raw.get(common::QUEUE_NOTIFY_OFF, 2), u64::from(queue));
        assert_eq!(raw.get(common::QUEUE_RESET, 2), 0);
        for register in [
            common::QUEUE_DESC,
            common::QUEUE_DRIVER,
            common::QUEUE_DEVICE,
        ] {
            assert_eq!(raw.get(register, 8), 0);
        }
    }
    // A queue that does not exist has size 0.
    for queue in [QUEUES, 9, 0x100, 0xffff] {
        raw.select(queue);
        assert_eq!(raw.get(common::QUEUE_SIZE, 2), 0, "queue {queue}");
        assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0);
    }
}

#[test]
fn offer_is_what_the_card_can_do_masked_by_the_strap() {
    let card = raw().card();
    let without_mtu = card - Features::MTU;
    assert_eq!(raw().offered(), without_mtu);
    for features in [Features::VERSION_1, card - Features::EVENT_IDX] {
        let mut config = SimConfig::default();
        config.strap.features = features.bits();
        assert_eq!(Raw::new(config).offered(), features - Features::MTU);
    }
    let mut config = SimConfig::default();
    config.strap.mtu = 1500;
    assert_eq!(Raw::new(config).offered(), card);
    // Nothing is offered without what it needs (virtio 1.3, "Feature Bits").
    let tso = Features::HOST_TSO4 | Features::HOST_TSO6;
    for (missing, gone) in [
        (Features::CSUM, Features::TX_OFFLOADS),
        (tso, tso | Features::HOST_ECN),
        (Features::GUEST_CSUM, Features::GUEST_CSUM | Features::LRO),
    ] {
        let mut config = SimConfig::default();
        config.strap.features = (card - missing).bits();
        assert_eq!(Raw::new(config).offered(), without_mtu - gone);
    }
}

#[test]
fn feature_select_above_one_reads_zero_and_takes_nothing() {
    let raw = raw();
    raw.set_status(Status::ACKNOWLEDGE | Status::DRIVER);
    raw.accept(Features::VERSION_1);
    for select in [2, 3, 4, 0x100, 0x1_0001, u64::from(u32::MAX)] {
        raw.set(common::DEVICE_FEATURE_SELECT, 4, select);
        assert_eq!(raw.get(common::DEVICE_FEATURE_SELECT, 4), select);
        assert_eq!(raw.get(common::DEVICE_FEATURE, 4), 0, "select {select:#x}");
        raw.set(common::DRIVER_FEATURE_SELECT, 4, select);
        raw.set(common::DRIVER_FEATURE, 4, 0xffff_ffff);
        assert_eq!(raw.get(common::DRIVER_FEATURE, 4), 0, "select {select:#x}");
    }
    assert_eq!(raw.accepted(), Features::VERSION_1);
}

#[test]
fn features_ok_only_for_a_subset_with_version_1() {
    let raw = raw();
    let offered = raw.offered();
    assert!(raw.negotiate(offered));
    assert!(raw.negotiate(Features::VERSION_1));
    assert!(!raw.negotiate(offered - Features::VERSION_1));
    assert!(!raw.negotiate(Features::empty()));
    for bit in 0..64 {
        let feature = Features::from_bits_retain(1 << bit);
        let agreed = raw.negotiate(Features::VERSION_1 | feature);
        let alone = Features::HOST_SEGMENTATION | Features::HOST_ECN | Features::LRO;
        let wanted = offered.contains(feature) && !alone.contains(feature);
        assert_eq!(agreed, wanted, "bit {bit}");
    }
    // Segmentation needs CSUM, HOST_ECN needs segmentation of TCP.
    for feature in Features::HOST_SEGMENTATION.iter() {
        let feature = feature | Features::CSUM | Features::VERSION_1;
        assert!(raw.negotiate(feature), "{feature:?}");
        let wanted = !feature.contains(Features::HOST_USO);
        assert_eq!(raw.negotiate(feature | Features::HOST_ECN), wanted);
        assert!(!raw.negotiate((feature | Features::HOST_ECN) - Features::CSUM));
    }
    // Merged TCP needs GUEST_CSUM, and a card that merges.
    for feature in Features::LRO.iter().chain([Features::LRO]) {
        let feature = feature | Features::VERSION_1;
        assert!(!raw.negotiate(feature), "{feature:?}");
        assert!(!raw.negotiate(feature | Features::CSUM), "{feature:?}");
        let agreed = raw.negotiate(feature | Features::GUEST_CSUM);
        assert_eq!(agreed, raw.has_lro(), "{feature:?}");
    }
    // A refusal is not the end: the driver may choose again.
    assert!(!raw.negotiate(Features::MQ | Features::VERSION_1));
    raw.accept(Features::VERSION_1);
    raw.set_status(status(11));
    assert_eq!(raw.status(), status(11));
}

#[test]
fn features_are_fixed_after_features_ok() {
    let raw = raw();
    assert!(raw.negotiate(Features::VERSION_1));
    raw.accept(Features::all());
    assert_eq!(raw.accepted(), Features::VERSION_1);
    raw.accept(Features::empty());
    assert_eq!(raw.accepted(), Features::VERSION_1);
    raw.reset();
    assert_eq!(raw.accepted(), Features::empty());
}

#[test]
fn status_bits_are_added_and_only_a_reset_clears_them() {
    let raw = raw();
    assert!(raw.negotiate(Features::VERSION_1));
    raw.driver_ok();
    assert_eq!(raw.status(), status(15));
    raw.set_status(Status::ACKNOWLEDGE);
    assert_eq!(raw.status(), status(15), "a bit was cleared by a write");
    // DEVICE_NEEDS_RESET belongs to the device.
    raw.set_status(Status::NEEDS_RESET | status(15));
    assert_eq!(raw.status(), status(15));
    raw.set_status(Status::FAILED | status(15));
    assert_eq!(raw.status(), status(0x8f));
    raw.reset();
    assert!(raw.status().is_empty());
}

#[test]
fn queue_is_enabled_only_after_features_ok_and_then_fixed() {
    let raw = raw();
    raw.select(0);
    raw.set(common::QUEUE_ENABLE, 2, 1);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0, "without any status");
    raw.set_status(Status::ACKNOWLEDGE | Status::DRIVER);
    raw.set(common::QUEUE_ENABLE, 2, 1);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0, "before FEATURES_OK");

    assert!(raw.negotiate(Features::VERSION_1));
    let queue = RawQueue::new(&raw.function, 3, 64);
    raw.enable(&queue, NO_VECTOR);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 1);
    // Neither size nor addresses change while it is enabled, and it cannot be disabled by 0.
    raw.set(common::QUEUE_SIZE, 2, 32);
    raw.set(common::QUEUE_DESC, 4, 0x1234_0000);
    raw.set(common::QUEUE_ENABLE, 2, 0);
    assert_eq!(raw.get(common::QUEUE_SIZE, 2), 64);
    assert_eq!(raw.get(common::QUEUE_DESC, 8), queue.desc.iova());
    assert_eq!(raw.get(common::QUEUE_DRIVER, 8), queue.avail.iova());
    assert_eq!(raw.get(common::QUEUE_DEVICE, 8), queue.used.iova());
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 1);
    // The others are as they were, and a reset ends it.
    raw.select(2);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0);
    raw.reset();
    raw.select(3);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0);
    assert_eq!(raw.get(common::QUEUE_SIZE, 2), 256);
    assert_eq!(raw.get(common::QUEUE_DESC, 8), 0);
}

#[test]
fn queue_size_may_be_lowered_to_a_power_of_two() {
    let raw = raw();
    assert!(raw.negotiate(Features::VERSION_1));
    raw.select(1);
    for size in [1, 2, 64, 128, 256_u64] {
        raw.set(common::QUEUE_SIZE, 2, size);
        assert_eq!(raw.get(common::QUEUE_SIZE, 2), size);
    }
    for size in [0, 3, 100, 255, 257, 512, 0x8000, 0xffff_u64] {
        raw.set(common::QUEUE_SIZE, 2, size);
        assert_eq!(raw.get(common::QUEUE_SIZE, 2), 256, "after {size}");
    }
}

#[test]
fn unknown_vector_reads_back_no_vector() {
    let raw = raw();
    for register in [common::CONFIG_MSIX_VECTOR, common::QUEUE_MSIX_VECTOR] {
        raw.select(2);
        for vector in 0..VECTORS {
            raw.set(register, 2, vector.into());
            assert_eq!(raw.get(register, 2), u64::from(vector));
        }
        for vector in [VECTORS, 10, 0x100, 0x7ff, 0x800, 0xfffe, 0xffff] {
            raw.set(register, 2, 1);
            raw.set(register, 2, vector.into());
            assert_eq!(
                raw.get(register, 2),
                u64::from(NO_VECTOR),
                "vector {vector}"
            );
        }
    }
}

#[test]
fn device_configuration_layout() {
    let strap = Strap {
        mac: [0x02, 0x11, 0x22, 0x33, 0x44, 0x55],
        speed_mbps: 25_000,
        mtu: 9000,
        ..Strap::default()
    };
    for link_up in [true, false] {
        let strap = Strap { link_up, ..strap };
        let raw = Raw::new(SimConfig {
            strap,
            ..SimConfig::default()
        });
        let get = |offset, len| raw.get(bar0::DEVICE + offset, len);
        for (at, byte) in strap.mac.iter().enumerate() {
            assert_eq!(get(at as u64, 1), u64::from(*byte));
        }
        assert_eq!(get(6, 2), u64::from(link_up));
        assert_eq!(get(8, 2), 1, "max_virtqueue_pairs without MQ");
        assert_eq!(get(10, 2), 9000);
        assert_eq!(get(12, 4), if link_up { 25_000 } else { 0xffff_ffff });
        assert_eq!(get(16, 1), if link_up { 1 } else { 0xff });
        // It cannot be written.
        raw.set(bar0::DEVICE, 4, 0);
        raw.set(bar0::DEVICE + 8, 8, 0);
        assert_eq!(get(0, 4), 0x3322_1102);
        assert_eq!(get(10, 2), 9000);
    }
}

#[test]
fn frames_above_the_offered_mtu_are_dropped_and_counted() {
    let mut config = SimConfig::default();
    config.strap.mtu = 1500;
    let raw = Raw::new(config);
    let [mut rx, _tx] = raw.pair(Features::VERSION_1 | Features::MTU, 8);
    for id in 0..8 {
        raw.post(&mut rx, id, usize::from(id) * 4096, 4096);
    }
    raw.send(&rx);
    for len in [1514, 1515, 1600, 9000, 1513] {
        raw.wire.push(vec![0x5a; len]);
    }
    raw.wait_used(&rx, 2);
    raw.run(5000);
    assert_eq!(rx.take_used(), [(0, 1526), (1, 1525)]);
    assert_eq!(raw.counter(window::RX_LONG), 3);
}

#[test]
fn reset_reads_zero_only_after_dma_has_drained() {
    for cycles in (0..40).map(|n| n * 37) {
        let raw = Raw::new(SimConfig {
            seed: cycles,
            ..SimConfig::default()
        });
        raw.function.sim().root.config.read_latency = 900;
        let [mut rx, mut tx] = raw.pair(Features::VERSION_1, 64);
        for id in 0..64 {
            raw.post(&mut rx, id, usize::from(id) * 2048, 2048);
            raw.transmit(&mut tx, id, 0x4_0000 + usize::from(id) * 2048, &[7; 1000]);
            raw.wire.push(vec![9; 1000]);
        }
        raw.send(&rx);
        raw.send(&tx);
        raw.run(1000 + cycles);
        raw.set_status(Status::empty());
        let (mut tag, mut before) = (None, raw.function.sim().root.stats);
        loop {
            // Looked at when the completion arrives: whatever reads 0 tells of a silent card.
            let mut sim = raw.function.sim();
            let now = sim.now();
            let bar = sim.function().expect("enumerated").bar.address;
            let read =
                *tag.get_or_insert_with(|| sim.root.read(now, bar + common::DEVICE_STATUS, 1));
            let mut done = None;
            sim.run_until(200_000, |sim| {
                done = sim.root.take_completion(read);
                if done.is_none() {
                    before = sim.root.stats;
                }
                done.is_some()
            })
            .expect("the card runs");
            tag = None;
            let done = done.expect("the status can be read");
            assert_eq!(done.status, 0);
            if done.data[0] == 0 {
                assert!(
                    sim.root.dma_drained(),
                    "DMA in flight after {cycles} cycles"
                );
                let reads = sim.root.stats.up_reads.tlps;
                sim.run(5000).expect("the card runs");
                let after = sim.root.stats.since(&before);
                assert_eq!(sim.root.stats.up_reads.tlps, reads);
                assert_eq!(after.up_writes.tlps, 0, "a write after the reset");
                break;
            }
        }
    }
}

#[test]
fn queue_reset_clears_one_queue_and_it_can_be_used_again() {
    let raw = raw();
    let [mut rx, mut tx] = raw.pair(Features::VERSION_1 | Features::RING_RESET, 16);
    raw.post(&mut rx, 0, 0, 2048);
    raw.send(&rx);
    for round in 0..4_u16 {
        raw.transmit(&mut tx, round, 0x8000, &[round as u8; 60]);
        raw.send(&tx);
        raw.wait_used(&tx, round + 1);
    }
    raw.select(1);
    raw.set(common::QUEUE_RESET, 2, 1);
    let done = (0..1000).any(|_| raw.get(common::QUEUE_RESET, 2) == 0);
    assert!(done, "the queue reset does not end");
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0);
    assert_eq!(raw.get(common::QUEUE_SIZE, 2), 256);
    raw.select(0);
    assert_eq!(
        raw.get(common::QUEUE_ENABLE, 2),
        1,
        "the other queue was reset too"
    );
    assert_eq!(raw.get(common::QUEUE_SIZE, 2), 16);
    // Other memory, another size; indexes begin at 0 again.
    let mut again = RawQueue::new(&raw.function, 1, 4);
    raw.enable(&again, NO_VECTOR);
    raw.transmit(&mut again, 2, 0x8000, &[0x77; 70]);
    raw.send(&again);
    raw.wait_used(&again, 1);
    assert_eq!(again.take_used(), [(2, 0)]);
    assert_eq!(tx.used_index(), 4, "the old ring was written");
    // The receive buffer of before is still there.
    raw.wire.push(vec![3; 100]);
    raw.wait_used(&rx, 1);
    assert_eq!(rx.take_used(), [(0, 112)]);
    let sent: Vec<_> = raw.wire.take_all().iter().map(|f| f.data[0]).collect();
    assert_eq!(sent, [0, 1, 2, 3, 0x77]);
}

#[test]
fn queue_reset_without_the_feature_does_nothing() {
    let raw = raw();
    let [_rx, _tx] = raw.pair(Features::VERSION_1, 16);
    raw.select(1);
    raw.set(common::QUEUE_RESET, 2, 1);
    assert_eq!(raw.get(common::QUEUE_RESET, 2), 0);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 1);
}

#[test]
fn mergeable_buffers_are_filled_to_the_end_and_published_at_once() {
    let raw = raw();
    let [mut rx, _tx] = raw.pair(Features::VERSION_1 | Features::MRG_RXBUF, 16);
    // Buffers of 300 bytes, each of three descriptors that do not lie in order.
    for id in 0..5_u16 {
        let at = u64::from(id) * 1024 + raw.area.iova();
        let parts = [id, 15 - 2 * id, 14 - 2 * id];
        rx.describe(parts[0], at, 7, WRITE | NEXT, parts[1]);
        rx.describe(parts[1], at + 7, 193, WRITE | NEXT, parts[2]);
        rx.describe(parts[2], at + 200, 100, WRITE, 0xffff);
        rx.offer(id);
    }
    raw.send(&rx);
    let frame: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
    raw.wire.push(frame.clone());
    let mut steps = Vec::new();
    raw.function
        .sim()
        .run_until(100_000, |_| {
            if steps.last() != Some(&rx.used_index()) {
                steps.push(rx.used_index());
            }
            rx.used_index() == 4
        })
        .expect("the card runs");
    assert_eq!(steps, [0, 4], "part of a frame was visible");
    assert_eq!(rx.take_used(), [(0, 300), (1, 300), (2, 300), (3, 112)]);
    let mut got = Vec::new();
    for id in 0..4 {
        got.extend(read(&raw.area, id * 1024, 300));
    }
    assert_eq!(&got[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    assert_eq!(got[12..1012], frame);
    assert_eq!(read(&raw.area, 3 * 1024 + 112, 188), [0; 188]);
}

#[test]
fn doorbell_data_carries_the_index_so_it_is_not_read() {
    let raw = raw();
    let features = Features::VERSION_1 | Features::NOTIFICATION_DATA;
    let [_rx, mut tx] = raw.pair(features, 16);
    raw.run(5000);
    raw.transmit(&mut tx, 3, 0, &[1; 60]);
    // The index in memory stays 0: only the doorbell tells.
    write(&tx.avail, 2, &[0, 0]);
    raw.set(bar0::NOTIFY + 4, 4, 1 << 16 | 1);
    raw.wait_used(&tx, 1);
    assert_eq!(tx.take_used(), [(3, 0)]);
}
