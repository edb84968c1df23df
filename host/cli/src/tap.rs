//! `ferronic tap`

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ferronic::gro::{GroOptions, GroStats};
use ferronic::lro::Profile;
use ferronic::spec::Features;
use ferronic::tap::{Bridge, BridgeStats, Tap as Interface, TapError};
use ferronic::workers::{Placement, Seat, WorkerStats, Workers};
use ferronic::{Device, QueuePair};
use serde_json::{Value, json};

use crate::control::message::Thread;
use crate::control::{Control, Owner};
use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};
use crate::merging::{self, LroArgs};
use crate::options::{CpuOptions, QueueOptions, Stop, Switch, mac, merged};

/// Longest wait of the thread that has the card: signals and settings are looked at in between.
const WAIT: Duration = Duration::from_millis(50);

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
    cpus: CpuOptions,
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
        let placement = self.cpus.placement()?;
        let stop = Stop::catch()?;
        let output = self.json.as_deref().map(Output::open).transpose()?;
        let (mut device, mut pairs) = self.queues.open(&self.lro, Profile::Strict)?;
        for pair in &mut pairs {
            pair.rx
                .set_gro((self.gro == Switch::On).then(GroOptions::default))?;
        }
        let (first, more) = self.interface(&device, pairs.len())?;
        if let Err(e) = first.set_mac(device.mac()) {
            log::warn!("{e}");
        }
        let name = first.name().to_owned();
        let params = self.params(&device, &name)?;
        let queues = std::iter::once(&first).chain(&more);
        let handles = queues.map(Interface::again).collect::<Result<Vec<_>, _>>();
        let handles = handles.map_err(ferronic::Error::from)?;
        let control = Control::offer(self.queues.device(), "tap");
        announce(&device, &name)?;
        let (crossed, ran) = if more.is_empty() {
            one_thread(&device, pairs, first, &handles, &control, &stop)?
        } else {
            let taps = std::iter::once(first).chain(more);
            self.threads(
                &mut device,
                pairs,
                taps,
                (&placement, &handles),
                &control,
                &stop,
            )?
        };
        drop(control);
        let Crossed { stats, gro } = crossed;
        self.say(&stats, &gro);
        if let Some(output) = output {
            write_json(output, &report(&stats, &gro, &params))?;
        }
        ran?;
        // What completed leaves, too.
        device.linger()?;
        device.close()?;
        Ok(Outcome::Done)
    }

    /// A queue of the interface for each pair, or one for all if it was made with one.
    fn interface(
        &self,
        device: &Device,
        pairs: usize,
    ) -> Result<(Interface, Vec<Interface>), CliError> {
        let open = |count| Interface::open_queues(&self.name, device.features(), count);
        let taps = match open(pairs as u16) {
            Err(TapError::Busy(name)) if pairs > 1 => {
                let one = open(1);
                if one.is_ok() {
                    eprintln!(
                        "{name} has one queue, so one thread has all pairs, and what is sent leaves by \
                         the first; `ip tuntap add dev {name} mode tap multi_queue` makes one with more"
                    );
                }
                one
            }
            taps => taps,
        };
        let mut taps = taps.map_err(ferronic::Error::from)?;
        let more = taps.split_off(1);
        match taps.pop() {
            Some(first) => Ok((first, more)),
            None => Err(CliError::Usage("a bridge needs a queue pair".into())),
        }
    }

    /// Each pair and its queue of the interface on a thread of their own.
    fn threads(
        &self,
        device: &mut Device,
        pairs: Vec<QueuePair>,
        mut taps: impl Iterator<Item = Interface>,
        (placement, handles): (&Placement, &[Interface]),
        control: &Control,
        stop: &Stop,
    ) -> Result<(Crossed, Result<(), CliError>), CliError> {
        let count = pairs.len();
        let workers = Workers::start(device, pairs, placement, |_| {
            let tap = taps.next();
            move |pair, seat| match tap {
                Some(tap) => cross(pair, tap, &seat),
                None => Ok(Crossed::default()),
            }
        })?;
        let mut state = State::new(device, count as u16);
        let mut ran = Ok(());
        while !stop.requested() && workers.running() == count && ran.is_ok() {
            control.serve(&mut Bridged {
                device,
                handles,
                state: &mut state,
                workers: Some(&workers),
            });
            ran = device.wait_or(workers.as_fd(), WAIT).map(drop);
        }
        workers.stop();
        let mut all = Crossed::default();
        for result in workers.join() {
            match result {
                Ok(crossed) => all = all.plus(&crossed),
                Err(e) => ran = ran.and(Err(e)),
            }
        }
        Ok((all, ran.map_err(CliError::from)))
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

/// What crossed.
#[derive(Clone, Copy, Debug, Default)]
struct Crossed {
    stats: BridgeStats,
    gro: GroStats,
}

impl Crossed {
    fn of(bridge: &Bridge<'_>) -> Self {
        let gro = bridge.pairs().iter().map(|pair| pair.rx.gro_stats());
        Self {
            stats: bridge.stats(),
            gro: gro.fold(GroStats::default(), |all, one| all.plus(&one)),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            stats: self.stats.plus(&other.stats),
            gro: self.gro.plus(&other.gro),
        }
    }
}

/// All pairs on this thread, and the interface's only queue.
fn one_thread(
    device: &Device,
    pairs: Vec<QueuePair>,
    tap: Interface,
    handles: &[Interface],
    control: &Control,
    stop: &Stop,
) -> Result<(Crossed, Result<(), CliError>), CliError> {
    let mut bridge = Bridge::new(device, pairs, tap)?;
    let mut ran = Ok(());
    let mut state = State::new(device, 1);
    while !stop.requested() && ran.is_ok() {
        control.serve(&mut Bridged {
            device,
            handles,
            state: &mut state,
            workers: None,
        });
        ran = bridge.step();
    }
    Ok((Crossed::of(&bridge), ran.map_err(CliError::from)))
}

/// One pair, until it is told to stop.
fn cross(pair: QueuePair, tap: Interface, seat: &Seat) -> Result<Crossed, ferronic::Error> {
    let mut bridge = Bridge::new(seat, vec![pair], tap)?;
    while !seat.stopping() {
        bridge.step()?;
        if let [pair] = bridge.pairs() {
            seat.publish(pair);
        }
    }
    Ok(Crossed::of(&bridge))
}

type Threads = Workers<Crossed, ferronic::Error>;

/// What was set from outside.
struct State {
    /// Queues by which the host's stack may send.
    transmitting: u16,
    /// What it may ask of the card.
    offloads: Features,
}

impl State {
    fn new(device: &Device, transmitting: u16) -> Self {
        Self {
            transmitting,
            offloads: device.features() & Features::TX_OFFLOADS,
        }
    }
}

/// The card and the interface, for those who ask for settings.
struct Bridged<'a> {
    device: &'a Device,
    /// Queues of the interface.
    handles: &'a [Interface],
    state: &'a mut State,
    workers: Option<&'a Threads>,
}

impl Owner for Bridged<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn transmitting(&self) -> u16 {
        self.state.transmitting
    }

    fn threads(&self) -> Vec<Thread> {
        let stats = self.workers.map(Workers::stats).unwrap_or_default();
        let thread = |stats: WorkerStats| Thread {
            pair: stats.pair,
            received: [stats.rx.frames, stats.rx.bytes],
            sent: [stats.tx.frames, stats.tx.bytes],
        };
        stats.into_iter().map(thread).collect()
    }

    /// By queues that go out of use the host's stack no longer sends.
    fn set_queues(&mut self, pairs: u16) -> Result<(), CliError> {
        self.device.set_receiving_pairs(pairs)?;
        if let [_, _, ..] = self.handles {
            for (n, queue) in (0u16..).zip(self.handles) {
                let set = queue.set_attached(n < pairs);
                set.map_err(ferronic::Error::from)?;
            }
            self.state.transmitting = pairs;
        }
        Ok(())
    }

    fn transmit_offloads(&self) -> Features {
        self.state.offloads
    }

    fn set_transmit_offloads(&mut self, offloads: Features) -> Option<Result<(), CliError>> {
        // The interface has them, not its queues.
        let queue = self.handles.first()?;
        let set = queue.set_offloads(offloads).map_err(ferronic::Error::from);
        if set.is_ok() {
            self.state.offloads = offloads;
        }
        Some(set.map_err(CliError::from))
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
