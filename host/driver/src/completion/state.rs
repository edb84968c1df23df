//! What a transmit queue keeps of its policy.

use std::time::Duration;

use ferronic_spec::ring::DescFlags;

use super::policy::{CompletionPolicy, Rules};
use super::{CompletionError, TxEmpty};
use crate::error::Error;

/// Most frames that an event index is placed ahead: farther, it would be behind.
const MAX_AHEAD: u16 = i16::MAX as u16;

/// The policy of one transmit queue, and where it is in it.
pub(crate) struct Completion {
    pub policy: CompletionPolicy,
    pub rules: Rules,
    /// The card's registers, if it has them.
    card: Option<TxEmpty>,
    /// Flag of the first descriptor of a marked frame.
    marker: DescFlags,
    /// Frames since the last marked one.
    unmarked: u16,
    /// When the driver looks by itself.
    pub due: Option<Duration>,
}

impl Completion {
    /// Checks that the policy can be had. `card` are the registers of the queue, if there are any;
    /// `event_idx`: it was negotiated.
    pub fn new(
        policy: CompletionPolicy,
        card: Option<TxEmpty>,
        event_idx: bool,
    ) -> Result<Self, Error> {
        let rules = policy.rules();
        if rules.needs_card() && card.is_none() {
            return Err(CompletionError::NotThere(policy).into());
        }
        let counts = match policy {
            CompletionPolicy::Coalesced { packets, .. } => {
                if !event_idx {
                    return Err(CompletionError::NoEventIdx(policy).into());
                }
                Some(packets)
            }
            _ => rules.mark,
        };
        if let Some(count) = counts
            && !(1..=MAX_AHEAD).contains(&count)
        {
            return Err(CompletionError::Count(count).into());
        }
        if let Some(value) = rules.timer.filter(Duration::is_zero) {
            let must = "the timer of the driver must be longer".to_owned();
            return Err(CompletionError::Time {
                what: "period",
                value,
                must,
            }
            .into());
        }
        let marker = match (&card, rules.mark) {
            (Some(card), Some(_)) => card.marker()?,
            _ => DescFlags::empty(),
        };
        Ok(Self {
            policy,
            rules,
            card,
            marker,
            unmarked: 0,
            due: None,
        })
    }

    /// Tells the card, if it is one that listens.
    pub fn apply(&self) -> Result<(), Error> {
        self.card
            .as_ref()
            .map_or(Ok(()), |card| card.set(&self.rules))
    }

    /// Flags of the first descriptor of the next frame.
    pub fn mark(&self) -> DescFlags {
        match self.rules.mark {
            Some(every) if self.unmarked + 1 >= every => self.marker,
            _ => DescFlags::empty(),
        }
    }

    /// A frame was queued.
    pub fn queued(&mut self) {
        if let Some(every) = self.rules.mark {
            self.unmarked = (self.unmarked + 1) % every;
        }
    }

    /// Starts anew, after the queue was emptied.
    pub fn clear(&mut self) {
        (self.unmarked, self.due) = (0, None);
    }
}
