//! Transmit: frames are copied into DMA buffers, or lie in the caller's, and are completed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic_spec::net::{
    HEADER_LEN, HEADER_WINDOW, MAX_FRAME, MAX_SEGMENTED_FRAME, MIN_FRAME, gso,
};
use ferronic_spec::ring::DescFlags;
use ferronic_spec::{Features, NetHeader};
use zerocopy::IntoBytes;

use super::MAX_BURST;
use super::buffer::{DmaBuffer, TxPart};
use super::layout::Layout;
use super::pool::Pool;
use super::tx_completion::Wanted;
use crate::completion::Completion;
use crate::device::Core;
use crate::error::Error;
use crate::offload::TxOffload;
use crate::virtio::Doorbell;
use crate::virtio::split::{Add, QueueOptions, SplitQueue};

/// Bytes of a buffer of the queue's own: a frame that is not segmented takes one.
const BUFFER_LEN: usize = HEADER_LEN + MAX_FRAME;
/// Buffers that the largest frame takes.
const MAX_BUFFERS: usize = (HEADER_LEN + MAX_SEGMENTED_FRAME).div_ceil(BUFFER_LEN);

/// How a transmit queue lays out its buffers.
#[derive(Clone, Copy, Debug)]
pub struct TxOptions {
    /// Where a buffer starts in its 64-byte aligned slot.
    pub buffer_offset: usize,
    /// Use indirect tables (negotiated) for frames in several pieces.
    pub indirect: bool,
    /// Features that were negotiated.
    pub features: Features,
}

/// Counters of a transmit queue, in a cache line that only its owner writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct TxStats {
    /// Frames given to the device.
    pub frames: u64,
    /// Their bytes, without the virtio header.
    pub bytes: u64,
    /// Frames completed.
    pub completed: u64,
    /// Bursts published.
    pub bursts: u64,
    /// Doorbells rung.
    pub doorbells: u64,
    /// Frames not taken because the ring was full.
    pub full: u64,
    /// Descriptors that they took, those in indirect tables included.
    pub descriptors: u64,
    /// Frames of `frames` that the device was to segment.
    pub segmented: u64,
}

const _: () = assert!(size_of::<TxStats>() == 64 && align_of::<TxStats>() == 64);

/// What came of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a frame that found the ring full was not sent"]
pub enum PushResult {
    /// It is in the ring; `flush` shows it to the device.
    Queued,
    /// The ring is full: `reap` or wait, and push again.
    Full,
}

/// What is known of a frame that is outstanding.
#[derive(Clone, Copy, Default)]
pub(super) struct Tag {
    /// What its sender is told of it by; 0: nothing.
    name: u32,
    /// Its number; 0: there is none.
    pub(super) serial: u32,
}

/// A transmit queue, owned by one thread.
pub struct TxQueue {
    pub(super) queue: SplitQueue,
    stats: TxStats,
    pool: Pool,
    options: TxOptions,
    doorbell: Option<Doorbell>,
    layout: Layout,
    /// First buffer of the frame that a head descriptor names.
    buffers: Box<[u16]>,
    /// Memory of the caller's that the device may still read, by head descriptor.
    shared: BTreeMap<u16, Vec<DmaBuffer>>,
    /// Frames pushed since the last flush.
    pending: usize,
    pair: u16,
    /// How frames are completed, if not by the owner's own doing.
    pub(super) completion: Option<Completion>,
    /// Name of the next frame; 0: none.
    pub(super) name: u32,
    /// The queue was full and nothing was completed since.
    pub(super) stopped: bool,
    /// Somebody waits for bytes to come back.
    pub(super) wanted: Option<Wanted>,
    /// What is known of the frames outstanding, by head descriptor.
    pub(super) tags: Box<[Tag]>,
    /// Number of the last frame.
    serial: u32,
    /// How many of those outstanding have a name.
    pub(super) named: u16,
    /// Named frames that are completed and were not asked for yet.
    pub(super) completed: VecDeque<u32>,
    // Last: keeps the device's memory until the device has been reset.
    pub(super) core: Arc<Core>,
}

impl TxQueue {
    pub(crate) fn new(
        core: Arc<Core>,
        pair: u16,
        queue: QueueOptions,
        options: TxOptions,
    ) -> Result<Self, Error> {
        let alloc = |len| core.dma(len);
        let size = queue.size;
        let queue = SplitQueue::new(queue, &alloc)?;
        let count = if options.features.intersects(Features::HOST_SEGMENTATION) {
            size.max(MAX_BUFFERS as u16)
        } else {
            size
        };
        let pool = Pool::new(&alloc, count, BUFFER_LEN, options.buffer_offset)?;
        Ok(Self {
            queue,
            stats: TxStats::default(),
            pool,
            options,
            doorbell: None,
            layout: Layout::new(count),
            buffers: vec![0; usize::from(size)].into_boxed_slice(),
            shared: BTreeMap::new(),
            pending: 0,
            pair,
            completion: None,
            name: 0,
            tags: vec![Tag::default(); usize::from(size)].into_boxed_slice(),
            stopped: false,
            wanted: None,
            serial: 0,
            named: 0,
            completed: VecDeque::new(),
            core,
        })
    }

    pub(crate) fn split(&self) -> &SplitQueue {
        &self.queue
    }

    /// Forgets everything, after the device has let go of the queue.
    pub(crate) fn clear(&mut self) {
        self.queue.reset();
        self.layout.clear();
        self.shared.clear();
        self.pending = 0;
        // Nobody waits for what is gone.
        (self.named, self.stopped) = (0, false);
        for tag in &mut self.tags {
            let name = std::mem::take(tag).name;
            if name != 0 {
                self.completed.push_back(name);
            }
        }
        if let Some(completion) = &mut self.completion {
            completion.clear();
        }
    }

    pub(crate) fn start(&mut self, doorbell: Doorbell) {
        self.doorbell = Some(doorbell);
    }

    /// Number of the queue pair.
    pub fn pair(&self) -> u16 {
        self.pair
    }

    /// Number of the virtqueue.
    pub fn index(&self) -> u16 {
        self.queue.index()
    }

    /// Counters of the driver.
    pub fn stats(&self) -> TxStats {
        self.stats
    }

    /// Frames that the device has not completed.
    pub fn outstanding(&self) -> u16 {
        self.queue.outstanding()
    }

    /// Lets an in-process simulator run; call it while waiting for completions.
    pub fn relax(&self) {
        self.core.function().poll();
    }

    /// Offloads that frames may ask for: [`Features::TX_OFFLOADS`] as far as negotiated.
    pub fn offloads(&self) -> Features {
        self.options.features & Features::TX_OFFLOADS
    }

    /// Queues a frame of 14 to 9,216 bytes, in one descriptor together with its header.
    ///
    /// # Errors
    /// [`Error::FrameLength`], and [`Error::Queue`] if the device broke the rules.
    pub fn push(&mut self, frame: &[u8]) -> Result<PushResult, Error> {
        self.push_offload(frame, TxOffload::None)
    }

    /// Queues a frame of several pieces: a descriptor for the header and one for each piece.
    ///
    /// # Errors
    /// As [`TxQueue::push`]; [`Error::Segments`] if there are too many pieces for the ring, or for
    /// an indirect table if such are used.
    pub fn push_pieces(&mut self, pieces: &[&[u8]]) -> Result<PushResult, Error> {
        self.push_with(NetHeader::default(), pieces, true)
    }

    /// Queues a frame that asks for an offload ("Packet Transmission", virtio 1.2, 5.1.6.2).
    ///
    /// It is copied into as few descriptors as possible: one up to 9,216 bytes, at most eight for the
    /// largest frame. Frames leave in the order in which they were queued.
    ///
    /// # Errors
    /// [`Error::Offload`] if the request was not negotiated or does not fit the frame: nothing that
    /// the card would drop is queued. Else as [`TxQueue::push_pieces`].
    pub fn push_offload(&mut self, frame: &[u8], offload: TxOffload) -> Result<PushResult, Error> {
        self.push_parts(&[TxPart::Bytes(frame)], offload)
    }

    /// Queues a frame in parts, some or all of them in memory that the card reads in place.
    ///
    /// A [`TxPart::Shared`] takes a descriptor and is not copied; neighbouring [`TxPart::Bytes`] are
    /// copied into one. Headers may be spread over parts. The parts may be let go of at once; the
    /// queue keeps what is shared until the card has read it.
    ///
    /// # Errors
    /// As [`TxQueue::push_offload`]; [`Error::ForeignBuffer`] if a part is memory of another card.
    pub fn push_parts(
        &mut self,
        parts: &[TxPart<'_>],
        offload: TxOffload,
    ) -> Result<PushResult, Error> {
        let len = frame_len(parts.iter().copied(), offload.lengths())?;
        let header = match offload {
            TxOffload::None => NetHeader::default(),
            _ => self.request(parts, offload, len)?,
        };
        self.place(header, parts.iter().copied(), len, true)
    }

    /// Queues a frame with a header of the caller's, as it is; `scatter` gives header and each piece
    /// their descriptors. For tests of a card: what it makes of the header is its own affair.
    ///
    /// # Errors
    /// As [`TxQueue::push_pieces`]. The frame may have 14 to 9,216 bytes, or up to 65,557 if the
    /// header asks for segmentation and any was negotiated.
    pub fn push_with(
        &mut self,
        header: NetHeader,
        pieces: &[&[u8]],
        scatter: bool,
    ) -> Result<PushResult, Error> {
        let large =
            header.gso_type != gso::NONE && self.offloads().intersects(Features::HOST_SEGMENTATION);
        let max = if large {
            MAX_SEGMENTED_FRAME
        } else {
            MAX_FRAME
        };
        let parts = pieces.iter().map(|piece| TxPart::Bytes(piece));
        let len = frame_len(parts.clone(), MIN_FRAME..=max)?;
        self.place(header, parts, len, !scatter)
    }

    /// The virtio header of a request, if it can be.
    fn request(
        &self,
        parts: &[TxPart<'_>],
        offload: TxOffload,
        len: usize,
    ) -> Result<NetHeader, Error> {
        let mut head = [0; HEADER_WINDOW];
        let mut known = 0;
        for part in parts {
            known += part.peek(&mut head[known..])?;
        }
        Ok(offload.header(self.options.features, &head[..known], len)?)
    }

    /// Lays a frame out in memory and adds it to the ring.
    fn place<'a>(
        &mut self,
        header: NetHeader,
        parts: impl Iterator<Item = TxPart<'a>> + Clone,
        len: usize,
        join: bool,
    ) -> Result<PushResult, Error> {
        let mut copied = HEADER_LEN;
        for part in parts.clone() {
            match part {
                TxPart::Bytes(bytes) => copied += bytes.len(),
                TxPart::Shared(slice) if slice.belongs_to(&self.core) => {}
                TxPart::Shared(_) => return Err(Error::ForeignBuffer),
            }
        }
        if !self.layout.begin(&self.pool, copied) {
            self.reap()?;
            if !self.layout.begin(&self.pool, copied) {
                return self.full();
            }
        }
        let added = self
            .lay(header, parts.clone(), join)
            .and_then(|()| self.add());
        let first = self.layout.first();
        let head = match added {
            Ok(Some(head)) => head,
            other => {
                self.layout.release(first);
                other?;
                return self.full();
            }
        };
        self.buffers[usize::from(head)] = first;
        // 0 is for what is not outstanding.
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        self.tags[usize::from(head)] = Tag {
            name: self.name,
            serial: self.serial,
        };
        self.named += u16::from(self.name != 0);
        if let Some(completion) = &mut self.completion {
            completion.queued();
        }
        let shared: Vec<_> = parts
            .filter_map(|part| match part {
                TxPart::Shared(slice) => Some(slice.buffer().clone()),
                TxPart::Bytes(_) => None,
            })
            .collect();
        if !shared.is_empty() {
            self.shared.insert(head, shared);
        }
        self.stats.frames += 1;
        self.stats.bytes += len as u64;
        self.stats.descriptors += self.layout.segments.len() as u64;
        self.stats.segmented += u64::from(header.gso_type != gso::NONE);
        self.pending += 1;
        if self.pending == MAX_BURST {
            self.flush()?;
        }
        Ok(PushResult::Queued)
    }

    fn lay<'a>(
        &mut self,
        header: NetHeader,
        parts: impl Iterator<Item = TxPart<'a>>,
        join: bool,
    ) -> Result<(), Error> {
        let header = TxPart::Bytes(header.as_bytes());
        self.layout.put(&self.pool, &header, join)?;
        for part in parts.filter(|part| !part.is_empty()) {
            self.layout.put(&self.pool, &part, join)?;
        }
        Ok(())
    }

    /// Adds what was laid out, after taking completed frames back if there is no room.
    fn add(&mut self) -> Result<Option<u16>, Error> {
        let indirect = self.options.indirect && self.layout.segments.len() > 1;
        let completion = self.completion.as_ref();
        let marks = completion.map_or(DescFlags::empty(), Completion::mark);
        loop {
            let segments = &self.layout.segments;
            match self.queue.add_marked(segments, &[], indirect, marks)? {
                Add::Added(head) => return Ok(Some(head)),
                Add::Full if self.reap()? == 0 => return Ok(None),
                Add::Full => {}
            }
        }
    }

    /// True if a frame of 9,216 bytes in one piece would find room now, after taking completed ones
    /// back.
    pub fn has_room(&mut self) -> Result<bool, Error> {
        self.has_room_for(MAX_FRAME)
    }

    /// True if a frame of `len` bytes in one piece would find room now, after taking completed ones
    /// back.
    pub fn has_room_for(&mut self, len: usize) -> Result<bool, Error> {
        let buffers = (HEADER_LEN + len).div_ceil(BUFFER_LEN);
        let descriptors = if self.options.indirect { 1 } else { buffers };
        let room =
            |tx: &Self| tx.layout.free() >= buffers && usize::from(tx.queue.free()) >= descriptors;
        if !room(self) {
            self.reap()?;
        }
        Ok(room(self))
    }

    /// Bytes of the largest frame in one piece that may ask for segmentation, if any is negotiated:
    /// 65,557, or less if the ring is shorter than the descriptors that it takes.
    pub fn max_segmented(&self) -> Option<usize> {
        if !self.offloads().intersects(Features::HOST_SEGMENTATION) {
            return None;
        }
        let fits = self.queue.max_segments(self.options.indirect) * BUFFER_LEN - HEADER_LEN;
        Some(fits.min(MAX_SEGMENTED_FRAME))
    }

    fn full(&mut self) -> Result<PushResult, Error> {
        self.stats.full += 1;
        self.flush()?;
        Ok(PushResult::Full)
    }

    /// Shows what was pushed to the device: one index update, and one doorbell if it asks for it.
    ///
    /// True if the doorbell was rung.
    pub fn flush(&mut self) -> Result<bool, Error> {
        if self.pending == 0 {
            return Ok(false);
        }
        self.pending = 0;
        self.stats.bursts += 1;
        let wanted = self.queue.publish();
        if let (true, Some(doorbell)) = (wanted, &self.doorbell) {
            self.stats.doorbells += 1;
            doorbell.ring(self.queue.avail_idx())?;
        }
        self.posted()?;
        Ok(wanted)
    }

    /// Takes back the buffers of completed frames. Returns how many there were.
    pub fn reap(&mut self) -> Result<usize, Error> {
        let mut count = 0;
        while let Some(used) = self.queue.pop()? {
            self.layout.release(self.buffers[usize::from(used.head)]);
            if !self.shared.is_empty() {
                self.shared.remove(&used.head);
            }
            let Tag { name, .. } = std::mem::take(&mut self.tags[usize::from(used.head)]);
            if name != 0 {
                self.named -= 1;
                self.completed.push_back(name);
            }
            count += 1;
        }
        self.stopped &= count == 0;
        self.stats.completed += count as u64;
        Ok(count)
    }

    /// Asks for an interrupt at the next completion. True if one is there already.
    pub fn arm(&mut self) -> Result<bool, Error> {
        self.queue.arm()
    }

    /// Asks for an interrupt once `count` more frames are completed. True if they are already.
    pub fn arm_after(&mut self, count: u16) -> Result<bool, Error> {
        self.queue.arm_after(count)
    }

    /// Asks for no interrupts.
    pub fn disarm(&mut self) {
        self.queue.disarm();
    }

    /// Flushes and waits, polling, until every frame has completed.
    pub fn drain(&mut self, timeout: Duration) -> Result<(), Error> {
        self.flush()?;
        let start = Instant::now();
        loop {
            self.reap()?;
            if self.outstanding() == 0 {
                return Ok(());
            }
            if start.elapsed() > timeout {
                return Err(Error::Stuck {
                    what: "transmission",
                    after: timeout,
                });
            }
            self.relax();
            std::hint::spin_loop();
        }
    }
}

impl Drop for TxQueue {
    fn drop(&mut self) {
        // The device may still read what was not completed: until it is reset.
        for buffer in self.shared.values().flatten() {
            self.core.keep(buffer.region());
        }
    }
}

fn frame_len<'a>(
    parts: impl Iterator<Item = TxPart<'a>>,
    limits: RangeInclusive<usize>,
) -> Result<usize, Error> {
    let len = parts.fold(0, |len: usize, part| len.saturating_add(part.len()));
    if limits.contains(&len) {
        return Ok(len);
    }
    Err(Error::FrameLength {
        len,
        min: *limits.start(),
        max: *limits.end(),
    })
}
