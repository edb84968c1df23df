//! Frames that go past the kernel's IP, as packet sockets let them.

use std::io;
use std::os::fd::AsRawFd;

use ferronic_transfer::Pattern;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::Failure;
use crate::interface::index;

/// `struct virtio_net_hdr` without the number of buffers: what such a socket takes before a frame.
const HEADER: usize = 10;

/// Sends a frame of `headers` and `payload` bytes of the pattern, with a virtio header before it that
/// tells what is still to be done: sums, and cutting into segments.
pub fn send(
    interface: &str,
    virtio: &[u8],
    headers: &[u8],
    payload: usize,
    seed: u64,
) -> Result<(), Failure> {
    let socket = socket(AddressFamily::PACKET, SocketType::RAW, None)?;
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VNET_HDR,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    check(result, "asking for virtio headers")?;
    // SAFETY: all zeroes is a value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_ifindex = index(interface)?;
    // SAFETY: the address outlives the call and has the length that is said.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    check(result, "binding to the interface")?;
    let header = virtio.get(..HEADER).ok_or("a virtio header is missing")?;
    let mut message = [header, headers].concat();
    let begin = message.len();
    message.resize(begin + payload, 0);
    Pattern::new(seed).fill(&mut message[begin..]);
    let sent = rustix::io::write(&socket, &message)?;
    if sent != message.len() {
        return Err(format!("{sent} of {} bytes were sent", message.len()).into());
    }
    Ok(())
}

fn check(result: libc::c_int, what: &str) -> Result<(), Failure> {
    if result < 0 {
        return Err(format!("{what}: {}", io::Error::last_os_error()).into());
    }
    Ok(())
}
