//! Network interfaces: what sysfs tells, and the ioctls that change them.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use ferronic_guest_agent::Interface;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::Failure;

const CLASS: &str = "/sys/class/net";
const ETHERNET: &str = "1";

/// Every Ethernet interface, by name.
pub fn list() -> Result<Vec<Interface>, Failure> {
    let mut interfaces = Vec::new();
    for entry in fs::read_dir(CLASS)? {
        let path = entry?.path();
        if text(&path, "type") != ETHERNET {
            continue;
        }
        let pci = fs::canonicalize(path.join("device")).ok();
        interfaces.push(Interface {
            name: file_name(&path),
            mac: text(&path, "address"),
            // Reading it is an error while the interface is down.
            carrier: text(&path, "carrier") == "1",
            mtu: text(&path, "mtu").parse()?,
            // A virtio device lies between the interface and the function.
            pci: pci.and_then(|device| {
                device
                    .ancestors()
                    .map(file_name)
                    .find(|name| name.contains(':'))
            }),
        });
    }
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(interfaces)
}

fn text(path: &Path, name: &str) -> String {
    fs::read_to_string(path.join(name))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A socket for the ioctls of interfaces.
pub fn control() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::INET, SocketType::DGRAM, None)?)
}

/// A request about `interface`.
pub fn request(interface: &str) -> Result<libc::ifreq, Failure> {
    // SAFETY: all zeroes is a value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.as_bytes();
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(format!("{interface:?} is no name of an interface").into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// An ioctl about an interface.
pub fn ioctl(
    socket: &OwnedFd,
    number: libc::c_ulong,
    request: &mut libc::ifreq,
    what: &str,
) -> Result<(), Failure> {
    // SAFETY: every number used here takes an `ifreq` that holds no pointer.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), number, request) };
    if result < 0 {
        return Err(format!("{what}: {}", io::Error::last_os_error()).into());
    }
    Ok(())
}

/// Gives the interface an address and takes it up.
pub fn up(interface: &str, address: IpAddr, prefix: u8) -> Result<(), Failure> {
    let socket = control()?;
    match address {
        IpAddr::V4(address) => {
            set_ipv4(&socket, interface, address, prefix)?;
            set_flags(&socket, interface, true)
        }
        IpAddr::V6(address) => {
            // The kernel forgets those of an interface that is down.
            set_flags(&socket, interface, true)?;
            add_ipv6(interface, address, prefix)
        }
    }
}

fn set_ipv4(
    socket: &OwnedFd,
    interface: &str,
    address: Ipv4Addr,
    prefix: u8,
) -> Result<(), Failure> {
    let mask = u32::MAX
        .checked_shl(32_u32.saturating_sub(prefix.into()))
        .unwrap_or(0);
    for (number, value, what) in [
        (libc::SIOCSIFADDR, address, "setting the address"),
        (
            libc::SIOCSIFNETMASK,
            Ipv4Addr::from(mask),
            "setting the mask",
        ),
    ] {
        let mut request = request(interface)?;
        // SAFETY: all zeroes is a value of this plain C structure.
        let mut target: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        target.sin_family = libc::AF_INET as libc::sa_family_t;
        target.sin_addr.s_addr = u32::from_ne_bytes(value.octets());
        // SAFETY: both are plain structures of 16 bytes; an address of any family fits.
        request.ifr_ifru.ifru_addr =
            unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(target) };
        ioctl(socket, number, &mut request, what)?;
    }
    Ok(())
}

fn add_ipv6(interface: &str, address: Ipv6Addr, prefix: u8) -> Result<(), Failure> {
    // Nobody else is on this wire: the address is used at once, without looking for its owner.
    for who in ["all", interface] {
        fs::write(format!("/proc/sys/net/ipv6/conf/{who}/accept_dad"), "0")?;
    }
    let request = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr {
            s6_addr: address.octets(),
        },
        ifr6_prefixlen: prefix.into(),
        ifr6_ifindex: index(interface)?,
    };
    let socket = socket(AddressFamily::INET6, SocketType::DGRAM, None)?;
    // SAFETY: for a socket of this family the number takes an `in6_ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR, &request) };
    let error = io::Error::last_os_error();
    if result < 0 && error.kind() != io::ErrorKind::AlreadyExists {
        return Err(format!("adding {address}: {error}").into());
    }
    Ok(())
}

/// The number of the interface.
pub fn index(interface: &str) -> Result<libc::c_int, Failure> {
    let mut request = request(interface)?;
    ioctl(
        &control()?,
        libc::SIOCGIFINDEX,
        &mut request,
        "looking for the interface",
    )?;
    // SAFETY: the kernel just filled the index.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex })
}

/// Takes the interface up, with the addresses that it has.
pub fn raise(interface: &str) -> Result<(), Failure> {
    set_flags(&control()?, interface, true)
}

/// Takes the interface down.
pub fn down(interface: &str) -> Result<(), Failure> {
    set_flags(&control()?, interface, false)
}

fn set_flags(socket: &OwnedFd, interface: &str, up: bool) -> Result<(), Failure> {
    let bit = libc::IFF_UP as libc::c_short;
    let mut request = request(interface)?;
    ioctl(
        socket,
        libc::SIOCGIFFLAGS,
        &mut request,
        "reading the flags",
    )?;
    // SAFETY: the kernel just filled the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = if up { flags | bit } else { flags & !bit };
    ioctl(
        socket,
        libc::SIOCSIFFLAGS,
        &mut request,
        "setting the flags",
    )
}

/// Sets the MTU.
pub fn set_mtu(interface: &str, mtu: u32) -> Result<(), Failure> {
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_mtu = i32::try_from(mtu)?;
    ioctl(
        &control()?,
        libc::SIOCSIFMTU,
        &mut request,
        "setting the MTU",
    )
}
