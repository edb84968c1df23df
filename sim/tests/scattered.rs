//! Memory as QEMU maps it for a guest behind an IOMMU: 4 KiB at a time, each with a descriptor of its
//! own, in an order that has nothing to do with the file, and before anything else is asked.

mod client;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::{Client, Reply, command};
use ferronic_sim::vfio_user::{ServeError, Server, SimDevice, Stop};
use ferronic_sim::wire::WireQueue;
use ferronic_sim::{Sim, SimConfig};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

const PAGE: u64 = 4096;
const PAGES: u64 = 16;
/// Where the client's addresses begin.
const BASE: u64 = 0xffff_8000_0000;
/// Places of the areas, in pages from [`BASE`]: descriptors, available and used ring of each queue.
const RINGS: [[u64; 3]; 2] = [[0, 1, 2], [3, 4, 5]];
/// Buffers of three pages each.
const RECEIVE: u64 = 6;
const TRANSMIT: u64 = 10;
const HEADER: usize = 12;
const SIZE: u16 = 8;
const PATIENCE: Duration = Duration::from_secs(60);

struct Closed(OwnedFd);

impl Stop for Closed {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn stop(&mut self, _device: &mut SimDevice) -> bool {
        true
    }
}

/// A served card, its wire, and a client whose memory lies in pieces.
struct Card {
    client: Client,
    wire: WireQueue,
    file: OwnedFd,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    _dir: tempfile::TempDir,
}

/// The page of the file behind page `n` of the client's addresses: neighbours are never neighbours.
fn place(n: u64) -> u64 {
    (n * 5 + 3) % PAGES
}

impl Card {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let (wire, port) = WireQueue::new();
        let sim = Sim::with_wire(SimConfig::default(), port).expect("the model starts");
        let device = SimDevice::new(sim).expect("the card enumerates");
        let path = dir.path().join("socket");
        let mut server = Server::bind(&path, device, false).expect("socket");
        let (read, write) = rustix::pipe::pipe().expect("pipe");
        let thread = std::thread::spawn(move || server.run(&mut Closed(read)));
        let mut client = Client::connect(&path);
        client.negotiate();
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&file, PAGES * PAGE).expect("size");
        // Before DEVICE_GET_INFO, and each page with a new descriptor.
        for n in 0..PAGES {
            let again = file.try_clone().expect("dup");
            let reply = client.map(BASE + n * PAGE, PAGE, place(n) * PAGE, 3, Some(&again));
            assert_eq!(reply, Reply::Done, "page {n}");
        }
        assert_eq!(client.device_info(), [16, 3, 9, 5]);
        Self {
            client,
            wire,
            file,
            stop: Some(write),
            thread: Some(thread),
            _dir: dir,
        }
    }

    /// Writes memory by the client's addresses.
    fn store(&self, page: u64, at: usize, data: &[u8]) {
        for (n, byte) in data.iter().enumerate() {
            let at = at + n;
            let place = place(page + at as u64 / PAGE) * PAGE + at as u64 % PAGE;
            assert_eq!(rustix::io::pwrite(&self.file, &[*byte], place), Ok(1));
        }
    }

    fn load(&self, page: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        for (at, byte) in data.iter_mut().enumerate() {
            let place = place(page + at as u64 / PAGE) * PAGE + at as u64 % PAGE;
            let n = rustix::io::pread(&self.file, std::slice::from_mut(byte), place);
            assert_eq!(n, Ok(1));
        }
        data
    }

    /// Reset to DRIVER_OK with both queues, and a buffer of two pages and a bit for receiving.
    fn begin(&mut self) {
        for page in 0..6 {
            self.store(page, 0, &[0; PAGE as usize]);
        }
        let client = &mut self.client;
        client.write(7, 4, &[6, 0]);
        for status in [0, 1, 3] {
            client.post(0, 20, &[status]);
        }
        // VERSION_1 and ACCESS_PLATFORM.
        for (select, bits) in [(0_u32, 0_u32), (1, 3)] {
            client.post(0, 8, &select.to_ne_bytes());
            client.post(0, 12, &bits.to_ne_bytes());
        }
        client.post(0, 20, &[11]);
        for (queue, pages) in (0_u16..).zip(RINGS) {
            client.post(0, 22, &queue.to_ne_bytes());
            client.post(0, 24, &SIZE.to_ne_bytes());
            for (register, page) in [32, 40, 48].into_iter().zip(pages) {
                let address = BASE + page * PAGE;
                client.post(0, register, &address.to_ne_bytes());
            }
            client.post(0, 28, &1_u16.to_ne_bytes());
        }
        client.post(0, 20, &[15]);
        assert_eq!(client.read(0, 20, 1), [15]);
    }

    /// Offers the first buffer of a queue.
    fn offer(&mut self, queue: u16, page: u64, at: u64, len: usize, flags: u16) {
        let [desc, avail, _] = RINGS[usize::from(queue)];
        let mut bytes = (BASE + page * PAGE + at).to_ne_bytes().to_vec();
        bytes.extend((len as u32).to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0, 0]);
        self.store(desc, 0, &bytes);
        self.store(avail, 2, &1_u16.to_ne_bytes());
        let doorbell = 0x3000 + 4 * u64::from(queue);
        self.client.post(0, doorbell, &queue.to_ne_bytes());
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < PATIENCE, "{what} does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn used(&self, queue: usize) -> u16 {
        let index = self.load(RINGS[queue][2], 4);
        u16::from_ne_bytes([index[2], index[3]])
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let result = thread.join();
            if !std::thread::panicking() {
                result.expect("no panic").expect("no error");
            }
        }
    }
}

fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

#[test]
fn frames_across_scattered_pages_pass_whole_both_ways() {
    let mut card = Card::start();
    card.begin();
    let frame = frame(8000);
    // Both begin in the middle of a page and cross two borders.
    card.store(TRANSMIT, 1001, &[0; HEADER]);
    card.store(TRANSMIT, 1001 + HEADER, &frame);
    card.offer(1, TRANSMIT, 1001, HEADER + frame.len(), 0);
    card.until("the sent frame", |card| card.used(1) == 1);
    let wire = card.wire.clone();
    card.until("the frame on the wire", |_| wire.sent() == 1);
    let sent = wire.take().expect("just seen");
    assert!(sent.data == frame, "the frame was changed on its way out");

    card.offer(0, RECEIVE, 77, 3 * PAGE as usize - 77, 2);
    wire.push(frame.clone());
    // A client that says nothing is not served frames: the wire has no descriptor here.
    card.until("the received frame", |card| {
        card.client.read(0, 20, 1);
        card.used(0) == 1
    });
    let got = card.load(RECEIVE, 77 + HEADER + frame.len());
    assert!(
        got[77 + HEADER..] == frame,
        "the frame was changed on its way in"
    );
}

#[test]
fn memory_that_was_unmapped_is_neither_read_nor_written() {
    let mut card = Card::start();
    card.begin();
    let page = BASE + (RECEIVE + 1) * PAGE;
    card.store(RECEIVE, 0, &vec![0x5a; 3 * PAGE as usize]);
    card.offer(0, RECEIVE, 0, 3 * PAGE as usize, 2);
    assert_eq!(card.client.unmap(page, PAGE), Reply::Done);
    card.wire.push(frame(8000));
    card.until("the received frame", |card| {
        card.client.read(0, 20, 1);
        card.used(0) == 1
    });
    let hidden = card.load(RECEIVE + 1, PAGE as usize);
    assert!(hidden.iter().all(|byte| *byte == 0x5a));

    // A domain that is left: ranges that hold much more, or nothing.
    assert_eq!(card.client.unmap(0, 1 << 48), Reply::Done);
    assert_eq!(
        card.client.unmap(BASE + 0x8000_0000, 0xffff_ffff_0110_0000),
        Reply::Done
    );
    card.client.post(0, 0x3004, &1_u16.to_ne_bytes());
    card.until("DEVICE_NEEDS_RESET", |card| {
        card.client.read(0, 20, 1)[0] & 0x40 != 0
    });
    card.client.call(command::DEVICE_RESET, &[], &[]).ok();
    assert_eq!(card.client.read(0, 20, 1), [0]);
}
