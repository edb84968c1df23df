//! The demonstration.
use crate::error::Failure;
use std::path::{Path, PathBuf};

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// `cargo xtask demo`.
pub fn run(_root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    Err(Failure::NotYet(format!(
        "demo is not there yet {:?}",
        arguments.json
    )))
}
