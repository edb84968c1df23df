//! A network namespace and interfaces of a test's own.

/// Gives the calling thread, and what it starts from now on, a network of its own.
pub fn private_network() -> Result<(), String> {
    // SAFETY: changes only the namespace of the calling thread, which is the test's own.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("no network namespace of our own: {error}"));
    }
    Ok(())
}

/// Gives the interface an address and sets it up, in the network namespace of this thread.
pub fn configure(name: &str, address: [u8; 4]) -> std::io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let ioctl = |number: libc::c_ulong, fill: &dyn Fn(&mut libc::ifreq)| {
        // SAFETY: all zeroes is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
            *to = *from as libc::c_char;
        }
        fill(&mut request);
        // SAFETY: the descriptor is open; these calls read one ifreq.
        let result = unsafe {
            libc::ioctl(
                std::os::fd::AsRawFd::as_raw_fd(&socket),
                number as _,
                &mut request,
            )
        };
        if result < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    };
    let inet = |bytes: [u8; 4]| {
        let mut data = [0; 14];
        data[2..6].copy_from_slice(&bytes);
        libc::sockaddr {
            sa_family: libc::AF_INET as libc::sa_family_t,
            sa_data: data.map(|b| b as libc::c_char),
        }
    };
    ioctl(libc::SIOCSIFADDR, &|r| {
        r.ifr_ifru.ifru_addr = inet(address);
    })?;
    ioctl(libc::SIOCSIFNETMASK, &|r| {
        r.ifr_ifru.ifru_netmask = inet([255, 255, 255, 0]);
    })?;
    ioctl(libc::SIOCSIFFLAGS, &|r| {
        r.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    })
}
