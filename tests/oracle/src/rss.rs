//! The hash of receive-side scaling, bit by bit as it is published, and what of a frame it covers
//! (virtio 1.2, "Hash calculation for incoming packets").

use crate::frames::{ip, transport};
use crate::transmit::MAX_FRAME;

/// Bytes of the key.
pub const KEY: usize = 40;
/// The key of the published verification suite.
pub const PUBLISHED_KEY: [u8; KEY] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The verification suite for the hash as its inventor publishes it: destination and its port,
/// source and its port, the hash of the addresses, and with the ports.
pub const SUITE: [(&str, u16, &str, u16, u32, u32); 8] = [
    (
        "161.142.100.80",
        1766,
        "66.9.149.187",
        2794,
        0x323e8fc2,
        0x51ccc178,
    ),
    (
        "65.69.140.83",
        4739,
        "199.92.111.2",
        14230,
        0xd718262a,
        0xc626b0ea,
    ),
    (
        "12.22.207.184",
        38024,
        "24.19.198.95",
        12898,
        0xd2d0a5de,
        0x5c2b394a,
    ),
    (
        "209.142.163.6",
        2217,
        "38.27.205.30",
        48228,
        0x82989176,
        0xafc7327f,
    ),
    (
        "202.188.127.2",
        1303,
        "153.39.163.191",
        44251,
        0x5d1809c5,
        0x10e828a2,
    ),
    (
        "3ffe:2501:200:3::1",
        1766,
        "3ffe:2501:200:1fff::7",
        2794,
        0x2cc18cd5,
        0x40207d3d,
    ),
    (
        "ff02::1",
        4739,
        "3ffe:501:8::260:97ff:fe40:efab",
        14230,
        0x0f0c461c,
        0xdde51bbf,
    ),
    (
        "fe80::200:f8ff:fe21:67cf",
        38024,
        "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
        44251,
        0x4b61e985,
        0x02d1feef,
    ),
];

/// The Toeplitz hash: for each bit of the input that is set, the 32 bits of the key from there on.
pub fn toeplitz(key: &[u8; KEY], input: &[u8]) -> u32 {
    let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (7 - i % 8) & 1 != 0;
    let mut hash = 0;
    for i in (0..8 * input.len()).filter(|i| bit(input, *i)) {
        hash ^= (i..i + 32).fold(0, |word, k| word << 1 | u32::from(bit(key, k)));
    }
    hash
}

/// What is said of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// `hash_report` and `hash_value`; 0 and 0 if there is none.
    Is(u8, u32),
    /// The frame ends inside its headers, or says that it is longer than any is: nothing is
    /// promised.
    Cut,
}

/// The hash of a frame where `types` are asked for (bits of `hash_types`, 0 to 5).
pub fn hash(frame: &[u8], key: &[u8; KEY], types: u8) -> Hash {
    let none = Hash::Is(0, 0);
    let Some((ip, v6)) = ip(frame) else {
        return none;
    };
    let first = frame.get(ip).copied().unwrap_or(0);
    if (first >> 4 != if v6 { 6 } else { 4 }) || (!v6 && first & 15 < 5) {
        return none;
    }
    let range = if v6 {
        ip + 8..ip + 40
    } else {
        ip + 12..ip + 20
    };
    let Some(addresses) = frame.get(range) else {
        return Hash::Cut;
    };
    let wanted = |bit: u8| types >> (bit + if v6 { 3 } else { 0 }) & 1 != 0;
    let (report, ports) = match transport(frame, ip, v6) {
        Some((at, _)) if at + 4 > frame.len() => return Hash::Cut,
        Some((at, protocol)) => {
            let udp = u8::from(protocol == 17);
            let length = usize::from(frame[ip + 3 + if v6 { 2 } else { 0 }])
                + 256 * usize::from(frame[ip + 2 + if v6 { 2 } else { 0 }]);
            if length > MAX_FRAME {
                return Hash::Cut;
            }
            let end = ip + length + if v6 { 40 } else { 0 };
            let there = end >= at + if udp == 1 { 8 } else { 20 };
            let counts = there && wanted(1 + udp);
            (1 + udp, counts.then(|| &frame[at..at + 4]))
        }
        None => (0, None),
    };
    let family = if v6 { 4 } else { 1 };
    match ports {
        Some(ports) => Hash::Is(family + report, toeplitz(key, &[addresses, ports].concat())),
        None if wanted(0) => Hash::Is(family, toeplitz(key, addresses)),
        None => none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn bytes(address: &str) -> Vec<u8> {
        match address.parse().unwrap() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        }
    }

    #[test]
    fn hashes_are_those_of_the_published_suite() {
        for (destination, to, source, from, plain, ports) in SUITE {
            let mut input = [bytes(source), bytes(destination)].concat();
            assert_eq!(toeplitz(&PUBLISHED_KEY, &input), plain, "{source}");
            input.extend(from.to_be_bytes());
            input.extend(to.to_be_bytes());
            assert_eq!(toeplitz(&PUBLISHED_KEY, &input), ports, "{source}");
        }
    }
}
