//! How a frame lies in memory: the buffers of the pool that it takes, and its descriptors.

use super::buffer::TxPart;
use super::pool::Pool;
use crate::pci::PciError;
use crate::virtio::split::Segment;

/// End of a list of buffers.
const NONE: u16 = u16::MAX;

/// The frame being laid out, and the lists of the buffers of frames under way.
pub(super) struct Layout {
    /// Descriptors of the frame.
    pub segments: Vec<Segment>,
    /// First buffer of the frame.
    first: u16,
    /// Buffer that is being filled, and how far.
    last: u16,
    at: usize,
    /// The end of the last segment is where copied bytes go on.
    open: bool,
    /// Next buffer of the same frame.
    next: Box<[u16]>,
    /// Free buffers.
    free: Vec<u16>,
}

impl Layout {
    pub(super) fn new(buffers: u16) -> Self {
        Self {
            segments: Vec::new(),
            first: NONE,
            last: NONE,
            at: 0,
            open: false,
            next: vec![NONE; usize::from(buffers)].into_boxed_slice(),
            free: (0..buffers).rev().collect(),
        }
    }

    /// All buffers are free again.
    pub(super) fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.next.len() as u16).rev());
        self.segments.clear();
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Begins a frame of so many copied bytes; false if there are too few free buffers.
    pub(super) fn begin(&mut self, pool: &Pool, copied: usize) -> bool {
        if self.free.len() < copied.div_ceil(pool.len()) {
            return false;
        }
        self.segments.clear();
        self.first = NONE;
        self.last = NONE;
        self.at = pool.len();
        self.open = false;
        true
    }

    /// Puts a part behind the others; `join` lets copied bytes share a descriptor with those before
    /// them. `begin` has seen to it that there are buffers enough.
    pub(super) fn put(
        &mut self,
        pool: &Pool,
        part: &TxPart<'_>,
        join: bool,
    ) -> Result<(), PciError> {
        match part {
            TxPart::Bytes(bytes) => {
                self.open &= join;
                self.copy(pool, bytes)
            }
            TxPart::Shared(slice) => {
                self.open = false;
                self.segments.push(Segment {
                    addr: slice.iova(),
                    len: part.len() as u32,
                });
                Ok(())
            }
        }
    }

    fn copy(&mut self, pool: &Pool, bytes: &[u8]) -> Result<(), PciError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.at == pool.len() {
                self.take();
            }
            let (now, later) = rest.split_at(rest.len().min(pool.len() - self.at));
            pool.write(self.last, self.at, now)?;
            match self.segments.last_mut() {
                Some(segment) if self.open => segment.len += now.len() as u32,
                _ => self
                    .segments
                    .push(pool.segment(self.last, self.at, now.len())),
            }
            self.open = true;
            self.at += now.len();
            rest = later;
        }
        Ok(())
    }

    fn take(&mut self) {
        // Not empty: see `begin`.
        let Some(buffer) = self.free.pop() else {
            unreachable!("a frame takes no more buffers than were counted")
        };
        self.next[usize::from(buffer)] = NONE;
        match self.last {
            NONE => self.first = buffer,
            last => self.next[usize::from(last)] = buffer,
        }
        self.last = buffer;
        self.at = 0;
        self.open = false;
    }

    /// First buffer of the frame that was laid out; the others follow from it.
    pub(super) fn first(&self) -> u16 {
        self.first
    }

    /// Gives the buffers of a frame back.
    pub(super) fn release(&mut self, first: u16) {
        let mut buffer = first;
        while buffer != NONE {
            self.free.push(buffer);
            buffer = std::mem::replace(&mut self.next[usize::from(buffer)], NONE);
        }
    }
}
