//! The flows that are held: buckets of eight, and a list in the order in which they were opened.

use ferronic_spec::NetHeader;

use super::MAX_PARTS;
use super::chain::NONE;
use super::mask::Window;

/// Flows of a bucket.
const WAYS: usize = 8;
/// Buckets, a power of two.
const BUCKETS: usize = 32;
/// Flows at most.
pub(super) const FLOWS: usize = WAYS * BUCKETS;

/// Hints, by `head::hint`.
const HINTS: usize = 64;

/// The flows of a bucket: which they are, and when they were opened. One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    /// 0: nothing is held there.
    tags: [u32; WAYS],
    /// Number of the opening; wraps, as only differences count.
    opened: [u32; WAYS],
}

const _: () = assert!(size_of::<Bucket>() == 64 && align_of::<Bucket>() == 64);

/// A flow, in the cache line that each of its segments touches.
///
/// Its headers are kept as those of the segment that would continue it with as much payload as the
/// first had. A segment that has just these is counted by [`Flow::left`] alone; [`Flow::settle`]
/// makes the other numbers right.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(super) struct Flow {
    /// When its first and its last segment came.
    pub first_at: u64,
    pub last_at: u64,
    /// Bytes of the frame so far.
    pub len: u32,
    /// Bytes of the first frame.
    pub full: u32,
    /// First and last receive buffer, and how many.
    pub first: u16,
    pub last: u16,
    pub parts: u16,
    /// Segments.
    pub segments: u16,
    /// Payload and buffers of the first segment.
    pub mss: u16,
    pub each: u16,
    /// Segments like the first for which there is room, and how many there were.
    pub left: u16,
    pub granted: u16,
    /// Neighbours in the order of opening.
    pub older: u16,
    pub newer: u16,
    /// What the card wrote in front of the first segment.
    pub header: NetHeader,
    /// Kind of its headers, and where they are.
    pub row: u8,
    pub ip: u8,
    pub tcp: u8,
    pub headers: u8,
    pub v6: bool,
    /// PSH of any segment.
    pub push: bool,
    /// The checksum was verified here.
    pub here: bool,
}

impl Flow {
    /// Counts the segments that were merged as foreseen.
    pub(super) fn settle(&mut self) {
        let more = self.granted - self.left;
        self.granted = self.left;
        self.segments += more;
        self.parts += more * self.each;
        self.len += u32::from(more) * u32::from(self.mss);
    }

    /// Says for how many more segments like the first there is room.
    pub(super) fn grant(&mut self, max_ip: u32) {
        let bytes = (max_ip + u32::from(self.ip)).saturating_sub(self.len) / u32::from(self.mss);
        let parts = MAX_PARTS.saturating_sub(self.parts) / self.each;
        self.left = parts.min(u16::try_from(bytes).unwrap_or(u16::MAX));
        self.granted = self.left;
    }
}

const _: () = assert!(size_of::<Flow>() == 64 && align_of::<Flow>() == 64);

/// Flows by tag and by age. A flow's number is that of its bucket and its place there.
pub(super) struct Table {
    buckets: [Bucket; BUCKETS],
    flows: [Flow; FLOWS],
    windows: [Window; FLOWS],
    hints: [u16; HINTS],
    oldest: u16,
    newest: u16,
    opened: u32,
}

impl Table {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            buckets: [Bucket {
                tags: [0; WAYS],
                opened: [0; WAYS],
            }; BUCKETS],
            flows: [Flow::default(); FLOWS],
            windows: [Window::EMPTY; FLOWS],
            hints: [0; HINTS],
            oldest: NONE,
            newest: NONE,
            opened: 0,
        })
    }

    #[inline]
    fn bucket(tag: u32) -> usize {
        // The lowest bit is always set.
        (tag >> 1) as usize % BUCKETS
    }

    /// The flow of a tag, if something of it is held.
    #[inline]
    pub(super) fn find(&self, tag: u32) -> Option<u16> {
        self.way(Self::bucket(tag), tag)
    }

    /// The place of a bucket that has this tag.
    #[inline]
    fn way(&self, bucket: usize, tag: u32) -> Option<u16> {
        let way = self.buckets[bucket]
            .tags
            .iter()
            .position(|held| *held == tag)?;
        Some((WAYS * bucket + way) as u16)
    }

    /// A place for a flow of this tag, or the flow that must be closed before there is one: the
    /// oldest of the bucket.
    pub(super) fn place(&self, tag: u32) -> Result<u16, u16> {
        let number = Self::bucket(tag);
        let base = (WAYS * number) as u16;
        if let Some(free) = self.way(number, 0) {
            return Ok(free);
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

    #[inline]
    pub(super) fn flow(&mut self, flow: u16) -> &mut Flow {
        &mut self.flows[usize::from(flow) % FLOWS]
    }

    /// A flow and its headers.
    #[inline]
    pub(super) fn entry(&mut self, flow: u16) -> (&mut Flow, &mut Window) {
        let at = usize::from(flow) % FLOWS;
        (&mut self.flows[at], &mut self.windows[at])
    }

    /// The flow that a hint led to last time, which may be any.
    #[inline]
    pub(super) fn hinted(&self, hint: usize) -> u16 {
        self.hints[hint % HINTS]
    }

    pub(super) fn set_hint(&mut self, hint: usize, flow: u16) {
        self.hints[hint % HINTS] = flow;
    }

    #[inline]
    pub(super) fn window(&mut self, flow: u16) -> &mut Window {
        &mut self.windows[usize::from(flow) % FLOWS]
    }

    /// Opens a flow at a place that [`Table::place`] gave.
    pub(super) fn open(&mut self, at: u16, tag: u32, flow: Flow, window: &Window) {
        let (number, way) = (usize::from(at) / WAYS % BUCKETS, usize::from(at) % WAYS);
        let bucket = &mut self.buckets[number];
        bucket.tags[way] = tag;
        bucket.opened[way] = self.opened;
        self.opened = self.opened.wrapping_add(1);
        *self.flow(at) = Flow {
            older: self.newest,
            newer: NONE,
            ..flow
        };
        *self.window(at) = *window;
        match self.newest {
            NONE => self.oldest = at,
            newest => self.flow(newest).newer = at,
        }
        self.newest = at;
    }

    /// Takes a flow out.
    pub(super) fn close(&mut self, at: u16) -> Flow {
        let (number, way) = (usize::from(at) / WAYS % BUCKETS, usize::from(at) % WAYS);
        self.buckets[number].tags[way] = 0;
        self.flow(at).settle();
        // A hint may still lead here.
        self.flow(at).left = 0;
        let flow = *self.flow(at);
        match flow.older {
            NONE => self.oldest = flow.newer,
            older => self.flow(older).newer = flow.newer,
        }
        match flow.newer {
            NONE => self.newest = flow.older,
            newer => self.flow(newer).older = flow.older,
        }
        flow
    }

    /// The flow that was opened first.
    pub(super) fn oldest(&self) -> Option<u16> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// When a flow has been held long enough.
    pub(super) fn due(&self, flow: u16, hold: u64, gap: u64) -> u64 {
        let flow = &self.flows[usize::from(flow) % FLOWS];
        let held = flow.first_at.saturating_add(hold);
        held.min(flow.last_at.saturating_add(gap))
    }

    /// The flow that was opened after this one.
    pub(super) fn newer(&self, flow: u16) -> Option<u16> {
        let newer = self.flows[usize::from(flow) % FLOWS].newer;
        (newer != NONE).then_some(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags of one bucket.
    fn tag(i: u32) -> u32 {
        (i * 2 * BUCKETS as u32) | 1
    }

    fn open(table: &mut Table, i: u32) -> u16 {
        let at = table.place(tag(i)).expect("there is room");
        table.open(at, tag(i), Flow::default(), &Window::EMPTY);
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
