//! Requests and replies on the socket.
//!
//! One request is under way at a time. A reply is believed only if its message id, command, type
//! and length fit; error replies become errors; late replies, and error replies to posted writes,
//! are logged and dropped. When the stream itself can no longer be followed, the connection is
//! given up.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::wire::{Header, Version, command, flags};
use crate::pci::PciError;

/// Largest reply that is believed.
const MAX_MESSAGE: u32 = 1 << 20;
/// Most file descriptors in one message, whatever the server says.
pub(super) const MAX_FDS: usize = 16;
/// What the client says of itself.
const CAPABILITIES: &str = r#"{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"migration":{"pgsize":4096}}}"#;

/// What the server said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerLimits {
    pub max_fds: usize,
    pub max_transfer: usize,
}

/// A connection to a vfio-user server.
pub(super) struct Client {
    connection: Mutex<Connection>,
    timeout: Duration,
}

struct Connection {
    stream: UnixStream,
    next_id: u16,
    /// Why nothing more can be read.
    lost: Option<&'static str>,
    /// The message being sent.
    message: Vec<u8>,
}

impl Client {
    /// Takes over a connected socket; `timeout` bounds each wait for the server.
    pub(super) fn new(stream: UnixStream, timeout: Duration) -> Result<Self, PciError> {
        stream
            .set_read_timeout(Some(timeout))
            .and_then(|()| stream.set_write_timeout(Some(timeout)))
            .map_err(|e| PciError::io("setting time-outs of the vfio-user socket", e))?;
        let connection = Connection {
            stream,
            next_id: 1,
            lost: None,
            message: Vec::new(),
        };
        Ok(Self {
            connection: Mutex::new(connection),
            timeout,
        })
    }

    /// Sends a command and returns the payload of its reply, at least a `T`.
    pub(super) fn request<T: FromBytes + KnownLayout + Immutable>(
        &self,
        what: &str,
        command: u16,
        payload: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(T, Vec<u8>), PciError> {
        let mut reply = self.exchange(what, command, payload, fds)?;
        let found = reply.len();
        let Ok((value, _)) = T::read_from_prefix(&reply) else {
            return Err(PciError::Protocol {
                what: what.into(),
                detail: format!("its reply has {found} bytes, {} are needed", size_of::<T>()),
            });
        };
        reply.drain(..size_of::<T>());
        Ok((value, reply))
    }

    fn exchange(
        &self,
        what: &str,
        command: u16,
        payload: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, PciError> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let id = connection.send(what, command, 0, payload, fds, self.timeout)?;
        connection.reply(what, id, command, self.timeout)
    }

    /// Sends a command that has no reply.
    pub(super) fn post(&self, what: &str, command: u16, payload: &[&[u8]]) -> Result<(), PciError> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connection
            .send(what, command, flags::NO_REPLY, payload, &[], self.timeout)
            .map(|_| ())
    }

    /// Agrees on the protocol version.
    pub(super) fn negotiate(&self) -> Result<ServerLimits, PciError> {
        let what = "agreeing on the vfio-user version";
        let mine = Version {
            major: 0.into(),
            minor: 1.into(),
        };
        let text = [CAPABILITIES.as_bytes(), b"\0"];
        let (version, json): (Version, _) = self.request(
            what,
            command::VERSION,
            &[mine.as_bytes(), text[0], text[1]],
            &[],
        )?;
        let protocol = |detail| PciError::Protocol {
            what: what.into(),
            detail,
        };
        if version.major.get() != 0 {
            return Err(protocol(format!(
                "the server speaks version {}.{}, this driver 0.x",
                version.major, version.minor
            )));
        }
        let json = json.strip_suffix(b"\0").unwrap_or(&json);
        let value: serde_json::Value = if json.is_empty() {
            serde_json::Value::Null
        } else {
            serde_json::from_slice(json)
                .map_err(|e| protocol(format!("its capabilities are not JSON: {e}")))?
        };
        let number = |name: &str, default: u64| {
            value
                .get("capabilities")
                .and_then(|c| c.get(name)?.as_u64())
                .unwrap_or(default)
        };
        let limits = ServerLimits {
            max_fds: number("max_msg_fds", 1).clamp(1, MAX_FDS as u64) as usize,
            max_transfer: number("max_data_xfer_size", 1 << 20).clamp(8, 1 << 19) as usize,
        };
        log::debug!("vfio-user server 0.{}: {limits:?}", version.minor);
        Ok(limits)
    }
}

impl Connection {
    fn lose(&mut self, why: &'static str) {
        self.lost = Some(why);
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn send(
        &mut self,
        what: &str,
        command: u16,
        flags: u32,
        payload: &[&[u8]],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<u16, PciError> {
        if let Some(why) = self.lost {
            return Err(PciError::Protocol {
                what: what.into(),
                detail: format!("the connection was given up: {why}; open the device again"),
            });
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let size = size_of::<Header>() + payload.iter().map(|p| p.len()).sum::<usize>();
        let header = Header {
            id: id.into(),
            command: command.into(),
            size: (size as u32).into(),
            flags: flags.into(),
            error: 0.into(),
        };
        self.message.clear();
        self.message.extend_from_slice(header.as_bytes());
        for part in payload {
            self.message.extend_from_slice(part);
        }
        log::trace!("vfio-user {what}: id {id} command {command}, {size} bytes");
        let message = std::mem::take(&mut self.message);
        let sent = self.send_bytes(&message, fds);
        self.message = message;
        match sent {
            Ok(()) => Ok(id),
            Err(e) => {
                self.lose("a message was sent only in part");
                Err(self.describe(what, e, timeout))
            }
        }
    }

    fn send_bytes(&self, mut bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other(
                "too many file descriptors for one message",
            ));
        }
        let mut first = true;
        while !bytes.is_empty() {
            // NOSIGNAL: a server that went away is an error, not the end of the process.
            let mut empty = SendAncillaryBuffer::default();
            let control = if first { &mut control } else { &mut empty };
            match sendmsg(
                &self.stream,
                &[IoSlice::new(bytes)],
                control,
                SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => {
                    first = false;
                    bytes = &bytes[sent..];
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn describe(&self, what: &str, e: io::Error, timeout: Duration) -> PciError {
        let what = what.to_owned();
        match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => PciError::Timeout {
                what,
                after: timeout,
            },
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => PciError::Disconnected { what },
            _ => PciError::Io { what, source: e },
        }
    }

    /// Reads the reply to message `id`, and returns its payload.
    fn reply(
        &mut self,
        what: &str,
        id: u16,
        command: u16,
        timeout: Duration,
    ) -> Result<Vec<u8>, PciError> {
        let start = Instant::now();
        loop {
            let (header, payload) = self.read_message(what, timeout)?;
            let kind = header.flags.get() & flags::TYPE;
            if kind == flags::REPLY && header.id.get() == id {
                return Self::accept(what, command, header, payload);
            }
            if kind == flags::REPLY {
                log::warn!(
                    "vfio-user: dropped a reply to message {} (command {}, errno {})",
                    header.id,
                    header.command,
                    header.error
                );
            } else {
                self.refuse(header)
                    .map_err(|e| self.describe("refusing a request of the server", e, timeout))?;
            }
            if start.elapsed() > timeout {
                return Err(PciError::Timeout {
                    what: what.into(),
                    after: timeout,
                });
            }
        }
    }

    fn accept(
        what: &str,
        command: u16,
        header: Header,
        payload: Vec<u8>,
    ) -> Result<Vec<u8>, PciError> {
        if header.flags.get() & flags::ERROR != 0 {
            // Some servers leave the number out.
            let source = match header.error.get() as i32 {
                0 => io::Error::other("the server gave no reason"),
                errno => io::Error::from_raw_os_error(errno),
            };
            return Err(PciError::Refused {
                what: what.into(),
                source,
            });
        }
        if header.command.get() != command {
            return Err(PciError::Protocol {
                what: what.into(),
                detail: format!("command {command} was answered as {}", header.command),
            });
        }
        Ok(payload)
    }

    /// A server may ask for memory that it cannot map. All of ours can be mapped.
    fn refuse(&mut self, request: Header) -> io::Result<()> {
        log::warn!(
            "vfio-user: refused the server's command {}",
            request.command
        );
        if request.flags.get() & flags::NO_REPLY != 0 {
            return Ok(());
        }
        let header = Header {
            size: (size_of::<Header>() as u32).into(),
            flags: (flags::REPLY | flags::ERROR).into(),
            error: (rustix::io::Errno::OPNOTSUPP.raw_os_error() as u32).into(),
            ..request
        };
        self.send_bytes(header.as_bytes(), &[])
    }

    fn read_message(
        &mut self,
        what: &str,
        timeout: Duration,
    ) -> Result<(Header, Vec<u8>), PciError> {
        let mut header = Header::default();
        self.read_exact(what, header.as_mut_bytes(), true, timeout)?;
        let size = header.size.get();
        if size < size_of::<Header>() as u32 || size > MAX_MESSAGE {
            self.lose("a message had an impossible length");
            return Err(PciError::Protocol {
                what: what.into(),
                detail: format!("a message says it has {size} bytes"),
            });
        }
        let mut payload = vec![0; size as usize - size_of::<Header>()];
        self.read_exact(what, &mut payload, false, timeout)?;
        Ok((header, payload))
    }

    /// `fresh`: nothing of this message was read yet, so that a time-out leaves the stream intact.
    fn read_exact(
        &mut self,
        what: &str,
        mut buf: &mut [u8],
        fresh: bool,
        timeout: Duration,
    ) -> Result<(), PciError> {
        let mut intact = fresh;
        while !buf.is_empty() {
            let failed = match self.stream.read(buf) {
                Ok(0) => {
                    intact = false;
                    io::ErrorKind::UnexpectedEof.into()
                }
                Ok(n) => {
                    buf = &mut buf[n..];
                    intact = false;
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            if !intact {
                self.lose("a message ended early");
            }
            return Err(self.describe(what, failed, timeout));
        }
        Ok(())
    }
}
