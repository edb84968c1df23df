//! `ferronic filter`

use std::fmt::Write as _;

use clap::{Args, Subcommand};

use super::Target;
use crate::control::message::{Filter as State, FilterChange, Request};
use crate::error::{CliError, Outcome};
use crate::options::Switch;

/// Options of `filter`.
#[derive(Args)]
#[command(after_help = "Examples:
  ferronic filter show --device vfio-user:/tmp/nic.sock
  ferronic filter set --promiscuous off
  ferronic filter set --add 01:00:5e:00:00:fb --all-multicast off
  ferronic filter set --vlans 1,100-199
  ferronic filter set --vlans all --promiscuous on
The card may also be named by FERRONIC_DEVICE.")]
pub struct Filter {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Which received frames are taken.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Change it; what is not given stays. A card that is no longer promiscuous and has no address
    /// gets its own.
    Set(Box<Set>),
}

#[derive(Args)]
struct Set {
    /// Every destination address.
    #[arg(long, value_enum, value_name = "on|off")]
    promiscuous: Option<Switch>,
    /// Every multicast address.
    #[arg(long, value_enum, value_name = "on|off")]
    all_multicast: Option<Switch>,
    /// Every unicast address.
    #[arg(long, value_enum, value_name = "on|off")]
    all_unicast: Option<Switch>,
    /// Multicast at all; off goes before --all-multicast and addresses.
    #[arg(long, value_enum, value_name = "on|off")]
    multicast: Option<Switch>,
    /// Unicast at all; off goes before --all-unicast and addresses.
    #[arg(long, value_enum, value_name = "on|off")]
    unicast: Option<Switch>,
    /// Broadcast.
    #[arg(long, value_enum, value_name = "on|off")]
    broadcast: Option<Switch>,
    /// Addresses to take, with commas.
    #[arg(long, value_name = "MAC,...", value_delimiter = ',')]
    add: Vec<String>,
    /// Addresses to take no longer.
    #[arg(long, value_name = "MAC,...", value_delimiter = ',')]
    remove: Vec<String>,
    /// Of frames with a VLAN tag those of these VLANs, numbers and ranges; all; nothing for none.
    #[arg(long, value_name = "LIST")]
    vlans: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Filter {
    pub fn run(&self) -> Result<Outcome, CliError> {
        match &self.action {
            Action::Show { target } => target.run("filter show", &Request::Filter(None), table)?,
            Action::Set(set) => {
                let modes = [
                    ("promiscuous", set.promiscuous),
                    ("all-multicast", set.all_multicast),
                    ("all-unicast", set.all_unicast),
                    ("multicast", set.multicast),
                    ("unicast", set.unicast),
                    ("broadcast", set.broadcast),
                ];
                let modes = modes
                    .into_iter()
                    .filter_map(|(name, set)| Some((name.to_owned(), set? == Switch::On)));
                let change = FilterChange {
                    modes: modes.collect(),
                    add: set.add.clone(),
                    remove: set.remove.clone(),
                    vlans: set.vlans.clone(),
                };
                if change == FilterChange::default() {
                    return Err(CliError::Usage(
                        "nothing is to be set; give --promiscuous off, --add or another option"
                            .into(),
                    ));
                }
                set.target
                    .run("filter set", &Request::Filter(Some(change)), table)?;
            }
        }
        Ok(Outcome::Done)
    }
}

fn table(state: &State) -> String {
    let mut text = format!("takes         {}\n", state.modes.join(" "));
    for address in &state.addresses {
        let _ = writeln!(text, "address       {address}");
    }
    if state.addresses.len() > state.room {
        let _ = writeln!(
            text,
            "              {} are more than the {} that the card holds: it takes every address",
            state.addresses.len(),
            state.room
        );
    }
    let vlans = match state.vlans.as_deref() {
        None => "all",
        Some("") => "none",
        Some(list) => list,
    };
    let _ = writeln!(text, "VLANs         {vlans}");
    text
}
