//! The command on cards whose wires lead to other programs.

mod served;

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ferronic_oracle::{Header, Segment, resegment};
use ferronic_sim::SimConfig;
use ferronic_sim::wire::{PeerWire, StreamWire, TapWire, Wire};
use served::network::{configure, private_network};
use served::{PATIENCE, Served, assert_same, frames, read_pcap, text, wait, write_pcap};

#[test]
fn frames_pass_between_two_cards_over_a_stream_in_both_directions() {
    let dir = tempfile::tempdir().expect("directory");
    let wire = format!("stream:{}", dir.path().join("wire").display());
    // The first listens, the second connects.
    let cards = [Served::start(&wire), Served::start(&wire)];
    let all = frames(500);
    let input = dir.path().join("in.pcap");
    write_pcap(&input, &all);
    for (from, to) in [(0, 1), (1, 0)] {
        let (from, to) = (&cards[from], &cards[to]);
        let output = to.file("out.pcap");
        let count = all.len().to_string();
        let drivers = to.watch.seen().drivers;
        let capture = to.ferronic(&["capture", "--write", text(&output), "--count", &count]);
        to.watch
            .until("the capture begins", |seen| seen.drivers > drivers);
        from.succeeds(&["send", "--read", text(&input)]);
        assert!(wait(capture).success());
        assert_same(&read_pcap(&output), &all, "what was captured");
        assert_same(&from.watch.seen().sent, &all, "what was sent");
    }
}

#[test]
fn ping_is_answered_over_a_stream() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("wire");
    let listener = UnixListener::bind(&path).expect("socket");
    let served = Served::start(&format!("stream:{}", path.display()));
    let (stream, _) = listener.accept().expect("the card connects");
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    // A peer with its own end of the stream, in no simulation.
    let peer = std::thread::spawn(move || {
        let mut stream = StreamWire::connected(stream).expect("stream");
        let mut peer = PeerWire::new(None, Default::default()).expect("a peer");
        let mut requests = 0;
        while !ended.load(Ordering::Relaxed) {
            stream.poll().expect("stream");
            while let Some(frame) = stream.next_frame(0) {
                requests += 1;
                peer.sent(0, &frame.data, false);
            }
            while let Some(answer) = peer.next_frame(u64::MAX) {
                stream.sent(0, &answer.data, false);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        requests
    });
    served.succeeds(&["ping", "192.168.77.1", "--count", "5", "--interval-ms", "1"]);
    over.store(true, Ordering::Relaxed);
    assert!(peer.join().expect("no panic") >= 5);
}

/// Makes a TAP interface in a network namespace of this thread's own.
fn private_tap(name: &str) -> Result<TapWire, String> {
    private_network()?;
    let tap = TapWire::open(name).map_err(|e| e.to_string())?;
    configure(name, [192, 168, 77, 1]).map_err(|e| format!("setting {name} up: {e}"))?;
    Ok(tap)
}

#[test]
fn linux_answers_a_ping_and_datagrams_pass_over_a_tap_interface() {
    std::thread::spawn(|| {
        let tap = match private_tap("ferronic0") {
            Ok(tap) => tap,
            Err(why) => {
                println!("skipped: {why}; this test takes root and /dev/net/tun");
                return;
            }
        };
        let served = Served::with_wire(SimConfig::default(), Box::new(tap));
        // From the card: ARP and echo requests, answered by Linux.
        served.succeeds(&["ping", "192.168.77.1", "--count", "5", "--interval-ms", "1"]);
        assert!(served.watch.seen().sent.len() >= 6);

        // From Linux: datagrams to everybody on the network, captured by the driver.
        let output = served.file("out.pcap");
        let drivers = served.watch.seen().drivers;
        let capture = served.ferronic(&["capture", "--write", text(&output), "--count", "60"]);
        served
            .watch
            .until("the capture begins", |seen| seen.drivers > drivers);
        let socket = std::net::UdpSocket::bind("192.168.77.1:0").expect("socket");
        socket.set_broadcast(true).expect("broadcast");
        let datagram = |n: usize| -> Vec<u8> { (0..40 + n * 23).map(|i| (i + n) as u8).collect() };
        for n in 0..60 {
            let sent = socket.send_to(&datagram(n), "192.168.77.255:4791");
            assert_eq!(sent.expect("sent"), 40 + n * 23);
        }
        assert!(wait(capture).success());
        // Linux may have something of its own to say; datagrams keep their order.
        let got: Vec<Vec<u8>> = read_pcap(&output)
            .into_iter()
            .filter(|f| f.len() > 42 && f[12..14] == [8, 0] && f[36..38] == 4791_u16.to_be_bytes())
            .map(|f| f[42..].to_vec())
            .collect();
        assert!(got.len() >= 40, "{} of 60 datagrams", got.len());
        let want: Vec<_> = (0..got.len()).map(datagram).collect();
        assert_same(&got, &want, "datagrams");

        // From the driver into Linux's socket.
        let sink = std::net::UdpSocket::bind("192.168.77.1:4792").expect("socket");
        sink.set_read_timeout(Some(PATIENCE)).expect("timeout");
        let all: Vec<Vec<u8>> = (0..20).map(|n| udp(&datagram(n))).collect();
        let input = served.file("udp.pcap");
        write_pcap(&input, &all);
        served.succeeds(&["send", "--read", text(&input)]);
        for n in 0..20 {
            let mut buffer = [0; 2048];
            let got = sink.recv(&mut buffer).expect("a datagram");
            assert_eq!(buffer[..got], datagram(n), "datagram {n}");
        }
    })
    .join()
    .expect("no panic");
}

/// A datagram, on Ethernet to everybody, from 192.168.77.2 to port 4792 of 192.168.77.1, without UDP checksum.
fn udp(data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0xfe, 1, 0, 0, 1, 8, 0]);
    let mut ip = vec![0x45, 0];
    ip.extend((28 + data.len() as u16).to_be_bytes());
    ip.extend([
        0, 0, 0x40, 0, 64, 17, 0, 0, 192, 168, 77, 2, 192, 168, 77, 1,
    ]);
    let sum: u32 = ip
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(4791_u16.to_be_bytes());
    frame.extend(4792_u16.to_be_bytes());
    frame.extend((8 + data.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(data);
    frame
}

#[test]
fn stats_file_tells_what_was_sent_and_captured() {
    let dir = tempfile::tempdir().expect("directory");
    let (input, output) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    let all = frames(100);
    let bytes: u64 = all.iter().map(|f| f.len() as u64).sum();
    write_pcap(&input, &all);
    let served = Served::start(&format!("pcap:in={}", input.display()));
    served.succeeds(&["capture", "--write", text(&output), "--count", "100"]);
    let json = served.file("stats.json");
    let figure = |name: &str, direction: &str| -> u64 {
        let text = std::fs::read_to_string(&json).expect("the file");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(report["command"], "stats");
        let figures = report["figures"].as_array().expect("figures");
        let found = figures.iter().find(|f| {
            f["name"] == name && f["params"]["queue"] == 0 && f["params"]["direction"] == direction
        });
        found.and_then(|f| f["value"].as_u64()).expect("a number")
    };
    served.succeeds(&["stats", "--json", text(&json)]);
    assert_eq!(figure("packets", "rx"), 100);
    assert_eq!(figure("bytes", "rx"), bytes);
    assert_eq!(figure("packets", "tx"), 0);
    assert_eq!(figure("last_stamp", "tx"), 0);
    let received = figure("last_stamp", "rx");
    assert!(received > 0 && figure("interrupts", "rx") > 0);

    // Counters outlive the clients; looking at them did not change them.
    served.succeeds(&["send", "--read", text(&input)]);
    served.succeeds(&["stats", "--json", text(&json)]);
    assert_eq!(figure("packets", "tx"), 100);
    assert_eq!(figure("bytes", "tx"), bytes);
    assert!(figure("last_stamp", "tx") > received);
    assert_eq!(figure("drops", "tx"), 0);
}

#[test]
fn capture_merges_in_the_driver_if_told_to() {
    let dir = tempfile::tempdir().expect("directory");
    let (input, output) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    let metadata = dir.path().join("frames.json");
    let mut next = Segment::v4(1, 1000);
    let all: Vec<_> = (0..200)
        .map(|_| {
            let frame = next.bytes();
            next = next.next(1000);
            frame
        })
        .collect();
    write_pcap(&input, &all);
    let served = Served::start(&format!("pcap:in={}", input.display()));
    for gro in ["off", "on"] {
        let arguments = ["capture", "--gro", gro, "--idle-timeout-ms", "1000"];
        let files = ["--write", text(&output), "--metadata", text(&metadata)];
        served.succeeds(&[&arguments[..], &files].concat());
        let frames = read_pcap(&output);
        let lines = std::fs::read_to_string(&metadata).expect("the file");
        let headers = lines.lines().map(|line| {
            let said: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let number = |name: &str| said[name].as_u64().expect("a number") as u16;
            Header {
                flags: number("flags") as u8,
                gso_type: number("gso_type") as u8,
                // The hint is not told.
                hdr_len: u16::MAX,
                gso_size: number("gso_size"),
                csum_start: number("csum_start"),
                csum_offset: number("csum_offset"),
                num_buffers: number("num_buffers"),
            }
        });
        let cut = headers.zip(&frames).flat_map(|(header, frame)| {
            resegment(&header, frame).expect("a frame that a driver may be given")
        });
        assert_same(&cut.collect::<Vec<_>>(), &all, gro);
        // How much a burst has is a matter of time.
        assert_eq!(frames.len() < all.len(), gro == "on", "{}", frames.len());
    }
}

#[test]
fn selftest_passes_on_a_loopback_and_says_what_it_did_not_run() {
    let outcomes = |wire: &str| -> Vec<(String, String)> {
        let served = Served::start(wire);
        let report = served.file("selftest.json");
        served.succeeds(&["selftest", "--faults", "--json", text(&report)]);
        let report = std::fs::read_to_string(report).expect("report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let word = |figure: &serde_json::Value, key: &str| {
            figure["params"][key].as_str().expect("text").to_owned()
        };
        report["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .map(|figure| (word(figure, "check"), word(figure, "outcome")))
            .collect()
    };
    let all = outcomes("loopback");
    assert_eq!(all.len(), 13);
    for (check, outcome) in &all {
        assert_eq!(outcome, "passed", "{check}");
    }
    let skipped: Vec<_> = outcomes("peer")
        .into_iter()
        .filter(|(_, outcome)| outcome != "passed")
        .collect();
    let loops = ["receive", "merging"];
    let loops = loops.map(|check| (check.to_owned(), "skipped".to_owned()));
    assert_eq!(skipped, loops, "what needs a loopback");
}

#[test]
fn ping_of_any_size_that_fits_is_answered_and_reported() {
    let served = Served::start("peer");
    let report = served.file("ping.json");
    let ping = |size: &str| {
        let rest = ["--count", "20", "--interval-ms", "0", "--size", size];
        let json = ["--json", text(&report)];
        let line = [&["ping", "192.168.77.1"][..], &rest, &json].concat();
        wait(served.ferronic(&line)).code()
    };
    for size in ["0", "1472"] {
        assert_eq!(ping(size), Some(0), "{size}");
        let text = std::fs::read_to_string(&report).expect("report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let figure = |name: &str| {
            let all = report["figures"].as_array().expect("figures");
            let found = all.iter().find(|figure| figure["name"] == name);
            found.expect(name)["value"].as_f64().expect("number")
        };
        assert_eq!(
            (figure("pings_sent"), figure("pings_answered")),
            (20.0, 20.0)
        );
        assert!(figure("ping_ms_median") >= figure("ping_ms_min"));
    }
    assert_eq!(ping("1473"), Some(1));
}
