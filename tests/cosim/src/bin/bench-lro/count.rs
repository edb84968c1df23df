//! Instructions and cache lines of a receiver, by callgrind.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::card::Driven;

/// The cache whose misses are counted: bytes, ways, bytes of a line.
pub const CACHE: &str = "32768,8,64";

/// What a receiver took.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// Instructions.
    pub instructions: Option<u64>,
    /// Lines that data was fetched into.
    pub lines: Option<u64>,
    /// What the receiver says.
    pub said: BTreeMap<String, u64>,
}

/// Runs `receive_cost`, under callgrind if it is there.
pub struct Counter {
    program: PathBuf,
    valgrind: bool,
    dir: PathBuf,
}

impl Counter {
    /// `program` is the example `receive_cost` of the driver.
    pub fn new(program: PathBuf) -> io::Result<Self> {
        let valgrind = Command::new("valgrind").arg("--version").output();
        let dir = std::env::temp_dir().join(format!("ferronic-lro-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        Ok(Self {
            program,
            valgrind: valgrind.is_ok_and(|output| output.status.success()),
            dir,
        })
    }

    /// True if instructions are counted.
    pub fn counts(&self) -> bool {
        self.valgrind
    }

    /// Writes what the driver saw to a file.
    pub fn record(&self, name: &str, driven: &Driven) -> io::Result<PathBuf> {
        use zerocopy::IntoBytes;
        let word = |n: usize| (n as u32).to_le_bytes();
        let mut bytes = word(driven.bursts.len()).to_vec();
        for burst in &driven.bursts {
            bytes.extend(word(burst.len()));
            for frame in burst {
                bytes.extend(frame.header.as_bytes());
                bytes.extend(word(frame.bytes.len()));
                bytes.extend(&frame.bytes);
            }
        }
        let path = self.dir.join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Lets the receiver take a recording.
    pub fn run(&self, recording: &Path, what: &str, how: &str) -> Result<Count, String> {
        let out = self.dir.join("callgrind");
        let mut command = if self.valgrind {
            let mut command = Command::new("valgrind");
            command
                .args(["--tool=callgrind", "--collect-atstart=no"])
                .args(["--toggle-collect=*measured*", "--cache-sim=yes"])
                .arg(format!("--I1={CACHE}"))
                .arg(format!("--D1={CACHE}"))
                .arg("--LL=8388608,16,64")
                .arg(format!("--callgrind-out-file={}", out.display()))
                .arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command.arg(recording).args([what, how]);
        // Nothing of the environment moves memory about. A string instruction would count as one
        // for each byte, so the C library is told to copy by vectors.
        command.env_clear().env(
            "GLIBC_TUNABLES",
            "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824",
        );
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {text}", self.program.display()));
        }
        let mut count = Count::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some((name, value)) = line.split_once(' ')
                && let Ok(value) = value.parse()
            {
                count.said.insert(name.to_owned(), value);
            }
        }
        if self.valgrind {
            let text = fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
            let events = events(&text).ok_or("callgrind wrote nothing that is understood")?;
            count.instructions = events.get("Ir").copied();
            count.lines = events
                .get("D1mr")
                .zip(events.get("D1mw"))
                .map(|(read, write)| read + write);
        }
        Ok(count)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Sums of all events by name.
fn events(text: &str) -> Option<BTreeMap<&str, u64>> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let values = line("totals:").or_else(|| line("summary:"))?;
    let values = values.split_whitespace().map(|value| value.parse().ok());
    let names = line("events:")?.split_whitespace();
    names
        .zip(values)
        .map(|(name, value)| Some((name, value?)))
        .collect()
}
