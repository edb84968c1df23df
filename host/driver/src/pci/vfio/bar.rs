//! The registers of a BAR: mapped where the kernel allows it, by read and write calls elsewhere.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};

use super::barrier;
use crate::pci::{PciError, RegisterIo};

/// A part of a BAR that may be mapped: offset and length.
pub(super) type Area = (u64, u64);

/// A region of the device's file.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionInfo {
    /// Number, for messages.
    pub(super) index: u8,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) size: u64,
}

/// Something with a descriptor that lives as long as it does.
pub(super) trait Descriptor: AsRawFd + Send + Sync {}
impl<T: AsRawFd + Send + Sync> Descriptor for T {}

struct Window {
    offset: u64,
    map: MmapRaw,
}

/// One memory BAR.
pub(super) struct Bar<D> {
    region: RegionInfo,
    windows: Vec<Window>,
    device: Arc<D>,
}

impl<D: Descriptor> Bar<D> {
    /// Maps `areas` of a region. One that cannot be mapped is left to calls.
    pub(super) fn new(device: Arc<D>, region: RegionInfo, areas: &[Area]) -> Self {
        let mut windows = Vec::new();
        for &(offset, len) in areas {
            let inside = offset
                .checked_add(len)
                .is_some_and(|end| end <= region.size);
            if len == 0 || !inside {
                log::warn!("BAR {}: the kernel names a strange area", region.index);
                continue;
            }
            let mapped = MmapOptions::new()
                .offset(region.offset + offset)
                .len(len as usize)
                .map_raw(device.as_raw_fd());
            match mapped {
                Ok(map) => windows.push(Window { offset, map }),
                Err(e) => log::debug!("BAR {}: not mapped at {offset:#x}: {e}", region.index),
            }
        }
        Self {
            region,
            windows,
            device,
        }
    }

    /// Where a register is mapped, if it is.
    fn mapped(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let window = self.windows.iter().find(|window| {
            offset >= window.offset && offset + len <= window.offset + window.map.len() as u64
        })?;
        let at = (offset - window.offset) as usize;
        // SAFETY: `at` is inside the mapping, as was just checked.
        Some(unsafe { window.map.as_mut_ptr().add(at) })
    }

    fn check(&self, offset: u64, len: u64) -> Result<(), PciError> {
        if offset
            .checked_add(len)
            .is_none_or(|end| end > self.region.size)
        {
            return Err(PciError::OutOfRange {
                what: "a BAR",
                offset,
                len,
                size: self.region.size,
            });
        }
        if !offset.is_multiple_of(len) {
            return Err(PciError::Misaligned { offset, len });
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: `self.device` keeps the descriptor open for as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.device.as_raw_fd()) }
    }

    /// The kernel makes one access of the width of the call.
    fn call_read<const N: usize>(&self, offset: u64) -> Result<[u8; N], PciError> {
        let mut bytes = [0; N];
        read_exact(self.fd(), self.region, offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// Reads from a region by one call.
pub(super) fn read_exact(
    fd: BorrowedFd<'_>,
    region: RegionInfo,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), PciError> {
    let what = || format!("reading {offset:#x} of region {}", region.index);
    let len = bytes.len();
    match rustix::io::pread(fd, bytes, region.offset + offset) {
        Ok(got) if got == len => Ok(()),
        Ok(got) => Err(short(what(), got, len)),
        Err(e) => Err(PciError::io(what(), e)),
    }
}

/// Writes to a region by one call.
pub(super) fn write_all(
    fd: BorrowedFd<'_>,
    region: RegionInfo,
    offset: u64,
    bytes: &[u8],
) -> Result<(), PciError> {
    let what = || format!("writing {offset:#x} of region {}", region.index);
    match rustix::io::pwrite(fd, bytes, region.offset + offset) {
        Ok(got) if got == bytes.len() => Ok(()),
        Ok(got) => Err(short(what(), got, bytes.len())),
        Err(e) => Err(PciError::io(what(), e)),
    }
}

fn short(what: String, got: usize, len: usize) -> PciError {
    let detail = format!("the kernel moved {got} of {len} bytes");
    PciError::Protocol { what, detail }
}

macro_rules! access {
    ($read:ident, $write:ident, $type:ty) => {
        fn $read(&self, offset: u64) -> Result<$type, PciError> {
            const LEN: u64 = size_of::<$type>() as u64;
            self.check(offset, LEN)?;
            let value = match self.mapped(offset, LEN) {
                // SAFETY: inside a mapping that lives as long as `self`, aligned (the area begins
                // on a page). Volatile: one access of this width, never left out or repeated.
                Some(at) => <$type>::from_le(unsafe { at.cast::<$type>().read_volatile() }),
                None => <$type>::from_le_bytes(self.call_read(offset)?),
            };
            barrier::after_read();
            Ok(value)
        }

        fn $write(&self, offset: u64, value: $type) -> Result<(), PciError> {
            const LEN: u64 = size_of::<$type>() as u64;
            self.check(offset, LEN)?;
            barrier::before_write();
            match self.mapped(offset, LEN) {
                Some(at) => {
                    // SAFETY: as for reads.
                    unsafe { at.cast::<$type>().write_volatile(value.to_le()) };
                    Ok(())
                }
                None => write_all(self.fd(), self.region, offset, &value.to_le_bytes()),
            }
        }
    };
}

impl<D: Descriptor> RegisterIo for Bar<D> {
    fn len(&self) -> u64 {
        self.region.size
    }

    access!(read8, write8, u8);
    access!(read16, write16, u16);
    access!(read32, write32, u32);
    access!(read64, write64, u64);
}
