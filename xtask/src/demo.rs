//! The demonstration: a real capture goes through the RTL to the driver, and back out.
//!
//! Everything runs as a user would run it: the simulator offers the card on a socket, the command
//! `ferronic` receives what the wire replays and sends it again. Both copies must equal the capture,
//! byte for byte and in order.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ferronic_figures::{Figure, Report};
use pcap_file::pcap::PcapReader;

use crate::error::Failure;
use crate::process::{self, cargo};
use crate::setup;

/// Bits of the data path, queue pairs and latency of host memory that the figures are for.
const DATA_W: u64 = 64;
const QUEUES: u64 = 1;
const LATENCY_NS: u64 = 1000;

/// virtio-net header in front of each frame on the PCIe side.
const HEADER_BYTES: u64 = 12;

/// How long a step may take before the demonstration gives up on it.
const PATIENCE: Duration = Duration::from_secs(180);

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A pcap file to replay in place of those under tests/data; may be given again
    #[arg(long, value_name = "FILE")]
    capture: Vec<PathBuf>,
}

/// `cargo xtask demo`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    setup::setup(root)?;
    eprintln!("demo: building the simulator and the driver (the first time takes some minutes)");
    let mut build = cargo(root);
    build.args([
        "build",
        "--package",
        "ferronic-sim",
        "--package",
        "ferronic-cli",
    ]);
    process::run("cargo build", &mut build)?;

    let target = target_directory(root)?;
    let stage = Stage::new(&target)?;
    let captures = if arguments.capture.is_empty() {
        ["tcp_veth.pcap", "edges.pcap"]
            .iter()
            .map(|name| root.join("tests/data").join(name))
            .collect()
    } else {
        arguments.capture.clone()
    };

    let mut report = Report {
        command: "demo".to_owned(),
        figures: Vec::new(),
    };
    for path in &captures {
        let frames = read_frames(path)?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let twice = stage.directory.join(format!("{name}.twice.pcap"));
        write_twice(path, &twice)?;
        eprintln!(
            "demo: {name}: {} frames through the card, once and twice",
            frames.len()
        );
        let once = stage.round(path)?;
        let twice = stage.round(&twice)?;
        for (direction, once, twice) in [("rx", &once.rx, &twice.rx), ("tx", &once.tx, &twice.tx)] {
            report
                .figures
                .extend(figures(&name, direction, &frames, once, twice));
        }
    }

    println!("\n{}\n", report.table(&["capture", "direction"]));
    println!("Every frame arrived and left byte-identical and in order. {DATA_W} bits at 125 MHz,");
    println!(
        "{QUEUES} queue pair, host memory after {LATENCY_NS} ns, over a vfio-user socket. Costs are those"
    );
    println!("of a second pass over the capture, without opening and closing the card. Files:");
    println!("{}", stage.directory.display());
    if let Some(path) = &arguments.json {
        report
            .write(path)
            .map_err(|source| Failure::io(path, source))?;
    }
    Ok(())
}

/// Where the programs are and where files go.
struct Stage {
    simulator: PathBuf,
    command: PathBuf,
    directory: PathBuf,
    /// In a place of its own with a short path: sockets allow about 100 bytes.
    sockets: PathBuf,
}

impl Stage {
    fn new(target: &Path) -> Result<Self, Failure> {
        let directory = target.join("demo");
        fs::create_dir_all(&directory).map_err(|source| Failure::io(&directory, source))?;
        let sockets = std::env::temp_dir().join(format!("ferronic-{}", std::process::id()));
        fs::create_dir_all(&sockets).map_err(|source| Failure::io(&sockets, source))?;
        Ok(Self {
            simulator: target.join("debug/ferronic-sim"),
            command: target.join("debug/ferronic"),
            directory,
            sockets,
        })
    }

    /// Wire to driver, then what was received from the driver to the wire; both must equal `path`.
    fn round(&self, path: &Path) -> Result<Round, Failure> {
        let frames = read_frames(path)?;
        if frames.is_empty() {
            return Err(Failure::Message(format!(
                "{} has no frame in it",
                path.display()
            )));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let place = |ending: &str| self.directory.join(format!("{name}.{ending}"));
        let (received, sent) = (place("received.pcap"), place("sent.pcap"));

        let mut capture = Command::new(&self.command);
        capture.arg("capture").arg("--write").arg(&received);
        capture.arg("--metadata").arg(place("received.jsonl"));
        capture.args([
            "--count",
            &frames.len().to_string(),
            "--idle-timeout-ms",
            "60000",
        ]);
        let rx = self.session(&format!("pcap:in={}", path.display()), &mut capture)?;
        compare("received", path, &frames, &received)?;

        let mut send = Command::new(&self.command);
        send.arg("send").arg("--read").arg(&received);
        let tx = self.session(&format!("pcap:out={}", sent.display()), &mut send)?;
        compare("sent", path, &frames, &sent)?;
        Ok(Round { rx, tx })
    }

    /// Offers a card with `wire` to one `ferronic` command; the simulator's statistics of it.
    fn session(&self, wire: &str, command: &mut Command) -> Result<Statistics, Failure> {
        let socket = self.sockets.join("nic.sock");
        let json = self.directory.join("session.json");
        let _ = fs::remove_file(&json);
        let mut serve = Command::new(&self.simulator);
        serve
            .arg("serve")
            .arg("--socket")
            .arg(&socket)
            .args(["--wire", wire, "--once"]);
        serve.arg("--data-width").arg(DATA_W.to_string());
        serve
            .arg("--pcie-latency-ns")
            .arg(LATENCY_NS.to_string())
            .arg("--json")
            .arg(&json);
        serve.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut simulator = Running::start("the simulator", &mut serve)?;
        simulator.wait_for_ready()?;

        command
            .arg("--device")
            .arg(format!("vfio-user:{}", socket.display()));
        command.stdin(Stdio::null());
        Running::start("ferronic", command)?.wait()?;
        simulator.wait()?;
        Statistics::read(&json)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.sockets);
    }
}

/// What one capture cost in both directions.
struct Round {
    rx: Statistics,
    tx: Statistics,
}

/// A program that does not outlive this one.
struct Running {
    what: String,
    child: Child,
}

impl Running {
    fn start(what: &str, command: &mut Command) -> Result<Self, Failure> {
        let child = command.spawn().map_err(|source| Failure::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
            remedy: String::new(),
        })?;
        Ok(Self {
            what: what.to_owned(),
            child,
        })
    }

    fn wait_for_ready(&mut self) -> Result<(), Failure> {
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        if line.starts_with("ready ") {
            return Ok(());
        }
        Err(Failure::Message(format!(
            "{} did not become ready; what it said is above",
            self.what
        )))
    }

    fn wait(mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        loop {
            let status = self.child.try_wait().map_err(|source| Failure::Start {
                program: self.what.clone(),
                source,
                remedy: String::new(),
            })?;
            match status {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(Failure::Step {
                        what: self.what.clone(),
                        how: status.to_string(),
                    });
                }
                None if begin.elapsed() > PATIENCE => {
                    return Err(Failure::Step {
                        what: self.what.clone(),
                        how: format!("no end after {} s", PATIENCE.as_secs()),
                    });
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What the simulator counted in one session: figures without circumstances, by name.
struct Statistics(BTreeMap<String, f64>);

impl Statistics {
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|source| Failure::io(path, source))?;
        let report: Report = serde_json::from_str(&text)
            .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))?;
        let plain = report.figures.into_iter().filter(|figure| {
            !figure.params.contains_key("direction") && !figure.params.contains_key("tlp")
        });
        Ok(Self(
            plain.map(|figure| (figure.name, figure.value)).collect(),
        ))
    }

    fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    /// What this session counted more than `other`.
    fn more_than(&self, other: &Self, name: &str) -> f64 {
        (self.get(name) - other.get(name)).max(0.0)
    }
}

fn figures(
    capture: &str,
    direction: &str,
    frames: &[Vec<u8>],
    once: &Statistics,
    twice: &Statistics,
) -> Vec<Figure> {
    let count = frames.len() as f64;
    let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
    let limit: u64 = frames
        .iter()
        .map(|frame| (frame.len() as u64 + HEADER_BYTES).div_ceil(DATA_W / 8))
        .sum();
    let more = |name| twice.more_than(once, name);
    // Cycles in which nothing happens are skipped and not counted: the driver is another process
    // and takes its time.
    let cycles = more("evaluated_cycles");
    // Few, and their number depends on the host's pace; opening the card raises none.
    let interrupts = twice.get("interrupts") / 2.0;
    [
        ("frames", count, "frames"),
        ("bytes", bytes as f64, "bytes"),
        ("cycles_per_frame", cycles / count, "cycles"),
        ("share_of_limit", limit as f64 / cycles, "1"),
        ("bytes_per_cycle", bytes as f64 / cycles, "bytes"),
        ("tlps_per_frame", more("tlps") / count, "TLPs"),
        ("pcie_bytes_per_frame", more("pcie_bytes") / count, "bytes"),
        ("interrupts", interrupts, "interrupts"),
        ("interrupts_per_frame", interrupts / count, "interrupts"),
        ("sim_khz", twice.get("sim_khz"), "kHz"),
    ]
    .into_iter()
    .map(|(name, value, unit)| {
        Figure::new(name, value, unit)
            .with("capture", capture)
            .with("data_w", DATA_W)
            .with("direction", direction)
            .with("latency_ns", LATENCY_NS)
            .with("queues", QUEUES)
    })
    .collect()
}

/// Fails with the first difference between the capture and what came through.
fn compare(what: &str, path: &Path, expected: &[Vec<u8>], copy: &Path) -> Result<(), Failure> {
    let found = read_frames(copy)?;
    let same = expected
        .iter()
        .zip(&found)
        .take_while(|(a, b)| a == b)
        .count();
    if same == expected.len() && found.len() == expected.len() {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "{}: {} of {} frames were {what}; the first difference is at frame {} (compare with {})",
        path.display(),
        found.len(),
        expected.len(),
        same + 1,
        copy.display()
    )))
}

fn read_frames(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let bad = |error| Failure::Message(format!("{}: {error}", path.display()));
    let file = fs::File::open(path).map_err(|source| Failure::io(path, source))?;
    let mut reader = PcapReader::new(BufReader::new(file)).map_err(bad)?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.map_err(bad)?.data.into_owned());
    }
    Ok(frames)
}

/// The same capture, twice in one file.
fn write_twice(path: &Path, copy: &Path) -> Result<(), Failure> {
    const FILE_HEADER: usize = 24;
    let mut text = fs::read(path).map_err(|source| Failure::io(path, source))?;
    let end = text.len();
    text.extend_from_within(FILE_HEADER.min(end)..end);
    fs::write(copy, text).map_err(|source| Failure::io(copy, source))
}

fn target_directory(root: &Path) -> Result<PathBuf, Failure> {
    let mut command = cargo(root);
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    process::output(&mut command)
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .and_then(|value| value["target_directory"].as_str().map(PathBuf::from))
        .ok_or_else(|| Failure::Message("cargo metadata names no target directory".to_owned()))
}

#[cfg(test)]
mod checks {
    use super::*;

    fn statistics(cycles: f64, tlps: f64) -> Statistics {
        let pairs = [
            ("evaluated_cycles", cycles),
            ("tlps", tlps),
            ("interrupts", 0.0),
        ];
        Statistics(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    #[test]
    fn figures_leave_out_what_opening_the_card_costs() {
        let frames = vec![vec![0; 64], vec![0; 60]];
        let (once, twice) = (statistics(100.0, 20.0), statistics(140.0, 30.0));
        let all = figures("c", "rx", &frames, &once, &twice);
        let value = |name: &str| all.iter().find(|f| f.name == name).map(|f| f.value);
        assert_eq!(value("cycles_per_frame"), Some(20.0));
        assert_eq!(value("tlps_per_frame"), Some(5.0));
        // 76 and 72 bytes are 10 and 9 beats.
        assert_eq!(value("share_of_limit"), Some(19.0 / 40.0));
    }

    #[test]
    fn compare_names_the_first_frame_that_differs() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/edges.pcap");
        let frames = read_frames(&own).expect("our own capture");
        assert!(compare("received", &own, &frames, &own).is_ok());
        let mut text = fs::read(&own).expect("readable");
        let last = text.len() - 1;
        text[last] ^= 1;
        let copy = dir.path().join("copy.pcap");
        fs::write(&copy, text).expect("written");
        let error = compare("received", &own, &frames, &copy).expect_err("one bit differs");
        assert!(
            error
                .to_string()
                .contains(&format!("frame {}", frames.len())),
            "{error}"
        );
    }
}
