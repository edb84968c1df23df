//! Who has this address? ARP (RFC 826) for IPv4, neighbour discovery (RFC 4861) for IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ip::{ICMPV6, Packet, checksum, packet, pseudo_header};
use super::{ETHERNET, PEER_MAC};

/// EtherType.
pub(super) const ARP: u16 = 0x0806;
/// Kind of an ICMPv6 message.
pub(super) const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Only a packet from this very link has it.
const HOP_LIMIT: u8 = 255;
/// Flags of an advertisement: it was asked for; it replaces what was known.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The body of a frame that answers an ARP request for an address that is `mine`.
pub(super) fn answer_arp(frame: &[u8], mine: impl Fn(IpAddr) -> bool) -> Option<Vec<u8>> {
    let arp = frame.get(ETHERNET..ETHERNET + 28)?;
    if arp[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
        return None;
    }
    let asker: [u8; 4] = arp[14..18].try_into().ok()?;
    let target: [u8; 4] = arp[24..28].try_into().ok()?;
    // A probe or an announcement of one's own address is no question for us.
    if asker == target || asker == [0; 4] || !mine(Ipv4Addr::from(target).into()) {
        return None;
    }
    let mut reply = vec![0, 1, 8, 0, 6, 4, 0, 2];
    reply.extend_from_slice(&PEER_MAC);
    reply.extend_from_slice(&target);
    reply.extend_from_slice(&arp[8..18]);
    Some(reply)
}

/// The station and the packet that answer a neighbour solicitation from `station`.
pub(super) fn answer_solicitation(
    asked: &Packet<'_>,
    station: [u8; 6],
    mine: impl Fn(IpAddr) -> bool,
) -> Option<([u8; 6], Vec<u8>)> {
    let message = asked.payload;
    let target = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
    if asked.hop_limit != HOP_LIMIT || message[1] != 0 || !mine(target.into()) {
        return None;
    }
    let (to, flags, station) = match asked.source {
        // Somebody wants to have our address: everybody hears that it is taken.
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => (ALL_NODES.into(), OVERRIDE, [0x33, 0x33, 0, 0, 0, 1]),
        source => (source, SOLICITED | OVERRIDE, station),
    };
    let mut reply = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
    reply.extend(target.octets());
    // An option: target link-layer address, of one unit of eight bytes.
    reply.extend([2, 1]);
    reply.extend(PEER_MAC);
    let before = pseudo_header(target.into(), to, ICMPV6, reply.len() as u32);
    let sum = checksum(before, &reply);
    reply[2..4].copy_from_slice(&sum.to_be_bytes());
    let reply = packet(target.into(), to, ICMPV6, Some(HOP_LIMIT), &reply)?;
    Some((station, reply))
}
