//! Flow-control credits that the link grants to the card.

use std::collections::VecDeque;

use crate::tlp::{self, Header};

/// The three credit types of PCIe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditType {
    /// Posted requests: memory writes.
    Posted,
    /// Non-posted requests: memory reads.
    NonPosted,
    /// Completions.
    Completion,
}

/// Credits of one type at most outstanding; `None`: without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditLimit {
    /// Headers.
    pub headers: Option<u32>,
    /// Data, in units of 16 bytes.
    pub data: Option<u32>,
}

/// The account of one type.
#[derive(Debug, Default)]
pub(super) struct CreditPool {
    limit: CreditLimit,
    headers: u32,
    data: u32,
    starved_until: u64,
    returning: VecDeque<(u64, u32, u32)>,
}

impl CreditPool {
    pub(super) fn new(limit: CreditLimit) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// No credits are granted before `time`.
    pub(super) fn starve_until(&mut self, time: u64) {
        self.starved_until = self.starved_until.max(time);
    }

    fn cost(header: &Header) -> u32 {
        tlp::payload_bytes(header).div_ceil(16) as u32
    }

    /// True if a TLP may be sent at `now`.
    pub(super) fn allows(&mut self, header: &Header, now: u64) -> bool {
        while let Some(&(time, headers, data)) = self.returning.front() {
            if time > now {
                break;
            }
            self.headers -= headers;
            self.data -= data;
            self.returning.pop_front();
        }
        now >= self.starved_until
            && self.limit.headers.is_none_or(|limit| self.headers < limit)
            && self
                .limit
                .data
                .is_none_or(|limit| self.data + Self::cost(header) <= limit)
    }

    /// Takes the credits of a TLP, to be given back at `back`.
    pub(super) fn take(&mut self, header: &Header, back: u64) {
        if self.limit == CreditLimit::default() {
            return;
        }
        let cost = Self::cost(header);
        self.headers += 1;
        self.data += cost;
        self.returning.push_back((back, 1, cost));
    }
}
