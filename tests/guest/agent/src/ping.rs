//! Echo requests, one after the other or several at once.

use std::collections::VecDeque;
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

/// Bytes of answers that may wait to be read: more than 120 of 1,000 with what the kernel adds to each.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Sends `count` requests of `size` bytes each, no more than `at_once` of which wait for an answer.
pub fn ping(
    to: IpAddr,
    count: u32,
    size: usize,
    at_once: u32,
    timeout_ms: u64,
) -> Result<Pings, Failure> {
    let version = if to.is_ipv4() { V4 } else { V6 };
    let mut socket = Socket::new(
        version.domain,
        Type::from(libc::SOCK_RAW),
        Some(version.protocol),
    )?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    let target = SocketAddr::new(to, 0).into();
    let identifier = std::process::id() as u16 ^ size as u16;
    let timeout = Duration::from_millis(timeout_ms);
    let mut pings = Pings {
        sent: 0,
        received: 0,
        us: Vec::new(),
    };
    let mut waiting: VecDeque<(Vec<u8>, Instant)> = VecDeque::new();
    let mut buffer = vec![0; 65_536];
    loop {
        while pings.sent < count && waiting.len() < at_once as usize {
            let message = message(&version, identifier, pings.sent as u16, size);
            let begin = Instant::now();
            pings.sent += 1;
            match socket.send_to(&message, &target) {
                Ok(_) => waiting.push_back((message, begin)),
                // The card was pulled: a request that is lost.
                Err(error) if unreachable(&error) => std::thread::sleep(timeout),
                Err(error) => return Err(error.into()),
            }
        }
        let Some((_, oldest)) = waiting.front() else {
            return Ok(pings);
        };
        let left = timeout.saturating_sub(oldest.elapsed());
        if left.is_zero() {
            waiting.pop_front();
            continue;
        }
        socket.set_read_timeout(Some(left))?;
        let n = match socket.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || unreachable(&error) => {
                waiting.pop_front();
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut requests = waiting.iter();
        if let Some(at) = requests.position(|(sent, _)| is_answer(&version, &buffer[..n], sent))
            && let Some((_, begin)) = waiting.remove(at)
        {
            pings.received += 1;
            pings.us.push(u32::try_from(begin.elapsed().as_micros())?);
        }
    }
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
