//! `ferronic xps`

use std::fmt::Write as _;

use clap::{ArgGroup, Args, Subcommand};

use super::Target;
use crate::control::message::{Request, XpsChange, XpsQueue};
use crate::error::{CliError, Outcome};

/// Options of `xps`.
#[derive(Args)]
#[command(after_help = "Examples:
  ferronic xps show --device vfio-user:/tmp/nic.sock
  ferronic xps set --queue 2 --cpus 0-3,7
  ferronic xps set --queue 2 --cpu-mask 8f
  ferronic xps set --queue 1 --rxqs 1
  ferronic xps set --queue 2 --cpus ''
The card may also be named by FERRONIC_DEVICE.")]
pub struct Xps {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// The CPUs and the receive queues of each transmit queue.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Change them, as files xps_cpus and xps_rxqs of a queue in sysfs do.
    Set(Set),
}

#[derive(Args)]
#[command(group = ArgGroup::new("mask").required(true).args(["cpus", "cpu_mask", "rxqs", "rxq_mask"]))]
struct Set {
    /// The transmit queue.
    #[arg(long, value_name = "N")]
    queue: u16,
    /// The CPUs whose packets it takes: numbers and ranges with commas, nothing for none.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// The same as the kernel writes it: hexadecimal, groups of 8 digits with commas.
    #[arg(long, value_name = "HEX")]
    cpu_mask: Option<String>,
    /// The receive queues whose sockets send by it.
    #[arg(long, value_name = "LIST")]
    rxqs: Option<String>,
    /// The same in hexadecimal.
    #[arg(long, value_name = "HEX")]
    rxq_mask: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Set {
    /// Of CPUs, in hexadecimal, and the text.
    fn mask(&self) -> (bool, bool, &str) {
        let all = [
            (true, false, &self.cpus),
            (true, true, &self.cpu_mask),
            (false, false, &self.rxqs),
            (false, true, &self.rxq_mask),
        ];
        let given = all
            .into_iter()
            .find_map(|(cpus, hex, text)| Some((cpus, hex, text.as_deref()?)));
        given.unwrap_or((true, false, ""))
    }
}

impl Xps {
    pub fn run(&self) -> Result<Outcome, CliError> {
        match &self.action {
            Action::Show { target } => {
                target.run("xps show", &Request::Xps(None), |s: &Vec<_>| table(s))?;
            }
            Action::Set(set) => {
                let (cpus, hex, mask) = set.mask();
                let change = XpsChange {
                    queue: set.queue,
                    cpus,
                    hex,
                    mask: mask.to_owned(),
                };
                let request = Request::Xps(Some(change));
                set.target.run("xps set", &request, |s: &Vec<_>| table(s))?;
            }
        }
        Ok(Outcome::Done)
    }
}

fn table(queues: &[XpsQueue]) -> String {
    let mut text = format!(
        "{:<6} {:<20} {:<20} {:<16} rxq mask\n",
        "queue", "cpus", "cpu mask", "rxqs"
    );
    for queue in queues {
        let shown = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        let _ = writeln!(
            text,
            "{:<6} {:<20} {:<20} {:<16} {}",
            queue.queue,
            shown(&queue.cpus[0]),
            queue.cpus[1],
            shown(&queue.rxqs[0]),
            queue.rxqs[1]
        );
    }
    text
}
