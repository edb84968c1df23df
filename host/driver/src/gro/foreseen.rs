//! Segments that have just the headers that were foreseen, as nearly all of a stream have.

use std::sync::atomic::{Ordering, compiler_fence};

use ferronic_spec::net::gso;

use super::Buffers;
use super::engine::{Arrival, Gro};
use super::head::{self, PSH};
use super::mask::{SHORT, Window, agree};
use super::table;

/// What became of a frame that may be what was foreseen.
pub(super) enum Seldom {
    /// It was merged.
    Merged,
    /// It was merged, and ends the unit of this flow.
    Ended(u16),
    /// Nothing has changed.
    Not,
}

/// Ether types as they stand in a frame.
const IPV4: u16 = u16::from_ne_bytes([0x08, 0x00]);
const IPV6: u16 = u16::from_ne_bytes([0x86, 0xdd]);
const TAG: u16 = u16::from_ne_bytes([0x81, 0x00]);

/// Where the TCP header is, behind one or no tag.
const TCP4: usize = 34;
const TCP6: usize = 54;
const TAGGED4: usize = 38;
const TAGGED6: usize = 58;

/// Vectors of 16 bytes that are compared of frames of an IP version: the first of them are all of
/// headers, without the TCP checksum.
const V4: (usize, usize) = (3, 5);
const V6: (usize, usize) = (4, 6);

const _: () = assert!(TCP4 + 16 >= 16 * V4.0 && TCP6 + 16 >= 16 * V6.0 && 16 * V6.1 == SHORT);

/// Bytes of headers that a flow may have for its segments to be foreseen.
pub(super) const fn reach(v6: bool) -> usize {
    16 * if v6 { V6.1 } else { V4.1 }
}

/// True if two frames have the same headers, those that `mask` names.
#[inline(always)]
fn same<const IS_V6: bool>(a: &[u8; SHORT], b: &Window, mask: &Window) -> bool {
    if IS_V6 {
        agree::<{ V6.0 }, { V6.1 }, SHORT>(a, b, mask)
    } else {
        agree::<{ V4.0 }, { V4.1 }, SHORT>(a, b, mask)
    }
}

#[inline(always)]
fn half(first: &[u8; SHORT], at: usize) -> u16 {
    u16::from_ne_bytes([first[at], first[at + 1]])
}

impl Gro {
    /// Merges a frame that is just what was foreseen to continue a flow, as nearly all of a stream
    /// are. If false, nothing has changed: [`Gro::offer`] takes it. If true, nothing is to be
    /// delivered because of it.
    ///
    /// What is copied here and found not to be so is copied and looked at again there.
    #[inline]
    pub fn merge<B: Buffers>(&mut self, memory: &B, frame: &Arrival<'_>, now: u64) -> bool {
        let [part] = frame.parts else {
            return false;
        };
        let (buffer, skip) = (part.buffer, part.skip.into());
        let mut first = [0; SHORT];
        if memory.read(buffer, skip, &mut first).is_err() {
            return false;
        }
        // The copy stays in registers; nothing is loaded again from where the card may write.
        compiler_fence(Ordering::Acquire);
        let kind = half(&first, 12);
        if kind == IPV4 {
            self.merge_as::<false, true, TCP4>(&first, frame, now)
        } else if kind == IPV6 {
            self.merge_as::<true, true, TCP6>(&first, frame, now)
        } else {
            false
        }
    }

    /// The same for frames of several buffers, with a VLAN tag or with PSH, whose first [`SHORT`]
    /// bytes are in the window.
    pub(super) fn merge_seldom(&mut self, frame: &Arrival<'_>, now: u64) -> Seldom {
        let Some(first) = self.window.0.first_chunk::<SHORT>() else {
            return Seldom::Not;
        };
        let kind = half(first, 12);
        let tcp = match (kind, half(first, 16)) {
            (IPV4, _) => TCP4,
            (IPV6, _) => TCP6,
            (TAG, IPV4) => TAGGED4,
            (TAG, IPV6) => TAGGED6,
            _ => return Seldom::Not,
        };
        let push = first[tcp + 13] & PSH != 0;
        if frame.parts.len() == 1 && kind != TAG && !push {
            // `merge` has looked at it.
            return Seldom::Not;
        }
        let mut first = *first;
        first[tcp + 13] &= !PSH;
        let merged = match tcp {
            TCP4 => self.merge_as::<false, false, TCP4>(&first, frame, now),
            TCP6 => self.merge_as::<true, false, TCP6>(&first, frame, now),
            TAGGED4 => self.merge_as::<false, false, TAGGED4>(&first, frame, now),
            _ => self.merge_as::<true, false, TAGGED6>(&first, frame, now),
        };
        if !merged {
            return Seldom::Not;
        }
        if !push {
            return Seldom::Merged;
        }
        let hint = head::hint(half(&first, tcp), half(&first, tcp + 2));
        let at = self.table.hinted(hint);
        self.table.slot(at).flow.push = true;
        Seldom::Ended(at)
    }

    #[inline(always)]
    fn merge_as<const IS_V6: bool, const ONE: bool, const TCP: usize>(
        &mut self,
        first: &[u8; SHORT],
        frame: &Arrival<'_>,
        now: u64,
    ) -> bool {
        let hint = head::hint(half(first, TCP), half(first, TCP + 2));
        let slot = self.table.slot(self.table.hinted(hint));
        let flow = &mut slot.flow;
        let count = if ONE { 1 } else { frame.parts.len() };
        if flow.parts >= if ONE { flow.limit_one } else { flow.limit }
            || if ONE {
                frame.parts[0].len.wrapping_sub(frame.parts[0].skip.into()) != flow.full
            } else {
                frame.len != flow.full as usize || count != usize::from(flow.each)
            }
            || !frame.verified
            || frame.header.gso_type != gso::NONE
            || half(first, TCP + 16) == u16::MAX
            || self.room < count as i32
            || !same::<IS_V6>(first, &slot.next, flow.mask)
        {
            return false;
        }
        self.room -= count as i32;
        flow.last_at = now;
        flow.seq = flow.seq.wrapping_add(flow.mss.into());
        slot.next.put(TCP + 4, flow.seq.to_be_bytes());
        if !IS_V6 {
            // Neither identification nor sum wraps: `Slot::foresee` saw to it.
            flow.fields = table::after(flow.fields);
            slot.next.put(TCP - 16, flow.fields.to_be_bytes());
        }
        slot.extend(&frame.parts[..count]);
        true
    }
}
