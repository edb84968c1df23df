//! Completion of transmitted frames: when the driver learns that the card has read them, and when
//! those who sent them may send more.
//!
//! [`CompletionPolicy`] is chosen per transmit queue
//! ([`Device::set_completion`](crate::Device::set_completion)). The default is the card's ring-empty
//! interrupt with a hold-off and a bound on age; docs/completion-policies.md compares it with the
//! others.

mod error;
mod policy;
mod port;
mod registers;
mod state;

pub use crate::queue::{Progress, Watch};
pub use error::CompletionError;
pub use policy::{CompletionPolicy, HOLDOFF, MARK, MAX_AGE, PACKETS, PERIOD};
pub use port::{Push, PushFlow, SenderId, TxPort};
pub use registers::TxInterrupts;

pub(crate) use policy::{EventRule, Release};
pub(crate) use registers::TxEmpty;
pub(crate) use state::Completion;
