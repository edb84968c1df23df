//! Why a queue cannot complete its frames as it was asked to.

use std::time::Duration;

use thiserror::Error;

use super::CompletionPolicy;

/// A policy that cannot be had, or a sender that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// The card lacks what the policy needs.
    #[error(
        "the completion policy `{0}` needs the card's ring-empty interrupt, which it does not have \
         (FEATURES.tx_empty of its window is 0, or it has no window); choose `event-idx`, which any \
         virtio device can, or leave the choice to the driver"
    )]
    NotThere(CompletionPolicy),
    /// There are no interrupts to wait for.
    #[error(
        "the completion policy `{0}` needs interrupts, and the card was opened without; open it with \
         DeviceConfig::wakeup = Wakeup::Interrupt"
    )]
    NoInterrupts(CompletionPolicy),
    /// The policy counts by ring index, and the device does not.
    #[error(
        "the completion policy `{0}` needs EVENT_IDX, which was not negotiated; choose `event-idx`, \
         which does without, or see DeviceConfig::features"
    )]
    NoEventIdx(CompletionPolicy),
    /// A time that cannot be kept.
    #[error("the {what} of {value:?} is not possible; {must}")]
    Time {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: Duration,
        /// What it must be.
        must: String,
    },
    /// A number of frames that cannot be.
    #[error("the completion policy counts {0} frames; give 1 to 32,767")]
    Count(u16),
    /// A sender that was closed, or of another port.
    #[error("there is no such sender on this queue; was it closed?")]
    NoSender,
    /// A frame that no send buffer of this sender can hold.
    #[error("a frame of {len} bytes is more than the send buffer of {budget} bytes holds")]
    Budget {
        /// Its bytes.
        len: usize,
        /// Bytes of the send buffer.
        budget: usize,
    },
    /// A queue of another card.
    #[error("the transmit queue of pair {0} belongs to another card than the one that was asked")]
    ForeignQueue(u16),
}
