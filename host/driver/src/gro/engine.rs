//! Merging: a frame goes to its flow, or ends it.

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, gso};

use super::foreseen::Seldom;
use super::head::{self, Other, Segment};
use super::mask::{self, SHORT, WINDOW, Window};
use super::ready::Ready;
use super::table::{FLOWS, Flow, Slot, Table};
use super::unit::{self, FRONT, Unit, Verified};
use super::verify::{self, PIECE};
use super::{Buffers, GroOptions, GroStats, MAX_IP, MAX_PARTS, Part};
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
/// Frames go in by [`Gro::merge`], or else by [`Gro::offer`]; what is to be delivered comes out of [`Gro::next`], in order. The
/// buffers of a frame belong to it from the one to the other.
pub struct Gro {
    pub(super) table: Table,
    /// Closed, and not yet taken.
    ready: Ready,
    pub(super) stats: GroStats,
    /// Longest IP packet of a unit.
    max_ip: u32,
    /// Buffers that there may be in open flows, and how many more.
    max_held: i32,
    pub(super) room: i32,
    hold_ns: u64,
    gap_ns: u64,
    /// The first bytes of the frame under way.
    pub(super) window: Window,
    /// Bytes that are being summed.
    piece: Box<[u8; PIECE]>,
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
            ready: Ready::new(FLOWS + 1, buffers.into()),
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
        let mut stats = self.stats;
        // Those that are held are counted when they are delivered.
        let mut at = self.table.oldest();
        while let Some(number) = at {
            at = self.table.newer(number);
            stats.segments += u64::from(self.table.segments(number));
        }
        stats
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
            let slot = self.table.close(flow);
            self.stats.segments += u64::from(slot.flow.segments);
        }
        self.room = self.max_held;
        self.ready.clear();
    }

    /// The next frame to be delivered. All are to be taken before the next frame is offered.
    #[inline]
    #[allow(clippy::should_implement_trait)] // It is no iterator: frames may be offered in between.
    pub fn next(&mut self) -> Option<Unit> {
        self.ready.pop()
    }

    /// The parts of a frame that [`Gro::next`] gave, until the next frame is offered.
    #[inline]
    pub fn parts(&self, unit: &Unit) -> &[Part] {
        self.ready.parts(unit)
    }

    /// Copies the start of a frame; returns how much there is.
    #[inline]
    fn look<B: Buffers>(&mut self, memory: &B, frame: &Arrival<'_>) -> Result<usize, PciError> {
        let Some(first) = frame.parts.first() else {
            return Ok(0);
        };
        let skip = usize::from(first.skip);
        let there = (first.len as usize).saturating_sub(skip);
        if there >= WINDOW {
            // A length that the compiler knows.
            memory.read(first.buffer, skip, &mut self.window.0)?;
            return Ok(WINDOW);
        }
        self.window = Window::EMPTY;
        memory.read(first.buffer, skip, &mut self.window.0[..there])?;
        Ok(there)
    }

    /// Puts a segment that fits behind a flow. True if it ends it.
    fn append(&mut self, at: u16, frame: &Arrival<'_>, segment: &Segment, now: u64) -> bool {
        self.table.set_hint(segment.hint.into(), at);
        let slot = self.table.slot(at);
        slot.flow.len += u32::from(segment.payload);
        slot.flow.segments += 1;
        slot.flow.last_at = now;
        slot.flow.push |= segment.push;
        slot.extend(frame.parts);
        self.room -= frame.parts.len() as i32;
        slot.foresee(segment.fields, segment.payload, self.max_ip);
        segment.push | (segment.payload < slot.flow.mss)
    }

    /// Takes a frame, which [`Gro::merge`] did not take. `now` is a time in nanoseconds that does not
    /// go back.
    ///
    /// # Errors
    /// When a buffer has not the bytes that the frame is said to have there.
    pub fn offer<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        now: u64,
    ) -> Result<(), PciError> {
        let there = self.look(memory, frame)?;
        if there >= SHORT {
            match self.merge_seldom(frame, now) {
                Seldom::Merged => return Ok(()),
                Seldom::Ended(at) => return self.close(memory, at),
                Seldom::Not => {}
            }
        }
        let segment = match head::read(&self.window, there, frame.len) {
            // What the card merged already is not merged again.
            Ok(segment) if frame.header.gso_type == gso::NONE => segment,
            Ok(Segment { tag, .. }) => return self.alone(memory, frame, Other::Alone { tag }),
            Err(other) => return self.alone(memory, frame, other),
        };
        if !frame.verified {
            let (window, piece) = (&self.window, &mut self.piece);
            if !verify::is_right(memory, window, &segment, frame.parts, piece)? {
                let tag = segment.tag;
                return self.alone(memory, frame, Other::Alone { tag });
            }
            self.stats.verified += 1;
        }
        self.segment(memory, frame, &segment, now)
    }

    /// Delivers a frame that is no segment that may be merged, behind what it must not overtake.
    #[inline(never)]
    fn alone<B: Buffers>(
        &mut self,
        memory: &B,
        frame: &Arrival<'_>,
        other: Other,
    ) -> Result<(), PciError> {
        match other {
            Other::NotTcp => {}
            Other::Alone { tag } => self.end(memory, tag)?,
            Other::Pair { ip, v6 } => self.end_pair(memory, ip, v6)?,
            Other::Broken => {
                while let Some(flow) = self.table.oldest() {
                    self.stats.misfits += 1;
                    self.close(memory, flow)?;
                }
            }
        }
        self.stats.others += 1;
        self.deliver(frame, Verified::Device);
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
            let flow = &self.table.slot(number).flow;
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
        let Slot { flow, next, .. } = self.table.slot(at);
        flow.settle();
        let payload = usize::from(segment.payload);
        let parts = usize::from(flow.parts) + frame.parts.len();
        let fits = segment.seq == flow.seq
            && segment.fields >> 48 == flow.fields >> 48
            && segment.payload <= flow.mss
            && mask::equal(&self.window, next, segment.row);
        let packet = flow.len as usize + payload - usize::from(flow.ip);
        let room = packet <= self.max_ip as usize && parts <= usize::from(MAX_PARTS);
        if fits && room {
            if self.append(at, frame, segment, now) {
                return self.close(memory, at);
            }
            if self.room < 0 {
                return self.relieve(memory);
            }
            return Ok(());
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
            self.stats.segments += 1;
            self.stats.units += 1;
            self.deliver(frame, verified);
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
        self.table.set_hint(segment.hint.into(), at);
        let slot = self.table.open(at, segment.tag);
        slot.flow = Flow {
            first_at: now,
            last_at: now,
            mask: mask::foreseen(segment.row),
            fields: 0,
            seq: segment.seq,
            len: frame.len as u32,
            full: frame.len as u32,
            mss: segment.payload,
            older: slot.flow.older,
            newer: slot.flow.newer,
            parts: 0,
            limit: 0,
            limit_one: 0,
            settled: 0,
            each: frame.parts.len() as u8,
            segments: 1,
            ip: segment.ip,
            tcp: segment.tcp,
            // The virtio header is skipped already, and the others stay.
            headers: 0,
            v6: segment.v6,
            push: false,
            here: verified == Verified::Here,
        };
        slot.next = self.window;
        slot.header = frame.header;
        slot.extend(frame.parts);
        slot.flow.headers = segment.headers;
        slot.foresee(segment.fields, segment.payload, self.max_ip);
        self.room -= frame.parts.len() as i32;
        if self.room < 0 {
            return self.relieve(memory);
        }
        Ok(())
    }

    /// Ends the oldest units until the card has buffers enough.
    #[inline(never)]
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
            let Slot { flow, next, .. } = self.table.slot(number);
            let (held, of_v6) = (usize::from(flow.ip) + from, flow.v6);
            let here = self.window.0.get(ip + from..ip + from + len);
            let there = next.0.get(held..held + len);
            if of_v6 == v6 && here == there {
                self.stats.misfits += 1;
                self.close(memory, number)?;
            }
        }
        Ok(())
    }

    /// Ends a unit.
    fn close<B: Buffers>(&mut self, memory: &B, at: u16) -> Result<(), PciError> {
        let slot = self.table.close(at);
        let flow = &slot.flow;
        self.room += i32::from(flow.parts);
        self.stats.segments += u64::from(flow.segments);
        self.stats.units += 1;
        let mut unit = Unit {
            header: slot.header,
            len: flow.len,
            segments: flow.segments.into(),
            verified: if flow.here {
                Verified::Here
            } else {
                Verified::Device
            },
            buffers: flow.parts.into(),
            first: 0,
        };
        if flow.segments > 1 {
            let mut front = [0; FRONT];
            unit.header = unit::headers(flow, &slot.next, &mut front);
            unit.verified = Verified::Unit;
            let len = HEADER_LEN + usize::from(flow.headers);
            memory.write(slot.parts[0].buffer, 0, &front[..len])?;
        }
        self.ready.push(unit, slot.list());
        Ok(())
    }

    /// Delivers a frame as it came.
    fn deliver(&mut self, frame: &Arrival<'_>, verified: Verified) {
        let unit = Unit {
            header: frame.header,
            len: frame.len as u32,
            segments: 1,
            verified,
            buffers: frame.parts.len() as u16,
            first: 0,
        };
        self.ready.push(unit, frame.parts);
    }
}
