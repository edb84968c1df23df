//! Interrupts: MSI-X vectors, masks and pending bits, ISR, and when the driver is told at all.

use ferronic_cosim_tests::raw_driver::{Raw, RawQueue};
use ferronic_sim::SimConfig;
use ferronic_spec::Features;
use ferronic_spec::pci::bar0;
use ferronic_spec::transport::{Isr, NO_VECTOR, common};

const VECTORS: u16 = 9;
const SILENCE: [u16; 0] = [];

/// MSI-X on, all vectors unmasked; transmit queue 1 on `vector`.
fn with_tx(features: Features, size: u16, vector: u16) -> (Raw, RawQueue) {
    let raw = Raw::new(SimConfig::default());
    raw.function
        .sim()
        .enable_msix(VECTORS)
        .expect("the card answers");
    assert!(raw.negotiate(Features::VERSION_1 | features));
    let tx = RawQueue::new(&raw.function, 1, size);
    raw.enable(&tx, vector);
    raw.driver_ok();
    (raw, tx)
}

/// Sends `count` frames, all offered at once, and waits until they are used.
fn send(raw: &Raw, tx: &mut RawQueue, count: u16) {
    for _ in 0..count {
        raw.transmit(tx, 0, 0, &[0x42; 60]);
    }
    raw.send(tx);
    raw.wait_used(tx, tx.next);
}

/// The vectors that came, once everything is quiet.
fn vectors(raw: &Raw) -> Vec<u16> {
    raw.run(3000);
    let mut sim = raw.function.sim();
    std::iter::from_fn(|| sim.take_vector()).collect()
}

fn pending(raw: &Raw) -> u64 {
    raw.get(bar0::MSIX_PBA, 8)
}

fn mask(raw: &Raw, vector: u16, masked: bool) {
    let mut sim = raw.function.sim();
    sim.mask_vector(vector, masked).expect("the card answers");
}

fn function_mask(raw: &Raw, masked: bool) {
    let mut sim = raw.function.sim();
    let control = sim.function().expect("enumerated").msix.capability + 2;
    let mut bytes = [0; 2];
    sim.config_read(control, &mut bytes)
        .expect("the card answers");
    bytes[1] = bytes[1] & !0x40 | if masked { 0x40 } else { 0 };
    sim.config_write(control, &bytes).expect("the card answers");
}

#[test]
fn each_queue_uses_its_own_vector() {
    let raw = Raw::new(SimConfig::default());
    raw.function
        .sim()
        .enable_msix(VECTORS)
        .expect("the card answers");
    assert!(raw.negotiate(Features::VERSION_1));
    let vector_of = |queue: u16| (queue * 3 + 2) % VECTORS;
    let mut queues: Vec<_> = (0..8).map(|q| RawQueue::new(&raw.function, q, 8)).collect();
    for queue in &queues {
        raw.enable(queue, vector_of(queue.index));
    }
    raw.driver_ok();
    for tx in queues.iter_mut().skip(1).step_by(2) {
        send(&raw, tx, 1);
        assert_eq!(vectors(&raw), [vector_of(tx.index)], "queue {}", tx.index);
    }
    raw.post(&mut queues[0], 0, 4096, 2048);
    raw.send(&queues[0]);
    raw.wire.push(vec![1; 60]);
    raw.wait_used(&queues[0], 1);
    assert_eq!(vectors(&raw), [vector_of(0)]);
}

#[test]
fn event_while_masked_is_pending_and_fires_once_on_unmask() {
    let (raw, mut tx) = with_tx(Features::empty(), 8, 5);
    mask(&raw, 5, true);
    for _ in 0..3 {
        send(&raw, &mut tx, 1);
        assert_eq!(vectors(&raw), SILENCE);
        assert_eq!(pending(&raw), 1 << 5);
    }
    // Another vector's unmask and a mask written again do not let it out.
    mask(&raw, 4, false);
    mask(&raw, 5, true);
    assert_eq!(vectors(&raw), SILENCE);
    mask(&raw, 5, false);
    assert_eq!(vectors(&raw), [5]);
    assert_eq!(pending(&raw), 0);
    // Nothing is left for the next unmask.
    mask(&raw, 5, true);
    mask(&raw, 5, false);
    assert_eq!(vectors(&raw), SILENCE);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), [5]);
}

#[test]
fn function_mask_holds_every_vector_back_and_each_fires_once() {
    let (raw, mut tx) = with_tx(Features::empty(), 8, 8);
    let mut second = RawQueue::new(&raw.function, 3, 8);
    raw.enable(&second, 1);
    function_mask(&raw, true);
    send(&raw, &mut tx, 1);
    send(&raw, &mut second, 1);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), SILENCE);
    assert_eq!(pending(&raw), 1 << 8 | 1 << 1);
    // One of them is masked by itself too and stays.
    mask(&raw, 1, true);
    function_mask(&raw, false);
    assert_eq!(vectors(&raw), [8]);
    assert_eq!(pending(&raw), 1 << 1);
    mask(&raw, 1, false);
    assert_eq!(vectors(&raw), [1]);
    assert_eq!(pending(&raw), 0);
}

#[test]
fn pending_event_uses_the_message_that_the_entry_has_when_it_is_unmasked() {
    let (raw, mut tx) = with_tx(Features::empty(), 8, 2);
    mask(&raw, 2, true);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), SILENCE);
    raw.set(bar0::MSIX_TABLE + 2 * 16, 4, 0xfee0_0140);
    raw.set(bar0::MSIX_TABLE + 2 * 16 + 8, 4, 0x1234_5678);
    mask(&raw, 2, false);
    raw.run(3000);
    let mut sim = raw.function.sim();
    let message = sim.root.take_message().expect("the pending event");
    assert_eq!((message.address, message.data), (0xfee0_0140, 0x1234_5678));
    assert!(!sim.root.has_message());
}

#[test]
fn table_entries_keep_what_is_written_and_start_masked() {
    let raw = Raw::new(SimConfig::default());
    for vector in 0..u64::from(VECTORS) {
        let entry = bar0::MSIX_TABLE + 16 * vector;
        assert_eq!(raw.get(entry + 12, 4), 1, "vector {vector} is not masked");
        raw.set(entry, 8, 0x0123_4567_fee0_0000 + (vector << 8));
        raw.set(entry + 8, 4, 0xabcd_0000 + vector);
    }
    for vector in 0..u64::from(VECTORS) {
        let entry = bar0::MSIX_TABLE + 16 * vector;
        assert_eq!(raw.get(entry, 8), 0x0123_4567_fee0_0000 + (vector << 8));
        assert_eq!(raw.get(entry + 8, 4), 0xabcd_0000 + vector);
    }
    // The pending bits cannot be written.
    raw.set(bar0::MSIX_PBA, 8, u64::MAX);
    assert_eq!(pending(&raw), 0);
}

#[test]
fn remapped_queue_uses_the_new_vector_at_once() {
    let (raw, mut tx) = with_tx(Features::empty(), 8, 5);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), [5]);
    raw.select(1);
    for vector in [6, 0, 5] {
        raw.set(common::QUEUE_MSIX_VECTOR, 2, vector);
        send(&raw, &mut tx, 1);
        assert_eq!(
            vectors(&raw)
                .iter()
                .map(|v| u64::from(*v))
                .collect::<Vec<_>>(),
            [vector]
        );
    }
}

#[test]
fn no_vector_means_no_interrupt() {
    let (raw, mut tx) = with_tx(Features::empty(), 8, NO_VECTOR);
    send(&raw, &mut tx, 3);
    assert_eq!(vectors(&raw), SILENCE);
    assert_eq!(pending(&raw), 0);
    // What was published without a vector is not told later.
    raw.select(1);
    raw.set(common::QUEUE_MSIX_VECTOR, 2, 4);
    assert_eq!(vectors(&raw), SILENCE);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), [4]);
}

#[test]
fn isr_tells_of_queues_without_msix_and_reading_clears_it() {
    let raw = Raw::new(SimConfig::default());
    let [_rx, mut tx] = raw.pair(Features::VERSION_1, 8);
    assert_eq!(raw.get(bar0::ISR, 1), 0);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), SILENCE);
    assert_eq!(raw.get(bar0::ISR, 1), u64::from(Isr::QUEUE.bits()));
    assert_eq!(raw.get(bar0::ISR, 1), 0, "the read did not clear it");
    tx.set_flags(1);
    send(&raw, &mut tx, 1);
    raw.run(3000);
    assert_eq!(raw.get(bar0::ISR, 1), 0, "NO_INTERRUPT");
}

#[test]
fn broken_ring_raises_the_configuration_interrupt() {
    let (raw, mut tx) = with_tx(Features::empty(), 8, 5);
    raw.set(common::CONFIG_MSIX_VECTOR, 2, 7);
    tx.describe(0, raw.area.iova(), 0, 0, 0);
    tx.offer(0);
    raw.send(&tx);
    assert_eq!(vectors(&raw), [7]);
    assert!(raw.needs_reset());
    assert_eq!(raw.get(bar0::ISR, 1), u64::from(Isr::CONFIG.bits()));
    assert_eq!(raw.get(bar0::ISR, 1), 0);
}

#[test]
fn no_interrupt_flag_is_obeyed_without_event_index() {
    let (raw, mut tx) = with_tx(Features::empty(), 16, 5);
    tx.set_flags(1);
    send(&raw, &mut tx, 4);
    assert_eq!(vectors(&raw), SILENCE);
    tx.set_flags(0);
    send(&raw, &mut tx, 1);
    assert_eq!(vectors(&raw), [5]);
}

/// Brings the used index to `from`, then moves it by `count` in one update with `event` as the
/// driver's wish; how many interrupts came.
fn batch(raw: &Raw, tx: &mut RawQueue, event: u16, count: u16) -> usize {
    let from = tx.used_index();
    assert_eq!(from, tx.next);
    tx.set_used_event(event);
    for _ in 0..count {
        raw.transmit(tx, 0, 0, &[0x42; 60]);
    }
    tx.publish();
    raw.kick(tx.index);
    let mut steps = vec![from];
    let end = tx.next;
    raw.function
        .sim()
        .run_until(1_000_000, |_| {
            if steps.last() != Some(&tx.used_index()) {
                steps.push(tx.used_index());
            }
            tx.used_index() == end
        })
        .expect("the card runs");
    assert_eq!(steps, [from, end], "the batch was published in parts");
    vectors(raw).len()
}

/// Moves the used index to `to` without interrupts.
fn advance(raw: &Raw, tx: &mut RawQueue, to: u16) {
    while tx.next != to {
        let left = to.wrapping_sub(tx.next);
        let count = left.min(tx.size);
        // An event half the index space away is never reached.
        tx.set_used_event(tx.next.wrapping_sub(0x4000));
        for _ in 0..count {
            tx.offer(0);
        }
        raw.send(tx);
        raw.wait_used(tx, tx.next);
    }
    assert_eq!(vectors(raw), SILENCE, "an event that is far away fired");
}

#[test]
fn batch_across_the_event_index_interrupts_once() {
    // lkl#148: used_event 5, the used index moves from 4 to 8 in one update.
    for (event, told) in [(5, 1), (4, 1), (7, 1), (3, 0), (8, 0), (9, 0), (0x8000, 0)] {
        let (raw, mut tx) = with_tx(Features::EVENT_IDX, 16, 5);
        raw.transmit(&mut tx, 0, 0, &[0x42; 60]);
        tx.next = 0;
        advance(&raw, &mut tx, 4);
        assert_eq!(batch(&raw, &mut tx, event, 4), told, "used_event {event}");
    }
}

#[test]
fn range_test_of_the_event_index_wraps_at_65536() {
    let (raw, mut tx) = with_tx(Features::EVENT_IDX, 256, 5);
    raw.transmit(&mut tx, 0, 0, &[0x42; 60]);
    tx.next = 0;
    advance(&raw, &mut tx, 65_534);
    // 65,534 -> 2: from here on the numbers have wrapped.
    assert_eq!(batch(&raw, &mut tx, 0, 4), 1);
    assert_eq!(batch(&raw, &mut tx, 65_535, 4), 0, "an event of before");
    assert_eq!(batch(&raw, &mut tx, 6, 4), 1);
    advance(&raw, &mut tx, 65_534);
    assert_eq!(batch(&raw, &mut tx, 2, 4), 0, "an event not reached yet");
    assert_eq!(batch(&raw, &mut tx, 2, 4), 1);
}

#[test]
fn transmit_ring_alone_interrupts_more_often_than_it_is_long() {
    // firecracker#1436: nothing received, more packets than the ring holds.
    for features in [Features::empty(), Features::EVENT_IDX] {
        let (raw, mut tx) = with_tx(features, 4, 3);
        for _ in 0..9 {
            tx.set_used_event(tx.next);
            send(&raw, &mut tx, 1);
            assert_eq!(vectors(&raw), [3]);
        }
    }
}

#[test]
fn full_ring_that_waits_for_its_last_buffer_is_woken() {
    // cloud-hypervisor#1202: stop the queue when it is full, wait for the interrupt.
    let (raw, mut tx) = with_tx(Features::EVENT_IDX, 64, 3);
    for _ in 0..5 {
        for id in 0..64 {
            raw.transmit(&mut tx, id, 0, &[1; 60]);
        }
        tx.set_used_event(tx.next.wrapping_sub(1));
        raw.send(&tx);
        let mut sim = raw.function.sim();
        let woken = sim.run_until(1_000_000, |sim| sim.root.has_message());
        assert!(
            woken.expect("the card runs"),
            "the queue stays full for ever"
        );
        assert_eq!(sim.take_vector(), Some(3));
        assert_eq!(
            tx.used_index(),
            tx.next,
            "the interrupt passed the used index"
        );
    }
}

#[test]
fn buffers_posted_while_notifications_are_off_are_found_by_the_next_doorbell() {
    // hvisor-tool#101: everything posted counts, not what was there when the doorbell rang.
    let (raw, mut tx) = with_tx(Features::EVENT_IDX, 256, 3);
    for id in 0..256 {
        raw.transmit(&mut tx, id, 0, &[1; 60]);
        tx.publish();
        if id == 0 {
            raw.kick(1);
        }
    }
    raw.wait_used(&tx, 256);
    // The device armed avail_event at what it has seen: a doorbell from there on is enough.
    raw.run(2000);
    let event = ferronic_cosim_tests::raw_driver::read(&tx.used, 4 + 8 * 256, 2);
    assert_eq!(u16::from_le_bytes([event[0], event[1]]), 256);
}
