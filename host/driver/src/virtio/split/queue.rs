//! The driver's side of a split virtqueue.
//!
//! All decisions are made from shadow state in ordinary memory: the descriptor table and the
//! available ring are only ever written, and what the device writes (`used.idx`, used entries,
//! `avail_event`) is checked before it is believed.

use std::sync::Arc;

use ferronic_spec::ring::{
    AVAIL_NO_INTERRUPT, DescFlags, Descriptor, MAX_QUEUE_SIZE, USED_NO_NOTIFY, need_event,
};

use super::indirect::Tables;
use super::ring::Ring;
use crate::error::{Error, QueueFault};
use crate::pci::{DmaRegion, PciError};
use crate::virtio::QueueAddresses;

/// End of the list of free descriptors.
const NONE: u16 = u16::MAX;

/// How far ahead the event index is of a queue that wants no interrupt: as far as can be. Just behind
/// what was taken would not do. The device looks at it after it has shown used buffers; if the driver has
/// taken those meanwhile, what is just behind is one of them.
const FAR: u16 = 1 << 15;

/// One contiguous part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address as the device sees it.
    pub addr: u64,
    /// Bytes, at least 1.
    pub len: u32,
}

/// A buffer that the device has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// What [`SplitQueue::add`] returned for it.
    pub head: u16,
    /// Bytes that the device wrote, at most what the buffer has.
    pub len: u32,
}

/// What came of adding a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Add {
    /// It was added, with this head descriptor; the device sees it after `publish`.
    Added(u16),
    /// There are not enough free descriptors now.
    Full,
}

/// How a queue is made.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// Virtqueue number, for messages.
    pub index: u16,
    /// Entries, a power of two.
    pub size: u16,
    /// EVENT_IDX was negotiated.
    pub event_idx: bool,
    /// Entries of each indirect table; 0 if INDIRECT_DESC was not negotiated.
    pub indirect_entries: u16,
}

/// What the data path touches on every call, in one cache line.
#[derive(Default)]
#[repr(C, align(64))]
struct Hot {
    /// Next entry of the available ring.
    avail: u16,
    /// `avail` as last stored for the device to see.
    published: u16,
    /// `avail` when a doorbell was last considered.
    considered: u16,
    /// Next entry of the used ring to take.
    used: u16,
    /// `used.idx` as last loaded and checked.
    used_seen: u16,
    /// First and last free descriptor. They are reused in the order of their return, so that
    /// neighbours stay neighbours and the device reads them in one burst.
    free_head: u16,
    free_tail: u16,
    /// Free descriptors.
    free: u16,
    /// Buffers the device has, published or not.
    outstanding: u16,
    /// Buffers of `outstanding` that the device cannot see yet.
    unpublished: u16,
    /// EVENT_IDX was negotiated.
    event_idx: bool,
    /// Interrupts are wanted.
    armed: bool,
    /// The device broke the rules.
    fault: Option<QueueFault>,
}

const _: () = assert!(size_of::<Hot>() == 64 && align_of::<Hot>() == 64);

/// Shadow of one descriptor.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    /// Next of the free list or of the chain.
    next: u16,
    /// Descriptors of the chain that starts here; 0 if none does.
    count: u16,
    /// Bytes that the device may write to the chain that starts here.
    writable: u32,
    /// Entry of the available ring that names the chain that starts here.
    entry: u16,
}

// Five to a cache line: a burst over neighbouring descriptors touches few.
const _: () = assert!(size_of::<Slot>() == 12);

impl Slot {
    fn free(next: u16) -> Self {
        Self {
            next,
            count: 0,
            writable: 0,
            entry: 0,
        }
    }
}

/// A split virtqueue, owned by one thread.
pub struct SplitQueue {
    hot: Hot,
    ring: Ring,
    slots: Box<[Slot]>,
    tables: Option<Tables>,
    index: u16,
}

impl SplitQueue {
    /// Makes an empty queue; `alloc` gives the memory.
    pub fn new(
        options: QueueOptions,
        alloc: &dyn Fn(usize) -> Result<Arc<DmaRegion>, PciError>,
    ) -> Result<Self, Error> {
        let size = options.size;
        if !size.is_power_of_two() || size > 1 << 15 {
            return Err(Error::Setting {
                what: "the ring size",
                value: u64::from(size),
                must: format!("a power of two, at most {MAX_QUEUE_SIZE}, is needed"),
            });
        }
        let ring = Ring::new(alloc(Ring::bytes(size))?, size);
        let entries = options.indirect_entries;
        let tables = match entries {
            0 => None,
            _ => Some(Tables::new(
                alloc(Tables::bytes(size, entries))?,
                size,
                entries,
            )),
        };
        let slots = vec![Slot::free(0); usize::from(size)];
        let hot = Hot {
            event_idx: options.event_idx,
            ..Hot::default()
        };
        let mut queue = Self {
            hot,
            ring,
            slots: slots.into_boxed_slice(),
            tables,
            index: options.index,
        };
        queue.reset();
        Ok(queue)
    }

    /// Forgets every buffer and clears the ring. Only while the device does not use the queue.
    pub fn reset(&mut self) {
        self.ring.clear();
        let size = self.size();
        for (i, slot) in (0u16..).zip(self.slots.iter_mut()) {
            *slot = Slot::free(if i + 1 == size { NONE } else { i + 1 });
        }
        self.hot = Hot {
            event_idx: self.hot.event_idx,
            free: size,
            free_tail: size - 1,
            ..Hot::default()
        };
        self.disarm();
    }

    /// Virtqueue number.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// Entries of the ring.
    pub fn size(&self) -> u16 {
        self.ring.size()
    }

    /// Where the ring is, for the device.
    pub fn addresses(&self) -> QueueAddresses {
        self.ring.addresses()
    }

    /// Free descriptors.
    pub fn free(&self) -> u16 {
        self.hot.free
    }

    /// Buffers that were added and not yet taken back.
    pub fn outstanding(&self) -> u16 {
        self.hot.outstanding
    }

    /// The next available index, as the doorbell carries it.
    pub fn avail_idx(&self) -> u16 {
        self.hot.published
    }

    /// Most segments that one buffer can have, with or without an indirect table.
    pub fn max_segments(&self, indirect: bool) -> usize {
        match &self.tables {
            Some(tables) if indirect => usize::from(tables.entries()),
            _ => usize::from(self.size()),
        }
    }

    /// Stops the queue: the device broke a rule.
    pub fn fail(&mut self, fault: QueueFault) -> Error {
        log::error!("queue {}: {fault}", self.index);
        self.hot.fault = Some(fault);
        Error::Queue {
            queue: self.index,
            fault,
        }
    }

    fn check(&self) -> Result<(), Error> {
        match self.hot.fault {
            Some(fault) => Err(Error::Queue {
                queue: self.index,
                fault,
            }),
            None => Ok(()),
        }
    }

    /// Adds a buffer: what the device reads, then what it writes.
    ///
    /// With `indirect` (and INDIRECT_DESC negotiated) it takes one descriptor, else one a segment.
    pub fn add(
        &mut self,
        readable: &[Segment],
        writable: &[Segment],
        indirect: bool,
    ) -> Result<Add, Error> {
        self.add_marked(readable, writable, indirect, DescFlags::empty())
    }

    /// [`SplitQueue::add`] with more flags in the first descriptor, for what a device of our own takes
    /// them for.
    pub fn add_marked(
        &mut self,
        readable: &[Segment],
        writable: &[Segment],
        indirect: bool,
        marks: DescFlags,
    ) -> Result<Add, Error> {
        self.check()?;
        let count = readable.len() + writable.len();
        let limit = self.max_segments(indirect);
        if count == 0 || count > limit {
            return Err(Error::Segments {
                segments: count,
                limit,
            });
        }
        let indirect = indirect && self.tables.is_some();
        let taken = if indirect { 1 } else { count as u16 };
        if self.hot.free < taken {
            return Ok(Add::Full);
        }
        let capacity = writable.iter().map(|s| u64::from(s.len)).sum::<u64>();
        let head = self.hot.free_head;
        if indirect {
            self.write_table(head, readable, writable, marks);
            self.hot.free_head = self.slot(head).next;
        } else {
            self.hot.free_head = self.write_chain(head, readable, writable, marks);
        }
        let writable = u32::try_from(capacity).unwrap_or(u32::MAX);
        self.offer(head, taken, writable);
        Ok(Add::Added(head))
    }

    /// Adds a buffer of one part that the device writes: [`SplitQueue::add`] for what a receive queue
    /// does with every buffer.
    #[inline]
    pub fn add_writable(&mut self, segment: Segment) -> Result<Add, Error> {
        self.check()?;
        if self.hot.free == 0 {
            return Ok(Add::Full);
        }
        let head = self.hot.free_head;
        self.hot.free_head = self.slot(head).next;
        self.ring
            .write_descriptor(head, descriptor(segment, DescFlags::WRITE, 0));
        self.offer(head, 1, segment.len);
        Ok(Add::Added(head))
    }

    /// Puts a chain that is written into the available ring.
    #[inline]
    fn offer(&mut self, head: u16, taken: u16, writable: u32) {
        let entry = self.hot.avail;
        let slot = self.slot(head);
        slot.count = taken;
        slot.writable = writable;
        slot.entry = entry;
        self.ring.write_avail(entry, head);
        self.hot.free -= taken;
        self.hot.avail = entry.wrapping_add(1);
        self.hot.outstanding += 1;
        self.hot.unpublished += 1;
    }

    /// Shadow of a descriptor that the driver itself numbered.
    fn slot(&mut self, index: u16) -> &mut Slot {
        &mut self.slots[usize::from(index)]
    }

    fn write_chain(
        &mut self,
        head: u16,
        readable: &[Segment],
        writable: &[Segment],
        mut marks: DescFlags,
    ) -> u16 {
        let mut index = head;
        let mut left = readable.len() + writable.len();
        for (segment, flag) in segments(readable, writable) {
            left -= 1;
            let next = self.slot(index).next;
            let (flags, link) = if left > 0 {
                (flag | DescFlags::NEXT, next)
            } else {
                (flag, 0)
            };
            let flags = flags | std::mem::replace(&mut marks, DescFlags::empty());
            self.ring
                .write_descriptor(index, descriptor(segment, flags, link));
            index = next;
        }
        index
    }

    fn write_table(
        &mut self,
        head: u16,
        readable: &[Segment],
        writable: &[Segment],
        marks: DescFlags,
    ) {
        let Some(tables) = &self.tables else { return };
        let count = (readable.len() + writable.len()) as u16;
        for (entry, (segment, flag)) in (0u16..).zip(segments(readable, writable)) {
            let next = entry + 1;
            let (flags, link) = if next < count {
                (flag | DescFlags::NEXT, next)
            } else {
                (flag, 0)
            };
            tables.write(head, entry, descriptor(segment, flags, link));
        }
        let table = Segment {
            addr: tables.address(head),
            len: u32::from(count) * size_of::<Descriptor>() as u32,
        };
        self.ring
            .write_descriptor(head, descriptor(table, DescFlags::INDIRECT | marks, 0));
    }

    /// Makes everything added since the last call visible to the device, with one index update.
    ///
    /// True if the device wants a doorbell for it.
    pub fn publish(&mut self) -> bool {
        let hot = &mut self.hot;
        if hot.unpublished == 0 {
            return false;
        }
        hot.unpublished = 0;
        hot.published = hot.avail;
        if hot.event_idx && !hot.armed {
            // Keeps "no interrupt" true beyond 32,768 buffers.
            self.ring.store_used_event(hot.used.wrapping_add(FAR));
        }
        self.ring.store_avail_idx(hot.avail);
        // The device stores avail_event, then loads avail.idx; we the other way round. One of the
        // two must see the other.
        self.ring.full_fence();
        let old = std::mem::replace(&mut hot.considered, hot.avail);
        if hot.event_idx {
            need_event(self.ring.load_avail_event(), hot.avail, old)
        } else {
            self.ring.load_used_flags() & USED_NO_NOTIFY == 0
        }
    }

    /// Buffers that the device can see and that were not taken back.
    pub fn visible(&self) -> u16 {
        self.hot.outstanding - self.hot.unpublished
    }

    /// EVENT_IDX was negotiated.
    pub fn event_idx(&self) -> bool {
        self.hot.event_idx
    }

    /// Buffers that the device says it has used and that were not taken back, whether that can be or
    /// not. Changes nothing: for looking on.
    pub fn peek_used(&self) -> u16 {
        self.ring.load_used_idx().wrapping_sub(self.hot.used)
    }

    /// True if the device has used buffers that were not taken yet.
    pub fn pending(&mut self) -> Result<bool, Error> {
        self.check()?;
        if self.hot.used == self.hot.used_seen {
            self.refresh()?;
        }
        Ok(self.hot.used != self.hot.used_seen)
    }

    /// Loads `used.idx`; believes it only if that many buffers are outstanding.
    fn refresh(&mut self) -> Result<(), Error> {
        let idx = self.ring.load_used_idx();
        let visible = self.visible();
        if idx.wrapping_sub(self.hot.used) > visible {
            let last = self.hot.used;
            return Err(self.fail(QueueFault::UsedIndex {
                idx,
                last,
                outstanding: visible,
            }));
        }
        self.hot.used_seen = idx;
        Ok(())
    }

    /// Takes the next used buffer, if there is one.
    pub fn pop(&mut self) -> Result<Option<Used>, Error> {
        if !self.pending()? {
            return Ok(None);
        }
        let (id, len) = self.ring.read_used(self.hot.used);
        let size = self.size();
        if id >= u32::from(size) {
            return Err(self.fail(QueueFault::UsedIdRange { id, size }));
        }
        let head = id as u16;
        let Slot {
            count,
            writable,
            entry,
            ..
        } = *self.slot(head);
        // A buffer that was added but not published is not the device's either.
        let published = self.hot.avail.wrapping_sub(entry) > self.hot.unpublished;
        if count == 0 || !published {
            return Err(self.fail(QueueFault::UsedIdFree { id }));
        }
        if len > writable {
            return Err(self.fail(QueueFault::UsedLength {
                id,
                len,
                limit: writable,
            }));
        }
        self.release(head, count);
        self.hot.used = self.hot.used.wrapping_add(1);
        self.hot.outstanding -= 1;
        Ok(Some(Used { head, len }))
    }

    /// Gives the descriptors of a chain back to the free list.
    fn release(&mut self, head: u16, count: u16) {
        let mut last = head;
        for _ in 1..count {
            last = self.slot(last).next;
        }
        self.slot(last).next = NONE;
        self.slot(head).count = 0;
        if self.hot.free == 0 {
            self.hot.free_head = head;
        } else {
            let tail = self.hot.free_tail;
            self.slot(tail).next = head;
        }
        self.hot.free_tail = last;
        self.hot.free += count;
    }

    /// Asks for an interrupt at the next used buffer. True if one is there already: then no
    /// interrupt need come for it, and the caller looks again instead of waiting.
    pub fn arm(&mut self) -> Result<bool, Error> {
        self.arm_after(1)
    }

    /// Asks for an interrupt once `count` more buffers are used, or all that are outstanding if those
    /// are fewer. True if they are already.
    pub fn arm_after(&mut self, count: u16) -> Result<bool, Error> {
        self.arm_ahead(count.clamp(1, self.hot.outstanding.max(1)))
    }

    /// Asks for an interrupt once `count` more buffers are used, 1 to 32,767, whether they are there
    /// yet or not. True if they are already.
    pub fn arm_ahead(&mut self, count: u16) -> Result<bool, Error> {
        self.check()?;
        let count = count.clamp(1, i16::MAX as u16);
        self.hot.armed = true;
        if self.hot.event_idx {
            self.ring
                .store_used_event(self.hot.used.wrapping_add(count - 1));
        } else {
            self.ring.store_avail_flags(0);
        }
        // The device stores used.idx, then loads used_event; see `publish`.
        self.ring.full_fence();
        self.refresh()?;
        Ok(self.hot.used_seen.wrapping_sub(self.hot.used) >= count)
    }

    /// Asks for no interrupts.
    pub fn disarm(&mut self) {
        self.hot.armed = false;
        if self.hot.event_idx {
            self.ring.store_used_event(self.hot.used.wrapping_add(FAR));
        } else {
            self.ring.store_avail_flags(AVAIL_NO_INTERRUPT);
        }
    }

    /// True after `arm`, until `disarm`.
    pub fn armed(&self) -> bool {
        self.hot.armed
    }
}

fn segments<'a>(
    readable: &'a [Segment],
    writable: &'a [Segment],
) -> impl Iterator<Item = (Segment, DescFlags)> + 'a {
    let read = readable.iter().map(|s| (*s, DescFlags::empty()));
    read.chain(writable.iter().map(|s| (*s, DescFlags::WRITE)))
}

fn descriptor(segment: Segment, flags: DescFlags, next: u16) -> Descriptor {
    Descriptor {
        addr: segment.addr.into(),
        len: segment.len.into(),
        flags: flags.bits().into(),
        next: next.into(),
    }
}
