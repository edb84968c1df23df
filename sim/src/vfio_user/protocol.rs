//! Messages of the vfio-user protocol, version 0.0: layouts and numbers.
//!
//! Integers are in the byte order of the host, as both ends run on it.

/// Size of the header of each message.
pub const HEADER: usize = 16;
/// Descriptors that may come with one message.
pub const MAX_FDS: usize = 16;
/// Largest REGION_READ or REGION_WRITE.
pub const MAX_TRANSFER: usize = 1 << 20;
/// Largest message that is kept; longer ones are skipped and refused.
pub const MAX_MESSAGE: usize = HEADER + MAX_TRANSFER + 64;
/// Maps that a client may hold: one per page of a large guest buffer.
pub const MAX_DMA_MAPS: usize = 65_535;

/// Command numbers.
#[allow(missing_docs)]
pub mod command {
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

/// Bits of the header's flags.
#[allow(missing_docs)]
pub mod flag {
    pub const TYPE_MASK: u32 = 0xf;
    pub const TYPE_COMMAND: u32 = 0;
    pub const TYPE_REPLY: u32 = 1;
    pub const NO_REPLY: u32 = 1 << 4;
    pub const ERROR: u32 = 1 << 5;
}

/// Bits and numbers of VFIO that appear in messages.
#[allow(missing_docs)]
pub mod vfio {
    pub const DEVICE_RESET: u32 = 1 << 0;
    pub const DEVICE_PCI: u32 = 1 << 1;
    pub const REGION_READ: u32 = 1 << 0;
    pub const REGION_WRITE: u32 = 1 << 1;
    pub const REGIONS: u32 = 9;
    pub const CONFIG_REGION: u32 = 7;
    pub const CONFIG_SIZE: u64 = 4096;
    pub const IRQS: u32 = 5;
    pub const MSIX_IRQ: u32 = 2;
    pub const IRQ_EVENTFD: u32 = 1 << 0;
    pub const IRQ_NORESIZE: u32 = 1 << 3;
    pub const SET_DATA_NONE: u32 = 1 << 0;
    pub const SET_DATA_BOOL: u32 = 1 << 1;
    pub const SET_DATA_EVENTFD: u32 = 1 << 2;
    pub const SET_ACTION_TRIGGER: u32 = 1 << 5;
    pub const DMA_READ: u32 = 1 << 0;
    pub const DMA_WRITE: u32 = 1 << 1;
    pub const UNMAP_DIRTY_BITMAP: u32 = 1 << 0;
    pub const UNMAP_ALL: u32 = 1 << 1;
}

/// The header of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the sender of a command, repeated in the reply.
    pub id: u16,
    /// Command number.
    pub command: u16,
    /// Whole message, header included.
    pub size: u32,
    /// Type and flags.
    pub flags: u32,
    /// `errno` of an error reply.
    pub error: u32,
}

impl Header {
    /// Reads a header.
    pub fn parse(bytes: &[u8; HEADER]) -> Self {
        let mut fields = Fields(bytes);
        Self {
            id: fields.u16().unwrap_or_default(),
            command: fields.u16().unwrap_or_default(),
            size: fields.u32().unwrap_or_default(),
            flags: fields.u32().unwrap_or_default(),
            error: fields.u32().unwrap_or_default(),
        }
    }

    /// Appends the header to a message.
    pub fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.id.to_ne_bytes());
        to.extend_from_slice(&self.command.to_ne_bytes());
        to.extend_from_slice(&self.size.to_ne_bytes());
        to.extend_from_slice(&self.flags.to_ne_bytes());
        to.extend_from_slice(&self.error.to_ne_bytes());
    }

    /// True for a command that wants no answer.
    pub fn is_posted(&self) -> bool {
        self.flags & flag::NO_REPLY != 0
    }
}

/// Takes fields off the front of a payload; `None` when it is too short.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_ne_bytes(*head))
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*head))
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*head))
    }

    /// What is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The payload of DMA_MAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaMap {
    /// READ, WRITE.
    pub flags: u32,
    /// Offset in the file.
    pub offset: u64,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl DmaMap {
    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let _argsz = fields.u32()?;
        Some(Self {
            flags: fields.u32()?,
            offset: fields.u64()?,
            address: fields.u64()?,
            size: fields.u64()?,
        })
    }
}

/// The payload of DMA_UNMAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaUnmap {
    /// ALL, DIRTY_BITMAP.
    pub flags: u32,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl DmaUnmap {
    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        let _argsz = fields.u32()?;
        Some(Self {
            flags: fields.u32()?,
            address: fields.u64()?,
            size: fields.u64()?,
        })
    }

    /// Appends the payload to a reply.
    pub fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&24_u32.to_ne_bytes());
        to.extend_from_slice(&self.flags.to_ne_bytes());
        to.extend_from_slice(&self.address.to_ne_bytes());
        to.extend_from_slice(&self.size.to_ne_bytes());
    }
}

/// The first fields of REGION_READ and REGION_WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionAccess {
    /// Offset in the region.
    pub offset: u64,
    /// The region.
    pub region: u32,
    /// Bytes.
    pub count: u32,
}

impl RegionAccess {
    /// Reads the fields; the rest is the data of a write.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = Fields(payload);
        let access = Self {
            offset: fields.u64()?,
            region: fields.u32()?,
            count: fields.u32()?,
        };
        Some((access, fields.rest()))
    }

    /// Appends the fields to a reply.
    pub fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.offset.to_ne_bytes());
        to.extend_from_slice(&self.region.to_ne_bytes());
        to.extend_from_slice(&self.count.to_ne_bytes());
    }
}

/// The first fields of DEVICE_SET_IRQS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetIrqs {
    /// Kind of data and action.
    pub flags: u32,
    /// Interrupt index (2: MSI-X).
    pub index: u32,
    /// First vector.
    pub start: u32,
    /// Vectors.
    pub count: u32,
}

impl SetIrqs {
    /// Reads the fields; the rest is data.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = Fields(payload);
        let _argsz = fields.u32()?;
        let irqs = Self {
            flags: fields.u32()?,
            index: fields.u32()?,
            start: fields.u32()?,
            count: fields.u32()?,
        };
        Some((irqs, fields.rest()))
    }
}
