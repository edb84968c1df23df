//! DMA memory: a memfd, mapped shared, known to the device by an I/O virtual address.

use std::any::Any;
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::MemfdFlags;

use super::PciError;

/// Granularity of DMA memory.
pub const DMA_PAGE: usize = 4096;

/// A memfd mapped shared: the memory behind a [`DmaRegion`].
///
/// A backend keeps a clone of the `Arc` (or the file descriptor) to let the device reach it.
/// Both sides may write at any time, so there are no references into it, only copies.
pub struct DmaMemory {
    map: MmapRaw,
    file: File,
}

impl DmaMemory {
    /// Creates zeroed memory of at least `len` bytes, rounded up to whole pages.
    pub fn new(len: usize) -> Result<Arc<Self>, PciError> {
        let len = len
            .max(1)
            .checked_next_multiple_of(DMA_PAGE)
            .filter(|len| isize::try_from(*len).is_ok())
            .ok_or(PciError::OutOfRange {
                what: "the address space",
                offset: 0,
                len: len as u64,
                size: isize::MAX as u64,
            })?;
        let fd = rustix::fs::memfd_create("ferronic-dma", MemfdFlags::CLOEXEC)
            .map_err(|e| PciError::io("creating a memfd for DMA memory", e))?;
        let file = File::from(fd);
        file.set_len(len as u64)
            .map_err(|e| PciError::io(format!("sizing a memfd to {len} bytes"), e))?;
        let map = MmapOptions::new()
            .len(len)
            .map_raw(&file)
            .map_err(|e| PciError::io(format!("mapping {len} bytes of DMA memory"), e))?;
        Ok(Arc::new(Self { map, file }))
    }

    /// Length in bytes, a multiple of [`DMA_PAGE`].
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Never true: there is at least one page.
    pub fn is_empty(&self) -> bool {
        self.map.len() == 0
    }

    /// Start of the mapping in this process.
    pub fn as_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// The memfd, to be sent to a device in another process.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn check(&self, offset: usize, len: usize) -> Result<(), PciError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(PciError::OutOfRange {
                what: "DMA memory",
                offset: offset as u64,
                len: len as u64,
                size: self.len() as u64,
            }),
        }
    }

    /// Copies bytes out of the memory.
    pub fn read(&self, offset: usize, buf: &mut [u8]) -> Result<(), PciError> {
        self.check(offset, buf.len())?;
        // SAFETY: the range was checked to be inside the mapping, `buf` is not part of it (no
        // reference into the mapping is ever handed out).
        unsafe {
            std::ptr::copy_nonoverlapping(self.as_ptr().add(offset), buf.as_mut_ptr(), buf.len());
        }
        Ok(())
    }

    /// Copies bytes out of the memory to the end of `out`, which need not be filled before.
    pub fn append_to(&self, offset: usize, len: usize, out: &mut Vec<u8>) -> Result<(), PciError> {
        self.check(offset, len)?;
        out.reserve(len);
        // SAFETY: the range was checked to be inside the mapping, `out` is not part of it and has
        // room for `len` more bytes, all of which are written before they count.
        unsafe {
            let end = out.as_mut_ptr().add(out.len());
            std::ptr::copy_nonoverlapping(self.as_ptr().add(offset), end, len);
            out.set_len(out.len() + len);
        }
        Ok(())
    }

    /// Copies bytes into the memory.
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<(), PciError> {
        self.check(offset, data.len())?;
        // SAFETY: as in `read`.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), self.as_ptr().add(offset), data.len());
        }
        Ok(())
    }

    /// A 16-bit atomic in the memory; `offset` must be even.
    pub fn atomic_u16(&self, offset: usize) -> Result<&AtomicU16, PciError> {
        self.check(offset, 2)?;
        if !offset.is_multiple_of(2) {
            return Err(PciError::Misaligned {
                offset: offset as u64,
                len: 2,
            });
        }
        // SAFETY: inside the mapping, aligned (the mapping starts on a page), lives as long as
        // `self`, and an atomic may be shared with other writers.
        Ok(unsafe { AtomicU16::from_ptr(self.as_ptr().add(offset).cast()) })
    }

    /// A 32-bit atomic in the memory; `offset` must be a multiple of four.
    pub fn atomic_u32(&self, offset: usize) -> Result<&AtomicU32, PciError> {
        self.check(offset, 4)?;
        if !offset.is_multiple_of(4) {
            return Err(PciError::Misaligned {
                offset: offset as u64,
                len: 4,
            });
        }
        // SAFETY: as in `atomic_u16`.
        Ok(unsafe { AtomicU32::from_ptr(self.as_ptr().add(offset).cast()) })
    }
}

impl fmt::Debug for DmaMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmaMemory")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// DMA memory that the device knows by the address [`DmaRegion::iova`].
///
/// Dropping the region ends the device's access, then frees the memory.
pub struct DmaRegion {
    // Dropped first: the device must lose its access before the memory goes.
    keepalive: Option<Box<dyn Any + Send + Sync>>,
    memory: Arc<DmaMemory>,
    iova: u64,
}

impl DmaRegion {
    /// Puts a region together. `keepalive` is dropped first, and its drop must unmap the memory
    /// from the device.
    pub fn new(
        memory: Arc<DmaMemory>,
        iova: u64,
        keepalive: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        Self {
            keepalive,
            memory,
            iova,
        }
    }

    /// Address of the first byte as the device sees it.
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Address of the first byte in this process.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Never true: there is at least one page.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// The memory itself, for copies and atomics.
    pub fn memory(&self) -> &Arc<DmaMemory> {
        &self.memory
    }
}

impl fmt::Debug for DmaRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmaRegion")
            .field("iova", &format_args!("{:#x}", self.iova))
            .field("len", &self.len())
            .field("mapped", &self.keepalive.is_some())
            .finish()
    }
}
