//! What can go wrong, from the kit to the last check.

use std::io;
use std::path::Path;

use thiserror::Error;

/// Why a scenario did not pass.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuestError {
    /// The pieces of a guest cannot be had on this machine.
    #[error("no guests on this machine: {0}")]
    Unavailable(String),
    /// A file.
    #[error("{path}: {source}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A program that was run.
    #[error("{program}: {how}")]
    Program {
        /// Its name.
        program: String,
        /// What it did.
        how: String,
    },
    /// Something did not come in time.
    #[error("{what} did not come within {seconds} s")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
    },
    /// The guest refused a request, or could not do it.
    #[error("in the guest, {what}: {why}")]
    Guest {
        /// The request.
        what: String,
        /// Its words.
        why: String,
    },
    /// What was seen is not what must be.
    #[error("{0}")]
    Check(String),
}

impl GuestError {
    /// A failure with a file.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::File { path, source }
    }

    /// A failure of a program.
    pub fn program(name: impl Into<String>, how: impl ToString) -> Self {
        Self::Program {
            program: name.into(),
            how: how.to_string(),
        }
    }
}

/// Fails the scenario with a message unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            return Err($crate::GuestError::Check(format!($($message)+)));
        }
    };
}
