//! The program `ferronic-sim`.

mod client;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Client;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferronic-sim"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `serve` and waits for the line that says that it is ready.
fn serve(socket: &Path, more: &[&str]) -> Running {
    let socket_text = socket.to_str().expect("UTF-8");
    let child = program(&["serve", "--socket", socket_text])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut child = Running(child);
    let mut line = String::new();
    let out = child.0.stdout.take().expect("standard output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert_eq!(line, format!("ready {socket_text}\n"));
    child
}

fn finish(mut child: Running) -> i32 {
    let start = Instant::now();
    loop {
        if let Some(status) = child.0.try_wait().expect("wait") {
            return status.code().unwrap_or(-1);
        }
        if start.elapsed() > Duration::from_secs(60) {
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Running, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(&child.0);
    rustix::process::kill_process(pid, signal).expect("signal");
}

fn figures(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("figures");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn termination_flushes_and_succeeds() {
    let dir = tempfile::tempdir().expect("directory");
    let (out, json) = (dir.path().join("out.pcap"), dir.path().join("f.json"));
    let wire = format!("pcap:out={}", out.display());
    let json_text = json.to_str().expect("UTF-8");
    let socket = dir.path().join("socket");
    let child = serve(&socket, &["--wire", &wire, "--json", json_text]);
    let mut client = Client::connect(&socket);
    client.negotiate();
    assert_eq!(client.read(0, 0x12, 2), [8, 0]);
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(finish(child), 0);
    assert!(!socket.exists());
    assert_eq!(std::fs::read(&out).expect("capture").len(), 24);
    let report = figures(&json);
    assert_eq!(report["command"], "serve");
    let names: Vec<_> = report["figures"]
        .as_array()
        .expect("figures")
        .iter()
        .filter_map(|f| f["name"].as_str())
        .collect();
    for name in [
        "cycles",
        "sim_khz",
        "tlps",
        "pcie_bytes",
        "frames",
        "interrupts",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn user_signal_writes_figures_and_goes_on() {
    let dir = tempfile::tempdir().expect("directory");
    let (socket, json) = (dir.path().join("socket"), dir.path().join("f.json"));
    let child = serve(&socket, &["--json", json.to_str().expect("UTF-8")]);
    signal(&child, rustix::process::Signal::USR1);
    let start = Instant::now();
    while !json.exists() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    figures(&json);
    let mut client = Client::connect(&socket);
    client.negotiate();
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(finish(child), 0);
}

fn figure(report: &serde_json::Value, name: &str) -> f64 {
    let figures = report["figures"].as_array().expect("figures");
    let found = figures.iter().find(|f| f["name"] == name);
    found.and_then(|f| f["value"].as_f64()).expect("a number")
}

#[test]
fn clock_stops_while_a_frame_waits_for_a_buffer() {
    let dir = tempfile::tempdir().expect("directory");
    let (socket, json) = (dir.path().join("socket"), dir.path().join("f.json"));
    // Received by nobody: what the card sends comes back until there is no buffer.
    let more = [
        "--wire",
        "loopback",
        "--json",
        json.to_str().expect("UTF-8"),
    ];
    let child = serve(&socket, &more);
    let name = format!("vfio-user:{}", socket.display());
    let function = ferronic::backend::open(&name).expect("the server listens");
    let config = ferronic::DeviceConfig {
        rx_buffers: Some(8),
        ..ferronic::DeviceConfig::default()
    };
    let (device, mut pairs) = ferronic::Device::open(function, config).expect("opens");
    for n in 0..100 {
        let _ = pairs[0].tx.push(&[n; 1000]).expect("a sound frame");
    }
    pairs[0].tx.flush().expect("the card takes it");
    let cycles = || {
        let _ = std::fs::remove_file(&json);
        signal(&child, rustix::process::Signal::USR1);
        let start = Instant::now();
        while !json.exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        let report = figures(&json);
        (
            figure(&report, "evaluated_cycles"),
            figure(&report, "frames"),
        )
    };
    // A look wakes the server for a burst of at most 32 steps. A clock that runs makes thousands
    // in the time between two looks.
    let start = Instant::now();
    let mut last = cycles();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = cycles();
        if now.0 - last.0 <= 100.0 && now.1 > 0.0 {
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{now:?} {last:?}"
        );
        last = now;
    }
    // It goes on as soon as there are buffers.
    let mut got = 0;
    let start = Instant::now();
    while got < 100 {
        got += pairs[0].rx.receive(64, |_| ()).expect("the card behaves");
        assert!(start.elapsed() < Duration::from_secs(60), "{got} frames");
    }
    drop(pairs);
    device.close().expect("the card resets");
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(finish(child), 0);
}

#[test]
fn once_ends_with_the_first_client() {
    let dir = tempfile::tempdir().expect("directory");
    let socket = dir.path().join("socket");
    let child = serve(&socket, &["--once", "--wire", "loopback"]);
    let mut client = Client::connect(&socket);
    client.negotiate();
    drop(client);
    assert_eq!(finish(child), 0);
}

#[test]
fn features_and_mtu_are_what_the_card_offers() {
    let dir = tempfile::tempdir().expect("directory");
    let socket = dir.path().join("socket");
    let more = [
        "--once",
        "--mtu",
        "1400",
        "--features",
        "-mrg_rxbuf,-event_idx",
    ];
    let child = serve(&socket, &more);
    let mut client = Client::connect(&socket);
    client.negotiate();
    let offered = client.read(0, 4, 4);
    let offered = u32::from_ne_bytes(offered.try_into().expect("four bytes"));
    assert_eq!(offered & (1 << 15 | 1 << 29), 0, "{offered:#x}");
    assert_eq!(offered & (1 << 3 | 1 << 5), 1 << 3 | 1 << 5, "{offered:#x}");
    // mtu of the device configuration.
    assert_eq!(client.read(0, 0x200a, 2), 1400_u16.to_le_bytes());
    drop(client);
    assert_eq!(finish(child), 0);
}

#[test]
fn mistakes_are_explained() {
    let dir = tempfile::tempdir().expect("directory");
    let socket = dir.path().join("socket");
    let socket = socket.to_str().expect("UTF-8");
    let cases: [(&[&str], &str); 7] = [
        (&["--queues", "5"], "4 queue pairs"),
        (&["--queues", "0"], "4 queue pairs"),
        (&["--data-width", "96"], "feature `w96`"),
        (&["--wire", "cable"], "loopback"),
        (&["--wire", "peer", "--wire", "peer"], "one port"),
        (&["--features", "-tso"], "mrg_rxbuf"),
        (
            &["--wire", "pcap:in=/nonexistent.pcap"],
            "/nonexistent.pcap",
        ),
    ];
    for (arguments, part) in cases {
        let mut child = program(&["serve", "--socket", socket])
            .args(arguments)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut text = String::new();
        let mut pipe = child.stderr.take().expect("standard error");
        pipe.read_to_string(&mut text).expect("text");
        assert_ne!(finish(Running(child)), 0);
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
}
