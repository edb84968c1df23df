//! Received frames whose checksums the card has not verified: verified here, or refused.
//!
//! "Processing of Incoming Packets" of the network device (virtio 1.2, 5.1.6.4.2): DATA_VALID says
//! that the device has verified the checksum; NEEDS_CSUM that it is still to be completed, because
//! the packet has never been on a wire; neither, that nothing is known.

use ferronic_spec::NetHeader;
use ferronic_spec::net::HeaderFlags;
use thiserror::Error;

use super::checksum::{fold, pseudo, sum};
use super::headers::{HeaderFault, Ip, Transport, Version};
use super::unit::UnitFault;

/// A checksum of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Of the IPv4 header.
    Ipv4,
    /// Of TCP.
    Tcp,
    /// Of UDP.
    Udp,
}

/// What [`verify`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A TCP or UDP packet, all of whose checksums are right.
    Right,
    /// Not IP, or a packet without a TCP or UDP checksum: another protocol, or a UDP checksum of 0
    /// over IPv4, which means that there is none. The checksum of an IPv4 header is right.
    NoSum,
    /// A checksum is wrong.
    Wrong(Sum),
    /// It cannot be told: a fragment, or headers that do not lead to the end.
    Unverifiable(HeaderFault),
}

/// Verifies the checksums of an Ethernet frame: IPv4 header, TCP and UDP.
///
/// Looks through at most two VLAN tags, IPv4 options, and IPv6 hop-by-hop and destination options.
/// Bytes behind the IP packet, as short frames have them, are not counted. Takes any bytes and
/// never panics.
pub fn verify(frame: &[u8]) -> Verdict {
    match try_verify(frame) {
        Ok(verdict) => verdict,
        Err(HeaderFault::NotIp) => Verdict::NoSum,
        Err(fault) => Verdict::Unverifiable(fault),
    }
}

fn try_verify(frame: &[u8]) -> Result<Verdict, HeaderFault> {
    let ip = Ip::parse(frame)?;
    let end = ip.end(frame)?;
    if !header_is_right(&ip, frame) {
        return Ok(Verdict::Wrong(Sum::Ipv4));
    }
    let Ok(kind) = ip.kind() else {
        return Ok(Verdict::NoSum);
    };
    let covered = ip.covered(frame, end)?;
    if kind == Transport::Udp && covered[6..8] == [0, 0] {
        // RFC 768: none was made. Over IPv6 there must be one (RFC 8200 section 8.1).
        return Ok(match ip.version {
            Version::V4 => Verdict::NoSum,
            Version::V6 => Verdict::Wrong(Sum::Udp),
        });
    }
    let total = pseudo(ip.addresses(frame), kind.number(), covered.len()) + sum(covered);
    Ok(match (fold(total), kind) {
        (0xffff, _) => Verdict::Right,
        (_, Transport::Tcp) => Verdict::Wrong(Sum::Tcp),
        (_, Transport::Udp) => Verdict::Wrong(Sum::Udp),
    })
}

pub(super) fn header_is_right(ip: &Ip, frame: &[u8]) -> bool {
    ip.version == Version::V6 || fold(sum(&frame[ip.at..ip.transport])) == 0xffff
}

/// How a frame came to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The card has verified its checksums.
    ByCard,
    /// They were verified here.
    Verified,
    /// The card left its checksum partial; it was completed here.
    Completed,
    /// It has none to verify.
    NoSum,
}

/// Why a frame must not be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// A checksum is wrong.
    #[error("the {0:?} checksum is wrong")]
    Wrong(Sum),
    /// It is not the unit that it is said to be.
    #[error("{0}")]
    Unit(UnitFault),
    /// Its checksums cannot be verified.
    #[error("its checksums cannot be verified: {0}")]
    Unverifiable(HeaderFault),
    /// The card wants a checksum completed that does not lie in the frame.
    #[error("the checksum to complete, at {start} + {offset}, is not within its {len} bytes")]
    Outside {
        /// `csum_start`.
        start: u16,
        /// `csum_offset`.
        offset: u16,
        /// Bytes of the frame.
        len: usize,
    },
}

/// Decides whether a received frame may be passed to a stack that verifies nothing itself, and
/// completes its checksum if the card left that to the driver.
///
/// `header` is what the device wrote; with `guest_csum` false (GUEST_CSUM was not negotiated) its
/// flags mean nothing.
///
/// # Errors
/// When the frame must be dropped; it is unchanged then.
pub fn admit(header: &NetHeader, guest_csum: bool, frame: &mut [u8]) -> Result<Admitted, Refused> {
    let flags = match guest_csum {
        true => HeaderFlags::from_bits_retain(header.flags),
        false => HeaderFlags::empty(),
    };
    if flags.contains(HeaderFlags::NEEDS_CSUM) {
        // DATA_VALID beside it means nothing: the sum in the frame is not the packet's.
        return complete(header, frame);
    }
    if flags.contains(HeaderFlags::DATA_VALID) {
        return Ok(Admitted::ByCard);
    }
    match verify(frame) {
        Verdict::Right => Ok(Admitted::Verified),
        Verdict::NoSum => Ok(Admitted::NoSum),
        Verdict::Wrong(which) => Err(Refused::Wrong(which)),
        Verdict::Unverifiable(fault) => Err(Refused::Unverifiable(fault)),
    }
}

/// Completes a partial checksum where the header says.
fn complete(header: &NetHeader, frame: &mut [u8]) -> Result<Admitted, Refused> {
    let (start, offset) = (header.csum_start.get(), header.csum_offset.get());
    let at = usize::from(start) + usize::from(offset);
    if at + 2 > frame.len() {
        return Err(Refused::Outside {
            start,
            offset,
            len: frame.len(),
        });
    }
    // The flag speaks of one checksum. That of an IPv4 header is not it.
    if let Ok(ip) = Ip::parse(frame)
        && !header_is_right(&ip, frame)
    {
        return Err(Refused::Wrong(Sum::Ipv4));
    }
    let mut value = !fold(sum(&frame[usize::from(start)..]));
    if value == 0 && usize::from(offset) == Transport::Udp.sum_offset() {
        value = 0xffff;
    }
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    Ok(Admitted::Completed)
}
