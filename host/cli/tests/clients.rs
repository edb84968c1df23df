//! Clients that go in the middle of a transfer: the next one uses the card at once.

mod served;

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic::pci::PciFunction;
use ferronic::pci::vfio_user::VfioUserFunction;
use ferronic::{CompletionPolicy, Device, DeviceConfig, PushResult, QueuePair, Wakeup};
use served::{PATIENCE, Random, Served, assert_same, frames, read_pcap, text, wait, write_pcap};

const FRAMES: usize = 400;
const ROUNDS: usize = 10;

/// A card whose wire replays [`FRAMES`] frames to each client.
fn replaying(pace: &str) -> (Served, tempfile::TempDir, Vec<Vec<u8>>) {
    let dir = tempfile::tempdir().expect("directory");
    let input = dir.path().join("in.pcap");
    let all = frames(FRAMES);
    write_pcap(&input, &all);
    let served = Served::start(&format!("pcap:in={},pace={pace}", input.display()));
    (served, dir, all)
}

/// A capture and a send by whoever comes next must be whole.
fn next_client_is_served(served: &Served, all: &[Vec<u8>], what: &str) {
    let output = served.file("out.pcap");
    let count = all.len().to_string();
    served.succeeds(&["capture", "--write", text(&output), "--count", &count]);
    assert_same(&read_pcap(&output), all, what);
}

fn next_client_sends(served: &Served, all: &[Vec<u8>], what: &str) {
    let input = served.file("send.pcap");
    write_pcap(&input, all);
    served.succeeds(&["send", "--read", text(&input)]);
    assert_same(&served.watch.seen().sent, all, what);
}

fn capture_is_killed(pace: &str, seed: u64) {
    let (served, _dir, all) = replaying(pace);
    let mut random = Random(seed);
    for round in 0..ROUNDS {
        let at = 1 + random.below(FRAMES * 3 / 4);
        let what = format!("seed {seed}, round {round}, killed after {at} frames");
        println!("{what}");
        let drivers = served.watch.seen().drivers;
        let partial = served.file("partial.pcap");
        let mut child = served.ferronic(&["capture", "--write", text(&partial)]);
        served
            .watch
            .until(&what, |seen| seen.drivers > drivers && seen.given >= at);
        child.kill().expect("SIGKILL");
        assert_eq!(wait(child).signal(), Some(9), "{what}");
        // The next client does not wait for anything.
        next_client_is_served(&served, &all, &what);
        let seen = served.watch.seen();
        let (given, _) = seen.left[drivers];
        assert!(given >= at, "{what}: {given} frames");
        assert!(given < FRAMES, "{what}: it was over before");
    }
}

#[test]
fn capture_killed_in_mid_transfer_leaves_the_card_to_the_next() {
    capture_is_killed("line", 1);
}

#[test]
fn capture_killed_at_the_pace_of_a_real_wire_leaves_the_card_to_the_next() {
    capture_is_killed("1G", 2);
}

#[test]
fn send_killed_in_mid_transfer_leaves_the_card_to_the_next() {
    // The replay comes in at the same time: both directions are under way.
    let (served, _dir, all) = replaying("1G");
    let long = frames(4000);
    let input = served.file("long.pcap");
    write_pcap(&input, &long);
    let mut random = Random(3);
    for round in 0..ROUNDS {
        let at = 1 + random.below(FRAMES);
        let what = format!("seed 3, round {round}, killed after {at} frames");
        println!("{what}");
        let drivers = served.watch.seen().drivers;
        let mut child = served.ferronic(&["send", "--read", text(&input)]);
        served.watch.until(&what, |seen| {
            seen.drivers > drivers && seen.sent.len() >= at
        });
        child.kill().expect("SIGKILL");
        assert_eq!(wait(child).signal(), Some(9), "{what}");
        // What left until the card was reset is a part of what was to be sent, none damaged.
        served.watch.until(&what, |seen| seen.left.len() > drivers);
        {
            let seen = served.watch.seen();
            let (given, sent) = seen.left[drivers];
            assert!(sent >= at && sent < long.len(), "{what}: {sent} frames");
            assert!(given > 0, "{what}: nothing came in");
            assert_same(&seen.sent[..sent], &long[..sent], &what);
        }
        if round % 2 == 0 {
            next_client_is_served(&served, &all, &what);
        } else {
            next_client_sends(&served, &all, &what);
        }
    }
}

/// A driver in this process, and a handle on its connection.
struct Client {
    connection: UnixStream,
    function: Arc<dyn PciFunction>,
    device: Device,
    pairs: Vec<QueuePair>,
}

fn connect(served: &Served) -> (Arc<dyn PciFunction>, UnixStream) {
    let stream = UnixStream::connect(served.socket()).expect("the server listens");
    let connection = stream.try_clone().expect("another handle");
    let function = VfioUserFunction::from_stream(stream, PATIENCE).expect("the card answers");
    (Arc::new(function), connection)
}

impl Client {
    fn open(served: &Served) -> Self {
        let (function, connection) = connect(served);
        let config = DeviceConfig {
            queue_pairs: 4,
            wakeup: Wakeup::Interrupt,
            ..DeviceConfig::default()
        };
        let (device, pairs) =
            Device::open(Arc::clone(&function), config).expect("the driver opens the card");
        Self {
            connection,
            function,
            device,
            pairs,
        }
    }

    /// Moves frames in both directions until `received` have come.
    fn traffic(&mut self, frames: &[Vec<u8>], received: usize) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        let start = Instant::now();
        let mut next = 0;
        while got.len() < received {
            assert!(start.elapsed() < PATIENCE, "{} of {received}", got.len());
            let mut more = false;
            for pair in &mut self.pairs {
                let before = got.len();
                pair.rx
                    .receive(16, |frame| {
                        let mut data = Vec::new();
                        frame.copy_to(&mut data);
                        got.push(data);
                    })
                    .expect("the device behaves");
                more |= got.len() > before;
                pair.tx.reap().expect("the device behaves");
                for _ in 0..8 {
                    let frame = &frames[next % frames.len()];
                    if pair.tx.push(frame).expect("a sound frame") == PushResult::Full {
                        break;
                    }
                    next += 1;
                }
                pair.tx.flush().expect("the device behaves");
            }
            if !more {
                let mut pending = false;
                for pair in &mut self.pairs {
                    pending |= pair.rx.arm().expect("the device behaves");
                }
                if !pending {
                    self.device
                        .wait(Duration::from_millis(5))
                        .expect("the device behaves");
                }
            }
        }
        got
    }

    /// Frames that lie in the receive queues, as far as the memory says.
    fn leftover(&mut self) -> usize {
        let mut got = 0;
        for pair in &mut self.pairs {
            // Posting buffers again fails without a connection; what was there counts.
            let mut before = usize::MAX;
            while got != before {
                before = got;
                let _ = pair.rx.receive(64, |_| got += 1);
            }
        }
        got
    }
}

#[test]
fn disconnect_in_mid_transfer_leaves_the_card_to_the_next() {
    let (served, _dir, all) = replaying("line");
    let mut random = Random(4);
    for round in 0..2 * ROUNDS {
        let at = 1 + random.below(FRAMES / 2);
        let what = format!("seed 4, round {round}, gone after {at} frames");
        println!("{what}");
        let drivers = served.watch.seen().drivers;
        let mut client = Client::open(&served);
        let got = client.traffic(&all, at);
        client
            .connection
            .shutdown(std::net::Shutdown::Both)
            .expect("an open connection");
        served.watch.until(&what, |seen| seen.left.len() > drivers);
        let (given, _) = served.watch.seen().left[drivers];
        assert!(given < FRAMES, "{what}: it was over before");
        // The memory of the one that is gone is still there, but nobody's any more.
        let old = client.leftover();
        next_client_is_served(&served, &all, &what);
        assert!(got.len() + old <= given, "{what}: more than was given");
        assert_eq!(client.leftover(), 0, "{what}: written after the end");
    }
}

#[test]
fn power_states_and_resets_through_the_server_leave_a_card_that_works() {
    let (served, _dir, all) = replaying("line");
    for round in 0..6 {
        let what = format!("round {round}");
        let mut client = Client::open(&served);
        client.traffic(&all, 1 + 30 * round);
        let function = Arc::clone(&client.function);
        let status = |function: &dyn PciFunction| {
            let mut byte = [0xff];
            let bar = function.bar(0).expect("BAR 0");
            byte[0] = bar.read8(0x14).expect("device_status");
            byte[0]
        };
        let capability = |id: u8| {
            let mut config = [0; 256];
            function.config_read(0, &mut config).expect("configuration");
            let mut at = config[0x34];
            while at != 0 && config[usize::from(at)] != id {
                at = config[usize::from(at) + 1];
            }
            assert_ne!(at, 0, "capability {id:#x}");
            u16::from(at)
        };
        assert_eq!(status(&*function) & 4, 4, "{what}: DRIVER_OK");
        match round % 3 {
            0 => {
                let power = capability(1) + 4;
                function.config_write(power, &[3, 0]).expect("D3hot");
                let mut now = [0; 2];
                function.config_read(power, &mut now).expect("PMCSR");
                assert_eq!(now[0] & 3, 3, "{what}");
                // Registers are out of reach until it is awake again.
                let bar = function.bar(0).expect("BAR 0");
                assert!(bar.read8(0x14).is_err(), "{what}: a register in D3hot");
                function.config_write(power, &[0, 0]).expect("D0");
            }
            1 => {
                let control = capability(0x10) + 8;
                let mut now = [0; 2];
                function.config_read(control, &mut now).expect("control");
                now[1] |= 0x80;
                function.config_write(control, &now).expect("FLR");
            }
            _ => function.reset().expect("DEVICE_RESET"),
        }
        assert_eq!(status(&*function), 0, "{what}: reset");
        // A new driver on the same connection; the old one's queues are void.
        drop(client);
        let (device, pairs) =
            Device::open(Arc::clone(&function), DeviceConfig::default()).expect("opens again");
        assert!(device.check().is_ok(), "{what}");
        drop(pairs);
        device.close().expect("the card resets");
        drop(function);
        next_client_is_served(&served, &all, &what);
        next_client_sends(&served, &all[..100], &what);
    }
}

fn run(served: &Served, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(["send", "--device", &served.name()])
        .args(arguments)
        .output()
        .expect("the command starts")
}

/// More frames than the ring holds, whoever says that they were read; the one that is asked for is named.
#[test]
fn send_completes_its_frames_under_every_policy() {
    let served = Served::start("loopback");
    let all = frames(300);
    let input = served.file("send.pcap");
    write_pcap(&input, &all);
    for policy in CompletionPolicy::ALL {
        let name = policy.name();
        let arguments = ["--ring-size", "64", "--completion", name];
        let output = run(
            &served,
            &[&["--read", text(&input)], &arguments[..]].concat(),
        );
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert!(said.contains(&format!("completion: {name}\n")), "{said}");
        assert_same(&served.watch.seen().sent, &all, name);
    }
    let output = run(&served, &["--read", text(&input), "--completion", "late"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("late is none of ring-empty,"), "{said}");
}
