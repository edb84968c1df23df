//! Virtio 1.2 over PCI: initialisation, and virtqueues.

pub mod split;
pub mod transport;

pub use transport::{Doorbell, QueueAddresses, Transport};
