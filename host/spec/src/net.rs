//! The network device: frame header and configuration space.

use bitflags::bitflags;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Smallest frame the card takes: an Ethernet header.
pub const MIN_FRAME: usize = 14;
/// Largest frame the card takes, without FCS.
pub const MAX_FRAME: usize = 9216;
/// Longest IP packet that the card segments.
pub const MAX_SEGMENTED_IP: usize = 65_535;
/// Largest frame that the card segments: an Ethernet header, two VLAN tags and such a packet.
pub const MAX_SEGMENTED_FRAME: usize = 22 + MAX_SEGMENTED_IP;
/// Bytes at the start of a frame within which all headers must lie for the card to read them.
pub const HEADER_WINDOW: usize = 144;
/// Bytes of the header in front of every frame, in both directions.
pub const HEADER_LEN: usize = size_of::<NetHeader>();

/// `struct virtio_net_hdr` with `num_buffers` ("Device Operation").
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct NetHeader {
    /// [`HeaderFlags`].
    pub flags: u8,
    /// [`gso`] type.
    pub gso_type: u8,
    /// Bytes of all headers, a hint.
    pub hdr_len: U16,
    /// Payload bytes of a segment.
    pub gso_size: U16,
    /// Where the checksum starts.
    pub csum_start: U16,
    /// Where the checksum goes, from `csum_start`.
    pub csum_offset: U16,
    /// Buffers that this frame spans (receive).
    pub num_buffers: U16,
}

const _: () = assert!(HEADER_LEN == 12);

bitflags! {
    /// `flags` of [`NetHeader`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeaderFlags: u8 {
        /// The checksum at `csum_start` is still to be completed.
        const NEEDS_CSUM = 1;
        /// The device has verified the checksum.
        const DATA_VALID = 2;
        /// `csum_start` and `csum_offset` hold segment and ack counts.
        const RSC_INFO = 4;

        const _ = !0;
    }
}

/// `gso_type` of [`NetHeader`].
pub mod gso {
    /// Not a segmented frame.
    pub const NONE: u8 = 0;
    /// TCP over IPv4.
    pub const TCPV4: u8 = 1;
    /// TCP over IPv6.
    pub const TCPV6: u8 = 4;
    /// UDP, over IPv4 or IPv6.
    pub const UDP_L4: u8 = 5;
    /// With the ECN bit in the TCP header.
    pub const ECN: u8 = 0x80;
}

/// Offsets in the device configuration ("Device configuration layout").
pub mod config {
    /// MAC address, six bytes.
    pub const MAC: u64 = 0;
    /// Link status, 16 bits, [`super::LinkStatus`].
    pub const STATUS: u64 = 6;
    /// Maximum number of queue pairs, 16 bits (with MQ or RSS).
    pub const MAX_VIRTQUEUE_PAIRS: u64 = 8;
    /// Maximum MTU, 16 bits.
    pub const MTU: u64 = 10;
    /// Speed in Mbit/s, 32 bits; all ones is unknown.
    pub const SPEED: u64 = 12;
    /// Duplex, eight bits; 1 is full, 0xff unknown.
    pub const DUPLEX: u64 = 16;
    /// Bytes up to here belong to the features the card offers.
    pub const LEN: u64 = 20;
}

bitflags! {
    /// `status` of the device configuration.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LinkStatus: u16 {
        /// The link is up.
        const LINK_UP = 1;
        /// The driver should announce itself.
        const ANNOUNCE = 2;

        const _ = !0;
    }
}
