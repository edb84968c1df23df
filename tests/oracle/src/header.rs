//! The header in front of a transmitted frame, and which offloads were negotiated.

/// Flag of [`Header`]: the checksum at `csum_start` is to be completed.
pub const NEEDS_CSUM: u8 = 1;
/// Flag of [`Header`] on receive: the checksum was verified.
pub const DATA_VALID: u8 = 2;

/// Values of `gso_type`.
pub mod gso {
    /// One frame.
    pub const NONE: u8 = 0;
    /// TCP over IPv4.
    pub const TCPV4: u8 = 1;
    /// UDP as fragments of IP: offered by nobody.
    pub const UDP: u8 = 3;
    /// TCP over IPv6.
    pub const TCPV6: u8 = 4;
    /// UDP as datagrams.
    pub const UDP_L4: u8 = 5;
    /// Added to the TCP types: the frame has congestion marks (RFC 3168).
    pub const ECN: u8 = 0x80;
}

/// `struct virtio_net_hdr` with `num_buffers` (virtio 1.2, "Device Operation" of the network device).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// [`NEEDS_CSUM`] and bits that mean nothing on transmit.
    pub flags: u8,
    /// One of [`gso`].
    pub gso_type: u8,
    /// Bytes of all headers: a hint that nobody may trust.
    pub hdr_len: u16,
    /// Bytes of payload in each segment but the last.
    pub gso_size: u16,
    /// Where the bytes begin that are summed.
    pub csum_start: u16,
    /// Where the checksum goes, from there.
    pub csum_offset: u16,
    /// Means nothing on transmit.
    pub num_buffers: u16,
}

impl Header {
    /// Its length in bytes.
    pub const LEN: usize = 12;

    /// As it lies in memory.
    pub fn bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let halves = [
            self.hdr_len,
            self.gso_size,
            self.csum_start,
            self.csum_offset,
            self.num_buffers,
        ];
        for (to, half) in bytes[2..].chunks_mut(2).zip(halves) {
            to.copy_from_slice(&half.to_le_bytes());
        }
        bytes
    }

    /// From the first bytes of a buffer, if there are enough.
    pub fn read(buffer: &[u8]) -> Option<Self> {
        let bytes = buffer.get(..Self::LEN)?;
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Some(Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: half(2),
            gso_size: half(4),
            csum_start: half(6),
            csum_offset: half(8),
            num_buffers: half(10),
        })
    }
}

/// The offloads of transmission that were negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// VIRTIO_NET_F_CSUM.
    pub csum: bool,
    /// VIRTIO_NET_F_HOST_TSO4.
    pub tso4: bool,
    /// VIRTIO_NET_F_HOST_TSO6.
    pub tso6: bool,
    /// VIRTIO_NET_F_HOST_ECN.
    pub ecn: bool,
    /// VIRTIO_NET_F_HOST_USO.
    pub uso: bool,
}

impl Offloads {
    /// All of them.
    pub const ALL: Self = Self {
        csum: true,
        tso4: true,
        tso6: true,
        ecn: true,
        uso: true,
    };

    /// Their feature bits.
    pub const fn bits(self) -> u64 {
        (self.csum as u64)
            | (self.tso4 as u64) << 11
            | (self.tso6 as u64) << 12
            | (self.ecn as u64) << 13
            | (self.uso as u64) << 56
    }

    /// Whether anything is cut into segments.
    pub const fn segments(self) -> bool {
        self.tso4 || self.tso6 || self.uso
    }

    /// Whether a `gso_type` other than [`gso::NONE`] may be asked for.
    pub const fn allows(self, gso_type: u8) -> bool {
        let ecn = gso_type & gso::ECN != 0;
        match gso_type & !gso::ECN {
            gso::TCPV4 => self.tso4 && (self.ecn || !ecn),
            gso::TCPV6 => self.tso6 && (self.ecn || !ecn),
            gso::UDP_L4 => self.uso && !ecn,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lies_in_memory_as_the_specification_has_it() {
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type: gso::TCPV6 | gso::ECN,
            hdr_len: 0x0102,
            gso_size: 1440,
            csum_start: 0x36,
            csum_offset: 16,
            num_buffers: 0xabcd,
        };
        let bytes = [1, 0x84, 2, 1, 0xa0, 5, 0x36, 0, 16, 0, 0xcd, 0xab];
        assert_eq!(header.bytes(), bytes);
        assert_eq!(Header::read(&bytes), Some(header));
        assert_eq!(Header::read(&bytes[..11]), None);
    }

    #[test]
    fn types_need_their_feature() {
        let none = Offloads::default();
        for gso_type in 0..=255 {
            assert!(!none.allows(gso_type));
        }
        let allowed: Vec<u8> = (0..=255).filter(|t| Offloads::ALL.allows(*t)).collect();
        assert_eq!(allowed, [1, 4, 5, 0x81, 0x84]);
        let plain = Offloads {
            ecn: false,
            ..Offloads::ALL
        };
        assert!(plain.allows(gso::TCPV4) && !plain.allows(gso::TCPV4 | gso::ECN));
        assert_eq!(Offloads::ALL.bits(), 1 | 7 << 11 | 1 << 56);
    }
}
