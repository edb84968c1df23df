//! Faults on demand: how the host answers the card's reads wrongly.

use std::ops::Range;

use crate::rng::Rng;

/// A wrong answer to a read of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Unsupported request instead of data.
    UnsupportedRequest,
    /// Completer abort instead of data.
    CompleterAbort,
    /// Data marked as poisoned (and wrong).
    Poisoned,
    /// No completion at all.
    Lost,
    /// The first completion comes, the rest never. Like [`Fault::Lost`] for a read that fits one.
    LostTail,
    /// The first completion comes, then a completer abort.
    AbortTail,
    /// The last completion comes twice.
    Surplus,
    /// A completion for a tag that the card did not use, before the right ones.
    WrongTag,
}

/// When a fault happens.
#[derive(Clone, Debug)]
pub struct FaultRule {
    /// What happens.
    pub fault: Fault,
    /// Reads whose first byte is in this range are meant.
    pub range: Range<u64>,
    /// How often it still happens.
    pub remaining: u64,
    /// How likely, in thousandths.
    pub per_mille: u16,
}

impl FaultRule {
    /// The next `count` reads.
    pub fn next(fault: Fault, count: u64) -> Self {
        Self {
            fault,
            range: 0..u64::MAX,
            remaining: count,
            per_mille: 1000,
        }
    }

    /// Each read with a probability.
    pub fn random(fault: Fault, per_mille: u16) -> Self {
        Self {
            fault,
            range: 0..u64::MAX,
            remaining: u64::MAX,
            per_mille,
        }
    }

    /// Only reads that begin in `range`.
    pub fn within(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }
}

/// The rules in force.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    rules: Vec<FaultRule>,
    /// Faults that happened.
    pub injected: u64,
}

impl FaultPlan {
    /// Adds a rule; the first that matches a read counts.
    pub fn add(&mut self, rule: FaultRule) {
        self.rules.push(rule);
    }

    /// Ends all rules.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    pub(super) fn pick(&mut self, iova: u64, rng: &mut Rng) -> Option<Fault> {
        if self.rules.is_empty() {
            return None;
        }
        let rule = self
            .rules
            .iter_mut()
            .find(|r| r.remaining > 0 && r.range.contains(&iova) && rng.chance(r.per_mille))?;
        rule.remaining -= 1;
        self.injected += 1;
        Some(rule.fault)
    }
}
