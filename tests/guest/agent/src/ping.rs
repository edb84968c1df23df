//! Echo requests, one after the other.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use ferronic_guest_agent::Pings;
use ferronic_transfer::Pattern;
use socket2::{Domain, Protocol, Socket, Type};

use crate::Failure;

const HEADER: usize = 8;

/// What differs between the versions.
struct Version {
    domain: Domain,
    protocol: Protocol,
    request: u8,
    reply: u8,
    /// A raw socket gives the header of IP too.
    has_header: bool,
}

const V4: Version = Version {
    domain: Domain::IPV4,
    protocol: Protocol::ICMPV4,
    request: 8,
    reply: 0,
    has_header: true,
};
const V6: Version = Version {
    domain: Domain::IPV6,
    protocol: Protocol::ICMPV6,
    request: 128,
    reply: 129,
    has_header: false,
};

/// Sends `count` requests of `size` bytes each and waits for the answer to each.
pub fn ping(to: IpAddr, count: u32, size: usize, timeout_ms: u64) -> Result<Pings, Failure> {
    let version = if to.is_ipv4() { V4 } else { V6 };
    let mut socket = Socket::new(
        version.domain,
        Type::from(libc::SOCK_RAW),
        Some(version.protocol),
    )?;
    let target = SocketAddr::new(to, 0).into();
    let identifier = std::process::id() as u16 ^ size as u16;
    let mut pings = Pings {
        sent: 0,
        received: 0,
        us: Vec::new(),
    };
    let mut buffer = vec![0; 65_536];
    for sequence in 0..count {
        let message = message(&version, identifier, sequence as u16, size);
        let begin = Instant::now();
        let deadline = begin + Duration::from_millis(timeout_ms);
        pings.sent += 1;
        match socket.send_to(&message, &target) {
            Ok(_) => {}
            // The card was pulled: a request that is lost.
            Err(error) if unreachable(&error) => {
                std::thread::sleep(deadline - begin);
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        while let Some(left) = deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            socket.set_read_timeout(Some(left))?;
            let n = match socket.read(&mut buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if unreachable(&error) => break,
                Err(error) => return Err(error.into()),
            };
            if is_answer(&version, &buffer[..n], &message) {
                pings.received += 1;
                pings.us.push(u32::try_from(begin.elapsed().as_micros())?);
                break;
            }
        }
    }
    Ok(pings)
}

fn unreachable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
    ) || error.raw_os_error() == Some(libc::ENODEV)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}

fn message(version: &Version, identifier: u16, sequence: u16, size: usize) -> Vec<u8> {
    let mut message = vec![0; HEADER + size];
    message[0] = version.request;
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    Pattern::new(sequence.into()).fill(&mut message[HEADER..]);
    // For ICMPv6 the kernel makes it.
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// What a raw socket gave answers `request`: all bytes but type and checksum are the same.
fn is_answer(version: &Version, packet: &[u8], request: &[u8]) -> bool {
    let header = match packet.first() {
        Some(first) if version.has_header => usize::from(first & 0xf) * 4,
        _ => 0,
    };
    let Some(message) = packet.get(header..) else {
        return false;
    };
    message.len() == request.len() && message[0] == version.reply && message[4..] == request[4..]
}

/// The Internet checksum (RFC 1071).
fn checksum(data: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in data.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
