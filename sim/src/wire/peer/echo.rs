//! What comes back as it was sent: ICMP and ICMPv6 echo, and UDP on port 7.

use super::ip::{ICMP, ICMPV6, Packet, UDP, checksum, packet, pseudo_header};

const PORT: [u8; 2] = [0, 7];

/// The packet that answers one whose sums were verified.
pub(super) fn answer(asked: &Packet<'_>) -> Option<Vec<u8>> {
    let mut reply = asked.payload.to_vec();
    if reply.len() < 8 {
        return None;
    }
    // To the asker, from the address that it asked.
    let (from, to) = (asked.target, asked.source);
    match (asked.protocol, &asked.payload[..2]) {
        (ICMP, [8, 0]) => {
            reply[0] = 0;
            reply[2..4].fill(0);
            let sum = checksum(0, &reply);
            reply[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        (ICMPV6, [128, 0]) => {
            reply[0] = 129;
            reply[2..4].fill(0);
            let before = pseudo_header(from, to, ICMPV6, reply.len() as u32);
            let sum = checksum(before, &reply);
            reply[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        (UDP, port) if reply[2..4] == PORT => {
            // Swapping ports and addresses does not change the sum: it stays as it was.
            reply[2..4].copy_from_slice(port);
            reply[..2].copy_from_slice(&PORT);
        }
        _ => return None,
    }
    packet(from, to, asked.protocol, None, &reply)
}
