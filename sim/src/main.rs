//! The Ferronic card in simulation, as a program.
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ferronic_sim::cli::{Serve, serve};

/// The Ferronic card in simulation.
#[derive(Parser)]
#[command(name = "ferronic-sim", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Offer the card on a vfio-user socket, to `ferronic` or to QEMU (10.1 or later).
    Serve(Serve),
}

fn main() -> ExitCode {
    let Command::Serve(arguments) = Cli::parse().command;
    serve(arguments)
}
