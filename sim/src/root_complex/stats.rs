//! Counters of the link.

use crate::tlp::{self, Header, Kind};

/// TLPs of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlpCount {
    /// TLPs.
    pub tlps: u64,
    /// Header, payload and 8 bytes of each.
    pub wire_bytes: u64,
    /// Payload alone.
    pub payload_bytes: u64,
}

impl TlpCount {
    fn add(&mut self, header: &Header) {
        self.tlps += 1;
        self.wire_bytes += tlp::wire_bytes(header);
        self.payload_bytes += tlp::payload_bytes(header) as u64;
    }

    fn minus(self, earlier: Self) -> Self {
        Self {
            tlps: self.tlps - earlier.tlps,
            wire_bytes: self.wire_bytes - earlier.wire_bytes,
            payload_bytes: self.payload_bytes - earlier.payload_bytes,
        }
    }
}

/// What crossed the link. "Up" is from the card to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Posted writes of the card, interrupts included.
    pub up_writes: TlpCount,
    /// Reads of the card.
    pub up_reads: TlpCount,
    /// Completions of the card.
    pub up_completions: TlpCount,
    /// Writes to the card's registers.
    pub down_writes: TlpCount,
    /// Reads of the card's registers.
    pub down_reads: TlpCount,
    /// Configuration accesses.
    pub down_config: TlpCount,
    /// Completions of the card's reads.
    pub down_completions: TlpCount,
    /// MSI-X messages among `up_writes`.
    pub interrupts: u64,
    /// Accesses of the card to memory that it was not given, all refused.
    pub refused: u64,
    /// Function level resets that the host asked for.
    pub function_resets: u64,
}

impl LinkStats {
    pub(super) fn up(&mut self, header: &Header) {
        match tlp::kind(header) {
            Kind::MemWrite => self.up_writes.add(header),
            Kind::MemRead => self.up_reads.add(header),
            _ => self.up_completions.add(header),
        }
    }

    pub(super) fn down(&mut self, header: &Header) {
        match tlp::kind(header) {
            Kind::MemWrite => self.down_writes.add(header),
            Kind::MemRead => self.down_reads.add(header),
            Kind::CfgRead | Kind::CfgWrite => self.down_config.add(header),
            _ => self.down_completions.add(header),
        }
    }

    fn all(&self) -> [TlpCount; 7] {
        [
            self.up_writes,
            self.up_reads,
            self.up_completions,
            self.down_writes,
            self.down_reads,
            self.down_config,
            self.down_completions,
        ]
    }

    /// TLPs in both directions.
    pub fn tlps(&self) -> u64 {
        self.all().iter().map(|c| c.tlps).sum()
    }

    /// Wire bytes in both directions.
    pub fn wire_bytes(&self) -> u64 {
        self.all().iter().map(|c| c.wire_bytes).sum()
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            up_writes: self.up_writes.minus(earlier.up_writes),
            up_reads: self.up_reads.minus(earlier.up_reads),
            up_completions: self.up_completions.minus(earlier.up_completions),
            down_writes: self.down_writes.minus(earlier.down_writes),
            down_reads: self.down_reads.minus(earlier.down_reads),
            down_config: self.down_config.minus(earlier.down_config),
            down_completions: self.down_completions.minus(earlier.down_completions),
            interrupts: self.interrupts - earlier.interrupts,
            refused: self.refused - earlier.refused,
            function_resets: self.function_resets - earlier.function_resets,
        }
    }
}
