//! A set of address ranges.

use std::collections::BTreeMap;

/// Disjoint ranges, as start and last address (so that the last byte of the space fits).
#[derive(Clone, Debug, Default)]
pub struct RangeSet(BTreeMap<u64, u64>);

impl RangeSet {
    /// Adds a range; neighbours and overlaps are joined.
    pub fn insert(&mut self, start: u64, len: u64) {
        if len == 0 {
            return;
        }
        let mut first = start;
        let mut last = start.saturating_add(len - 1);
        // Everything that overlaps or touches goes into the new range.
        while let Some((&s, &l)) = self.0.range(..=last.saturating_add(1)).next_back() {
            if l.saturating_add(1) < first {
                break;
            }
            self.0.remove(&s);
            first = first.min(s);
            last = last.max(l);
        }
        self.0.insert(first, last);
    }

    /// Takes a range out.
    pub fn remove(&mut self, start: u64, len: u64) {
        if len == 0 {
            return;
        }
        let last = start.saturating_add(len - 1);
        while let Some((&s, &l)) = self.0.range(..=last).next_back() {
            if l < start {
                break;
            }
            self.0.remove(&s);
            if s < start {
                self.0.insert(s, start - 1);
            }
            if l > last {
                self.0.insert(last + 1, l);
            }
            if s <= start {
                break;
            }
        }
    }

    /// True if every byte of the range is in the set.
    pub fn contains(&self, start: u64, len: u64) -> bool {
        if len == 0 {
            return true;
        }
        let last = start.saturating_add(len - 1);
        self.0
            .range(..=start)
            .next_back()
            .is_some_and(|(_, l)| *l >= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_and_removal_splits() {
        let mut set = RangeSet::default();
        set.insert(0x1000, 0x1000);
        set.insert(0x3000, 0x1000);
        assert!(!set.contains(0x1000, 0x3000));
        set.insert(0x2000, 0x1000);
        assert!(set.contains(0x1000, 0x3000));
        set.remove(0x1800, 0x10);
        assert!(set.contains(0x1000, 0x800) && set.contains(0x1810, 0x27f0));
        assert!(!set.contains(0x17ff, 2) && !set.contains(0x180f, 2));
        set.remove(0, u64::MAX);
        assert!(!set.contains(0x1000, 1));
    }

    #[test]
    fn end_of_the_address_space_is_reachable() {
        let mut set = RangeSet::default();
        set.insert(u64::MAX - 9, 100);
        assert!(set.contains(u64::MAX - 9, 10));
        set.remove(u64::MAX, 1);
        assert!(!set.contains(u64::MAX - 9, 10));
        assert!(set.contains(u64::MAX - 9, 9));
    }
}
