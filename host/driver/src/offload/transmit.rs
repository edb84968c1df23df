//! What a transmitted frame asks of the card ("Packet Transmission" of the network device, virtio
//! 1.2, 5.1.6.2).

use ferronic_spec::net::{HEADER_WINDOW, HeaderFlags, MAX_FRAME, MAX_SEGMENTED_IP, MIN_FRAME, gso};
use ferronic_spec::{Features, NetHeader};

use super::checksum::{fold, pseudo};
use super::error::OffloadError;
use super::headers::{HeaderFault, Ip, Transport, Version};

/// CWR among the flags of TCP (RFC 3168).
const CWR: u8 = 0x80;
/// Where the flags of TCP are.
const TCP_FLAGS: usize = 13;

/// How a frame is cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// TCP over IPv4; needs HOST_TSO4.
    TcpV4,
    /// TCP over IPv6; needs HOST_TSO6.
    TcpV6,
    /// UDP over either; needs HOST_USO.
    Udp,
}

impl Segmentation {
    fn feature(self) -> Features {
        match self {
            Self::TcpV4 => Features::HOST_TSO4,
            Self::TcpV6 => Features::HOST_TSO6,
            Self::Udp => Features::HOST_USO,
        }
    }

    fn gso_type(self) -> u8 {
        match self {
            Self::TcpV4 => gso::TCPV4,
            Self::TcpV6 => gso::TCPV6,
            Self::Udp => gso::UDP_L4,
        }
    }
}

/// What is asked of the card for one frame.
///
/// A request is checked against what was negotiated and against the frame when the frame is pushed
/// ([`TxQueue::push_offload`](crate::TxQueue::push_offload)); what the card would drop is an error
/// there. Frames leave in the order of pushing, segments of one frame without others between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxOffload {
    /// Nothing: the frame goes as it is, 14 to 9,216 bytes.
    #[default]
    None,
    /// The card completes one checksum of a frame of 14 to 9,216 bytes; needs CSUM.
    ///
    /// It sums from byte `start` to the end of the frame and puts the complement into the two bytes
    /// at `start + offset`, which must lie within the frame and must hold the sum of the pseudo
    /// header, not complemented ([`TxOffload::checksum`] puts it there).
    Checksum {
        /// Bytes from the start of the frame to where summing starts, usually the TCP or UDP header.
        start: u16,
        /// Bytes from there to the checksum: 16 for TCP, 6 for UDP.
        offset: u16,
    },
    /// The card cuts the payload into segments, each with a copy of the headers, lengths, IPv4
    /// identification, sequence numbers, flags and checksums set right.
    ///
    /// The IP packet may have up to 65,535 bytes. All headers must lie within the first 144 bytes of
    /// the frame: Ethernet, up to two VLAN tags, IPv4 with options or IPv6 with hop-by-hop and
    /// destination options, TCP or UDP. No fragments. Needs the feature of its `kind`.
    Segment {
        /// Protocol, which must be that of the frame's headers.
        kind: Segmentation,
        /// Payload bytes of each segment but the last, 1 or more; with the headers at most 9,216
        /// bytes. A payload that is not longer goes in one segment.
        size: u16,
        /// Must be set if the TCP header has CWR, so that only the first segment gets it; needs
        /// HOST_ECN.
        ecn: bool,
    },
}

impl TxOffload {
    /// Prepares a frame for [`TxOffload::Checksum`]: finds its TCP or UDP header and puts the sum of
    /// the pseudo header where the checksum will be.
    ///
    /// `None` if there is no such header, or it is a fragment, or bytes other than zero follow the
    /// IP packet; the frame is unchanged then, and there is nothing that the card could complete.
    pub fn checksum(frame: &mut [u8]) -> Option<Self> {
        let ip = Ip::parse(frame).ok()?;
        let end = ip.end(frame).ok()?;
        let kind = ip.kind().ok()?;
        let len = ip.covered(frame, end).ok()?.len();
        if frame[ip.transport + len..].iter().any(|byte| *byte != 0) {
            return None;
        }
        let start = u16::try_from(ip.transport).ok()?;
        put_pseudo(frame, &ip, kind, len);
        Some(Self::Checksum {
            start,
            offset: kind.sum_offset() as u16,
        })
    }

    /// Prepares a frame of `len` bytes for [`TxOffload::Segment`] with segments of `size` bytes of
    /// payload: finds its kind, and puts the sum of the pseudo header where the checksum is.
    ///
    /// `head` is the start of the frame, up to the end of its TCP or UDP header or further. The
    /// lengths in the headers may be anything.
    ///
    /// # Errors
    /// [`OffloadError::Headers`] if the headers do not lead to TCP or UDP; `head` is unchanged then.
    pub fn segment(head: &mut [u8], len: usize, size: u16) -> Result<Self, OffloadError> {
        let window = head.len().min(HEADER_WINDOW);
        let (ip, kind, end) = headers(&head[..window])?;
        let ecn = kind == Transport::Tcp && head[ip.transport + TCP_FLAGS] & CWR != 0;
        put_pseudo(head, &ip, kind, len.max(end) - ip.transport);
        Ok(Self::Segment {
            kind: segmentation(&ip, kind),
            size,
            ecn,
        })
    }

    /// The virtio header that asks for it, where `negotiated` were negotiated.
    ///
    /// `head` is the start of the frame, at least the first [`HEADER_WINDOW`] bytes if it has so many,
    /// `len` the bytes of all of it. `hdr_len` tells the bytes of all headers, a hint that spares the
    /// device a search.
    ///
    /// # Errors
    /// What the card would drop, and what the driver must not send ("Driver Requirements: Packet
    /// Transmission").
    pub fn header(
        self,
        negotiated: Features,
        head: &[u8],
        len: usize,
    ) -> Result<NetHeader, OffloadError> {
        match self {
            Self::None => Ok(NetHeader::default()),
            Self::Checksum { start, offset } => {
                need(negotiated, Features::CSUM)?;
                if usize::from(start) + usize::from(offset) + 2 > len {
                    return Err(OffloadError::ChecksumOutside { start, offset, len });
                }
                Ok(NetHeader {
                    flags: HeaderFlags::NEEDS_CSUM.bits(),
                    csum_start: start.into(),
                    csum_offset: offset.into(),
                    ..NetHeader::default()
                })
            }
            Self::Segment { kind, size, ecn } => {
                need(negotiated, kind.feature())?;
                if ecn {
                    need(negotiated, Features::HOST_ECN)?;
                }
                segment_header(kind, size, ecn, head, len)
            }
        }
    }

    /// Smallest and largest frame that may ask for it. For segmentation the IP packet is what is
    /// limited, see [`OffloadError::IpLength`].
    pub(crate) fn lengths(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Self::None | Self::Checksum { .. } => MIN_FRAME..=MAX_FRAME,
            Self::Segment { .. } => MIN_FRAME..=usize::MAX,
        }
    }
}

fn need(negotiated: Features, needed: Features) -> Result<(), OffloadError> {
    match negotiated.contains(needed) {
        true => Ok(()),
        false => Err(OffloadError::NotNegotiated(needed)),
    }
}

/// IP and transport headers, and where they end.
fn headers(head: &[u8]) -> Result<(Ip, Transport, usize), OffloadError> {
    let find = || -> Result<_, HeaderFault> {
        let ip = Ip::parse(head)?;
        Ok((ip, ip.kind()?, ip.headers_end(head)?))
    };
    find().map_err(OffloadError::Headers)
}

fn segmentation(ip: &Ip, kind: Transport) -> Segmentation {
    match (kind, ip.version) {
        (Transport::Tcp, Version::V4) => Segmentation::TcpV4,
        (Transport::Tcp, Version::V6) => Segmentation::TcpV6,
        (Transport::Udp, _) => Segmentation::Udp,
    }
}

/// Puts the sum of the pseudo header where the checksum is.
fn put_pseudo(bytes: &mut [u8], ip: &Ip, kind: Transport, len: usize) {
    let sum = fold(pseudo(ip.addresses(bytes), kind.number(), len));
    let at = ip.transport + kind.sum_offset();
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn segment_header(
    kind: Segmentation,
    size: u16,
    ecn: bool,
    head: &[u8],
    len: usize,
) -> Result<NetHeader, OffloadError> {
    if size == 0 {
        return Err(OffloadError::SegmentSize);
    }
    let head = &head[..head.len().min(HEADER_WINDOW).min(len)];
    let (ip, transport, end) = headers(head)?;
    let found = segmentation(&ip, transport);
    if found != kind {
        let found = match found {
            Segmentation::TcpV4 => "TCP over IPv4",
            Segmentation::TcpV6 => "TCP over IPv6",
            Segmentation::Udp => "UDP",
        };
        return Err(OffloadError::Kind { asked: kind, found });
    }
    match transport {
        Transport::Udp if ecn => return Err(OffloadError::EcnOfUdp),
        // "Driver Requirements: Packet Transmission": no CWR unless the card knows of it.
        Transport::Tcp if !ecn && head[ip.transport + TCP_FLAGS] & CWR != 0 => {
            return Err(OffloadError::CwrWithoutEcn);
        }
        _ => {}
    }
    let packet = len - ip.at;
    if packet > MAX_SEGMENTED_IP {
        return Err(OffloadError::IpLength(packet));
    }
    let first = end + usize::from(size).min(len - end);
    if first > MAX_FRAME {
        return Err(OffloadError::SegmentLength(first));
    }
    Ok(NetHeader {
        flags: HeaderFlags::NEEDS_CSUM.bits(),
        gso_type: kind.gso_type() | if ecn { gso::ECN } else { 0 },
        hdr_len: (end as u16).into(),
        gso_size: size.into(),
        csum_start: (ip.transport as u16).into(),
        csum_offset: (transport.sum_offset() as u16).into(),
        ..NetHeader::default()
    })
}
