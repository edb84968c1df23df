//! Merging: a frame goes to its flow, or ends it.

use std::collections::VecDeque;

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, gso};

use super::chain::{Chains, NONE, Part};
use super::head::{self, Meaning, Segment};
use super::mask::{self, SHORT, SHORT_VECTORS, VECTORS, WINDOW, Window};
use super::table::{FLOWS, Flow, Table};
use super::unit::{self, FRONT, Unit, Verified};
use super::verify::{self, PIECE};
use super::{Buffers, GroOptions, GroStats, MAX_IP, MAX_PARTS};
use crate::offload::checksum::{fold, sum};
use crate::pci::PciError;

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The virtio header.
    pub header: NetHeader,
    /// The card says, and may say, that it verified the checksums.
    pub verified: bool,
    /// Bytes, without the virtio header; at least 14.
    pub len: usize,
    /// The buffers it lies in; the first begins with the virtio header, which it skips.
    pub parts: &'a [Part],
}

/// Merges the frames of one queue.
///
/// Frames go in by [`Gro::offer`]; what is to be delivered comes out of [`Gro::next`], in order. The
/// buffers of a frame belong to it from the one to the other.
pub struct Gro {
    table: Box<Table>,
    chains: Chains,
    /// Closed, and not yet taken.
    closed: VecDeque<Unit>,
    stats: GroStats,
    /// Longest IP packet of a unit.
    max_ip: u32,
    /// Buffers that there may be in open flows, and how many more.
    max_held: i32,
    room: i32,
    hold_ns: u64,
    gap_ns: u64,
    /// The first bytes of the frame under way.
    window: Window,
    /// Bytes that are being summed.
    piece: Box<[u8; PIECE]>,
}

/// Makes the sequence number that of the segment that comes after one with so much payload.
#[inline(always)]
fn advance(flow: &Flow, window: &mut Window, payload: u16) {
    let at = usize::from(flow.tcp) + 4;
    let seq = u32::from_be_bytes(window.array(at)).wrapping_add(payload.into());
    window.put(at, seq.to_be_bytes());
}

/// Makes the identification that of the packet that comes after one, and the sum right.
fn advance_id(flow: &Flow, window: &mut Window) {
    let at = usize::from(flow.ip) + 4;
    if !flow.v6 {
        let id = window.half(at).wrapping_add(1);
        window.put(at, id.to_be_bytes());
        make_sum(flow, window);
    }
}

#[cold]
fn make_sum(flow: &Flow, window: &mut Window) {
    let ip = usize::from(flow.ip);
    if ip + 20 <= WINDOW {
        window.put(ip + 10, [0; 2]);
        let check = !fold(sum(&window.0[ip..ip + 20]));
        window.put(ip + 10, check.to_be_bytes());
    }
}

impl Gro {
    /// For receive buffers of the numbers below `buffers`.
    pub fn new(options: GroOptions, buffers: u16) -> Self {
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let most = if options.hold.is_zero() {
            buffers
        } else {
            buffers / 2
        };
        Self {
            table: Table::new(),
            chains: Chains::new(buffers),
            closed: VecDeque::with_capacity(FLOWS + 1),
            stats: GroStats::default(),
            max_ip: options.max_ip.min(MAX_IP) as u32,
            max_held: options.max_held.unwrap_or(most).into(),
            room: options.max_held.unwrap_or(most).into(),
            hold_ns: ns(options.hold),
            gap_ns: ns(options.gap),
            window: Window::EMPTY,
            piece: Box::new([0; PIECE]),
        }
    }

    /// Counters.
    pub fn stats(&self) -> GroStats {
        self.stats
    }

    /// Buffers that are held.
    pub fn held(&self) -> u32 {
        (self.max_held - self.room).unsigned_abs()
    }

    /// True if units end with the burst, and times mean nothing.
    pub fn is_timeless(&self) -> bool {
        self.hold_ns == 0
    }

    /// Forgets everything that is held.
    pub fn clear(&mut self) {
        while let Some(flow) = self.table.oldest() {
            self.table.close(flow);
        }
        self.room = self.max_held;
        self.closed.clear();
    }

    /// The next frame to be delivered, with its parts until the next frame is offered.
    #[inline]
    #[allow(clippy::should_implement_trait)] // It is no iterator: frames may be offered in between.
    pub fn next(&mut self) -> Option<Unit> {
        self.closed.pop_front()
    }

    /// The parts of a frame that [`Gro::next`] gave.
    pub fn parts(&self, unit: &Unit) -> impl Iterator<Item = Part> + '_ {
        self.chains.from(unit.first).take(unit.buffers.into())
    }

    /// Takes a frame. `now` is a time in nanoseconds that does not go back.
    ///
    /// # Errors
    /// When a buffer has not the bytes that the frame is said to have there.
    #[inline]
    pub fn offer<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        now: u64,
    ) -> Result<(), PciError> {
        if !self.foreseen(memory, frame, now)? {
            return self.consider(memory, frame, now);
        }
        if self.room < 0 {
            return self.relieve(memory);
        }
        Ok(())
    }

    /// Copies the start of a frame that may not have as much; returns how much it has.
    fn look<B: Buffers>(&mut self, memory: &B, frame: &Arrival<'_>) -> Result<usize, PciError> {
        let Some(first) = frame.parts.first() else {
            return Ok(0);
        };
        let skip = usize::from(first.skip);
        let there = (first.len as usize).saturating_sub(skip).min(WINDOW);
        if there < WINDOW {
            self.window = Window::EMPTY;
        }
        memory.read(first.buffer, skip, &mut self.window.0[..there])?;
        Ok(there)
    }

    /// Merges a segment that has just the headers that were foreseen, as nearly all of a stream have.
    ///
    /// What is copied here and found not to be so is copied and looked at again.
    #[inline]
    fn foreseen<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        now: u64,
    ) -> Result<bool, PciError> {
        let Some(part) = frame.parts.first() else {
            return Ok(false);
        };
        if (part.len as usize) < usize::from(part.skip) + SHORT {
            return Ok(false);
        }
        memory.read(part.buffer, part.skip.into(), &mut self.window.0[..SHORT])?;
        let at = self.table.hinted(head::hint(&self.window));
        let (flow, next) = self.table.entry(at);
        let Some(mask) = mask::foreseen(flow.row) else {
            return Ok(false);
        };
        if flow.left == 0
            || frame.len != flow.full as usize
            || frame.parts.len() != usize::from(flow.each)
            || !frame.verified
            || frame.header.gso_type != gso::NONE
            || !mask::agree::<0, SHORT_VECTORS>(&self.window, next, mask)
            || self.window.array(usize::from(flow.tcp) + 16) == [0xff; 2]
        {
            return Ok(false);
        }
        if usize::from(flow.headers) > SHORT {
            let from = usize::from(part.skip);
            if (part.len as usize) < from + WINDOW {
                return Ok(false);
            }
            memory.read(part.buffer, from + SHORT, &mut self.window.0[SHORT..])?;
            if !mask::agree::<SHORT_VECTORS, VECTORS>(&self.window, next, mask) {
                return Ok(false);
            }
        }
        flow.left -= 1;
        flow.last_at = now;
        advance(flow, next, flow.mss);
        if !flow.v6 {
            // Identification, fragment, time to live, protocol and sum are eight bytes: the first
            // grows by one, so the sum shrinks by one. Where that does not foresee right, as when
            // the identification wraps, the next segment is looked at more closely, and all of it
            // is summed again; but no other field may change.
            let at = usize::from(flow.ip) + 4;
            let fields = u64::from_be_bytes(next.array(at));
            let less = if fields & 0xffff == 0 { 0 } else { 1 };
            next.put(at, fields.wrapping_add((1 << 48) - less).to_be_bytes());
        }
        self.stats.segments += 1;
        self.room -= frame.parts.len() as i32;
        flow.last = self.chains.extend(flow.last, frame.parts, flow.headers);
        Ok(true)
    }

    /// Puts a segment that fits behind a flow. True if it ends it.
    fn append(&mut self, at: u16, frame: &Arrival<'_>, segment: &Segment, now: u64) -> bool {
        self.table.set_hint(head::hint(&self.window), at);
        let (flow, next) = self.table.entry(at);
        flow.settle();
        flow.len += u32::from(segment.payload);
        flow.parts += frame.parts.len() as u16;
        flow.segments += 1;
        flow.last_at = now;
        flow.push |= segment.push;
        flow.last = self.chains.extend(flow.last, frame.parts, flow.headers);
        flow.grant(self.max_ip);
        advance(flow, next, segment.payload);
        advance_id(flow, next);
        self.room -= frame.parts.len() as i32;
        segment.push | (segment.payload < flow.mss)
    }

    /// Takes a frame that is none that continues a flow, or not of the usual shape.
    fn consider<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        now: u64,
    ) -> Result<(), PciError> {
        let there = self.look(memory, frame)?;
        match head::read(&self.window, there, frame.len) {
            // What the card merged already is not merged again.
            Meaning::Segment(segment) if frame.header.gso_type == gso::NONE => {
                if !frame.verified {
                    let (window, piece) = (&self.window, &mut self.piece);
                    if !verify::is_right(memory, window, &segment, frame.parts, piece)? {
                        self.end(memory, segment.tag)?;
                        self.pass(frame);
                        return Ok(());
                    }
                    self.stats.verified += 1;
                }
                self.stats.segments += 1;
                return self.segment(memory, frame, &segment, now);
            }
            Meaning::Segment(Segment { tag, .. }) | Meaning::Alone { tag } => {
                self.end(memory, tag)?;
            }
            Meaning::Pair { ip, v6 } => self.end_pair(memory, ip, v6)?,
            Meaning::Broken => {
                while let Some(flow) = self.table.oldest() {
                    self.stats.misfits += 1;
                    self.close(memory, flow)?;
                }
            }
            Meaning::Other => {}
        }
        self.pass(frame);
        Ok(())
    }

    /// Ends all units, or those that have been held long enough; to be called after each burst.
    ///
    /// # Errors
    /// As [`Gro::offer`].
    pub fn end_of_burst<B: Buffers>(&mut self, memory: &B, now: u64) -> Result<(), PciError> {
        let mut at = self.table.oldest();
        while let Some(number) = at {
            at = self.table.newer(number);
            let flow = self.table.flow(number);
            let held = now.saturating_sub(flow.first_at);
            let quiet = now.saturating_sub(flow.last_at);
            if self.hold_ns == 0 || held >= self.hold_ns || quiet >= self.gap_ns {
                self.stats.flushed += 1;
                self.close(memory, number)?;
            }
        }
        Ok(())
    }

    /// Ends all units: before a setting changes, or the queue stops.
    ///
    /// # Errors
    /// As [`Gro::offer`].
    pub fn flush<B: Buffers>(&mut self, memory: &B) -> Result<(), PciError> {
        while let Some(flow) = self.table.oldest() {
            self.stats.flushed += 1;
            self.close(memory, flow)?;
        }
        Ok(())
    }

    /// When the next unit has been held long enough.
    pub fn deadline(&self) -> Option<u64> {
        let mut at = self.table.oldest();
        let mut least = None;
        while let Some(number) = at {
            at = self.table.newer(number);
            let due = self.table.due(number, self.hold_ns, self.gap_ns);
            least = Some(least.map_or(due, |least: u64| least.min(due)));
        }
        least
    }

    /// Merges a segment, or begins anew with it.
    fn segment<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        segment: &Segment,
        now: u64,
    ) -> Result<(), PciError> {
        let Some(at) = self.table.find(segment.tag) else {
            return self.open(memory, frame, segment, now);
        };
        let (flow, next) = self.table.entry(at);
        flow.settle();
        let payload = usize::from(segment.payload);
        let parts = usize::from(flow.parts) + frame.parts.len();
        let fits = segment.seq == u32::from_be_bytes(next.array(usize::from(flow.tcp) + 4))
            && (segment.v6 || segment.id == next.half(usize::from(flow.ip) + 4))
            && segment.payload <= flow.mss
            && mask::equal(&self.window, next, segment.row);
        let packet = flow.len as usize + payload - usize::from(flow.ip);
        let room = packet <= self.max_ip as usize && parts <= usize::from(MAX_PARTS);
        if fits && room {
            if self.append(at, frame, segment, now) {
                return self.close(memory, at);
            }
            return self.relieve(memory);
        }
        *(if fits {
            &mut self.stats.full
        } else {
            &mut self.stats.misfits
        }) += 1;
        self.close(memory, at)?;
        self.open(memory, frame, segment, now)
    }

    /// Begins a unit.
    fn open<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        segment: &Segment,
        now: u64,
    ) -> Result<(), PciError> {
        let (first, last) = self.link(frame);
        let verified = if frame.verified {
            Verified::Device
        } else {
            Verified::Here
        };
        // What ends with its first segment, or is too long already, need not be held.
        let packet = frame.len - usize::from(segment.ip);
        if segment.push
            || frame.parts.len() > usize::from(MAX_PARTS)
            || packet > self.max_ip as usize
        {
            self.stats.units += 1;
            self.deliver(frame, first, verified);
            return Ok(());
        }
        let at = match self.table.place(segment.tag) {
            Ok(at) => at,
            Err(oldest) => {
                self.stats.evicted += 1;
                self.close(memory, oldest)?;
                oldest
            }
        };
        let mut flow = Flow {
            full: frame.len as u32,
            each: frame.parts.len() as u16,
            len: frame.len as u32,
            first_at: now,
            last_at: now,
            first,
            last,
            parts: frame.parts.len() as u16,
            segments: 1,
            mss: segment.payload,
            row: segment.row,
            ip: segment.ip,
            tcp: segment.tcp,
            headers: segment.headers,
            v6: segment.v6,
            here: verified == Verified::Here,
            header: frame.header,
            ..Flow::default()
        };
        flow.grant(self.max_ip);
        self.table.set_hint(head::hint(&self.window), at);
        advance(&flow, &mut self.window, flow.mss);
        advance_id(&flow, &mut self.window);
        self.table.open(at, segment.tag, flow, &self.window);
        self.room -= frame.parts.len() as i32;
        self.relieve(memory)
    }

    /// Ends the oldest units until the card has buffers enough.
    fn relieve<B: Buffers>(&mut self, memory: &B) -> Result<(), PciError> {
        while self.room < 0
            && let Some(oldest) = self.table.oldest()
        {
            self.stats.evicted += 1;
            self.close(memory, oldest)?;
        }
        Ok(())
    }

    /// Ends what is held of a flow.
    fn end<B: Buffers>(&mut self, memory: &B, tag: u32) -> Result<(), PciError> {
        match self.table.find(tag) {
            Some(at) => {
                self.stats.misfits += 1;
                self.close(memory, at)
            }
            None => Ok(()),
        }
    }

    /// Ends what is held between two addresses.
    fn end_pair<B: Buffers>(&mut self, memory: &B, ip: usize, v6: bool) -> Result<(), PciError> {
        let (from, len) = if v6 { (8, 32) } else { (12, 8) };
        let mut at = self.table.oldest();
        while let Some(number) = at {
            at = self.table.newer(number);
            let flow = self.table.flow(number);
            let (held, of_v6) = (usize::from(flow.ip) + from, flow.v6);
            let here = self.window.0.get(ip + from..ip + from + len);
            let there = self.table.window(number).0.get(held..held + len);
            if of_v6 == v6 && here == there {
                self.stats.misfits += 1;
                self.close(memory, number)?;
            }
        }
        Ok(())
    }

    /// Ends a unit.
    fn close<B: Buffers>(&mut self, memory: &B, at: u16) -> Result<(), PciError> {
        let flow = self.table.close(at);
        self.room += i32::from(flow.parts);
        self.stats.units += 1;
        let mut unit = Unit {
            header: flow.header,
            len: flow.len,
            segments: flow.segments,
            verified: if flow.here {
                Verified::Here
            } else {
                Verified::Device
            },
            buffers: flow.parts,
            first: flow.first,
        };
        if flow.segments > 1 {
            let mut front = [0; FRONT];
            unit.header = unit::headers(&flow, self.table.window(at), &mut front);
            unit.verified = Verified::Unit;
            let len = HEADER_LEN + usize::from(flow.headers);
            memory.write(flow.first, 0, &front[..len])?;
        }
        self.closed.push_back(unit);
        Ok(())
    }

    /// Delivers a frame that is not merged.
    fn pass(&mut self, frame: &Arrival<'_>) {
        self.stats.others += 1;
        let (first, _) = self.link(frame);
        self.deliver(frame, first, Verified::Device);
    }

    fn deliver(&mut self, frame: &Arrival<'_>, first: u16, verified: Verified) {
        self.closed.push_back(Unit {
            header: frame.header,
            len: frame.len as u32,
            segments: 1,
            verified,
            buffers: frame.parts.len() as u16,
            first,
        });
    }

    /// Makes a list of a frame's buffers; returns the first and the last.
    #[inline]
    fn link(&mut self, frame: &Arrival<'_>) -> (u16, u16) {
        let mut last = NONE;
        for part in frame.parts {
            self.chains.append(last, *part);
            last = part.buffer;
        }
        (frame.parts.first().map_or(NONE, |part| part.buffer), last)
    }
}
