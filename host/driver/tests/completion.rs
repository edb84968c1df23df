//! Completion policies on a card in software: what each asks of it, and that nothing waits for ever.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::completion::{CompletionError, CompletionPolicy, HOLDOFF, MAX_AGE, Progress};
use ferronic::pci::PciFunction;
use ferronic::spec::Features;
use ferronic::spec::window as w;
use ferronic::{Device, DeviceConfig, Error, Event, PushResult, ReadbackError, TxQueue, Wakeup};
use support::{Function, OFFER, SoftCard, frame};

const RING: u16 = 64;
const PATIENCE: Duration = Duration::from_secs(1);

fn open(card: &Arc<SoftCard>, wakeup: Wakeup) -> (Device, TxQueue) {
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(card)));
    let config = DeviceConfig {
        wakeup,
        ring_size: Some(RING),
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config).unwrap();
    (device, pairs.remove(0).tx)
}

/// A card that has everything, opened with interrupts, and its queue under a policy.
fn under(policy: CompletionPolicy) -> (Arc<SoftCard>, Device, TxQueue) {
    let card = SoftCard::telling(OFFER, 1, 256);
    let (device, mut tx) = open(&card, Wakeup::Interrupt);
    device.set_completion(&mut tx, policy).unwrap();
    (card, device, tx)
}

fn push(tx: &mut TxQueue, count: u64) {
    for i in 0..count {
        assert_eq!(tx.push(&frame(i, 60)).unwrap(), PushResult::Queued);
    }
    tx.flush().unwrap();
}

fn cause(result: Result<(), Error>) -> CompletionError {
    match result {
        Err(Error::Completion(cause)) => cause,
        other => panic!("{other:?}"),
    }
}

/// Reads a register of pair 0.
fn register(card: &SoftCard, register: u64) -> u32 {
    card.model()
        .ring_empty
        .as_ref()
        .unwrap()
        .register(register, 0)
}

#[test]
fn names_are_those_of_the_figures_and_lead_back() {
    let names: Vec<_> = CompletionPolicy::ALL.iter().map(|p| p.name()).collect();
    assert_eq!(
        names,
        [
            "ring-empty",
            "ring-empty-holdoff",
            "event-idx",
            "coalesced",
            "marker",
            "timer",
            "orphan",
            "orphan-half"
        ]
    );
    for policy in CompletionPolicy::ALL {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    assert!("orphans".parse::<CompletionPolicy>().is_err());
}

#[test]
fn default_is_holdoff_and_bounded() {
    let default = CompletionPolicy::default();
    assert_eq!(default.name(), "ring-empty-holdoff");
    assert!(HOLDOFF <= Duration::from_micros(50));
    assert!(MAX_AGE <= Duration::from_micros(200));
}

#[test]
fn policies_write_the_registers_of_their_queue() {
    // 125 MHz: 8 ns a cycle.
    let expected = [
        ("ring-empty", [1 << 31, 0, 0]),
        ("ring-empty-holdoff", [1 << 31 | 6250, 25_000, 0]),
        ("event-idx", [0, 0, 0]),
        ("coalesced", [0, 25_000, 0]),
        ("marker", [0, 0, 1]),
        ("timer", [0, 0, 0]),
        ("orphan", [0, 0, 0]),
        ("orphan-half", [0, 0, 0]),
    ];
    let (card, device, mut tx) = under(CompletionPolicy::DEFAULT);
    for (policy, (name, values)) in CompletionPolicy::ALL.into_iter().zip(expected) {
        device.set_completion(&mut tx, policy).unwrap();
        assert_eq!((policy.name(), tx.completion()), (name, Some(policy)));
        let registers = [w::TX_EMPTY, w::TX_MAX_AGE, w::TX_MARKER];
        assert_eq!(registers.map(|r| register(&card, r)), values, "{name}");
    }
}

#[test]
fn card_without_the_interrupt_is_told_with_cause_and_remedy() {
    let card = SoftCard::new(OFFER, 1, 256);
    let (device, mut tx) = open(&card, Wakeup::Interrupt);
    for policy in CompletionPolicy::ALL {
        let needs = ["ring-empty", "ring-empty-holdoff", "coalesced", "marker"];
        let result = device.set_completion(&mut tx, policy);
        if needs.contains(&policy.name()) {
            let cause = cause(result);
            assert_eq!(cause, CompletionError::NotThere(policy));
            let text = cause.to_string();
            assert!(text.contains("FEATURES.tx_empty") && text.contains("event-idx"));
        } else {
            result.unwrap();
        }
    }
}

/// The default falls back, and it can be seen that it did.
#[test]
fn default_on_a_stock_device_is_event_idx() {
    let card = SoftCard::new(OFFER, 1, 256);
    let (device, mut tx) = open(&card, Wakeup::Interrupt);
    let policy = device.default_completion();
    assert_eq!(policy, CompletionPolicy::EventIdx);
    device.set_completion(&mut tx, policy).unwrap();
    assert_eq!(tx.completion(), Some(CompletionPolicy::EventIdx));
    let card = SoftCard::telling(OFFER, 1, 256);
    let (device, _tx) = open(&card, Wakeup::Interrupt);
    assert_eq!(device.default_completion(), CompletionPolicy::DEFAULT);
}

#[test]
fn without_interrupts_only_policies_that_need_none_are_taken() {
    let card = SoftCard::telling(OFFER, 1, 256);
    let (device, mut tx) = open(&card, Wakeup::Polled);
    for policy in CompletionPolicy::ALL {
        let result = device.set_completion(&mut tx, policy);
        if ["timer", "orphan"].contains(&policy.name()) {
            result.unwrap();
        } else {
            assert_eq!(cause(result), CompletionError::NoInterrupts(policy));
        }
    }
    assert_eq!(device.default_completion().name(), "timer");
    assert!(
        device
            .set_completion(&mut tx, device.default_completion())
            .is_ok()
    );
}

#[test]
fn settings_that_cannot_be_are_refused_and_nothing_changes() {
    let (card, device, mut tx) = under(CompletionPolicy::DEFAULT);
    let before = register(&card, w::TX_EMPTY);
    let long = Duration::from_secs(1);
    let zero = Duration::ZERO;
    for policy in [
        CompletionPolicy::RingEmptyHoldoff {
            holdoff: long,
            max_age: MAX_AGE,
        },
        CompletionPolicy::RingEmptyHoldoff {
            holdoff: HOLDOFF,
            max_age: zero,
        },
        CompletionPolicy::RingEmptyHoldoff {
            holdoff: HOLDOFF,
            max_age: long,
        },
        CompletionPolicy::Timer { period: zero },
    ] {
        let cause = cause(device.set_completion(&mut tx, policy));
        assert!(matches!(cause, CompletionError::Time { .. }), "{cause}");
    }
    for packets in [0, 40_000] {
        let policy = CompletionPolicy::Coalesced {
            packets,
            time: MAX_AGE,
        };
        let cause = cause(device.set_completion(&mut tx, policy));
        assert_eq!(cause, CompletionError::Count(packets));
    }
    assert_eq!(register(&card, w::TX_EMPTY), before);
    assert_eq!(tx.completion(), Some(CompletionPolicy::DEFAULT));
}

#[test]
fn register_that_does_not_keep_its_value_is_an_error() {
    let card = SoftCard::telling(OFFER, 1, 256);
    let (device, mut tx) = open(&card, Wakeup::Interrupt);
    card.model().stuck = Some(w::TX_MAX_AGE);
    let refused = device.set_completion(&mut tx, CompletionPolicy::DEFAULT);
    let expected = ReadbackError {
        register: "TX_MAX_AGE of pair 0".to_owned(),
        written: 25_000,
        found: 0,
    };
    assert!(
        matches!(&refused, Err(Error::Readback(found)) if *found == expected),
        "{refused:?}"
    );
    assert_eq!(tx.completion(), None);
}

#[test]
fn coalescing_needs_event_idx_and_event_idx_does_without() {
    let card = SoftCard::telling(OFFER - Features::EVENT_IDX, 1, 256);
    let (device, mut tx) = open(&card, Wakeup::Interrupt);
    let coalesced: CompletionPolicy = "coalesced".parse().unwrap();
    let refused = cause(device.set_completion(&mut tx, coalesced));
    assert_eq!(refused, CompletionError::NoEventIdx(coalesced));
    device
        .set_completion(&mut tx, CompletionPolicy::EventIdx)
        .unwrap();
    push(&mut tx, 5);
    assert_eq!(device.wait(PATIENCE).unwrap(), Some(Event::Transmit(0)));
    assert_eq!(tx.service().unwrap(), 5);
}

#[test]
fn queue_of_another_card_is_refused() {
    let (_card, device, _tx) = under(CompletionPolicy::DEFAULT);
    let (_other_card, _other, mut tx) = under(CompletionPolicy::DEFAULT);
    let cause = cause(device.set_completion(&mut tx, CompletionPolicy::RingEmpty));
    assert_eq!(cause, CompletionError::ForeignQueue(0));
}

/// RING_RESET switches the registers off; the driver switches them on again.
#[test]
fn policy_outlives_a_reset_of_its_queue() {
    for policy in CompletionPolicy::ALL {
        let (card, mut device, mut tx) = under(policy);
        let registers = [w::TX_EMPTY, w::TX_MAX_AGE, w::TX_MARKER];
        let before = registers.map(|r| register(&card, r));
        device.reset_queue_tx(&mut tx).unwrap();
        assert_eq!(registers.map(|r| register(&card, r)), before, "{policy}");
        push(&mut tx, 3);
        let now = Duration::ZERO;
        let due = tx.tick(now).unwrap();
        while tx.outstanding() > 0 {
            let event = device.wait(PATIENCE).unwrap();
            match (event, due) {
                (Some(_), _) => drop(tx.service().unwrap()),
                (None, Some(due)) => drop(tx.tick(due).unwrap()),
                // The card has no time: completions age when they are told to.
                (None, None) => card.model().ring_empty.as_mut().unwrap().aged = true,
            }
        }
        assert_eq!(card.model().sent.len(), 3, "{policy}");
    }
}

/// Interrupts of `count` frames, sent `burst` at a time and completed before the next.
fn interrupts(policy: CompletionPolicy, count: u64, burst: u64) -> u64 {
    let (card, device, mut tx) = under(policy);
    let before = card.model().irqs_sent;
    for _ in 0..count / burst {
        push(&mut tx, burst);
        if device.wait(PATIENCE).unwrap().is_some() {
            tx.service().unwrap();
        }
    }
    card.model().irqs_sent - before
}

#[test]
fn interrupts_are_as_many_as_each_policy_wants() {
    // One at a time and in bursts of 32, 320 frames. The card in software has no hold-off.
    for (name, single, bursts) in [
        ("ring-empty", 320, 10),
        ("event-idx", 320, 20),
        ("coalesced", 10, 10),
        ("marker", 20, 10),
        ("timer", 0, 0),
        ("orphan", 0, 0),
        ("orphan-half", 0, 0),
    ] {
        let policy: CompletionPolicy = name.parse().unwrap();
        assert_eq!(interrupts(policy, 320, 1), single, "{name}, one at a time");
        let found = interrupts(policy, 320, 32);
        assert!(found <= bursts, "{name}: {found} in bursts of 32");
    }
}

/// Bug-log rows 2 and 3: only transmission, more frames than the ring holds, the queue stops when it
/// is full and is woken, whatever the policy. Row 4: the device asks for no doorbell meanwhile.
#[test]
fn stopped_queue_is_woken_under_every_policy() {
    for policy in CompletionPolicy::ALL {
        for per_run in [1, 7, usize::MAX] {
            let (card, device, mut tx) = under(policy);
            card.model().tx_per_run = per_run;
            let (mut sent, mut stops) = (0, 0);
            while sent < 5 * u64::from(RING) {
                match tx.push(&frame(sent, 60)).unwrap() {
                    PushResult::Queued => sent += 1,
                    PushResult::Full => {
                        if tx.stop().unwrap() {
                            stops += 1;
                            // Never by the timer: that would be the stall of 2009.
                            let event = device.wait(PATIENCE).unwrap();
                            for _ in 0..RING {
                                card.run();
                            }
                            let event = event.or(device.wait(PATIENCE).unwrap());
                            assert_eq!(event, Some(Event::Transmit(0)), "{policy}: lost");
                            assert!(tx.service().unwrap() > 0, "{policy}: for nothing");
                        }
                    }
                }
            }
            tx.drain(Duration::from_secs(10)).unwrap();
            assert_eq!(card.model().sent.len() as u64, sent);
            assert!(stops > 0, "{policy}: the queue was never full");
        }
    }
}

/// S2-R4: under sustained load completed frames are found without any interrupt.
#[test]
fn sending_takes_completed_frames_back_without_an_interrupt() {
    for policy in CompletionPolicy::ALL {
        let (card, _device, mut tx) = under(policy);
        for _ in 0..40 {
            push(&mut tx, 8);
            card.run();
            // At most what was sent since the last look.
            assert!(
                tx.outstanding() <= 8 || tx.peek_completed() >= 8,
                "{policy}"
            );
        }
        assert_eq!(card.model().sent.len(), 320);
        assert!(tx.stats().completed >= 312, "{policy}: {:?}", tx.stats());
    }
}

/// With an event placed anew at each post and frames completed one by one, it must come all the same.
#[test]
fn event_that_moves_with_each_post_is_not_outrun() {
    let (card, device, mut tx) = under(CompletionPolicy::EventIdx);
    card.model().tx_per_run = 1;
    let mut interrupts = 0;
    for _ in 0..1000 {
        if tx.push(&frame(0, 60)).unwrap() == PushResult::Full {
            assert!(tx.stop().unwrap());
        }
        tx.flush().unwrap();
        if device.wait(PATIENCE).unwrap().is_some() {
            interrupts += 1;
            tx.service().unwrap();
        }
        assert!(tx.outstanding() <= RING);
    }
    tx.drain(Duration::from_secs(10)).unwrap();
    assert!(interrupts > 0);
}

/// A lost wake-up would be here: completed between the look and the request for an interrupt.
#[test]
fn what_is_completed_before_it_is_asked_for_is_found() {
    let (card, device, mut tx) = under(CompletionPolicy::EventIdx);
    push(&mut tx, 8);
    // Three quarters of 8 lie before the event: the seventh tells.
    card.model().tx_per_run = 6;
    card.run();
    assert_eq!(card.model().irqs.len(), 0);
    card.model().tx_per_run = 1;
    card.run();
    assert_eq!(card.model().irqs.len(), 1);
    // The eighth before the driver looks; it takes all in one go and asks for nothing that is past.
    card.run();
    assert_eq!(device.wait(PATIENCE).unwrap(), Some(Event::Transmit(0)));
    assert_eq!(tx.service().unwrap(), 8);
    assert_eq!(tx.service().unwrap(), 0);
}

/// Interrupts without a reason do no harm.
#[test]
fn service_without_a_reason_changes_nothing() {
    for policy in CompletionPolicy::ALL {
        let (card, _device, mut tx) = under(policy);
        card.model().awake = false;
        push(&mut tx, 4);
        for _ in 0..10 {
            assert_eq!(tx.service().unwrap(), 0);
        }
        assert_eq!(tx.outstanding(), 4);
        card.model().awake = true;
        tx.drain(Duration::from_secs(10)).unwrap();
    }
}

#[test]
fn timer_is_due_a_period_after_a_frame_and_not_later() {
    let period = Duration::from_micros(300);
    let (card, _device, mut tx) = under(CompletionPolicy::Timer { period });
    let at = Duration::from_micros;
    assert_eq!(tx.tick(at(0)).unwrap(), None);
    push(&mut tx, 1);
    assert_eq!(tx.tick(at(7)).unwrap(), Some(at(307)));
    card.run();
    // More frames do not put it off, and it does not run before.
    card.model().awake = false;
    assert_eq!(tx.tick(at(250)).unwrap(), Some(at(307)));
    assert_eq!(tx.outstanding(), 1);
    assert_eq!(tx.tick(at(307)).unwrap(), None);
    assert_eq!(tx.outstanding(), 0);
    // What the card does not complete is looked for again.
    push(&mut tx, 1);
    assert_eq!(tx.tick(at(400)).unwrap(), Some(at(700)));
    assert_eq!(tx.tick(at(700)).unwrap(), Some(at(1000)));
}

#[test]
fn markers_are_in_the_first_descriptor_of_every_kth_frame() {
    let policy = CompletionPolicy::Marker {
        every: 4,
        period: Duration::from_millis(1),
    };
    let (card, device, mut tx) = under(policy);
    card.model().awake = false;
    for i in 0..16 {
        let bytes = frame(i, 60);
        // Some in indirect tables, whose head is marked.
        let pushed = match i % 3 {
            0 => tx.push_pieces(&[&bytes[..20], &bytes[20..]]),
            _ => tx.push(&bytes),
        };
        assert_eq!(pushed.unwrap(), PushResult::Queued);
    }
    tx.flush().unwrap();
    card.model().awake = true;
    card.model().tx_per_run = 1;
    let mut found = Vec::new();
    for i in 0..16 {
        if device.wait(PATIENCE).unwrap().is_some() {
            found.push(i);
            tx.service().unwrap();
        }
    }
    assert_eq!(found, [3, 7, 11, 15]);
}

#[test]
fn completed_is_not_sent() {
    let (card, _device, mut tx) = under(CompletionPolicy::DEFAULT);
    let at = Duration::from_micros;
    card.model().awake = false;
    push(&mut tx, 2);
    let mut watch = tx.watch();
    push(&mut tx, 1);
    assert_eq!(tx.progress(&mut watch, at(10)), Progress::Queued);
    card.model().awake = true;
    card.model().tx_per_run = 1;
    card.run();
    tx.service().unwrap();
    assert_eq!(tx.progress(&mut watch, at(20)), Progress::Queued);
    card.run();
    tx.service().unwrap();
    // Read by the card; what it holds may take 400 us to leave at 1 Gbit/s.
    assert_eq!(tx.progress(&mut watch, at(30)), Progress::Read(at(430)));
    // The same heads are used by others: that is nothing to those who watch.
    card.model().awake = false;
    push(&mut tx, 20);
    assert_eq!(tx.progress(&mut watch, at(429)), Progress::Read(at(430)));
    assert_eq!(tx.progress(&mut watch, at(430)), Progress::Sent);
    // Nor if they do not look in between.
    let mut watch = tx.watch();
    card.model().awake = true;
    card.model().tx_per_run = usize::MAX;
    card.run();
    tx.service().unwrap();
    card.model().awake = false;
    push(&mut tx, u64::from(RING));
    assert_eq!(tx.progress(&mut watch, at(430)), Progress::Read(at(830)));
}

#[test]
fn counters_tell_why_the_card_interrupted() {
    let (card, device, mut tx) = under(CompletionPolicy::DEFAULT);
    push(&mut tx, 3);
    assert!(device.wait(PATIENCE).unwrap().is_some());
    card.model().tx_per_run = 1;
    card.model().ring_empty.as_mut().unwrap().aged = true;
    push(&mut tx, 2);
    assert!(device.wait(PATIENCE).unwrap().is_some());
    let window = device.window().unwrap();
    let found = window.tx_interrupts(0).unwrap().unwrap();
    assert_eq!((found.empty, found.max_age, found.marker), (1, 1, 0));
}

/// A card that says more is completed than was sent stops its queue, under every policy.
#[test]
fn card_that_completes_what_was_not_sent_is_found_out() {
    for policy in CompletionPolicy::ALL {
        let (card, _device, mut tx) = under(policy);
        card.model().awake = false;
        push(&mut tx, 2);
        card.model().forge_used(1, 0, 0, 0, 3);
        assert!(matches!(tx.service(), Err(Error::Queue { .. })), "{policy}");
        assert!(matches!(tx.stop(), Err(Error::Queue { .. })), "{policy}");
    }
}

/// Bug-log row 13: a change of moderation that came at a bad moment, or changed nothing, left it stuck.
#[test]
fn policy_can_be_changed_at_any_moment_and_to_itself() {
    for before in CompletionPolicy::ALL {
        for after in CompletionPolicy::ALL {
            let (card, device, mut tx) = under(before);
            card.model().awake = false;
            // Full and stopped, with an event in the middle.
            while tx.push(&frame(0, 60)).unwrap() == PushResult::Queued {}
            assert!(tx.stop().unwrap());
            for _ in 0..2 {
                device.set_completion(&mut tx, after).unwrap();
            }
            card.model().awake = true;
            let event = device.wait(PATIENCE).unwrap();
            assert_eq!(event, Some(Event::Transmit(0)), "{before}, {after}");
            assert_eq!(tx.service().unwrap(), usize::from(RING));
            push(&mut tx, 32);
            let due = tx.tick(Duration::ZERO).unwrap();
            card.run();
            match due {
                Some(due) => drop(tx.tick(due).unwrap()),
                None => {
                    let event = device.wait(PATIENCE).unwrap();
                    assert_eq!(event, Some(Event::Transmit(0)), "{before}, {after}");
                    tx.service().unwrap();
                }
            }
            assert_eq!(tx.outstanding(), 0, "{before}, {after}");
        }
    }
}
