//! `ferronic`: look at, test and use a Ferronic card.
//!
//! Results go to standard output, progress and errors to standard error. Exit codes: 0 done,
//! 1 something failed, 2 wrong use, 3 the card was reached but did not pass.
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod capture;
mod control;
mod error;
mod files;
mod host;
mod info;
mod merging;
mod options;
mod ping;
mod progress;
mod selftest;
mod send;
mod settings;
mod stack;
mod stats;
mod tap;
mod tcp;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::{CliError, Outcome};

/// Look at, test and use a Ferronic card.
#[derive(Parser)]
#[command(name = "ferronic", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the cards of this machine, their drivers and IOMMU groups.
    List(host::List),
    /// Give a card to vfio-pci, or another driver (as root).
    Bind(host::Bind),
    /// Take a card from its driver, or give it back to the kernel's own (as root).
    Unbind(host::Unbind),
    /// Show what a card is and offers, without disturbing it.
    Info(info::Info),
    /// Show a card's counters, without disturbing it.
    Stats(stats::Stats),
    /// Show or change how many queue pairs are in use.
    Queues(settings::queues::Queues),
    /// Show or change how received frames are spread over queue pairs.
    Rss(settings::rss::Rss),
    /// Show or change when queues interrupt.
    Coalesce(settings::coalesce::Coalesce),
    /// Show or change which received frames are taken.
    Filter(settings::filter::Filter),
    /// Show or change what the card does for frames.
    Offload(settings::offload::Offload),
    /// Show or change by which transmit queue CPUs and sockets send.
    Xps(settings::xps::Xps),
    /// Check a card that is not in use.
    Selftest(selftest::Selftest),
    /// Receive frames into a pcap file.
    Capture(capture::Capture),
    /// Send the frames of a pcap file.
    Send(send::Send),
    /// Ping a host with a TCP/IP stack of our own on the card.
    Ping(ping::Ping),
    /// Send to a sink or receive from a source, and check every byte, with the same stack.
    Tcp(tcp::Tcp),
    /// Make the card a network interface of this machine, until a signal comes.
    Tap(tap::Tap),
}

impl Command {
    fn run(&self) -> Result<Outcome, CliError> {
        match self {
            Self::List(command) => command.run(),
            Self::Bind(command) => command.run(),
            Self::Unbind(command) => command.run(),
            Self::Info(command) => command.run(),
            Self::Stats(command) => command.run(),
            Self::Queues(command) => command.run(),
            Self::Rss(command) => command.run(),
            Self::Coalesce(command) => command.run(),
            Self::Filter(command) => command.run(),
            Self::Offload(command) => command.run(),
            Self::Xps(command) => command.run(),
            Self::Selftest(command) => command.run(),
            Self::Capture(command) => command.run(),
            Self::Send(command) => command.run(),
            Self::Ping(command) => command.run(),
            Self::Tcp(command) => command.run(),
            Self::Tap(command) => command.run(),
        }
    }
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let cli = Cli::parse();
    match cli.command.run() {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NotPassed) => ExitCode::from(3),
        Err(e) => {
            eprintln!("ferronic: {e}");
            ExitCode::FAILURE
        }
    }
}
