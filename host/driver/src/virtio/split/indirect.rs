//! Tables of indirect descriptors: one for each descriptor of the ring.

use std::sync::Arc;

use ferronic_spec::ring::Descriptor;
use zerocopy::IntoBytes;

use crate::pci::DmaRegion;

/// Tables in DMA memory.
pub(super) struct Tables {
    region: Arc<DmaRegion>,
    tables: u16,
    entries: u16,
}

impl Tables {
    pub(super) fn bytes(tables: u16, entries: u16) -> usize {
        usize::from(tables) * usize::from(entries) * size_of::<Descriptor>()
    }

    pub(super) fn new(region: Arc<DmaRegion>, tables: u16, entries: u16) -> Self {
        assert!(region.len() >= Self::bytes(tables, entries));
        Self {
            region,
            tables,
            entries,
        }
    }

    pub(super) fn entries(&self) -> u16 {
        self.entries
    }

    fn offset(&self, table: u16) -> usize {
        assert!(table < self.tables);
        Self::bytes(table, self.entries)
    }

    /// Address of a table as the device sees it.
    pub(super) fn address(&self, table: u16) -> u64 {
        self.region.iova() + self.offset(table) as u64
    }

    /// Writes one entry of a table.
    pub(super) fn write(&self, table: u16, entry: u16, descriptor: Descriptor) {
        assert!(entry < self.entries);
        let at = self.offset(table) + usize::from(entry) * size_of::<Descriptor>();
        // SAFETY: table and entry were checked against what `new` checked against the region; the
        // device only reads the tables, and not this one while its descriptor is the driver's.
        unsafe {
            std::ptr::copy_nonoverlapping(
                descriptor.as_bytes().as_ptr(),
                self.region.as_ptr().add(at),
                size_of::<Descriptor>(),
            );
        }
    }
}
