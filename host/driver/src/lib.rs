//! Userspace driver for the Ferronic virtio-net card.
//!
//! Start with [`Device::open`]; the crate's README has an outline.
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod backend;
pub mod coalesce;
pub mod completion;
pub mod device;
pub mod error;
pub mod filter;
pub mod follow;
pub mod gro;
pub mod lro;
pub mod offload;
pub mod pci;
pub mod phy;
pub mod queue;
mod readback;
pub mod rss;
pub mod selftest;
pub mod stats;
pub mod tap;
pub mod virtio;
mod wait;
pub mod workers;
pub mod xps;

pub use coalesce::{CoalesceError, Coalescing, Direction};
pub use completion::{CompletionPolicy, TxPort};
pub use device::{Device, DeviceConfig, Event, Wait, Waiter, Wake};
pub use error::{Error, QueueFault};
pub use ferronic_spec as spec;
pub use filter::{FilterError, FilterOptions};
pub use follow::{FollowError, FollowOptions};
pub use lro::{LroOptions, LroRequest, Merging};
pub use offload::{OffloadError, Segmentation, TxOffload};
pub use queue::{
    DmaBuffer, DmaSlice, Limits, MAX_BURST, PushResult, QueuePair, RxFrame, RxQueue, RxStats,
    TxPart, TxQueue, TxStats, Wakeup,
};
pub use readback::ReadbackError;
pub use rss::{RssError, RssOptions};
pub use stats::{CardStats, QueueCounters, Window};
pub use virtio::Link;
