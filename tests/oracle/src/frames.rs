//! Random frames, good and broken, and what a card may say of them by the specifications (RFC 791,
//! 793, 768, 8200, 1071; IEEE 802.1Q).

use crate::packet::{Packet, Protocol, parse};
use crate::request::packet;
use crate::rng::Rng;
use crate::shape::random;
pub use crate::sum::{fold, sum};

/// Bytes in which headers are looked for, and up to which a frame may have bytes behind its packet.
pub const WINDOW: usize = 128;

const TCP: u8 = 6;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const DESTINATION: u8 = 60;

/// What is said of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// Its checksums were verified.
    pub sum_ok: bool,
    /// Equal for frames between the same addresses.
    pub addresses: u16,
    /// Equal for frames between the same ports, another in the other direction.
    pub ports: u16,
}

impl Verdict {
    /// Equal for frames of one flow.
    pub fn hash(&self) -> u16 {
        self.addresses ^ self.ports
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let byte = |i: usize| bytes.get(i).copied().unwrap_or(0);
    u16::from(byte(at)) << 8 | u16::from(byte(at + 1))
}

fn xor(bytes: &[u8], at: usize, len: usize) -> u16 {
    (at..at + len).step_by(2).fold(0, |x, i| x ^ half(bytes, i))
}

/// Where the IP header is, if there is one, and whether it is of version 6.
pub(crate) fn ip(frame: &[u8]) -> Option<(usize, bool)> {
    let mut at = 12;
    while at < 20 && matches!(half(frame, at), 0x8100 | 0x88a8) {
        at += 4;
    }
    match half(frame, at) {
        0x0800 => Some((at + 2, false)),
        0x86dd => Some((at + 2, true)),
        _ => None,
    }
}

/// Where TCP or UDP is, and which of them: behind the headers that are understood, in the window.
pub(crate) fn transport(frame: &[u8], ip: usize, v6: bool) -> Option<(usize, u8)> {
    let byte = |i: usize| frame.get(i).copied().unwrap_or(0);
    let (mut at, mut next);
    if v6 {
        (at, next) = (ip + 40, byte(ip + 6));
        while matches!(next, HOP_BY_HOP | DESTINATION) {
            if at / 8 > WINDOW / 8 - 2 {
                return None;
            }
            (at, next) = (at + 8 + 8 * usize::from(byte(at + 1)), byte(at));
        }
    } else {
        (at, next) = (ip + 4 * usize::from(byte(ip) & 15), byte(ip + 9));
        // A fragment's ports may be in another one.
        if half(frame, ip + 6) & 0x3fff != 0 {
            return None;
        }
    }
    (at / 8 <= WINDOW / 8 - 2 && matches!(next, TCP | UDP)).then_some((at, next))
}

/// What may be said of a frame.
pub fn verdict(frame: &[u8]) -> Verdict {
    let mut verdict = Verdict {
        sum_ok: false,
        addresses: 0,
        ports: 0,
    };
    let Some((ip, v6)) = ip(frame) else {
        return verdict;
    };
    let first = frame.get(ip).copied().unwrap_or(0);
    let length = half(frame, ip + if v6 { 4 } else { 2 });
    let sound = if v6 {
        first >> 4 == 6
    } else {
        first >> 4 == 4 && first & 15 >= 5
    };
    if !sound {
        return verdict;
    }
    let addresses = if v6 { (ip + 8, 32) } else { (ip + 12, 8) };
    verdict.addresses = xor(frame, addresses.0, addresses.1);
    let Some((at, protocol)) = transport(frame, ip, v6) else {
        return verdict;
    };
    verdict.ports = half(frame, at) ^ half(frame, at + 2).rotate_left(5);

    let end = ip + usize::from(length) + if v6 { 40 } else { 0 };
    let least = if protocol == UDP { 8 } else { 20 };
    if length >= 0x4000 || end < at + least {
        return verdict;
    }
    let fits = end == frame.len() || (end < frame.len() && frame.len() <= WINDOW);
    if !fits {
        return verdict;
    }
    let header_ok = v6 || fold(sum(&frame[ip..ip + 4 * usize::from(first & 15)])) == 0xffff;
    let pseudo = sum(&frame[addresses.0..addresses.0 + addresses.1])
        + u64::from(protocol)
        + (end - at) as u64;
    let sum_right = fold(pseudo + sum(&frame[at..end])) == 0xffff;
    let udp_right = protocol != UDP
        || (usize::from(half(frame, at + 4)) == end - at && half(frame, at + 6) != 0);
    verdict.sum_ok = header_ok && sum_right && udp_right;
    verdict
}

/// A random frame: mostly right, often broken in one place.
pub fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = random(rng, 12);
    for _ in 0..rng.pick(&[0, 0, 0, 1, 2, 3]) {
        frame.extend(rng.pick(&[[0x81, 0x00], [0x88, 0xa8]]));
        frame.extend(random(rng, 2));
    }
    let v6 = rng.chance(50);
    let protocol = rng.pick(&[TCP, TCP, UDP, UDP, 1, 44]);
    let payload = rng.pick(&[0, 1, 7, 20, 100, 1000]) + rng.below(9) as usize;
    let payload = random(rng, payload);
    let mut transport = match protocol {
        TCP => {
            let options = rng.below(11) as usize;
            let mut header = random(rng, 20 + 4 * options);
            header[12] = ((5 + options) << 4) as u8;
            header[16..18].fill(0);
            header
        }
        UDP => {
            let mut header = random(rng, 8);
            let length = (8 + payload.len()) as u16;
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header[6..8].fill(0);
            header
        }
        _ => random(rng, 8),
    };
    transport.extend(&payload);

    let mut ip = Vec::new();
    let addresses;
    if v6 {
        frame.extend([0x86, 0xdd]);
        let mut options = Vec::new();
        let mut next = protocol;
        for kind in [DESTINATION, HOP_BY_HOP] {
            if rng.chance(25) {
                let words = rng.pick(&[0, 0, 1, 2, 8]);
                let mut option = vec![next, words];
                option.extend(random(rng, 6 + 8 * usize::from(words)));
                // One option that fills the header and is skipped.
                option[2..4].copy_from_slice(&[0x1e, (4 + 8 * words)]);
                option.extend(&options);
                (options, next) = (option, kind);
            }
        }
        ip.extend([0x60 | rng.below(16) as u8, rng.below(256) as u8]);
        ip.extend(random(rng, 2));
        ip.extend(((options.len() + transport.len()) as u16).to_be_bytes());
        ip.extend([next, 64]);
        ip.extend(random(rng, 32));
        addresses = sum(&ip[8..40]);
        ip.extend(options);
    } else {
        frame.extend([0x08, 0x00]);
        let options = rng.pick(&[0, 0, 0, 1, 5, 10]);
        let length = (20 + 4 * options + transport.len()) as u16;
        ip.extend([0x45 + options as u8, rng.below(256) as u8]);
        ip.extend(length.to_be_bytes());
        ip.extend(random(rng, 2));
        // "Don't fragment" is no fragment.
        ip.extend(rng.pick(&[[0, 0], [0x40, 0], [0x40, 0], [0x20, 0], [0, 9]]));
        ip.extend([64, protocol, 0, 0]);
        ip.extend(random(rng, 8));
        ip.extend(vec![1; 4 * options]);
        addresses = sum(&ip[12..20]);
        let check = !fold(sum(&ip));
        ip[10..12].copy_from_slice(&check.to_be_bytes());
    }

    // The sum; a UDP sum of 0 is sent as 0xffff, or there is none.
    let place = match protocol {
        TCP => Some(16),
        UDP => Some(6),
        _ => None,
    };
    if let Some(place) = place {
        let total = addresses + u64::from(protocol) + transport.len() as u64 + sum(&transport);
        let mut check = !fold(total);
        if protocol == UDP && check == 0 {
            check = 0xffff;
        }
        if protocol == UDP && rng.chance(15) {
            check = 0;
        }
        transport[place..place + 2].copy_from_slice(&check.to_be_bytes());
    }
    let start = frame.len();
    frame.extend(ip);
    frame.extend(transport);
    if rng.chance(5) {
        sum_to_zero(&mut frame, rng);
    }
    if frame.len() < 60 {
        // Padding need not be zero.
        let padding = random(rng, 60 - frame.len());
        frame.extend(padding);
    }

    if rng.chance(35) {
        match rng.below(4) {
            0 => {
                let at = rng.below(frame.len() as u64) as usize;
                frame[at] ^= 1 << rng.below(8);
            }
            1 => frame.truncate(14 + rng.below(frame.len() as u64 - 13) as usize),
            2 => {
                let more = 1 + rng.below(70) as usize;
                frame.extend(random(rng, more));
            }
            _ => {
                // Something in the first bytes of the IP header.
                let at = start + rng.below(10) as usize;
                frame[at] = rng.below(256) as u8;
            }
        }
    }
    frame
}

/// A frame of 14 to about 1,500 bytes that lies in its headers, mostly; its sums are often made to
/// agree with the lie.
pub fn malformed(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = if rng.chance(20) {
        frame(rng)
    } else {
        let most = rng.pick(&[10, 100, 1200]);
        packet(most, rng)
    };
    let Some(headers) = parse(&bytes) else {
        return bytes;
    };
    let (ip, at, v6) = (headers.ip, headers.transport, headers.v6);
    let any = rng.next_u64() as u8;
    let mut put = |at: usize, value: u16| {
        bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    };
    match rng.below(15) {
        0 => {
            let length = rng.pick(&[0, 1, 20, 39, 0x3fff, 0x4000, 0xffff, any.into()]);
            put(ip + if v6 { 4 } else { 2 }, length);
        }
        1 => {
            let field = rng.pick(&[0x2000, 0x0001, 0x1fff, 0x8000, 0x6000, 0x4000]);
            if v6 {
                bytes[ip + 6] = 44;
            } else {
                put(ip + 6, field);
            }
        }
        2 => put(
            ip - 2,
            rng.pick(&[0x8100, 0x88a8, 0x0800, 0x86dd, 0x9100, 0x0806, 64]),
        ),
        3 => bytes[ip] = any,
        4 => bytes[ip] = (bytes[ip] & 0xf0) | (any & 15),
        5 => bytes[ip + if v6 { 6 } else { 9 }] = rng.pick(&[0, 1, 6, 17, 43, 44, 51, 59, 60, any]),
        6 if v6 => {
            bytes[ip + 6] = rng.pick(&[0, 60]);
            bytes[ip + 41] = rng.pick(&[0, 1, 8, 16, 31, any]);
        }
        7 if headers.protocol == Protocol::Udp => {
            put(at + 4, rng.pick(&[0, 7, 8, 0xffff, any.into()]))
        }
        7 => bytes[at + 12] = any,
        8 if headers.protocol == Protocol::Udp => put(at + 6, 0),
        13 => {
            sum_to_zero(&mut bytes, rng);
            return bytes;
        }
        9 => bytes.truncate(14 + rng.below(bytes.len() as u64 - 13) as usize),
        10 => {
            let more = 1 + rng.below(200) as usize;
            bytes.extend(random(rng, more));
        }
        11 => {
            let length = 14 + rng.below(200) as usize;
            bytes = random(rng, length);
        }
        12 => {
            for _ in 0..rng.range(1, 4) {
                let bit = rng.below(8 * headers.payload as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        _ => {}
    }
    if rng.chance(50) {
        agree(&mut bytes);
    }
    bytes
}

/// Makes the sums agree with whatever the headers say now.
fn agree(bytes: &mut [u8]) {
    let Some(headers) = parse(bytes) else {
        return;
    };
    if !headers.v6 {
        let ip = headers.ip;
        bytes[ip + 10..ip + 12].fill(0);
        let options = 4 * usize::from(bytes[ip] & 15);
        let check = !fold(sum(&bytes[ip..ip + options]));
        bytes[ip + 10..ip + 12].copy_from_slice(&check.to_be_bytes());
    }
    let place = headers.transport + headers.protocol.sum_at();
    bytes[place..place + 2].fill(0);
    let check = transport_sum(bytes, &headers);
    bytes[place..place + 2].copy_from_slice(&check.to_be_bytes());
}

/// Changes the payload so that its sum is 0, which chance seldom makes. UDP then says 0xffff (RFC
/// 768), or that it has no sum.
fn sum_to_zero(bytes: &mut [u8], rng: &mut Rng) {
    let Some(headers) = parse(bytes).filter(|headers| headers.payload + 2 <= bytes.len()) else {
        return;
    };
    let place = headers.transport + headers.protocol.sum_at();
    bytes[place..place + 2].fill(0);
    let at = headers.payload;
    let more = u64::from(transport_sum(bytes, &headers)) + u64::from(half(bytes, at));
    bytes[at..at + 2].copy_from_slice(&fold(more).to_be_bytes());
    let said = match headers.protocol {
        Protocol::Tcp => 0,
        Protocol::Udp => rng.pick(&[0, 0xff]),
    };
    bytes[place..place + 2].fill(said);
}

/// The complement of the sum over pseudo header, header and payload.
fn transport_sum(bytes: &[u8], headers: &Packet) -> u16 {
    let (ip, at) = (headers.ip, headers.transport);
    let (addresses, behind) = if headers.v6 {
        (ip + 8..ip + 40, ip + 40)
    } else {
        (ip + 12..ip + 20, ip)
    };
    let length = usize::from(half(bytes, ip + if headers.v6 { 4 } else { 2 }));
    let end = (behind + length).clamp(headers.payload, bytes.len());
    let number = u64::from(headers.protocol.number());
    !fold(sum(&bytes[addresses]) + number + (end - at) as u64 + sum(&bytes[at..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opinion::{Opinion, opinion};

    #[test]
    fn what_may_be_claimed_of_malformed_frames_etherparse_does_not_deny() {
        let mut rng = Rng::new(5);
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..20_000 {
            let bytes = malformed(&mut rng);
            assert!((14..1600).contains(&bytes.len()));
            if verdict(&bytes).sum_ok {
                let wrong = matches!(opinion(&bytes), Opinion::Wrong(_));
                assert!(!wrong, "{bytes:02x?}");
                right += 1;
            } else {
                wrong += 1;
            }
        }
        assert!(right > 4000 && wrong > 4000, "{right} right, {wrong} wrong");
    }
}
