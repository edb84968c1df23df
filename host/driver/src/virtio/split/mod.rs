//! Split virtqueues ("Split Virtqueues"): `ring` is the memory, `queue` the driver's side of it.

mod indirect;
mod queue;
mod ring;

pub use queue::{Add, QueueOptions, Segment, SplitQueue, Used};
