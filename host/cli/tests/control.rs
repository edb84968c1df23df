//! Settings of a running command through its control socket: they take effect, and are gone with it.

mod served;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ferronic::RssOptions;
use ferronic::rss::{HashTypes, Tuple, parse_key};
use ferronic_oracle::Segment;
use ferronic_sim::SimConfig;
use ferronic_sim::wire::{Pace, RxFrame, Wire, WireQueue};
use rustix::event::{EventfdFlags, eventfd};
use serde_json::Value;
use served::{PATIENCE, Served, read_pcap, text, wait, write_pcap};

const PAIRS: u16 = 4;
const FLOWS: usize = 64;

/// A wire that wakes the card when a test gives it frames.
struct Woken {
    wire: Box<dyn Wire>,
    given: OwnedFd,
}

impl Wire for Woken {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        self.wire.next_frame(now)
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.wire.next_event(now)
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        self.wire.sent(now, frame, aborted);
    }

    fn driver_ready(&mut self, now: u64, ready: bool) {
        self.wire.driver_ready(now, ready);
    }

    fn restart(&mut self) {
        self.wire.restart();
    }

    fn poll(&mut self) -> std::io::Result<()> {
        let _ = rustix::io::read(&self.given, &mut [0; 8]);
        self.wire.poll()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.given.as_fd())
    }

    fn pace(&self) -> Pace {
        self.wire.pace()
    }

    fn lossless(&self) -> bool {
        self.wire.lossless()
    }
}

/// A card, the other end of its wire, and a runtime directory of the test's own.
struct Bench {
    served: Served,
    wire: WireQueue,
    given: OwnedFd,
    runtime: tempfile::TempDir,
}

/// What a command said.
struct Said {
    good: bool,
    out: String,
    error: String,
}

impl Bench {
    fn new() -> Self {
        let (wire, end) = WireQueue::new();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let given = eventfd(0, flags).expect("eventfd");
        let woken = Woken {
            wire: end,
            given: given.try_clone().expect("descriptor"),
        };
        Self {
            served: Served::with_wire(SimConfig::default(), Box::new(woken)),
            wire,
            given,
            runtime: tempfile::tempdir().expect("directory"),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferronic"));
        command
            .args(arguments)
            .env("FERRONIC_DEVICE", self.served.name())
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let output: Output = self.command(arguments).output().expect("the command runs");
        Said {
            good: output.status.success(),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            error: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// The state that a command tells, and the running command that it is of.
    fn state(&self, arguments: &[&str]) -> (Value, Option<String>) {
        let said = self.run(&[arguments, &["--json"]].concat());
        assert!(said.good, "{arguments:?}: {}", said.error);
        let report: Value = serde_json::from_str(&said.out).expect("JSON");
        let running = report["running"].as_str().map(str::to_owned);
        (report["state"].clone(), running)
    }

    /// A command that goes on until it is ended, once its socket is there.
    fn start(&self, arguments: &[&str]) -> Running {
        let child = self
            .command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let child = Running(Some(child));
        self.socket();
        child
    }

    /// The socket of the running command.
    fn socket(&self) -> PathBuf {
        let start = Instant::now();
        loop {
            if let Some(path) = self.sockets().pop()
                && UnixStream::connect(&path).is_ok()
            {
                return path;
            }
            assert!(start.elapsed() < PATIENCE, "no control socket");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.runtime.path().join("ferronic"));
        let entries = folder.into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).collect()
    }

    /// Frames of many flows to the card.
    fn give(&self, count: usize) {
        for n in 0..count {
            let mut bytes = Segment::v4(1, 100).bytes();
            // Another source address; the header's sum stays as it is by another destination.
            bytes[29] = (n % FLOWS) as u8;
            bytes[33] = bytes[33].wrapping_sub(bytes[29]);
            self.wire.push(bytes);
        }
        self.wake();
    }

    /// Lets the card look at its wire.
    fn wake(&self) {
        rustix::io::write(&self.given, &1u64.to_ne_bytes()).expect("written");
    }
}

/// A command that does not outlive a test that fails: the card waits for its end.
struct Running(Option<Child>);

impl Running {
    fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    fn take(mut self) -> Child {
        self.0.take().expect("it runs")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
        }
    }
}

fn terminate(child: Running) {
    let child = child.take();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("signal");
    assert!(wait(child).success());
}

fn queues(metadata: &str) -> Vec<u64> {
    let lines = metadata.lines();
    let queue = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["queue"].as_u64().expect("a number")
    };
    lines.map(queue).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn number_of_queues_set_while_frames_are_captured_takes_effect_and_is_gone_afterwards() {
    let bench = Bench::new();
    let (pcap, metadata) = (bench.served.file("c.pcap"), bench.served.file("c.json"));
    let count = (3 * FLOWS).to_string();
    let capture = ["capture", "--queues", "4", "--write", text(&pcap)];
    let more = ["--metadata", text(&metadata), "--count", &count];
    let child = bench.start(&[&capture[..], &more].concat());
    let received = || fs::read_to_string(&metadata).unwrap_or_default();
    let lines = |count: usize| received().lines().count() >= count;

    bench.give(FLOWS);
    until("frames over all pairs", || lines(FLOWS));
    let (state, running) = bench.state(&["queues", "show"]);
    assert_eq!(running.as_deref(), Some("capture"));
    assert_eq!([&state["opened"], &state["receiving"]], [4, 4]);
    let (state, running) = bench.state(&["queues", "set", "1"]);
    assert_eq!(running.as_deref(), Some("capture"));
    assert_eq!([&state["opened"], &state["receiving"]], [4, 1]);
    bench.give(FLOWS);
    until("frames on one pair", || lines(2 * FLOWS));
    // What cannot be is refused, by the command that has the card.
    let said = bench.run(&["queues", "set", "5"]);
    assert!(!said.good);
    assert!(
        said.error.contains("ferronic capture (process "),
        "{}",
        said.error
    );
    assert!(
        said.error.contains("4 were opened; give 1 to 4"),
        "{}",
        said.error
    );
    bench.state(&["queues", "set", "4"]);
    bench.give(FLOWS);
    assert!(wait(child.take()).success());

    let queues = queues(&received());
    let on = |range: std::ops::Range<usize>| {
        (0..4)
            .map(|q| queues[range.clone()].contains(&q))
            .collect::<Vec<_>>()
    };
    assert_eq!(on(0..FLOWS), [true; 4]);
    assert_eq!(on(FLOWS..2 * FLOWS), [true, false, false, false]);
    assert_eq!(on(2 * FLOWS..3 * FLOWS), [true; 4]);
    assert_eq!(read_pcap(&pcap).len(), 3 * FLOWS);

    // A command that is killed leaves nothing behind either.
    let child = bench.start(&capture);
    bench.state(&["queues", "set", "2"]);
    kill(child);
    let (state, running) = bench.state(&["queues", "show"]);
    assert_eq!(running, None);
    assert_eq!(state["receiving"], PAIRS);
}

fn kill(child: Running) {
    let mut child = child.take();
    child.kill().expect("SIGKILL");
    assert!(!wait(child).success());
}

#[test]
fn masks_set_while_frames_are_sent_choose_the_queue_and_are_gone_afterwards() {
    let bench = Bench::new();
    const FRAMES: usize = 20_000;
    // Each is a flow of its own: none has to stay where it was.
    let frames = (0..FRAMES).map(|n| {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
        frame[..4].copy_from_slice(&(4 * n as u32).to_be_bytes());
        frame
    });
    let input = bench.served.file("in.pcap");
    write_pcap(&input, &frames.collect::<Vec<_>>());
    let send = ["send", "--queues", "4", "--ring-size", "16"];
    let child = bench.start(&[&send[..], &["--read", text(&input)]].concat());
    let (state, running) = bench.state(&["xps", "show"]);
    assert_eq!(running.as_deref(), Some("send"));
    assert!(
        state
            .as_array()
            .expect("a list")
            .iter()
            .all(|queue| queue["cpus"][0] == "")
    );
    let (state, running) = bench.state(&["xps", "set", "--queue", "2", "--cpus", "all"]);
    let sent = bench.served.watch.seen().sent.len();
    assert_eq!(running.as_deref(), Some("send"));
    assert_ne!(state[2]["cpus"][0], "");
    // The kernel's form, and receive queues.
    let (state, _) = bench.state(&["xps", "set", "--queue", "1", "--rxq-mask", "a"]);
    assert_eq!(state[1]["rxqs"], serde_json::json!(["1,3", "a"]));
    for (wrong, says) in [
        (
            ["xps", "set", "--queue", "4", "--cpus", "0"],
            "there is no transmit queue 4",
        ),
        (
            ["xps", "set", "--queue", "0", "--rxqs", "4"],
            "4 is not there",
        ),
        (
            ["xps", "set", "--queue", "0", "--cpu-mask", "0x1"],
            "without 0x",
        ),
    ] {
        let said = bench.run(&wrong);
        assert!(
            !said.good && said.error.contains(says),
            "{wrong:?}: {}",
            said.error
        );
    }
    assert!(sent < FRAMES / 2, "{sent} were sent too early");
    assert!(wait(child.take()).success());

    let said = bench.run(&["stats", "--json", text(&bench.served.file("s.json"))]);
    assert!(said.good, "{}", said.error);
    let report = fs::read_to_string(bench.served.file("s.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let figures = report["figures"].as_array().expect("a list");
    let packets = |queue: u64| {
        let found = figures.iter().find(|f| {
            f["name"] == "packets"
                && f["params"]["direction"] == "tx"
                && f["params"]["queue"] == queue
        });
        found.and_then(|f| f["value"].as_u64()).expect("a counter") as usize
    };
    let packets = [0, 1, 2, 3].map(packets);
    assert_eq!(packets.iter().sum::<usize>(), FRAMES);
    // Before the mask was set all of them had frames; after it what was in their rings.
    assert!(packets.iter().all(|count| *count > 0), "{packets:?}");
    let others = packets[0] + packets[1] + packets[3];
    assert!(others <= sent + 4 * 16, "{packets:?}, {sent} sent before");

    let (state, running) = bench.state(&["xps", "show"]);
    assert_eq!(running, None);
    assert_eq!(state[2]["cpus"][0], "");
    assert_eq!(state[1]["rxqs"][0], "");
}

/// A frame of UDP between two addresses and ports, with right sums.
fn datagram(source: [u8; 4], port: u16) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..6].copy_from_slice(&[0x02, 0xfe, 1, 0, 0, 1]);
    bytes[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 9]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    bytes[26..30].copy_from_slice(&source);
    bytes[30..34].copy_from_slice(&[192, 168, 77, 2]);
    let words = bytes[14..34].as_chunks::<2>().0;
    let sum: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes[34..36].copy_from_slice(&port.to_be_bytes());
    bytes[36..38].copy_from_slice(&53_u16.to_be_bytes());
    bytes[38..40].copy_from_slice(&26_u16.to_be_bytes());
    bytes
}

#[test]
fn table_set_while_frames_are_captured_steers_them_as_the_driver_foretells() {
    let bench = Bench::new();
    let (pcap, metadata) = (bench.served.file("c.pcap"), bench.served.file("c.json"));
    let capture = ["capture", "--queues", "4", "--write", text(&pcap)];
    let more = ["--metadata", text(&metadata)];
    let child = bench.start(&[&capture[..], &more].concat());
    let received = || fs::read_to_string(&metadata).unwrap_or_default();
    let key: Vec<u8> = (0..40).map(|n| (n * 29 + 7) as u8).collect();
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let set = [
        "rss",
        "set",
        "--key",
        &key,
        "--weight",
        "1,0,2,5",
        "--unclassified",
        "1",
    ];
    let (state, running) = bench.state(&[&set[..], &["--types", "udp4"]].concat());
    assert_eq!(running.as_deref(), Some("capture"));
    assert_eq!(state["table"]["unclassified"], 1);
    let options = RssOptions::equal(4)
        .unwrap()
        .with_key(parse_key(&key).unwrap());
    let options = options
        .with_weights(&[1, 0, 2, 5])
        .unwrap()
        .with_types(HashTypes::UDP4);
    let options = options.with_unclassified(1).unwrap();
    let mut expected = Vec::new();
    for n in 0..100_u16 {
        let source = [10, 1, (n / 7) as u8, n as u8];
        let flow = Tuple::udp((source, 1000 + n).into(), ([192, 168, 77, 2], 53).into());
        expected.push((
            datagram(source, 1000 + n),
            u64::from(options.pair(&flow.unwrap())),
        ));
        // TCP has no hash by these types.
        expected.push((Segment::v4(1, 100 + usize::from(n)).bytes(), 1));
    }
    for (frame, _) in &expected {
        bench.wire.push(frame.clone());
    }
    bench.wake();
    until("all frames arrive", || {
        received().lines().count() == expected.len()
    });
    terminate(child);
    // In which order queues are looked at is not promised.
    let mut found: Vec<_> = read_pcap(&pcap)
        .into_iter()
        .zip(queues(&received()))
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found.len(), expected.len());
    for ((frame, queue), (wanted, pair)) in found.iter().zip(&expected) {
        assert!(frame == wanted, "another frame");
        assert_eq!(queue, pair, "{:?}", &frame[26..38]);
    }
    let (state, running) = bench.state(&["rss", "show"]);
    assert_eq!((&state["table"], running), (&Value::Null, None));
}

#[test]
fn filter_set_while_frames_are_captured_leaves_frames_out_and_is_gone_afterwards() {
    let bench = Bench::new();
    let (pcap, metadata) = (bench.served.file("c.pcap"), bench.served.file("c.json"));
    let capture = [
        "capture",
        "--write",
        text(&pcap),
        "--metadata",
        text(&metadata),
    ];
    let child = bench.start(&capture);
    let received = || {
        fs::read_to_string(&metadata)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let to = |address: [u8; 6], vlan: Option<u16>| {
        let mut frame = datagram([10, 0, 0, 1], 9);
        frame[..6].copy_from_slice(&address);
        if let Some(vlan) = vlan {
            let [high, low] = vlan.to_be_bytes();
            frame.splice(12..12, [0x81, 0, high, low]);
        }
        frame
    };
    let (own, other, group) = (
        [0x02, 0xfe, 1, 0, 0, 1],
        [2, 0, 0, 0, 0, 7],
        [1, 0, 0x5e, 0, 0, 5],
    );
    let all = [
        (own, None),
        (other, None),
        (group, None),
        ([0xff; 6], None),
        (own, Some(5)),
        (own, Some(4094)),
    ];
    let give = |taken: &[usize]| {
        let before = received();
        for (address, vlan) in all {
            bench.wire.push(to(address, vlan));
        }
        bench.wake();
        until("those that are taken arrive", || {
            received() == before + taken.len()
        });
        taken
            .iter()
            .map(|n| to(all[*n].0, all[*n].1))
            .collect::<Vec<_>>()
    };
    let mut expected = give(&[0, 1, 2, 3, 4, 5]);
    let (state, _) = bench.state(&["filter", "set", "--promiscuous", "off", "--vlans", "0,5"]);
    assert_eq!(state["addresses"], serde_json::json!(["02:fe:01:00:00:01"]));
    expected.extend(give(&[0, 3, 4]));
    bench.state(&[
        "filter",
        "set",
        "--add",
        "01:00:5e:00:00:05",
        "--broadcast",
        "off",
    ]);
    expected.extend(give(&[0, 2, 4]));
    bench.state(&["filter", "set", "--all-unicast", "on", "--vlans", "all"]);
    expected.extend(give(&[0, 1, 2, 4, 5]));
    let said = bench.run(&["stats"]);
    let filtered = said
        .out
        .lines()
        .find(|line| line.starts_with("rx_filtered"));
    let filtered = filtered.and_then(|line| line.split_whitespace().nth(1));
    assert_eq!(filtered, Some("7"), "{}", said.out);
    terminate(child);
    assert!(read_pcap(&pcap) == expected);
    let (state, running) = bench.state(&["filter", "show"]);
    assert_eq!(running, None);
    assert_eq!(state["modes"][0], "promiscuous");
    assert_eq!(state["addresses"], serde_json::json!([]));
}

/// The lines of a client without manners, and what it is told.
fn says(socket: &PathBuf, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    let _ = stream.write_all(bytes);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn clients_without_manners_are_told_so_and_frames_go_on() {
    let bench = Bench::new();
    let (pcap, metadata) = (bench.served.file("c.pcap"), bench.served.file("c.json"));
    let more = ["--metadata", text(&metadata), "--count", "400"];
    let child = bench.start(&[&["capture", "--write", text(&pcap)][..], &more].concat());
    let received = || {
        fs::read_to_string(&metadata)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let socket = bench.socket();
    let mode = fs::symlink_metadata(&socket).expect("socket");
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);

    let name = bench.served.socket().canonicalize().expect("a path");
    let device = format!("vfio-user:{}", name.display());
    let line = |version: u32, device: &str, request: &str| {
        format!(r#"{{"version":{version},"device":"{device}","request":{request}}}"#) + "\n"
    };
    let good = line(1, &device, r#"{"queues":null}"#);
    let answer = says(&socket, good.as_bytes());
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["command"], "capture");
    assert_eq!(answer["pid"], child.id());
    assert_eq!(answer["done"]["opened"], 1);

    let huge = line(
        1,
        &device,
        &format!(r#"{{"rss":{{"key":"{}"}}}}"#, "0".repeat(70_000)),
    );
    for (bytes, told) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "no line of JSON"),
        (vec![0xff; 100_000], "longer than 65536 bytes"),
        (huge.into_bytes(), "longer than 65536 bytes"),
        (b"\n".to_vec(), "no line of JSON"),
        (b"[1,2]\n".to_vec(), "not understood"),
        (
            line(2, &device, "{}").into_bytes(),
            "version 1 of the control socket, not 2",
        ),
        (
            line(1, "vfio:0000:01:00.0", r#"{"queues":null}"#).into_bytes(),
            "has the card vfio-user:",
        ),
        (
            line(1, &device, r#"{"reboot":null}"#).into_bytes(),
            "unknown variant `reboot`",
        ),
        (
            line(1, &device, r#"{"rss":{"colour":1}}"#).into_bytes(),
            "unknown field `colour`",
        ),
        (
            line(1, &device, r#"{"queues":70000}"#).into_bytes(),
            "not understood",
        ),
        (
            "[".repeat(60_000).into_bytes(),
            "no whole line came within 5s",
        ),
    ] {
        let answer = says(&socket, &bytes);
        let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        assert!(
            answer.contains("\"error\"") && answer.contains(told),
            "{begin}: {answer}"
        );
    }

    // Eight who say nothing take all places; frames go on, and the ninth is told.
    let idle: Vec<_> = (0..8)
        .map(|_| UnixStream::connect(&socket).expect("connected"))
        .collect();
    bench.give(200);
    until("frames pass clients that stall", || received() >= 200);
    until("the ninth is told", || {
        says(&socket, b"").contains("8 clients are being served")
    });
    // They are sent away in the end.
    until("places are free again", || {
        says(&socket, good.as_bytes()).contains("done")
    });
    drop(idle);
    bench.give(200);
    assert!(wait(child.take()).success());
    assert_eq!(read_pcap(&pcap).len(), 400);
    // It took its socket along.
    assert!(bench.sockets().is_empty(), "{:?}", bench.sockets());
}

#[test]
fn socket_that_a_killed_command_left_is_replaced_and_one_of_another_is_left() {
    let bench = Bench::new();
    let pcap = bench.served.file("c.pcap");
    let capture = ["capture", "--write", text(&pcap)];
    kill(bench.start(&capture));
    let stale = bench.sockets();
    assert_eq!(stale.len(), 1);
    assert!(UnixStream::connect(&stale[0]).is_err());
    let child = bench.start(&capture);
    assert_eq!(bench.sockets(), stale);
    assert_eq!(
        bench.state(&["queues", "show"]).1.as_deref(),
        Some("capture")
    );
    // Somebody else's in its place is not removed.
    fs::remove_file(&stale[0]).expect("removed");
    let _other = UnixListener::bind(&stale[0]).expect("socket");
    terminate(child);
    assert_eq!(bench.sockets(), stale);
}

#[test]
fn folder_that_others_can_write_to_is_not_used_and_the_command_goes_on() {
    let bench = Bench::new();
    let folder = bench.runtime.path().join("ferronic");
    fs::create_dir(&folder).expect("folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("mode");
    let pcap = bench.served.file("c.pcap");
    let child = bench
        .command(&["capture", "--count", "3", "--write", text(&pcap)])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let watch = &bench.served.watch;
    watch.until("the capture begins", |seen| seen.drivers > 0);
    bench.give(3);
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{error}");
    assert!(error.contains("only this user can use"), "{error}");
    assert!(bench.sockets().is_empty());
}

#[test]
fn counters_of_a_running_command_are_shown() {
    let bench = Bench::new();
    let pcap = bench.served.file("c.pcap");
    let metadata = bench.served.file("c.json");
    let child = bench.start(&[
        "capture",
        "--write",
        text(&pcap),
        "--metadata",
        text(&metadata),
    ]);
    bench.give(5);
    let received = || {
        fs::read_to_string(&metadata)
            .unwrap_or_default()
            .lines()
            .count()
    };
    until("frames arrive", || received() == 5);
    let said = bench.run(&["stats"]);
    assert!(said.good, "{}", said.error);
    assert!(
        said.error.contains("of the running `ferronic capture`"),
        "{}",
        said.error
    );
    let line = said
        .out
        .lines()
        .find(|line| line.starts_with("rx0"))
        .expect("a line");
    assert_eq!(line.split_whitespace().nth(1), Some("5"), "{line}");
    terminate(child);
}

#[test]
fn stack_that_waits_for_an_answer_serves_settings() {
    let bench = Bench::new();
    // Nobody answers.
    let wait = [
        "ping",
        "192.168.77.1",
        "--count",
        "1",
        "--timeout-ms",
        "120000",
    ];
    let child = bench.start(&wait);
    let (state, running) = bench.state(&["filter", "set", "--promiscuous", "off"]);
    assert_eq!(running.as_deref(), Some("ping"));
    assert_eq!(state["addresses"][0], "02:fe:01:00:00:01");
    kill(child);
}

/// What the card has is set and gone with the process; what it does not have is told.
#[test]
fn settings_of_the_card_end_with_the_process_or_are_told_to_be_missing() {
    let bench = Bench::new();
    let pcap = bench.served.file("c.pcap");
    let capture = ["capture", "--queues", "4", "--lro", "strict"];
    let child = bench.start(&[&capture[..], &["--write", text(&pcap)]].concat());
    let sets: [(&[&str], &str); 3] = [
        (
            &["rss", "set", "--equal", "3", "--types", "tcp4"],
            "FEATURES.steering",
        ),
        (
            &["coalesce", "set", "--packets", "8", "--usecs", "50"],
            "FEATURES.coalescing",
        ),
        (
            &["filter", "set", "--promiscuous", "off"],
            "FEATURES.filters",
        ),
    ];
    let mut changed = Vec::new();
    for (set, feature) in sets {
        let show = [set[0], "show"];
        let said = bench.run(&show);
        if !said.good {
            assert!(said.error.contains(feature), "{}", said.error);
            let said = bench.run(set);
            assert!(!said.good && said.error.contains(feature), "{}", said.error);
            continue;
        }
        let before = bench.state(&show).0;
        let (after, running) = bench.state(set);
        assert_eq!(running.as_deref(), Some("capture"));
        assert_ne!(before, after);
        assert_eq!(bench.state(&show).0, after);
        changed.push((show, before));
    }
    let (state, running) = bench.state(&["offload", "set", "--lro", "off", "--tso", "on"]);
    assert_eq!(
        (state["lro"].as_str(), running.as_deref()),
        (Some("off"), Some("capture"))
    );
    let said = bench.run(&["offload", "set", "--rx-checksum", "off"]);
    assert!(
        !said.good && said.error.contains("start the command"),
        "{}",
        said.error
    );
    let said = bench.run(&["offload", "set", "--tx-checksum", "off"]);
    assert!(
        !said.good && said.error.contains("--without csum"),
        "{}",
        said.error
    );
    let said = bench.run(&["xps", "show"]);
    assert!(
        !said.good && said.error.contains("`ferronic send` does"),
        "{}",
        said.error
    );
    terminate(child);
    for (show, before) in changed {
        assert_eq!(bench.state(&show), (before, None));
    }
    let (state, running) = bench.state(&["offload", "show"]);
    assert_eq!((state["lro"].as_str(), running), (Some("strict"), None));
    let said = bench.run(&["offload", "set", "--lro", "off"]);
    assert!(
        said.good && said.error.contains("the setting ends with this process"),
        "{}",
        said.error
    );
    assert_eq!(bench.state(&["offload", "show"]).0["lro"], "strict");
}
