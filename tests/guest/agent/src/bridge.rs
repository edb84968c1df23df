//! Bridges of the kernel.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use crate::Failure;
use crate::interface::{control, index, ioctl, raise, request};

/// `SIOCBRADDBR` and `SIOCBRADDIF` of linux/sockios.h.
const ADD_BRIDGE: libc::c_ulong = 0x89a0;
const ADD_PORT: libc::c_ulong = 0x89a2;

/// Makes the bridge `name` of `ports`, and takes everything up. It looks for no multicast groups, or it
/// would send frames of its own.
pub fn make(name: &str, ports: &[String]) -> Result<(), Failure> {
    let socket = control()?;
    // Its argument is the name alone, which a request begins with.
    let mut bridge = request(name)?;
    // SAFETY: the kernel reads the 16 bytes of the name from it, and writes nothing.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), ADD_BRIDGE, &raw mut bridge) };
    let error = io::Error::last_os_error();
    if result < 0 {
        return Err(format!("adding the bridge {name}: {error}").into());
    }
    let snooping = format!("/sys/class/net/{name}/bridge/multicast_snooping");
    fs::write(&snooping, "0").map_err(|error| format!("{snooping}: {error}"))?;
    for port in ports {
        let mut add = request(name)?;
        add.ifr_ifru.ifru_ifindex = index(port)?;
        let what = format!("adding {port} to {name}");
        ioctl(&socket, ADD_PORT, &mut add, &what)?;
        raise(port)?;
    }
    raise(name)
}
