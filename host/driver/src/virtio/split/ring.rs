//! The three areas of a split virtqueue in DMA memory, and the order in which they are accessed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

use ferronic_spec::ring::{Descriptor, RingLayout, UsedElem};
use zerocopy::IntoBytes;

use crate::pci::DmaRegion;
use crate::virtio::QueueAddresses;

/// Areas start on cache lines: what the driver writes and what the device writes do not share one.
const AREA_ALIGN: usize = 64;

/// A ring in DMA memory. Entry numbers are taken modulo the ring size.
pub(super) struct Ring {
    region: Arc<DmaRegion>,
    layout: RingLayout,
    avail: usize,
    used: usize,
}

impl Ring {
    /// Bytes that a ring of `size` entries needs.
    pub(super) fn bytes(size: u16) -> usize {
        let layout = RingLayout { size };
        Self::used_offset(layout) + layout.used_len()
    }

    fn avail_offset(layout: RingLayout) -> usize {
        layout.desc_len().next_multiple_of(AREA_ALIGN)
    }

    fn used_offset(layout: RingLayout) -> usize {
        (Self::avail_offset(layout) + layout.avail_len()).next_multiple_of(AREA_ALIGN)
    }

    /// Puts a ring of `size` entries, a power of two, at the start of `region`.
    pub(super) fn new(region: Arc<DmaRegion>, size: u16) -> Self {
        assert!(size.is_power_of_two() && region.len() >= Self::bytes(size));
        let layout = RingLayout { size };
        let ring = Self {
            region,
            layout,
            avail: Self::avail_offset(layout),
            used: Self::used_offset(layout),
        };
        ring.clear();
        ring
    }

    pub(super) fn size(&self) -> u16 {
        self.layout.size
    }

    pub(super) fn addresses(&self) -> QueueAddresses {
        QueueAddresses {
            desc: self.region.iova(),
            driver: self.region.iova() + self.avail as u64,
            device: self.region.iova() + self.used as u64,
        }
    }

    /// Zeroes everything; the device must not be using the ring.
    pub(super) fn clear(&self) {
        // SAFETY: `new` checked that the region holds the ring.
        unsafe { std::ptr::write_bytes(self.region.as_ptr(), 0, Self::bytes(self.size())) };
    }

    /// `offset` is even and inside the ring: the callers below see to it.
    fn word(&self, offset: usize) -> &AtomicU16 {
        debug_assert!(offset.is_multiple_of(2) && offset + 2 <= Self::bytes(self.size()));
        // SAFETY: inside the region and aligned; lives as long as `self.region`.
        unsafe { AtomicU16::from_ptr(self.region.as_ptr().add(offset).cast()) }
    }

    fn dword(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= Self::bytes(self.size()));
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.region.as_ptr().add(offset).cast()) }
    }

    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.size() - 1))
    }

    /// Writes descriptor `index`. The device sees it once an `avail.idx` that covers it is stored.
    pub(super) fn write_descriptor(&self, index: u16, descriptor: Descriptor) {
        let at = self.slot(index) * size_of::<Descriptor>();
        // SAFETY: the descriptor table is at the start of the region and `slot` is less than its
        // size. No reference into the table exists, the device only reads it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                descriptor.as_bytes().as_ptr(),
                self.region.as_ptr().add(at),
                size_of::<Descriptor>(),
            );
        }
    }

    /// Writes entry `index` of the available ring.
    pub(super) fn write_avail(&self, index: u16, head: u16) {
        self.word(self.avail + RingLayout::RING + 2 * self.slot(index))
            .store(head.to_le(), Ordering::Relaxed);
    }

    /// Makes all entries before `index` visible to the device.
    pub(super) fn store_avail_idx(&self, index: u16) {
        self.word(self.avail + RingLayout::IDX)
            .store(index.to_le(), Ordering::Release);
    }

    /// Asks for no interrupt, or for interrupts (without EVENT_IDX).
    pub(super) fn store_avail_flags(&self, flags: u16) {
        self.word(self.avail + RingLayout::FLAGS)
            .store(flags.to_le(), Ordering::Relaxed);
    }

    /// Asks for an interrupt when the device uses entry `index` (EVENT_IDX).
    pub(super) fn store_used_event(&self, index: u16) {
        self.word(self.avail + self.layout.used_event())
            .store(index.to_le(), Ordering::Relaxed);
    }

    /// Orders a store above before a load below: between storing `avail.idx` and loading
    /// `avail_event`, and between storing `used_event` and loading `used.idx`. Release and acquire
    /// do not order a store before a later load; without this, both sides may miss each other.
    pub(super) fn full_fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// Entries before this were used by the device; they may be read afterwards.
    pub(super) fn load_used_idx(&self) -> u16 {
        u16::from_le(
            self.word(self.used + RingLayout::IDX)
                .load(Ordering::Acquire),
        )
    }

    /// Reads entry `index` of the used ring.
    pub(super) fn read_used(&self, index: u16) -> (u32, u32) {
        let at = self.used + RingLayout::RING + size_of::<UsedElem>() * self.slot(index);
        let id = self.dword(at).load(Ordering::Relaxed);
        let len = self.dword(at + 4).load(Ordering::Relaxed);
        (u32::from_le(id), u32::from_le(len))
    }

    /// The device's flags (without EVENT_IDX).
    pub(super) fn load_used_flags(&self) -> u16 {
        u16::from_le(
            self.word(self.used + RingLayout::FLAGS)
                .load(Ordering::Relaxed),
        )
    }

    /// The entry at which the device wants a doorbell (EVENT_IDX).
    pub(super) fn load_avail_event(&self) -> u16 {
        u16::from_le(
            self.word(self.used + self.layout.avail_event())
                .load(Ordering::Relaxed),
        )
    }
}
