//! What a command can end in.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// How a command that ran to its end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Done,
    /// The card was reached, but did not pass (self-test, ping).
    NotPassed,
}

/// Why a command could not do what was asked.
#[derive(Debug, Error)]
pub enum CliError {
    /// The driver failed.
    #[error(transparent)]
    Driver(#[from] ferronic::Error),
    /// The backend failed.
    #[error(transparent)]
    Pci(#[from] ferronic::pci::PciError),
    /// The kernel's view of the cards, or a change of it.
    #[error(transparent)]
    Host(#[from] ferronic::pci::sysfs::SysfsError),
    /// A file could not be read or written.
    #[error("{}: {what}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A capture that cannot be read.
    #[error("{}: {what}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The command that has the card did not do what it was asked to.
    #[error("ferronic {command} (process {pid}), which has the card: {why}")]
    Running {
        /// Which command.
        command: String,
        /// Its process.
        pid: u32,
        /// Cause and remedy.
        why: String,
    },
    /// Steering was not changed.
    #[error(transparent)]
    Xps(#[from] ferronic::xps::XpsError),
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// Not everything could be done.
    #[error("{0}")]
    Incomplete(String),
}

impl CliError {
    /// Wraps a file error.
    pub fn file(path: &Path, what: &'static str, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            what,
            source,
        }
    }
}
