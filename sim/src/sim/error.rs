//! What can go wrong in a simulation.

use thiserror::Error;

use ferronic::pci::PciError;

use crate::model::ModelError;
use crate::root_complex::Violation;

/// An error of the simulation. After [`SimError::Model`] the simulation cannot go on: every later
/// call gives the same error.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The RTL failed, or could not be created.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The card broke rules of the link.
    #[error("the card broke the rules of PCIe:{}", list(.0))]
    Violations(Vec<Violation>),
    /// The card broke the rules of its frame stream.
    #[error("the card broke the rules of its frame stream: {0}")]
    Stream(&'static str),
    /// A request to the card was not completed in time.
    #[error("{what} at {offset:#x} was not completed within {cycles} cycles")]
    NoCompletion {
        /// What was requested.
        what: &'static str,
        /// Where.
        offset: u64,
        /// How long it was waited for.
        cycles: u64,
    },
    /// A request to the card ended with an error completion.
    #[error("{what} at {offset:#x} was completed with status {status} (1 UR, 4 CA)")]
    Completion {
        /// What was requested.
        what: &'static str,
        /// Where.
        offset: u64,
        /// Completion status.
        status: u8,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {cycles} cycles")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        cycles: u64,
    },
    /// An access that no single request can make.
    #[error(
        "an access of {len} bytes at {offset:#x} is not possible: it must be 1, 2, 4 or 8 bytes, aligned, and inside {size:#x}"
    )]
    Access {
        /// Where.
        offset: u64,
        /// Bytes.
        len: usize,
        /// Size of the space.
        size: u64,
    },
    /// Enumeration found something else than a Ferronic card.
    #[error("enumeration failed: {0}")]
    Enumeration(String),
    /// The configuration of the simulation is wrong.
    #[error("{0}")]
    Config(String),
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(|v| format!("\n  {v}")).collect()
}

impl From<SimError> for PciError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Completion { offset, status, .. } => Self::Completion {
                offset,
                detail: format!("status {status} (1 UR, 4 CA)"),
            },
            SimError::Access { offset, len, size } => Self::OutOfRange {
                what: "a register space",
                offset,
                len: len as u64,
                size,
            },
            other => Self::Protocol {
                what: "simulating the card".to_owned(),
                detail: other.to_string(),
            },
        }
    }
}
