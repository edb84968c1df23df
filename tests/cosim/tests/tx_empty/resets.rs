//! What a driver set is gone with it.

use crate::bench::{Bench, ON};
use ferronic::pci::PciFunction;
use ferronic_cosim_tests::raw_driver::{Raw, RawQueue};
use ferronic_sim::SimConfig;
use ferronic_spec::transport::common;
use ferronic_spec::{Features, window as w};

const SETTINGS: [(u64, u32); 3] = [
    (w::TX_EMPTY, ON | 1_000),
    (w::TX_MAX_AGE, 3_000),
    (w::TX_MARKER, 1),
];

fn set_all(raw: &Raw) {
    for pair in 0..4 {
        for (register, value) in SETTINGS {
            let offset = w::BASE + register + pair * w::TX_EMPTY_STRIDE;
            raw.set(offset, 4, value.into());
        }
    }
}

/// Asserts that all queues have the settings, but those of `without`.
fn check(raw: &Raw, without: &[u64]) {
    for pair in 0..4 {
        for (register, value) in SETTINGS {
            let want = if without.contains(&pair) { 0 } else { value };
            let got = raw.window(register + pair * w::TX_EMPTY_STRIDE);
            assert_eq!(got, want, "{register:#x} of pair {pair}");
        }
    }
}

const ALL: [u64; 4] = [0, 1, 2, 3];

#[test]
fn settings_are_kept_until_a_reset() {
    for width in [64, 512] {
        let raw = Raw::new(SimConfig {
            data_w: width,
            ..SimConfig::default()
        });
        check(&raw, &ALL);
        set_all(&raw);
        check(&raw, &[]);
        // Values that are not allowed, parts of words, and rows that are not there.
        for (register, wrong) in [
            (w::TX_EMPTY, ON | 1 << 23),
            (w::TX_MAX_AGE, 1 << 23),
            (w::TX_MARKER, 2),
        ] {
            raw.set(w::BASE + register, 4, wrong.into());
            raw.set(w::BASE + register, 1, 0);
            raw.set(w::BASE + register + 4 * w::TX_EMPTY_STRIDE, 4, 1);
            assert_eq!(raw.window(register + 4 * w::TX_EMPTY_STRIDE), 0);
        }
        check(&raw, &[]);
        // Virtio's reset.
        raw.reset();
        check(&raw, &ALL);
        // FLR.
        set_all(&raw);
        raw.function.reset().expect("the card answers");
        check(&raw, &ALL);
        raw.function.sim().set_bus_master(true).expect("it answers");
        // That of one queue: of the transmit queue only.
        assert!(raw.negotiate(Features::VERSION_1 | Features::RING_RESET));
        let queues = [2, 3, 5].map(|index| RawQueue::new(&raw.function, index, 8));
        for queue in &queues {
            raw.enable(queue, 1);
        }
        raw.driver_ok();
        set_all(&raw);
        for (queue, gone) in [(2, &[] as &[u64]), (3, &[1]), (5, &[1, 2])] {
            raw.select(queue);
            raw.set(common::QUEUE_RESET, 2, 1);
            assert!((0..1000).any(|_| raw.get(common::QUEUE_RESET, 2) == 0));
            check(&raw, gone);
        }
        raw.works();
    }
}

/// A reset while the hold-off runs: nothing comes afterwards, and the next driver starts from zero.
#[test]
fn queue_that_is_reset_within_its_hold_off_is_not_told() {
    let mut bench = Bench::new(SimConfig::default(), 16);
    let features = Features::EVENT_IDX | Features::RING_RESET;
    for _ in 0..3 {
        bench = Bench::over(bench.raw, 16, features);
        bench.set(w::TX_EMPTY, ON | 5_000);
        bench.set(w::TX_MAX_AGE, 9_000);
        bench.post(3);
        bench.used();
        bench.raw.select(1);
        bench.raw.set(common::QUEUE_RESET, 2, 1);
        assert!((0..1000).any(|_| bench.raw.get(common::QUEUE_RESET, 2) == 0));
        assert_eq!(bench.told_in(50_000), 0);
        // On again, it has nothing to tell yet; then it works as ever.
        let vector = crate::bench::VECTOR;
        bench.tx = RawQueue::new(&bench.raw.function, 1, 16);
        bench.tx.set_used_event(0xfff0);
        bench.raw.enable(&bench.tx, vector);
        bench.set(w::TX_EMPTY, ON);
        bench.set(w::TX_MAX_AGE, 1_000);
        assert_eq!(bench.told_in(50_000), 0);
        bench.post(1);
        assert_eq!(bench.told_in(50_000), 1);
    }
}

/// A driver that dies with everything enabled; then one that knows of none of it.
#[test]
fn plain_driver_after_one_that_died_sees_none_of_it() {
    for flr in [false, true] {
        for when in [0, 300, 900, 2_500] {
            let mut bench = Bench::new(SimConfig::default(), 64);
            set_all(&bench.raw);
            for _ in 0..10 {
                bench.post(4);
                bench.raw.run(200);
            }
            bench.raw.run(when);
            // Dead: nobody takes anything back. A reset by whoever comes next.
            if flr {
                bench.raw.function.reset().expect("the card answers");
                let mut sim = bench.raw.function.sim();
                sim.set_bus_master(true).expect("the card answers");
            }
            bench.raw.reset();
            {
                let mut sim = bench.raw.function.sim();
                while sim.take_vector().is_some() {}
            }
            bench = Bench::over(bench.raw, 64, Features::EVENT_IDX);
            check(&bench.raw, &ALL);
            let before = (bench.causes(), bench.interrupts());
            for _ in 0..20 {
                bench.post(3);
                bench.used();
                assert_eq!(bench.told_in(5_000), 0, "told though it asked for nothing");
            }
            assert_eq!((bench.causes(), bench.interrupts()), before);
            bench.raw.works();
        }
    }
}
