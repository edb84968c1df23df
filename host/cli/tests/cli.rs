//! What a person meets who gets something wrong.

use std::path::Path;
use std::process::{Command, Output};

fn ferronic(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(arguments)
        .env_remove("FERRONIC_DEVICE")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

/// Runs, expects this exit code, returns what was said on standard error.
fn fails(code: i32, arguments: &[&str]) -> String {
    let output = ferronic(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const NO_SERVER: &str = "vfio-user:/nonexistent/nic.sock";

#[test]
fn wrong_use_ends_in_2() {
    assert!(fails(2, &[]).contains("Usage"));
    assert!(fails(2, &["info"]).contains("--device"));
    assert!(
        fails(
            2,
            &[
                "capture",
                "--device",
                "x",
                "--write",
                "a",
                "--buffer-size",
                "64"
            ]
        )
        .contains("128..=65536")
    );
    assert!(
        fails(
            2,
            &["ping", "--device", "x", "10.0.0.1", "--local", "10.0.0.2"]
        )
        .contains("192.168.77.2/24")
    );
}

#[test]
fn unknown_devices_say_what_is_known() {
    assert!(fails(1, &["info", "--device", "eth0"]).contains("vfio-user:/path"));
    for name in ["ffff:ff:1f.7", "vfio:ffff:ff:1f.7"] {
        assert!(fails(1, &["info", "--device", name]).contains("no PCI function ffff:ff:1f.7"));
    }
    let error = fails(1, &["info", "--device", NO_SERVER]);
    assert!(error.contains("is the simulator running?"), "{error}");
}

#[test]
fn settings_are_looked_at_before_the_card() {
    let at = |arguments: &[&str], code, says: &str| {
        let error = fails(code, &[arguments, &["--device", NO_SERVER]].concat());
        assert!(error.contains(says), "{arguments:?}: {error}");
    };
    at(&["tap", "--cpus", "3-1"], 1, "ends before it begins");
    at(&["tap", "--cpus", ""], 1, "names no CPU");
    at(&["rss", "set"], 1, "nothing is to be set");
    at(&["filter", "set"], 1, "nothing is to be set");
    at(&["offload", "set"], 1, "nothing is to be set");
    at(&["rss", "set", "--types", "tcp"], 2, "is no hash type");
    at(
        &["rss", "set", "--off", "--equal", "2"],
        2,
        "cannot be used with",
    );
    at(
        &["rss", "set", "--equal", "2", "--weight", "1"],
        2,
        "cannot be used with",
    );
    at(&["xps", "set", "--queue", "1"], 2, "--cpus");
    at(
        &["xps", "set", "--queue", "1", "--cpus", "1", "--rxqs", "1"],
        2,
        "cannot be used with",
    );
    at(&["coalesce", "set", "--packets", "1"], 2, "--usecs");
    at(&["queues", "set", "65"], 2, "1..=64");
    at(&["queues", "show"], 1, "is the simulator running?");
}

#[test]
fn hash_of_a_flow_is_computed_without_a_card() {
    let says = |arguments: &[&str]| {
        let output = ferronic(&[&["rss", "hash"], arguments].concat());
        assert!(output.status.success(), "{:?}", output.stderr);
        String::from_utf8(output.stdout).unwrap()
    };
    // Of the published vectors.
    let v4 = [
        "--source",
        "66.9.149.187:2794",
        "--destination",
        "161.142.100.80:1766",
    ];
    assert_eq!(says(&v4), "0x51ccc178 tcp4\n");
    let more = [
        &v4[..],
        &["--protocol", "udp", "--types", "ip4", "--equal", "3"],
    ]
    .concat();
    // 0x323e8fc2 % 128 is 66.
    assert_eq!(says(&more), "0x323e8fc2 ip4\npair 0\n");
    let v6 = [
        "--source",
        "3ffe:2501:200:1fff::7",
        "--destination",
        "3ffe:2501:200:3::1",
    ];
    assert_eq!(says(&v6), "0x2cc18cd5 ip6\n");
    assert_eq!(says(&[&v6[..], &["--types", "none"]].concat()), "none\n");
    let json = says(&[&v4[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["hash"], &json["over"]),
        (&0x51cc_c178_u32.into(), &"tcp4".into())
    );
    let wrong = [
        "rss",
        "hash",
        "--source",
        "10.0.0.1:1",
        "--destination",
        "10.0.0.2",
    ];
    assert!(fails(1, &wrong).contains("ADDRESS:PORT"));
}

#[test]
fn capture_without_a_card_keeps_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old.pcap");
    std::fs::write(&file, "precious").unwrap();
    fails(
        1,
        &["capture", "--device", NO_SERVER, "--write", text(&file)],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let error = fails(
        1,
        &[
            "capture",
            "--device",
            NO_SERVER,
            "--write",
            text(&file),
            "--metadata",
            text(&file),
        ],
    );
    assert!(error.contains("two names"), "{error}");
    let error = fails(
        1,
        &[
            "capture",
            "--device",
            NO_SERVER,
            "--write",
            "/nonexistent/x.pcap",
        ],
    );
    assert!(
        error.contains("/nonexistent/x.pcap: cannot be opened for writing"),
        "{error}"
    );
}

#[test]
fn send_looks_at_its_file_before_the_card() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.pcap");
    let send = |content: &[u8]| {
        std::fs::write(&file, content).unwrap();
        fails(1, &["send", "--device", NO_SERVER, "--read", text(&file)])
    };
    assert!(send(b"").contains("not a pcap file"));
    assert!(send(b"hello, this is some text that is long enough").contains("not a pcap file"));
    assert!(send(&[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]).contains("editcap"));
    // A good header, but of raw IP.
    let mut header = vec![
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0,
    ];
    header.extend([101, 0, 0, 0]);
    assert!(send(&header).contains("link type"));
    header[20] = 1;
    assert!(send(&header).contains("is the simulator running?"));
    let error = fails(
        1,
        &["send", "--device", NO_SERVER, "--read", "/nonexistent.pcap"],
    );
    assert!(
        error.contains("/nonexistent.pcap: cannot be read"),
        "{error}"
    );
}
