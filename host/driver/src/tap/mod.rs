//! A bridge to a TAP interface: the card becomes a network interface of Linux.
//!
//! Frames cross with their virtio headers, which TAP and card have in common: units that the card or
//! the driver merged reach the host's stack whole, and what the stack leaves to its interface,
//! checksums and segmentation, is asked of the card. [`Tap`] is the interface, [`Bridge`] moves
//! frames.

mod bridge;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ferronic_spec::Features;
use ferronic_spec::net::HEADER_LEN;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{self, Opcode, Setter, Updater, opcode};
use thiserror::Error;

pub use bridge::{Bridge, BridgeStats};

/// The control device of TUN and TAP.
const CONTROL: &str = "/dev/net/tun";
/// Bytes of an interface's name, with the final NUL.
const NAME_LEN: usize = 16;

// linux/if_tun.h.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
const TUNSETOFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);
const TUNSETVNETHDRSZ: Opcode = opcode::write::<i32>(b'T', 216);
const TUNSETQUEUE: Opcode = opcode::write::<i32>(b'T', 217);
const TUNSETVNETLE: Opcode = opcode::write::<i32>(b'T', 220);
/// linux/sockios.h; TAP takes it, too.
const SIOCSIFHWADDR: Opcode = 0x8924;
const IFF_TAP: i16 = 0x0002;
const IFF_MULTI_QUEUE: i16 = 0x0100;
const IFF_ATTACH_QUEUE: i16 = 0x0200;
const IFF_DETACH_QUEUE: i16 = 0x0400;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const TUN_F_CSUM: usize = 0x01;
const TUN_F_TSO4: usize = 0x02;
const TUN_F_TSO6: usize = 0x04;
const TUN_F_TSO_ECN: usize = 0x08;
const ARPHRD_ETHER: u16 = 1;

/// `struct ifreq` with flags, or with an address.
#[repr(C)]
#[derive(Clone, Copy)]
struct IfReq {
    name: [u8; NAME_LEN],
    /// Flags, or the family of the address.
    first: i16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<IfReq>() == 40);

/// Why there is no interface.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TapError {
    /// A name that no interface can have.
    #[error("`{0}` is no name of an interface: 1 to 15 characters, no space and no slash")]
    Name(String),
    /// TUN/TAP cannot be used.
    #[error(
        "{CONTROL} cannot be opened: {0}; is the module tun there (`modprobe tun`), and may this \
         user read and write the file?"
    )]
    Control(io::Error),
    /// The interface cannot be made or taken.
    #[error(
        "the TAP interface {name} cannot be had: {source}; it takes root, or an interface that \
         was made for this user: `ip tuntap add dev {name} mode tap user $USER`"
    )]
    Interface {
        /// Its name.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another program has it.
    #[error(
        "the TAP interface {0} is in use by another program, or is none (`ip -d link show {0}`); \
         end that, or give another name"
    )]
    Busy(String),
    /// The kernel does not do what is needed.
    #[error("the TAP interface {name} does not take {what}: {source}; a newer kernel is needed")]
    Setting {
        /// Its name.
        name: String,
        /// What was asked for.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Frames cannot be passed to it or taken from it.
    #[error("the TAP interface failed: {0}; was it removed?")]
    Gone(io::Error),
}

/// A TAP interface whose frames begin with a virtio header of 12 bytes.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
}

impl Tap {
    /// Makes the interface `name`, or takes it if it exists and belongs to this user. One that is
    /// made here vanishes with the value.
    ///
    /// Of `features`, what was negotiated with the card, those for transmission are what the host's
    /// stack may ask for.
    ///
    /// # Errors
    /// With what to do about it.
    pub fn open(name: &str, features: Features) -> Result<Self, TapError> {
        let tap = Self::attach(name, 0)?;
        tap.set_up(features)?;
        Ok(tap)
    }

    /// The same with so many queues, for as many threads: the host's stack spreads flows over them, and
    /// sends a flow by the queue by which it came. One that exists must have been made for it
    /// (`ip tuntap add ... multi_queue`), unless one queue is asked for.
    ///
    /// # Errors
    /// As [`Tap::open`].
    pub fn open_queues(name: &str, features: Features, count: u16) -> Result<Vec<Self>, TapError> {
        let flags = if count > 1 { IFF_MULTI_QUEUE } else { 0 };
        let mut queues: Vec<Self> = Vec::new();
        for _ in 0..count {
            // The kernel has completed a name like `tap%d`.
            let name = queues.first().map_or(name, |first| &first.name).to_owned();
            let tap = Self::attach(&name, flags)?;
            tap.set_up(features)?;
            queues.push(tap);
        }
        Ok(queues)
    }

    fn attach(name: &str, more: i16) -> Result<Self, TapError> {
        let mut request = named(name)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(CONTROL, flags, Mode::empty())
            .map_err(|e| TapError::Control(e.into()))?;
        request.first = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | more;
        // SAFETY: TUNSETIFF reads and writes one `struct ifreq`.
        let made = unsafe { ioctl::ioctl(&fd, Updater::<TUNSETIFF, IfReq>::new(&mut request)) };
        made.map_err(|e| match e {
            Errno::BUSY | Errno::INVAL => TapError::Busy(name.to_owned()),
            e => TapError::Interface {
                name: name.to_owned(),
                source: e.into(),
            },
        })?;
        // The kernel completes a name like `tap%d`.
        let end = request.name.iter().position(|byte| *byte == 0);
        let name = String::from_utf8_lossy(&request.name[..end.unwrap_or(NAME_LEN)]);
        Ok(Self {
            fd,
            name: name.into_owned(),
        })
    }

    /// The same queue once more, to change it while another thread moves its frames.
    ///
    /// # Errors
    /// [`TapError::Gone`] if there are no descriptors left.
    pub fn again(&self) -> Result<Self, TapError> {
        Ok(Self {
            fd: self.fd.try_clone().map_err(TapError::Gone)?,
            name: self.name.clone(),
        })
    }

    /// Whether the host's stack may send by this queue, of an interface that has several. What waits
    /// in a queue by which it no longer may is lost.
    ///
    /// # Errors
    /// When the kernel does not do it.
    pub fn set_attached(&self, attached: bool) -> Result<(), TapError> {
        let mut request = named(&self.name)?;
        request.first = if attached {
            IFF_ATTACH_QUEUE
        } else {
            IFF_DETACH_QUEUE
        };
        // SAFETY: TUNSETQUEUE reads one `struct ifreq`.
        match unsafe { ioctl::ioctl(&self.fd, Setter::<TUNSETQUEUE, IfReq>::new(request)) } {
            // It is so already.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(e) => Err(self.refused("another number of queues", e)),
        }
    }

    /// Something else that passes frames with virtio headers, a message each: a socket of packets,
    /// in the place of an interface. It must not block.
    pub fn over(fd: OwnedFd, name: &str) -> Self {
        Self {
            fd,
            name: name.to_owned(),
        }
    }

    fn set_up(&self, features: Features) -> Result<(), TapError> {
        let failed = |what| move |e: Errno| self.refused(what, e);
        // SAFETY: each reads one int.
        unsafe {
            let header = Setter::<TUNSETVNETHDRSZ, i32>::new(HEADER_LEN as i32);
            ioctl::ioctl(&self.fd, header).map_err(failed("virtio headers of 12 bytes"))?;
            if cfg!(target_endian = "big") {
                ioctl::ioctl(&self.fd, Setter::<TUNSETVNETLE, i32>::new(1))
                    .map_err(failed("little-endian virtio headers"))?;
            }
        }
        self.set_offloads(features)
    }

    fn refused(&self, what: &'static str, e: Errno) -> TapError {
        TapError::Setting {
            name: self.name.clone(),
            what,
            source: e.into(),
        }
    }

    /// Changes what the host's stack may ask for: of these, the features for transmission.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn set_offloads(&self, features: Features) -> Result<(), TapError> {
        let mut offloads = 0;
        for (feature, bit) in [
            (Features::CSUM, TUN_F_CSUM),
            (Features::HOST_TSO4, TUN_F_TSO4),
            (Features::HOST_TSO6, TUN_F_TSO6),
            (Features::HOST_ECN, TUN_F_TSO_ECN),
        ] {
            if features.contains(feature) {
                offloads |= bit;
            }
        }
        // SAFETY: the number itself is the argument.
        unsafe {
            ioctl::ioctl(
                &self.fd,
                ioctl::IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads),
            )
        }
        .map_err(|e| self.refused("the card's offloads", e))
    }

    /// Gives the interface an address, for instance the card's.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), TapError> {
        let mut request = named(&self.name)?;
        request.first = ARPHRD_ETHER as i16;
        request.rest[..6].copy_from_slice(&mac);
        // SAFETY: SIOCSIFHWADDR reads one `struct ifreq`.
        unsafe { ioctl::ioctl(&self.fd, Setter::<SIOCSIFHWADDR, IfReq>::new(request)) }.map_err(
            |e| TapError::Setting {
                name: self.name.clone(),
                what: "the card's address",
                source: e.into(),
            },
        )
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next frame of the host, with its header; `None` if there is none now.
    fn read(&self, bytes: &mut [u8]) -> Result<Option<usize>, TapError> {
        match rustix::io::read(&self.fd, bytes) {
            Ok(0) => Err(TapError::Gone(io::ErrorKind::UnexpectedEof.into())),
            Ok(len) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(e) => Err(TapError::Gone(e.into())),
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn named(name: &str) -> Result<IfReq, TapError> {
    let bytes = name.as_bytes();
    let bad = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/' || *byte == 0;
    if bytes.is_empty() || bytes.len() >= NAME_LEN || bytes.iter().any(bad) {
        return Err(TapError::Name(name.to_owned()));
    }
    let mut request = IfReq {
        name: [0; NAME_LEN],
        first: 0,
        rest: [0; 22],
    };
    request.name[..bytes.len()].copy_from_slice(bytes);
    Ok(request)
}
