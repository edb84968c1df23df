//! A driver that writes rings and registers by hand, wrongly if a test wants so.
//!
//! Everything panics that a test can do nothing about.

use ferronic::pci::{DmaRegion, PciFunction};
use ferronic_sim::wire::WireQueue;
use ferronic_sim::{Sim, SimConfig, SimFunction};
use ferronic_spec::pci::bar0;
use ferronic_spec::ring::RingLayout;
use ferronic_spec::transport::{NO_VECTOR, Status, common};
use ferronic_spec::{Features, window};

use crate::card::PATIENCE;

/// Descriptor flag: another one follows.
pub const NEXT: u16 = 1;
/// Descriptor flag: for the device to write.
pub const WRITE: u16 = 2;
/// Descriptor flag: a table of descriptors.
pub const INDIRECT: u16 = 4;

/// Bytes of the area for buffers.
pub const AREA: usize = 1 << 20;

/// A virtqueue in memory of its own: each part in a mapping with nothing behind it.
pub struct RawQueue {
    /// Number of the queue.
    pub index: u16,
    /// Its size.
    pub size: u16,
    /// Descriptor table.
    pub desc: DmaRegion,
    /// Available ring.
    pub avail: DmaRegion,
    /// Used ring.
    pub used: DmaRegion,
    /// Available index; takes effect with [`RawQueue::publish`].
    pub next: u16,
    /// Used entries seen.
    pub seen: u16,
}

impl RawQueue {
    /// Memory for a queue.
    pub fn new(function: &SimFunction, index: u16, size: u16) -> Self {
        let layout = RingLayout { size };
        let alloc = |len| function.dma_alloc(len).expect("DMA memory");
        Self {
            index,
            size,
            desc: alloc(layout.desc_len()),
            avail: alloc(layout.avail_len()),
            used: alloc(layout.used_len()),
            next: 0,
            seen: 0,
        }
    }

    fn layout(&self) -> RingLayout {
        RingLayout { size: self.size }
    }

    /// Writes descriptor `at`.
    pub fn describe(&self, at: u16, addr: u64, len: u32, flags: u16, next: u16) {
        let bytes = descriptor(addr, len, flags, next);
        write(&self.desc, 16 * usize::from(at), &bytes);
    }

    /// Puts a head into the next slot of the available ring.
    pub fn offer(&mut self, head: u16) {
        let slot = usize::from(self.next % self.size);
        write(&self.avail, 4 + 2 * slot, &head.to_le_bytes());
        self.next = self.next.wrapping_add(1);
    }

    /// Lets the device see what was offered.
    pub fn publish(&self) {
        write(&self.avail, 2, &self.next.to_le_bytes());
    }

    /// Flags of the available ring.
    pub fn set_flags(&self, flags: u16) {
        write(&self.avail, 0, &flags.to_le_bytes());
    }

    /// The used index after which an interrupt is wanted.
    pub fn set_used_event(&self, event: u16) {
        write(
            &self.avail,
            self.layout().used_event(),
            &event.to_le_bytes(),
        );
    }

    /// The used index in memory.
    pub fn used_index(&self) -> u16 {
        read_u16(&self.used, 2)
    }

    /// Used entry number `at`: id and length.
    pub fn used_entry(&self, at: u16) -> (u32, u32) {
        let slot = 4 + 8 * usize::from(at % self.size);
        (read_u32(&self.used, slot), read_u32(&self.used, slot + 4))
    }

    /// Used entries that came since the last call.
    pub fn take_used(&mut self) -> Vec<(u32, u32)> {
        let mut got = Vec::new();
        while self.seen != self.used_index() {
            got.push(self.used_entry(self.seen));
            self.seen = self.seen.wrapping_add(1);
        }
        got
    }
}

/// A descriptor as it lies in memory.
pub fn descriptor(addr: u64, len: u32, flags: u16, next: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&addr.to_le_bytes());
    bytes[8..12].copy_from_slice(&len.to_le_bytes());
    bytes[12..14].copy_from_slice(&flags.to_le_bytes());
    bytes[14..].copy_from_slice(&next.to_le_bytes());
    bytes
}

/// Writes into DMA memory.
pub fn write(region: &DmaRegion, at: usize, data: &[u8]) {
    region.memory().write(at, data).expect("inside the region");
}

/// Reads from DMA memory.
pub fn read(region: &DmaRegion, at: usize, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    let memory = region.memory();
    memory.read(at, &mut data).expect("inside the region");
    data
}

fn read_u16(region: &DmaRegion, at: usize) -> u16 {
    let bytes = read(region, at, 2);
    u16::from_le_bytes([bytes[0], bytes[1]])
}

fn read_u32(region: &DmaRegion, at: usize) -> u32 {
    let bytes = read(region, at, 4);
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The card, driven by hand.
pub struct Raw {
    /// The simulated function.
    pub function: SimFunction,
    /// Far end of the cable.
    pub wire: WireQueue,
    /// Memory for buffers, [`AREA`] bytes.
    pub area: DmaRegion,
}

impl Raw {
    /// Enumerates a card and turns bus mastering on.
    pub fn new(config: SimConfig) -> Self {
        let (wire, port) = WireQueue::new();
        let sim = Sim::with_wire(config, port).expect("the model starts");
        let function = SimFunction::new(sim).expect("the card enumerates");
        Self::over(function, wire)
    }

    /// Takes over a card that exists.
    pub fn over(function: SimFunction, wire: WireQueue) -> Self {
        let area = function.dma_alloc(AREA).expect("DMA memory");
        function
            .sim()
            .set_bus_master(true)
            .expect("the card answers");
        Self {
            function,
            wire,
            area,
        }
    }

    /// Reads a register of the BAR.
    pub fn get(&self, offset: u64, len: usize) -> u64 {
        let mut sim = self.function.sim();
        sim.bar_read(offset, len).expect("a register read")
    }

    /// Writes a register of the BAR.
    pub fn set(&self, offset: u64, len: usize, value: u64) {
        let mut sim = self.function.sim();
        sim.bar_write(offset, len, value).expect("a register write");
    }

    /// Reads a counter of the card, as it is now.
    pub fn counter(&self, offset: u64) -> u32 {
        self.set(window::BASE + window::SNAPSHOT, 4, 0);
        self.window(offset)
    }

    /// Reads a register of our window.
    pub fn window(&self, offset: u64) -> u32 {
        self.get(window::BASE + offset, 4) as u32
    }

    /// Whether the card has large receive offload.
    pub fn has_lro(&self) -> bool {
        window::FEATURES_LRO.get(self.window(window::FEATURES)) == 1
    }

    /// Whether the card has the ring-empty interrupt, max-age and marker.
    pub fn has_tx_empty(&self) -> bool {
        window::FEATURES_TX_EMPTY.get(self.window(window::FEATURES)) == 1
    }

    /// What the card can offer, as it was built.
    pub fn card(&self) -> Features {
        if self.has_lro() {
            Features::CARD | Features::LRO
        } else {
            Features::CARD
        }
    }

    /// Device status.
    pub fn status(&self) -> Status {
        Status::from_bits_retain(self.get(bar0::COMMON + common::DEVICE_STATUS, 1) as u8)
    }

    /// True if the device said that it needs a reset.
    pub fn needs_reset(&self) -> bool {
        self.status().contains(Status::NEEDS_RESET)
    }

    /// Writes the device status.
    pub fn set_status(&self, status: Status) {
        let offset = bar0::COMMON + common::DEVICE_STATUS;
        self.set(offset, 1, status.bits().into());
    }

    /// Resets the device and waits until it says that it is reset.
    pub fn reset(&self) {
        self.set_status(Status::empty());
        for _ in 0..1000 {
            if self.status().is_empty() {
                return;
            }
        }
        panic!("the status never read 0 after a reset");
    }

    /// What the device offers.
    pub fn offered(&self) -> Features {
        let mut bits = 0;
        for half in 0..2 {
            self.set(common::DEVICE_FEATURE_SELECT, 4, half);
            bits |= self.get(common::DEVICE_FEATURE, 4) << (32 * half);
        }
        Features::from_bits_retain(bits)
    }

    /// What the driver accepted.
    pub fn accepted(&self) -> Features {
        let mut bits = 0;
        for half in 0..2 {
            self.set(common::DRIVER_FEATURE_SELECT, 4, half);
            bits |= self.get(common::DRIVER_FEATURE, 4) << (32 * half);
        }
        Features::from_bits_retain(bits)
    }

    /// Writes the driver's features.
    pub fn accept(&self, features: Features) {
        for half in 0..2 {
            self.set(common::DRIVER_FEATURE_SELECT, 4, half);
            let bits = features.bits() >> (32 * half) & 0xffff_ffff;
            self.set(common::DRIVER_FEATURE, 4, bits);
        }
    }

    /// Reset, then everything up to FEATURES_OK; true if the device agreed.
    pub fn negotiate(&self, features: Features) -> bool {
        self.reset();
        self.set_status(Status::ACKNOWLEDGE | Status::DRIVER);
        self.accept(features);
        self.set_status(Status::ACKNOWLEDGE | Status::DRIVER | Status::FEATURES_OK);
        self.status().contains(Status::FEATURES_OK)
    }

    /// Sets DRIVER_OK.
    pub fn driver_ok(&self) {
        let status = Status::ACKNOWLEDGE | Status::DRIVER | Status::FEATURES_OK;
        self.set_status(status | Status::DRIVER_OK);
    }

    /// Selects a queue.
    pub fn select(&self, queue: u16) {
        self.set(common::QUEUE_SELECT, 2, queue.into());
    }

    /// Writes addresses and size of a queue and enables it, with an MSI-X vector.
    pub fn enable(&self, queue: &RawQueue, vector: u16) {
        self.select(queue.index);
        self.set(common::QUEUE_SIZE, 2, queue.size.into());
        self.set(common::QUEUE_MSIX_VECTOR, 2, vector.into());
        for (register, region) in [
            (common::QUEUE_DESC, &queue.desc),
            (common::QUEUE_DRIVER, &queue.avail),
            (common::QUEUE_DEVICE, &queue.used),
        ] {
            self.set(register, 4, region.iova() & 0xffff_ffff);
            self.set(register + 4, 4, region.iova() >> 32);
        }
        self.set(common::QUEUE_ENABLE, 2, 1);
        let mut sim = self.function.sim();
        let used_len = RingLayout { size: queue.size }.used_len() as u64;
        sim.root.memory.guard_allow(queue.used.iova(), used_len);
    }

    /// A pair of queues (0 and 1) of `size`, enabled without interrupts, DRIVER_OK set.
    pub fn pair(&self, features: Features, size: u16) -> [RawQueue; 2] {
        assert!(self.negotiate(features), "the features are refused");
        let queues = [0, 1].map(|index| RawQueue::new(&self.function, index, size));
        for queue in &queues {
            self.enable(queue, NO_VECTOR);
        }
        self.driver_ok();
        queues
    }

    /// Rings the doorbell of a queue.
    pub fn kick(&self, queue: u16) {
        let offset = bar0::NOTIFY + u64::from(bar0::NOTIFY_MULTIPLIER) * u64::from(queue);
        self.set(offset, 2, queue.into());
    }

    /// Publishes what was offered and rings the doorbell.
    pub fn send(&self, queue: &RawQueue) {
        queue.publish();
        self.kick(queue.index);
    }

    /// Simulates `cycles`.
    pub fn run(&self, cycles: u64) {
        self.function.run(cycles).expect("the card runs");
    }

    /// Simulates until the used index is `index`.
    pub fn wait_used(&self, queue: &RawQueue, index: u16) {
        let mut sim = self.function.sim();
        let there = sim
            .run_until(PATIENCE, |_| queue.used_index() == index)
            .expect("the card runs");
        assert!(
            there,
            "used index {} instead of {index}",
            queue.used_index()
        );
    }

    /// Simulates until the device needs a reset, or gives up after `cycles`.
    pub fn breaks_within(&self, cycles: u64) -> bool {
        let end = self.function.now() + cycles;
        while self.function.now() < end {
            if self.needs_reset() {
                return true;
            }
            self.run(500);
        }
        self.needs_reset()
    }

    /// Allows the card to write `len` bytes of the area from `at`, if writes are guarded.
    pub fn allow(&self, at: usize, len: usize) {
        let mut sim = self.function.sim();
        let iova = self.area.iova() + at as u64;
        sim.root.memory.guard_allow(iova, len as u64);
    }

    /// Posts a receive buffer: descriptor `id`, `len` bytes of the area from `at`.
    pub fn post(&self, rx: &mut RawQueue, id: u16, at: usize, len: usize) {
        rx.describe(id, self.area.iova() + at as u64, len as u32, WRITE, 0);
        rx.offer(id);
        self.allow(at, len);
    }

    /// Puts header and frame into the area at `at` and offers them as one descriptor.
    pub fn transmit(&self, tx: &mut RawQueue, id: u16, at: usize, frame: &[u8]) {
        write(&self.area, at, &[0; 12]);
        write(&self.area, at + 12, frame);
        let len = frame.len() as u32 + 12;
        tx.describe(id, self.area.iova() + at as u64, len, 0, 0);
        tx.offer(id);
    }

    /// Resets the card, then passes one frame each way on new rings and checks it.
    pub fn works(&self) {
        self.wire.clear();
        {
            let mut sim = self.function.sim();
            sim.root.faults.clear();
            while sim.take_vector().is_some() {}
        }
        let [mut rx, mut tx] = self.pair(Features::VERSION_1 | Features::MRG_RXBUF, 8);
        // What a transmission left behind is out, aborted, by now.
        self.run(4000);
        self.wire.take_all();
        for round in 0..20_u16 {
            let frame: Vec<u8> = (0..60 + round).map(|i| (i * 3 + round) as u8).collect();
            self.post(&mut rx, round % 8, 0, 2048);
            self.send(&rx);
            self.wire.push(frame.clone());
            self.wait_used(&rx, round + 1);
            let len = 12 + frame.len();
            assert_eq!(rx.take_used(), [(u32::from(round % 8), len as u32)]);
            let mut want = vec![0; 12];
            want[10] = 1;
            want.extend_from_slice(&frame);
            assert_eq!(read(&self.area, 0, len), want);

            self.transmit(&mut tx, round % 8, 4096, &frame);
            self.send(&tx);
            self.wait_used(&tx, round + 1);
            assert_eq!(tx.take_used(), [(u32::from(round % 8), 0)]);
            let wire = self.wire.clone();
            let mut sim = self.function.sim();
            let left = sim.run_until(PATIENCE, |_| wire.sent() > 0);
            assert!(left.expect("the card runs"), "no frame on the wire");
            let sent = wire.take().expect("just seen");
            assert_eq!((sent.data, sent.aborted), (frame, false));
        }
        assert!(!self.needs_reset());
        self.reset();
    }
}
