//! Programs in the guest.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferronic_guest_agent::Exit;

use crate::Failure;

const LOOK: Duration = Duration::from_millis(5);

struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

/// Programs that were started and not waited for.
#[derive(Default)]
pub struct Processes(Mutex<HashMap<u32, Running>>);

impl Processes {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a program.
    pub fn spawn(&self, argv: &[String]) -> Result<u32, Failure> {
        let running = start(argv, Stdio::piped())?;
        let pid = running.child.id();
        self.lock().insert(pid, running);
        Ok(pid)
    }

    /// Runs a program to its end.
    pub fn run(&self, argv: &[String], timeout_ms: u64) -> Result<Exit, Failure> {
        finish(start(argv, Stdio::null())?, timeout_ms)
    }

    /// Writes to the standard input of a program that was started.
    pub fn say(&self, pid: u32, text: &str) -> Result<(), Failure> {
        let mut all = self.lock();
        let running = all.get_mut(&pid);
        let running = running.ok_or_else(|| format!("no program {pid} was started"))?;
        let stdin = running.child.stdin.as_mut();
        stdin
            .ok_or("the program has no standard input")?
            .write_all(text.as_bytes())?;
        Ok(())
    }

    /// Sends a signal to a program that was started.
    pub fn signal(&self, pid: u32, signal: i32) -> Result<(), Failure> {
        if !self.lock().contains_key(&pid) {
            return Err(format!("no program {pid} was started").into());
        }
        // SAFETY: no memory is involved; the process is a child that was not waited for.
        if unsafe { libc::kill(i32::try_from(pid)?, signal) } != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(())
    }

    /// Waits for the end of a program that was started.
    pub fn wait(&self, pid: u32, timeout_ms: u64) -> Result<Exit, Failure> {
        let running = self.lock().remove(&pid);
        let running = running.ok_or_else(|| format!("no program {pid} was started"))?;
        finish(running, timeout_ms)
    }
}

fn start(argv: &[String], stdin: Stdio) -> Result<Running, Failure> {
    let program = argv.first().ok_or("a program without a name")?;
    // Files rather than pipes: nobody has to read while the program runs.
    let (stdout, stderr) = (scratch()?, scratch()?);
    let child = Command::new(program)
        .args(&argv[1..])
        .env("PATH", "/bin")
        .env("HOME", "/tmp")
        .env("XDG_RUNTIME_DIR", "/tmp")
        .stdin(stdin)
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    Ok(Running {
        child,
        stdout,
        stderr,
    })
}

/// A file without a name.
fn scratch() -> Result<File, Failure> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("output", MemfdFlags::CLOEXEC)?.into())
}

fn finish(mut running: Running, timeout_ms: u64) -> Result<Exit, Failure> {
    let begin = Instant::now();
    let status: ExitStatus = loop {
        if let Some(status) = running.child.try_wait()? {
            break status;
        }
        if begin.elapsed() > Duration::from_millis(timeout_ms) {
            running.child.kill()?;
        }
        thread::sleep(LOOK);
    };
    Ok(Exit {
        code: status.code(),
        signal: status.signal(),
        stdout: text(running.stdout)?,
        stderr: text(running.stderr)?,
    })
}

fn text(mut file: File) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The messages of the kernel since it began.
pub fn kernel_log() -> Result<Vec<String>, Failure> {
    use rustix::fs::{Mode, OFlags, open};
    let fd = open(
        "/dev/kmsg",
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut lines = Vec::new();
    let mut record = vec![0; 8192];
    loop {
        match rustix::io::read(&fd, &mut record) {
            Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(lines),
            // A record was overwritten before it was read.
            Err(rustix::io::Errno::PIPE) => {}
            Err(error) => return Err(error.into()),
            Ok(n) => {
                let text = String::from_utf8_lossy(&record[..n]);
                let message = text.split_once(';').map_or("", |(_, message)| message);
                lines.push(message.lines().next().unwrap_or_default().to_owned());
            }
        }
    }
}
