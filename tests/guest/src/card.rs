//! The card: `ferronic-sim serve` in a process of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ferronic_figures::Report;
use rustix::process::Signal;

use crate::GuestError;
use crate::child::Helper;

/// How long the simulator may take for anything but simulating.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to write out what it has.
const FAREWELL: Duration = Duration::from_secs(10);

/// The simulator, serving.
pub struct Card {
    helper: Helper,
    socket: PathBuf,
    figures: PathBuf,
}

/// Counters of the simulator, by name and direction (`frames rx`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters(BTreeMap<String, f64>);

impl Counters {
    /// A counter; 0 if there is none of that name.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let difference = |(name, value): (&String, &f64)| (name.clone(), value - before.get(name));
        Self(self.0.iter().map(difference).collect())
    }
}

impl Card {
    /// Starts the simulator `program` (its `serve` command) in `dir`, with more arguments.
    pub fn start(program: &Path, dir: &Path, arguments: &[String]) -> Result<Self, GuestError> {
        let (socket, figures) = (dir.join("card.sock"), dir.join("card.json"));
        let log = dir.join("card.log");
        let errors = fs::File::create(&log).map_err(GuestError::file(&log))?;
        let (mut read, write) =
            std::io::pipe().map_err(|error| GuestError::program("ferronic-sim", error))?;
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg("--socket")
            .arg(&socket)
            .arg("--json")
            .arg(&figures)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(write)
            .stderr(errors);
        let mut helper = Helper::start("ferronic-sim", &mut command)?;
        // Its end of the pipe must be the only one.
        drop(command);
        let mut line = String::new();
        BufReader::new(&mut read)
            .read_line(&mut line)
            .map_err(|error| GuestError::program("ferronic-sim", error))?;
        if !line.starts_with("ready ") {
            let status = helper.wait(PATIENCE)?;
            let text = fs::read_to_string(&log).unwrap_or_default();
            return Err(GuestError::program(
                "ferronic-sim",
                format!("{status}: {}", text.trim_end()),
            ));
        }
        Ok(Self {
            helper,
            socket,
            figures,
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// An error if the simulator ended.
    pub fn check(&mut self) -> Result<(), GuestError> {
        match self.helper.ended()? {
            None => Ok(()),
            Some(status) => Err(GuestError::program(
                "ferronic-sim",
                format!("ended in mid-run: {status}"),
            )),
        }
    }

    /// The counters as they are now.
    pub fn counters(&mut self) -> Result<Counters, GuestError> {
        match fs::remove_file(&self.figures) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(GuestError::file(&self.figures)(error));
            }
            _ => {}
        }
        self.helper.signal(Signal::USR1)?;
        let begin = Instant::now();
        while !self.figures.exists() {
            self.check()?;
            if begin.elapsed() > PATIENCE {
                return Err(GuestError::Timeout {
                    what: "the simulator's counters".to_owned(),
                    seconds: PATIENCE.as_secs(),
                });
            }
            thread::sleep(Duration::from_millis(2));
        }
        read(&self.figures)
    }

    /// Ends the simulator, which must still be there, and returns its last counters.
    pub fn stop(mut self) -> Result<Counters, GuestError> {
        self.check()?;
        self.helper.signal(Signal::TERM)?;
        let status = self.helper.wait(PATIENCE)?;
        if !status.success() {
            return Err(GuestError::program("ferronic-sim", status));
        }
        read(&self.figures)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // After a failure the traces matter most: the simulator is asked to write them out.
        if let Ok(None) = self.helper.ended() {
            let _ = self.helper.signal(Signal::TERM);
            let _ = self.helper.wait(FAREWELL);
        }
    }
}

fn read(path: &Path) -> Result<Counters, GuestError> {
    let text = fs::read_to_string(path).map_err(GuestError::file(path))?;
    let report: Report = serde_json::from_str(&text)
        .map_err(|error| GuestError::program("ferronic-sim", format!("its figures: {error}")))?;
    let mut counters = BTreeMap::new();
    for figure in report.figures {
        let mut name = figure.name;
        for param in ["direction", "tlp"] {
            if let Some(value) = figure.params.get(param).and_then(|value| value.as_str()) {
                name = format!("{name} {value}");
            }
        }
        counters.insert(name, figure.value);
    }
    Ok(Counters(counters))
}
