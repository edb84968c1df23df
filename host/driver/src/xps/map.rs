//! The inverted map: from a CPU, or a receive queue, to the transmit queues that serve it.

use std::ops::Range;

use super::mask::Mask;
use super::probe::Probe;
use super::steering::{Pick, Rule};

/// Words of a line.
const WORDS: usize = 16;

/// Memory that shares no cache line with anything else.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; WORDS]);

const _: () = assert!(size_of::<Line>() == 64 && align_of::<Line>() == 64);

/// A map is not changed once made: another takes its place.
///
/// Its memory holds, by CPU and then by traffic class, where the list of queues begins; one more for
/// the end; then the queues, each list sorted, so that the order in which masks were set does not
/// matter.
pub(super) struct Map {
    ids: u32,
    classes: u32,
    lines: Box<[Line]>,
}

/// The memory for a map was not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory {
    /// Words of the map.
    pub(super) words: usize,
}

/// One of `len` by a hash: the hash as a fraction of 2^32, times `len`. Below `len`, or 0.
pub(super) fn scale(hash: u32, len: u32) -> u32 {
    ((u64::from(hash) * u64::from(len)) >> 32) as u32
}

impl Map {
    /// Number of CPUs or receive queues, and of traffic classes.
    pub(super) fn size(&self) -> (u32, u32) {
        (self.ids, self.classes)
    }

    fn word(&self, index: usize) -> Option<&u32> {
        self.lines.get(index / WORDS)?.0.get(index % WORDS)
    }

    /// Where the list of an id and class is; `None` for those that the map does not have.
    fn list(&self, id: u32, class: u32, probe: &mut impl Probe) -> Option<Range<usize>> {
        if id >= self.ids || class >= self.classes {
            return None;
        }
        let index = id as usize * self.classes as usize + class as usize;
        let (first, end) = (self.word(index)?, self.word(index + 1)?);
        probe.read(first);
        probe.read(end);
        let base = self.ids as usize * self.classes as usize + 1;
        Some(base + *first as usize..base + *end as usize)
    }

    /// The queue for this id: the only one, or one of several by the hash. `None` where the map has
    /// no answer, and where the answer is not below `queues`.
    pub(super) fn pick(
        &self,
        (id, class): (u32, u8),
        (hash, queues): (u32, u16),
        by: Rule,
        probe: &mut impl Probe,
    ) -> Option<Pick> {
        let list = self.list(id, u32::from(class), probe)?;
        let place = match list.len() {
            0 => return None,
            1 => 0,
            len => scale(hash, len as u32) as usize,
        };
        let queue = self.word(list.start + place)?;
        probe.read(queue);
        let queue = u16::try_from(*queue).ok()?;
        (queue < queues).then_some(Pick { queue, by })
    }

    fn queues(&self, id: u32, class: u32) -> impl Iterator<Item = u16> + Clone {
        let list = self.list(id, class, &mut ()).unwrap_or(0..0);
        list.filter_map(|index| u16::try_from(*self.word(index)?).ok())
    }

    /// Whose lists name this queue, as the set that it was given by.
    pub(super) fn mask(&self, queue: u16) -> Mask {
        let ids = 0..self.ids;
        let named = ids.filter(|id| {
            let mut classes = 0..self.classes;
            classes.any(|class| self.queues(*id, class).any(|q| q == queue))
        });
        Mask::of(named.map(|id| id as usize), self.ids as usize)
            .unwrap_or_else(|_| Mask::new(self.ids as usize))
    }

    /// A map with these lists, which are sorted; `None` if all are empty.
    fn build<I: Iterator<Item = u16>>(
        ids: u32,
        classes: u32,
        lists: impl Fn(u32, u32) -> I,
    ) -> Result<Option<Self>, NoMemory> {
        let keys = || (0..ids).flat_map(|id| (0..classes).map(move |class| (id, class)));
        let total: usize = keys().map(|(id, class)| lists(id, class).count()).sum();
        if total == 0 {
            return Ok(None);
        }
        let base = ids as usize * classes as usize + 1;
        let words = base + total;
        let none = |_| NoMemory { words };
        u32::try_from(total).map_err(|_| NoMemory { words })?;
        let mut lines = Vec::new();
        let count = words.div_ceil(WORDS);
        lines.try_reserve_exact(count).map_err(none)?;
        lines.resize(count, Line([0; WORDS]));
        let mut put = |index: usize, value: u32| lines[index / WORDS].0[index % WORDS] = value;
        let mut next = 0;
        for (key, (id, class)) in keys().enumerate() {
            put(key, next);
            for queue in lists(id, class) {
                put(base + next as usize, u32::from(queue));
                next += 1;
            }
        }
        put(base - 1, next);
        Ok(Some(Self {
            ids,
            classes,
            lines: lines.into_boxed_slice(),
        }))
    }

    /// This map with one queue in the lists of one class of these ids and in no other list. A map of
    /// another size is not taken over.
    pub(super) fn with(
        old: Option<&Self>,
        (ids, classes): (u32, u32),
        (queue, its_class): (u16, u32),
        listed: impl Fn(u32) -> bool,
    ) -> Result<Option<Self>, NoMemory> {
        let old = old.filter(|old| old.size() == (ids, classes));
        Self::build(ids, classes, |id, class| {
            let others = old.map(|old| old.queues(id, class));
            let others = others.into_iter().flatten().filter(move |q| *q != queue);
            let below = others.clone().take_while(move |q| *q < queue);
            let above = others.skip_while(move |q| *q < queue);
            let own = (class == its_class && listed(id)).then_some(queue);
            below.chain(own).chain(above)
        })
    }

    /// This map without some queues.
    pub(super) fn without(old: Option<&Self>, gone: Range<u16>) -> Result<Option<Self>, NoMemory> {
        let Some(old) = old else {
            return Ok(None);
        };
        Self::build(old.ids, old.classes, |id, class| {
            let gone = gone.clone();
            old.queues(id, class).filter(move |q| !gone.contains(q))
        })
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    fn queues(map: Option<&Map>, id: u32, class: u32) -> Vec<u16> {
        map.unwrap().queues(id, class).collect()
    }

    #[test]
    fn s3_r6_lists_of_other_classes_are_taken_over_only_from_a_map_of_the_same_size() {
        let map = Map::with(None, (4, 2), (1, 0), |id| id < 2).unwrap();
        let map = Map::with(map.as_ref(), (4, 2), (5, 1), |id| id == 1).unwrap();
        assert_eq!(queues(map.as_ref(), 1, 0), [1]);
        assert_eq!(queues(map.as_ref(), 1, 1), [5]);
        for size in [(4, 3), (5, 2)] {
            let other = Map::with(map.as_ref(), size, (6, 1), |id| id == 1).unwrap();
            assert!(queues(other.as_ref(), 1, 0).is_empty());
            assert_eq!(queues(other.as_ref(), 1, 1), [6]);
        }
    }

    #[test]
    fn s3_r6_queue_that_changes_its_class_leaves_the_old_one() {
        let map = Map::with(None, (2, 2), (3, 0), |_| true).unwrap();
        let map = Map::with(map.as_ref(), (2, 2), (3, 1), |id| id == 0).unwrap();
        assert!(queues(map.as_ref(), 0, 0).is_empty());
        assert_eq!(queues(map.as_ref(), 0, 1), [3]);
        assert_eq!(map.unwrap().mask(3).list().to_string(), "0");
    }

    #[test]
    fn s3_r6_map_without_a_queue_is_none() {
        let map = Map::with(None, (8, 1), (3, 0), |id| id == 7).unwrap();
        assert!(map.is_some());
        assert!(Map::without(map.as_ref(), 3..4).unwrap().is_none());
        assert!(
            Map::with(map.as_ref(), (8, 1), (3, 0), |_| false)
                .unwrap()
                .is_none()
        );
        assert!(
            Map::with(None, (8, 1), (3, 0), |_| false)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn s3_r3_scaled_hash_is_below_the_length_and_even() {
        assert_eq!(scale(u32::MAX, 0), 0);
        for len in [1, 2, 3, 7, 64, 65_535] {
            assert_eq!((scale(0, len), scale(u32::MAX, len)), (0, len - 1));
        }
        assert_eq!(
            [0x7fff_ffff, 0x8000_0000].map(|hash| scale(hash, 2)),
            [0, 1]
        );
    }
}
