//! A card in software: registers of our own, rings by rust-vmm's `virtio-queue`, which knows
//! nothing of the driver.
//!
//! It looks at a queue only after a doorbell or when it promised to look again, so that a doorbell
//! that the driver forgets shows as a frame that never goes.
#![allow(dead_code)] // Each test file uses its part of it.

pub mod config_space;
pub mod packets;
pub mod ring_empty;
pub mod seeds;
pub mod units;

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ferronic::pci::{DmaMemory, DmaRegion, Interrupts, PciError, PciFunction, RegisterIo};
use ferronic::spec::Features;
use ferronic::spec::net::HEADER_LEN;
use ferronic::spec::pci::bar0;
use ferronic::spec::transport::common;
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

/// What the card offers unless a test says otherwise.
pub const OFFER: Features = Features::CARD
    .union(Features::TX_OFFLOADS)
    .difference(Features::MTU);

/// A virtqueue as the registers describe it.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueState {
    pub size: u16,
    pub vector: u16,
    pub enabled: bool,
    pub desc: u64,
    pub driver: u64,
    pub device: u64,
}

/// What happened on the register side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    pub reads: u64,
    pub writes: u64,
    pub doorbells: u64,
}

pub struct Model {
    pub offer: Features,
    pub accepted: Features,
    pub regs: Vec<QueueState>,
    queues: Vec<Option<Queue>>,
    kicked: Vec<bool>,
    memory: GuestMemoryMmap,
    pub status: u8,
    feature_select: (u32, u32),
    queue_select: u16,
    config_vector: u16,
    pub irqs: VecDeque<u16>,
    pub irqs_sent: u64,
    /// Frames sent by the driver, with their virtio headers and the queue.
    pub sent: Vec<(u16, Vec<u8>)>,
    /// Descriptors of each of them: address and length.
    pub layouts: Vec<Vec<(u64, u32)>>,
    /// What the card says of received frames, in its header: flags, csum_start, csum_offset.
    pub verdicts: VecDeque<(u8, u16, u16)>,
    /// The whole virtio header of received frames, `num_buffers` excepted, where there is one.
    pub claims: VecDeque<[u8; 10]>,
    /// The registers of LRO by offset, if the card has it.
    pub lro: Option<BTreeMap<u64, u32>>,
    /// Writes to them, in order; those of a register in `stuck` change nothing.
    pub lro_writes: Vec<(u64, u32)>,
    pub stuck: Option<u64>,
    /// The ring-empty interrupt, if the card has it.
    pub ring_empty: Option<ring_empty::RingEmpty>,
    /// Frames to receive, without headers, by pair.
    pub to_receive: Vec<VecDeque<Vec<u8>>>,
    /// The card does nothing while this is false.
    pub awake: bool,
    /// Most frames that are transmitted in one run.
    pub tx_per_run: usize,
    /// A transmit queue that is so slow that nothing leaves it.
    pub held: Option<usize>,
    pub last_notification: Option<u32>,
    pub pairs_in_use: u32,
    max_size: u16,
    pub next_iova: u64,
    /// DMA regions that were not taken from the card again.
    pub regions: Arc<AtomicUsize>,
}

/// Counts a region as long as the card may use it.
struct Lease(Arc<AtomicUsize>);

impl Lease {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The card.
pub struct SoftCard {
    pub model: Mutex<Model>,
    reads: AtomicU64,
    writes: AtomicU64,
    doorbells: AtomicU64,
}

impl SoftCard {
    pub fn new(offer: Features, pairs: u16, max_size: u16) -> Arc<Self> {
        let queues = usize::from(2 * pairs);
        let model = Model {
            offer,
            accepted: Features::empty(),
            regs: vec![
                QueueState {
                    size: max_size,
                    ..Default::default()
                };
                queues
            ],
            queues: (0..queues).map(|_| None).collect(),
            kicked: vec![false; queues],
            memory: GuestMemoryMmap::new(),
            status: 0,
            feature_select: (0, 0),
            queue_select: 0,
            config_vector: 0xffff,
            irqs: VecDeque::new(),
            irqs_sent: 0,
            sent: Vec::new(),
            layouts: Vec::new(),
            verdicts: VecDeque::new(),
            claims: VecDeque::new(),
            lro: None,
            lro_writes: Vec::new(),
            stuck: None,
            ring_empty: None,
            to_receive: (0..pairs).map(|_| VecDeque::new()).collect(),
            awake: true,
            tx_per_run: usize::MAX,
            held: None,
            last_notification: None,
            pairs_in_use: 1,
            max_size,
            next_iova: 0x1_0000_0000,
            regions: Arc::default(),
        };
        Arc::new(Self {
            model: Mutex::new(model),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            doorbells: AtomicU64::new(0),
        })
    }

    /// DMA regions that the card may use.
    pub fn regions(&self) -> usize {
        self.model().regions.load(Ordering::Relaxed)
    }

    /// A card that has large receive offload.
    pub fn merging(offer: Features, pairs: u16, max_size: u16) -> Arc<Self> {
        let card = Self::new(offer, pairs, max_size);
        card.model().lro = Some(config_space::LRO_DEFAULTS.into());
        card
    }

    /// A card that has the ring-empty interrupt.
    pub fn telling(offer: Features, pairs: u16, max_size: u16) -> Arc<Self> {
        let card = Self::new(offer, pairs, max_size);
        card.model().ring_empty = Some(ring_empty::RingEmpty::new(pairs));
        card
    }

    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    pub fn accesses(&self) -> Accesses {
        Accesses {
            reads: self.reads.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            doorbells: self.doorbells.load(Ordering::Relaxed),
        }
    }

    /// Lets the card work until it has nothing to do.
    pub fn run(&self) {
        self.model().run();
    }
}

impl Model {
    /// Writes a used entry and the index as a hostile card would.
    pub fn forge_used(&mut self, queue: u16, slot: u16, id: u32, len: u32, idx: u16) {
        let regs = self.regs[usize::from(queue)];
        let at = regs.device + 4 + 8 * u64::from(slot % regs.size);
        self.memory.write_obj(id, GuestAddress(at)).unwrap();
        self.memory.write_obj(len, GuestAddress(at + 4)).unwrap();
        self.memory
            .write_obj(idx, GuestAddress(regs.device + 2))
            .unwrap();
    }

    /// Address and length of the first descriptor of an available entry.
    pub fn first_buffer(&self, queue: u16, slot: u16) -> (u16, u64, u32) {
        let regs = self.regs[usize::from(queue)];
        let at = regs.driver + 4 + 2 * u64::from(slot % regs.size);
        let head: u16 = self.memory.read_obj(GuestAddress(at)).unwrap();
        let desc = regs.desc + 16 * u64::from(head);
        let addr = self.memory.read_obj(GuestAddress(desc)).unwrap();
        (
            head,
            addr,
            self.memory.read_obj(GuestAddress(desc + 8)).unwrap(),
        )
    }

    pub fn poke(&self, addr: u64, bytes: &[u8]) {
        self.memory.write_slice(bytes, GuestAddress(addr)).unwrap();
    }

    pub fn avail_idx(&self, queue: u16) -> u16 {
        let driver = self.regs[usize::from(queue)].driver;
        self.memory.read_obj(GuestAddress(driver + 2)).unwrap()
    }

    fn is_kicked(&self, queue: usize) -> bool {
        self.kicked[queue]
    }

    fn live(&self) -> bool {
        self.awake && self.status & 4 != 0
    }

    pub fn run(&mut self) {
        if !self.live() {
            return;
        }
        for pair in 0..self.to_receive.len() {
            self.receive(pair);
            self.transmit(2 * pair + 1);
            self.ring_empty_interrupts(pair);
        }
    }

    fn interrupt(&mut self, queue: usize) {
        let (Some(q), memory) = (&mut self.queues[queue], &self.memory) else {
            return;
        };
        if q.needs_notification(memory).unwrap() {
            self.raise(queue);
        }
    }

    fn raise(&mut self, queue: usize) {
        if let (1, Some(card)) = (queue % 2, &mut self.ring_empty) {
            card.reported(queue / 2);
        }
        let vector = self.regs[queue].vector;
        if vector == 0xffff {
            return;
        }
        self.irqs_sent += 1;
        if !self.irqs.contains(&vector) {
            self.irqs.push_back(vector);
        }
    }

    fn transmit(&mut self, queue: usize) {
        if self.held == Some(queue) || !std::mem::take(&mut self.kicked[queue]) {
            return;
        }
        let mut left = self.tx_per_run;
        let Some(q) = &mut self.queues[queue] else {
            return;
        };
        loop {
            q.disable_notification(&self.memory).unwrap();
            while left > 0 {
                let Some(chain) = q.pop_descriptor_chain(&self.memory) else {
                    break;
                };
                left -= 1;
                let head = chain.head_index();
                let mut bytes = Vec::new();
                let layout = chain.clone().map(|d| (d.addr().0, d.len()));
                self.layouts.push(layout.collect());
                chain
                    .reader(&self.memory)
                    .unwrap()
                    .read_to_end(&mut bytes)
                    .unwrap();
                self.sent.push((queue as u16, bytes));
                q.add_used(&self.memory, head, 0).unwrap();
                if let Some(card) = &mut self.ring_empty {
                    let flags = self.regs[queue].desc + 16 * u64::from(head) + 12;
                    card.used(
                        queue / 2,
                        self.memory.read_obj(GuestAddress(flags)).unwrap(),
                    );
                }
            }
            if left == 0 {
                self.kicked[queue] = true;
                break;
            }
            if !q.enable_notification(&self.memory).unwrap() {
                break;
            }
        }
        self.interrupt(queue);
    }

    fn receive(&mut self, pair: usize) {
        let queue = 2 * pair;
        let mergeable = self.accepted.contains(Features::MRG_RXBUF);
        let mut delivered = false;
        while let Some(frame) = self.to_receive[pair].front().cloned() {
            if !self.deliver(queue, &frame, mergeable) {
                break;
            }
            self.to_receive[pair].pop_front();
            delivered = true;
        }
        self.kicked[queue] = false;
        if delivered {
            self.interrupt(queue);
        }
    }

    /// Writes one frame into as many buffers as it needs; false if there are too few.
    fn deliver(&mut self, queue: usize, frame: &[u8], mergeable: bool) -> bool {
        let Some(q) = &mut self.queues[queue] else {
            return false;
        };
        let mut bytes = vec![0; HEADER_LEN];
        bytes.extend_from_slice(frame);
        let mut chains = Vec::new();
        let mut room = 0;
        let start = q.next_avail();
        while room < bytes.len() {
            let Some(chain) = q.pop_descriptor_chain(&self.memory) else {
                // Asks for a doorbell, looks once more: the same as a real card.
                q.set_next_avail(start);
                if q.enable_notification(&self.memory).unwrap() {
                    let avail = q.avail_idx(&self.memory, Ordering::Acquire).unwrap().0;
                    if avail.wrapping_sub(start) as usize > chains.len() {
                        return self.deliver(queue, frame, mergeable);
                    }
                }
                return false;
            };
            let writer = chain.clone().writer(&self.memory).unwrap();
            room += writer.available_bytes();
            chains.push(chain);
            assert!(
                mergeable || chains.len() == 1,
                "a buffer is smaller than the frame"
            );
        }
        bytes[10..12].copy_from_slice(&(chains.len() as u16).to_le_bytes());
        if let Some((flags, start, offset)) = self.verdicts.pop_front() {
            bytes[0] = flags;
            bytes[6..8].copy_from_slice(&start.to_le_bytes());
            bytes[8..10].copy_from_slice(&offset.to_le_bytes());
        }
        if let Some(claim) = self.claims.pop_front() {
            bytes[..10].copy_from_slice(&claim);
        }
        let mut rest = &bytes[..];
        for chain in chains {
            let head = chain.head_index();
            let mut writer = chain.writer(&self.memory).unwrap();
            let len = writer.available_bytes().min(rest.len());
            writer.write_all(&rest[..len]).unwrap();
            rest = &rest[len..];
            q.add_used(&self.memory, head, len as u32).unwrap();
        }
        true
    }

    fn enable(&mut self, queue: usize) {
        let regs = &mut self.regs[queue];
        let mut q = Queue::new(self.max_size).unwrap();
        q.set_size(regs.size);
        q.try_set_desc_table_address(GuestAddress(regs.desc))
            .unwrap();
        q.try_set_avail_ring_address(GuestAddress(regs.driver))
            .unwrap();
        q.try_set_used_ring_address(GuestAddress(regs.device))
            .unwrap();
        q.set_event_idx(self.accepted.contains(Features::EVENT_IDX));
        q.set_ready(true);
        assert!(q.is_valid(&self.memory), "queue {queue}: {regs:?}");
        regs.enabled = true;
        self.queues[queue] = Some(q);
        self.kicked[queue] = false;
    }

    fn reset_queue(&mut self, queue: usize) {
        self.queues[queue] = None;
        self.regs[queue] = QueueState {
            size: self.max_size,
            ..Default::default()
        };
        self.kicked[queue] = false;
        if let (1, Some(card)) = (queue % 2, &mut self.ring_empty) {
            card.reset(queue / 2);
        }
    }

    fn reset(&mut self) {
        for queue in 0..self.regs.len() {
            self.reset_queue(queue);
        }
        self.status = 0;
        self.accepted = Features::empty();
        self.pairs_in_use = 1;
        if let Some(lro) = &mut self.lro {
            lro.extend(config_space::LRO_DEFAULTS);
        }
        self.irqs.clear();
    }

    fn selected(&mut self) -> Option<&mut QueueState> {
        self.regs.get_mut(usize::from(self.queue_select))
    }

    fn read(&mut self, offset: u64, len: u64) -> u64 {
        let queues = self.regs.len() as u64;
        match offset {
            bar0::WINDOW.. => config_space::window_read(self, offset - bar0::WINDOW, queues),
            bar0::DEVICE..bar0::NOTIFY => {
                let bytes = config_space::net_config();
                let at = (offset - bar0::DEVICE) as usize;
                (0..len as usize)
                    .map(|i| u64::from(bytes[at + i]) << (8 * i))
                    .sum()
            }
            common::DEVICE_FEATURE => match self.feature_select.0 {
                half @ 0..2 => self.offer.bits() >> (32 * half) & 0xffff_ffff,
                _ => 0,
            },
            common::NUM_QUEUES => queues,
            common::DEVICE_STATUS => self.status.into(),
            common::CONFIG_MSIX_VECTOR => self.config_vector.into(),
            common::QUEUE_SIZE => self.selected().map_or(0, |q| q.size.into()),
            common::QUEUE_MSIX_VECTOR => self.selected().map_or(0xffff, |q| q.vector.into()),
            common::QUEUE_ENABLE => self.selected().map_or(0, |q| q.enabled.into()),
            common::QUEUE_NOTIFY_OFF => self.queue_select.into(),
            _ => 0,
        }
    }

    fn write(&mut self, offset: u64, value: u64) {
        let low = |old: u64| old & !0xffff_ffff | value & 0xffff_ffff;
        let high = |old: u64| old & 0xffff_ffff | value << 32;
        match offset {
            bar0::WINDOW.. => config_space::window_write(self, offset - bar0::WINDOW, value),
            bar0::NOTIFY..bar0::MSIX_TABLE => {
                self.last_notification = Some(value as u32);
                let queue = ((offset - bar0::NOTIFY) / 4) as usize;
                assert_eq!(queue as u64, value & 0xffff, "doorbell of another queue");
                self.kicked[queue] = true;
            }
            common::DEVICE_FEATURE_SELECT => self.feature_select.0 = value as u32,
            common::DRIVER_FEATURE_SELECT => self.feature_select.1 = value as u32,
            common::DRIVER_FEATURE => {
                let bits = self.accepted.bits();
                let bits = if self.feature_select.1 == 0 {
                    low(bits)
                } else {
                    high(bits)
                };
                self.accepted = Features::from_bits_retain(bits);
            }
            common::DEVICE_STATUS if value == 0 => self.reset(),
            common::DEVICE_STATUS => {
                let sound = self.offer.contains(self.accepted)
                    && self.accepted.with_requirements() == self.accepted;
                let refused = value & 8 != 0 && !sound;
                self.status = value as u8 & if refused { !8 } else { 0xff };
            }
            common::CONFIG_MSIX_VECTOR => self.config_vector = value as u16,
            common::QUEUE_SELECT => self.queue_select = value as u16,
            common::QUEUE_ENABLE => self.enable(self.queue_select.into()),
            common::QUEUE_RESET => self.reset_queue(self.queue_select.into()),
            _ => {
                let Some(queue) = self.selected() else { return };
                match offset {
                    common::QUEUE_SIZE => queue.size = value as u16,
                    common::QUEUE_MSIX_VECTOR => queue.vector = value as u16,
                    common::QUEUE_DESC => queue.desc = low(queue.desc),
                    0x24 => queue.desc = high(queue.desc),
                    common::QUEUE_DRIVER => queue.driver = low(queue.driver),
                    0x2c => queue.driver = high(queue.driver),
                    common::QUEUE_DEVICE => queue.device = low(queue.device),
                    0x34 => queue.device = high(queue.device),
                    _ => {}
                }
            }
        }
    }
}

/// The card as the driver holds it.
pub struct Function(pub Arc<SoftCard>);

/// BAR 0.
struct Bar(Arc<SoftCard>);

impl Bar {
    fn get(&self, offset: u64, len: u64) -> u64 {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        self.0.model().read(offset, len)
    }

    fn set(&self, offset: u64, value: u64) {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        if (bar0::NOTIFY..bar0::MSIX_TABLE).contains(&offset) {
            self.0.doorbells.fetch_add(1, Ordering::Relaxed);
        }
        self.0.model().write(offset, value);
    }
}

impl RegisterIo for Bar {
    fn len(&self) -> u64 {
        bar0::SIZE
    }
    fn read8(&self, offset: u64) -> Result<u8, PciError> {
        Ok(self.get(offset, 1) as u8)
    }
    fn read16(&self, offset: u64) -> Result<u16, PciError> {
        Ok(self.get(offset, 2) as u16)
    }
    fn read32(&self, offset: u64) -> Result<u32, PciError> {
        Ok(self.get(offset, 4) as u32)
    }
    fn read64(&self, offset: u64) -> Result<u64, PciError> {
        Ok(self.get(offset, 8))
    }
    fn write8(&self, offset: u64, value: u8) -> Result<(), PciError> {
        self.set(offset, value.into());
        Ok(())
    }
    fn write16(&self, offset: u64, value: u16) -> Result<(), PciError> {
        self.set(offset, value.into());
        Ok(())
    }
    fn write32(&self, offset: u64, value: u32) -> Result<(), PciError> {
        self.set(offset, value.into());
        Ok(())
    }
    fn write64(&self, _offset: u64, _value: u64) -> Result<(), PciError> {
        panic!("the driver writes 64-bit registers as two halves")
    }
}

struct Irqs(Arc<SoftCard>, u16);

impl Interrupts for Irqs {
    fn count(&self) -> u16 {
        self.1
    }
    fn wait(&self, _timeout: Duration) -> Result<Option<u16>, PciError> {
        let mut model = self.0.model();
        model.run();
        Ok(model.irqs.pop_front())
    }
}

impl PciFunction for Function {
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError> {
        let offset = usize::from(offset);
        buf.copy_from_slice(&config_space::bytes()[offset..offset + buf.len()]);
        Ok(())
    }
    fn config_write(&self, _offset: u16, _data: &[u8]) -> Result<(), PciError> {
        Ok(())
    }
    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError> {
        match index {
            0 => Ok(Arc::new(Bar(Arc::clone(&self.0)))),
            _ => Err(PciError::NoSuchBar(index)),
        }
    }
    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError> {
        let memory = DmaMemory::new(len)?;
        let mut model = self.0.model();
        let iova = model.next_iova;
        model.next_iova += memory.len() as u64 + 4096;
        // A mapping of the card's own, of the same memfd.
        let file = memory.file().try_clone().unwrap();
        let map = MmapRegion::from_file(FileOffset::new(file, 0), memory.len()).unwrap();
        let region = GuestRegionMmap::new(map, GuestAddress(iova)).unwrap();
        model.memory = model.memory.insert_region(Arc::new(region)).unwrap();
        let lease = Lease::new(&model.regions);
        Ok(DmaRegion::new(memory, iova, Some(Box::new(lease))))
    }
    fn enable_interrupts(&self, count: u16) -> Result<Box<dyn Interrupts>, PciError> {
        Ok(Box::new(Irqs(Arc::clone(&self.0), count)))
    }
    fn reset(&self) -> Result<(), PciError> {
        self.0.model().reset();
        Ok(())
    }
    fn poll(&self) {
        self.0.run();
    }
}

/// A frame whose bytes tell frames apart.
pub fn frame(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    bytes.extend_from_slice(&number.to_le_bytes());
    while bytes.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend_from_slice(&x.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
