//! Completion of transmitted frames on the whole card: the bounds of the default policy, and what no
//! policy may do. Small versions of `cargo xtask bench completion`.

use std::time::Duration;

use ferronic::completion::{CompletionPolicy, HOLDOFF, MAX_AGE, Progress, Push};
use ferronic::{PushResult, TxOffload, TxPart};
use ferronic_cosim_tests::completion::{
    Conditions, Cost, DATAGRAM, Host, Kind, Order, Outcome, RING, Workload, fairness, frame,
};
use ferronic_sim::SimConfig;

/// Beyond max-age, for the interrupt and the host: 10 us.
const MARGIN_US: f64 = 10.0;
const US: u64 = 125;

fn under(policy: CompletionPolicy) -> Conditions {
    Conditions {
        policy,
        cost: Cost::recorded(),
        peer: 5 * US,
        send_buffer: None,
    }
}

fn default() -> Conditions {
    under(CompletionPolicy::DEFAULT)
}

fn bound_us() -> f64 {
    MAX_AGE.as_micros() as f64 + MARGIN_US
}

fn named(name: &str) -> CompletionPolicy {
    name.parse().expect("a policy")
}

/// A host whose peer keeps what comes.
fn host(conditions: &Conditions) -> Host {
    let host = Host::open(conditions).expect("this card has all policies");
    host.peer.keep();
    host
}

fn queue(host: &mut Host, count: u32, len: usize) {
    let id = host.port.open(1 << 20);
    for number in 0..count {
        let bytes = frame(Kind::Datagram, 0, number, len);
        assert_eq!(host.send(id, &bytes, TxOffload::None), Push::Queued);
    }
}

fn longest_us(host: &Host) -> f64 {
    host.delays.iter().max().copied().unwrap_or(0) as f64 / US as f64
}

#[test]
fn same_conditions_take_the_same_cycles() {
    let run = || Workload::Preload(150).run(&default()).expect("it runs");
    assert_eq!(run(), run());
}

#[test]
fn costs_are_recorded_and_longer_frames_cost_more() {
    let cost = Cost::recorded();
    let all = [cost.transmit, cost.reclaim, cost.interrupt, cost.wakeup];
    assert!(all.iter().all(|cycles| *cycles > 0));
    assert_eq!(cost.call(1024), cost.transmit);
    assert_eq!(cost.call(3072), cost.transmit + 2 * cost.copy);
}

/// At most an interrupt for 20 frames on the wire in bulk, and for 2 pings that are preloaded.
#[test]
fn default_interrupts_seldom() {
    let bulk = Workload::Bulk(1 << 20).run(&default()).expect("it runs");
    assert!(bulk.interrupts_per_packet() <= 0.05, "{bulk:?}");
    assert!(bulk.delay.max <= bound_us(), "{bulk:?}");
    let pings = Workload::Preload(500).run(&default()).expect("it runs");
    assert!(pings.interrupts_per_packet() <= 0.5, "{pings:?}");
    assert!(pings.delay.max <= bound_us(), "{pings:?}");
}

/// Simulated time, and the host's processor time in it, within 2 % of the best policy's.
#[test]
fn default_costs_about_what_the_best_policy_does() {
    let total = |o: &Outcome| o.simulated_us + o.host_cycles as f64 / 2500.0;
    for workload in [
        Workload::Bulk(1 << 19),
        Workload::Ping(150),
        Workload::Preload(200),
    ] {
        let run = |policy| total(&workload.run(&under(policy)).expect("it runs"));
        let ours = run(CompletionPolicy::DEFAULT);
        let best = CompletionPolicy::ALL.map(run).into_iter().reduce(f64::min);
        let best = best.expect("there are some");
        assert!(ours <= best * 1.02, "{workload:?}: {ours} of {best}");
    }
}

/// S2-R2: one frame, the last of a burst, and nothing that follows.
#[test]
fn last_frame_comes_back_within_the_hold_off() {
    for count in [1, 2, 40] {
        let mut host = host(&default());
        queue(&mut host, count, 1000);
        assert!(host.settle(1_000_000), "{count} frames are never completed");
        let last = host.delays.last().copied().unwrap_or(0) as f64 / US as f64;
        assert!(last <= HOLDOFF.as_micros() as f64 + MARGIN_US, "{last} us");
        assert!(longest_us(&host) <= bound_us());
    }
}

/// S2-R2: a ring that is full, its queue stopped and nobody sending: max-age bounds it.
#[test]
fn full_ring_comes_back_within_max_age() {
    let mut host = host(&default());
    let id = host.port.open(1 << 20);
    let mut number = 0;
    let bytes = |number| frame(Kind::Datagram, 0, number, 1500);
    while host.send(id, &bytes(number), TxOffload::None) == Push::Queued {
        number += 1;
    }
    assert!(number >= RING.into());
    // Nobody goes on although he may.
    assert!(host.settle(3_000_000));
    assert!(longest_us(&host) <= bound_us(), "{} us", longest_us(&host));
    // An interrupt for max-age, each, and few by other causes.
    let causes = host.device.window().expect("it has one").tx_interrupts(0);
    let causes = causes.expect("readable").expect("the card has it");
    let wire_us = f64::from(number) * 1524.0 * 8.0 / 1000.0;
    assert!(f64::from(causes.max_age) >= wire_us / 250.0, "{causes:?}");
    assert_eq!(causes.empty, 1, "{causes:?}");
}

/// S2-R2, S2-R4: a ring that never runs empty, by a sender that is always a little ahead.
#[test]
fn ring_that_never_runs_empty_comes_back_within_max_age() {
    let mut host = host(&default());
    let id = host.port.open(1 << 20);
    let end = host.now() + 2_000 * US;
    let mut number = 0;
    while host.now() < end {
        host.serve();
        // Not so often that the driver finds all on the way of sending.
        if host.port.queue().outstanding() < 40 {
            for _ in 0..80 {
                let bytes = frame(Kind::Datagram, 0, number, 1000);
                assert_eq!(host.send(id, &bytes, TxOffload::None), Push::Queued);
                number += 1;
            }
        }
        host.sleep(end);
        assert!(host.port.queue().outstanding() > 0, "it ran empty");
    }
    assert!(longest_us(&host) <= bound_us(), "{} us", longest_us(&host));
    let causes = host.device.window().expect("it has one").tx_interrupts(0);
    let causes = causes.expect("readable").expect("the card has it");
    assert_eq!(causes.empty, 0, "{causes:?}");
    assert!(causes.max_age >= 7, "{causes:?}");
}

/// S2-R3: what closing costs beside the time that the frames take to be read.
#[test]
fn closing_waits_for_the_frames_and_not_for_a_timer() {
    let mut host = host(&default());
    let id = host.port.open(1 << 20);
    for number in 0..3 {
        let bytes = frame(Kind::Datagram, 0, number, 1000);
        assert_eq!(host.send(id, &bytes, TxOffload::None), Push::Queued);
    }
    let since = host.now();
    assert!(!host.close(id));
    while host.port.next_closed().is_none() {
        assert!(host.now() < since + 60 * US, "closed too late");
        host.sleep(since + 60 * US);
        host.serve();
    }
    // It did not even wait for the hold-off.
    assert!(host.now() - since < 45 * US);
}

/// S2-R1: whoever runs first, who has a send buffer holds no more of the ring, and all go on alike.
#[test]
fn adversarial_order_is_fair_with_send_buffers_and_not_without() {
    let cycles = 8_000 * US;
    let run = |policy| fairness(&under(policy), 4, Order::Adversarial, cycles).expect("it runs");
    let ours = run(CompletionPolicy::DEFAULT);
    assert!(ours.jain() >= 0.95, "{ours:?}");
    assert!(ours.rounds > 0 && ours.delay.max <= bound_us(), "{ours:?}");
    let orphan = run(named("orphan"));
    assert!(orphan.jain() < 0.3, "{orphan:?}");
    assert_eq!(orphan.shares[1..], [0, 0, 0]);
}

/// The same with send buffers of which the ring holds not even two. (The first finds the ring empty, which
/// gives it one send buffer more than the others.)
#[test]
fn adversarial_order_is_fair_where_the_ring_is_too_small_for_all() {
    let conditions = Conditions {
        send_buffer: Some(212_992),
        ..default()
    };
    let cycles = 16_000 * US;
    let ours = fairness(&conditions, 4, Order::Adversarial, cycles).expect("it runs");
    assert!(ours.jain() >= 0.95, "{ours:?}");
    assert!(ours.delay.max <= bound_us(), "{ours:?}");
    // The wire is never without work: 1,090 bytes with preamble, FCS and gap each.
    let most = 16_000.0 / (1090.0 * 8.0 / 1000.0);
    assert!(ours.packets as f64 >= 0.97 * most, "{ours:?}");
}

/// Bug-log row 14 on the card: memory is overwritten as soon as its bytes are given back, with a link
/// that is slow and out of order, and the wire has what was in it when it was sent.
#[test]
fn overwriting_a_buffer_whose_bytes_are_back_never_changes_the_wire() {
    for policy in CompletionPolicy::ALL {
        let mut host =
            Host::with(&under(policy), SimConfig::adversarial(14)).expect("all are there");
        host.peer.keep();
        let buffer = host.device.buffer(4096).expect("memory");
        let id = host.port.open(1400);
        let mut sent = Vec::new();
        for number in 0..24 {
            let bytes = frame(Kind::Datagram, 0, number, 1400);
            buffer.write(0, &bytes).expect("it fits");
            let head = &bytes[..20];
            let rest = buffer.slice(20, 1380).expect("it is there");
            let parts = [TxPart::Bytes(head), TxPart::Shared(rest)];
            let push = host.port.send(id, &parts, TxOffload::None).expect("sound");
            assert_eq!(push, Push::Queued);
            host.port.flush().expect("the card behaves");
            sent.push(bytes);
            let limit = host.now() + 20_000_000;
            while host.port.charged(id).expect("open") > 0 {
                assert!(host.now() < limit, "{policy}: bytes never come back");
                host.serve();
                host.sleep(limit);
            }
            buffer.write(0, &[0xee; 1400]).expect("it fits");
        }
        assert!(host.settle(20_000_000), "{policy}");
        host.function.run(100_000).expect("the card runs");
        assert_eq!(host.peer.take_kept(), sent, "{policy}");
    }
}

/// S2-R7: when the driver says that frames have left, they have; when it has them back, they may not.
#[test]
fn completed_frames_may_be_in_the_card_and_sent_ones_are_not() {
    let mut host = host(&default());
    queue(&mut host, 12, 1514);
    let mut watch = host.port.queue().watch();
    assert!(host.settle(1_000_000));
    let ns = |cycles: u64| Duration::from_nanos(8 * cycles);
    let progress = host.port.queue().progress(&mut watch, ns(host.now()));
    let Progress::Read(gone) = progress else {
        panic!("{progress:?}");
    };
    while ns(host.now()) < gone {
        host.sleep(host.now() + 10 * US);
        host.serve();
    }
    let progress = host.port.queue().progress(&mut watch, ns(host.now()));
    assert_eq!(progress, Progress::Sent);
    assert_eq!(host.peer.take_kept().len(), 12);
    // A frame takes 12 us to leave; the card has read some more by then.
    let mut host = self::host(&under(named("event-idx")));
    queue(&mut host, 12, 1514);
    assert!(host.settle(1_000_000));
    assert!(
        host.peer.packets() < 12,
        "all have left, so this shows nothing"
    );
}

/// Bug-log rows 2 and 3 on the card: only transmission, the ring full, the queue stopped; under every
/// policy an interrupt wakes it, and not the timer.
#[test]
fn stopped_queue_is_woken_by_the_card_under_every_policy() {
    for policy in CompletionPolicy::ALL {
        let mut host = host(&under(policy));
        let id = host.port.open(4 << 20);
        let (mut number, mut stops) = (0, 0);
        while number < 3 * u32::from(RING) {
            let bytes = frame(Kind::Datagram, 0, number, 300);
            if host.send(id, &bytes, TxOffload::None) == Push::Queued {
                number += 1;
                continue;
            }
            stops += 1;
            let limit = host.now() + 2_000 * US;
            while host.wake().is_none() {
                assert!(host.now() < limit, "{policy}: nobody wakes the sender");
                host.sleep(limit);
                host.serve();
            }
        }
        assert!(stops > 0, "{policy}");
        assert!(host.settle(20_000_000), "{policy}");
        host.function.run(100_000).expect("the card runs");
        assert_eq!(host.peer.packets(), u64::from(number), "{policy}");
    }
}

/// S2-R5, the shape of the thread's table: about one interrupt a request at ring empty, none by timer.
#[test]
fn requests_cost_an_interrupt_each_at_ring_empty_and_few_with_a_hold_off() {
    let run = |name| {
        Workload::Ping(100)
            .run(&under(named(name)))
            .expect("it runs")
    };
    let ratio = |name| run(name).interrupts_per_packet();
    assert!((0.98..=1.0).contains(&ratio("ring-empty")));
    assert!((0.98..=1.0).contains(&ratio("event-idx")));
    assert!(ratio("ring-empty-holdoff") <= 0.08);
    assert!(ratio("coalesced") <= 0.08);
    assert!(ratio("marker") <= 1.0 / 16.0 + 0.01);
    for name in ["timer", "orphan", "orphan-half"] {
        assert_eq!(run(name).interrupts, 0, "{name}");
    }
}

/// The policy is a queue's, in the registers of its pair, and a reset of the queue leaves it.
#[test]
fn policy_of_a_queue_outlives_its_reset_on_the_card() {
    let mut host = host(&default());
    queue(&mut host, 3, 200);
    host.device
        .reset_queue_tx(host.port.queue_mut())
        .expect("the card resets a queue");
    host.port.service().expect("the card behaves");
    let before = host.now();
    let tx = host.port.queue_mut();
    let bytes = frame(Kind::Datagram, 0, 7, DATAGRAM);
    assert_eq!(tx.push(&bytes).expect("sound"), PushResult::Queued);
    tx.flush().expect("the card behaves");
    host.sleep(before + 1_000 * US);
    assert!(host.now() < before + 70 * US, "no interrupt came");
    host.serve();
    assert_eq!(host.tx_interrupts, 1);
}
