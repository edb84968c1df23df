//! The vfio-user client against a server of a few lines that can be told to misbehave.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ferronic::pci::vfio_user::VfioUserFunction;
use ferronic::pci::{PciError, PciFunction};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
const GET_INFO: u16 = 4;
const REGION_INFO: u16 = 5;
const IRQ_INFO: u16 = 7;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
const DMA_READ: u16 = 11;
const RESET: u16 = 13;

const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// A message as the server sees it.
struct Message {
    id: u16,
    command: u16,
    flags: u32,
    payload: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// What the server does with a message.
enum Answer {
    /// A reply with this payload.
    Reply(Vec<u8>),
    /// An error reply.
    Error(u32),
    /// These bytes, as they are.
    Raw(Vec<u8>),
    /// Nothing.
    Silence,
    /// Closes the connection.
    Close,
}

type Behaviour = fn(&Message) -> Answer;

fn message(id: u16, command: u16, flags: u32, error: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(id.to_le_bytes());
    bytes.extend(command.to_le_bytes());
    bytes.extend((16 + payload.len() as u32).to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(error.to_le_bytes());
    bytes.extend(payload);
    bytes
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn word(payload: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(payload[4 * index..4 * index + 4].try_into().unwrap())
}

/// A good server: 64 KiB of BAR 0, configuration space, 9 vectors.
fn good(message: &Message) -> Answer {
    if message.flags & NO_REPLY != 0 {
        return Answer::Silence;
    }
    let p = &message.payload;
    Answer::Reply(match message.command {
        VERSION => {
            let mut reply = vec![0, 0, 1, 0];
            reply.extend(br#"{"capabilities":{"max_msg_fds":4}}"#);
            reply.push(0);
            reply
        }
        GET_INFO => words(&[16, 2, 9, 5]),
        REGION_INFO => {
            let size = match word(p, 2) {
                0 => 0x1_0000,
                7 => 0x1000,
                _ => 0,
            };
            words(&[32, 3, word(p, 2), 0, size, 0, 0, 0])
        }
        IRQ_INFO => words(&[16, 1, word(p, 2), 9]),
        REGION_READ => {
            let mut reply = p.clone();
            reply.extend((0..word(p, 3)).map(|i| (word(p, 0) + i) as u8));
            reply
        }
        REGION_WRITE => p[..16].to_vec(),
        DMA_UNMAP => p.clone(),
        _ => Vec::new(),
    })
}

fn receive(stream: &mut UnixStream) -> Option<Message> {
    let mut header = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut header)];
    let got = recvmsg(&*stream, slices, &mut control, RecvFlags::WAITALL).ok()?;
    if got.bytes < 16 {
        return None;
    }
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            fds.extend(rights);
        }
    }
    let mut payload = vec![0; word(&header, 1) as usize - 16];
    stream.read_exact(&mut payload).ok()?;
    Some(Message {
        id: u16::from_le_bytes([header[0], header[1]]),
        command: u16::from_le_bytes([header[2], header[3]]),
        flags: word(&header, 2),
        payload,
        fds,
    })
}

/// Connects a client with a server that asks `behave`, and tells what it received.
fn connect(
    timeout: Duration,
    mut behave: impl FnMut(&Message) -> Answer + Send + 'static,
) -> (Result<VfioUserFunction, PciError>, Receiver<Message>) {
    let (client, mut server) = UnixStream::pair().unwrap();
    let (sender, receiver): (Sender<Message>, _) = channel();
    std::thread::spawn(move || {
        while let Some(request) = receive(&mut server) {
            let Message { id, command, .. } = request;
            let bytes = match behave(&request) {
                Answer::Reply(payload) => message(id, command, REPLY, 0, &payload),
                Answer::Error(errno) => message(id, command, REPLY | ERROR, errno, &[]),
                Answer::Raw(bytes) => bytes,
                Answer::Silence => Vec::new(),
                Answer::Close => return,
            };
            // The client may be gone.
            let _ = sender.send(request);
            if server.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    (VfioUserFunction::from_stream(client, timeout), receiver)
}

const LONG: Duration = Duration::from_secs(10);

/// A good server that answers `command` otherwise.
fn except(
    command: u16,
    mut answer: impl FnMut(&Message) -> Answer + Send + 'static,
) -> impl FnMut(&Message) -> Answer + Send + 'static {
    move |message| {
        if message.command == command {
            answer(message)
        } else {
            good(message)
        }
    }
}

fn commands(receiver: &Receiver<Message>) -> Vec<u16> {
    receiver.try_iter().map(|message| message.command).collect()
}

#[test]
fn registers_are_read_and_written_in_order() {
    let (function, receiver) = connect(LONG, good);
    let function = function.unwrap();
    let bar = function.bar(0).unwrap();
    assert_eq!(bar.len(), 0x1_0000);
    commands(&receiver);
    bar.write32(0x3004, 0x1234_5678).unwrap();
    assert_eq!(bar.read32(0x10).unwrap(), 0x1312_1110);
    assert_eq!(bar.read8(0x7f).unwrap(), 0x7f);
    assert_eq!(bar.read64(8).unwrap(), 0x0f0e_0d0c_0b0a_0908);
    let first = receiver.recv().unwrap();
    assert_eq!(
        (first.command, first.flags),
        (REGION_WRITE, NO_REPLY),
        "writes are posted"
    );
    assert_eq!(first.payload[16..], 0x1234_5678u32.to_le_bytes());
    assert_eq!(commands(&receiver), [REGION_READ; 3]);
}

#[test]
fn accesses_outside_or_unaligned_never_reach_the_server() {
    let (function, receiver) = connect(LONG, good);
    let function = function.unwrap();
    let bar = function.bar(0).unwrap();
    commands(&receiver);
    assert!(matches!(
        bar.read32(0x1_0000),
        Err(PciError::OutOfRange { .. })
    ));
    assert!(matches!(
        bar.read32(u64::MAX - 3),
        Err(PciError::OutOfRange { .. })
    ));
    assert!(matches!(bar.read32(2), Err(PciError::Misaligned { .. })));
    assert!(matches!(
        bar.write16(1, 0),
        Err(PciError::Misaligned { .. })
    ));
    assert!(matches!(function.bar(1), Err(PciError::NoSuchBar(1))));
    assert!(matches!(function.bar(7), Err(PciError::NoSuchBar(7))));
    assert!(function.config_read(0xfff, &mut [0; 2]).is_err());
    assert!(commands(&receiver).is_empty());
}

#[test]
fn dma_memory_is_shared_and_unmapped_on_drop() {
    let (function, receiver) = connect(LONG, good);
    let function = function.unwrap();
    let region = function.dma_alloc(5000).unwrap();
    assert_eq!(region.len(), 8192);
    region.memory().write(4097, b"hello").unwrap();
    let mut map = receiver
        .iter()
        .find(|message| message.command == DMA_MAP)
        .unwrap();
    assert_eq!(
        u64::from(word(&map.payload, 4)) | u64::from(word(&map.payload, 5)) << 32,
        region.iova()
    );
    let file = std::fs::File::from(map.fds.remove(0));
    let mut bytes = [0; 5];
    std::os::unix::fs::FileExt::read_at(&file, &mut bytes, 4097).unwrap();
    assert_eq!(&bytes, b"hello");
    let other = function.dma_alloc(1).unwrap();
    assert!(other.iova() >= region.iova() + 8192);
    drop(region);
    assert_eq!(commands(&receiver), [DMA_MAP, DMA_UNMAP]);
}

#[test]
fn interrupts_go_in_blocks_and_fire() {
    let (function, receiver) = connect(LONG, good);
    let function = function.unwrap();
    let too_many = function.enable_interrupts(10).err().unwrap();
    assert!(matches!(
        too_many,
        PciError::Vectors {
            wanted: 10,
            available: 9
        }
    ));
    commands(&receiver);
    let interrupts = function.enable_interrupts(9).unwrap();
    assert_eq!(interrupts.count(), 9);
    let blocks: Vec<_> = receiver.try_iter().collect();
    let shape: Vec<_> = blocks
        .iter()
        .map(|b| (word(&b.payload, 3), word(&b.payload, 4), b.fds.len()))
        .collect();
    assert_eq!(
        shape,
        [(0, 4, 4), (4, 4, 4), (8, 1, 1)],
        "at most as many as the server takes"
    );
    assert_eq!(interrupts.wait(Duration::ZERO).unwrap(), None);
    let raise = |vector: usize| {
        rustix::io::write(&blocks[vector / 4].fds[vector % 4], &1u64.to_ne_bytes()).unwrap();
    };
    raise(5);
    raise(5);
    raise(8);
    raise(0);
    let mut fired: Vec<_> = (0..3)
        .map(|_| interrupts.wait(LONG).unwrap().unwrap())
        .collect();
    fired.sort_unstable();
    assert_eq!(fired, [0, 5, 8]);
    let start = Instant::now();
    assert_eq!(interrupts.wait(Duration::from_millis(30)).unwrap(), None);
    assert!(start.elapsed() >= Duration::from_millis(30));
    drop(interrupts);
    let last = receiver.recv().unwrap();
    assert_eq!((last.command, word(&last.payload, 4)), (SET_IRQS, 0));
}

#[test]
fn error_replies_are_errors() {
    let (function, _receiver) = connect(LONG, except(DMA_MAP, |_| Answer::Error(28)));
    let function = function.unwrap();
    match function.dma_alloc(4096) {
        Err(PciError::Refused { source, .. }) => assert_eq!(source.raw_os_error(), Some(28)),
        other => panic!("{other:?}"),
    }
    // Some servers leave the number out.
    let (function, _receiver) = connect(LONG, except(REGION_READ, |_| Answer::Error(0)));
    let function = function.unwrap();
    let error = function.bar(0).unwrap().read32(0).unwrap_err();
    assert!(matches!(error, PciError::Refused { .. }), "{error}");
    function.reset().unwrap();
    let (function, _receiver) = connect(LONG, except(RESET, |_| Answer::Error(95)));
    assert!(matches!(
        function.unwrap().reset(),
        Err(PciError::Refused { .. })
    ));
    // Already while connecting.
    let (function, _receiver) = connect(LONG, except(GET_INFO, |_| Answer::Error(22)));
    assert!(matches!(function.err(), Some(PciError::Refused { .. })));
}

#[test]
fn short_and_strange_replies_are_protocol_errors() {
    let cases: [(u16, Behaviour); 8] = [
        (VERSION, |_| Answer::Reply(vec![0])),
        (VERSION, |_| Answer::Reply(b"\x01\0\0\0{}\0".to_vec())),
        (VERSION, |_| Answer::Reply(b"\0\0\0\0{{\0".to_vec())),
        (GET_INFO, |_| Answer::Reply(words(&[16, 2]))),
        (GET_INFO, |_| Answer::Reply(words(&[16, 0, 9, 5]))),
        (GET_INFO, |_| Answer::Reply(words(&[16, 2, 3, 5]))),
        (REGION_INFO, |m| {
            Answer::Raw(message(m.id, GET_INFO, REPLY, 0, &[0; 32]))
        }),
        (IRQ_INFO, |m| {
            Answer::Raw(
                [
                    message(m.id, IRQ_INFO, REPLY, 0, &[])[..4].to_vec(),
                    vec![0xff; 12],
                ]
                .concat(),
            )
        }),
    ];
    for (command, answer) in cases {
        let (function, _receiver) = connect(LONG, except(command, answer));
        let error = function.err().expect("an error");
        assert!(
            matches!(error, PciError::Protocol { .. }),
            "command {command}: {error}"
        );
    }
    let (function, _receiver) = connect(
        LONG,
        except(REGION_READ, |m| Answer::Reply(m.payload[..16].to_vec())),
    );
    let error = function.unwrap().bar(0).unwrap().read32(0).unwrap_err();
    assert!(matches!(error, PciError::Protocol { .. }), "{error}");
}

#[test]
fn silence_is_a_timeout_and_a_late_reply_is_dropped() {
    let mut late = None;
    let (function, _receiver) = connect(Duration::from_millis(200), move |m: &Message| {
        if m.command != REGION_READ {
            return good(m);
        }
        let reply = |m: &Message| {
            let Answer::Reply(payload) = good(m) else {
                unreachable!()
            };
            message(m.id, m.command, REPLY, 0, &payload)
        };
        match late.take() {
            None => {
                late = Some(reply(m));
                Answer::Silence
            }
            // The reply to the request before comes first.
            Some(mut bytes) => {
                bytes.extend(reply(m));
                Answer::Raw(bytes)
            }
        }
    });
    let bar = function.unwrap().bar(0).unwrap();
    let start = Instant::now();
    let error = bar.read32(0x40).unwrap_err();
    assert!(matches!(error, PciError::Timeout { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(bar.read32(0x80).unwrap(), 0x8382_8180);
}

#[test]
fn half_a_message_gives_the_connection_up() {
    let (function, _receiver) = connect(
        Duration::from_millis(200),
        except(REGION_READ, |m| {
            Answer::Raw(message(m.id, m.command, REPLY, 0, &[0; 20])[..30].into())
        }),
    );
    let bar = function.unwrap().bar(0).unwrap();
    assert!(matches!(bar.read32(0), Err(PciError::Timeout { .. })));
    assert!(matches!(bar.read32(0), Err(PciError::Protocol { .. })));
    assert!(bar.write32(0, 0).is_err());
}

#[test]
fn server_that_goes_away_is_reported() {
    let (function, _receiver) = connect(LONG, except(REGION_READ, |_| Answer::Close));
    let bar = function.unwrap().bar(0).unwrap();
    assert!(matches!(bar.read32(0), Err(PciError::Disconnected { .. })));
    // And so is one that hears nothing more, without a signal that ends the process.
    assert!(bar.write32(0, 1).is_err());
}

#[test]
fn error_reply_to_a_posted_write_is_not_taken_for_another() {
    let (function, _receiver) = connect(LONG, except(REGION_WRITE, |_| Answer::Error(22)));
    let bar = function.unwrap().bar(0).unwrap();
    bar.write32(0, 1).unwrap();
    bar.write32(4, 1).unwrap();
    assert_eq!(bar.read32(0x20).unwrap(), 0x2322_2120);
}

#[test]
fn request_of_the_server_is_refused_and_the_call_goes_on() {
    let (function, receiver) = connect(
        LONG,
        except(REGION_READ, |m| {
            let mut bytes = message(77, DMA_READ, 0, 0, &[0; 16]);
            let Answer::Reply(payload) = good(m) else {
                unreachable!()
            };
            bytes.extend(message(m.id, m.command, REPLY, 0, &payload));
            Answer::Raw(bytes)
        }),
    );
    let function = function.unwrap();
    let bar = function.bar(0).unwrap();
    assert_eq!(bar.read32(0x20).unwrap(), 0x2322_2120);
    let refusal = receiver
        .iter()
        .find(|message| message.command == DMA_READ)
        .unwrap();
    assert_eq!((refusal.id, refusal.flags), (77, REPLY | ERROR));
}

#[test]
fn names_of_devices() {
    let error = |name| ferronic::backend::open(name).err().unwrap().to_string();
    // Nothing has this address.
    for name in ["ffff:ff:1f.7", "vfio:ffff:ff:1f.7"] {
        assert!(error(name).contains("no PCI function ffff:ff:1f.7"));
    }
    assert!(error("vfio-user:/does/not/exist").contains("ferronic-sim serve"));
    assert!(error("vfio-user:").contains("vfio-user:/path"));
    assert!(error("eth0").contains("vfio-user:/path"));
}
