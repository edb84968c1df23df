//! Transmit completion measured: a host whose work takes time, on the RTL and a wire of 1 Gbit/s, under
//! each policy.
//!
//! Everything is deterministic. The host has one processor; what its work costs is in cost.txt. A frame is
//! completed when the used ring in host memory shows it, and freed when the driver has taken it back.

mod cost;
mod host;
mod outcome;
mod peer;
mod workload;

pub use cost::{Cost, HOST_CYCLES};
pub use host::{Conditions, Host, RING};
pub use outcome::{Outcome, Stats, jain};
pub use peer::{Kind, Peer, frame};
pub use workload::{
    DATAGRAM, Order, PING, PRELOAD, SMALL_BUDGET, Workload, bulk, fairness, ping, preload,
};
