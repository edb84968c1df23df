//! Faults of the RTL that hostile tests or review found, each as its smallest case.

use ferronic_cosim_tests::raw_driver::{Raw, RawQueue, WRITE};
use ferronic_sim::SimConfig;
use ferronic_sim::root_complex::{CreditLimit, CreditType};
use ferronic_spec::pci::bar0;
use ferronic_spec::transport::NO_VECTOR;
use ferronic_spec::{Features, window};

/// Registers that a card has only with a bit of FEATURES, by the beginning of their names.
const PARTS: [(&str, window::Field); 12] = [
    ("LRO_", window::FEATURES_LRO),
    ("TX_EMPTY", window::FEATURES_TX_EMPTY),
    ("TX_MAX_AGE", window::FEATURES_TX_EMPTY),
    ("TX_MARKER", window::FEATURES_TX_EMPTY),
    ("RSS_", window::FEATURES_STEERING),
    ("HASH_REPORT", window::FEATURES_STEERING),
    ("RX_FOLLOW", window::FEATURES_STEERING),
    ("RX_FILTER_CAPS", window::FEATURES_FILTERS),
    ("RX_FILTERED", window::FEATURES_QUEUE_COUNTERS),
    ("RX_FILTER", window::FEATURES_FILTERS),
    ("RX_VLAN", window::FEATURES_FILTERS),
    ("COAL_", window::FEATURES_COALESCING),
];

/// ferronic_window.rdl: counters read 0 after reset; they read random bits before a SNAPSHOT.
#[test]
fn window_counters_read_zero_before_the_first_snapshot() {
    let raw = Raw::new(SimConfig::default());
    let features = raw.window(window::FEATURES);
    for register in window::REGISTERS {
        if let Some(reset) = register.reset {
            let part = PARTS
                .iter()
                .find(|(name, _)| register.name.starts_with(name));
            let there = part.is_none_or(|(_, feature)| feature.get(features) == 1);
            let reset = if there { reset } else { 0 };
            assert_eq!(raw.window(register.offset), reset, "{}", register.name);
        }
    }
}

/// With idle skipping the card says idle although a buffer is there for the waiting frame.
#[test]
fn frame_that_waits_for_a_buffer_gets_it_with_idle_skipping() {
    for seed in 0..4 {
        let raw = Raw::new(SimConfig::adversarial(seed));
        let [mut rx, _tx] = raw.pair(Features::VERSION_1, 8);
        for round in 0..50_u16 {
            raw.post(&mut rx, round % 8, 0, 2048);
            raw.send(&rx);
            raw.wire.push(vec![1; 60]);
            raw.wait_used(&rx, round + 1);
        }
    }
}

#[test]
fn buffers_posted_against_a_visible_used_index_are_no_error_while_reads_are_starved() {
    for k in 0..8_u16 {
        let raw = Raw::new(SimConfig::default());
        raw.function.sim().enable_msix(9).unwrap();
        assert!(raw.negotiate(Features::VERSION_1 | Features::NOTIFICATION_DATA));
        let mut rx = RawQueue::new(&raw.function, 0, 8);
        raw.enable(&rx, 1);
        let others: Vec<_> = (1..8).map(|q| RawQueue::new(&raw.function, q, 8)).collect();
        others.iter().for_each(|q| raw.enable(q, NO_VECTOR));
        raw.driver_ok();
        for id in 0..8 {
            raw.post(&mut rx, id, usize::from(id) * 2048, 2048);
        }
        rx.publish();
        raw.set(bar0::NOTIFY, 4, 8 << 16);
        raw.run(5000);
        raw.function
            .sim()
            .root
            .starve_until(CreditType::NonPosted, u64::MAX);
        for q in 1..=k.min(7) {
            raw.kick(q);
        }
        raw.run(2000);
        for n in 0..8 {
            raw.wire.push(vec![n; 60]);
            raw.run(2000);
        }
        let used = rx.used_index();
        println!("k {k} used {used}");
        for id in 0..used {
            rx.describe(id, raw.area.iova(), 2048, WRITE, 0);
            rx.offer(id);
        }
        rx.publish();
        raw.set(bar0::NOTIFY, 4, u64::from(rx.next) << 16);
        raw.run(5000);
        assert!(!raw.needs_reset(), "a sound driver was called broken");
        raw.function
            .sim()
            .root
            .set_credits(CreditType::NonPosted, CreditLimit::default());
        raw.wait_used(&rx, 8);
    }
}

/// Bus mastering ends (command register, or D3hot) with transmit reads queued: their frames are
/// dropped faster than regs_window counts, and its assertion EventFits fails.
#[test]
fn bus_mastering_turned_off_with_transmission_under_way() {
    for d3 in [false, true] {
        for data_w in [64, 512] {
            for cycles in (0..60).map(|n| n * 37) {
                let raw = Raw::new(SimConfig {
                    data_w,
                    ..SimConfig::default()
                });
                let [_rx, mut tx] = raw.pair(Features::VERSION_1, 64);
                for id in 0..64 {
                    raw.transmit(&mut tx, id, 0, &[1; 300]);
                }
                raw.send(&tx);
                raw.run(100 + cycles);
                let mut sim = raw.function.sim();
                // A snapshot keeps the counters busy for a moment.
                sim.bar_write(0x8028, 4, 0).unwrap();
                let (at, byte) = if d3 { (0x44, 3) } else { (4, 2) };
                println!("D3 {d3}, {data_w} bits, {cycles} cycles");
                sim.config_write(at, &[byte]).unwrap();
                sim.run(5000).expect("the card runs");
            }
        }
    }
}

/// Doorbells during a queue reset fill the FIFO, the held register access keeps the data path
/// from being "drained", and the reset of the queue never ends.
#[test]
fn doorbells_during_a_queue_reset_do_not_stop_it() {
    let raw = Raw::new(SimConfig::default());
    let [_rx, mut tx] = raw.pair(Features::VERSION_1 | Features::RING_RESET, 64);
    for id in 0..64 {
        raw.transmit(&mut tx, id, 0, &[1; 1500]);
    }
    raw.send(&tx);
    raw.run(2000);
    raw.select(1);
    raw.set(0x3a, 2, 1);
    for _ in 0..40 {
        raw.kick(0);
    }
    let done = (0..1000).any(|_| raw.get(0x3a, 2) == 0);
    assert!(done, "the queue reset does not end");
}
