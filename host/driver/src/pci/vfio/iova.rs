//! Which addresses the device may be given, and which are taken.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Addresses of 0 and near it look like mistakes; none is given out.
const LOWEST: u64 = 0x10_0000;
/// The card takes no descriptor in the last 4 GiB of the address space.
const HIGHEST: u64 = u64::MAX - (1 << 32);
/// Addresses from here on are given out first: a card in a large machine sees no others.
const ABOVE_4_GIB: u64 = 1 << 32;

/// What a kernel before 5.4, which names no ranges, can be expected to take: 39 bits, without the
/// window of interrupt messages.
pub(super) const GUESS: [RangeInclusive<u64>; 2] = [0..=0xfedf_ffff, ABOVE_4_GIB..=(1 << 39) - 1];

/// Hands out addresses inside the ranges that the IOMMU has.
#[derive(Debug)]
pub(super) struct IovaAllocator {
    valid: Vec<RangeInclusive<u64>>,
    /// Free ranges: last address by first.
    free: BTreeMap<u64, u64>,
    page: u64,
}

impl IovaAllocator {
    /// `page` is the granularity of a mapping, a power of two.
    pub(super) fn new(valid: &[RangeInclusive<u64>], page: u64) -> Self {
        let mut this = Self {
            valid: valid.to_vec(),
            free: BTreeMap::new(),
            page,
        };
        for range in valid {
            let start = (*range.start()).max(LOWEST).checked_next_multiple_of(page);
            // One past the last whole page; the last page of all is never reached.
            let end = (*range.end()).min(HIGHEST).saturating_add(1) / page * page;
            if let Some(start) = start.filter(|start| *start < end) {
                this.insert(start, end - 1);
            }
        }
        this
    }

    /// Granularity of a mapping.
    pub(super) fn page(&self) -> u64 {
        self.page
    }

    /// A free range of `len` bytes, a multiple of the page. A page behind it stays unmapped, so
    /// that a device that runs over an end is caught.
    pub(super) fn allocate(&mut self, len: u64) -> Option<u64> {
        let needed = len.checked_add(self.page)?;
        let fit = |from: u64| {
            self.free.iter().find_map(|(&first, &last)| {
                let iova = first.max(from);
                let end = iova.checked_add(needed - 1)?;
                (end <= last).then_some((first, iova, end, last))
            })
        };
        let (first, iova, end, last) = fit(ABOVE_4_GIB).or_else(|| fit(0))?;
        self.free.remove(&first);
        if first < iova {
            self.free.insert(first, iova - 1);
        }
        if end < last {
            self.free.insert(end + 1, last);
        }
        Some(iova)
    }

    /// Gives back what `allocate` gave for `len` bytes.
    pub(super) fn release(&mut self, iova: u64, len: u64) {
        self.insert(iova, iova + len + self.page - 1);
    }

    /// Adds a free range, joined with its neighbours.
    fn insert(&mut self, mut first: u64, mut last: u64) {
        if let Some((&before, &end)) = self.free.range(..first).next_back()
            && end >= first - 1
        {
            first = before;
            last = last.max(end);
        }
        while let Some((&next, &end)) = self.free.range(first..).next()
            && next <= last.saturating_add(1)
        {
            self.free.remove(&next);
            last = last.max(end);
        }
        self.free.insert(first, last);
    }

    /// The valid ranges, for messages.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for range in &self.valid {
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}{:#x}-{:#x}", range.start(), range.end());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;
    const WINDOW: RangeInclusive<u64> = 0xfee0_0000..=0xfeef_ffff;

    #[test]
    fn addresses_stay_inside_the_valid_ranges_and_apart() {
        let valid = [0..=WINDOW.start() - 1, WINDOW.end() + 1..=0x1_0000_ffff];
        let mut allocator = IovaAllocator::new(&valid, PAGE);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut len = PAGE;
        while let Some(iova) = allocator.allocate(len) {
            let end = iova + len;
            assert!(iova >= LOWEST && iova.is_multiple_of(PAGE));
            assert!(
                valid
                    .iter()
                    .any(|r| r.contains(&iova) && r.contains(&(end - 1)))
            );
            for (first, last) in &taken {
                // A page between any two.
                assert!(end < *first || iova > *last, "{iova:#x} {first:#x}");
            }
            taken.push((iova, end));
            len = if taken.len() < 8 { PAGE } else { len * 2 };
        }
        assert!(taken[0].0 >= ABOVE_4_GIB && taken.len() > 16);
    }

    #[test]
    fn released_addresses_join_and_are_given_again() {
        let valid = [ABOVE_4_GIB..=ABOVE_4_GIB + 8 * PAGE - 1];
        let mut allocator = IovaAllocator::new(&valid, PAGE);
        let all = |a: &mut IovaAllocator| -> Vec<u64> {
            std::iter::from_fn(|| a.allocate(PAGE)).collect()
        };
        let first = all(&mut allocator);
        assert_eq!(first.len(), 4);
        // In an order that joins on each side.
        for i in [1, 3, 0, 2] {
            allocator.release(first[i], PAGE);
        }
        assert_eq!(allocator.allocate(7 * PAGE), Some(first[0]));
        assert_eq!(allocator.allocate(PAGE), None);
    }

    #[test]
    fn ranges_at_the_ends_of_the_address_space_are_cut() {
        let mut all = IovaAllocator::new(&[0..=u64::MAX], PAGE);
        assert_eq!(all.allocate(PAGE), Some(ABOVE_4_GIB));
        assert_eq!(
            all.free.first_key_value(),
            Some((&LOWEST, &(ABOVE_4_GIB - 1)))
        );
        assert!(all.free.values().all(|last| *last <= HIGHEST));
        let mut last = IovaAllocator::new(&[u64::MAX - PAGE..=u64::MAX], PAGE);
        assert_eq!(last.allocate(PAGE), None);
        // Less than a page, or off its boundaries.
        let mut odd = IovaAllocator::new(&[LOWEST + 1..=LOWEST + 2 * PAGE], PAGE);
        assert_eq!(odd.allocate(PAGE), None);
        assert_eq!(odd.allocate(u64::MAX), None);
        assert_eq!(odd.describe(), "0x100001-0x102000");
    }
}
