//! Receive and transmit queues: each is owned by one thread and shares nothing that it writes.

mod buffer;
mod frame;
mod layout;
mod pool;
mod rx;
mod tx;
mod tx_completion;

use std::time::Duration;

pub use buffer::{DmaBuffer, DmaSlice, TxPart};
pub use frame::RxFrame;
pub use rx::{RxOptions, RxQueue, RxStats};
pub use tx::{PushResult, TxOptions, TxQueue, TxStats};
pub(crate) use tx_completion::Wanted;
pub use tx_completion::{Progress, Watch};

/// Most frames that one burst takes.
pub const MAX_BURST: usize = 64;

/// How the owners of queues learn that something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakeup {
    /// The owner polls; no interrupt is asked for and no vector is mapped.
    #[default]
    Polled,
    /// The owner asks for one interrupt at a time, by ring index where EVENT_IDX was negotiated.
    Interrupt,
}

/// A queue pair, to be taken apart and given to the threads that own its halves.
pub struct QueuePair {
    /// Number of the pair.
    pub index: u16,
    /// Receive queue, virtqueue `2 * index`.
    pub rx: RxQueue,
    /// Transmit queue, virtqueue `2 * index + 1`.
    pub tx: TxQueue,
}

/// How long something may take, in host time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A reset of the device or of a queue.
    pub reset: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reset: Duration::from_secs(10),
        }
    }
}
