//! A transmit queue whose driver asked for no notifications, and what it is told nevertheless.

use ferronic_cosim_tests::raw_driver::{AREA, Raw, RawQueue};
use ferronic_sim::SimConfig;
use ferronic_spec::{Features, window as w};

/// MSI-X vector of the queue.
pub const VECTOR: u16 = 3;
/// Of TX_EMPTY.
pub const ON: u32 = 1 << 31;
/// The longest that a setting can be, in cycles.
pub const LONGEST: u32 = 8_388_607;
/// Cycles from the moment that something is due until its interrupt is with the host: the queues are
/// looked at in turn, avail.idx is read, and the message is on its way.
pub const SOON: u64 = 600;
/// The same for an interrupt that needs no read.
const PAIR: u64 = 0;

/// One transmit queue, pair 0.
pub struct Bench {
    pub raw: Raw,
    pub tx: RawQueue,
}

impl Bench {
    /// A queue of `size` that no used index will interrupt by virtio's own means for long.
    pub fn new(config: SimConfig, size: u16) -> Self {
        Self::with(config, size, Features::EVENT_IDX)
    }

    /// With other features; without EVENT_IDX notifications are off by the flag.
    pub fn with(config: SimConfig, size: u16, features: Features) -> Self {
        let raw = Raw::new(config);
        Self::over(raw, size, features)
    }

    /// On a card that was used before.
    pub fn over(raw: Raw, size: u16, features: Features) -> Self {
        raw.function.sim().enable_msix(9).expect("the card answers");
        assert!(raw.negotiate(Features::VERSION_1 | features));
        let tx = RawQueue::new(&raw.function, 1, size);
        tx.set_used_event(0xfff0);
        tx.set_flags(1);
        raw.enable(&tx, VECTOR);
        raw.driver_ok();
        Self { raw, tx }
    }

    /// Writes a register of the queue's row.
    pub fn set(&self, register: u64, value: u32) {
        let offset = w::BASE + register + PAIR * w::TX_EMPTY_STRIDE;
        self.raw.set(offset, 4, value.into());
    }

    /// Reads one.
    pub fn get(&self, register: u64) -> u32 {
        self.raw.window(register + PAIR * w::TX_EMPTY_STRIDE)
    }

    /// Interrupts by cause: empty, max-age, marker; and how often the hold-off was overtaken.
    pub fn causes(&self) -> [u32; 4] {
        [
            w::TX_IRQ_EMPTY,
            w::TX_IRQ_MAX_AGE,
            w::TX_IRQ_MARKER,
            w::TX_OVERTAKEN,
        ]
        .map(|register| self.get(register))
    }

    /// All interrupts of the queue.
    pub fn interrupts(&self) -> u32 {
        self.raw.set(w::BASE + w::SNAPSHOT, 4, 1);
        self.raw.window(w::SNAP_INTERRUPTS)
    }

    /// Offers a frame, without telling.
    pub fn offer(&mut self, len: usize) {
        let id = self.tx.next % self.tx.size;
        let at = usize::from(id) * 2048 % AREA;
        self.raw.transmit(&mut self.tx, id, at, &vec![0x42; len]);
    }

    /// Posts `count` frames at once.
    pub fn post(&mut self, count: u16) {
        for _ in 0..count {
            self.offer(60);
        }
        self.raw.send(&self.tx);
    }

    /// Frames posted and not used.
    pub fn outstanding(&self) -> u16 {
        self.tx.next.wrapping_sub(self.tx.used_index())
    }

    /// Simulates until everything is used; the time.
    pub fn used(&self) -> u64 {
        self.raw.wait_used(&self.tx, self.tx.next);
        self.raw.function.now()
    }

    /// Simulates until an interrupt comes, at most `cycles`; the time and what was used then.
    pub fn told_within(&self, cycles: u64) -> Option<(u64, u16)> {
        let mut sim = self.raw.function.sim();
        sim.run_until(cycles, |sim| sim.root.has_message())
            .expect("the card runs");
        sim.take_vector().map(|vector| {
            assert_eq!(vector, VECTOR, "not the queue's vector");
            (sim.now(), self.tx.used_index())
        })
    }

    /// Interrupts in `cycles`.
    pub fn told_in(&self, cycles: u64) -> usize {
        let end = self.raw.function.now() + cycles;
        let mut count = 0;
        while self.raw.function.now() < end {
            let left = end - self.raw.function.now();
            count += usize::from(self.told_within(left).is_some());
        }
        count
    }
}
