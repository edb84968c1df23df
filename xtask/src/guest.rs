//! Guests: stock drivers on the card.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Failure;
use crate::process::{self, cargo};
use crate::setup;

/// Options of `guest`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only this scenario: linux, offload, lro, vfio, completion, dpdk, hostile (may be given more than once)
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Leave a waveform, a capture of the wire, the messages of vfio-user and logs there
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Only fetch the kit and build what runs in the guest
    #[arg(long)]
    fetch: bool,
}

/// `cargo xtask guest`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    setup::setup(root)?;
    let mut command = program(root, arguments.trace.is_some());
    for name in &arguments.scenario {
        command.arg("--scenario").arg(name);
    }
    // Paths are those of the caller, but the program runs in the clone.
    for (option, path) in [("--json", &arguments.json), ("--trace", &arguments.trace)] {
        if let Some(path) = path {
            let path = std::path::absolute(path).map_err(|e| Failure::io(path, e))?;
            command.arg(option).arg(path);
        }
    }
    if arguments.fetch {
        command.arg("--fetch");
    }
    process::run("guest", &mut command)
}

/// Before the tests: fetches and builds what they need, so that none has to wait for it. Where it
/// cannot be had the program has said so, and the tests say what that means.
pub fn prepare(root: &Path) {
    if let Err(failure) = process::run("the guest kit", program(root, false).arg("--fetch")) {
        eprintln!("{failure}; tests in guests are skipped unless FERRONIC_REQUIRE names guests");
    }
}

fn program(root: &Path, trace: bool) -> Command {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--package", "ferronic-guest-tests"]);
    if trace {
        command.args(["--features", "trace"]);
    }
    command.args(["--bin", "guest", "--"]);
    command
}
