//! TCP segments, built field by field: the material of vectors and random streams.

use crate::sum::{fold, sum};

/// Flags of [`Segment::flags`].
pub mod flag {
    /// No more data follows.
    pub const FIN: u16 = 0x001;
    /// The connection begins.
    pub const SYN: u16 = 0x002;
    /// The connection is broken off.
    pub const RST: u16 = 0x004;
    /// The receiver's buffer is to be emptied.
    pub const PSH: u16 = 0x008;
    /// The acknowledgement number counts.
    pub const ACK: u16 = 0x010;
    /// The urgent pointer counts.
    pub const URG: u16 = 0x020;
    /// Congestion was met (RFC 3168).
    pub const ECE: u16 = 0x040;
    /// Congestion was answered (RFC 3168).
    pub const CWR: u16 = 0x080;
    /// The ninth flag, of accurate congestion notification.
    pub const AE: u16 = 0x100;
}

/// A segment with all its headers. Lengths and sums are right when it becomes
/// [`bytes`](Self::bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Destination and source.
    pub macs: [u8; 12],
    /// VLAN tags, outer first: type and TCI.
    pub tags: Vec<[u8; 4]>,
    /// IPv6.
    pub v6: bool,
    /// Last byte of the source's address and of the destination's.
    pub hosts: [u8; 2],
    /// Source and destination.
    pub ports: [u16; 2],
    /// Type of service, or traffic class.
    pub class: u8,
    /// IPv6: flow label.
    pub label: u32,
    /// IPv4: identification.
    pub id: u16,
    /// IPv4: flags and offset of the fragment.
    pub fragment: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// IPv4: options, a multiple of 4 bytes.
    pub ip_options: Vec<u8>,
    /// IPv6: kind of an extension header, and its bytes behind the first, which is filled in.
    pub extension: Option<(u8, Vec<u8>)>,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The twelve bits behind the data offset: see [`flag`].
    pub flags: u16,
    /// Window.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// TCP options, a multiple of 4 bytes.
    pub options: Vec<u8>,
    /// Payload.
    pub payload: Vec<u8>,
}

impl Segment {
    /// A segment of a bulk transfer that carries `length` bytes from sequence number `seq` on.
    pub fn v4(seq: u32, length: usize) -> Self {
        Self {
            macs: [0x52, 0x54, 0, 0x12, 0x34, 0x56, 2, 0, 0, 0, 0, 1],
            tags: Vec::new(),
            v6: false,
            hosts: [1, 2],
            ports: [40_000, 5001],
            class: 0,
            label: 0,
            id: 8,
            fragment: 0x4000,
            ttl: 64,
            ip_options: Vec::new(),
            extension: None,
            seq,
            ack: 1,
            flags: flag::ACK,
            window: 1000,
            urgent: 0,
            options: Vec::new(),
            payload: payload(seq, length),
        }
    }

    /// The same by IPv6.
    pub fn v6(seq: u32, length: usize) -> Self {
        Self {
            v6: true,
            ..Self::v4(seq, length)
        }
    }

    /// The segment that continues this one with `length` bytes.
    pub fn next(&self, length: usize) -> Self {
        let seq = self.seq.wrapping_add(self.payload.len() as u32);
        Self {
            seq,
            id: self.id.wrapping_add(1),
            payload: payload(seq, length),
            ..self.clone()
        }
    }

    /// Other flags.
    pub fn flags(mut self, flags: u16) -> Self {
        self.flags = flags;
        self
    }

    /// NOP, NOP and time stamps (RFC 7323, appendix A).
    pub fn stamps(mut self, value: u32, echo: u32) -> Self {
        self.options = [
            &[1, 1, 8, 10][..],
            &value.to_be_bytes(),
            &echo.to_be_bytes(),
        ]
        .concat();
        self
    }

    /// Offset of the IP header.
    pub fn ip(&self) -> usize {
        14 + 4 * self.tags.len()
    }

    /// Offset of the TCP header.
    pub fn tcp(&self) -> usize {
        let extension = self
            .extension
            .as_ref()
            .map_or(0, |(_, bytes)| 1 + bytes.len());
        self.ip()
            + if self.v6 {
                40 + extension
            } else {
                20 + self.ip_options.len()
            }
    }

    /// The frame.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.macs.to_vec();
        bytes.extend(self.tags.iter().flatten());
        let tcp = 20 + self.options.len() + self.payload.len();
        let addresses = self.addresses();
        if self.v6 {
            let extension = self.extension.as_ref().map_or(0, |(_, b)| 1 + b.len());
            let first = 6 << 28 | u32::from(self.class) << 20 | self.label;
            bytes.extend([0x86, 0xdd]);
            bytes.extend(first.to_be_bytes());
            bytes.extend(((extension + tcp) as u16).to_be_bytes());
            bytes.extend([
                self.extension.as_ref().map_or(6, |(kind, _)| *kind),
                self.ttl,
            ]);
            bytes.extend(&addresses);
            if let Some((_, rest)) = &self.extension {
                bytes.push(6);
                bytes.extend(rest);
            }
        } else {
            let at = bytes.len() + 2;
            let header = 20 + self.ip_options.len();
            bytes.extend([0x08, 0x00, 0x40 + (header / 4) as u8, self.class]);
            for half in [(header + tcp) as u16, self.id, self.fragment] {
                bytes.extend(half.to_be_bytes());
            }
            bytes.extend([self.ttl, 6, 0, 0]);
            bytes.extend(&addresses);
            bytes.extend(&self.ip_options);
            let check = !fold(sum(&bytes[at..]));
            bytes[at + 10..at + 12].copy_from_slice(&check.to_be_bytes());
        }
        let at = bytes.len();
        for half in self.ports {
            bytes.extend(half.to_be_bytes());
        }
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        let words = (20 + self.options.len()) as u16 / 4;
        for half in [words << 12 | self.flags, self.window, 0, self.urgent] {
            bytes.extend(half.to_be_bytes());
        }
        bytes.extend(&self.options);
        bytes.extend(&self.payload);
        let check = !fold(sum(&addresses) + 6 + tcp as u64 + sum(&bytes[at..]));
        bytes[at + 16..at + 18].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    fn addresses(&self) -> Vec<u8> {
        let prefix: &[u8] = if self.v6 {
            &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        } else {
            &[192, 0, 2]
        };
        let hosts = self.hosts.iter();
        hosts.flat_map(|host| [prefix, &[*host]].concat()).collect()
    }
}

/// Bytes of a stream, each by its place in it, so that none can stand at another's place unseen.
fn payload(seq: u32, length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (seq.wrapping_add(i).wrapping_mul(0x9e37_79b1) >> 24) as u8)
        .collect()
}

/// Makes the TCP sum of a frame 0 by its payload and then writes it as 0xffff, which verifies too.
/// The segment has at least two bytes of payload.
pub fn with_sum_of_ones(mut segment: Segment) -> Vec<u8> {
    segment.payload[..2].fill(0);
    let at = segment.tcp() + 16;
    let bytes = segment.bytes();
    segment.payload[..2].copy_from_slice(&bytes[at..at + 2]);
    let mut bytes = segment.bytes();
    debug_assert_eq!(bytes[at..at + 2], [0, 0]);
    bytes[at..at + 2].fill(0xff);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::verdict;
    use crate::opinion::{Opinion, opinion};

    #[test]
    fn segments_are_right_to_an_independent_parser() {
        let mut kinds = vec![Segment::v4(7, 100), Segment::v6(7, 101)];
        kinds.push(Segment::v4(7, 3).stamps(1, 2));
        kinds.push(Segment {
            ip_options: vec![1; 8],
            tags: vec![[0x81, 0, 0, 10]],
            ..Segment::v4(9, 0)
        });
        kinds.push(Segment {
            extension: Some((60, vec![0, 1, 4, 0, 0, 0, 0])),
            ..Segment::v6(9, 50)
        });
        for segment in kinds {
            let bytes = segment.bytes();
            assert_eq!(opinion(&bytes), Opinion::Right, "{segment:?}");
            assert!(verdict(&bytes).sum_ok);
        }
    }

    #[test]
    fn sum_of_ones_verifies_and_is_not_what_a_sender_writes() {
        // The payload may begin at an odd place of the sum only if headers did, and they do not.
        for segment in [Segment::v4(7, 100), Segment::v6(7, 101)] {
            let bytes = with_sum_of_ones(segment);
            assert!(verdict(&bytes).sum_ok);
            assert!(matches!(opinion(&bytes), Opinion::Wrong(_)));
        }
    }
}
