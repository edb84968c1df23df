//! Equal buffers in one piece of DMA memory.

use std::sync::Arc;

use crate::error::Error;
use crate::gro::Buffers;
use crate::pci::{DmaRegion, PciError};
use crate::virtio::split::Segment;

/// Buffers start in slots of this alignment, at the offset asked for.
const SLOT_ALIGN: usize = 64;

/// `count` buffers of `len` bytes each, numbered from 0.
pub(super) struct Pool {
    region: Arc<DmaRegion>,
    count: u16,
    stride: usize,
    offset: usize,
    len: usize,
}

impl Pool {
    /// Buffers of `len` bytes that start `offset` bytes into their slots.
    pub(super) fn new(
        alloc: &dyn Fn(usize) -> Result<Arc<DmaRegion>, PciError>,
        count: u16,
        len: usize,
        offset: usize,
    ) -> Result<Self, Error> {
        let stride = (offset + len).next_multiple_of(SLOT_ALIGN);
        let region = alloc(stride * usize::from(count))?;
        Ok(Self {
            region,
            count,
            stride,
            offset,
            len,
        })
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn start(&self, buffer: u16) -> usize {
        debug_assert!(buffer < self.count);
        usize::from(buffer) * self.stride + self.offset
    }

    /// Part of a buffer, for the device.
    pub(super) fn segment(&self, buffer: u16, from: usize, len: usize) -> Segment {
        debug_assert!(from + len <= self.len);
        Segment {
            addr: self.region.iova() + (self.start(buffer) + from) as u64,
            len: len as u32,
        }
    }

    /// Where part of a buffer is, for calls that take addresses.
    pub(super) fn span(&self, buffer: u16, from: usize, len: usize) -> Result<*mut u8, PciError> {
        match from.checked_add(len) {
            // In range: the region has room for every buffer.
            Some(end) if end <= self.len && buffer < self.count => {
                Ok(self.region.as_ptr().wrapping_add(self.start(buffer) + from))
            }
            _ => Err(PciError::OutOfRange {
                what: "a receive buffer",
                offset: from as u64,
                len: len as u64,
                size: self.len as u64,
            }),
        }
    }

    /// Copies out of a buffer.
    #[inline]
    pub(super) fn read(&self, buffer: u16, from: usize, out: &mut [u8]) -> Result<(), PciError> {
        self.region.memory().read(self.start(buffer) + from, out)
    }

    /// Copies out of a buffer to the end of `out`.
    pub(super) fn append_to(
        &self,
        buffer: u16,
        from: usize,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PciError> {
        let memory = self.region.memory();
        memory.append_to(self.start(buffer) + from, len, out)
    }

    /// Copies into a buffer.
    pub(super) fn write(&self, buffer: u16, from: usize, data: &[u8]) -> Result<(), PciError> {
        self.region.memory().write(self.start(buffer) + from, data)
    }
}

impl Buffers for Pool {
    #[inline]
    fn read(&self, buffer: u16, from: usize, out: &mut [u8]) -> Result<(), PciError> {
        self.read(buffer, from, out)
    }

    fn write(&self, buffer: u16, from: usize, data: &[u8]) -> Result<(), PciError> {
        self.write(buffer, from, data)
    }
}
