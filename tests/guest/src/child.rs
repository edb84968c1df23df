//! A program that must not outlive the test.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::GuestError;

const LOOK: Duration = Duration::from_millis(10);

/// A program that ends with the thread that started it.
pub struct Helper {
    name: String,
    child: Child,
}

impl Helper {
    /// Starts it.
    pub fn start(name: &str, command: &mut Command) -> Result<Self, GuestError> {
        // SAFETY: between fork and exec only a system call is made.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let child = command
            .spawn()
            .map_err(|error| GuestError::program(name, error))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), GuestError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| GuestError::program(&self.name, "has no process id"))?;
        kill_process(pid, signal).map_err(|error| GuestError::program(&self.name, error))
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, GuestError> {
        self.child
            .try_wait()
            .map_err(|error| GuestError::program(&self.name, error))
    }

    /// Waits for its end.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus, GuestError> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if begin.elapsed() > patience {
                return Err(GuestError::Timeout {
                    what: format!("the end of {}", self.name),
                    seconds: patience.as_secs(),
                });
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
