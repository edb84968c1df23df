//! Why a command ended early.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a command ended early.
#[derive(Debug, Error)]
pub enum Failure {
    /// A program that was run said no; it has printed why.
    #[error("{what} failed ({how}); its output is above")]
    Step {
        /// What was being done.
        what: String,
        /// Exit code or signal.
        how: String,
    },
    /// A program could not be started.
    #[error("{program} could not be started: {source}{remedy}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
        /// What to do about it; empty or begins with a separator.
        remedy: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Checks that found something; each has printed what.
    #[error("failed: {}", .0.join(", "))]
    Checks(Vec<String>),
    /// Anything else, in words.
    #[error("{0}")]
    Message(String),
}

impl Failure {
    /// A failed access to `path`.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Each check that failed, or the one thing that did.
    pub fn parts(self) -> Vec<String> {
        match self {
            Self::Checks(parts) => parts,
            other => vec![other.to_string()],
        }
    }
}
