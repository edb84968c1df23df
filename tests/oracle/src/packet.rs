//! Where the headers of a frame are.

/// All headers lie in the first bytes of a frame, up to here: 14 of Ethernet, two VLAN tags, and 60
/// each of IPv4 and TCP make 142.
pub const WINDOW: usize = 144;

/// What IP carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RFC 793.
    Tcp,
    /// RFC 768.
    Udp,
}

impl Protocol {
    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// Offset of the checksum in its header.
    pub const fn sum_at(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// The headers of a frame, by the offsets at which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The IP header.
    pub ip: usize,
    /// It is of version 6.
    pub v6: bool,
    /// What the packet is.
    pub protocol: Protocol,
    /// The TCP or UDP header.
    pub transport: usize,
    /// What is behind it.
    pub payload: usize,
}

const TAGS: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const HOP_BY_HOP: u8 = 0;
const DESTINATION: u8 = 60;
const MAX_TAGS: usize = 2;

/// The headers of a frame that can be cut into segments: Ethernet with up to two VLAN tags, IPv4
/// that is no fragment or IPv6 with hop-by-hop and destination options, TCP or UDP; all whole, and
/// inside the [`WINDOW`]. Lengths of packets are not looked at: those of headers are.
pub fn parse(frame: &[u8]) -> Option<Packet> {
    let window = &frame[..frame.len().min(WINDOW)];
    let byte = |at: usize| window.get(at).copied();
    let half = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));

    let mut at = 12;
    let mut tags = 0;
    while tags < MAX_TAGS && TAGS.contains(&half(at)?) {
        at += 4;
        tags += 1;
    }
    let v6 = match half(at)? {
        IPV4 => false,
        IPV6 => true,
        _ => return None,
    };
    let ip = at + 2;

    let (mut transport, mut next);
    if v6 {
        if byte(ip)? >> 4 != 6 {
            return None;
        }
        (transport, next) = (ip + 40, byte(ip + 6)?);
        // RFC 8200, section 4: length in units of 8 bytes, the first not counted.
        while next == HOP_BY_HOP || next == DESTINATION {
            let length = 8 + 8 * usize::from(byte(transport + 1)?);
            (transport, next) = (transport + length, byte(transport)?);
        }
    } else {
        let words = usize::from(byte(ip)? & 15);
        let fragment = half(ip + 6)? & 0x3fff; // more fragments, offset
        if byte(ip)? >> 4 != 4 || words < 5 || fragment != 0 {
            return None;
        }
        (transport, next) = (ip + 4 * words, byte(ip + 9)?);
    }

    let (protocol, length) = match next {
        6 => {
            let words = usize::from(byte(transport + 12)? >> 4);
            if words < 5 {
                return None;
            }
            (Protocol::Tcp, 4 * words)
        }
        17 => (Protocol::Udp, 8),
        _ => return None,
    };
    let payload = transport + length;
    (payload <= window.len()).then_some(Packet {
        ip,
        v6,
        protocol,
        transport,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, tags, and then `rest`.
    fn frame(tags: &[u16], rest: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 5]);
        }
        frame.extend(rest);
        frame
    }

    fn ip4(words: u8, protocol: u8, rest: usize) -> Vec<u8> {
        let mut ip = vec![0x08, 0x00, 0x40 | words];
        ip.extend([0; 5]);
        ip.extend([0x40, 0, 64, protocol]);
        ip.resize(2 + 4 * usize::from(words), 0);
        ip.resize(ip.len() + rest, 0x50);
        ip
    }

    #[test]
    fn ipv4_headers_are_found_behind_tags_and_options() {
        for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100]] {
            for words in 5..=15 {
                let at = 14 + 4 * tags.len();
                let end = at + 4 * usize::from(words);
                let want = Packet {
                    ip: at,
                    v6: false,
                    protocol: Protocol::Tcp,
                    transport: end,
                    payload: end + 20,
                };
                let tcp = frame(tags, &ip4(words, 6, 20));
                assert_eq!(parse(&tcp), Some(want));
                assert_eq!(parse(&tcp[..tcp.len() - 1]), None);
                let udp = frame(tags, &ip4(words, 17, 8));
                let want = Packet {
                    protocol: Protocol::Udp,
                    payload: end + 8,
                    ..want
                };
                assert_eq!(parse(&udp), Some(want));
            }
        }
        assert_eq!(parse(&frame(&[0x8100; 3], &ip4(5, 6, 20))), None);
        assert_eq!(parse(&frame(&[], &ip4(4, 6, 40))), None);
        assert_eq!(parse(&frame(&[], &ip4(5, 1, 40))), None);
    }

    #[test]
    fn fragments_are_not_taken_and_dont_fragment_is_none() {
        for (field, taken) in [
            (0x0000_u16, true),
            (0x4000, true),
            (0x2000, false),
            (0x0001, false),
            (0x1fff, false),
        ] {
            let mut udp = frame(&[], &ip4(5, 17, 8));
            udp[20..22].copy_from_slice(&field.to_be_bytes());
            assert_eq!(parse(&udp).is_some(), taken, "{field:#x}");
        }
    }

    #[test]
    fn ipv6_headers_are_found_behind_options_and_nothing_else() {
        let ip6 = |first: u8, rest: &[u8]| {
            let mut ip = vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, first, 64];
            ip.extend([0; 32]);
            ip.extend(rest);
            ip
        };
        let mut options = vec![DESTINATION, 1];
        options.extend([0; 14]);
        options.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        options.extend([0; 8]);
        let udp = frame(&[], &ip6(HOP_BY_HOP, &options));
        let want = Packet {
            ip: 14,
            v6: true,
            protocol: Protocol::Udp,
            transport: 14 + 40 + 24,
            payload: 14 + 40 + 32,
        };
        assert_eq!(parse(&udp), Some(want));
        assert_eq!(parse(&udp[..udp.len() - 1]), None);
        // Routing, fragment, security, nothing.
        for other in [43, 44, 50, 51, 59] {
            assert_eq!(parse(&frame(&[], &ip6(other, &[0x50; 64]))), None);
        }
    }

    #[test]
    fn headers_end_inside_the_window_and_data_offsets_are_at_least_5() {
        // 22 + 60 + 60 is the largest that IPv4 can be.
        let mut all = frame(&[0x88a8, 0x8100], &ip4(15, 6, 60));
        let transport = 22 + 60;
        all[transport + 12] = 0xf0;
        assert_eq!(parse(&all).map(|p| p.payload), Some(142));
        all[transport + 12] = 0x4f;
        assert_eq!(parse(&all), None);

        // Destination options of 80 bytes end at 134 and leave room for UDP; more do not.
        for (words, fits) in [(9_u8, true), (10, false)] {
            let mut ip = vec![0; 12];
            ip.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, DESTINATION, 64]);
            ip.extend([0; 32]);
            ip.extend([17, words]);
            ip.extend(vec![0; 6 + 8 * usize::from(words) + 8 + 100]);
            assert_eq!(parse(&ip).is_some(), fits, "{words}");
        }
    }
}
