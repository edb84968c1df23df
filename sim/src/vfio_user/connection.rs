//! One client's socket: whole messages in, replies out.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::protocol::{HEADER, Header, MAX_FDS, MAX_MESSAGE};

/// A message of the client.
#[derive(Debug)]
pub struct Message {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub payload: Vec<u8>,
    /// Descriptors that came with it.
    pub fds: Vec<OwnedFd>,
    /// It was longer than [`MAX_MESSAGE`] (the payload is gone), or brought too many descriptors.
    pub too_long: bool,
}

/// The socket, read without waiting.
pub struct Connection {
    stream: UnixStream,
    head: [u8; HEADER],
    have: usize,
    header: Option<Header>,
    payload: Vec<u8>,
    /// Bytes of a message that is too long, still to be thrown away.
    skip: usize,
    fds: Vec<OwnedFd>,
    too_long: bool,
}

/// What there was to read.
#[derive(Debug)]
pub enum Received {
    /// A whole message.
    Message(Message),
    /// Nothing more for now.
    Nothing,
    /// The client is gone.
    Closed,
}

impl Connection {
    /// Takes a connection over.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            head: [0; HEADER],
            have: 0,
            header: None,
            payload: Vec::new(),
            skip: 0,
            fds: Vec::new(),
            too_long: false,
        })
    }

    /// The next message. An error means that the connection cannot be used any more.
    ///
    /// Header and payload are read by calls of their own, so that a read never reaches into the
    /// next message and descriptors cannot be taken for those of another.
    pub fn receive(&mut self) -> io::Result<Received> {
        loop {
            let Some(header) = self.header else {
                let mut head = self.head;
                let Some(n) = self.read(&mut head[self.have..])? else {
                    return Ok(Received::Nothing);
                };
                if n == 0 {
                    return Ok(Received::Closed);
                }
                self.head = head;
                self.have += n;
                if self.have == HEADER {
                    self.begin()?;
                }
                continue;
            };
            let whole = header.size as usize - HEADER;
            if self.skip > 0 {
                let mut waste = [0; 4096];
                let here = self.skip.min(waste.len());
                match self.read(&mut waste[..here])? {
                    None => return Ok(Received::Nothing),
                    Some(0) => return Ok(Received::Closed),
                    Some(n) => self.skip -= n,
                }
            } else if !self.too_long_payload(&header) && self.have - HEADER < whole {
                let mut payload = std::mem::take(&mut self.payload);
                let got = self.read(&mut payload[self.have - HEADER..]);
                self.payload = payload;
                match got? {
                    None => return Ok(Received::Nothing),
                    Some(0) => return Ok(Received::Closed),
                    Some(n) => self.have += n,
                }
            } else {
                return Ok(Received::Message(self.finish(header)));
            }
        }
    }

    fn too_long_payload(&self, header: &Header) -> bool {
        header.size as usize > MAX_MESSAGE
    }

    fn begin(&mut self) -> io::Result<()> {
        let header = Header::parse(&self.head);
        let size = header.size as usize;
        if size < HEADER {
            // Where the next message begins cannot be known.
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a message of {size} bytes, less than its header"),
            ));
        }
        if self.too_long_payload(&header) {
            self.too_long = true;
            self.skip = size - HEADER;
        } else {
            self.payload.resize(size - HEADER, 0);
        }
        self.header = Some(header);
        Ok(())
    }

    fn finish(&mut self, header: Header) -> Message {
        self.header = None;
        self.have = 0;
        Message {
            header,
            payload: std::mem::take(&mut self.payload),
            fds: std::mem::take(&mut self.fds),
            too_long: std::mem::take(&mut self.too_long),
        }
    }

    /// Reads into `buffer` and keeps descriptors. `None`: nothing there yet; 0: end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let result = recvmsg(
            &self.stream,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        if self.fds.len() > MAX_FDS {
            self.fds.clear();
            self.too_long = true;
        }
        match result {
            Ok(got) => {
                if got.flags.contains(rustix::net::ReturnFlags::CTRUNC) {
                    self.too_long = true;
                }
                Ok(Some(got.bytes))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            // The client died: its end was reset rather than closed.
            Err(rustix::io::Errno::CONNRESET) => Ok(Some(0)),
            Err(e) => Err(e.into()),
        }
    }

    /// Sends a reply; waits while the socket is full, but no longer than a client may take.
    pub fn send(&mut self, mut data: &[u8]) -> io::Result<()> {
        const PATIENCE: rustix::event::Timespec = rustix::event::Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        while !data.is_empty() {
            match rustix::net::send(&self.stream, data, rustix::net::SendFlags::NOSIGNAL) {
                Ok(n) => data = &data[n..],
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.stream, PollFlags::OUT)];
                    if poll(&mut fds, Some(&PATIENCE))? == 0 {
                        return Err(io::Error::new(
                            io::ErrorKind::TimedOut,
                            "the client does not read its replies",
                        ));
                    }
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
