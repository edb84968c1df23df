//! Lists of the receive buffers that frames under way lie in.

/// End of a list.
pub(super) const NONE: u16 = u16::MAX;

/// A receive buffer, or what of it belongs to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which buffer.
    pub buffer: u16,
    /// Bytes at its start that do not belong to the frame: the virtio header, or the headers of a
    /// merged segment.
    pub skip: u16,
    /// Bytes that were written into the buffer, the skipped ones included; at least `skip`.
    pub len: u32,
}

/// What is kept of a buffer: as little as there is, eight to a cache line.
#[derive(Clone, Copy)]
#[repr(C)]
struct Link {
    next: u16,
    skip: u16,
    len: u32,
}

const _: () = assert!(size_of::<Link>() == 8);

/// The next buffer of each buffer.
pub(super) struct Chains(Box<[Link]>);

impl Chains {
    pub(super) fn new(buffers: u16) -> Self {
        let link = Link {
            next: NONE,
            skip: 0,
            len: 0,
        };
        Self(vec![link; usize::from(buffers)].into_boxed_slice())
    }

    /// Puts a part at the end of the list whose last buffer is `last` ([`NONE`]: of a new list).
    #[inline]
    pub(super) fn append(&mut self, last: u16, part: Part) {
        if let Some(link) = self.0.get_mut(usize::from(last)) {
            link.next = part.buffer;
        }
        if let Some(link) = self.0.get_mut(usize::from(part.buffer)) {
            *link = Link {
                next: NONE,
                skip: part.skip,
                len: part.len,
            };
        }
    }

    /// Puts the buffers of a segment behind `last`, without its headers; returns the last of them.
    #[inline]
    pub(super) fn extend(&mut self, mut last: u16, parts: &[Part], headers: u8) -> u16 {
        let mut skip = u16::from(headers);
        for part in parts {
            let part = Part {
                skip: part.skip.wrapping_add(skip),
                ..*part
            };
            self.append(last, part);
            last = part.buffer;
            skip = 0;
        }
        last
    }

    /// The parts from `first` on.
    pub(super) fn from(&self, first: u16) -> impl Iterator<Item = Part> + '_ {
        let mut at = first;
        std::iter::from_fn(move || {
            let link = self.0.get(usize::from(at))?;
            let buffer = std::mem::replace(&mut at, link.next);
            Some(Part {
                buffer,
                skip: link.skip,
                len: link.len,
            })
        })
    }
}
