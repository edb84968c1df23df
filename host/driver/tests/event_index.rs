//! Notifications in both directions: faults that other drivers and devices had.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering, fence};
use std::time::Duration;

use ferronic::pci::{DmaMemory, DmaRegion, PciFunction};
use ferronic::spec::Features;
use ferronic::spec::ring::RingLayout;
use ferronic::virtio::split::{Add, QueueOptions, Segment, SplitQueue};
use ferronic::{Device, DeviceConfig, Event, PushResult, QueuePair, Wakeup};
use support::{Function, OFFER, SoftCard, frame};

/// A bare queue of 256 entries, and its memory as the device sees it.
struct Bare {
    queue: SplitQueue,
    memory: Arc<DmaMemory>,
    avail: usize,
    used: usize,
}

const LAYOUT: RingLayout = RingLayout { size: 256 };
const BUFFER: Segment = Segment {
    addr: 0x1000,
    len: 64,
};

fn bare(event_idx: bool) -> Bare {
    let memory = DmaMemory::new(1 << 16).unwrap();
    let region = Arc::new(DmaRegion::new(Arc::clone(&memory), 0, None));
    let options = QueueOptions {
        index: 0,
        size: 256,
        event_idx,
        indirect_entries: 0,
    };
    let queue = SplitQueue::new(options, &|_| Ok(Arc::clone(&region))).unwrap();
    let addresses = queue.addresses();
    Bare {
        queue,
        memory,
        avail: addresses.driver as usize,
        used: addresses.device as usize,
    }
}

impl Bare {
    fn word(&self, offset: usize) -> &AtomicU16 {
        self.memory.atomic_u16(offset).unwrap()
    }
    fn avail_idx(&self) -> &AtomicU16 {
        self.word(self.avail + RingLayout::IDX)
    }
    fn used_event(&self) -> &AtomicU16 {
        self.word(self.avail + LAYOUT.used_event())
    }
    fn used_idx(&self) -> &AtomicU16 {
        self.word(self.used + RingLayout::IDX)
    }
    fn avail_event(&self) -> &AtomicU16 {
        self.word(self.used + LAYOUT.avail_event())
    }
    fn add(&mut self, count: u16) {
        for _ in 0..count {
            assert!(matches!(
                self.queue.add(&[BUFFER], &[], false).unwrap(),
                Add::Added(_)
            ));
        }
    }
    /// The device uses everything that was published, in order.
    fn use_all(&mut self) {
        let (from, to) = (self.used_idx().load(Ordering::Relaxed), self.avail_idx());
        let to = to.load(Ordering::Acquire);
        let mut idx = from;
        while idx != to {
            let slot = usize::from(idx % 256);
            let head = self
                .word(self.avail + RingLayout::RING + 2 * slot)
                .load(Ordering::Relaxed);
            let at = self.used + RingLayout::RING + 8 * slot;
            self.memory
                .atomic_u32(at)
                .unwrap()
                .store(head.into(), Ordering::Relaxed);
            self.memory
                .atomic_u32(at + 4)
                .unwrap()
                .store(0, Ordering::Relaxed);
            idx = idx.wrapping_add(1);
        }
        self.used_idx().store(to, Ordering::Release);
        while self.queue.pop().unwrap().is_some() {}
    }
}

/// Bug log row 1: the index passes the event in the middle of a batch.
#[test]
fn doorbell_when_a_batch_passes_the_event() {
    let mut bare = bare(true);
    bare.add(4);
    bare.queue.publish();
    for (event, wanted) in [(5, true), (4, true), (7, true), (8, false), (3, false)] {
        bare.use_all();
        // From 4 to 8 in one update, always at the same place: a new queue each time.
        let mut fresh = self::bare(true);
        fresh.add(4);
        fresh.queue.publish();
        fresh.avail_event().store(event, Ordering::Relaxed);
        fresh.add(4);
        assert_eq!(fresh.queue.publish(), wanted, "event {event}");
    }
}

/// Row 1 with indexes that wrap at 65,536, at every distance.
#[test]
fn doorbell_by_range_across_the_16_bit_wrap() {
    let mut bare = bare(true);
    let mut idx = 0u16;
    for step in 0..70_000u32 {
        let count = (step % 5 + 1) as u16;
        let event = idx.wrapping_add((step % 9) as u16).wrapping_sub(2);
        bare.avail_event().store(event, Ordering::Relaxed);
        bare.add(count);
        let wanted = (0..count).any(|i| idx.wrapping_add(i) == event);
        assert_eq!(
            bare.queue.publish(),
            wanted,
            "index {idx}, {count} more, event {event}"
        );
        idx = idx.wrapping_add(count);
        bare.use_all();
    }
}

#[test]
fn publish_of_nothing_rings_nothing() {
    let mut bare = bare(true);
    assert!(!bare.queue.publish());
    bare.add(1);
    assert!(bare.queue.publish());
    assert!(!bare.queue.publish());
}

#[test]
fn without_event_index_the_flag_decides() {
    let mut bare = bare(false);
    bare.add(1);
    assert!(bare.queue.publish());
    bare.word(bare.used).store(1, Ordering::Relaxed);
    bare.add(1);
    assert!(!bare.queue.publish());
    assert_eq!(
        bare.word(bare.avail).load(Ordering::Relaxed),
        1,
        "no interrupt asked for"
    );
    bare.queue.arm().unwrap();
    assert_eq!(bare.word(bare.avail).load(Ordering::Relaxed), 0);
}

/// A queue that polls is never interrupted, not even once in 65,536 buffers.
#[test]
fn disarmed_queue_asks_for_no_interrupt_ever() {
    let mut bare = bare(true);
    let mut used = 0u16;
    for _ in 0..70_000u32 {
        bare.add(3);
        bare.queue.publish();
        let event = bare.used_event().load(Ordering::Relaxed);
        assert!(!(0..3).any(|i| used.wrapping_add(i) == event));
        used = used.wrapping_add(3);
        bare.use_all();
    }
}

/// The device shows used buffers, then loads the event. If they were taken and more was published in
/// between, the event must not be one of them.
#[test]
fn disarmed_queue_does_not_ask_for_what_it_has_just_taken() {
    let mut bare = bare(true);
    let mut used = 0u16;
    for _ in 0..70_000u32 {
        bare.add(3);
        bare.queue.publish();
        bare.use_all();
        bare.add(1);
        bare.queue.publish();
        let event = bare.used_event().load(Ordering::Relaxed);
        assert!(!(0..3).any(|i| used.wrapping_add(i) == event), "at {used}");
        bare.use_all();
        used = used.wrapping_add(4);
    }
}

#[test]
fn arm_reports_what_came_before_it() {
    let mut bare = bare(true);
    bare.add(4);
    bare.queue.publish();
    assert!(!bare.queue.arm().unwrap());
    assert_eq!(bare.used_event().load(Ordering::Relaxed), 0);
    bare.used_idx().store(2, Ordering::Release);
    assert!(bare.queue.arm().unwrap());
    assert!(!bare.queue.arm_after(3).unwrap());
    assert_eq!(bare.used_event().load(Ordering::Relaxed), 2);
}

fn event_config() -> DeviceConfig {
    DeviceConfig {
        wakeup: Wakeup::Interrupt,
        ..DeviceConfig::default()
    }
}

fn open(offer: Features) -> (Arc<SoftCard>, Device, QueuePair) {
    let card = SoftCard::new(offer, 1, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let (device, mut pairs) = Device::open(function, event_config()).unwrap();
    (card, device, pairs.remove(0))
}

/// Rows 2 and 3: only transmission, one frame more than the ring holds, stopped at full.
#[test]
fn transmit_only_waits_for_interrupts_and_gets_them() {
    for offer in [OFFER, OFFER - Features::EVENT_IDX] {
        let (card, device, mut pair) = open(offer);
        for i in 0..3 * 256 + 1 {
            while pair.tx.push(&frame(i, 60)).unwrap() == PushResult::Full {
                if !pair.tx.arm().unwrap() {
                    let event = device.wait(Duration::from_secs(1)).unwrap();
                    assert_eq!(
                        event,
                        Some(Event::Transmit(0)),
                        "no interrupt: the queue hangs"
                    );
                }
                pair.tx.reap().unwrap();
            }
        }
        pair.tx.drain(Duration::from_secs(10)).unwrap();
        assert_eq!(card.model().sent.len(), 3 * 256 + 1);
    }
}

/// Row 4: frames posted while the device asks for no doorbell are found all the same, and the
/// driver looks again after it armed.
#[test]
fn ring_filled_while_notifications_are_off_drains() {
    for offer in [OFFER, OFFER - Features::EVENT_IDX] {
        let (card, device, mut pair) = open(offer);
        card.model().tx_per_run = 1;
        let mut pushed = 0u64;
        let mut completed = 0;
        while completed < 2000 {
            while pushed < 2000 && pair.tx.push(&frame(pushed, 60)).unwrap() == PushResult::Queued {
                pushed += 1;
            }
            pair.tx.flush().unwrap();
            if !pair.tx.arm().unwrap() {
                let event = device.wait(Duration::from_secs(1)).unwrap();
                assert!(event.is_some(), "lost after {completed} of {pushed}");
            }
            completed += pair.tx.reap().unwrap();
        }
        assert_eq!(card.model().sent.len(), 2000);
    }
}

/// Receive by interrupt only, with bursts of every length.
#[test]
fn receive_by_interrupts_misses_nothing() {
    let (card, device, mut pair) = open(OFFER);
    let mut received = 0;
    let mut number = 0;
    for burst in (1..=64).cycle().take(700) {
        card.model().to_receive[0].extend((0..burst).map(|i| frame(number + i, 64)));
        number += burst;
        while received < number {
            if !pair.rx.arm().unwrap() {
                let event = device.wait(Duration::from_secs(1)).unwrap();
                assert_eq!(
                    event,
                    Some(Event::Receive(0)),
                    "after {received} of {number}"
                );
            }
            received += pair.rx.receive(64, |_| {}).unwrap() as u64;
        }
    }
}

/// Row 5: driver and device each store, then load. Without full barriers on both sides both can
/// miss the other: the driver rings no doorbell and the device goes to sleep.
#[test]
fn publish_and_device_sleep_never_both_miss() {
    const ROUNDS: u16 = 60_000;
    let mut bare = bare(true);
    let memory = Arc::clone(&bare.memory);
    let (avail, used) = (bare.avail, bare.used);
    let doorbells = Arc::new(AtomicU32::new(0));
    let rung = Arc::clone(&doorbells);
    let device = std::thread::spawn(move || {
        let word = |offset| memory.atomic_u16(offset).unwrap();
        let mut seen = 0u16;
        while seen != ROUNDS {
            // Go to sleep: ask for a doorbell, then look once more.
            let doorbells = rung.load(Ordering::SeqCst);
            word(used + LAYOUT.avail_event()).store(seen, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let mut idx = word(avail + RingLayout::IDX).load(Ordering::Acquire);
            let mut spins = 0u64;
            while idx == seen && rung.load(Ordering::SeqCst) == doorbells {
                // Asleep. Only a doorbell wakes it.
                std::hint::spin_loop();
                spins += 1;
                if spins > 2_000_000 {
                    std::thread::yield_now();
                }
                assert!(spins < 20_000_000, "a doorbell was lost at {seen}");
            }
            idx = word(avail + RingLayout::IDX).load(Ordering::Acquire);
            for i in 0..idx.wrapping_sub(seen) {
                let slot = usize::from(seen.wrapping_add(i) % 256);
                let head = word(avail + RingLayout::RING + 2 * slot).load(Ordering::Relaxed);
                let at = used + RingLayout::RING + 8 * slot;
                memory
                    .atomic_u32(at)
                    .unwrap()
                    .store(head.into(), Ordering::Relaxed);
            }
            seen = idx;
            word(used + RingLayout::IDX).store(seen, Ordering::Release);
        }
    });
    for _ in 0..ROUNDS {
        while bare.queue.add(&[BUFFER], &[], false).unwrap() == Add::Full {
            while bare.queue.pop().unwrap().is_some() {}
            if device.is_finished() {
                // It panicked: a doorbell was lost.
                device.join().unwrap();
                return;
            }
            std::thread::yield_now();
        }
        if bare.queue.publish() {
            doorbells.fetch_add(1, Ordering::SeqCst);
        }
    }
    device.join().unwrap();
}

/// Row 6, and row 4 from the driver's side: it arms, looks again, then sleeps; the device stores
/// used.idx, then loads used_event.
#[test]
fn arm_and_device_completion_never_both_miss() {
    const ROUNDS: u16 = 60_000;
    let mut bare = bare(true);
    let memory = Arc::clone(&bare.memory);
    let (avail, used) = (bare.avail, bare.used);
    let interrupts = Arc::new(AtomicU32::new(0));
    let raised = Arc::clone(&interrupts);
    let device = std::thread::spawn(move || {
        let word = |offset| memory.atomic_u16(offset).unwrap();
        let mut seen = 0u16;
        while seen != ROUNDS {
            while word(avail + RingLayout::IDX).load(Ordering::Acquire) == seen {
                std::thread::yield_now();
            }
            let slot = usize::from(seen % 256);
            let head = word(avail + RingLayout::RING + 2 * slot).load(Ordering::Relaxed);
            let at = used + RingLayout::RING + 8 * slot;
            memory
                .atomic_u32(at)
                .unwrap()
                .store(head.into(), Ordering::Relaxed);
            word(used + RingLayout::IDX).store(seen.wrapping_add(1), Ordering::Release);
            fence(Ordering::SeqCst);
            if word(avail + LAYOUT.used_event()).load(Ordering::Relaxed) == seen {
                raised.fetch_add(1, Ordering::SeqCst);
            }
            seen = seen.wrapping_add(1);
        }
    });
    for round in 0..ROUNDS {
        assert!(matches!(
            bare.queue.add(&[BUFFER], &[], false).unwrap(),
            Add::Added(_)
        ));
        bare.queue.publish();
        loop {
            let before = interrupts.load(Ordering::SeqCst);
            if !bare.queue.arm().unwrap() {
                let mut spins = 0u64;
                while interrupts.load(Ordering::SeqCst) == before {
                    std::hint::spin_loop();
                    spins += 1;
                    if spins > 100 {
                        std::thread::yield_now();
                    }
                    assert!(spins < 20_000_000, "an interrupt was lost at {round}");
                }
            }
            if bare.queue.pop().unwrap().is_some() {
                break;
            }
        }
    }
    device.join().unwrap();
}

/// Row 9: a loop that only looks at used.idx sees it change, in optimised builds too.
#[test]
fn poll_loop_without_side_effects_sees_the_update() {
    let mut bare = bare(true);
    bare.add(1);
    bare.queue.publish();
    let memory = Arc::clone(&bare.memory);
    let used = bare.used;
    let done = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&done);
    let device = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        memory
            .atomic_u16(used + RingLayout::IDX)
            .unwrap()
            .store(1, Ordering::Release);
        flag.store(true, Ordering::Release);
    });
    while !bare.queue.pending().unwrap() {}
    device.join().unwrap();
    assert!(done.load(Ordering::Acquire));
    assert!(bare.queue.pop().unwrap().is_some());
}
