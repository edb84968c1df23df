//! Measurements.

use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::process::{self, cargo};
use crate::setup;

/// Options of `bench`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What to measure
    #[arg(value_enum)]
    what: What,
    /// A shorter measurement that ends within a minute once built
    #[arg(long)]
    quick: bool,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw cycles per frame over frame size to this file as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Cycles, TLPs and bytes per frame of the whole card, and the simulator's own speed
    Cosim,
}

/// `cargo xtask bench`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    setup::setup(root)?;
    let What::Cosim = arguments.what;
    if !root.join("tests/cosim/src/bin/bench-cosim.rs").is_file() {
        return Err(Failure::NotYet("bench cosim is not written yet".to_owned()));
    }
    let mut command = cargo(root);
    command.args([
        "run",
        "--quiet",
        "--package",
        "ferronic-cosim-tests",
        "--bin",
        "bench-cosim",
    ]);
    command.arg("--");
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(path) = &arguments.json {
        command.arg("--json").arg(path);
    }
    if let Some(path) = &arguments.plot {
        command.arg("--plot").arg(path);
    }
    process::run("bench cosim", &mut command)
}
