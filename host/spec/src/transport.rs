//! Virtio over PCI ("Virtio Over PCI Bus"): structures of the transport.

use bitflags::bitflags;

/// `cfg_type` of the vendor capabilities.
pub mod cap_type {
    /// Common configuration.
    pub const COMMON: u8 = 1;
    /// Doorbells.
    pub const NOTIFY: u8 = 2;
    /// ISR status.
    pub const ISR: u8 = 3;
    /// Device configuration.
    pub const DEVICE: u8 = 4;
    /// Access through PCI configuration space.
    pub const PCI_CFG: u8 = 5;
}

/// Offsets in `struct virtio_pci_cap`, from the start of the capability.
pub mod cap {
    /// Length of the capability, eight bits.
    pub const LEN: usize = 2;
    /// [`super::cap_type`], eight bits.
    pub const CFG_TYPE: usize = 3;
    /// BAR number, eight bits.
    pub const BAR: usize = 4;
    /// Offset in the BAR, 32 bits.
    pub const OFFSET: usize = 8;
    /// Length of the structure, 32 bits.
    pub const LENGTH: usize = 12;
    /// Bytes of a capability without additions.
    pub const SIZE: usize = 16;
    /// Doorbell multiplier, 32 bits (notify capability).
    pub const NOTIFY_MULTIPLIER: usize = 16;
    /// Data window, 32 bits (PCI configuration access).
    pub const PCI_CFG_DATA: usize = 16;
}

/// Offsets in `struct virtio_pci_common_cfg`.
pub mod common {
    /// 32 bits.
    pub const DEVICE_FEATURE_SELECT: u64 = 0;
    /// 32 bits.
    pub const DEVICE_FEATURE: u64 = 4;
    /// 32 bits.
    pub const DRIVER_FEATURE_SELECT: u64 = 8;
    /// 32 bits.
    pub const DRIVER_FEATURE: u64 = 12;
    /// 16 bits.
    pub const CONFIG_MSIX_VECTOR: u64 = 16;
    /// 16 bits.
    pub const NUM_QUEUES: u64 = 18;
    /// 8 bits, [`super::Status`].
    pub const DEVICE_STATUS: u64 = 20;
    /// 8 bits.
    pub const CONFIG_GENERATION: u64 = 21;
    /// 16 bits.
    pub const QUEUE_SELECT: u64 = 22;
    /// 16 bits.
    pub const QUEUE_SIZE: u64 = 24;
    /// 16 bits.
    pub const QUEUE_MSIX_VECTOR: u64 = 26;
    /// 16 bits.
    pub const QUEUE_ENABLE: u64 = 28;
    /// 16 bits.
    pub const QUEUE_NOTIFY_OFF: u64 = 30;
    /// 64 bits, written as two halves.
    pub const QUEUE_DESC: u64 = 32;
    /// 64 bits, written as two halves.
    pub const QUEUE_DRIVER: u64 = 40;
    /// 64 bits, written as two halves.
    pub const QUEUE_DEVICE: u64 = 48;
    /// 16 bits.
    pub const QUEUE_NOTIFY_DATA: u64 = 56;
    /// 16 bits.
    pub const QUEUE_RESET: u64 = 58;
    /// Bytes of the structure.
    pub const LEN: u64 = 60;
}

/// What an MSI-X vector register reads when no vector is mapped.
pub const NO_VECTOR: u16 = 0xffff;

bitflags! {
    /// `device_status` ("Device Status Field").
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Status: u8 {
        /// The driver has seen the device.
        const ACKNOWLEDGE = 1;
        /// The driver knows how to drive it.
        const DRIVER = 2;
        /// The driver is ready.
        const DRIVER_OK = 4;
        /// Feature negotiation is complete.
        const FEATURES_OK = 8;
        /// The device has met an error and wants a reset.
        const NEEDS_RESET = 64;
        /// The driver has given up.
        const FAILED = 128;

        const _ = !0;
    }
}

bitflags! {
    /// The ISR register; reading clears it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Isr: u8 {
        /// A queue has used buffers.
        const QUEUE = 1;
        /// The configuration has changed.
        const CONFIG = 2;

        const _ = !0;
    }
}
