//! Echo requests, one after the other.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use ferronic_guest_agent::Pings;
use ferronic_transfer::Pattern;
use socket2::{Domain, Protocol, Socket, Type};

use crate::Failure;

const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const HEADER: usize = 8;

/// Sends `count` requests of `size` bytes each and waits for the answer to each.
pub fn ping(to: Ipv4Addr, count: u32, size: usize, timeout_ms: u64) -> Result<Pings, Failure> {
    let mut socket = Socket::new(
        Domain::IPV4,
        Type::from(libc::SOCK_RAW),
        Some(Protocol::ICMPV4),
    )?;
    let target = SocketAddrV4::new(to, 0).into();
    let identifier = std::process::id() as u16 ^ size as u16;
    let mut pings = Pings {
        sent: 0,
        received: 0,
        us: Vec::new(),
    };
    let mut buffer = vec![0; 65_536];
    for sequence in 0..count {
        let message = message(identifier, sequence as u16, size);
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
            if is_answer(&buffer[..n], &message) {
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

fn message(identifier: u16, sequence: u16, size: usize) -> Vec<u8> {
    let mut message = vec![0; HEADER + size];
    message[0] = REQUEST;
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    Pattern::new(sequence.into()).fill(&mut message[HEADER..]);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// An IP packet that answers `request`: all bytes but type and checksum are the same.
fn is_answer(packet: &[u8], request: &[u8]) -> bool {
    let Some(first) = packet.first() else {
        return false;
    };
    let Some(message) = packet.get(usize::from(first & 0xf) * 4..) else {
        return false;
    };
    message.len() == request.len() && message[0] == REPLY && message[4..] == request[4..]
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
