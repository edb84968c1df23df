//! Receive: posted buffers, frames reassembled from the buffers they were merged into.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic_spec::net::{
    HEADER_LEN, HEADER_WINDOW, HeaderFlags, MAX_SEGMENTED_FRAME, MIN_FRAME, gso,
};
use ferronic_spec::{Features, NetHeader};
use zerocopy::IntoBytes;

use super::MAX_BURST;
use super::frame::{Claim, RxFrame};
use super::pool::Pool;
use crate::device::Core;
use crate::error::{Error, QueueFault};
use crate::gro::{Arrival, Gro, GroOptions, GroStats, Part, Verified};
use crate::offload;
use crate::virtio::Doorbell;
use crate::virtio::split::{Add, QueueOptions, Segment, SplitQueue};

/// Smallest and largest receive buffer.
const BUFFER_BYTES: std::ops::RangeInclusive<usize> = 128..=65_536;
/// Most descriptors that one buffer may be cut into.
const MAX_CHAIN: u16 = 16;
/// Longest received frame, with its virtio header.
const MAX_RECEIVED: usize = HEADER_LEN + MAX_SEGMENTED_FRAME;
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
    /// Which of [`Features::LRO`] were negotiated.
    pub merged: Features,
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
    /// Frames of `frames` that the card merged of several segments.
    pub units: u64,
}

const _: () = assert!(size_of::<RxStats>() == 64 && align_of::<RxStats>() == 64);

/// A receive queue, owned by one thread.
pub struct RxQueue {
    queue: SplitQueue,
    stats: RxStats,
    pub(super) pool: Pool,
    pub(super) options: RxOptions,
    doorbell: Option<Doorbell>,
    /// Which buffer a head descriptor names.
    buffers: Box<[u16]>,
    /// Parts of the frame under way.
    pub(super) parts: Vec<Part>,
    /// Segments of the buffer being posted.
    segments: Vec<Segment>,
    pub(super) pair: u16,
    /// Merges what was received, if it is switched on.
    gro: Option<Box<Gro>>,
    /// Where the times that it is told begin.
    begin: Instant,
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
            gro: None,
            begin: Instant::now(),
            core,
        })
    }

    pub(crate) fn split(&self) -> &SplitQueue {
        &self.queue
    }

    /// Posts every buffer; the doorbell is rung by [`RxQueue::start`].
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        self.queue.reset();
        if let Some(gro) = &mut self.gro {
            gro.clear();
        }
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

    /// Merges received TCP segments from now on ([`crate::gro`]), or no longer. Nothing may be held:
    /// with a hold time, [`RxQueue::flush`] comes first.
    ///
    /// # Errors
    /// [`Error::Setting`] if something is held.
    pub fn set_gro(&mut self, options: Option<GroOptions>) -> Result<(), Error> {
        let held = self.gro.as_ref().map_or(0, |gro| gro.held());
        if held > 0 {
            return Err(Error::Setting {
                what: "the number of buffers with segments that are held",
                value: held.into(),
                must: "the setting changes only when there are none: RxQueue::flush".into(),
            });
        }
        self.gro = options.map(|options| Box::new(Gro::new(options, self.pool.count())));
        Ok(())
    }

    /// Counters of merging; 0 if it is switched off.
    pub fn gro_stats(&self) -> GroStats {
        self.gro
            .as_ref()
            .map_or_else(GroStats::default, |gro| gro.stats())
    }

    /// How long until segments have been held long enough, for [`RxQueue::receive`] to deliver them;
    /// `None` if none are held.
    pub fn due(&self) -> Option<Duration> {
        let due = self.gro.as_ref()?.deadline()?;
        Some(Duration::from_nanos(due).saturating_sub(self.begin.elapsed()))
    }

    /// Receives at most `max` (at most 64) frames that are there now, and hands each to `take`, or,
    /// with [`RxQueue::set_gro`], what they were merged into.
    ///
    /// The buffers are posted again afterwards, with one doorbell if the device asks for one.
    /// Returns how many frames there were.
    pub fn receive(
        &mut self,
        max: usize,
        mut take: impl FnMut(&RxFrame<'_>),
    ) -> Result<usize, Error> {
        if let Some(mut gro) = self.gro.take() {
            let result = self.receive_units(&mut gro, max, &mut take);
            self.gro = Some(gro);
            return result;
        }
        let mut count = 0;
        while count < max.min(MAX_BURST) {
            let Some((header, len)) = self.next_frame()? else {
                break;
            };
            self.count(len);
            self.hand_out(header, len, Verified::Device, &mut take)?;
            count += 1;
        }
        if count > 0 {
            self.stats.bursts += 1;
            self.publish()?;
        }
        Ok(count)
    }

    /// Hands out what is held, and what was received before it.
    pub fn flush(&mut self, mut take: impl FnMut(&RxFrame<'_>)) -> Result<(), Error> {
        let Some(mut gro) = self.gro.take() else {
            return Ok(());
        };
        let flushed = gro.flush(&self.pool).map_err(Error::from);
        let delivered = self.deliver(&mut gro, &mut take);
        self.gro = Some(gro);
        flushed.and(delivered)?;
        self.publish()
    }

    fn receive_units(
        &mut self,
        gro: &mut Gro,
        max: usize,
        take: &mut impl FnMut(&RxFrame<'_>),
    ) -> Result<usize, Error> {
        let now = if gro.is_timeless() {
            0
        } else {
            u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
        };
        let mut count = 0;
        while count < max.min(MAX_BURST) {
            let Some((header, len)) = self.next_frame()? else {
                break;
            };
            let frame = Arrival {
                header,
                verified: self.options.guest_csum && says_verified(&header),
                len,
                parts: &self.parts,
            };
            count += 1;
            if gro.merge(&self.pool, &frame, now) {
                self.count(len);
                continue;
            }
            gro.offer(&self.pool, &frame, now)?;
            self.count(len);
            self.deliver(gro, take)?;
        }
        gro.end_of_burst(&self.pool, now)?;
        let delivered = self.deliver(gro, take)?;
        if count > 0 {
            self.stats.bursts += 1;
        }
        if count > 0 || delivered {
            self.publish()?;
        }
        Ok(count)
    }

    /// Counts the frame that `self.parts` lists.
    fn count(&mut self, len: usize) {
        self.stats.frames += 1;
        self.stats.bytes += len as u64;
        self.stats.buffers += self.parts.len() as u64;
    }

    /// Hands out what came of merging; true if there was something.
    fn deliver(
        &mut self,
        gro: &mut Gro,
        take: &mut impl FnMut(&RxFrame<'_>),
    ) -> Result<bool, Error> {
        let mut some = false;
        while let Some(unit) = gro.next() {
            self.parts.clear();
            self.parts.extend_from_slice(gro.parts(&unit));
            self.hand_out(unit.header, unit.len as usize, unit.verified, take)?;
            some = true;
        }
        Ok(some)
    }

    /// Hands out the frame that `self.parts` lists, and posts its buffers.
    fn hand_out(
        &mut self,
        header: NetHeader,
        len: usize,
        verified: Verified,
        take: &mut impl FnMut(&RxFrame<'_>),
    ) -> Result<(), Error> {
        let unit = match verified {
            Verified::Unit => Claim::Unit(header.hdr_len.get()),
            Verified::Device if header.gso_type != gso::NONE => self.judge(&header, len)?,
            _ => Claim::None,
        };
        take(&RxFrame {
            queue: self,
            header,
            len,
            verified,
            unit,
        });
        for i in 0..self.parts.len() {
            self.post(self.parts[i].buffer)?;
        }
        Ok(())
    }

    /// Looks at a frame that the card says it merged of several segments.
    fn judge(&mut self, header: &NetHeader, len: usize) -> Result<Claim, Error> {
        let mut head = [0; HEADER_WINDOW];
        let mut known = 0;
        for part in &self.parts {
            if known == HEADER_WINDOW {
                break;
            }
            let skip = usize::from(part.skip);
            let there = (part.len as usize).saturating_sub(skip);
            let there = there.min(HEADER_WINDOW - known);
            self.pool
                .read(part.buffer, skip, &mut head[known..known + there])?;
            known += there;
        }
        match offload::check_unit(header, self.options.merged, &head[..known], len) {
            Ok(headers) => {
                self.stats.units += 1;
                Ok(Claim::Unit(headers))
            }
            Err(fault) => Ok(Claim::False(fault)),
        }
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
            skip: 0,
            len: used.len,
        }))
    }

    /// Takes the buffers of the next frame into `self.parts`.
    fn next_frame(&mut self) -> Result<Option<(NetHeader, usize)>, Error> {
        let Some(first) = self.pop()? else {
            return Ok(None);
        };
        self.parts.clear();
        self.parts.push(Part {
            skip: HEADER_LEN as u16,
            ..first
        });
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
            if total > MAX_RECEIVED {
                return Err(self.queue.fail(QueueFault::FrameTooLong {
                    len: total as u32,
                    max: MAX_RECEIVED as u32,
                }));
            }
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
        if chain == 1 {
            let added = self.queue.add_writable(self.pool.segment(buffer, 0, len))?;
            return self.posted_as(added, buffer, chain);
        }
        let piece = len.div_ceil(chain);
        self.segments.clear();
        self.segments.extend((0..chain).map(|i| {
            let from = i * piece;
            self.pool.segment(buffer, from, piece.min(len - from))
        }));
        let indirect = self.options.indirect && chain > 1;
        let added = self.queue.add(&[], &self.segments, indirect)?;
        self.posted_as(added, buffer, chain)
    }

    /// Remembers which buffer a descriptor names.
    #[inline]
    fn posted_as(&mut self, added: Add, buffer: u16, chain: usize) -> Result<(), Error> {
        match added {
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

/// What the flags of a header say, where they may say something.
pub(super) fn says_verified(header: &NetHeader) -> bool {
    let flags = HeaderFlags::from_bits_retain(header.flags);
    flags.contains(HeaderFlags::DATA_VALID) && !flags.contains(HeaderFlags::NEEDS_CSUM)
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
