//! Units that the card merged of several TCP segments: what their header says, compared with them.
//!
//! "Processing of Incoming Packets" of the network device (virtio 1.2, 5.1.6.4.2). `hdr_len` is a
//! hint that nobody looks at.

use ferronic_spec::net::{HEADER_WINDOW, HeaderFlags, gso};
use ferronic_spec::{Features, NetHeader};
use thiserror::Error;

use super::headers::{HeaderFault, Ip, Transport, Version};
use super::receive::header_is_right;

/// Why a frame is not the unit that its virtio header says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnitFault {
    /// A kind of unit that no card has, or that was not negotiated.
    #[error("gso_type {0:#04x} was not negotiated")]
    Type(u8),
    /// Its checksum must be partial.
    #[error("it is a unit, but NEEDS_CSUM is not set (flags {0:#04x})")]
    NoPartialSum(u8),
    /// Segments without payload.
    #[error("gso_size of a unit is 0")]
    SegmentSize,
    /// The headers are none that can be merged.
    #[error("it is no unit: {0}")]
    Headers(HeaderFault),
    /// The headers are of another protocol or IP version.
    #[error("its headers are not those of gso_type {0:#04x}")]
    Kind(u8),
    /// The IPv4 header's checksum is wrong.
    #[error("the checksum of its IPv4 header is wrong")]
    Sum,
    /// The checksum is not that of its TCP header.
    #[error("its checksum is said to be at {start} + {offset}, its TCP header is at {tcp}")]
    Place {
        /// `csum_start`.
        start: u16,
        /// `csum_offset`.
        offset: u16,
        /// Where the TCP header is.
        tcp: usize,
    },
    /// The packet and the frame have different lengths, or there is no payload.
    #[error("its packet ends at {end}, its headers at {headers}, the frame at {len}")]
    Length {
        /// End of the packet, by its IP header.
        end: usize,
        /// End of the TCP header.
        headers: usize,
        /// Bytes of the frame.
        len: usize,
    },
}

/// Compares the header of a unit (`gso_type` is not NONE) with the frame.
///
/// `head` is the start of the frame, at least its first [`HEADER_WINDOW`] bytes if it has so many,
/// `len` the bytes of all of it. Returns the bytes of all headers. Takes any bytes and never panics.
///
/// # Errors
/// The first thing that is wrong. What passes can be cut into segments by anybody who believes it.
pub fn check_unit(
    header: &NetHeader,
    negotiated: Features,
    head: &[u8],
    len: usize,
) -> Result<u16, UnitFault> {
    let kind = header.gso_type;
    let (feature, version) = match kind {
        gso::TCPV4 => (Features::GUEST_TSO4, Version::V4),
        gso::TCPV6 => (Features::GUEST_TSO6, Version::V6),
        // With the ECN bit, too: GUEST_ECN is never negotiated.
        _ => return Err(UnitFault::Type(kind)),
    };
    if !negotiated.contains(feature) {
        return Err(UnitFault::Type(kind));
    }
    let flags = HeaderFlags::from_bits_retain(header.flags);
    if !flags.contains(HeaderFlags::NEEDS_CSUM) || flags.contains(HeaderFlags::RSC_INFO) {
        return Err(UnitFault::NoPartialSum(header.flags));
    }
    if header.gso_size == 0 {
        return Err(UnitFault::SegmentSize);
    }
    let head = &head[..head.len().min(len).min(HEADER_WINDOW)];
    let ip = Ip::parse(head).map_err(UnitFault::Headers)?;
    if ip.version != version || ip.kind() != Ok(Transport::Tcp) {
        return Err(UnitFault::Kind(kind));
    }
    let headers = ip.headers_end(head).map_err(UnitFault::Headers)?;
    let (start, offset) = (header.csum_start.get(), header.csum_offset.get());
    if usize::from(start) != ip.transport || usize::from(offset) != Transport::Tcp.sum_offset() {
        return Err(UnitFault::Place {
            start,
            offset,
            tcp: ip.transport,
        });
    }
    let end = ip.stated_end(head).map_err(UnitFault::Headers)?;
    if end != len || headers >= len {
        return Err(UnitFault::Length { end, headers, len });
    }
    if !header_is_right(&ip, head) {
        return Err(UnitFault::Sum);
    }
    // Within `head`.
    Ok(headers as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit of `payload` bytes behind headers of 54 or 74 bytes.
    fn unit(v6: bool, payload: usize) -> (NetHeader, Vec<u8>) {
        let (at, tcp) = if v6 { (14, 54) } else { (14, 34) };
        let len = tcp + 20 + payload;
        let mut frame = vec![0; len];
        let packet = (len - at) as u16;
        if v6 {
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
            frame[at] = 0x60;
            frame[at + 4..at + 6].copy_from_slice(&(packet - 40).to_be_bytes());
            frame[at + 6] = 6;
        } else {
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[at] = 0x45;
            frame[at + 2..at + 4].copy_from_slice(&packet.to_be_bytes());
            frame[at + 9] = 6;
            let sum = super::super::checksum::sum(&frame[at..at + 20]);
            let sum = !super::super::checksum::fold(sum);
            frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
        }
        frame[tcp + 12] = 0x50;
        let header = NetHeader {
            flags: HeaderFlags::NEEDS_CSUM.bits(),
            gso_type: if v6 { gso::TCPV6 } else { gso::TCPV4 },
            hdr_len: 9.into(), // a lie that nobody sees
            gso_size: 1448.into(),
            csum_start: (tcp as u16).into(),
            csum_offset: 16.into(),
            num_buffers: 1.into(),
        };
        (header, frame)
    }

    #[test]
    fn units_of_either_ip_version_pass_up_to_the_longest_packet() {
        for v6 in [false, true] {
            for payload in [1, 1448, 2896, 65_535 - 60] {
                let (header, frame) = unit(v6, payload);
                let head = &frame[..frame.len().min(144)];
                let checked = check_unit(&header, Features::LRO, head, frame.len());
                assert_eq!(checked, Ok(if v6 { 74 } else { 54 }), "{payload}");
            }
        }
    }

    #[test]
    fn each_lie_is_named() {
        use UnitFault as F;
        type Change = fn(&mut NetHeader, &mut Vec<u8>);
        let cases: [(Change, F); 15] = [
            (|h, _| h.gso_type = 3, F::Type(3)),
            (|h, _| h.gso_type = 5, F::Type(5)),
            (|h, _| h.gso_type = 0x81, F::Type(0x81)),
            (|h, _| h.gso_type = 4, F::Kind(4)),
            (|h, _| h.flags = 2, F::NoPartialSum(2)),
            (|h, _| h.flags = 5, F::NoPartialSum(5)),
            (|h, _| h.gso_size = 0.into(), F::SegmentSize),
            (|_, f| f[23] = 17, F::Kind(1)),
            (|_, f| f[13] = 6, F::Headers(HeaderFault::NotIp)),
            (|_, f| f[20] = 0x20, F::Headers(HeaderFault::Fragment)),
            (|_, f| f[46] = 0x40, F::Headers(HeaderFault::HeaderLength)),
            (
                |h, _| h.csum_start = 33.into(),
                F::Place {
                    start: 33,
                    offset: 16,
                    tcp: 34,
                },
            ),
            (
                |h, _| h.csum_offset = 0xffff.into(),
                F::Place {
                    start: 34,
                    offset: 0xffff,
                    tcp: 34,
                },
            ),
            (
                |_, f| f.push(0),
                F::Length {
                    end: 2950,
                    headers: 54,
                    len: 2951,
                },
            ),
            (|_, f| f[24] ^= 1, F::Sum),
        ];
        for (change, fault) in cases {
            let (mut header, mut frame) = unit(false, 2896);
            change(&mut header, &mut frame);
            let len = frame.len();
            let checked = check_unit(&header, Features::LRO, &frame[..144], len);
            assert_eq!(checked, Err(fault));
        }
        let (header, frame) = unit(true, 100);
        let checked = check_unit(&header, Features::GUEST_TSO4, &frame, frame.len());
        assert_eq!(checked, Err(F::Type(4)), "not negotiated");
        // No payload; a head that ends within the headers.
        let (header, frame) = unit(false, 0);
        let checked = check_unit(&header, Features::LRO, &frame, frame.len());
        assert!(matches!(checked, Err(F::Length { .. })), "{checked:?}");
        for cut in 0..54 {
            assert!(check_unit(&header, Features::LRO, &frame[..cut], cut).is_err());
        }
    }
}
