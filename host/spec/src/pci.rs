//! The card as a PCI function: identification, BAR layout, and where its own window is found.

/// Vendor.
pub const VENDOR_ID: u16 = 0x1af4;
/// Device: a modern virtio network device.
pub const DEVICE_ID: u16 = 0x1041;
/// Revision.
pub const REVISION: u8 = 1;
/// Class code, upper 24 bits: Ethernet controller.
pub const CLASS: u32 = 0x02_0000;
/// Subsystem vendor.
pub const SUBSYSTEM_VENDOR_ID: u16 = 0x1af4;
/// Subsystem device.
pub const SUBSYSTEM_ID: u16 = 0xfe01;

/// Offsets and bits of the configuration header that the driver uses.
pub mod header {
    /// Command register.
    pub const COMMAND: u16 = 0x04;
    /// Memory space enable.
    pub const COMMAND_MEMORY: u16 = 1 << 1;
    /// Bus master enable.
    pub const COMMAND_BUS_MASTER: u16 = 1 << 2;
    /// INTx disable.
    pub const COMMAND_INTX_DISABLE: u16 = 1 << 10;
    /// Bytes of conventional configuration space.
    pub const CONVENTIONAL_LEN: usize = 0x100;
    /// Bytes of PCI Express configuration space.
    pub const EXPRESS_LEN: usize = 0x1000;
}

/// BAR 0. A driver takes these from the capabilities, the card and its tests from here.
pub mod bar0 {
    /// Size of the BAR.
    pub const SIZE: u64 = 0x1_0000;
    /// Common configuration.
    pub const COMMON: u64 = 0x0000;
    /// ISR.
    pub const ISR: u64 = 0x1000;
    /// Device configuration.
    pub const DEVICE: u64 = 0x2000;
    /// Doorbells.
    pub const NOTIFY: u64 = 0x3000;
    /// Bytes between doorbells.
    pub const NOTIFY_MULTIPLIER: u32 = 4;
    /// MSI-X table.
    pub const MSIX_TABLE: u64 = 0x4000;
    /// MSI-X pending bits.
    pub const MSIX_PBA: u64 = 0x5000;
    /// The card's own window.
    pub const WINDOW: u64 = 0x8000;
    /// Bytes of the card's own window.
    pub const WINDOW_LEN: u64 = 0x8000;
}

/// MSI-X vectors of a card with `pairs` queue pairs: one a virtqueue and one for configuration.
pub const fn msix_vectors(pairs: u16) -> u16 {
    2 * pairs + 1
}

/// The designated vendor-specific extended capability that names the card's own window.
///
/// Offsets are from the start of the capability.
pub mod dvsec {
    /// Extended capability ID of a DVSEC.
    pub const CAPABILITY_ID: u16 = 0x0023;
    /// Header 1: vendor in bits 15:0, revision in 19:16, length in 31:20.
    pub const HEADER1: usize = 4;
    /// Header 2: DVSEC ID in bits 15:0.
    pub const HEADER2: usize = 8;
    /// Vendor in header 1.
    pub const VENDOR: u16 = 0x1af4;
    /// DVSEC ID in header 2.
    pub const ID: u16 = 0xfe01;
    /// UUID, four DWs.
    pub const UUID: usize = 12;
    /// Version of the window, 32 bits.
    pub const VERSION: usize = 28;
    /// BAR of the window, 32 bits.
    pub const BAR: usize = 32;
    /// Offset of the window in the BAR, 32 bits.
    pub const OFFSET: usize = 36;
    /// Length of the window, 32 bits.
    pub const LENGTH: usize = 40;
    /// Bytes of the capability.
    pub const SIZE: usize = 44;
    /// The UUID f3770a1c-5e0d-4c1b-9a55-fe01f3770a1c as four DWs: four bytes each, in the order
    /// they are printed, the first in bits 31:24.
    pub const CARD_UUID: [u32; 4] = [0xf377_0a1c, 0x5e0d_4c1b, 0x9a55_fe01, 0xf377_0a1c];
}
