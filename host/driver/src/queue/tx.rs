//! Transmit: frames are copied into DMA buffers, in one piece or scattered, and completed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, MAX_FRAME, MIN_FRAME};
use zerocopy::IntoBytes;

use super::MAX_BURST;
use super::pool::Pool;
use crate::device::Core;
use crate::error::Error;
use crate::virtio::Doorbell;
use crate::virtio::split::{Add, QueueOptions, Segment, SplitQueue};

/// How a transmit queue lays out its buffers.
#[derive(Clone, Copy, Debug)]
pub struct TxOptions {
    /// Where a buffer starts in its 64-byte aligned slot.
    pub buffer_offset: usize,
    /// Use indirect tables (negotiated) for frames in several pieces.
    pub indirect: bool,
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

/// A transmit queue, owned by one thread.
pub struct TxQueue {
    queue: SplitQueue,
    stats: TxStats,
    pool: Pool,
    options: TxOptions,
    doorbell: Option<Doorbell>,
    /// Free buffers.
    free: Vec<u16>,
    /// Which buffer a head descriptor names.
    buffers: Box<[u16]>,
    /// Segments of the frame being pushed.
    segments: Vec<Segment>,
    /// Frames pushed since the last flush.
    pending: usize,
    pair: u16,
    // Last: keeps the device's memory until the device has been reset.
    core: Arc<Core>,
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
        let pool = Pool::new(&alloc, size, HEADER_LEN + MAX_FRAME, options.buffer_offset)?;
        Ok(Self {
            queue,
            stats: TxStats::default(),
            pool,
            options,
            doorbell: None,
            free: (0..size).rev().collect(),
            buffers: vec![0; usize::from(size)].into_boxed_slice(),
            segments: Vec::new(),
            pending: 0,
            pair,
            core,
        })
    }

    pub(crate) fn split(&self) -> &SplitQueue {
        &self.queue
    }

    /// Forgets everything, after the device has let go of the queue.
    pub(crate) fn clear(&mut self) {
        self.queue.reset();
        self.free = (0..self.pool.count()).rev().collect();
        self.pending = 0;
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

    /// Queues a frame, in one descriptor together with its header.
    pub fn push(&mut self, frame: &[u8]) -> Result<PushResult, Error> {
        self.push_with(NetHeader::default(), &[frame], false)
    }

    /// Queues a frame of several pieces: a descriptor for the header and one for each piece.
    pub fn push_pieces(&mut self, pieces: &[&[u8]]) -> Result<PushResult, Error> {
        self.push_with(NetHeader::default(), pieces, true)
    }

    /// Queues a frame with a header of the caller's; `scatter` gives each piece its descriptor.
    pub fn push_with(
        &mut self,
        header: NetHeader,
        pieces: &[&[u8]],
        scatter: bool,
    ) -> Result<PushResult, Error> {
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if !(MIN_FRAME..=MAX_FRAME).contains(&len) {
            return Err(Error::FrameLength {
                len,
                min: MIN_FRAME,
                max: MAX_FRAME,
            });
        }
        let filled = pieces.iter().filter(|piece| !piece.is_empty());
        let segments = if scatter {
            1 + filled.clone().count()
        } else {
            1
        };
        let limit = self
            .queue
            .max_segments(self.options.indirect && segments > 1);
        if segments > limit {
            return Err(Error::Segments { segments, limit });
        }
        if self.free.is_empty() {
            self.reap()?;
        }
        let Some(buffer) = self.free.pop() else {
            return self.full();
        };
        self.pool.write(buffer, 0, header.as_bytes())?;
        let mut at = HEADER_LEN;
        self.segments.clear();
        self.segments.push(self.pool.segment(buffer, 0, HEADER_LEN));
        for piece in filled {
            self.pool.write(buffer, at, piece)?;
            self.segments
                .push(self.pool.segment(buffer, at, piece.len()));
            at += piece.len();
        }
        if !scatter {
            self.segments.clear();
            self.segments.push(self.pool.segment(buffer, 0, at));
        }
        let Some(head) = self.add()? else {
            self.free.push(buffer);
            return self.full();
        };
        self.buffers[usize::from(head)] = buffer;
        self.stats.frames += 1;
        self.stats.bytes += len as u64;
        self.pending += 1;
        if self.pending == MAX_BURST {
            self.flush()?;
        }
        Ok(PushResult::Queued)
    }

    /// Adds `self.segments`, after taking completed frames back if there is no room.
    fn add(&mut self) -> Result<Option<u16>, Error> {
        let indirect = self.options.indirect && self.segments.len() > 1;
        loop {
            match self.queue.add(&self.segments, &[], indirect)? {
                Add::Added(head) => return Ok(Some(head)),
                Add::Full if self.reap()? == 0 => return Ok(None),
                Add::Full => {}
            }
        }
    }

    /// True if a frame in one piece would find room now, after taking completed ones back.
    pub fn has_room(&mut self) -> Result<bool, Error> {
        if self.free.is_empty() || self.queue.free() == 0 {
            self.reap()?;
        }
        Ok(!self.free.is_empty() && self.queue.free() > 0)
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
        Ok(wanted)
    }

    /// Takes back the buffers of completed frames. Returns how many there were.
    pub fn reap(&mut self) -> Result<usize, Error> {
        let mut count = 0;
        while let Some(used) = self.queue.pop()? {
            self.free.push(self.buffers[usize::from(used.head)]);
            count += 1;
        }
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
