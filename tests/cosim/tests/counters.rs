//! The counters and stamps of the card's window, compared with what the test did.

use std::collections::HashMap;

use ferronic::queue::Wakeup;
use ferronic::{CardStats, DeviceConfig, PushResult};
use ferronic_cosim_tests::card::Card;
use ferronic_sim::root_complex::{Fault, FaultRule};
use ferronic_sim::wire::WireQueue;
use ferronic_sim::{Sim, SimConfig, SimFunction};
use ferronic_spec::window as w;

/// Cycles between a frame's last beat, or its doorbell, and its count.
const PROMPT: u64 = 2_000;

fn driver(queue_pairs: u16) -> DeviceConfig {
    DeviceConfig {
        queue_pairs,
        wakeup: Wakeup::Interrupt,
        ..DeviceConfig::default()
    }
}

/// A UDP frame of one of many flows.
fn frame(len: usize, flow: u8) -> Vec<u8> {
    let mut bytes = vec![0x5a; len];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[20..22].fill(0);
    bytes[23] = 17;
    bytes[26..34].copy_from_slice(&[10, 0, 0, flow.wrapping_mul(37), 10, 0, 1, 1]);
    bytes
}

fn stats(card: &Card) -> CardStats {
    card.device.card_stats().expect("our card has counters")
}

fn counter(stats: &CardStats, name: &str) -> u32 {
    let found = stats.device.iter().find(|(n, _)| *n == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}

#[test]
fn packets_and_bytes_of_each_queue_are_those_of_the_test() {
    let mut card = Card::open(SimConfig::adversarial(21), driver(4));
    let before = stats(&card);
    let sizes = [14, 60, 64, 65, 1514, 9216];
    let mut received: HashMap<u16, (u64, u64)> = HashMap::new();
    let mut sent: HashMap<u16, (u64, u64)> = HashMap::new();
    for round in 0..10_u8 {
        for (at, len) in sizes.into_iter().enumerate() {
            // Frames too short for an address belong to no flow.
            let flow = round * 6 + at as u8;
            let bytes = if len < 34 {
                vec![flow; len]
            } else {
                frame(len, flow)
            };
            card.wire.push(bytes);
        }
        for got in card.receive_count(sizes.len()) {
            let (packets, bytes) = received.entry(2 * got.pair).or_default();
            *packets += 1;
            *bytes += got.data.len() as u64;
        }
        for pair in &mut card.pairs {
            let len = sizes[usize::from(round) % sizes.len()] + usize::from(pair.index);
            let len = len.min(9216);
            let queued = pair.tx.push(&vec![9; len]).expect("a sound frame");
            assert_eq!(queued, PushResult::Queued);
            pair.tx.flush().expect("the device behaves");
            let (packets, bytes) = sent.entry(2 * pair.index + 1).or_default();
            *packets += 1;
            *bytes += len as u64;
        }
        while card.wire.sent() < 4 * (usize::from(round) + 1) {
            card.device.poll();
            for pair in &mut card.pairs {
                pair.tx.reap().expect("the device behaves");
            }
        }
    }
    assert_eq!(received.len(), 4, "every pair received: {received:?}");
    let after = stats(&card);
    assert_eq!(after.clock_hz, 125_000_000);
    assert_eq!(after.queues.len(), 8);
    for (queue, found) in (0..).zip(&after.queues) {
        let of = if queue % 2 == 0 { &received } else { &sent };
        let expected = of[&queue];
        assert_eq!((found.packets, found.bytes), expected, "queue {queue}");
        assert_eq!(found.drops, 0, "queue {queue}");
    }
    assert_eq!(
        after.device, before.device,
        "nothing was dropped or at fault"
    );
}

#[test]
fn stamps_are_the_time_of_the_last_frame_of_each_queue() {
    // S0-R1, S0-R2: a stamp for every queue, and only the queue that was used has a new one.
    let mut card = Card::open(SimConfig::default(), driver(4));
    let fresh = stats(&card);
    assert!(fresh.queues.iter().all(|q| q.last_stamp == 0));
    let mut expected = vec![0; 8];
    // Both orders of two queues, and all of them.
    for pair in [0, 1, 1, 0, 2, 3, 0] {
        card.function.run(10_000).expect("the card runs");
        let start = card.function.now();
        let tx = &mut card.pairs[pair].tx;
        let _ = tx.push(&[3; 200]).expect("a sound frame");
        tx.flush().expect("the device behaves");
        card.function.run(PROMPT).expect("the card runs");
        assert_eq!(card.wire.take_all().len(), 1);
        tx_reap(&mut card);
        expected[2 * pair + 1] = start;
        check_stamps(&card, &expected);
    }
    for flow in 0..16 {
        card.function.run(10_000).expect("the card runs");
        let start = card.function.now();
        card.wire.push(frame(300, flow));
        card.function.run(PROMPT).expect("the card runs");
        let got = card.receive();
        assert_eq!(got.len(), 1);
        expected[2 * usize::from(got[0].pair)] = start;
        check_stamps(&card, &expected);
    }
    assert!(expected.iter().all(|stamp| *stamp > 0), "{expected:?}");
    // The device's value is the newest of its queues, found by the reader.
    let stats = stats(&card);
    let newest = stats.queues.iter().map(|q| q.last_stamp).max();
    assert!(newest.is_some_and(|stamp| stamp < stats.time));
}

fn tx_reap(card: &mut Card) {
    for pair in &mut card.pairs {
        pair.tx.reap().expect("the device behaves");
    }
}

fn check_stamps(card: &Card, expected: &[u64]) {
    let stats = stats(card);
    for (queue, (found, start)) in stats.queues.iter().zip(expected).enumerate() {
        let stamp = found.last_stamp;
        if *start == 0 {
            assert_eq!(stamp, 0, "queue {queue} was never used");
        } else {
            assert!(
                (*start..start + PROMPT).contains(&stamp),
                "queue {queue}: {stamp}, used at {start}"
            );
        }
    }
}

#[test]
fn interrupts_of_each_queue_are_those_that_were_delivered() {
    let mut card = Card::open(SimConfig::default(), driver(4));
    card.function.run(5_000).expect("the card runs");
    while card.function.sim().take_vector().is_some() {}
    let before = stats(&card);
    let mut delivered = [0_u32; 8];
    for round in 0..40_u8 {
        for pair in &mut card.pairs {
            pair.rx.arm().expect("the device behaves");
            // Not armed: completes without an interrupt.
            if round % 4 != 3 {
                pair.tx.arm().expect("the device behaves");
            }
        }
        card.wire.push(frame(100, round));
        let tx = &mut card.pairs[usize::from(round) % 4].tx;
        let _ = tx.push(&[1; 60]).expect("a sound frame");
        tx.flush().expect("the device behaves");
        card.function.run(5_000).expect("the card runs");
        while let Some(vector) = card.function.sim().take_vector() {
            delivered[usize::from(vector) - 1] += 1;
        }
        assert_eq!(card.receive().len(), 1);
        tx_reap(&mut card);
    }
    let after = stats(&card);
    let counted: Vec<u32> = after
        .queues
        .iter()
        .zip(&before.queues)
        .map(|(a, b)| a.interrupts - b.interrupts)
        .collect();
    assert_eq!(counted, delivered);
    let receive: u32 = delivered.iter().step_by(2).sum();
    assert_eq!(receive, 40, "one for each frame");
    assert!(delivered.iter().skip(1).step_by(2).all(|n| *n > 0));
}

#[test]
fn drops_are_counted_by_cause_and_by_queue() {
    let mut sim = SimConfig::default();
    sim.strap.mtu = 1500;
    let mut card = Card::open(sim, driver(1));
    card.wire.push(vec![1; 13]);
    card.wire.push(vec![1; 1]);
    card.wire.push(vec![1; 1515]);
    for _ in 0..3 {
        card.wire.push_aborted(vec![1; 100]);
    }
    card.wire.push(vec![1; 1514]);
    assert_eq!(card.receive_count(1)[0].data.len(), 1514);
    let stats = stats(&card);
    assert_eq!(counter(&stats, "rx_short"), 2);
    assert_eq!(counter(&stats, "rx_long"), 1);
    assert_eq!(counter(&stats, "rx_abort"), 3);
    for name in [
        "rx_no_buffer",
        "rx_fifo_full",
        "tx_bad_frame",
        "queue_errors",
    ] {
        assert_eq!(counter(&stats, name), 0, "{name}");
    }
    // Bad frames never reach a queue.
    assert_eq!(stats.queues[0].packets, 1);
    assert_eq!(stats.queues[0].drops, 0);
}

/// A wire that drops rather than waits.
struct Lossy(Box<ferronic_sim::wire::QueueWire>);

impl ferronic_sim::wire::Wire for Lossy {
    fn next_frame(&mut self, now: u64) -> Option<ferronic_sim::wire::RxFrame> {
        self.0.next_frame(now)
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.0.next_event(now)
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        self.0.sent(now, frame, aborted);
    }

    fn lossless(&self) -> bool {
        false
    }
}

#[test]
fn frames_without_a_buffer_are_counted_where_they_were_dropped() {
    let (wire, port) = WireQueue::new();
    let sim = Sim::with_wire(SimConfig::default(), Box::new(Lossy(port))).expect("the model");
    let function = SimFunction::new(sim).expect("the card enumerates");
    let driver = DeviceConfig {
        rx_buffers: Some(8),
        ..driver(1)
    };
    let mut card = Card::attach(function, wire, driver);
    const FRAMES: u32 = 300;
    for _ in 0..FRAMES {
        card.wire.push(vec![5; 400]);
    }
    // Nobody takes a frame: 8 are received; of the others some find the FIFO full, the rest waits
    // for a buffer, each for 12,500 cycles at most.
    card.function
        .run(FRAMES as u64 * 13_000)
        .expect("the card runs");
    assert_eq!(card.wire.waiting(), 0);
    let stats = stats(&card);
    let (queue, full) = (stats.queues[0], counter(&stats, "rx_fifo_full"));
    assert_eq!(queue.packets, 8);
    assert_eq!(queue.bytes, 8 * 400);
    assert_eq!(counter(&stats, "rx_no_buffer"), queue.drops);
    assert!(queue.drops > 0 && full > 0, "{} and {full}", queue.drops);
    assert_eq!(8 + queue.drops + full, FRAMES);
    assert_eq!(card.receive_count(8).len(), 8);
}

#[test]
fn link_errors_are_counted() {
    let mut card = Card::open(SimConfig::default(), driver(1));
    card.function.run(5_000).expect("the card runs");
    let before = stats(&card);
    // A frame whose data is refused is dropped, the ring goes on or stops: counted either way.
    card.function
        .sim()
        .root
        .faults
        .add(FaultRule::next(Fault::Poisoned, 1));
    let tx = &mut card.pairs[0].tx;
    let _ = tx.push(&[1; 60]).expect("a sound frame");
    tx.flush().expect("the device behaves");
    card.function.run(20_000).expect("the card runs");
    let after = stats(&card);
    let more = |name| counter(&after, name) - counter(&before, name);
    assert_eq!(more("pcie_poisoned"), 1);
    assert_eq!(more("pcie_timeout"), 0);
    assert_eq!(more("pcie_unexpected_cpl"), 0);
    assert_eq!(more("pcie_unsupported_req"), 0);
}

/// Reads the window as it is, without a snapshot.
fn raw(card: &Card) -> Vec<u32> {
    let mut sim = card.function.sim();
    (0..0xb0)
        .step_by(4)
        .map(|at| sim.bar_read(w::BASE + at, 4).expect("a register") as u32)
        .collect()
}

#[test]
fn reads_have_no_side_effect_and_a_snapshot_is_of_one_moment() {
    let mut card = Card::open(SimConfig::default(), driver(4));
    for flow in 0..32 {
        card.wire.push(frame(100, flow));
    }
    card.receive_count(32);
    let first = stats(&card);
    let shown = raw(&card);
    assert_eq!(shown, raw(&card), "reading changed what is read");
    // More traffic changes nothing that is shown until the next snapshot.
    for flow in 0..32 {
        card.wire.push(frame(100, flow));
    }
    card.receive_count(32);
    assert_eq!(shown, raw(&card), "changed without a snapshot");
    let second = stats(&card);
    assert!(second.time > first.time);
    for (a, b) in first.queues.iter().zip(&second.queues).step_by(2) {
        assert_eq!(b.packets, 2 * a.packets);
        assert_eq!(b.bytes, 2 * a.bytes);
    }
    // Under traffic, packets and bytes of one snapshot belong together, and stamps are not later
    // than its time.
    let mut last = 0;
    for _ in 0..50 {
        for flow in 0..4 {
            card.wire.push(frame(100, flow));
        }
        card.function.run(37).expect("the card runs");
        for queue in 0..8 {
            let window = card.device.window().expect("our card");
            let found = window.queue(queue).expect("counters");
            assert_eq!(found.bytes, found.packets * 100, "queue {queue}");
            let time = raw(&card)[8..10].to_vec();
            let time = u64::from(time[0]) | u64::from(time[1]) << 32;
            assert!(found.last_stamp <= time && time >= last);
            last = time;
        }
        card.receive();
    }
}

#[test]
fn counters_outlive_resets_and_settings_do_not() {
    let mut card = Card::open(SimConfig::default(), driver(4));
    for flow in 0..8 {
        card.wire.push(frame(80, flow));
    }
    card.receive_count(8);
    let before: u64 = stats(&card).queues.iter().map(|q| q.packets).sum();
    assert_eq!(before, 8);
    let (function, wire) = (card.function.clone(), card.wire.clone());
    drop(card);
    let card = Card::attach(function, wire, driver(1));
    let after: u64 = stats(&card).queues.iter().map(|q| q.packets).sum();
    assert_eq!(after, before);
}

#[test]
fn snapshot_of_a_queue_that_is_not_there_reads_zero() {
    let mut card = Card::open(SimConfig::default(), driver(1));
    for _ in 0..4 {
        card.wire.push(vec![1; 100]);
    }
    card.receive_count(4);
    assert_eq!(stats(&card).queues[0].packets, 4);
    let window = card.device.window().expect("our card");
    window.queue(0).expect("counters");
    let mut sim = card.function.sim();
    for queue in [8, 100, 127] {
        let at = w::BASE + w::SNAPSHOT;
        sim.bar_write(at, 4, queue).expect("a register");
        for at in (w::SNAP_PACKETS_LO..=w::SNAP_INTERRUPTS).step_by(4) {
            let value = sim.bar_read(w::BASE + at, 4).expect("a register");
            assert_eq!(value, 0, "queue {queue}, {at:#x}");
        }
    }
}

#[test]
fn card_counters_begin_at_zero() {
    for seed in [0, 21, 22, 23] {
        let sim = SimConfig {
            seed,
            ..SimConfig::default()
        };
        let card = Card::open(sim, driver(1));
        let device = stats(&card).device;
        assert!(device.iter().all(|d| d.1 == 0), "seed {seed}: {device:?}");
    }
}
