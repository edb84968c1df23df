//! Datagrams that the kernel, or the card, cuts of one buffer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use ferronic_guest_agent::Transfer;
use ferronic_transfer::{Pattern, Sum, hex};

use crate::Failure;

/// How long the next datagram may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends `bytes` of the pattern in datagrams of `segment` bytes to an echo.
pub fn segments(
    to: IpAddr,
    port: u16,
    bytes: usize,
    segment: u16,
    seed: u64,
) -> Result<Transfer, Failure> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(SocketAddr::new(to, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let size = libc::c_int::from(segment);
    // SAFETY: the option takes an int, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const size).cast(),
            size_of_val(&size) as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(format!(
            "segments of {segment} bytes: {}",
            io::Error::last_os_error()
        )
        .into());
    }
    let mut data = vec![0; bytes];
    Pattern::new(seed).fill(&mut data);
    let begin = Instant::now();
    let sent = socket.send(&data)?;
    let (mut received, mut got) = (Sum::default(), 0);
    let mut datagram = vec![0; 65_536];
    while got < sent {
        match socket.recv(&mut datagram) {
            Ok(n) => {
                received.add(&datagram[..n]);
                got += n;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let mut whole = Sum::default();
    whole.add(&data);
    Ok(Transfer {
        bytes: got as u64,
        sent: hex(&whole.finish()),
        received: hex(&received.finish()),
        seconds,
    })
}
