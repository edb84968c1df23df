//! Virtio 1.2 over PCI: initialisation, and virtqueues.

mod net_config;
pub mod split;
pub mod transport;

pub use net_config::{Link, NetConfig};
pub use transport::{Doorbell, QueueAddresses, Transport};

pub(crate) use transport::config_snapshot;
