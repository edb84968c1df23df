//! Messages of the vfio-user protocol, version 0, as they go over the socket.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Commands.
pub(super) mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const DEVICE_GET_INFO: u16 = 4;
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub const DEVICE_SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DEVICE_RESET: u16 = 13;
}

/// Bits of [`Header::flags`].
pub(super) mod flags {
    /// Mask of the message type; 0 is a command.
    pub const TYPE: u32 = 0xf;
    pub const REPLY: u32 = 1;
    pub const NO_REPLY: u32 = 1 << 4;
    pub const ERROR: u32 = 1 << 5;
}

/// Bits and numbers of `linux/vfio.h` that go over the socket.
pub(super) mod vfio {
    pub const DEVICE_FLAGS_PCI: u32 = 1 << 1;
    pub const CONFIG_REGION: u32 = 7;
    pub const MSIX_IRQ: u32 = 2;
    pub const IRQ_INFO_EVENTFD: u32 = 1;
    pub const IRQ_SET_DATA_NONE: u32 = 1;
    pub const IRQ_SET_DATA_EVENTFD: u32 = 1 << 2;
    pub const IRQ_SET_ACTION_TRIGGER: u32 = 1 << 5;
    pub const DMA_READ_WRITE: u32 = 3;
}

macro_rules! message {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
        )]
        #[repr(C)]
        pub(super) struct $name { $($(#[$field_doc])* pub $field: $type,)* }
    };
}

message! {
    /// In front of every message.
    Header {
        id: U16,
        command: U16,
        /// Bytes, the header included.
        size: U32,
        flags: U32,
        /// errno of an error reply.
        error: U32,
    }
}

message! {
    /// VERSION; a JSON text with a final NUL follows.
    Version {
        major: U16,
        minor: U16,
    }
}

message! {
    DmaMap {
        argsz: U32,
        flags: U32,
        offset: U64,
        address: U64,
        size: U64,
    }
}

message! {
    DmaUnmap {
        argsz: U32,
        flags: U32,
        address: U64,
        size: U64,
    }
}

message! {
    DeviceInfo {
        argsz: U32,
        flags: U32,
        regions: U32,
        irqs: U32,
    }
}

message! {
    RegionInfo {
        argsz: U32,
        flags: U32,
        index: U32,
        cap_offset: U32,
        size: U64,
        offset: U64,
    }
}

message! {
    IrqInfo {
        argsz: U32,
        flags: U32,
        index: U32,
        count: U32,
    }
}

message! {
    SetIrqs {
        argsz: U32,
        flags: U32,
        index: U32,
        start: U32,
        count: U32,
    }
}

message! {
    /// REGION_READ and REGION_WRITE; the data follows.
    RegionAccess {
        offset: U64,
        region: U32,
        count: U32,
    }
}

const _: () = assert!(size_of::<Header>() == 16 && size_of::<RegionInfo>() == 32);
