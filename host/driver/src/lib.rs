//! Userspace driver for the Ferronic virtio-net card.
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod pci;
