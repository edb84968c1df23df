//! A vfio-user client that sends anything, right or wrong.
#![allow(dead_code)] // each test program uses a part of it

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const DEVICE_GET_INFO: u16 = 4;
    pub const REGION_INFO: u16 = 5;
    pub const IRQ_INFO: u16 = 7;
    pub const SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DEVICE_RESET: u16 = 13;
}

/// How a command was answered. `Done`: without payload, or with one that does not matter.
#[derive(Debug, PartialEq)]
pub enum Reply {
    Done,
    Error(Errno),
    Data(Vec<u8>),
}

impl Reply {
    pub fn ok(self) -> Vec<u8> {
        match self {
            Self::Done => Vec::new(),
            Self::Data(data) => data,
            Self::Error(error) => panic!("refused: {error}"),
        }
    }

    fn done(self) -> Self {
        match self {
            Self::Data(_) => Self::Done,
            other => other,
        }
    }
}

pub struct Client {
    stream: UnixStream,
    id: u16,
}

pub fn access(offset: u64, region: u32, count: u32) -> Vec<u8> {
    let mut payload = offset.to_ne_bytes().to_vec();
    payload.extend(region.to_ne_bytes());
    payload.extend(count.to_ne_bytes());
    payload
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn word(data: &[u8], index: usize) -> u32 {
    let bytes = data[index * 4..index * 4 + 4]
        .try_into()
        .expect("four bytes");
    u32::from_ne_bytes(bytes)
}

impl Client {
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("connect");
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).expect("timeout");
        Self { stream, id: 0 }
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("write");
    }

    /// True if the server closes the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }

    fn send(&mut self, number: u16, flags: u32, payload: &[u8], fds: &[&OwnedFd]) {
        self.id = self.id.wrapping_add(1);
        let mut message = self.id.to_ne_bytes().to_vec();
        message.extend(number.to_ne_bytes());
        message.extend(words(&[(16 + payload.len()) as u32, flags, 0]));
        message.extend(payload);
        let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        let buffer = [IoSlice::new(&message)];
        let sent = sendmsg(&self.stream, &buffer, &mut control, SendFlags::empty()).expect("send");
        self.stream.write_all(&message[sent..]).expect("write");
    }

    pub fn call(&mut self, number: u16, payload: &[u8], fds: &[&OwnedFd]) -> Reply {
        self.send(number, 0, payload, fds);
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).expect("a reply");
        assert_eq!(header[..2], self.id.to_ne_bytes());
        assert_eq!(header[2..4], number.to_ne_bytes());
        let mut data = vec![0; word(&header, 1) as usize - 16];
        self.stream.read_exact(&mut data).expect("a payload");
        let flags = word(&header, 2);
        assert_eq!(flags & 0xf, 1);
        if flags & 0x20 != 0 {
            return Reply::Error(Errno::from_raw_os_error(word(&header, 3) as i32));
        }
        if data.is_empty() {
            Reply::Done
        } else {
            Reply::Data(data)
        }
    }

    pub fn negotiate(&mut self) {
        let mut payload = vec![0, 0, 0, 0];
        payload.extend(br#"{"capabilities":{"max_msg_fds":8}}"#);
        payload.push(0);
        let reply = self.call(command::VERSION, &payload, &[]).ok();
        assert_eq!(reply[..4], [0; 4]);
        assert_eq!(reply.last(), Some(&0));
    }

    pub fn device_info(&mut self) -> [u32; 4] {
        let info = self
            .call(command::DEVICE_GET_INFO, &words(&[16, 0, 0, 0]), &[])
            .ok();
        [0, 1, 2, 3].map(|i| word(&info, i))
    }

    pub fn region_size(&mut self, index: u32) -> u64 {
        let mut payload = words(&[32, 0, index, 0]);
        payload.extend([0; 16]);
        let info = self.call(command::REGION_INFO, &payload, &[]).ok();
        u64::from(word(&info, 4)) | u64::from(word(&info, 5)) << 32
    }

    pub fn irq_count(&mut self, index: u32) -> u32 {
        let payload = words(&[16, 0, index, 0]);
        word(&self.call(command::IRQ_INFO, &payload, &[]).ok(), 3)
    }

    pub fn read(&mut self, region: u32, offset: u64, count: u32) -> Vec<u8> {
        let payload = access(offset, region, count);
        let mut data = self.call(command::REGION_READ, &payload, &[]).ok();
        data.split_off(16)
    }

    pub fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        let mut payload = access(offset, region, data.len() as u32);
        payload.extend(data);
        self.call(command::REGION_WRITE, &payload, &[]).ok();
    }

    pub fn post(&mut self, region: u32, offset: u64, data: &[u8]) {
        let mut payload = access(offset, region, data.len() as u32);
        payload.extend(data);
        self.send(command::REGION_WRITE, 0x10, &payload, &[]);
    }

    pub fn map(
        &mut self,
        address: u64,
        size: u64,
        offset: u64,
        flags: u32,
        fd: Option<&OwnedFd>,
    ) -> Reply {
        let mut payload = words(&[32, flags]);
        for value in [offset, address, size] {
            payload.extend(value.to_ne_bytes());
        }
        let fds: Vec<_> = fd.into_iter().collect();
        self.call(command::DMA_MAP, &payload, &fds)
    }

    pub fn unmap(&mut self, address: u64, size: u64) -> Reply {
        let mut payload = words(&[24, 0]);
        payload.extend(address.to_ne_bytes());
        payload.extend(size.to_ne_bytes());
        self.call(command::DMA_UNMAP, &payload, &[]).done()
    }

    pub fn set_irqs(
        &mut self,
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
        fds: &[&OwnedFd],
    ) -> Reply {
        let payload = words(&[20, flags, index, start, count]);
        self.call(command::SET_IRQS, &payload, fds)
    }

    /// Offset of a capability in configuration space.
    pub fn capability(&mut self, id: u8) -> u8 {
        let config = self.read(7, 0, 256);
        let mut at = config[0x34];
        while at != 0 {
            if config[usize::from(at)] == id {
                return at;
            }
            at = config[usize::from(at) + 1];
        }
        panic!("no capability {id:#x}");
    }
}
