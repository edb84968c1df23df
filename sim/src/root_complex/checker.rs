//! Rules that the card's TLPs must keep.

use std::fmt;

use crate::model::Beat;
use crate::tlp::{self, Header, Kind};

/// A rule that the card broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub cycle: u64,
    /// Which rule.
    pub rule: &'static str,
    /// The TLP's header.
    pub header: Header,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.header;
        write!(
            f,
            "cycle {}: {} (TLP header {a:08x} {b:08x} {c:08x} {d:08x})",
            self.cycle, self.rule
        )
    }
}

/// What configuration allows the card to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Memory requests are allowed.
    pub bus_master: bool,
    /// Max_Payload_Size in bytes.
    pub max_payload: usize,
    /// Max_Read_Request_Size in bytes.
    pub max_read: usize,
    /// Eight-bit tags.
    pub ext_tag: bool,
}

impl Default for LinkLimits {
    /// The values of a function after reset.
    fn default() -> Self {
        Self {
            bus_master: false,
            max_payload: 128,
            max_read: 512,
            ext_tag: false,
        }
    }
}

impl LinkLimits {
    /// What either allows.
    pub fn union(self, other: Self) -> Self {
        Self {
            bus_master: self.bus_master || other.bus_master,
            max_payload: self.max_payload.max(other.max_payload),
            max_read: self.max_read.max(other.max_read),
            ext_tag: self.ext_tag || other.ext_tag,
        }
    }
}

/// Checks headers and stalled beats; collects what was broken.
#[derive(Debug, Default)]
pub(super) struct Checker {
    violations: Vec<Violation>,
    stalled: [Option<Beat>; 3],
}

const MAX_VIOLATIONS: usize = 64;

impl Checker {
    pub(super) fn violate(&mut self, cycle: u64, rule: &'static str, header: &Header) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation {
                cycle,
                rule,
                header: *header,
            });
        }
    }

    pub(super) fn any(&self) -> bool {
        !self.violations.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    /// A beat that was not taken must be there again, unchanged.
    pub(super) fn beat(&mut self, cycle: u64, channel: usize, beat: &Beat, ready: bool) {
        if let Some(before) = self.stalled[channel].take() {
            let same = beat.sop == before.sop
                && beat.eop == before.eop
                && (beat.sop == 0 || beat.hdr == before.hdr)
                && beat.data == before.data;
            if !same {
                self.violate(cycle, "a stalled beat changed", &before.hdr);
            }
        }
        if beat.valid == 1 && !ready {
            self.stalled[channel] = Some(*beat);
        }
    }

    /// A channel shows nothing: there must not have been a stalled beat.
    pub(super) fn nothing(&mut self, cycle: u64, channel: usize) {
        if let Some(before) = self.stalled[channel].take() {
            self.violate(cycle, "a stalled beat vanished", &before.hdr);
        }
    }

    /// A memory request of the card.
    pub(super) fn memory_request(
        &mut self,
        cycle: u64,
        header: &Header,
        limits: &LinkLimits,
        requester: u16,
    ) {
        let write = match tlp::kind(header) {
            Kind::MemWrite => true,
            Kind::MemRead => false,
            _ => return self.violate(cycle, "not a memory request", header),
        };
        let (address, dws) = (tlp::address(header), tlp::length_dw(header));
        let (first, last) = tlp::byte_enables(header);
        let limit = if write {
            limits.max_payload
        } else {
            limits.max_read
        };
        let rules = [
            (limits.bus_master, "a memory request without bus mastering"),
            (dws * 4 <= limit, "longer than MPS or MRRS"),
            (
                (address & 0xfff) as usize + dws * 4 <= 4096,
                "crosses a 4 KiB boundary",
            ),
            (
                tlp::is_4dw(header) == (address >> 32 != 0),
                "a four-DW header below 4 GiB or a three-DW one above",
            ),
            (
                tlp::requester(header) == requester,
                "another requester id than the function's",
            ),
            (
                if dws == 1 {
                    last == 0
                } else {
                    first != 0 && last != 0
                },
                "byte enables against the length",
            ),
            (
                dws <= 2
                    || (matches!(first, 0xf | 0xe | 0xc | 8) && matches!(last, 1 | 3 | 7 | 0xf)),
                "byte enables with holes",
            ),
            (
                header[0] & 0x00ff_fc00 & !(1 << 14) == 0,
                "traffic class, attributes, digest or reserved bits are not zero",
            ),
            (!tlp::is_poisoned(header), "poisoned"),
            (
                write || limits.ext_tag || tlp::request_tag(header) < 32,
                "a tag above 31 without extended tags",
            ),
            (
                header[if tlp::is_4dw(header) { 3 } else { 2 }] & 3 == 0,
                "reserved address bits are not zero",
            ),
        ];
        for (kept, rule) in rules {
            if !kept {
                self.violate(cycle, rule, header);
            }
        }
    }
}
