//! `ferronic tap`

use std::path::PathBuf;

use clap::Args;
use ferronic::Device;
use ferronic::gro::{GroOptions, GroStats};
use ferronic::lro::Profile;
use ferronic::tap::{Bridge, BridgeStats, Tap as Interface};
use serde_json::{Value, json};

use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};
use crate::merging::{self, LroArgs};
use crate::options::{QueueOptions, Stop, Switch, mac, merged};

/// Options of `tap`.
#[derive(Args)]
pub struct Tap {
    #[command(flatten)]
    queues: QueueOptions,
    /// Name of the interface: it is made, or taken if it exists and was made for this user
    /// (`ip tuntap add dev NAME mode tap user USER`), which needs no privilege here.
    #[arg(long, default_value = "ferronic%d", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    lro: LroArgs,
    /// Merge received segments that the card did not merge in the driver.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    gro: Switch,
    /// Write what crossed to this file at the end.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Tap {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let stop = Stop::catch()?;
        let output = self.json.as_deref().map(Output::open).transpose()?;
        let (device, mut pairs) = self.queues.open(&self.lro, Profile::Strict)?;
        for pair in &mut pairs {
            pair.rx
                .set_gro((self.gro == Switch::On).then(GroOptions::default))?;
        }
        let tap = Interface::open(&self.name, device.features()).map_err(ferronic::Error::from)?;
        if let Err(e) = tap.set_mac(device.mac()) {
            log::warn!("{e}");
        }
        let mut bridge = Bridge::new(&device, pairs, tap)?;
        announce(&device, bridge.tap().name())?;
        let ran = bridge.run(|| stop.requested());
        let gro = bridge
            .pairs()
            .iter()
            .fold(GroStats::default(), |all, pair| {
                all.plus(&pair.rx.gro_stats())
            });
        let stats = bridge.stats();
        let params = self.params(&device, bridge.tap().name())?;
        self.say(&stats, &gro);
        if let Some(output) = output {
            write_json(output, &report(&stats, &gro, &params))?;
        }
        drop(bridge);
        ran?;
        // What completed leaves, too.
        device.linger()?;
        device.close()?;
        Ok(Outcome::Done)
    }

    fn params(&self, device: &Device, name: &str) -> Result<Value, CliError> {
        let mut params = merging::params(device)?;
        params["interface"] = name.into();
        params["gro"] = Switch::name(self.gro == Switch::On).into();
        Ok(params)
    }

    fn say(&self, stats: &BridgeStats, gro: &GroStats) {
        println!(
            "to host  {} frames, {} bytes; {} units of the card, {} of the driver",
            stats.to_host, stats.to_host_bytes, stats.units_by_card, stats.units_by_driver
        );
        println!(
            "to card  {} frames, {} bytes; {} for it to segment, {} to complete",
            stats.to_card, stats.to_card_bytes, stats.segmented, stats.checksums
        );
        println!(
            "dropped  {} that cannot be, {} not taken by the host, {} not sendable",
            stats.refused, stats.not_taken, stats.unsendable
        );
        if self.gro == Switch::On {
            println!("merged   {}", merged(gro));
        }
    }
}

/// Says that frames cross from now on, in one line for programs and people.
fn announce(device: &Device, name: &str) -> Result<(), CliError> {
    println!(
        "ready {name}: MAC {}, LRO {}",
        mac(device.mac()),
        merging::words(device)?
    );
    Ok(())
}

/// The counters in the form that all figures of the project have.
fn report(stats: &BridgeStats, gro: &GroStats, params: &Value) -> Value {
    let figure = |name: &str, value: Value, unit: &str| -> Value {
        json!({"name": name, "params": params, "value": value, "unit": unit})
    };
    json!({"command": "tap", "figures": [
        figure("frames_to_host", stats.to_host.into(), "frames"),
        figure("bytes_to_host", stats.to_host_bytes.into(), "B"),
        figure("units_by_card", stats.units_by_card.into(), "frames"),
        figure("units_by_driver", stats.units_by_driver.into(), "frames"),
        figure("segments_per_unit", gro.segments_a_unit().into(), "segments"),
        figure("refused", stats.refused.into(), "frames"),
        figure("not_taken", stats.not_taken.into(), "frames"),
        figure("frames_to_card", stats.to_card.into(), "frames"),
        figure("bytes_to_card", stats.to_card_bytes.into(), "B"),
        figure("segmented", stats.segmented.into(), "frames"),
        figure("checksums", stats.checksums.into(), "frames"),
        figure("unsendable", stats.unsendable.into(), "frames"),
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_names_every_counter_once() {
        let stats = BridgeStats {
            to_host: 1,
            to_host_bytes: 2,
            units_by_card: 3,
            units_by_driver: 4,
            refused: 5,
            not_taken: 6,
            to_card: 7,
            to_card_bytes: 8,
            segmented: 9,
            checksums: 10,
            unsendable: 11,
        };
        let params = json!({"interface": "fe0"});
        let report = report(&stats, &GroStats::default(), &params);
        let figures = report["figures"].as_array().expect("a list");
        let values: Vec<_> = figures.iter().filter_map(|f| f["value"].as_u64()).collect();
        assert_eq!(values, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(figures.iter().all(|f| f["params"]["interface"] == "fe0"));
    }
}
