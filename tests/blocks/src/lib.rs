//! Single RTL blocks, Verilated one by one, for the tests in `tests/`.
//!
//! A [`Block`] has its ports by name. The cycle is: set inputs, [`Block::settle`], look at outputs
//! (some depend on inputs in the same cycle), [`Block::tick`]. A failed assertion of the RTL is an
//! error of these calls that names it.
//!
//! Tests run under [`for_seeds`]: the seed of a failure is printed, and `FERRONIC_SEED` replays it.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod bits;
mod block;
mod control;
mod ffi;
mod layout;
mod memory;
mod seeds;
mod walker;

pub use bits::Bits;
pub use block::Block;
pub use control::{ControlEvents, ControlHost, ControlRead, clear_queues, configure};
pub use ferronic_oracle::{Rng, frames, rss};
pub use layout::{Layout, layout};
pub use memory::{FrameRam, HostMemory};
pub use seeds::{for_seeds, nightly};
pub use walker::{Buffer, Walker};

/// Why a test failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The model could not be made or used as asked.
    #[error("{0}")]
    Use(String),
    /// An assertion in the RTL failed, or the model stopped.
    #[error("cycle {cycle} of {block}: {messages}")]
    Assertion {
        /// Name of the model.
        block: String,
        /// Clock cycles since it was made.
        cycle: u64,
        /// What it printed.
        messages: String,
    },
    /// The block did what its contract does not allow.
    #[error("{0}")]
    Contract(String),
}

/// Returns with a [`Failure::Contract`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Failure::Contract(format!($($message)+)));
        }
    };
}
