//! The flows that are held: buckets of eight, and a list in the order in which they were opened.

use ferronic_spec::NetHeader;

use super::foreseen;
use super::mask::{self, Window};
use super::unit::{folded, words};
use super::{MAX_PARTS, Part};

/// No flow.
const NONE: u16 = u16::MAX;
/// Flows of a bucket.
const WAYS: usize = 8;
/// Buckets, a power of two.
const BUCKETS: usize = 32;
/// Flows at most.
pub(super) const FLOWS: usize = WAYS * BUCKETS;
/// Parts of a flow.
const PARTS: usize = MAX_PARTS as usize;

/// Hints, by `head::hint`.
const HINTS: usize = 64;

/// The flows of a bucket: which they are, and when they were opened. One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u32; WAYS],
    /// Number of the opening; wraps, as only differences count.
    opened: [u32; WAYS],
}

const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);

/// What is known of a flow, in the cache line that each of its segments touches.
///
/// Segments that have just the headers that were foreseen are counted by [`Flow::parts`] alone;
/// [`Flow::settle`] makes the other numbers right.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Flow {
    /// When its first and its last segment came.
    pub first_at: u64,
    pub last_at: u64,
    /// Which bits of its headers are foreseen.
    pub mask: &'static Window,
    /// Identification, fragment, time to live, protocol and checksum of the IPv4 header that is
    /// foreseen, and the sequence number.
    pub fields: u64,
    pub seq: u32,
    /// Bytes of the frame so far.
    pub len: u32,
    /// Bytes of the first frame.
    pub full: u32,
    /// Payload of the first segment.
    pub mss: u16,
    /// Neighbours in the order of opening.
    pub older: u16,
    pub newer: u16,
    /// Receive buffers; how many there may be of segments like the first, and how many of them were
    /// counted otherwise.
    pub parts: u8,
    pub limit: u8,
    /// `limit` if segments like the first have one buffer, else 0.
    pub limit_one: u8,
    pub settled: u8,
    /// Buffers of the first segment.
    pub each: u8,
    /// Segments.
    pub segments: u8,
    /// Where its headers are.
    pub ip: u8,
    pub tcp: u8,
    pub headers: u8,
    pub v6: bool,
    /// PSH of any segment.
    pub push: bool,
    /// The checksum was verified here.
    pub here: bool,
}

const _: () = assert!(size_of::<Flow>() == 64 && align_of::<Flow>() == 64);
const _: () = assert!(PARTS <= u8::MAX as usize);

impl Default for Flow {
    fn default() -> Self {
        Self {
            first_at: 0,
            last_at: 0,
            mask: mask::foreseen(0),
            fields: 0,
            seq: 0,
            len: 0,
            full: 0,
            mss: 0,
            older: NONE,
            newer: NONE,
            parts: 0,
            limit: 0,
            limit_one: 0,
            settled: 0,
            each: 1,
            segments: 0,
            ip: 0,
            tcp: 0,
            headers: 0,
            v6: false,
            push: false,
            here: false,
        }
    }
}

/// Fields of an IPv4 header, as [`Flow::fields`], from which on the identification wraps.
const LAST_ID: u64 = 0xffff << 48;

/// The fields of the IPv4 packet that comes next: as the identification grows by one, the sum shrinks
/// by one. Not so if one of them wraps.
#[inline(always)]
pub(super) fn after(fields: u64) -> u64 {
    fields.wrapping_add((1 << 48) - 1)
}

impl Flow {
    /// Segments that were merged as foreseen and are not yet counted.
    #[inline]
    fn more(&self) -> u8 {
        (self.parts - self.settled) / self.each.max(1)
    }

    /// Counts them.
    #[inline]
    pub(super) fn settle(&mut self) {
        let more = self.more();
        self.settled = self.parts;
        self.segments += more;
        self.len += u32::from(more) * u32::from(self.mss);
    }
}

/// A flow, its headers and its receive buffers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Slot {
    pub flow: Flow,
    /// Headers of the segment that would continue it with as much payload as the first had.
    pub next: Window,
    /// What the card wrote in front of the first segment.
    pub header: NetHeader,
    pub parts: [Part; PARTS],
}

impl Slot {
    /// Foresees the headers of the segment that comes after one with these fields and so much payload
    /// (`fields` of an IPv4 header that is right), and says how many more like the first may be merged
    /// as foreseen.
    #[inline]
    pub(super) fn foresee(&mut self, fields: u64, payload: u16, max_ip: u32) {
        let flow = &mut self.flow;
        flow.seq = flow.seq.wrapping_add(payload.into());
        self.next
            .put(usize::from(flow.tcp) + 4, flow.seq.to_be_bytes());
        let mut headers = u32::MAX;
        if !flow.v6 {
            let ip = usize::from(flow.ip);
            flow.fields = after(fields);
            if fields >= LAST_ID || fields & 0xffff == 0 {
                flow.fields = fields.wrapping_add(1 << 48) & !0xffff;
                self.next.put(ip + 4, flow.fields.to_be_bytes());
                let header: [u8; 20] = self.next.array(ip);
                let sum = !folded(words::<5>(&header, 0));
                flow.fields |= u64::from(u16::from_be(sum));
            }
            self.next.put(ip + 4, flow.fields.to_be_bytes());
            // Until the identification wraps, or the sum that counts down with it.
            headers = (flow.fields & 0xffff).min(!flow.fields >> 48) as u32;
        }
        let room = (max_ip + u32::from(flow.ip)).saturating_sub(flow.len);
        let bytes = room / u32::from(flow.mss.max(1));
        let each = u32::from(flow.each.max(1));
        let parts = u32::from(MAX_PARTS - u16::from(flow.parts)) / each;
        let more = parts.min(bytes).min(headers);
        // At most `PARTS`.
        flow.limit = flow.parts + (more * each) as u8;
        if usize::from(flow.headers) > foreseen::reach(flow.v6) {
            flow.limit = 0;
        }
        flow.limit_one = if each == 1 { flow.limit } else { 0 };
        flow.settled = flow.parts;
    }

    /// Puts the buffers of a segment behind those of the others. There must be room.
    #[inline(always)]
    pub(super) fn extend(&mut self, parts: &[Part]) {
        let Some((first, rest)) = parts.split_first() else {
            return;
        };
        let mut at = usize::from(self.flow.parts);
        // What belongs to a unit of its headers are those of its first segment.
        self.parts[at % PARTS] = first.skipping(self.flow.headers.into());
        for part in rest {
            at += 1;
            self.parts[at % PARTS] = *part;
        }
        self.flow.parts = at as u8 + 1;
    }

    /// Its receive buffers.
    #[inline]
    pub(super) fn list(&self) -> &[Part] {
        self.parts.get(..self.flow.parts.into()).unwrap_or_default()
    }
}

/// Flows by tag and by age. A flow's number is that of its bucket and its place there.
pub(super) struct Table {
    buckets: [Bucket; BUCKETS],
    /// Places of each bucket that are taken, a bit each.
    taken: [u8; BUCKETS],
    hints: [u8; HINTS],
    oldest: u16,
    newest: u16,
    opened: u32,
    slots: Box<[Slot; FLOWS]>,
}

const _: () = assert!(FLOWS == 1 << u8::BITS && WAYS == u8::BITS as usize);

impl Table {
    pub(super) fn new() -> Self {
        let slot = Slot {
            flow: Flow::default(),
            next: Window::EMPTY,
            header: NetHeader::default(),
            parts: [Part::default(); PARTS],
        };
        // Made where it stays: it is too large for a stack.
        let slots = vec![slot; FLOWS].into_boxed_slice();
        Self {
            buckets: [Bucket {
                tags: [0; WAYS],
                opened: [0; WAYS],
            }; BUCKETS],
            taken: [0; BUCKETS],
            hints: [0; HINTS],
            oldest: NONE,
            newest: NONE,
            opened: 0,
            slots: slots.try_into().unwrap_or_else(|_| unreachable!()),
        }
    }

    #[inline]
    fn bucket(tag: u32) -> usize {
        tag as usize % BUCKETS
    }

    /// The flow of a tag, if something of it is held.
    #[inline]
    pub(super) fn find(&self, tag: u32) -> Option<u16> {
        let number = Self::bucket(tag);
        let mut taken = self.taken[number];
        while taken != 0 {
            let way = taken.trailing_zeros() as usize;
            if self.buckets[number].tags[way % WAYS] == tag {
                return Some((WAYS * number + way) as u16);
            }
            taken &= taken - 1;
        }
        None
    }

    /// A place for a flow of this tag, or the flow that must be closed before there is one: the
    /// oldest of the bucket.
    #[inline]
    pub(super) fn place(&self, tag: u32) -> Result<u16, u16> {
        let number = Self::bucket(tag);
        let base = (WAYS * number) as u16;
        let free = self.taken[number].trailing_ones() as u16;
        if usize::from(free) < WAYS {
            return Ok(base + free);
        }
        let (mut oldest, mut age) = (0, 0);
        for (way, opened) in self.buckets[number].opened.iter().enumerate() {
            let since = self.opened.wrapping_sub(*opened);
            if since > age {
                (oldest, age) = (way as u16, since);
            }
        }
        Err(base + oldest)
    }

    /// A flow.
    #[inline(always)]
    pub(super) fn slot(&mut self, flow: u16) -> &mut Slot {
        &mut self.slots[usize::from(flow) % FLOWS]
    }

    #[inline(always)]
    fn flow(&mut self, flow: u16) -> &mut Flow {
        &mut self.slot(flow).flow
    }

    /// The flow that a hint led to last time, which may be any.
    #[inline(always)]
    pub(super) fn hinted(&self, hint: usize) -> u16 {
        self.hints[hint % HINTS].into()
    }

    #[inline]
    pub(super) fn set_hint(&mut self, hint: usize, flow: u16) {
        // There are as many flows as numbers of 8 bits.
        self.hints[hint % HINTS] = flow as u8;
    }

    /// Opens a flow at a place that [`Table::place`] gave. Of its slot nothing else is changed.
    #[inline]
    pub(super) fn open(&mut self, at: u16, tag: u32) -> &mut Slot {
        let (number, way) = (usize::from(at) / WAYS % BUCKETS, usize::from(at) % WAYS);
        self.taken[number] |= 1 << way;
        let bucket = &mut self.buckets[number];
        bucket.tags[way] = tag;
        bucket.opened[way] = self.opened;
        self.opened = self.opened.wrapping_add(1);
        let older = std::mem::replace(&mut self.newest, at);
        match older {
            NONE => self.oldest = at,
            older => self.flow(older).newer = at,
        }
        let slot = self.slot(at);
        (slot.flow.older, slot.flow.newer) = (older, NONE);
        slot
    }

    /// Takes a flow out, which may be looked at until another is opened.
    #[inline]
    pub(super) fn close(&mut self, at: u16) -> &mut Slot {
        let (number, way) = (usize::from(at) / WAYS % BUCKETS, usize::from(at) % WAYS);
        self.taken[number] &= !(1 << way);
        let flow = self.flow(at);
        flow.settle();
        // A hint may still lead here.
        (flow.limit, flow.limit_one) = (0, 0);
        let (older, newer) = (flow.older, flow.newer);
        match older {
            NONE => self.oldest = newer,
            older => self.flow(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.flow(newer).older = older,
        }
        self.slot(at)
    }

    /// The flow that was opened first.
    pub(super) fn oldest(&self) -> Option<u16> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// When a flow has been held long enough.
    pub(super) fn due(&self, flow: u16, hold: u64, gap: u64) -> u64 {
        let flow = &self.slots[usize::from(flow) % FLOWS].flow;
        let held = flow.first_at.saturating_add(hold);
        held.min(flow.last_at.saturating_add(gap))
    }

    /// Segments of a flow.
    pub(super) fn segments(&self, flow: u16) -> u8 {
        let flow = &self.slots[usize::from(flow) % FLOWS].flow;
        flow.segments + flow.more()
    }

    /// The flow that was opened after this one.
    pub(super) fn newer(&self, flow: u16) -> Option<u16> {
        let newer = self.slots[usize::from(flow) % FLOWS].flow.newer;
        (newer != NONE).then_some(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags of one bucket.
    fn tag(i: u32) -> u32 {
        i * BUCKETS as u32 + 5
    }

    fn open(table: &mut Table, i: u32) -> u16 {
        let at = table.place(tag(i)).expect("there is room");
        table.open(at, tag(i));
        at
    }

    #[test]
    fn a_full_bucket_gives_up_its_oldest_flow() {
        let mut table = Table::new();
        // The number of openings wraps meanwhile.
        table.opened = u32::MAX - 3;
        let places: Vec<_> = (0..8).map(|i| open(&mut table, i)).collect();
        assert_eq!(table.place(tag(8)), Err(places[0]));
        table.close(places[0]);
        assert_eq!(open(&mut table, 8), places[0]);
        assert_eq!(table.place(tag(9)), Err(places[1]));
        for i in 1..9 {
            assert!(table.find(tag(i)).is_some());
        }
        assert_eq!(table.find(tag(0)), None);
    }

    #[test]
    fn flows_are_listed_in_the_order_of_their_opening() {
        let mut table = Table::new();
        let places: Vec<_> = (0..5).map(|i| open(&mut table, i)).collect();
        for at in [places[0], places[2], places[4]] {
            table.close(at);
        }
        let again = open(&mut table, 9);
        let mut order = Vec::new();
        let mut at = table.oldest();
        while let Some(flow) = at {
            order.push(flow);
            at = table.newer(flow);
        }
        assert_eq!(order, [places[1], places[3], again]);
        for at in order {
            table.close(at);
        }
        assert_eq!((table.oldest(), table.newest), (None, NONE));
    }
}
