//! What can go wrong below the seam.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// An error of a [`super::PciFunction`] backend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PciError {
    /// An access outside a BAR, configuration space or DMA region.
    #[error("access of {len} bytes at {offset:#x} is outside {what} of {size:#x} bytes")]
    OutOfRange {
        /// Which space was accessed.
        what: &'static str,
        /// Offset of the access.
        offset: u64,
        /// Length of the access.
        len: u64,
        /// Size of the space.
        size: u64,
    },
    /// A register access that is not aligned to its width.
    #[error("access of {len} bytes at {offset:#x} is not aligned to its width")]
    Misaligned {
        /// Offset of the access.
        offset: u64,
        /// Length of the access.
        len: u64,
    },
    /// The function has no memory BAR of that number.
    #[error("the function has no memory BAR {0}: is it the right device?")]
    NoSuchBar(u8),
    /// More vectors asked for than the function has.
    #[error("{wanted} interrupt vectors were asked for, the function has {available}")]
    Vectors {
        /// Vectors asked for.
        wanted: u16,
        /// Vectors that exist.
        available: u16,
    },
    /// The device did not answer in time.
    #[error("{what}: no answer within {after:?}; is the other side still running?")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
    },
    /// The device or server answered a request with an error.
    #[error("{what} was refused: {source}")]
    Refused {
        /// The request.
        what: String,
        /// The error it was answered with.
        source: io::Error,
    },
    /// The other side broke the protocol.
    #[error("{what}: the other side broke the protocol: {detail}")]
    Protocol {
        /// What was being done.
        what: String,
        /// How it was broken.
        detail: String,
    },
    /// A memory read on the link ended in an error completion (UR, CA or completion timeout).
    #[error("the device answered an access at {offset:#x} with an error completion: {detail}")]
    Completion {
        /// Offset of the access.
        offset: u64,
        /// Completion status, in words.
        detail: String,
    },
    /// The connection to the device is gone.
    #[error("{what}: the other side closed the connection; start it again and retry")]
    Disconnected {
        /// What was being done.
        what: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel's VFIO does not give the card away.
    #[error(transparent)]
    Vfio(#[from] super::vfio::VfioError),
    /// A backend that this build does not have.
    #[error("{0}")]
    Unsupported(String),
}

impl PciError {
    /// Wraps a system error with what was being done.
    pub fn io(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what: what.into(),
            source: source.into(),
        }
    }
}
