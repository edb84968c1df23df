//! The split virtqueue in memory ("Split Virtqueues").

use bitflags::bitflags;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Largest virtqueue of the card.
pub const MAX_QUEUE_SIZE: u16 = 2048;

bitflags! {
    /// Flags of a descriptor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DescFlags: u16 {
        /// The buffer goes on in the descriptor `next`.
        const NEXT = 1;
        /// The device writes this part.
        const WRITE = 2;
        /// The part is a table of descriptors.
        const INDIRECT = 4;

        const _ = !0;
    }
}

/// `struct virtq_desc`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct Descriptor {
    /// Address of the first byte, as the device sees it.
    pub addr: U64,
    /// Bytes.
    pub len: U32,
    /// [`DescFlags`].
    pub flags: U16,
    /// Next descriptor of the chain.
    pub next: U16,
}

const _: () = assert!(size_of::<Descriptor>() == 16);

/// `struct virtq_used_elem`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct UsedElem {
    /// Head descriptor of the buffer.
    pub id: U32,
    /// Bytes that the device wrote.
    pub len: U32,
}

const _: () = assert!(size_of::<UsedElem>() == 8);

/// `flags` of the available ring: the driver wants no interrupt (without EVENT_IDX).
pub const AVAIL_NO_INTERRUPT: u16 = 1;
/// `flags` of the used ring: the device wants no doorbell (without EVENT_IDX).
pub const USED_NO_NOTIFY: u16 = 1;

/// Where the parts of a ring of `size` entries are, from the start of each area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLayout {
    /// Entries, a power of two.
    pub size: u16,
}

impl RingLayout {
    /// Offset of `flags` in the available and used rings.
    pub const FLAGS: usize = 0;
    /// Offset of `idx` in the available and used rings.
    pub const IDX: usize = 2;
    /// Offset of the first entry in the available and used rings.
    pub const RING: usize = 4;

    /// Bytes of the descriptor table.
    pub const fn desc_len(self) -> usize {
        self.size as usize * size_of::<Descriptor>()
    }
    /// Bytes of the available ring, `used_event` included.
    pub const fn avail_len(self) -> usize {
        Self::RING + self.size as usize * 2 + 2
    }
    /// Bytes of the used ring, `avail_event` included.
    pub const fn used_len(self) -> usize {
        Self::RING + self.size as usize * size_of::<UsedElem>() + 2
    }
    /// Offset of `used_event` in the available ring.
    pub const fn used_event(self) -> usize {
        Self::RING + self.size as usize * 2
    }
    /// Offset of `avail_event` in the used ring.
    pub const fn avail_event(self) -> usize {
        Self::RING + self.size as usize * size_of::<UsedElem>()
    }
}

/// True if moving an index from `old` to `new` passes `event`: somebody asked to be told.
///
/// A range test over everything published in between, never equality with the end of a batch.
pub const fn need_event(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn need_event_batch_over_the_event_tells() {
        // lkl#148: used_event 5, the index goes from 4 to 8 in one update.
        assert!(need_event(5, 8, 4));
        assert!(need_event(4, 8, 4));
        assert!(need_event(7, 8, 4));
        assert!(!need_event(8, 8, 4));
        assert!(!need_event(3, 8, 4));
    }

    #[test]
    fn need_event_nothing_published_stays_silent() {
        for event in [0, 7, 0xffff] {
            assert!(!need_event(event, 7, 7));
        }
    }

    #[test]
    fn need_event_agrees_with_a_walk_over_the_wrap() {
        for old in [0u16, 1, 0x7fff, 0xfff0, 0xffff] {
            for n in 0..40u16 {
                let new = old.wrapping_add(n);
                for d in 0..80u16 {
                    let event = old.wrapping_sub(20).wrapping_add(d);
                    let walked = (0..n).any(|i| old.wrapping_add(i) == event);
                    assert_eq!(need_event(event, new, old), walked, "{event} {new} {old}");
                }
            }
        }
    }

    #[test]
    fn layout_of_a_ring_of_256() {
        let l = RingLayout { size: 256 };
        assert_eq!(
            (l.desc_len(), l.avail_len(), l.used_len()),
            (4096, 518, 2054)
        );
        assert_eq!((l.used_event(), l.avail_event()), (516, 2052));
    }
}
