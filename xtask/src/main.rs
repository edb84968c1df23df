//! Every developer command of Ferronic: `cargo xtask COMMAND`, or `./x COMMAND` on a machine that
//! may lack something.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod bench;
mod demo;
mod docs;
mod error;
mod filelist;
mod formal;
mod guest;
mod hash;
mod lint;
mod process;
mod regs;
mod setup;
mod suite;
mod synth;
mod testplan;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Failure;

/// Developer commands of Ferronic. Each fetches the tools it lacks into .tools/ first.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch the tools that the other commands need into .tools/
    Setup,
    /// Replay a capture through the card to the driver and back, and print what it cost
    Demo(demo::Arguments),
    /// Run the co-simulation tests: the driver on the whole RTL
    Cosim(suite::Arguments),
    /// Run every check and every test
    Test(suite::Arguments),
    /// Run the checks: formats, lints, generated files, test plan, documentation
    Lint(lint::Arguments),
    /// Measure, and print each figure beside its limit
    Bench(bench::Arguments),
    /// Run stock drivers in a guest on the card, and print what it cost
    Guest(guest::Arguments),
    /// Build the API documentation and check the book
    Doc,
    /// Make the register constants and their reference from SystemRDL
    Regs(regs::Arguments),
    /// Prove properties of blocks, and that each proof finds its seeded mistakes
    Formal(formal::Arguments),
    /// Synthesise the core for ECP5 and print its size; with --route, its clock too
    Synth(synth::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let root = repository_root()?;
    match command {
        Command::Setup => {
            let tools = setup::setup(&root)?;
            println!(
                "Tools are ready in .tools/; Verilator: {}",
                tools.verilator_version
            );
            Ok(())
        }
        Command::Demo(arguments) => demo::run(&root, &arguments),
        Command::Cosim(arguments) => suite::cosim(&root, &arguments),
        Command::Test(arguments) => suite::all(&root, &arguments),
        Command::Lint(arguments) => lint::run(&root, &arguments),
        Command::Bench(arguments) => bench::run(&root, &arguments),
        Command::Guest(arguments) => guest::run(&root, &arguments),
        Command::Doc => docs::build(&root),
        Command::Regs(arguments) => regs::run(&root, &arguments),
        Command::Formal(arguments) => formal::run(&root, &arguments),
        Command::Synth(arguments) => synth::run(&root, &arguments),
    }
}

/// The top of the clone this was started from.
fn repository_root() -> Result<PathBuf, Failure> {
    // Cargo sets it at run time too; it is right even if the clone was moved after the build.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
    root.canonicalize()
        .map_err(|source| Failure::io(&root, source))
}
