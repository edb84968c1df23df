//! A hash of a flow: Toeplitz's, as receive-side scaling has it.
//!
//! Any 32 bits that are the same for all packets of a flow serve to steer by. These are the ones that
//! a card with the same key has for the packets that come back, if the caller names the addresses as
//! they are in those.

use std::net::SocketAddr;

/// The key of the published test vectors.
pub const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The hash of `input` under a key of any length, which goes on with zeros.
pub fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let mut key = key.iter().copied().chain(std::iter::repeat(0));
    let mut window = (0..4).fold(0u32, |w, _| w << 8 | u32::from(key.next().unwrap_or(0)));
    let mut hash = 0;
    for (byte, mut next) in input.iter().zip(key) {
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> 7);
            next <<= 1;
        }
    }
    hash
}

/// The hash of a flow of TCP or UDP between two addresses of one family: source and destination
/// address, then source and destination port, in network order. `None` for two families.
pub fn flow_hash(key: &[u8], source: SocketAddr, destination: SocketAddr) -> Option<u32> {
    let mut input = Vec::with_capacity(36);
    match (source, destination) {
        (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
            input.extend(source.ip().octets());
            input.extend(destination.ip().octets());
        }
        (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
            input.extend(source.ip().octets());
            input.extend(destination.ip().octets());
        }
        _ => return None,
    }
    input.extend(source.port().to_be_bytes());
    input.extend(destination.port().to_be_bytes());
    Some(toeplitz(key, &input))
}
