//! The two places where each side stores, then loads what the other stores: neither may miss the
//! other, whatever the distance in cycles.

use ferronic_cosim_tests::raw_driver::{Raw, RawQueue, read};
use ferronic_sim::SimConfig;
use ferronic_spec::Features;
use ferronic_spec::ring::{RingLayout, need_event};
use ferronic_spec::transport::NO_VECTOR;

/// Cycles that are tried one by one: from before the card's first read after a doorbell to after
/// its last.
const SWEEP: u64 = 700;
/// By then a card that knows of something has done it.
const PATIENCE: u64 = 20_000;

fn open(vector: u16) -> (Raw, RawQueue) {
    let raw = Raw::new(SimConfig::default());
    raw.function.sim().enable_msix(2).expect("the card answers");
    assert!(raw.negotiate(Features::VERSION_1 | Features::EVENT_IDX));
    let tx = RawQueue::new(&raw.function, 1, 8);
    raw.enable(&tx, vector);
    raw.driver_ok();
    (raw, tx)
}

/// True once the card has used everything.
fn used_up(raw: &Raw, tx: &RawQueue) -> bool {
    let mut sim = raw.function.sim();
    sim.run_until(PATIENCE, |_| tx.used_index() == tx.next)
        .expect("the card runs")
}

/// Row 5: the card stores avail_event, then looks at avail.idx again; the driver the other way
/// round.
#[test]
fn frame_published_at_any_cycle_of_the_cards_last_look_leaves() {
    let (raw, mut tx) = open(NO_VECTOR);
    let event_at = RingLayout { size: tx.size }.avail_event();
    let mut silent = 0;
    for delay in 0..SWEEP {
        for (wait, first) in [(0, true), (delay, false)] {
            raw.run(wait);
            let old = tx.next;
            raw.transmit(&mut tx, old % 8, usize::from(old % 8) * 2048, &[0x55; 60]);
            tx.publish();
            let event = read(&tx.used, event_at, 2);
            let wanted = need_event(u16::from_le_bytes([event[0], event[1]]), tx.next, old);
            if wanted {
                raw.kick(1);
            } else if !first {
                silent += 1;
            }
        }
        assert!(
            used_up(&raw, &tx),
            "a frame published {delay} cycles after a doorbell stays: used {} of {}",
            tx.used_index(),
            tx.next
        );
        raw.wire.take_all();
    }
    // Both sides of the race were met.
    assert!(silent > 0 && silent < SWEEP, "{silent} without a doorbell");
}

/// Row 6: the card stores used.idx, then looks at used_event; the driver the other way round.
#[test]
fn wish_for_an_interrupt_at_any_cycle_of_a_completion_is_seen() {
    let (raw, mut tx) = open(1);
    let mut told = 0;
    for delay in 0..SWEEP {
        let old = tx.next;
        tx.set_used_event(old.wrapping_sub(1));
        raw.transmit(&mut tx, old % 8, usize::from(old % 8) * 2048, &[0x66; 60]);
        raw.send(&tx);
        raw.run(delay);
        tx.set_used_event(old);
        let seen = tx.used_index() != old;
        let mut sim = raw.function.sim();
        let came = sim
            .run_until(PATIENCE, |sim| sim.root.has_message())
            .expect("the card runs");
        while sim.take_vector().is_some() {}
        drop(sim);
        assert!(
            seen || came,
            "wished for {delay} cycles after the doorbell: not there yet, and no interrupt"
        );
        told += u64::from(came && !seen);
        assert!(used_up(&raw, &tx));
        raw.wire.take_all();
    }
    assert!(told > 0 && told < SWEEP, "{told} interrupts");
}
