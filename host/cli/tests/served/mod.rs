//! A served card in this process, with a look at its wire, and the command in another process.
#![allow(dead_code)] // each test program uses a part of it

pub mod network;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ferronic_sim::vfio_user::{ServeError, Server, SimDevice, Stop};
use ferronic_sim::wire::{Pace, RxFrame, Wire, WireSpec};
use ferronic_sim::{Sim, SimConfig};
use pcap_file::pcap::{PcapHeader, PcapReader, PcapWriter, RawPcapPacket};
use pcap_file::{DataLink, Endianness};

/// How long a test waits for anything: a machine under load is slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What passed over a wire since the driver was last ready.
#[derive(Debug, Default)]
pub struct Seen {
    /// Frames given to the card.
    pub given: usize,
    /// Whole frames that the card sent.
    pub sent: Vec<Vec<u8>>,
    /// Drivers that became ready so far.
    pub drivers: usize,
    /// `given` and `sent.len()` when a driver was gone again, for each.
    pub left: Vec<(usize, usize)>,
}

#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().expect("no panic while it was held")
    }

    /// Waits until `done`.
    pub fn until(&self, what: &str, mut done: impl FnMut(&Seen) -> bool) {
        let start = Instant::now();
        while !done(&self.seen()) {
            assert!(start.elapsed() < PATIENCE, "{what}: {:?}", self.seen().left);
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// A wire that is looked at.
struct Watched {
    wire: Box<dyn Wire>,
    watch: Watch,
    ready: bool,
}

impl Wire for Watched {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        let frame = self.wire.next_frame(now)?;
        self.watch.seen().given += 1;
        Some(frame)
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.wire.next_event(now)
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        if !aborted {
            self.watch.seen().sent.push(frame.to_vec());
        }
        self.wire.sent(now, frame, aborted);
    }

    fn driver_ready(&mut self, now: u64, ready: bool) {
        let mut seen = self.watch.seen();
        if ready {
            seen.given = 0;
            seen.sent.clear();
            seen.drivers += 1;
        } else if self.ready {
            let now = (seen.given, seen.sent.len());
            seen.left.push(now);
        }
        self.ready = ready;
        drop(seen);
        self.wire.driver_ready(now, ready);
    }

    fn restart(&mut self) {
        self.wire.restart();
    }

    fn poll(&mut self) -> std::io::Result<()> {
        self.wire.poll()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.wire.fd()
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.wire.flush()
    }

    fn pace(&self) -> Pace {
        self.wire.pace()
    }

    fn lossless(&self) -> bool {
        self.wire.lossless()
    }
}

/// Stops when its pipe is closed.
struct Closed(OwnedFd);

impl Stop for Closed {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn stop(&mut self, _device: &mut SimDevice) -> bool {
        true
    }
}

/// The server of `ferronic-sim serve`, on a thread.
pub struct Served {
    pub dir: tempfile::TempDir,
    pub watch: Watch,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    pub fn start(wire: &str) -> Self {
        let spec: WireSpec = wire.parse().expect("a wire");
        Self::with_wire(SimConfig::default(), spec.open().expect("the wire opens"))
    }

    pub fn with_wire(config: SimConfig, wire: Box<dyn Wire>) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let watch = Watch::default();
        let watched = Watched {
            wire,
            watch: watch.clone(),
            ready: false,
        };
        let sim = Sim::with_wire(config, Box::new(watched)).expect("the model starts");
        let device = SimDevice::new(sim).expect("the card enumerates");
        let path = dir.path().join("socket");
        let mut server = Server::bind(&path, device, false).expect("socket");
        let (read, write) = rustix::pipe::pipe().expect("pipe");
        let thread = std::thread::spawn(move || server.run(&mut Closed(read)));
        Self {
            dir,
            watch,
            stop: Some(write),
            thread: Some(thread),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// As the command takes it.
    pub fn name(&self) -> String {
        format!("vfio-user:{}", self.socket().display())
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command on this card, with more arguments.
    pub fn ferronic(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferronic"));
        command.args([arguments[0], "--device", &self.name()]);
        command
            .args(&arguments[1..])
            .env_remove("FERRONIC_DEVICE")
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("the command starts")
    }

    /// Runs the command to its end.
    pub fn succeeds(&self, arguments: &[&str]) {
        let status = wait(self.ferronic(arguments));
        assert!(status.success(), "{arguments:?}: {status}");
    }
}

impl Drop for Served {
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

/// Waits for the end of a process, not for ever.
pub fn wait(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().expect("kill");
            panic!("the command does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// `count` frames of many sizes, each different.
pub fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|n| {
            let len = 60 + (n * 397) % 1455;
            let mut frame: Vec<u8> = (0..len).map(|i| (i * 7 + n) as u8).collect();
            frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
            frame[14..18].copy_from_slice(&(n as u32).to_be_bytes());
            frame
        })
        .collect()
}

pub fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let file = std::fs::File::create(path).expect("file");
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        endianness: Endianness::Little,
        ..PcapHeader::default()
    };
    let mut pcap = PcapWriter::with_header(std::io::BufWriter::new(file), header).expect("capture");
    for (n, frame) in frames.iter().enumerate() {
        let packet = RawPcapPacket {
            ts_sec: n as u32,
            ts_frac: 0,
            incl_len: frame.len() as u32,
            orig_len: frame.len() as u32,
            data: frame.into(),
        };
        pcap.write_raw_packet(&packet).expect("packet");
    }
}

pub fn read_pcap(path: &Path) -> Vec<Vec<u8>> {
    let file = std::fs::File::open(path).expect("file");
    let mut pcap = PcapReader::new(std::io::BufReader::new(file)).expect("capture");
    let mut frames = Vec::new();
    while let Some(packet) = pcap.next_packet() {
        frames.push(packet.expect("packet").data.into_owned());
    }
    frames
}

/// Panics at the first difference, without printing thousands of bytes.
pub fn assert_same(got: &[Vec<u8>], want: &[Vec<u8>], what: &str) {
    for (at, (a, b)) in got.iter().zip(want).enumerate() {
        assert!(
            a == b,
            "{what}: frame {at} differs ({} bytes, {} expected)",
            a.len(),
            b.len()
        );
    }
    assert_eq!(got.len(), want.len(), "{what}: number of frames");
}

/// Random numbers of one seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % limit as u64) as usize
    }
}
