//! Commands that show or change settings of a card: of the command that has it, or of nobody's.

pub mod coalesce;
pub mod filter;
pub mod offload;
pub mod queues;
pub mod rss;
pub mod xps;

use std::path::{Path, PathBuf};

use clap::Args;
use ferronic::queue::Limits;
use ferronic::virtio::Transport;
use ferronic::xps::{Cpus, Xps};
use ferronic::{Device, DeviceConfig, LroOptions, LroRequest, Window};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::control::client;
use crate::control::message::{Outcome, Request};
use crate::control::owner::{Owner, handle};
use crate::error::CliError;
use crate::files::{Output, write_json};
use crate::options::CardOptions;

/// Entries of rings that no frame passes.
const RING: u16 = 16;

/// Which card, and in which form its state is shown.
#[derive(Args)]
pub struct Target {
    #[command(flatten)]
    card: CardOptions,
    /// Print JSON instead of a table, or write it to a file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl Target {
    /// Asks for something, says who did it, and shows the state afterwards.
    fn run<T: DeserializeOwned>(
        &self,
        command: &str,
        request: &Request,
        table: impl FnOnce(&T) -> String,
    ) -> Result<(), CliError> {
        let output = match self.json.as_deref() {
            Some(path) if path != Path::new("-") => Some(Output::open(path)?),
            _ => None,
        };
        let (state, by) = self.state(request)?;
        if let Some(by) = &by {
            eprintln!("of the running `ferronic {by}`");
        } else if request.changes() {
            eprintln!(
                "no running command has the card, so it was opened for this alone: the setting ends \
                 with this process"
            );
        } else {
            eprintln!("no running command has the card: this is what it is when it is opened");
        }
        if self.json.is_some() {
            let report = json!({"command": command, "running": by, "state": state});
            match output {
                Some(output) => write_json(output, &report)?,
                None => println!("{report:#}"),
            }
            return Ok(());
        }
        let state: T = serde_json::from_value(state)
            .map_err(|e| CliError::Incomplete(format!("the answer is not understood: {e}")))?;
        print!("{}", table(&state));
        Ok(())
    }

    /// The state, and the command that has the card, if one does.
    fn state(&self, request: &Request) -> Result<(Value, Option<String>), CliError> {
        if let Some(answer) = client::ask(&self.card.device, request)?
            && let Outcome::Done(state) = answer.outcome
        {
            return Ok((state, Some(answer.command)));
        }
        let mut attached = Attached::open(&self.card)?;
        let state = handle(&mut attached, request)?;
        attached.device.close()?;
        Ok((state, None))
    }
}

/// A card that was opened to look at it.
struct Attached {
    device: Device,
    xps: Xps,
}

impl Attached {
    fn open(card: &CardOptions) -> Result<Self, CliError> {
        let function = card.function()?;
        let transport = Transport::open(function.clone(), Limits::default().reset)?;
        let pairs = match transport.capabilities().window {
            Some(_) => Window::attach(&transport)?.pairs(),
            None => 1,
        };
        let ring = transport.queue_size(0)?.min(RING);
        drop(transport);
        let config = DeviceConfig {
            queue_pairs: pairs,
            ring_size: Some(ring),
            lro: LroRequest::IfThere(LroOptions::default()),
            ..DeviceConfig::default()
        };
        let (device, _queues) = Device::open(function, config)?;
        Ok(Self {
            xps: Xps::new(pairs, pairs, Cpus::of_this_machine()?)?,
            device,
        })
    }
}

impl Owner for Attached {
    fn device(&self) -> &Device {
        &self.device
    }

    fn transmitting(&self) -> u16 {
        self.xps.queues()
    }

    fn xps(&self) -> Option<&Xps> {
        Some(&self.xps)
    }

    fn set_queues(&mut self, pairs: u16) -> Result<(), CliError> {
        self.device.set_receiving_pairs(pairs)?;
        self.xps.set_queues(pairs, |_| ())?;
        Ok(())
    }
}

/// `on` or `off`.
fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
