//! `ferronic coalesce`

use std::fmt::Write as _;

use clap::{Args, Subcommand};

use super::Target;
use crate::control::message::{Coalesce as State, CoalesceChange, Request};
use crate::error::{CliError, Outcome};

/// Options of `coalesce`.
#[derive(Args)]
#[command(after_help = "Examples:
  ferronic coalesce show --device vfio-user:/tmp/nic.sock
  ferronic coalesce set --packets 8 --usecs 50
  ferronic coalesce set --queue 2 --rx --packets 64 --usecs 100
  ferronic coalesce set --packets 0 --usecs 0
The card may also be named by FERRONIC_DEVICE.")]
pub struct Coalesce {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// After how many packets, and how long after the first, each queue interrupts.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Change it, as `ethtool -C`; 0 of either: after every packet.
    Set(Set),
}

#[derive(Args)]
struct Set {
    /// Of this queue pair; of all if not given.
    #[arg(long, value_name = "N")]
    queue: Option<u16>,
    /// Of receive queues; of both kinds without this and --tx.
    #[arg(long)]
    rx: bool,
    /// Of transmit queues.
    #[arg(long)]
    tx: bool,
    /// Packets, up to 65535.
    #[arg(long, value_name = "P")]
    packets: u32,
    /// Microseconds after the first packet, up to 67108 on a card of 125 MHz.
    #[arg(long, value_name = "U")]
    usecs: u64,
    #[command(flatten)]
    target: Target,
}

impl Coalesce {
    pub fn run(&self) -> Result<Outcome, CliError> {
        match &self.action {
            Action::Show { target } => {
                target.run("coalesce show", &Request::Coalesce(None), |s: &Vec<_>| {
                    table(s)
                })?;
            }
            Action::Set(set) => {
                let both = set.rx == set.tx;
                let change = CoalesceChange {
                    queue: set.queue,
                    rx: both || set.rx,
                    tx: both || set.tx,
                    packets: set.packets,
                    usecs: set.usecs,
                };
                let request = Request::Coalesce(Some(change));
                set.target
                    .run("coalesce set", &request, |s: &Vec<_>| table(s))?;
            }
        }
        Ok(Outcome::Done)
    }
}

fn table(queues: &[State]) -> String {
    let mut text = format!(
        "{:<6} {:>10} {:>10} {:>10} {:>10}\n",
        "queue", "rx-packets", "rx-usecs", "tx-packets", "tx-usecs"
    );
    for queue in queues {
        let _ = writeln!(
            text,
            "{:<6} {:>10} {:>10} {:>10} {:>10}",
            queue.queue, queue.rx_packets, queue.rx_usecs, queue.tx_packets, queue.tx_usecs
        );
    }
    text
}
