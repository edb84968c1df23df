//! The ring-empty interrupt, max-age and markers on the whole card.

mod bench;
mod race;
mod resets;

use bench::{Bench, LONGEST, ON, SOON};
use ferronic_cosim_tests::raw_driver::{NEXT, write};
use ferronic_sim::SimConfig;
use ferronic_spec::{Features, window as w};

/// Flag of a descriptor that marks its buffer, as TX_EMPTY_CAPS says.
const MARKER: u16 = 1 << 14;

fn wide() -> SimConfig {
    SimConfig {
        data_w: 512,
        ..SimConfig::default()
    }
}

#[test]
fn card_says_that_it_has_it_and_how_to_mark() {
    let bench = Bench::new(SimConfig::default(), 8);
    assert!(bench.raw.has_tx_empty());
    let caps = bench.raw.window(w::TX_EMPTY_CAPS);
    assert_eq!(1 << w::TX_EMPTY_CAPS_MARKER_FLAG.get(caps), MARKER);
}

#[test]
fn one_packet_only_is_told_after_the_hold_off() {
    for config in [SimConfig::default(), wide()] {
        let mut bench = Bench::new(config, 256);
        for (round, holdoff) in [0, 1, 100, 6_250, 100_000].into_iter().enumerate() {
            bench.set(w::TX_EMPTY, ON | holdoff);
            bench.post(1);
            let used = bench.used();
            let (told, _) = bench.told_within(200_000).expect("an interrupt");
            let took = told - used;
            let holdoff = u64::from(holdoff);
            println!("hold-off {holdoff}: {} cycles more", took - holdoff);
            assert!(
                (holdoff..holdoff + SOON).contains(&took),
                "{took} cycles with a hold-off of {holdoff}"
            );
            assert_eq!(bench.told_in(300_000), 0, "told twice");
            let count = round as u32 + 1;
            assert_eq!(bench.causes(), [count, 0, 0, 0]);
            assert_eq!(bench.interrupts(), count);
        }
    }
}

#[test]
fn last_of_a_burst_is_told_and_none_before_it() {
    let mut bench = Bench::new(SimConfig::default(), 256);
    for (holdoff, size) in [(0, 20), (6_250, 3), (6_250, 200)] {
        bench.set(w::TX_EMPTY, ON | holdoff);
        bench.post(size);
        let (_, used) = bench.told_within(50_000).expect("an interrupt");
        assert_eq!(used, bench.tx.next, "told before the last was used");
        assert_eq!(bench.told_in(50_000), 0);
    }
    assert_eq!(bench.causes(), [3, 0, 0, 0]);
}

/// Bug-log rows 2 and 3: transmission alone, and a driver that stops when the ring is full.
#[test]
fn full_ring_whose_driver_waits_is_told_each_time() {
    for (empty, age) in [(ON, 0), (ON | 1_000, 0), (0, 2_000), (ON | 6_250, 25_000)] {
        let mut bench = Bench::new(SimConfig::default(), 8);
        bench.set(w::TX_EMPTY, empty);
        bench.set(w::TX_MAX_AGE, age);
        for round in 1..=40 {
            bench.post(8);
            // It does nothing until it is told, and then all is there.
            let (_, mut used) = bench.told_within(40_000).expect("an interrupt");
            while used != bench.tx.next {
                let more = bench.told_within(40_000).expect("the rest, too");
                used = more.1;
            }
            if age == 0 {
                assert_eq!(bench.causes()[0], round);
            }
        }
        assert_eq!(bench.told_in(100_000), 0);
    }
}

#[test]
fn suppressed_or_not_virtios_own_interrupt_reports_everything() {
    for features in [Features::empty(), Features::EVENT_IDX] {
        let mut bench = Bench::with(SimConfig::default(), 64, features);
        bench.set(w::TX_EMPTY, ON | 2_000);
        bench.set(w::TX_MAX_AGE, 9_000);
        // Notifications off: told by the ring being empty.
        bench.post(3);
        assert_eq!(bench.told_in(50_000), 1);
        assert_eq!(bench.causes(), [1, 0, 0, 0]);
        // On: told by virtio's means at once, and not again.
        bench.tx.set_flags(0);
        bench.tx.set_used_event(bench.tx.next);
        bench.post(1);
        let used = bench.used();
        let (told, _) = bench.told_within(5_000).expect("an interrupt");
        assert!(told - used < SOON);
        assert_eq!(bench.told_in(50_000), 0);
        assert_eq!(bench.causes(), [1, 0, 0, 0]);
        assert_eq!(bench.interrupts(), 2);
    }
}

#[test]
fn post_begins_the_hold_off_anew() {
    let mut bench = Bench::new(SimConfig::default(), 64);
    bench.set(w::TX_EMPTY, ON | 5_000);
    for _ in 0..20 {
        bench.post(1);
        assert_eq!(bench.told_in(4_000), 0, "told within the hold-off");
    }
    bench.post(1);
    let used = bench.used();
    let (told, _) = bench.told_within(50_000).expect("an interrupt");
    assert!((5_000..5_000 + SOON).contains(&(told - used)));
    assert_eq!(bench.causes(), [1, 0, 0, 0]);
}

/// S2-R4: without max-age a queue that never runs empty is told of nothing; with it, of everything
/// in time, and not more often.
#[test]
fn queue_that_never_runs_empty_is_told_by_max_age() {
    for (config, age) in [
        (SimConfig::default(), 0),
        (SimConfig::default(), 5_000),
        (SimConfig::default(), 25_000),
        (wide(), 5_000),
    ] {
        let mut bench = Bench::new(config, 256);
        bench.set(w::TX_EMPTY, ON);
        bench.set(w::TX_MAX_AGE, age);
        bench.post(64);
        let begin = bench.raw.function.now();
        // When each used index was first seen without an interrupt after it.
        let mut oldest: Option<u64> = None;
        let (mut seen, mut told, mut worst) = (0u16, 0u64, 0);
        while bench.raw.function.now() - begin < 200_000 {
            let count = 64 - bench.outstanding();
            assert!(count < 60, "it ran empty");
            if count >= 16 {
                bench.post(count);
            }
            let mut sim = bench.raw.function.sim();
            sim.run_until(40, |sim| sim.root.has_message())
                .expect("the card runs");
            let now = sim.now();
            if sim.take_vector().is_some() {
                told += 1;
                worst = worst.max(oldest.take().map_or(0, |oldest| now - oldest));
                seen = bench.tx.used_index();
            } else if bench.tx.used_index() != seen {
                oldest.get_or_insert(now);
            }
        }
        let frames = bench.tx.used_index();
        println!("max-age {age}: {frames} frames, {told} interrupts, {worst} cycles at most");
        let causes = bench.causes();
        if age == 0 {
            assert_eq!((told, causes), (0, [0; 4]), "told though never empty");
            continue;
        }
        let age = u64::from(age);
        assert!(worst < age + SOON, "told {worst} cycles late");
        // From entry to interrupt takes at least max-age: no storm.
        assert!((200_000 / (age + SOON) - 1..=200_000 / age).contains(&told));
        assert_eq!(causes[0] + causes[1], told as u32);
        assert_eq!(causes[0], 0);
        // It stops: the rest is told of.
        let used = bench.used();
        let (last, at) = bench.told_within(age + 1_000).expect("the last");
        assert!(at == bench.tx.next && last <= used + SOON);
    }
}

/// S2-R5: the shape of the thread's table, one interrupt a packet for request and response.
#[test]
fn request_and_response_take_one_interrupt_each() {
    let mut bench = Bench::new(SimConfig::default(), 256);
    bench.set(w::TX_EMPTY, ON);
    bench.set(w::TX_MAX_AGE, 25_000);
    for _ in 0..300 {
        bench.post(1);
        assert_eq!(bench.told_in(3_000), 1);
    }
    assert_eq!(bench.causes(), [300, 0, 0, 0]);
}

#[test]
fn turned_on_late_what_is_unreported_is_told() {
    let mut bench = Bench::new(SimConfig::default(), 64);
    bench.post(5);
    assert_eq!(bench.told_in(400_000), 0);
    let told = |bench: &Bench, register, value| {
        let begin = bench.raw.function.now();
        bench.set(register, value);
        let told = bench.told_within(100_000);
        told.map(|(told, _)| told - begin)
    };
    let took = told(&bench, w::TX_EMPTY, ON | 3_000).expect("an interrupt");
    assert!((3_000..3_000 + SOON).contains(&took), "{took} cycles");
    // Nothing is left to tell.
    assert_eq!(told(&bench, w::TX_EMPTY, ON), None);
    assert_eq!(told(&bench, w::TX_MAX_AGE, 100), None);
    bench.set(w::TX_EMPTY, 0);
    bench.set(w::TX_MAX_AGE, 0);
    bench.post(2);
    assert_eq!(bench.told_in(400_000), 0);
    let took = told(&bench, w::TX_MAX_AGE, 7_000).expect("an interrupt");
    assert!((7_000..7_000 + SOON).contains(&took), "{took} cycles");
    assert_eq!(bench.causes(), [1, 1, 0, 0]);
}

#[test]
fn max_age_that_is_changed_while_it_runs_does_not_begin_anew() {
    let mut bench = Bench::new(SimConfig::default(), 64);
    bench.set(w::TX_MAX_AGE, 50_000);
    bench.post(1);
    let used = bench.used();
    for age in [40_000, 45_000, 50_000] {
        assert_eq!(bench.told_in(8_000), 0);
        bench.set(w::TX_MAX_AGE, age);
    }
    bench.set(w::TX_MAX_AGE, 30_000);
    let (told, _) = bench.told_within(50_000).expect("an interrupt");
    assert!((29_000..30_000 + SOON).contains(&(told - used)));
}

#[test]
fn marked_buffer_is_told_of_when_it_is_used() {
    for config in [SimConfig::default(), wide()] {
        let mut bench = Bench::new(config, 64);
        let mark = |bench: &mut Bench, flags: [u16; 2]| {
            // A chain of two: header, then frame.
            let id = bench.tx.next % 32 * 2;
            let at = usize::from(id) * 512;
            write(&bench.raw.area, at, &[0; 80]);
            let address = bench.raw.area.iova() + at as u64;
            bench.tx.describe(id, address, 12, NEXT | flags[0], id + 1);
            bench.tx.describe(id + 1, address + 12, 60, flags[1], 0);
            bench.tx.offer(id);
        };
        for (on, flags, told) in [
            (0, [MARKER, 0], 0),
            (1, [0, 0], 0),
            (1, [MARKER, 0], 1),
            // Only the first descriptor counts.
            (1, [0, MARKER], 0),
            // What was used while it was off stays untold.
            (0, [MARKER, 0], 0),
            (1, [0, 0], 0),
        ] {
            bench.set(w::TX_MARKER, on);
            let marked = bench.tx.next + 4;
            for i in 0..8 {
                mark(&mut bench, if i == 3 { flags } else { [0; 2] });
            }
            bench.raw.send(&bench.tx);
            if told == 1 {
                let (_, used) = bench.told_within(50_000).expect("an interrupt");
                assert!(used >= marked, "told before it was used");
            }
            assert_eq!(bench.told_in(50_000), 0);
            bench.used();
        }
        assert_eq!(bench.causes(), [0, 0, 1, 0]);
        assert_eq!(bench.raw.wire.take_all().len(), 48);
        // Each of many, one after the other.
        bench.set(w::TX_MARKER, 1);
        for _ in 0..10 {
            mark(&mut bench, [MARKER, 0]);
            bench.raw.send(&bench.tx);
            assert_eq!(bench.told_in(4_000), 1);
        }
        assert_eq!(bench.causes(), [0, 0, 11, 0]);
    }
}

/// The simulator skips what is idle, and yet nothing is late.
#[test]
fn longest_hold_off_costs_no_cycles_and_ends_when_it_should() {
    for (empty, age) in [(ON | LONGEST, 0), (0, LONGEST), (ON | LONGEST, LONGEST)] {
        let mut bench = Bench::new(SimConfig::default(), 8);
        bench.set(w::TX_EMPTY, empty);
        bench.set(w::TX_MAX_AGE, age);
        bench.post(1);
        let used = bench.used();
        let before = bench.raw.function.sim().stats().evaluated;
        let (told, _) = bench.told_within(20_000_000).expect("an interrupt");
        let took = told - used;
        let longest = u64::from(LONGEST);
        // Max-age runs from a little before the entry is seen in memory.
        assert!(
            (longest - 200..longest + SOON).contains(&took),
            "{took} cycles"
        );
        let evaluated = bench.raw.function.sim().stats().evaluated - before;
        assert!(evaluated < 5_000, "{evaluated} cycles were evaluated");
    }
}
