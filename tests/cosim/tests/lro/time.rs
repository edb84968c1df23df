//! What is held is delivered in time, what is not held is never delayed, and what is merged changes
//! only when what was held is delivered.

use ferronic::pci::PciFunction;
use ferronic_cosim_tests::lro::{LONGEST, Receiver, Settings, steered, undone};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::stream::Traffic;
use ferronic_oracle::vectors::Arrival;
use ferronic_sim::model::WIDTHS;
use ferronic_spec::window;

use crate::bench::Bench;

/// Cycles that a delivery may come later than the time that ended it, beyond what a frame takes that
/// was never held: the look-out for timers, and the writes of the unit's header.
const SLACK: u64 = 100;

fn flow(number: u16, seq: u32) -> Segment {
    Segment {
        ports: [1000 + number, 80],
        ..Segment::v4(seq, 100)
    }
}

fn set(data_w: u32, gap: u64, hold: u64) -> Bench {
    let mut bench = Bench::new(format!("{data_w} bits"), data_w, 0);
    (bench.settings.gap, bench.settings.hold) = (gap, hold);
    bench
}

/// Sends one frame, waits for so many units, and tells how long after its last beat the last of them
/// was published.
fn delay(receiver: &mut Receiver, frame: Vec<u8>, units: usize) -> u64 {
    let count = receiver.units.len() + units;
    receiver.raw.wire.push(frame);
    let wire = receiver.raw.wire.clone();
    receiver.run_until(10_000, |sim| wire.waiting() == 0 && !sim.port.is_busy());
    let came = receiver.raw.function.sim().port.stats.last_rx;
    for _ in 0..1_000_000 {
        if receiver.units.len() >= count {
            break;
        }
        receiver.run(1);
    }
    assert_eq!(receiver.units.len(), count);
    receiver.units[count - 1].at - came
}

/// What a frame takes that is not merged.
fn usual(data_w: u32) -> u64 {
    let mut receiver = set(data_w, 10_000, 10_000).open();
    let frame = flow(0, 0).flags(flag::ACK | flag::PSH).bytes();
    (0..5)
        .map(|_| delay(&mut receiver, frame.clone(), 1))
        .max()
        .unwrap_or(0)
}

#[test]
fn lone_segment_is_delivered_within_the_gap_time() {
    for data_w in WIDTHS {
        let usual = usual(*data_w);
        for gap in [100, 1000, 12_500] {
            let mut receiver = set(*data_w, gap, 50_000).open();
            for number in 0..5 {
                let took = delay(&mut receiver, flow(number, 0).bytes(), 1);
                println!("{data_w} bits: {took} cycles with a gap of {gap}, else {usual}");
                assert!(took >= gap, "delivered before the gap time");
                assert!(took <= gap + usual + SLACK, "{took} cycles");
            }
            receiver.check();
        }
    }
}

#[test]
fn stream_is_held_no_longer_than_the_hold_time() {
    for data_w in WIDTHS {
        let usual = usual(*data_w);
        let (gap, hold) = (3000, 7000);
        let mut receiver = set(*data_w, gap, hold).open();
        let start = receiver.now() + 1000;
        let mut segment = flow(0, 0);
        let mut came = Vec::new();
        // One each 1,000 cycles, with a few that come together.
        for i in 0..60 {
            let at = start + 1000 * i;
            receiver.raw.wire.push_at(at, segment.bytes());
            came.push(at);
            segment = segment.next(100);
        }
        receiver.run(100_000);
        receiver.check();
        let mut first = 0;
        for unit in &receiver.units {
            let waited = unit.at - came[first];
            println!("{data_w} bits: {} segments, {waited} cycles", unit.segments);
            assert!(waited <= hold + usual + SLACK + 30, "{waited} cycles");
            assert!(unit.segments >= 7 || first + unit.segments == 60);
            first += unit.segments;
        }
        assert_eq!(first, 60);
    }
}

#[test]
fn contexts_end_each_at_their_time() {
    for data_w in WIDTHS {
        let usual = usual(*data_w);
        let gap = 20_000;
        let mut receiver = set(*data_w, gap, 60_000).open();
        let start = receiver.now() + 1000;
        // Sixteen at once, then at odd distances.
        let mut came = Vec::new();
        for number in 0..16_u16 {
            let at = start + u64::from(number) * u64::from(number) * 37;
            receiver.raw.wire.push_at(at, flow(number, 0).bytes());
            came.push(at);
        }
        receiver.run(60_000);
        receiver.check();
        assert_eq!(receiver.units.len(), 16);
        for (number, unit) in receiver.units.iter().enumerate() {
            assert_eq!(unit.frame, flow(number as u16, 0).bytes());
            let waited = unit.at - came[number];
            assert!(
                (gap..=gap + usual + SLACK + 200).contains(&waited),
                "{data_w} bits, flow {number}: {waited} cycles"
            );
        }
    }
}

#[test]
fn arp_icmp_syn_and_others_are_never_delayed_while_segments_are_held() {
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut icmp = flow(3, 0).bytes();
    icmp[23] = 1;
    icmp[24..26].fill(0);
    let check = !ferronic_oracle::fold(ferronic_oracle::sum(&icmp[14..34]));
    icmp[24..26].copy_from_slice(&check.to_be_bytes());
    let syn = Segment {
        payload: Vec::new(),
        ..flow(40, 0)
    }
    .flags(flag::SYN);
    let mut pure = syn.clone();
    pure.flags = flag::ACK;
    let last = flow(41, 0).flags(flag::ACK | flag::PSH).bytes();
    for data_w in WIDTHS {
        let frames = [
            arp.clone(),
            icmp.clone(),
            syn.bytes(),
            pure.bytes(),
            last.clone(),
        ];
        for (number, frame) in frames.into_iter().enumerate() {
            let delays = [0, 1, 16].map(|held| {
                let mut receiver = set(*data_w, LONGEST - 1, LONGEST - 1).open();
                // The first frame of a card finds its buffers not yet read.
                delay(&mut receiver, arp.clone(), 1);
                for flow_of in 0..held {
                    receiver.raw.wire.push(flow(flow_of, 0).bytes());
                }
                receiver.settle();
                assert_eq!(receiver.units.len(), 1);
                let took = delay(&mut receiver, frame.clone(), 1);
                receiver.check();
                took
            });
            println!("{data_w} bits, frame {number}: {delays:?} cycles with 0, 1, 16 held");
            assert!(
                delays.iter().all(|took| *took <= delays[0] + 4),
                "{delays:?}"
            );
        }
    }
}

/// Three segments of a flow, with one of another behind each.
fn mixed() -> Vec<Arrival> {
    let mut segment = flow(0, 0);
    let mut arrivals = Vec::new();
    for number in 0..3 {
        for frame in [segment.bytes(), flow(5 + number, 0).bytes()] {
            arrivals.push(Arrival {
                at: 0,
                queue: 0,
                frame,
            });
        }
        segment = segment.next(100);
    }
    arrivals
}

#[test]
fn settings_take_effect_after_what_was_held_is_delivered() {
    for data_w in WIDTHS {
        let changes = [
            (window::LRO_PROFILE, 0),
            (window::LRO_PROFILE, 2),
            (window::LRO_GAP, 7777),
            (window::LRO_HOLD, 77_777),
            (window::LRO_MAX_BYTES, 9000),
            (window::LRO_LOW_WATER, 20),
            (window::PAIRS_IN_USE, 1),
        ];
        for (register, value) in changes {
            for wait in [
                None,
                Some(0),
                Some(10),
                Some(25),
                Some(50),
                Some(80),
                Some(120),
            ] {
                let name = format!("{data_w} bits, register {register:#x} after {wait:?}");
                let mut bench = Bench::new(name, *data_w, 0);
                bench.plan.pairs = 2;
                let arrivals = steered(mixed(), 2);
                let mut receiver = bench.open();
                // The first buffers are read by then.
                receiver.run(3000);
                receiver.push(&arrivals);
                match wait {
                    Some(cycles) => receiver.run(cycles),
                    None => receiver.settle(),
                }
                receiver.raw.set(window::BASE + register, 4, value);
                let now = receiver.raw.window(register);
                receiver.collect();
                assert_eq!(u64::from(now), value, "{}", receiver.name);
                if wait.is_none() {
                    let units: Vec<usize> = receiver.units.iter().map(|u| u.segments).collect();
                    assert_eq!(units.iter().sum::<usize>(), 6, "{}", receiver.name);
                    assert_eq!(units.len(), 4, "{}", receiver.name);
                }
                receiver.settle();
                receiver.stop();
                receiver.check();
                if register != window::PAIRS_IN_USE
                    && let Err(difference) = undone(&arrivals, &receiver.units)
                {
                    receiver.fail(&difference);
                }
                assert_eq!(receiver.segments(), 6, "{}", receiver.name);
            }
        }
    }
}

#[test]
fn settings_that_are_none_change_nothing_and_deliver_nothing() {
    for data_w in WIDTHS {
        let mut receiver = Bench::new(format!("{data_w} bits"), *data_w, 0).open();
        receiver.push(&mixed());
        receiver.settle();
        let raw = &receiver.raw;
        for (register, value) in [
            (window::LRO_PROFILE, 3),
            (window::LRO_PROFILE, 4),
            (window::LRO_GAP, 0),
            (window::LRO_GAP, LONGEST),
            (window::LRO_HOLD, 0),
            (window::LRO_HOLD, LONGEST),
            (window::LRO_HOLD, u32::MAX.into()),
            (window::LRO_MAX_BYTES, 575),
            (window::LRO_MAX_BYTES, 65_536 + 576),
            (window::LRO_LOW_WATER, 65),
            (window::LRO_LOW_WATER, 1 << 7),
        ] {
            let before = raw.window(register);
            raw.set(window::BASE + register, 4, value);
            assert_eq!(raw.window(register), before, "{register:#x} {value}");
        }
        receiver.collect();
        assert_eq!(receiver.units, []);
        receiver.stop();
        assert_eq!(receiver.units.len(), 4);
        receiver.check();
    }
}

#[test]
fn settings_have_their_defaults_after_each_reset() {
    let defaults = [
        (window::LRO_PROFILE, 1),
        (window::LRO_GAP, 12_500),
        (window::LRO_HOLD, 50_000),
        (window::LRO_MAX_BYTES, 65_535),
        (window::LRO_LOW_WATER, 0),
    ];
    let receiver = Bench::new("defaults", WIDTHS[0], 0).open();
    let raw = receiver.close();
    for flr in [false, true] {
        for (register, value) in defaults {
            assert_eq!(raw.window(register), value, "{register:#x}");
        }
        Settings {
            strict: false,
            relaxed: true,
            gap: 5,
            hold: 6,
            max_bytes: 777,
            low_water: 7,
        }
        .write(&raw);
        if flr {
            raw.function.reset().expect("the FLR ends");
            raw.function
                .sim()
                .set_bus_master(true)
                .expect("the card answers");
        } else {
            raw.reset();
        }
    }
    for (register, value) in defaults {
        assert_eq!(raw.window(register), value, "{register:#x}");
    }
    assert_eq!(raw.window(window::LRO_CAPS), 64 << 16 | 16);
}

#[test]
fn skipped_time_changes_nothing() {
    for data_w in WIDTHS {
        let runs = [true, false].map(|idle_skip| {
            let mut bench = set(*data_w, 2000, 5000);
            bench.sim.idle_skip = idle_skip;
            let mut traffic = Traffic::new(9, 5, 1, 3000);
            let arrivals = steered((0..150).map(|_| traffic.arrival()), 1);
            let mut receiver = bench.open();
            let start = receiver.now();
            receiver.push_timed(&arrivals, 1);
            receiver.settle();
            receiver.run(20_000);
            receiver.check();
            let units: Vec<_> = receiver
                .units
                .iter()
                .map(|unit| (unit.at - start, unit.segments))
                .collect();
            let stats = receiver.raw.function.sim().stats();
            (units, stats.skipped)
        });
        // Deadlines are looked at in turn, so that one may be found some cycles earlier or later.
        let close = |(a, b): (&(u64, usize), &(u64, usize))| a.1 == b.1 && a.0.abs_diff(b.0) <= 32;
        let (skipped, all) = (&runs[0].0, &runs[1].0);
        assert!(
            skipped.len() == all.len() && skipped.iter().zip(all).all(close),
            "{runs:?}"
        );
        assert!(
            runs[0].1 > 20_000 && runs[1].1 == 0,
            "{} skipped",
            runs[0].1
        );
    }
}

#[test]
fn long_times_are_skipped_and_kept() {
    for data_w in WIDTHS {
        let usual = usual(*data_w);
        for gap in [1000, 100_000, 1_000_000, 2_999_850, 4_000_000, LONGEST - 1] {
            let mut receiver = set(*data_w, gap, LONGEST - 1).open();
            let mut came = Vec::new();
            for number in 0..3 {
                receiver.raw.wire.push(flow(number, 0).bytes());
                receiver.run(2000);
                came.push(receiver.raw.function.sim().port.stats.last_rx);
            }
            receiver.run(gap + 10_000);
            for (unit, came) in receiver.units.iter().zip(came) {
                let took = unit.at - came;
                println!(
                    "{data_w} bits: {took} cycles with a gap of {gap}, {} more, else {usual}",
                    took - gap
                );
                assert!(took >= gap, "delivered before the gap time");
                assert!(took <= gap + usual + SLACK, "{took} cycles");
            }
            assert_eq!(receiver.units.len(), 3);
            receiver.check();
        }
    }
}

#[test]
fn setting_while_a_frame_waits_for_buffers_lets_none_overtake_it() {
    for data_w in WIDTHS {
        for wait in (0..400).step_by(25) {
            let bench = Bench::new(format!("{data_w} bits, {wait} cycles"), *data_w, 0);
            let arrivals = steered(mixed(), 1);
            let mut receiver = bench.open();
            // No buffer was read yet.
            receiver.push(&arrivals);
            receiver.run(wait);
            receiver.stop();
            let held = receiver.closed();
            receiver.settle();
            receiver.check();
            if let Err(difference) = undone(&arrivals, &receiver.units) {
                receiver.fail(&difference);
            }
            assert_eq!(receiver.closed().opened, held.opened, "{}", receiver.name);
        }
    }
}
