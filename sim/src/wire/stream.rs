//! A unix stream socket with frames in the framing of QEMU's `-netdev stream`: a length of four
//! bytes, big-endian, before each frame.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::{RxFrame, Wire, spec::WireError};

/// Longest frame that is believed; a longer one means that the framing is lost.
const MAX_FRAME: usize = 65_536 + 18;
/// Frames towards the card, and bytes towards the peer, that wait at most.
const MAX_WAITING: usize = 4096;
const MAX_UNSENT: usize = 4 << 20;

enum Peer {
    /// Nobody connected yet.
    Waiting(UnixListener),
    Connected(UnixStream),
    Gone,
}

/// A peer in another process. Connects if something listens at the path, else listens there.
pub struct StreamWire {
    peer: Peer,
    listener: Option<UnixListener>,
    path: Option<PathBuf>,
    input: Vec<u8>,
    output: VecDeque<u8>,
    frames: VecDeque<RxFrame>,
}

impl StreamWire {
    /// Connects or listens, by what is found at `path`.
    pub fn open(path: &Path) -> Result<Self, WireError> {
        let context = |e| WireError::io(format!("the stream wire at {}", path.display()), e);
        match UnixStream::connect(path) {
            Ok(stream) => Self::connected(stream).map_err(context),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                if e.kind() == ErrorKind::ConnectionRefused {
                    // A socket that nobody listens at any more.
                    std::fs::remove_file(path).map_err(context)?;
                }
                let listener = UnixListener::bind(path).map_err(context)?;
                listener.set_nonblocking(true).map_err(context)?;
                let accepting = listener.try_clone().map_err(context)?;
                let mut wire = Self::with(Peer::Waiting(listener));
                wire.listener = Some(accepting);
                wire.path = Some(path.to_path_buf());
                Ok(wire)
            }
            Err(e) => Err(context(e)),
        }
    }

    /// Takes a connection that exists.
    pub fn connected(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::with(Peer::Connected(stream)))
    }

    fn with(peer: Peer) -> Self {
        Self {
            peer,
            listener: None,
            path: None,
            input: Vec::new(),
            output: VecDeque::new(),
            frames: VecDeque::new(),
        }
    }

    fn disconnect(&mut self, why: &str) {
        log::info!("the peer of the stream wire is gone: {why}");
        self.input.clear();
        self.output.clear();
        self.peer = match self.listener.as_ref().map(UnixListener::try_clone) {
            Some(Ok(listener)) => Peer::Waiting(listener),
            _ => Peer::Gone,
        };
    }

    /// Cuts complete frames out of what was received; false if the framing is lost.
    fn parse(&mut self) -> bool {
        let mut at = 0;
        while let Some((length, rest)) = self.input[at..].split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            if length == 0 || length > MAX_FRAME {
                return false;
            }
            let Some(frame) = rest.get(..length) else {
                break;
            };
            if self.frames.len() < MAX_WAITING {
                self.frames.push_back(RxFrame {
                    data: frame.to_vec(),
                    abort: false,
                });
            }
            at += 4 + length;
        }
        self.input.drain(..at);
        true
    }

    fn receive(&mut self) -> Result<(), String> {
        let mut buffer = [0; 65_536];
        // What the card does not take yet stays in the socket.
        while self.frames.len() < MAX_WAITING {
            let Peer::Connected(stream) = &mut self.peer else {
                return Ok(());
            };
            match stream.read(&mut buffer) {
                Ok(0) => return Err("it closed the connection".to_owned()),
                Ok(n) => {
                    self.input.extend_from_slice(&buffer[..n]);
                    if !self.parse() {
                        return Err("a frame length that cannot be: framing lost".to_owned());
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    fn transmit(&mut self) -> Result<(), String> {
        while !self.output.is_empty() {
            let Peer::Connected(stream) = &mut self.peer else {
                return Ok(());
            };
            match stream.write(self.output.as_slices().0) {
                Ok(n) => drop(self.output.drain(..n)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }
}

impl Wire for StreamWire {
    fn next_frame(&mut self, _now: u64) -> Option<RxFrame> {
        self.frames.pop_front()
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.frames.front().map(|_| now)
    }

    fn sent(&mut self, _now: u64, frame: &[u8], aborted: bool) {
        let connected = matches!(self.peer, Peer::Connected(_));
        if aborted || !connected || self.output.len() + frame.len() > MAX_UNSENT {
            return;
        }
        self.output.extend((frame.len() as u32).to_be_bytes());
        self.output.extend(frame);
        if let Err(why) = self.transmit() {
            self.disconnect(&why);
        }
    }

    fn restart(&mut self) {
        self.frames.clear();
    }

    fn poll(&mut self) -> io::Result<()> {
        if let Peer::Waiting(listener) = &self.peer {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    self.peer = Peer::Connected(stream);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        if let Err(why) = self.receive().and_then(|()| self.transmit()) {
            self.disconnect(&why);
        }
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.peer {
            Peer::Waiting(listener) => Some(listener.as_fd()),
            // A full queue is emptied by the card, not by the socket.
            Peer::Connected(stream) => (self.frames.len() < MAX_WAITING).then_some(stream.as_fd()),
            Peer::Gone => None,
        }
    }
}

impl Drop for StreamWire {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_pass_in_qemu_framing_however_they_are_cut() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let mut wire = StreamWire::connected(ours).expect("wire");
        theirs.write_all(&[0, 0, 0, 3, 1, 2]).expect("write");
        wire.poll().expect("poll");
        assert!(wire.next_frame(0).is_none());
        theirs.write_all(&[3, 0, 0, 0, 1, 9]).expect("write");
        wire.poll().expect("poll");
        assert_eq!(wire.next_frame(0).map(|f| f.data), Some(vec![1, 2, 3]));
        assert_eq!(wire.next_frame(0).map(|f| f.data), Some(vec![9]));
        wire.sent(0, &[7; 5], false);
        let mut back = [0; 9];
        theirs.read_exact(&mut back).expect("read");
        assert_eq!(back, [0, 0, 0, 5, 7, 7, 7, 7, 7]);
    }

    #[test]
    fn lost_framing_ends_the_connection() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let mut wire = StreamWire::connected(ours).expect("wire");
        theirs.write_all(&[0xff; 8]).expect("write");
        wire.poll().expect("poll");
        assert!(wire.fd().is_none());
        wire.sent(0, &[0; 60], false);
    }

    #[test]
    fn a_path_where_nobody_listens_is_listened_at() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("wire");
        let mut first = StreamWire::open(&path).expect("listen");
        let mut second = StreamWire::open(&path).expect("connect");
        first.poll().expect("accept");
        second.sent(0, &[1; 60], false);
        first.poll().expect("read");
        assert_eq!(first.next_frame(0).map(|f| f.data.len()), Some(60));
    }
}
