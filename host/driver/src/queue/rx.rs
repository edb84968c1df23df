//! Receive: posted buffers, frames reassembled from the buffers they were merged into.

use std::sync::Arc;

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, HeaderFlags, MIN_FRAME};
use zerocopy::IntoBytes;

use super::MAX_BURST;
use super::pool::Pool;
use crate::device::Core;
use crate::error::{Error, QueueFault};
use crate::offload::{self, Admitted, Refused};
use crate::virtio::Doorbell;
use crate::virtio::split::{Add, QueueOptions, Segment, SplitQueue};

/// Smallest and largest receive buffer.
const BUFFER_BYTES: std::ops::RangeInclusive<usize> = 128..=65_536;
/// Most descriptors that one buffer may be cut into.
const MAX_CHAIN: u16 = 16;
/// Largest offset of a buffer in its slot.
const MAX_OFFSET: usize = 4096;

/// How the buffers of a receive queue are laid out.
#[derive(Clone, Copy, Debug)]
pub struct RxOptions {
    /// Bytes of a buffer, 128 to 65,536.
    pub buffer_size: usize,
    /// Where a buffer starts in its 64-byte aligned slot.
    pub buffer_offset: usize,
    /// Buffers posted; `None`: as many as fit.
    pub buffers: Option<u16>,
    /// Descriptors a buffer is cut into, 1 to 16.
    pub chain: u16,
    /// Use indirect tables (negotiated) where a buffer has more than one descriptor.
    pub indirect: bool,
    /// MRG_RXBUF was negotiated.
    pub mergeable: bool,
    /// GUEST_CSUM was negotiated.
    pub guest_csum: bool,
}

/// Counters of a receive queue, in a cache line that only its owner writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct RxStats {
    /// Frames received.
    pub frames: u64,
    /// Their bytes, without the virtio header.
    pub bytes: u64,
    /// Buffers they took.
    pub buffers: u64,
    /// Bursts with at least one frame.
    pub bursts: u64,
    /// Doorbells rung after posting.
    pub doorbells: u64,
}

const _: () = assert!(size_of::<RxStats>() == 64 && align_of::<RxStats>() == 64);

/// A used buffer: which one, and the bytes in it.
#[derive(Clone, Copy)]
struct Part {
    buffer: u16,
    len: u32,
}

/// A receive queue, owned by one thread.
pub struct RxQueue {
    queue: SplitQueue,
    stats: RxStats,
    pool: Pool,
    options: RxOptions,
    doorbell: Option<Doorbell>,
    /// Which buffer a head descriptor names.
    buffers: Box<[u16]>,
    /// Parts of the frame under way.
    parts: Vec<Part>,
    /// Segments of the buffer being posted.
    segments: Vec<Segment>,
    pair: u16,
    // Last: keeps the device's memory until the device has been reset.
    core: Arc<Core>,
}

impl RxQueue {
    pub(crate) fn new(
        core: Arc<Core>,
        pair: u16,
        queue: QueueOptions,
        options: RxOptions,
    ) -> Result<Self, Error> {
        check(&options)?;
        let alloc = |len| core.dma(len);
        let size = queue.size;
        let queue = SplitQueue::new(queue, &alloc)?;
        let fit = if options.indirect {
            size
        } else {
            size / options.chain
        };
        let count = options.buffers.unwrap_or(fit);
        if count == 0 || count > fit {
            return Err(Error::Setting {
                what: "the number of receive buffers",
                value: u64::from(count),
                must: format!("1 to {fit} fit into a ring of {size}"),
            });
        }
        let pool = Pool::new(&alloc, count, options.buffer_size, options.buffer_offset)?;
        Ok(Self {
            queue,
            stats: RxStats::default(),
            pool,
            options,
            doorbell: None,
            buffers: vec![0; usize::from(size)].into_boxed_slice(),
            parts: Vec::with_capacity(usize::from(count)),
            segments: Vec::with_capacity(usize::from(options.chain)),
            pair,
            core,
        })
    }

    pub(crate) fn split(&self) -> &SplitQueue {
        &self.queue
    }

    /// Posts every buffer; the doorbell is rung by [`RxQueue::start`].
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        self.queue.reset();
        for buffer in 0..self.pool.count() {
            self.post(buffer)?;
        }
        Ok(())
    }

    /// Publishes the posted buffers, once the queue and the device are live.
    pub(crate) fn start(&mut self, doorbell: Doorbell) -> Result<(), Error> {
        self.doorbell = Some(doorbell);
        self.publish()
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
    pub fn stats(&self) -> RxStats {
        self.stats
    }

    /// Buffers posted and not yet taken back with a frame.
    pub fn posted(&self) -> u16 {
        self.queue.outstanding()
    }

    /// Lets an in-process simulator run; call it when there was nothing to receive.
    pub fn relax(&self) {
        self.core.function().poll();
    }

    /// Receives at most `max` (at most 64) frames that are there now, and hands each to `take`.
    ///
    /// The buffers are posted again afterwards, with one doorbell if the device asks for one.
    /// Returns how many frames there were.
    pub fn receive(
        &mut self,
        max: usize,
        mut take: impl FnMut(&RxFrame<'_>),
    ) -> Result<usize, Error> {
        let mut count = 0;
        while count < max.min(MAX_BURST) {
            let Some((header, len)) = self.next_frame()? else {
                break;
            };
            self.stats.frames += 1;
            self.stats.bytes += len as u64;
            self.stats.buffers += self.parts.len() as u64;
            take(&RxFrame {
                queue: self,
                header,
                len,
            });
            for i in 0..self.parts.len() {
                self.post(self.parts[i].buffer)?;
            }
            count += 1;
        }
        if count > 0 {
            self.stats.bursts += 1;
            self.publish()?;
        }
        Ok(count)
    }

    /// Receives what is there now into vectors, for callers that want simplicity.
    pub fn receive_vec(&mut self, max: usize) -> Result<Vec<(NetHeader, Vec<u8>)>, Error> {
        let mut frames = Vec::new();
        self.receive(max, |frame| {
            let mut bytes = Vec::with_capacity(frame.len());
            frame.copy_to(&mut bytes);
            frames.push((frame.header(), bytes));
        })?;
        Ok(frames)
    }

    /// Asks for an interrupt at the next frame. True if one is there already.
    pub fn arm(&mut self) -> Result<bool, Error> {
        self.queue.arm()
    }

    /// Asks for no interrupts.
    pub fn disarm(&mut self) {
        self.queue.disarm();
    }

    fn pop(&mut self) -> Result<Option<Part>, Error> {
        let used = self.queue.pop()?;
        Ok(used.map(|used| Part {
            buffer: self.buffers[usize::from(used.head)],
            len: used.len,
        }))
    }

    /// Takes the buffers of the next frame into `self.parts`.
    fn next_frame(&mut self) -> Result<Option<(NetHeader, usize)>, Error> {
        let Some(first) = self.pop()? else {
            return Ok(None);
        };
        self.parts.clear();
        self.parts.push(first);
        if (first.len as usize) < HEADER_LEN {
            return Err(self
                .queue
                .fail(QueueFault::FrameTooShort { len: first.len }));
        }
        let mut header = NetHeader::default();
        self.pool.read(first.buffer, 0, header.as_mut_bytes())?;
        let wanted = if self.options.mergeable {
            header.num_buffers.get()
        } else {
            1
        };
        if wanted == 0 {
            return Err(self.queue.fail(QueueFault::NoBuffers));
        }
        let mut total = first.len as usize;
        for index in 1..wanted {
            // All buffers of a frame become visible with one index update.
            let Some(part) = self.pop()? else {
                return Err(self.queue.fail(QueueFault::MissingBuffers {
                    wanted,
                    found: index,
                }));
            };
            if part.len == 0 {
                return Err(self.queue.fail(QueueFault::EmptyBuffer { index }));
            }
            total += part.len as usize;
            self.parts.push(part);
        }
        if total < HEADER_LEN + MIN_FRAME {
            return Err(self
                .queue
                .fail(QueueFault::FrameTooShort { len: total as u32 }));
        }
        Ok(Some((header, total - HEADER_LEN)))
    }

    fn post(&mut self, buffer: u16) -> Result<(), Error> {
        let chain = usize::from(self.options.chain);
        let len = self.pool.len();
        let piece = len.div_ceil(chain);
        self.segments.clear();
        self.segments.extend((0..chain).map(|i| {
            let from = i * piece;
            self.pool.segment(buffer, from, piece.min(len - from))
        }));
        let indirect = self.options.indirect && chain > 1;
        match self.queue.add(&[], &self.segments, indirect)? {
            Add::Added(head) => self.buffers[usize::from(head)] = buffer,
            // Cannot be: `new` made no more buffers than fit, and used ones gave theirs back.
            Add::Full => {
                let limit = usize::from(self.queue.free());
                return Err(Error::Segments {
                    segments: chain,
                    limit,
                });
            }
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Error> {
        if self.queue.publish()
            && let Some(doorbell) = &self.doorbell
        {
            self.stats.doorbells += 1;
            doorbell.ring(self.queue.avail_idx())?;
        }
        Ok(())
    }
}

fn check(options: &RxOptions) -> Result<(), Error> {
    let bad = |what, value: usize, must: &str| {
        Err(Error::Setting {
            what,
            value: value as u64,
            must: must.into(),
        })
    };
    if !BUFFER_BYTES.contains(&options.buffer_size) {
        return bad(
            "the receive buffer size",
            options.buffer_size,
            "128 to 65,536 are possible",
        );
    }
    if options.buffer_offset > MAX_OFFSET {
        return bad(
            "the buffer offset",
            options.buffer_offset,
            "at most 4,096 is possible",
        );
    }
    if options.chain == 0 || options.chain > MAX_CHAIN {
        return bad(
            "the length of receive chains",
            options.chain.into(),
            "1 to 16 are possible",
        );
    }
    Ok(())
}

/// A received frame, still in its DMA buffers.
pub struct RxFrame<'a> {
    queue: &'a RxQueue,
    header: NetHeader,
    len: usize,
}

impl RxFrame<'_> {
    /// The virtio header, as the device wrote it.
    pub fn header(&self) -> NetHeader {
        self.header
    }

    /// The device says that it has verified the frame's TCP or UDP checksum (and an IPv4 header's),
    /// and may say so (virtio 1.2, "Processing of Incoming Packets"). If false, nothing is known:
    /// verify before use.
    pub fn is_verified(&self) -> bool {
        let flags = HeaderFlags::from_bits_retain(self.header.flags);
        self.queue.options.guest_csum
            && flags.contains(HeaderFlags::DATA_VALID)
            && !flags.contains(HeaderFlags::NEEDS_CSUM)
    }

    /// Decides whether `bytes`, a copy of this frame, may be passed to a stack that verifies nothing
    /// itself, and completes its checksum if the card left it partial; see [`offload::admit`].
    ///
    /// # Errors
    /// When the frame must be dropped.
    pub fn admit(&self, bytes: &mut [u8]) -> Result<Admitted, Refused> {
        offload::admit(&self.header, self.queue.options.guest_csum, bytes)
    }

    /// Bytes of the frame, without the virtio header.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: a frame has at least an Ethernet header.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Buffers that the frame spans.
    pub fn num_buffers(&self) -> u16 {
        self.queue.parts.len() as u16
    }

    /// Bytes that the device wrote into each buffer, the virtio header included.
    pub fn buffer_lens(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.parts.iter().map(|part| part.len)
    }

    /// Queue pair that received it.
    pub fn pair(&self) -> u16 {
        self.queue.pair
    }

    /// Appends the frame to `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        let mut at = out.len();
        out.resize(at + self.len, 0);
        let mut skip = HEADER_LEN;
        for part in &self.queue.parts {
            let len = part.len as usize - skip;
            // In range: `SplitQueue` checked the lengths against the buffers.
            let copied = self
                .queue
                .pool
                .read(part.buffer, skip, &mut out[at..at + len]);
            debug_assert!(copied.is_ok());
            at += len;
            skip = 0;
        }
    }
}
