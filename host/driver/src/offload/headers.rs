//! Ethernet, VLAN, IPv4, IPv6, TCP and UDP headers, as far as offloads need them.
//!
//! Nothing here believes a length before it has compared it with the bytes that are there.

use thiserror::Error;

/// EtherTypes.
mod ether {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const TAGS: [u16; 2] = [0x8100, 0x88a8];
}

/// Protocol numbers.
pub(super) mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
    pub const MOBILITY: u8 = 135;
    pub const HIP: u8 = 139;
    pub const SHIM6: u8 = 140;
}

/// VLAN tags that are looked through.
const MAX_TAGS: usize = 2;
/// Where the EtherType is.
const ETHER_TYPE: usize = 12;
const TAG_LEN: usize = 4;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
const UDP_LEN: usize = 8;

/// Why headers do not lead to a TCP or UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderFault {
    /// Another EtherType, perhaps behind more VLAN tags than are looked through.
    #[error("it is neither IPv4 nor IPv6 (looked for behind at most {MAX_TAGS} VLAN tags)")]
    NotIp,
    /// The bytes end before the headers do.
    #[error("its headers do not end within the frame, or within its first 144 bytes")]
    Truncated,
    /// The version is not that of the EtherType.
    #[error("its IP version is not that of its EtherType")]
    Version,
    /// A length that no header of its kind can have.
    #[error("a length in its headers is less than the header")]
    HeaderLength,
    /// A length that says more than there is.
    #[error("a length in its headers is more than the frame")]
    Length,
    /// Part of a packet.
    #[error("it is a fragment")]
    Fragment,
    /// An IPv6 extension header that is not looked behind.
    #[error("IPv6 extension header {0} is not looked behind")]
    Extension(u8),
    /// Neither TCP nor UDP.
    #[error("it is neither TCP nor UDP, but protocol {0}")]
    Protocol(u8),
}

/// IP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Tcp => protocol::TCP,
            Self::Udp => protocol::UDP,
        }
    }

    /// Where the checksum is in the header.
    pub(super) fn sum_offset(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// An IP header, and the extension headers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ip {
    pub version: Version,
    /// Offset of the header.
    pub at: usize,
    /// Offset of what is behind IP options or extension headers.
    pub transport: usize,
    /// Protocol of what is there.
    pub protocol: u8,
}

fn half(bytes: &[u8], at: usize) -> Result<u16, HeaderFault> {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(HeaderFault::Truncated),
    }
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, HeaderFault> {
    bytes.get(at).copied().ok_or(HeaderFault::Truncated)
}

impl Ip {
    /// Walks from the Ethernet header to what is behind the IP headers.
    ///
    /// All offsets are at most `bytes.len()`. Fragments and extension headers that hide what is
    /// behind them are faults; the lengths of the packet are not looked at.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeaderFault> {
        let mut at = ETHER_TYPE;
        let mut kind = half(bytes, at)?;
        for _ in 0..MAX_TAGS {
            if ether::TAGS.contains(&kind) {
                at += TAG_LEN;
                kind = half(bytes, at)?;
            }
        }
        at += 2;
        match kind {
            ether::IPV4 => Self::v4(bytes, at),
            ether::IPV6 => Self::v6(bytes, at),
            _ => Err(HeaderFault::NotIp),
        }
    }

    fn v4(bytes: &[u8], at: usize) -> Result<Self, HeaderFault> {
        let first = byte(bytes, at)?;
        if first >> 4 != 4 {
            return Err(HeaderFault::Version);
        }
        let len = usize::from(first & 0xf) * 4;
        if len < IPV4_LEN {
            return Err(HeaderFault::HeaderLength);
        }
        if bytes.len() < at + len {
            return Err(HeaderFault::Truncated);
        }
        // More fragments, or an offset. "Don't fragment" is no fragment.
        if half(bytes, at + 6)? & 0x3fff != 0 {
            return Err(HeaderFault::Fragment);
        }
        Ok(Self {
            version: Version::V4,
            at,
            transport: at + len,
            protocol: byte(bytes, at + 9)?,
        })
    }

    fn v6(bytes: &[u8], at: usize) -> Result<Self, HeaderFault> {
        if byte(bytes, at)? >> 4 != 6 {
            return Err(HeaderFault::Version);
        }
        let mut transport = at + IPV6_LEN;
        if bytes.len() < transport {
            return Err(HeaderFault::Truncated);
        }
        let mut next = byte(bytes, at + 6)?;
        loop {
            match next {
                // Only right behind the IPv6 header (RFC 8200 section 4).
                protocol::HOP_BY_HOP if transport != at + IPV6_LEN => {
                    return Err(HeaderFault::Extension(next));
                }
                protocol::HOP_BY_HOP | protocol::DESTINATION => {
                    next = byte(bytes, transport)?;
                    transport += 8 + 8 * usize::from(byte(bytes, transport + 1)?);
                    if bytes.len() < transport {
                        return Err(HeaderFault::Truncated);
                    }
                }
                protocol::FRAGMENT => return Err(HeaderFault::Fragment),
                protocol::ROUTING
                | protocol::AUTHENTICATION
                | protocol::MOBILITY
                | protocol::HIP
                | protocol::SHIM6 => return Err(HeaderFault::Extension(next)),
                _ => break,
            }
        }
        Ok(Self {
            version: Version::V6,
            at,
            transport,
            protocol: next,
        })
    }

    /// TCP or UDP, if it is one of them.
    pub(super) fn kind(&self) -> Result<Transport, HeaderFault> {
        match self.protocol {
            protocol::TCP => Ok(Transport::Tcp),
            protocol::UDP => Ok(Transport::Udp),
            other => Err(HeaderFault::Protocol(other)),
        }
    }

    /// Both addresses, as they stand in the header.
    pub(super) fn addresses<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.version {
            Version::V4 => &bytes[self.at + 12..self.at + 20],
            Version::V6 => &bytes[self.at + 8..self.at + 40],
        }
    }

    /// Where the packet ends by its own length, which may be anything.
    pub(super) fn stated_end(&self, bytes: &[u8]) -> Result<usize, HeaderFault> {
        Ok(match self.version {
            Version::V4 => self.at + usize::from(half(bytes, self.at + 2)?),
            Version::V6 => self.at + IPV6_LEN + usize::from(half(bytes, self.at + 4)?),
        })
    }

    /// Where the packet ends by its own length, in the whole frame.
    pub(super) fn end(&self, frame: &[u8]) -> Result<usize, HeaderFault> {
        let end = self.stated_end(frame)?;
        if end > frame.len() {
            return Err(HeaderFault::Length);
        }
        if end < self.transport {
            return Err(HeaderFault::HeaderLength);
        }
        Ok(end)
    }

    /// Where the TCP or UDP header ends, which is within `bytes`.
    pub(super) fn headers_end(&self, bytes: &[u8]) -> Result<usize, HeaderFault> {
        let len = match self.kind()? {
            Transport::Udp => UDP_LEN,
            Transport::Tcp => {
                let len = usize::from(byte(bytes, self.transport + 12)? >> 4) * 4;
                if len < TCP_LEN {
                    return Err(HeaderFault::HeaderLength);
                }
                len
            }
        };
        let end = self.transport + len;
        if bytes.len() < end {
            return Err(HeaderFault::Truncated);
        }
        Ok(end)
    }

    /// The bytes that the transport's checksum covers, in a frame whose packet ends at `end`.
    pub(super) fn covered<'a>(&self, frame: &'a [u8], end: usize) -> Result<&'a [u8], HeaderFault> {
        let packet = &frame[..end];
        self.headers_end(packet)?;
        let bytes = &packet[self.transport..];
        if self.kind()? == Transport::Tcp {
            return Ok(bytes);
        }
        let len = usize::from(half(bytes, 4)?);
        if len < UDP_LEN {
            return Err(HeaderFault::HeaderLength);
        }
        bytes.get(..len).ok_or(HeaderFault::Length)
    }
}
