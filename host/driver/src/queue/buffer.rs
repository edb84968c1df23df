//! DMA memory of the caller's, for frames that are sent without being copied.

use std::fmt;
use std::sync::Arc;

use crate::device::Core;
use crate::error::Error;
use crate::pci::{DmaRegion, PciError};

/// Memory that the card reads in place ([`Device::buffer`](crate::Device::buffer)).
///
/// A clone is another handle to the same memory. A queue keeps a handle to what it was given until
/// the card has read it; until then (see [`TxQueue::reap`](crate::TxQueue::reap)) what the caller
/// writes there may or may not be sent. As long as a handle exists the card stays open.
#[derive(Clone)]
pub struct DmaBuffer {
    // Before `core`: the device loses its access, then the memory goes.
    region: Arc<DmaRegion>,
    core: Arc<Core>,
}

impl DmaBuffer {
    pub(crate) fn new(core: &Arc<Core>, len: usize) -> Result<Self, PciError> {
        Ok(Self {
            region: Arc::new(core.function().dma_alloc(len)?),
            core: Arc::clone(core),
        })
    }

    /// Bytes: what was asked for, rounded up to whole pages.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Never true: there is at least one page.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// When they do not fit behind `offset`.
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<(), Error> {
        Ok(self.region.memory().write(offset, data)?)
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// When there are not so many behind `offset`.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Error> {
        Ok(self.region.memory().read(offset, bytes)?)
    }

    /// Part of the memory, for [`TxPart::Shared`].
    ///
    /// # Errors
    /// When it does not lie within the memory.
    pub fn slice(&self, offset: usize, len: usize) -> Result<DmaSlice<'_>, Error> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => Ok(DmaSlice {
                buffer: self,
                offset,
                len,
            }),
            _ => Err(PciError::OutOfRange {
                what: "a DMA buffer",
                offset: offset as u64,
                len: len as u64,
                size: self.len() as u64,
            }
            .into()),
        }
    }

    pub(super) fn region(&self) -> &Arc<DmaRegion> {
        &self.region
    }
}

impl fmt::Debug for DmaBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DmaBuffer").field(&self.region).finish()
    }
}

/// Part of a [`DmaBuffer`].
#[derive(Clone, Copy, Debug)]
pub struct DmaSlice<'a> {
    buffer: &'a DmaBuffer,
    offset: usize,
    len: usize,
}

impl DmaSlice<'_> {
    /// Address of its first byte, as the device sees it.
    pub(super) fn iova(&self) -> u64 {
        self.buffer.region.iova() + self.offset as u64
    }

    pub(super) fn belongs_to(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.buffer.core, core)
    }

    pub(super) fn buffer(&self) -> &DmaBuffer {
        self.buffer
    }
}

/// A part of a frame to be sent.
#[derive(Clone, Copy, Debug)]
pub enum TxPart<'a> {
    /// Bytes that are copied into the queue's own memory.
    Bytes(&'a [u8]),
    /// Memory that the card reads in place.
    Shared(DmaSlice<'a>),
}

impl TxPart<'_> {
    /// Bytes of the part.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Shared(slice) => slice.len,
        }
    }

    /// True if there are none: such a part is left out.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies its first bytes, as many as fit.
    pub(crate) fn peek(&self, to: &mut [u8]) -> Result<usize, Error> {
        let count = self.len().min(to.len());
        match self {
            Self::Bytes(bytes) => to[..count].copy_from_slice(&bytes[..count]),
            Self::Shared(slice) => slice.buffer.read(slice.offset, &mut to[..count])?,
        }
        Ok(count)
    }
}
