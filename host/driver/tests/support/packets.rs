//! Packets to be sent, and what a card must make of them: checksums completed and frames segmented
//! by a reading of the specifications that shares nothing with the driver.

use ferronic::spec::NetHeader;
use ferronic::spec::net::HEADER_LEN;
use zerocopy::FromBytes;

/// What a packet is made of.
#[derive(Clone, Debug)]
pub struct Packet {
    pub tags: usize,
    pub v6: bool,
    pub udp: bool,
    /// IPv4 options, or IPv6 hop-by-hop options, in words of 4 or 8 bytes.
    pub options: usize,
    /// Options of TCP, in words of 4 bytes.
    pub tcp_options: usize,
    pub tcp_flags: u8,
    pub payload: Vec<u8>,
}

impl Default for Packet {
    fn default() -> Self {
        Self {
            tags: 0,
            v6: false,
            udp: false,
            options: 0,
            tcp_options: 0,
            tcp_flags: 0x18,
            payload: vec![0x5a; 1000],
        }
    }
}

impl Packet {
    /// Bytes of its headers.
    pub fn headers(&self) -> usize {
        let ip = if self.v6 {
            40 + 8 * self.options
        } else {
            20 + 4 * self.options
        };
        self.transport_len() + ip + self.ip_at()
    }

    fn ip_at(&self) -> usize {
        14 + 4 * self.tags
    }

    fn transport_len(&self) -> usize {
        if self.udp {
            8
        } else {
            20 + 4 * self.tcp_options
        }
    }

    /// Where the TCP or UDP header is.
    pub fn transport(&self) -> usize {
        self.headers() - self.transport_len()
    }

    /// Where the checksum is, from there.
    pub fn sum_offset(&self) -> usize {
        if self.udp { 6 } else { 16 }
    }

    /// The frame, with lengths and checksums right as far as its length can be said.
    pub fn frame(&self) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        for _ in 0..self.tags {
            f.extend([0x81, 0x00, 0x20, 0x07]);
        }
        f.extend(if self.v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        let number = if self.udp { 17 } else { 6 };
        if self.v6 {
            f.extend([0x60, 0, 0, 0, 0, 0]);
            f.extend([if self.options > 0 { 0 } else { number }, 64]);
            f.extend((0..32).map(|i| 0x20 + i));
            if self.options > 0 {
                f.extend([
                    number,
                    self.options as u8 - 1,
                    1,
                    (8 * self.options - 4) as u8,
                ]);
                f.resize(f.len() + 8 * self.options - 4, 0);
            }
        } else {
            f.extend([
                0x45 + self.options as u8,
                0,
                0,
                0,
                0xff,
                0xfe,
                0x40,
                0,
                64,
                number,
                0,
                0,
            ]);
            f.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            f.resize(f.len() + 4 * self.options, 1);
        }
        f.extend([0x9c, 0x40, 0, 80]);
        if self.udp {
            f.extend([0, 0, 0, 0]);
        } else {
            f.extend([0xff, 0xff, 0xf0, 0, 1, 2, 3, 4]);
            f.extend([(5 + self.tcp_options as u8) << 4, self.tcp_flags]);
            f.extend([0x20, 0, 0, 0, 0, 0]);
            f.resize(f.len() + 4 * self.tcp_options, 1);
        }
        assert_eq!(f.len(), self.headers());
        f.extend(&self.payload);
        finish(&mut f, self.ip_at(), self.transport());
        f
    }
}

/// Internet checksum, byte by byte.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for (i, byte) in part.iter().enumerate() {
            sum += u32::from(*byte) << if i % 2 == 0 { 8 } else { 0 };
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    !(sum as u16)
}

fn put(frame: &mut [u8], at: usize, value: usize) {
    frame[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

/// Sets lengths and checksums.
fn finish(frame: &mut [u8], ip: usize, transport: usize) {
    let v6 = frame[ip] >> 4 == 6;
    let end = frame.len();
    let addresses;
    let udp;
    if v6 {
        put(frame, ip + 4, end - ip - 40);
        addresses = frame[ip + 8..ip + 40].to_vec();
        udp = if transport > ip + 40 {
            frame[ip + 40]
        } else {
            frame[ip + 6]
        } == 17;
    } else {
        put(frame, ip + 2, end - ip);
        put(frame, ip + 10, 0);
        let sum = checksum(&[&frame[ip..transport]]);
        put(frame, ip + 10, sum.into());
        addresses = frame[ip + 12..ip + 20].to_vec();
        udp = frame[ip + 9] == 17;
    }
    let len = end - transport;
    if udp {
        put(frame, transport + 4, len);
    }
    let at = transport + if udp { 6 } else { 16 };
    put(frame, at, 0);
    let rest = [0, if udp { 17 } else { 6 }, (len >> 8) as u8, len as u8];
    let mut sum = checksum(&[&addresses, &rest, &frame[transport..]]);
    if udp && sum == 0 {
        sum = 0xffff;
    }
    put(frame, at, sum.into());
}

/// What leaves on the wire for a transmitted buffer, its virtio header in front.
pub fn on_the_wire(buffer: &[u8]) -> Vec<Vec<u8>> {
    let (header, frame) = buffer.split_at(HEADER_LEN);
    let header = NetHeader::read_from_bytes(header).unwrap();
    let mut frame = frame.to_vec();
    let start = usize::from(header.csum_start.get());
    let kind = header.gso_type & 0x7f;
    if kind == 0 {
        if header.flags & 1 != 0 {
            let offset = usize::from(header.csum_offset.get());
            let mut sum = checksum(&[&frame[start..]]);
            if sum == 0 && offset == 6 {
                sum = 0xffff;
            }
            put(&mut frame, start + offset, sum.into());
        }
        return vec![frame];
    }
    let mut ip = 14;
    while frame[ip - 2] == 0x81 {
        ip += 4;
    }
    let tcp = kind != 5;
    let headers = start
        + if tcp {
            usize::from(frame[start + 12] >> 4) * 4
        } else {
            8
        };
    assert_eq!(
        usize::from(header.hdr_len.get()),
        headers,
        "the hint is right"
    );
    let size = usize::from(header.gso_size.get());
    let (head, payload) = frame.split_at(headers);
    let pieces: Vec<_> = if payload.is_empty() {
        vec![payload]
    } else {
        payload.chunks(size).collect()
    };
    let cut = |(i, piece): (usize, &&[u8])| {
        let mut segment = [head, piece].concat();
        if segment[ip] >> 4 == 4 {
            let id = u16::from_be_bytes([head[ip + 4], head[ip + 5]]);
            put(&mut segment, ip + 4, id.wrapping_add(i as u16).into());
        }
        if tcp {
            let at = start + 4;
            let first = u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let sequence = first.wrapping_add((i * size) as u32);
            segment[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
            let mut keep = 0xff;
            if i + 1 != pieces.len() {
                keep &= !0x09;
            }
            if i != 0 {
                keep &= !0x80;
            }
            segment[start + 13] &= keep;
        }
        finish(&mut segment, ip, start);
        segment
    };
    pieces.iter().enumerate().map(cut).collect()
}
