//! Running other programs, with a sign of life when they take long.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Failure;

/// How often a program that prints nothing is said to be still at work.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Cargo as it was called, so that a chosen toolchain stays chosen.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // Set for xtask itself; a build script of another crate must not see them.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command
}

/// Runs `command` with its output shown.
pub fn run(what: &str, command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|source| cannot_start(command, source))?;
    check(what, status)
}

/// Runs `command` with its output in the file `log`, of which the end is shown if it fails.
pub fn run_logged(what: &str, command: &mut Command, log: &Path) -> Result<(), Failure> {
    if let Some(dir) = log.parent() {
        fs::create_dir_all(dir).map_err(|source| Failure::io(dir, source))?;
    }
    let file = File::create(log).map_err(|source| Failure::io(log, source))?;
    let second = file
        .try_clone()
        .map_err(|source| Failure::io(log, source))?;
    command.stdin(Stdio::null()).stdout(file).stderr(second);
    let status = with_signs_of_life(what, || {
        command
            .status()
            .map_err(|source| cannot_start(command, source))
    })?;
    if !status.success() {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.len().saturating_sub(60);
        if shown > 0 {
            eprintln!("... {shown} lines before these are in {}", log.display());
        }
        for line in &lines[shown..] {
            eprintln!("{line}");
        }
    }
    check(what, status)
}

/// What `command` prints on standard output, if it can be run and succeeds.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether `program` is on the search path.
pub fn on_path(program: impl AsRef<Path>) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|dir| dir.join(program.as_ref()).is_file())
}

fn check(what: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let how = match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    };
    Err(Failure::Step {
        what: what.to_owned(),
        how,
    })
}

fn cannot_start(command: &Command, source: std::io::Error) -> Failure {
    let program = command.get_program().to_string_lossy().into_owned();
    let remedy = if command.get_program() == OsStr::new("python3") {
        "; install Python 3 with venv, or run `./x setup`"
    } else {
        ""
    };
    Failure::Start {
        program,
        source,
        remedy: remedy.to_owned(),
    }
}

fn with_signs_of_life<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            while waiting.recv_timeout(SIGN_OF_LIFE) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("  ... {what}: {} s", begin.elapsed().as_secs());
            }
        });
        let result = work();
        drop(done);
        result
    })
}
