//! `ferronic queues`

use std::fmt::Write as _;

use clap::{Args, Subcommand};

use super::Target;
use crate::control::message::{Queues as State, Request};
use crate::error::{CliError, Outcome};

/// Options of `queues`.
#[derive(Args)]
#[command(after_help = "Examples:
  ferronic queues show --device 0000:01:00.0
  ferronic queues set 4 --device vfio-user:/tmp/nic.sock")]
pub struct Queues {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// How many queue pairs there are, and how many are in use.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Change how many are in use, as `ethtool -L DEV combined N`; at most those that the running
    /// command was started with.
    Set {
        /// Queue pairs.
        #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
        pairs: u16,
        #[command(flatten)]
        target: Target,
    },
}

impl Queues {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let (command, target, set) = match &self.action {
            Action::Show { target } => ("queues show", target, None),
            Action::Set { pairs, target } => ("queues set", target, Some(*pairs)),
        };
        target.run(command, &Request::Queues(set), table)?;
        Ok(Outcome::Done)
    }
}

fn table(state: &State) -> String {
    let mut text = format!(
        "queue pairs   {} of the card, {} opened\nreceive by    {}\ntransmit by   {}\n",
        state.card, state.opened, state.receiving, state.transmitting
    );
    for thread in &state.threads {
        let ([rx, rx_bytes], [tx, tx_bytes]) = (thread.received, thread.sent);
        let _ = writeln!(
            text,
            "thread {:<6} received {rx} frames, {rx_bytes} bytes; sent {tx} frames, {tx_bytes} bytes",
            thread.pair
        );
    }
    text
}
