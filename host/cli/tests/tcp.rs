//! `ferronic tcp` with the services of the simulator's peer.

mod served;

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::process::{Command, Output, Stdio};

use ferronic_sim::SimConfig;
use ferronic_sim::wire::{PeerWire, RxFrame, Wire};
use ferronic_transfer::{Pattern, Sum, hex};
use served::{Served, text, wait};

const PEER: &str = "192.168.77.1";
const BYTES: usize = 300_001;

/// SHA-256 of so many bytes of a seed.
fn digest(seed: u64, bytes: usize) -> String {
    let mut data = vec![0; bytes];
    Pattern::new(seed).fill(&mut data);
    let mut sum = Sum::default();
    sum.add(&data);
    hex(&sum.finish())
}

fn tcp(served: &Served, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(["tcp", "--device", &served.name()])
        .args(arguments)
        .env_remove("FERRONIC_DEVICE")
        .stdin(Stdio::null())
        .output()
        .expect("the command runs")
}

/// Fails with this exit code; what was said on standard error.
fn fails(served: &Served, code: i32, arguments: &[&str]) -> String {
    let output = tcp(served, arguments);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

/// Succeeds; the first figure of the report.
fn reports(served: &Served, arguments: &[&str]) -> serde_json::Value {
    let output = tcp(served, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["command"], "tcp");
    report["figures"][0].clone()
}

#[test]
fn tcp_both_ways_arrives_whole_at_any_mtu_and_ring_size() {
    let served = Served::start("peer");
    let bytes = BYTES.to_string();
    for (seed, more) in [
        ("5", &[][..]),
        ("6", &["--mtu", "576"]),
        ("7", &["--mtu", "9000"]),
        // Fewer entries than segments that may be on their way.
        ("8", &["--ring-size", "16"]),
    ] {
        let rest = [&["--bytes", &bytes, "--seed", seed], more].concat();
        let sent = reports(&served, &[&["send", PEER], &rest[..]].concat());
        assert_eq!(
            (&sent["name"], &sent["value"]),
            (&"tcp_bytes".into(), &BYTES.into())
        );
        let want = digest(seed.parse().expect("a number"), BYTES);
        assert_eq!(sent["params"]["sha256"], want, "{more:?}");

        let received = reports(&served, &[&["receive", PEER], &rest[..]].concat());
        assert_eq!(received["value"], BYTES, "{more:?}");
        assert_eq!(received["params"]["intact"], true, "{more:?}");
        assert_eq!(received["params"]["direction"], "rx", "{more:?}");
    }
    // Nothing at all is a transfer, too; the table says the same as the file.
    let file = served.file("tcp.json");
    for direction in ["send", "receive"] {
        let output = tcp(
            &served,
            &[direction, PEER, "--bytes", "0", "--json", text(&file)],
        );
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{said}");
        let empty = digest(1, 0);
        assert!(said.contains(&empty), "{said}");
        let report = std::fs::read_to_string(&file).expect("report");
        assert!(report.contains(&empty), "{report}");
    }
}

/// All figures of a report, by name.
fn figures(served: &Served, arguments: &[&str]) -> BTreeMap<String, serde_json::Value> {
    let output = tcp(served, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let figures = report["figures"].as_array().expect("figures").iter();
    figures
        .map(|f| (f["name"].as_str().expect("a name").to_owned(), f.clone()))
        .collect()
}

#[test]
fn tcp_says_who_verified_what_it_received() {
    let served = Served::start("peer");
    for (more, by_card) in [(&[][..], true), (&["--without", "guest_csum"], false)] {
        let each = [
            "receive", PEER, "--bytes", "100000", "--lro", "off", "--gro", "off",
        ];
        let arguments = [&each[..], more].concat();
        let figures = figures(&served, &arguments);
        let count = |name: &str| figures[name]["value"].as_u64().expect("a count");
        let (card, driver) = (count("verified_by_card"), count("verified_by_driver"));
        assert!(card + driver >= 70, "{card} and {driver}");
        assert_eq!((card > 0, driver > 0), (by_card, !by_card), "{more:?}");
        assert_eq!(count("refused"), 0);
    }
}

#[test]
fn tcp_gives_the_card_large_frames_to_segment_and_can_be_told_not_to() {
    let served = Served::start("peer");
    let mut buffers = Vec::new();
    for (more, tso, checksum) in [
        (&[][..], "on", "on"),
        (&["--tso", "off"], "off", "on"),
        (&["--without", "host_tso4"], "off", "on"),
        (&["--checksum", "off"], "off", "off"),
        (&["--without", "csum"], "off", "off"),
    ] {
        let arguments = [&["send", PEER, "--bytes", "1000000"], more].concat();
        let figures = figures(&served, &arguments);
        let params = &figures["tcp_bytes"]["params"];
        assert_eq!(
            (&params["tso"], &params["checksum"]),
            (&tso.into(), &checksum.into())
        );
        assert_eq!(params["intact"], true, "{more:?}");
        buffers.push(
            figures["buffers_per_mb"]["value"]
                .as_f64()
                .expect("a number"),
        );
        // What is on the wire does not depend on who cut it.
        let wire = std::mem::take(&mut served.watch.seen().sent);
        let full = wire.iter().filter(|frame| frame.len() == 1514).count();
        assert!(
            full > 400 && wire.iter().all(|frame| frame.len() <= 1514),
            "{full}"
        );
    }
    let (on, off) = (buffers[0], &buffers[1..]);
    // Each acknowledgement makes room for two segments, which go at once: larger ones are for those
    // whose window is larger than what is on its way.
    assert!(off.iter().all(|off| on * 1.5 <= *off), "{buffers:?}");
}

#[test]
fn tcp_explains_what_stands_in_its_way() {
    let served = Served::start(&format!("peer:ip={PEER}"));
    let said = fails(&served, 1, &["send", PEER, "--port", "4"]);
    assert!(
        said.contains("refuses connections") && said.contains("--port"),
        "{said}"
    );
    let said = fails(
        &served,
        1,
        &["receive", "192.168.77.3", "--timeout-ms", "300"],
    );
    assert!(said.contains("no answer from 192.168.77.3:19"), "{said}");
    let said = fails(&served, 1, &["send", "10.0.0.1"]);
    assert!(said.contains("--gateway"), "{said}");
    let said = fails(&served, 1, &["send", PEER, "--mtu", "9203"]);
    assert!(said.contains("at most 9202"), "{said}");
    // The echo service sends what it got: neither count nor digest.
    let said = fails(
        &served,
        3,
        &["send", PEER, "--port", "7", "--bytes", "1000"],
    );
    assert!(said.contains("is not what was sent"), "{said}");
}

#[test]
fn tcp_stopped_by_a_signal_leaves_card_and_peer_to_the_next() {
    let served = Served::start("peer");
    for direction in ["send", "receive"] {
        let drivers = served.watch.seen().drivers;
        let mut child = Command::new(env!("CARGO_BIN_EXE_ferronic"))
            .args(["tcp", "--device", &served.name(), direction, PEER])
            .args(["--bytes", "1000000000"])
            .env_remove("FERRONIC_DEVICE")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        served
            .watch
            .until("traffic", |seen| seen.drivers > drivers && seen.given > 100);
        // SAFETY: a child that was not waited for; no memory is involved.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
        let mut errors = child.stderr.take().expect("a pipe");
        assert_eq!(wait(child).code(), Some(1));
        let mut said = String::new();
        errors.read_to_string(&mut said).expect("UTF-8");
        assert!(said.contains("stopped by a signal"), "{said}");
        // The peer was told: it has room for eight connections.
        let last = served.watch.seen().sent.last().cloned().expect("frames");
        assert_eq!(last[47] & 4, 4, "the last frame is no reset: {last:02x?}");
        reports(&served, &[direction, PEER, "--bytes", "5000"]);
    }
}

/// A peer that swaps two words of one segment, which no checksum of TCP sees.
struct Swapping {
    peer: PeerWire,
    frames: usize,
}

impl Wire for Swapping {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        let mut frame = self.peer.next_frame(now)?;
        if frame.data.len() > 1000 {
            self.frames += 1;
            if self.frames == 30 {
                let (one, two) = frame.data[100..104].split_at_mut(2);
                one.swap_with_slice(two);
            }
        }
        Some(frame)
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.peer.next_event(now)
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        self.peer.sent(now, frame, aborted);
    }

    fn poll(&mut self) -> std::io::Result<()> {
        self.peer.poll()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.peer.fd()
    }
}

#[test]
fn tcp_sees_a_change_that_no_checksum_sees() {
    let peer = PeerWire::new(None, Default::default()).expect("a peer");
    let wire = Swapping { peer, frames: 0 };
    let served = Served::with_wire(SimConfig::default(), Box::new(wire));
    let said = fails(&served, 3, &["receive", PEER, "--bytes", "100000"]);
    assert!(said.contains("100000 of 100000 bytes, SHA-256"), "{said}");
    reports(&served, &["receive", PEER, "--bytes", "100000"]);
}

#[test]
fn merging_by_the_card_is_used_where_it_is_there_and_missed_where_it_was_asked_for() {
    let served = Served::start("peer");
    let about = Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(["info", "--device", &served.name()])
        .output()
        .expect("the command runs");
    let about = String::from_utf8(about.stdout).expect("UTF-8");
    let merges = !about.contains("LRO           none");
    assert!(about.contains("LRO"), "{about}");
    let get = ["receive", PEER, "--bytes", "300001"];
    let lro = |arguments: &[&str]| {
        let figures = figures(&served, &[&get, arguments].concat());
        let units = &figures["units_by_card"];
        let params = &units["params"];
        assert_eq!(params["intact"], true, "{arguments:?}");
        // The source sends hundreds of segments in a row.
        let merged = units["value"].as_u64().expect("a number") > 0;
        assert_eq!(merged, params["lro"] != "off", "{figures:?}");
        (params["lro"].clone(), params["lro_gap_us"].clone())
    };
    assert_eq!(lro(&["--lro", "off"]).0, "off");
    let set = [&get[..], &["--lro", "strict", "--lro-gap-us", "250"]].concat();
    if merges {
        assert_eq!(lro(&[]), ("strict".into(), 100.into()));
        assert_eq!(
            lro(&["--lro", "strict", "--lro-gap-us", "250"]),
            ("strict".into(), 250.into())
        );
    } else {
        assert_eq!(lro(&[]).0, "off", "done without");
        let said = fails(&served, 1, &set);
        assert!(
            said.contains("FEATURES.lro") && said.contains("GRO"),
            "{said}"
        );
        let said = fails(
            &served,
            1,
            &[&get[..], &["--lro-max-bytes", "9000"]].concat(),
        );
        assert!(said.contains("FEATURES.lro"), "{said}");
    }
    let relaxed = ["--lro", "relaxed"];
    if merges {
        assert_eq!(lro(&relaxed), ("relaxed".into(), 100.into()));
    } else {
        let said = fails(&served, 1, &[&get[..], &relaxed].concat());
        assert!(said.contains("this card"), "{said}");
    }
    let said = fails(
        &served,
        1,
        &[&get[..], &["--lro", "off", "--lro-gap-us", "1"]].concat(),
    );
    assert!(said.contains("--lro strict"), "{said}");
    let said = fails(&served, 2, &[&get[..], &["--lro", "rsc"]].concat());
    assert!(said.contains("relaxed"), "{said}");
}
