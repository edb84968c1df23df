//! Host memory as the card sees it: I/O virtual addresses, mapped to memory of this process.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use ferronic::pci::DmaMemory;
use thiserror::Error;

use super::ranges::RangeSet;

/// Memory that can be mapped for the card. It stays mapped into this process while a clone lives.
#[derive(Clone)]
pub struct Backing {
    base: *mut u8,
    len: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the memory is only touched through atomic accesses, and `owner` keeps it mapped.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    /// Memory at `base`, which `owner` keeps mapped and writable.
    ///
    /// # Safety
    /// `base..base + len` must stay mapped, readable and writable while `owner` lives, and must
    /// only be accessed by raw pointers or atomics, never through references to plain data.
    pub unsafe fn new(base: *mut u8, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { base, len, owner }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl From<Arc<DmaMemory>> for Backing {
    fn from(memory: Arc<DmaMemory>) -> Self {
        let (base, len) = (memory.as_ptr(), memory.len());
        // SAFETY: a `DmaMemory` is a shared mapping that lives as long as the Arc and gives out
        // copies and atomics only.
        unsafe { Self::new(base, len, memory) }
    }
}

/// What the card may do with a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Reads are allowed.
    pub read: bool,
    /// Writes are allowed.
    pub write: bool,
}

impl Access {
    /// Reads and writes.
    pub const READ_WRITE: Self = Self {
        read: true,
        write: true,
    };
    /// Reads only.
    pub const READ_ONLY: Self = Self {
        read: true,
        write: false,
    };
}

/// Why a mapping was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// Nothing to map, or beyond the end of the address space or of the memory.
    #[error("the range {iova:#x} + {len:#x} is empty or beyond the memory or the address space")]
    Range {
        /// First address.
        iova: u64,
        /// Length.
        len: u64,
    },
    /// A part of the range is mapped already.
    #[error("the range {iova:#x} + {len:#x} overlaps the mapping at {other:#x}: unmap that first")]
    Overlap {
        /// First address.
        iova: u64,
        /// Length.
        len: u64,
        /// First address of the mapping in the way.
        other: u64,
    },
    /// An unmap range that cuts a mapping in two.
    #[error("unmapping {iova:#x} + {len:#x} would cut the mapping at {other:#x} in two")]
    Cut {
        /// First address.
        iova: u64,
        /// Length.
        len: u64,
        /// First address of the mapping.
        other: u64,
    },
}

/// Why an access of the card was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// No mapping covers some byte.
    Unmapped,
    /// The mapping does not allow it.
    Permission,
    /// The write guard does not allow it.
    Guarded,
}

/// An access of the card that was refused: the card was told UR, or its write was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// First address of the access.
    pub iova: u64,
    /// Its length.
    pub len: usize,
    /// It was a write.
    pub write: bool,
    /// Why it was refused.
    pub reason: FaultReason,
}

struct Mapping {
    len: u64,
    base: *mut u8,
    access: Access,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: as for `Backing`.
unsafe impl Send for Mapping {}

/// The map of host memory. Each access is checked against it.
#[derive(Default)]
pub struct HostMemory {
    maps: BTreeMap<u64, Mapping>,
    guard: Option<RangeSet>,
}

impl HostMemory {
    /// An empty map: every access faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of mappings.
    pub fn mappings(&self) -> usize {
        self.maps.len()
    }

    /// Maps `len` bytes of `backing` from `offset` at `iova`.
    pub fn map(
        &mut self,
        iova: u64,
        len: u64,
        backing: &Backing,
        offset: u64,
        access: Access,
    ) -> Result<(), MapError> {
        let range = MapError::Range { iova, len };
        let last = len
            .checked_sub(1)
            .and_then(|l| iova.checked_add(l))
            .ok_or(range)?;
        let inside = offset
            .checked_add(len)
            .is_some_and(|end| end <= backing.len as u64);
        if !inside {
            return Err(range);
        }
        if let Some((other, _)) = self.first_overlap(iova, last) {
            return Err(MapError::Overlap { iova, len, other });
        }
        self.maps.insert(
            iova,
            Mapping {
                len,
                // SAFETY: `offset + len` is inside the backing.
                base: unsafe { backing.base.add(offset as usize) },
                access,
                _owner: backing.owner.clone(),
            },
        );
        Ok(())
    }

    /// Removes every mapping inside `iova..iova + len` and returns how many there were. A range
    /// that holds nothing, or reaches beyond the address space, is no error.
    pub fn unmap(&mut self, iova: u64, len: u64) -> Result<usize, MapError> {
        if len == 0 {
            return Ok(0);
        }
        let last = iova.saturating_add(len - 1);
        let mut inside = Vec::new();
        for (start, map) in self.overlaps(iova, last) {
            let map_last = start + (map.len - 1);
            if start < iova || map_last > last {
                let other = start;
                return Err(MapError::Cut { iova, len, other });
            }
            inside.push(start);
        }
        for start in &inside {
            self.maps.remove(start);
        }
        Ok(inside.len())
    }

    /// Removes every mapping.
    pub fn clear(&mut self) {
        self.maps.clear();
    }

    /// From now on a write must hit a range that was allowed with [`Self::guard_allow`].
    pub fn guard_enable(&mut self) {
        self.guard.get_or_insert_default();
    }

    /// Ends what [`Self::guard_enable`] began and forgets the ranges.
    pub fn guard_disable(&mut self) {
        self.guard = None;
    }

    /// Allows writes to a range; nothing happens if the guard is off.
    pub fn guard_allow(&mut self, iova: u64, len: u64) {
        if let Some(guard) = &mut self.guard {
            guard.insert(iova, len);
        }
    }

    /// Forbids writes to a range again.
    pub fn guard_revoke(&mut self, iova: u64, len: u64) {
        if let Some(guard) = &mut self.guard {
            guard.remove(iova, len);
        }
    }

    /// Copies bytes out of host memory.
    pub fn read(&self, iova: u64, buf: &mut [u8]) -> Result<(), MemoryFault> {
        self.check(iova, buf.len(), false)?;
        // Whatever the host wrote before it let the card know is seen.
        fence(Ordering::Acquire);
        self.pieces(iova, buf.len(), |base, at, n| {
            // SAFETY: `pieces` gives ranges inside live mappings.
            unsafe { copy_from_shared(base, &mut buf[at..at + n]) }
        });
        Ok(())
    }

    /// Copies bytes into host memory. Either all are written or none.
    pub fn write(&mut self, iova: u64, data: &[u8]) -> Result<(), MemoryFault> {
        self.check(iova, data.len(), true)?;
        // A later write is never seen before an earlier one.
        fence(Ordering::Release);
        self.pieces(iova, data.len(), |base, at, n| {
            // SAFETY: `pieces` gives ranges inside live mappings.
            unsafe { copy_to_shared(base, &data[at..at + n]) }
        });
        Ok(())
    }

    fn check(&self, iova: u64, len: usize, write: bool) -> Result<(), MemoryFault> {
        let fault = |reason| MemoryFault {
            iova,
            len,
            write,
            reason,
        };
        let mut at = iova;
        let mut left = len as u64;
        while left > 0 {
            let (start, map) = self
                .containing(at)
                .ok_or_else(|| fault(FaultReason::Unmapped))?;
            if !(if write {
                map.access.write
            } else {
                map.access.read
            }) {
                return Err(fault(FaultReason::Permission));
            }
            let here = (map.len - (at - start)).min(left);
            left -= here;
            if left > 0 {
                at = at
                    .checked_add(here)
                    .ok_or_else(|| fault(FaultReason::Unmapped))?;
            }
        }
        match &self.guard {
            Some(guard) if write && !guard.contains(iova, len as u64) => {
                Err(fault(FaultReason::Guarded))
            }
            _ => Ok(()),
        }
    }

    /// Calls `f(pointer, offset in the access, bytes)` for each piece of a checked range.
    fn pieces(&self, iova: u64, len: usize, mut f: impl FnMut(*mut u8, usize, usize)) {
        let mut done = 0;
        while done < len {
            let at = iova + done as u64;
            let Some((start, map)) = self.containing(at) else {
                return;
            };
            let skip = at - start;
            let here = (map.len - skip).min((len - done) as u64) as usize;
            // SAFETY: `skip` is less than the mapping's length.
            f(unsafe { map.base.add(skip as usize) }, done, here);
            done += here;
        }
    }

    fn containing(&self, iova: u64) -> Option<(u64, &Mapping)> {
        let (start, map) = self.maps.range(..=iova).next_back()?;
        (iova - start < map.len).then_some((*start, map))
    }

    fn overlaps(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, &Mapping)> {
        let before = self
            .maps
            .range((Bound::Unbounded, Bound::Excluded(first)))
            .next_back()
            .filter(move |(start, map)| first - **start < map.len);
        before
            .into_iter()
            .chain(self.maps.range(first..=last))
            .map(|(start, map)| (*start, map))
    }

    fn first_overlap(&self, first: u64, last: u64) -> Option<(u64, &Mapping)> {
        self.overlaps(first, last).next()
    }
}

/// Copies to memory that another thread or process may read at the same time. Aligned fields of
/// 2, 4 and 8 bytes change in one step.
///
/// # Safety
/// `to..to + data.len()` must be mapped and writable.
unsafe fn copy_to_shared(to: *mut u8, data: &[u8]) {
    let mut at = 0;
    while at < data.len() {
        let pointer = to.wrapping_add(at);
        let left = &data[at..];
        let step = step_at(pointer as usize, left.len());
        // SAFETY: the caller vouches for the range; `step_at` for the alignment.
        unsafe {
            match *left {
                [a, b, c, d, e, f, g, h, ..] if step == 8 => AtomicU64::from_ptr(pointer.cast())
                    .store(
                        u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
                        Ordering::Relaxed,
                    ),
                [a, b, c, d, ..] if step == 4 => AtomicU32::from_ptr(pointer.cast())
                    .store(u32::from_ne_bytes([a, b, c, d]), Ordering::Relaxed),
                [a, b, ..] if step == 2 => AtomicU16::from_ptr(pointer.cast())
                    .store(u16::from_ne_bytes([a, b]), Ordering::Relaxed),
                [a, ..] => AtomicU8::from_ptr(pointer).store(a, Ordering::Relaxed),
                [] => return,
            }
        }
        at += step;
    }
}

/// Copies from memory that another thread or process may write at the same time.
///
/// # Safety
/// `from..from + buf.len()` must be mapped and readable.
unsafe fn copy_from_shared(from: *mut u8, buf: &mut [u8]) {
    let mut at = 0;
    while at < buf.len() {
        let pointer = from.wrapping_add(at);
        let left = &mut buf[at..];
        let step = step_at(pointer as usize, left.len());
        // SAFETY: the caller vouches for the range; `step_at` for the alignment.
        unsafe {
            match step {
                8 => left[..8].copy_from_slice(
                    &AtomicU64::from_ptr(pointer.cast())
                        .load(Ordering::Relaxed)
                        .to_ne_bytes(),
                ),
                4 => left[..4].copy_from_slice(
                    &AtomicU32::from_ptr(pointer.cast())
                        .load(Ordering::Relaxed)
                        .to_ne_bytes(),
                ),
                2 => left[..2].copy_from_slice(
                    &AtomicU16::from_ptr(pointer.cast())
                        .load(Ordering::Relaxed)
                        .to_ne_bytes(),
                ),
                _ => left[0] = AtomicU8::from_ptr(pointer).load(Ordering::Relaxed),
            }
        }
        at += step;
    }
}

/// The widest naturally aligned access at `address` of at most `left` bytes.
fn step_at(address: usize, left: usize) -> usize {
    [8, 4, 2]
        .into_iter()
        .find(|step| address.is_multiple_of(*step) && left >= *step)
        .unwrap_or(1)
}
