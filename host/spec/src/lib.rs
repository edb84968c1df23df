//! Wire types of the Ferronic card, shared by the driver, the simulator and the firmware.
//!
//! Plain data only: structures as they lie in memory or in PCI space, register offsets and bits.
//! Section names in the comments are those of the OASIS virtio specification, version 1.2.
#![no_std]
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod features;
pub mod net;
pub mod pci;
pub mod ring;
pub mod transport;
pub mod window;

pub use features::Features;
pub use net::NetHeader;
