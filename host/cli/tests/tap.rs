//! `ferronic tap`: Linux's own TCP over the card, to the simulator's peer.

mod served;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ferronic::spec::Features;
use ferronic::tap::{Tap, TapError};
use ferronic_transfer::{Answer, DIGEST, Incoming, Pattern, SINK, SOURCE, Sum, order};
use served::network::{configure, private_network};
use served::{PATIENCE, Served, text, wait};

const BYTES: usize = 2_000_003;
const NAME: &str = "ferronic0";

/// Runs a test in a network of its own, where there can be such a thing; one at a time, for Linux's TCP
/// has little patience with two simulated cards on a slow machine.
fn in_private_network(test: fn()) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::spawn(move || {
        // What makes an interface here makes one there.
        let ready = private_network()
            .and_then(|()| Tap::open(NAME, Features::empty()).map_err(|e| e.to_string()));
        match ready {
            Ok(tap) => {
                drop(tap);
                test();
            }
            Err(why) => println!("skipped: {why}; this test takes root and /dev/net/tun"),
        }
    })
    .join()
    .expect("no panic");
}

/// The bridge on a card, and what it said first.
fn bridge(served: &Served, arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(["tap", "--device", &served.name(), "--name", NAME])
        .args(arguments)
        .env_remove("FERRONIC_DEVICE")
        .env("XDG_RUNTIME_DIR", served.dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    (child, line)
}

/// SIGTERM, and its end.
fn end(mut child: Child) {
    let rest = child.stdout.take();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("signal");
    let mut said = String::new();
    let read = rest.map(|mut rest| rest.read_to_string(&mut said));
    assert!(wait(child).success(), "{said} {read:?}");
}

fn connect(port: u16) -> TcpStream {
    let peer = SocketAddr::from(([192, 168, 77, 1], port));
    let stream = TcpStream::connect_timeout(&peer, PATIENCE).expect("the peer answers");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("timeout");
    stream
}

/// Sends to the peer's sink, and compares with what it says.
fn send() {
    let mut data = vec![0; BYTES];
    Pattern::new(3).fill(&mut data);
    let mut sum = Sum::default();
    sum.add(&data);
    let mut stream = connect(SINK);
    stream.write_all(&data).expect("sent");
    stream.shutdown(Shutdown::Write).expect("half of it");
    let mut answer = [0; Answer::LEN];
    stream.read_exact(&mut answer).expect("answer");
    let answer = Answer::parse(&answer);
    assert_eq!(answer.bytes, BYTES as u64);
    assert_eq!(answer.digest, sum.finish(), "what arrived");
}

/// Receives from the peer's source.
fn receive() {
    let mut stream = connect(SOURCE);
    stream.write_all(&order(BYTES as u64, 4)).expect("sent");
    let mut incoming = Incoming::new(BYTES as u64);
    let mut piece = vec![0; 65_536];
    let mut total = 0;
    while !incoming.is_whole() {
        let n = stream.read(&mut piece).expect("data");
        assert_ne!(n, 0, "{total} of {} bytes", BYTES + DIGEST);
        total += n;
        incoming.take(&piece[..n]);
    }
    let (sent, received) = incoming.finish();
    assert_eq!(sent, received);
}

/// Figures of the report, by name.
fn figure(report: &serde_json::Value, name: &str) -> u64 {
    let figures = report["figures"].as_array().expect("a list");
    let found = figures.iter().find(|figure| figure["name"] == name);
    found.and_then(|f| f["value"].as_u64()).expect("a number")
}

#[test]
fn card_is_an_interface_of_linux_and_its_tcp_moves_both_ways() {
    in_private_network(|| {
        let served = Served::start("peer");
        for (arguments, offloads) in [
            (&[][..], true),
            (&["--gro", "off", "--lro", "off"], true),
            // And nothing to merge by.
            (&["--without", "csum,guest_csum", "--gro", "off"], false),
        ] {
            let file = served.file("tap.json");
            let more = [arguments, &["--json", text(&file)]].concat();
            let (child, said) = bridge(&served, &more);
            assert!(
                said.starts_with(&format!("ready {NAME}: MAC 02:fe:")),
                "{said}"
            );
            // Another program cannot have it meanwhile.
            let busy = Tap::open(NAME, Features::empty());
            assert!(matches!(busy, Err(TapError::Busy(_))), "{busy:?}");
            configure(NAME, [192, 168, 77, 2]).expect("an address");
            send();
            receive();
            end(child);
            let report = std::fs::read_to_string(&file).expect("the report");
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            let of = |name| figure(&report, name);
            assert_eq!(report["figures"][0]["params"]["interface"], NAME);
            assert!(of("bytes_to_host") > BYTES as u64, "{report}");
            assert!(of("bytes_to_card") > BYTES as u64, "{report}");
            assert_eq!(of("refused") + of("unsendable"), 0, "{report}");
            // Linux gives more than fits into a frame, if the card cuts it.
            assert_eq!(of("segmented") > 0, offloads, "{report}");
            let merges = report["figures"][0]["params"]["lro"] == "strict";
            assert_eq!(of("units_by_card") > 0, merges, "{report}");
        }
    });
}

/// A command that does not outlive a test that fails: the card waits for its end.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
        }
    }
}

/// What a command asks of the bridge, and the state that it tells.
fn ask(served: &Served, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(arguments)
        .args(["--json", "--device", &served.name()])
        .env("XDG_RUNTIME_DIR", served.dir.path())
        .output()
        .expect("the command runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["running"], "tap");
    report["state"].clone()
}

/// Frames that each thread sent.
fn sent(state: &serde_json::Value) -> Vec<u64> {
    let threads = state["threads"].as_array().expect("a list").iter();
    let sent = threads.map(|thread| thread["sent"][0].as_u64().expect("a number"));
    sent.collect()
}

#[test]
fn pairs_of_a_bridge_have_threads_and_settings_change_under_them() {
    in_private_network(|| {
        let served = Served::start("peer");
        let file = served.file("tap.json");
        let more = ["--queues", "4", "--cpus", "spread", "--json", text(&file)];
        let (child, said) = bridge(&served, &more);
        let mut child = Guard(Some(child));
        assert!(
            said.starts_with(&format!("ready {NAME}: MAC 02:fe:")),
            "{said}"
        );
        configure(NAME, [192, 168, 77, 2]).expect("an address");
        // Flows are spread over the queues of the interface.
        for _ in 0..4 {
            send();
        }
        receive();
        let state = ask(&served, &["queues", "show"]);
        assert_eq!([&state["receiving"], &state["transmitting"]], [4, 4]);
        let before = sent(&state);
        let used = before.iter().filter(|frames| **frames > 0).count();
        assert!(before.len() == 4 && used > 1, "{before:?}");
        // Of the card's, only one is left; the host's stack follows.
        let state = ask(&served, &["queues", "set", "1"]);
        assert_eq!([&state["receiving"], &state["transmitting"]], [1, 1]);
        let before = sent(&ask(&served, &["queues", "show"]));
        send();
        receive();
        let after = sent(&ask(&served, &["queues", "show"]));
        assert!(after[0] > before[0] + 10, "{before:?} {after:?}");
        assert_eq!(after[1..], before[1..]);
        ask(&served, &["queues", "set", "4"]);
        receive();
        // Without segmentation the host's stack cuts what it sends.
        let state = ask(&served, &["offload", "set", "--tso", "off"]);
        assert_eq!(state["tso"], serde_json::json!([false, false, false]));
        let before: u64 = sent(&ask(&served, &["queues", "show"])).iter().sum();
        send();
        let after: u64 = sent(&ask(&served, &["queues", "show"])).iter().sum();
        assert!(after - before >= BYTES as u64 / 1460, "{before} {after}");
        end(child.0.take().expect("it runs"));
        let report = std::fs::read_to_string(&file).expect("the report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert!(figure(&report, "frames_to_card") >= after, "{report}");
        assert!(figure(&report, "segmented") > 0, "{report}");
        assert_eq!(
            figure(&report, "refused") + figure(&report, "unsendable"),
            0,
            "{report}"
        );
    });
}

#[test]
fn bridge_explains_what_stands_in_its_way() {
    let served = Served::start("loopback");
    let fails = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_ferronic"))
            .args(["tap", "--device", &served.name()])
            .args(arguments)
            .output()
            .expect("the command runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let said = fails(&["--name", "much-too-long-a-name"]);
    assert!(said.contains("1 to 15 characters"), "{said}");
    let said = fails(&["--name", "x y"]);
    assert!(said.contains("`x y`"), "{said}");
    // The card is free again at once.
    std::thread::sleep(Duration::from_millis(1));
    served.succeeds(&["info"]);
}
