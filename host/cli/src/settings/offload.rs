//! `ferronic offload`

use clap::{Args, Subcommand};

use super::{Target, switch};
use crate::control::message::{Offload as State, OffloadChange, Request};
use crate::error::{CliError, Outcome};
use crate::options::Switch;

/// Options of `offload`.
#[derive(Args)]
#[command(after_help = "Examples:
  ferronic offload show --device vfio-user:/tmp/nic.sock
  ferronic offload set --lro off
  ferronic offload set --lro strict --lro-gap-us 50
  ferronic offload set --tso off
The card may also be named by FERRONIC_DEVICE.")]
pub struct Offload {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// What the card does for received and sent frames.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Change it, as `ethtool -K`, as far as that can be done while the card is in use.
    Set(Set),
}

#[derive(Args)]
struct Set {
    /// Merging of received TCP segments: off, strict, relaxed. What is held is delivered first.
    #[arg(long, value_name = "PROFILE")]
    lro: Option<String>,
    /// Longest wait for the next segment.
    #[arg(long, value_name = "US")]
    lro_gap_us: Option<u64>,
    /// Longest that a segment is held.
    #[arg(long, value_name = "US")]
    lro_hold_us: Option<u64>,
    /// Verified checksums of received frames.
    #[arg(long, value_enum, value_name = "on|off")]
    rx_checksum: Option<Switch>,
    /// Checksums of sent frames; segmentation goes with them.
    #[arg(long, value_enum, value_name = "on|off")]
    tx_checksum: Option<Switch>,
    /// Segmentation of sent frames.
    #[arg(long, value_enum, value_name = "on|off")]
    tso: Option<Switch>,
    #[command(flatten)]
    target: Target,
}

impl Offload {
    pub fn run(&self) -> Result<Outcome, CliError> {
        match &self.action {
            Action::Show { target } => {
                target.run("offload show", &Request::Offload(None), table)?
            }
            Action::Set(set) => {
                let on = |switch: Option<Switch>| switch.map(|switch| switch == Switch::On);
                let change = OffloadChange {
                    lro: set.lro.clone(),
                    lro_gap_us: set.lro_gap_us,
                    lro_hold_us: set.lro_hold_us,
                    tx_checksum: on(set.tx_checksum),
                    tso: on(set.tso),
                    rx_checksum: on(set.rx_checksum),
                };
                if change == OffloadChange::default() {
                    return Err(CliError::Usage(
                        "nothing is to be set; give --lro, --tso or another option".into(),
                    ));
                }
                set.target
                    .run("offload set", &Request::Offload(Some(change)), table)?;
            }
        }
        Ok(Outcome::Done)
    }
}

fn table(state: &State) -> String {
    let fixed = |fixed| if fixed { " [fixed]" } else { "" };
    let times = match state.lro.as_str() {
        "off" => String::new(),
        _ => format!(
            ", gap {} us, hold {} us",
            state.lro_gap_us, state.lro_hold_us
        ),
    };
    let tx = fixed(state.tx_fixed);
    let [tso4, tso6, uso] = state.tso.map(switch);
    format!(
        "rx-checksumming            {} [fixed]\n\
         large-receive-offload      {}{times}{}\n\
         tx-checksumming            {}{tx}\n\
         tx-tcp-segmentation        {tso4}{tx}\n\
         tx-tcp6-segmentation       {tso6}{tx}\n\
         tx-udp-segmentation        {uso}{tx}\n",
        switch(state.rx_checksum),
        state.lro,
        fixed(state.lro_fixed),
        switch(state.tx_checksum),
    )
}
