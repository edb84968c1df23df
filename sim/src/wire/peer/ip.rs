//! IP packets as the peer takes and makes them: version 4 or 6, whole, with right sums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// EtherType of IPv4.
pub(super) const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub(super) const IPV6: u16 = 0x86dd;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

const HOP_LIMIT: u8 = 64;

/// A packet without fragmentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub source: IpAddr,
    pub target: IpAddr,
    /// What follows the IP header. Extension headers of IPv6 are not looked behind.
    pub protocol: u8,
    pub hop_limit: u8,
    pub payload: &'a [u8],
    /// The packet without what Ethernet put behind it.
    pub bytes: &'a [u8],
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is nothing that this host takes.
    Form,
    /// A checksum is wrong.
    Sum,
}

impl<'a> Packet<'a> {
    /// Reads a packet and verifies the sum of its header.
    pub fn parse(kind: u16, data: &'a [u8]) -> Result<Self, Refused> {
        match kind {
            IPV4 => Self::parse_v4(data),
            IPV6 => Self::parse_v6(data).ok_or(Refused::Form),
            _ => Err(Refused::Form),
        }
    }

    fn parse_v4(data: &'a [u8]) -> Result<Self, Refused> {
        let fixed: &[u8; 20] = data.first_chunk().ok_or(Refused::Form)?;
        let header = usize::from(fixed[0] & 0xf) * 4;
        let length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff;
        if fixed[0] >> 4 != 4 || header < fixed.len() || length < header || fragment != 0 {
            return Err(Refused::Form);
        }
        let bytes = data.get(..length).ok_or(Refused::Form)?;
        if checksum(0, &bytes[..header]) != 0 {
            return Err(Refused::Sum);
        }
        let address = |at: usize| {
            Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]).into()
        };
        Ok(Self {
            source: address(12),
            target: address(16),
            protocol: fixed[9],
            hop_limit: fixed[8],
            payload: &bytes[header..],
            bytes,
        })
    }

    fn parse_v6(data: &'a [u8]) -> Option<Self> {
        let (fixed, _) = data.split_first_chunk::<40>()?;
        if fixed[0] >> 4 != 6 {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let bytes = data.get(..40 + length)?;
        let address = |at: usize| -> Option<IpAddr> {
            Some(Ipv6Addr::from(*fixed.get(at..)?.first_chunk::<16>()?).into())
        };
        Some(Self {
            source: address(8)?,
            target: address(24)?,
            protocol: fixed[6],
            hop_limit: fixed[7],
            payload: &bytes[40..],
            bytes,
        })
    }

    /// Verifies the sum of what it carries, and that a datagram is as long as it says.
    pub fn verify(&self) -> Result<(), Refused> {
        let pseudo = match self.protocol {
            ICMP if self.target.is_ipv4() => 0,
            UDP => {
                let field = |at: usize| self.payload.get(at..at + 2).ok_or(Refused::Form);
                if field(4)? != (self.payload.len() as u16).to_be_bytes() {
                    return Err(Refused::Form);
                }
                if field(6)? == [0, 0] {
                    // No sum was made, which only IPv4 allows.
                    let allowed = self.target.is_ipv4();
                    return allowed.then_some(()).ok_or(Refused::Sum);
                }
                self.pseudo_header()
            }
            TCP | ICMPV6 => self.pseudo_header(),
            _ => return Err(Refused::Form),
        };
        if checksum(pseudo, self.payload) != 0 {
            return Err(Refused::Sum);
        }
        Ok(())
    }

    fn pseudo_header(&self) -> u32 {
        pseudo_header(
            self.source,
            self.target,
            self.protocol,
            self.payload.len() as u32,
        )
    }
}

/// What a sum has beside the bytes that follow the IP header.
pub(super) fn pseudo_header(source: IpAddr, target: IpAddr, protocol: u8, length: u32) -> u32 {
    let of = |address| match address {
        IpAddr::V4(address) => add(0, &address.octets()),
        IpAddr::V6(address) => add(0, &address.octets()),
    };
    of(source) + of(target) + u32::from(protocol) + add(0, &length.to_be_bytes())
}

/// Makes a packet; `None` if it is too long, or the addresses are of two kinds.
pub(super) fn packet(
    source: IpAddr,
    target: IpAddr,
    protocol: u8,
    hop_limit: Option<u8>,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let hop_limit = hop_limit.unwrap_or(HOP_LIMIT);
    let mut bytes = Vec::with_capacity(40 + payload.len());
    match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let length = u16::try_from(20 + payload.len()).ok()?.to_be_bytes();
            let mut head = [
                0x45, 0, length[0], length[1], 0, 0, 0, 0, hop_limit, protocol,
            ]
            .iter()
            .chain(&[0, 0])
            .copied()
            .chain(source.octets())
            .chain(target.octets())
            .collect::<Vec<u8>>();
            let sum = checksum(0, &head);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
            bytes.extend(head);
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            let length = u16::try_from(payload.len()).ok()?.to_be_bytes();
            bytes.extend([0x60, 0, 0, 0, length[0], length[1], protocol, hop_limit]);
            bytes.extend(source.octets());
            bytes.extend(target.octets());
        }
        _ => return None,
    }
    bytes.extend_from_slice(payload);
    Some(bytes)
}

/// The Internet checksum (RFC 1071) of `data`, with what was added up before; 0 if it holds.
pub(super) fn checksum(before: u32, data: &[u8]) -> u16 {
    let mut sum = add(before, data);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A packet has at most 65,575 bytes: 32 bits do not overflow.
fn add(before: u32, data: &[u8]) -> u32 {
    data.chunks(2).fold(before, |sum, pair| {
        sum + (u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
    })
}
