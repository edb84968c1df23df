//! `cargo xtask guest`: stock drivers on the card.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ferronic_figures::Report;
use ferronic_guest_tests::scenario::{Bench, Scenario};
use ferronic_guest_tests::{GuestError, summary};
use ferronic_sim::cli::Serve;

/// Runs stock drivers in a guest on the card.
#[derive(Parser)]
#[command(name = "guest", bin_name = "cargo xtask guest")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only this scenario (may be given more than once)
    #[arg(long, value_enum)]
    scenario: Vec<Scenario>,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Leave logs, a capture of the wire, the messages of vfio-user and a waveform there
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Only fetch the kit and build what runs in the guest
    #[arg(long)]
    fetch: bool,
}

#[derive(Subcommand)]
enum Command {
    /// The simulator, as `ferronic-sim serve`
    #[command(hide = true)]
    Serve(Serve),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(Command::Serve(serve)) = cli.command {
        return ferronic_sim::cli::serve(serve);
    }
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), GuestError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(GuestError::file(&root))?;
    let itself = std::env::current_exe().map_err(|e| GuestError::program("guest", e))?;
    let scratch = tempfile::tempdir().map_err(|e| GuestError::program("guest", e))?;
    let dir = cli.trace.as_deref().unwrap_or(scratch.path());
    let mut bench = Bench::new(&root, &itself, dir, cli.trace.is_some())?;
    if cli.fetch {
        return Ok(());
    }
    println!("QEMU {}", bench.qemu_version());
    let chosen = if cli.scenario.is_empty() {
        &Scenario::ALL
    } else {
        cli.scenario.as_slice()
    };
    for scenario in chosen {
        scenario.run(&mut bench)?;
    }
    let report = Report {
        command: "guest".to_owned(),
        figures: bench.figures,
    };
    if !report.figures.is_empty() {
        print!("{}", summary::table(&report.figures));
    }
    if let Some(path) = &cli.json {
        report.write(path).map_err(GuestError::file(path))?;
    }
    Ok(())
}
