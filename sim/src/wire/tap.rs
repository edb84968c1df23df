//! A TAP interface of the host.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::{RxFrame, Wire, spec::WireError};

/// `_IOW('T', 202, int)`.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const MAX_FRAME: usize = 65_536;

/// The interface. Frames that the host sends on it go to the card.
pub struct TapWire {
    tap: File,
    waiting: Option<RxFrame>,
    dropped: u64,
}

impl TapWire {
    /// Creates the interface `name`, or takes it if it exists and belongs to this user.
    pub fn open(name: &str) -> Result<Self, WireError> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
            return Err(WireError::Option {
                option: format!("tap:{name}"),
                hint: "an interface name has 1 to 15 characters",
            });
        }
        let tap = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|e| WireError::io("opening /dev/net/tun (is the module tun there?)", e))?;
        // SAFETY: all zeroes is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, TUNSETIFF reads and writes one ifreq.
        let result = unsafe { libc::ioctl(tap.as_raw_fd(), TUNSETIFF as _, &mut request) };
        if result < 0 {
            let what = format!(
                "making the TAP interface {name}; it takes root, or an interface that exists \
                 already: `ip tuntap add dev {name} mode tap user $USER`"
            );
            return Err(WireError::io(what, io::Error::last_os_error()));
        }
        Ok(Self {
            tap,
            waiting: None,
            dropped: 0,
        })
    }
}

impl Wire for TapWire {
    fn next_frame(&mut self, _now: u64) -> Option<RxFrame> {
        let frame = self.waiting.take();
        if let Err(error) = self.poll() {
            log::warn!("reading from the TAP interface: {error}");
        }
        frame
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.waiting.as_ref().map(|_| now)
    }

    fn sent(&mut self, _now: u64, frame: &[u8], aborted: bool) {
        if aborted {
            return;
        }
        if let Err(error) = self.tap.write(frame) {
            // An interface that is down, or a full queue: the frame is lost, as on a cable.
            self.dropped += 1;
            log::debug!(
                "the TAP interface took no frame ({} so far): {error}",
                self.dropped
            );
        }
    }

    fn restart(&mut self) {
        self.waiting = None;
    }

    fn poll(&mut self) -> io::Result<()> {
        if self.waiting.is_some() {
            return Ok(());
        }
        let mut buffer = [0; MAX_FRAME];
        match self.tap.read(&mut buffer) {
            Ok(n) => {
                self.waiting = Some(RxFrame {
                    data: buffer[..n].to_vec(),
                    abort: false,
                });
                Ok(())
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.waiting.is_none().then(|| self.tap.as_fd())
    }
}
