//! Random headers.

use crate::packet::{Protocol, WINDOW};
use crate::rng::Rng;

const HOP_BY_HOP: u8 = 0;
const DESTINATION: u8 = 60;

/// Which headers a frame has.
#[derive(Clone, Debug)]
pub struct Shape {
    /// VLAN tags, 0 to 2.
    pub tags: usize,
    /// IPv6.
    pub v6: bool,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// DWs of IPv4 options, 0 to 10.
    pub ip_options: usize,
    /// Extension headers of IPv6: kind and length field, in units of 8 bytes behind the first 8.
    pub extensions: Vec<(u8, u8)>,
    /// DWs of TCP options, 0 to 10.
    pub tcp_options: usize,
}

impl Shape {
    /// Any whose headers lie inside the [`WINDOW`].
    pub fn random(rng: &mut Rng) -> Self {
        let v6 = rng.chance(50);
        let mut shape = Self {
            tags: rng.pick(&[0, 0, 1, 2]),
            v6,
            protocol: rng.pick(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp]),
            ip_options: if v6 {
                0
            } else {
                rng.pick(&[0, 0, 0, 1, 5, 10])
            },
            extensions: Vec::new(),
            tcp_options: 0,
        };
        if shape.protocol == Protocol::Tcp {
            // Most streams have time stamps: 3.
            let any = rng.below(11) as usize;
            shape.tcp_options = rng.pick(&[0, 3, 3, any, 10]);
        }
        if v6 && rng.chance(50) {
            for i in 0..rng.range(1, 3) {
                let kind = if i == 0 && rng.chance(50) {
                    HOP_BY_HOP
                } else {
                    DESTINATION
                };
                shape
                    .extensions
                    .push((kind, rng.pick(&[0, 0, 0, 1, 2, 5, 8])));
            }
        }
        while shape.len() > WINDOW {
            shape.shrink();
        }
        shape
    }

    fn shrink(&mut self) {
        if let Some((_, words)) = self.extensions.last_mut().filter(|(_, words)| *words > 0) {
            *words -= 1;
        } else {
            self.extensions.pop();
        }
    }

    /// Offset of the IP header.
    pub fn ip(&self) -> usize {
        14 + 4 * self.tags
    }

    /// Offset of the TCP or UDP header.
    pub fn transport(&self) -> usize {
        let extensions = self.extensions.iter();
        let extensions: usize = extensions
            .map(|(_, words)| 8 + 8 * usize::from(*words))
            .sum();
        self.ip() + if self.v6 { 40 } else { 20 } + 4 * self.ip_options + extensions
    }

    /// Bytes of all headers.
    pub fn len(&self) -> usize {
        self.transport()
            + match self.protocol {
                Protocol::Tcp => 20 + 4 * self.tcp_options,
                Protocol::Udp => 8,
            }
    }

    /// Never: there is always an Ethernet header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The headers. Lengths and sums in them are garbage; flags, options and addresses are random;
    /// identification and sequence number are often about to wrap.
    pub fn headers(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = random(rng, 12);
        for _ in 0..self.tags {
            bytes.extend(rng.pick(&[[0x81, 0x00], [0x88, 0xa8]]));
            bytes.extend(random(rng, 2));
        }
        if self.v6 {
            self.ipv6(&mut bytes, rng);
        } else {
            self.ipv4(&mut bytes, rng);
        }
        match self.protocol {
            Protocol::Tcp => self.tcp(&mut bytes, rng),
            Protocol::Udp => bytes.extend(random(rng, 8)),
        }
        bytes
    }

    fn ipv4(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        bytes.extend([0x08, 0x00, 0x45 + self.ip_options as u8]);
        bytes.extend(random(rng, 3));
        let any = rng.below(0x1_0000) as u16;
        let id = rng.pick(&[0, 0x1234, 0xfffd, 0xffff, any]);
        bytes.extend(id.to_be_bytes());
        // "Don't fragment", or nothing.
        bytes.extend(rng.pick(&[[0x40, 0], [0x40, 0], [0, 0]]));
        bytes.extend([rng.below(256) as u8, self.protocol.number()]);
        bytes.extend(random(rng, 10 + 4 * self.ip_options));
    }

    fn ipv6(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        let kinds = self.extensions.iter().map(|(kind, _)| *kind);
        let mut kinds = kinds.chain([self.protocol.number()]);
        let first = kinds.next().unwrap_or_default();
        bytes.extend([0x86, 0xdd, 0x60 | rng.below(16) as u8]);
        bytes.extend(random(rng, 5));
        bytes.extend([first, rng.below(256) as u8]);
        bytes.extend(random(rng, 32));
        for ((_, words), next) in self.extensions.iter().zip(kinds) {
            bytes.extend([next, *words]);
            bytes.extend(random(rng, 6 + 8 * usize::from(*words)));
        }
    }

    fn tcp(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        bytes.extend(random(rng, 4));
        let any = rng.next_u64() as u32;
        let sequence = rng.pick(&[0, 0xffff_ffff, 0xffff_f000, any]);
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(random(rng, 4));
        let offset = (5 + self.tcp_options as u8) << 4;
        bytes.extend([offset | rng.below(16) as u8, rng.below(256) as u8]);
        bytes.extend(random(rng, 6 + 4 * self.tcp_options));
    }
}

/// Bytes at random.
pub fn random(rng: &mut Rng, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        bytes.extend(rng.next_u64().to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::parse;

    #[test]
    fn headers_are_where_the_shape_says() {
        let mut rng = Rng::new(1);
        let mut largest = 0;
        for _ in 0..20_000 {
            let shape = Shape::random(&mut rng);
            let bytes = shape.headers(&mut rng);
            let packet = parse(&bytes).expect("sound headers");
            assert_eq!(bytes.len(), shape.len());
            assert_eq!(
                (packet.ip, packet.transport, packet.payload),
                (shape.ip(), shape.transport(), shape.len())
            );
            assert_eq!((packet.v6, packet.protocol), (shape.v6, shape.protocol));
            largest = largest.max(bytes.len());
        }
        // All headers behind the first 14 bytes are multiples of 4 long.
        assert_eq!(largest, WINDOW - 2);
    }
}
