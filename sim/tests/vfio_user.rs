//! The vfio-user server with the RTL behind it, spoken to in raw messages.

mod client;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::JoinHandle;

use client::{Client, Reply, command};
use ferronic_sim::vfio_user::{ServeError, Server, SimDevice, Stop};
use ferronic_sim::wire::{NoWire, Wire, WireQueue};
use ferronic_sim::{Sim, SimConfig};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;

/// Stops when its pipe is closed.
struct Closed(OwnedFd);

impl Stop for Closed {
    fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn stop(&mut self, _device: &mut SimDevice) -> bool {
        true
    }
}

struct Running {
    dir: tempfile::TempDir,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Running {
    fn start() -> Self {
        Self::with_wire(Box::new(NoWire))
    }

    fn with_wire(wire: Box<dyn Wire>) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let sim = Sim::with_wire(SimConfig::default(), wire).expect("the model starts");
        let device = SimDevice::new(sim).expect("the card enumerates");
        let path = dir.path().join("socket");
        let mut server = Server::bind(&path, device, false).expect("socket");
        let (read, write) = rustix::pipe::pipe().expect("pipe");
        let thread = std::thread::spawn(move || server.run(&mut Closed(read)));
        Self {
            dir,
            stop: Some(write),
            thread: Some(thread),
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("socket")
    }

    fn client(&self) -> Client {
        let mut client = Client::connect(&self.path());
        client.negotiate();
        client
    }
}

impl Drop for Running {
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

fn memfd(len: u64) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
    ftruncate(&fd, len).expect("size");
    fd
}

fn mode(path: &Path) -> u32 {
    let meta = std::fs::symlink_metadata(path).expect("socket");
    meta.permissions().mode() & 0o777
}

#[test]
fn socket_is_private_and_removed_at_the_end() {
    let running = Running::start();
    let path = running.path();
    assert_eq!(mode(&path), 0o600);
    let keep = running.dir.path().to_path_buf();
    drop(running);
    assert!(!path.exists() && !keep.exists());
}

#[test]
fn stale_socket_is_replaced_but_nothing_else() {
    let dir = tempfile::tempdir().expect("directory");
    let device = || SimDevice::new(Sim::new(SimConfig::default()).expect("model")).expect("card");
    let path = dir.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bind"));
    let server = Server::bind(&path, device(), false).expect("replaced");
    assert!(matches!(
        Server::bind(&path, device(), false),
        Err(ServeError::InUse(_))
    ));
    drop(server);
    std::fs::write(&path, b"precious").expect("write");
    assert!(matches!(
        Server::bind(&path, device(), false),
        Err(ServeError::NotASocket(_))
    ));
    assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
}

#[test]
fn device_describes_itself() {
    let running = Running::start();
    let mut client = running.client();
    assert_eq!(client.device_info(), [16, 3, 9, 5]);
    assert_eq!(client.region_size(0), 0x1_0000);
    assert_eq!(client.region_size(1), 0);
    assert_eq!(client.region_size(7), 4096);
    assert_eq!(client.irq_count(2), 9);
    assert_eq!(client.irq_count(3), 0);
    let config = client.read(7, 0, 4096);
    assert_eq!(config[..4], [0xf4, 0x1a, 0x41, 0x10]);
}

#[test]
fn bar_writes_of_a_client_are_answered_but_kept_from_the_card() {
    let running = Running::start();
    let mut client = running.client();
    client.write(7, 0x10, &[0xff; 8]);
    assert_eq!(
        client.read(7, 0x10, 8),
        [4, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]
    );
    client.write(7, 0x10, &[0, 0, 0x12, 0xfe, 0, 0, 0, 0]);
    assert_eq!(client.read(7, 0x10, 4), [4, 0, 0x12, 0xfe]);
    assert_eq!(client.read(0, 0x12, 2), [8, 0]);
}

#[test]
fn posted_writes_keep_their_order_with_reads() {
    let running = Running::start();
    let mut client = running.client();
    for select in [0_u32, 1, 0, 1] {
        client.post(0, 0, &select.to_ne_bytes());
        assert_eq!(client.read(0, 0, 4), select.to_ne_bytes());
    }
}

#[test]
fn flr_by_configuration_write_resets_and_the_next_access_works() {
    let running = Running::start();
    let mut client = running.client();
    let pcie = client.capability(0x10);
    client.post(0, 0x14, &[3]);
    assert_eq!(client.read(0, 0x14, 1), [3]);
    let control = client.read(7, u64::from(pcie) + 8, 2);
    client.write(7, u64::from(pcie) + 8, &[control[0], control[1] | 0x80]);
    assert_eq!(client.read(0, 0x14, 1), [0]);
    client.post(0, 0x14, &[1]);
    client.call(command::DEVICE_RESET, &[], &[]).ok();
    assert_eq!(client.read(0, 0x14, 1), [0]);
}

#[test]
fn maps_are_checked() {
    let running = Running::start();
    let mut client = running.client();
    let fd = memfd(1 << 20);
    assert_eq!(client.map(0x10000, 0x1000, 0, 3, Some(&fd)), Reply::Done);
    // The same again, and one across it.
    assert_eq!(
        client.map(0x10000, 0x1000, 0, 3, Some(&fd)),
        Reply::Error(Errno::EXIST)
    );
    // Beyond the file; nothing; beyond the address space; unknown flags.
    for (address, size, offset, flags) in [
        (0x20000, 0x1000, 1 << 20, 3),
        (0x20000, 0, 0, 3),
        (u64::MAX - 4094, 4096, 0, 3),
        (0x20000, 0x1000, 0, 0x80),
        (0x20000, 0x1000, u64::MAX, 3),
    ] {
        let reply = client.map(address, size, offset, flags, Some(&fd));
        assert_eq!(reply, Reply::Error(Errno::INVAL), "{address:#x} {size:#x}");
    }
    // As QEMU does: without descriptor, and unmaps of huge ranges that hold nothing.
    assert_eq!(client.map(0xc0000, 0x1000, 0, 1, None), Reply::Done);
    assert_eq!(
        client.unmap(0x8000_0000, 0xffff_ffff_0110_0000),
        Reply::Done
    );
    assert_eq!(client.unmap(0x10000, 0x8000_0000_0000), Reply::Done);
    assert_eq!(client.map(0x10000, 0x1000, 0, 3, Some(&fd)), Reply::Done);
    assert_eq!(client.unmap(0x10800, 0x1000), Reply::Error(Errno::INVAL));
}

#[test]
fn interrupt_forms_of_qemu_are_accepted() {
    let running = Running::start();
    let mut client = running.client();
    let events: Vec<OwnedFd> = (0..2)
        .map(|_| eventfd(0, EventfdFlags::NONBLOCK).expect("eventfd"))
        .collect();
    // One vector without descriptor enables MSI-X.
    assert_eq!(client.set_irqs(0x24, 2, 0, 1, &[]), Reply::Done);
    assert_eq!(client.set_irqs(0x24, 2, 0, 1, &[&events[0]]), Reply::Done);
    assert_eq!(client.set_irqs(0x24, 2, 1, 1, &[&events[1]]), Reply::Done);
    // Fired by the client itself.
    assert_eq!(client.set_irqs(0x21, 2, 1, 1, &[]), Reply::Done);
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&events[1], &mut count), Ok(8));
    assert_eq!(u64::from_ne_bytes(count), 1);
    assert_eq!(rustix::io::read(&events[0], &mut count), Err(Errno::AGAIN));
    // Beyond the table, wrong number of descriptors, masking.
    let wrong = Reply::Error(Errno::INVAL);
    assert_eq!(client.set_irqs(0x24, 2, 9, 1, &[&events[0]]), wrong);
    assert_eq!(client.set_irqs(0x24, 2, u32::MAX, 2, &[]), wrong);
    assert_eq!(
        client.set_irqs(0x24, 2, 0, 3, &[&events[0], &events[1]]),
        wrong
    );
    assert_eq!(client.set_irqs(0x0c, 2, 0, 1, &[]), wrong);
    assert_eq!(client.set_irqs(0x21, 2, 0, 0, &[]), Reply::Done);
    assert_eq!(client.read(0, 0x12, 2), [8, 0]);
}

#[test]
fn malformed_messages_are_refused_without_losing_the_stream() {
    let running = Running::start();
    let mut client = running.client();
    let cases: &[(u16, &[u8])] = &[
        (0, &[]),
        (99, &[1, 2, 3]),
        (command::DMA_MAP, &[0; 31]),
        (command::DMA_UNMAP, &[]),
        (command::DEVICE_GET_INFO, &[]),
        (command::REGION_INFO, &[0xff; 32]),
        (command::IRQ_INFO, &[0xff; 16]),
        (command::SET_IRQS, &[0xff; 20]),
        (command::SET_IRQS, &[0; 3]),
        (command::REGION_READ, &[0xff; 16]),
        (command::REGION_READ, &[0; 16]),
        (command::REGION_WRITE, &[0; 15]),
    ];
    for (number, payload) in cases {
        let reply = client.call(*number, payload, &[]);
        assert!(matches!(reply, Reply::Error(_)), "{number}: {reply:?}");
        assert_eq!(client.read(0, 0x12, 2), [8, 0]);
    }
    // A message that is too long is thrown away whole.
    let long = vec![0x5a; (1 << 20) + 4096];
    let reply = client.call(command::REGION_WRITE, &long, &[]);
    assert_eq!(reply, Reply::Error(Errno::TOOBIG));
    // A write whose data is shorter than it says; a read that reaches beyond the region.
    let mut short = client::access(0, 0, 8);
    short.extend([0; 4]);
    assert_eq!(
        client.call(command::REGION_WRITE, &short, &[]),
        Reply::Error(Errno::INVAL)
    );
    let beyond = client::access(0xfffc, 0, 8);
    assert_eq!(
        client.call(command::REGION_READ, &beyond, &[]),
        Reply::Error(Errno::INVAL)
    );
    assert_eq!(client.read(0, 0x12, 2), [8, 0]);
}

#[test]
fn commands_before_version_are_refused() {
    let running = Running::start();
    let mut client = Client::connect(&running.path());
    let reply = client.call(command::DEVICE_GET_INFO, &[0; 16], &[]);
    assert_eq!(reply, Reply::Error(Errno::INVAL));
    let wrong = [1, 0, 0, 0, b'{', b'}', 0];
    assert_eq!(
        client.call(command::VERSION, &wrong, &[]),
        Reply::Error(Errno::INVAL)
    );
    let not_json = [0, 0, 0, 0, b'{', 0];
    assert_eq!(
        client.call(command::VERSION, &not_json, &[]),
        Reply::Error(Errno::INVAL)
    );
    client.negotiate();
    assert_eq!(client.device_info()[2], 9);
}

#[test]
fn next_client_gets_a_reset_card() {
    let (wire, port) = WireQueue::new();
    let running = Running::with_wire(port);
    let fd = memfd(1 << 20);
    for round in 0..3 {
        let mut client = running.client();
        assert_eq!(client.read(0, 0x14, 1), [0], "round {round}");
        client.map(0x10000, 0x10000, 0, 3, Some(&fd));
        client.post(0, 0x14, &[1]);
        assert_eq!(client.read(0, 0x14, 1), [1]);
        // Gone in the middle of a message.
        client.raw(&[1, 2, 3]);
    }
    // A header that cannot be ends the connection, not the server.
    let mut client = running.client();
    client.raw(&[0; 16]);
    assert!(client.is_closed());
    assert_eq!(running.client().device_info()[3], 5);
    drop(wire);
}
