//! What an independent parser finds of a frame's checksums.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// What `etherparse` finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// Header and transport checksums are there and right, and the packet ends with the frame or
    /// before.
    Right,
    /// One of them is not: which.
    Wrong(&'static str),
    /// Not TCP or UDP by IP, a fragment, or cut off.
    Unknown,
}

/// Asks `etherparse`.
pub fn opinion(frame: &[u8]) -> Opinion {
    let Ok(packet) = SlicedPacket::from_ethernet(frame) else {
        return Opinion::Unknown;
    };
    enum Addresses {
        V4([u8; 4], [u8; 4]),
        V6([u8; 16], [u8; 16]),
    }
    let addresses = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            // Its header has no place for the reserved flag.
            if ip.header().slice()[6] & 0x80 != 0 {
                return Opinion::Unknown;
            }
            let header = ip.header().to_header();
            if header.calc_header_checksum() != header.header_checksum {
                return Opinion::Wrong("the sum of the IPv4 header");
            }
            Addresses::V4(header.source, header.destination)
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header().to_header();
            Addresses::V6(header.source, header.destination)
        }
        _ => return Opinion::Unknown,
    };
    let (found, wanted) = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let wanted = match addresses {
                Addresses::V4(s, d) => tcp.calc_checksum_ipv4(s, d),
                Addresses::V6(s, d) => tcp.calc_checksum_ipv6(s, d),
            };
            (tcp.checksum(), wanted)
        }
        Some(TransportSlice::Udp(udp)) => {
            let header = udp.to_header();
            let wanted = match addresses {
                Addresses::V4(s, d) => header.calc_checksum_ipv4_raw(s, d, udp.payload()),
                Addresses::V6(s, d) => header.calc_checksum_ipv6_raw(s, d, udp.payload()),
            };
            (header.checksum, wanted)
        }
        _ => return Opinion::Unknown,
    };
    if wanted.ok() == Some(found) {
        Opinion::Right
    } else {
        Opinion::Wrong("the sum of TCP or UDP")
    }
}
