//! Options that several commands have, and the opening of the card.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use ferronic::gro::GroStats;
use ferronic::lro::Profile;
use ferronic::pci::PciFunction;
use ferronic::spec::Features;
use ferronic::workers::Placement;
use ferronic::xps::{Cpus, Mask};
use ferronic::{Device, DeviceConfig, QueuePair, Wakeup};

use crate::error::CliError;
use crate::merging::LroArgs;

/// Which card.
#[derive(Args, Clone, Debug)]
pub struct CardOptions {
    /// The card: a PCI address like 0000:01:00.0 (`ferronic list`), or vfio-user:/path/of/socket.
    #[arg(long, env = "FERRONIC_DEVICE", value_name = "DEVICE")]
    pub device: String,
}

impl CardOptions {
    /// Connects to the card.
    pub fn function(&self) -> Result<Arc<dyn PciFunction>, CliError> {
        Ok(ferronic::backend::open(&self.device)?)
    }
}

/// How a card is used.
#[derive(Args, Clone, Debug)]
pub struct QueueOptions {
    #[command(flatten)]
    card: CardOptions,
    /// Queue pairs to use.
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    queues: u16,
    /// Bytes of a receive buffer, 128 to 65536.
    #[arg(long, default_value_t = 2048, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(128..=65_536))]
    buffer_size: u32,
    /// Bytes by which receive buffers are off a 64-byte boundary.
    #[arg(long, default_value_t = 0, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(0..64))]
    buffer_offset: u32,
    /// Entries of a ring, a power of two; as large as the card offers if not given.
    #[arg(long, value_name = "ENTRIES")]
    ring_size: Option<u16>,
    /// Offloads not to negotiate, with commas; what depends on them goes, too.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    without: Vec<Offload>,
}

/// Offloads, by the names of the virtio specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Offload {
    /// Checksums of sent frames.
    Csum,
    /// Checksums of received frames.
    GuestCsum,
    /// Segmentation of TCP over IPv4.
    HostTso4,
    /// Segmentation of TCP over IPv6.
    HostTso6,
    /// Segmentation of TCP with ECN.
    HostEcn,
    /// Segmentation of UDP.
    HostUso,
    /// Received segments of TCP over IPv4 that the card merged.
    GuestTso4,
    /// Received segments of TCP over IPv6 that the card merged.
    GuestTso6,
}

impl Offload {
    const fn feature(self) -> Features {
        match self {
            Self::Csum => Features::CSUM,
            Self::GuestCsum => Features::GUEST_CSUM,
            Self::HostTso4 => Features::HOST_TSO4,
            Self::HostTso6 => Features::HOST_TSO6,
            Self::HostEcn => Features::HOST_ECN,
            Self::HostUso => Features::HOST_USO,
            Self::GuestTso4 => Features::GUEST_TSO4,
            Self::GuestTso6 => Features::GUEST_TSO6,
        }
    }
}

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    /// Where the card can.
    On,
    /// Not even then.
    Off,
}

impl Switch {
    /// As figures have it.
    pub const fn name(on: bool) -> &'static str {
        if on { "on" } else { "off" }
    }
}

impl QueueOptions {
    /// The driver's settings; interrupts are used, so that waiting costs nothing.
    pub fn config(&self) -> DeviceConfig {
        let default = DeviceConfig::default();
        let without = self.without.iter().map(|offload| offload.feature());
        DeviceConfig {
            features: default.features - without.collect(),
            queue_pairs: self.queues,
            buffer_size: self.buffer_size as usize,
            buffer_offset: self.buffer_offset as usize,
            ring_size: self.ring_size,
            wakeup: Wakeup::Interrupt,
            ..default
        }
    }

    /// Connects to the card.
    pub fn function(&self) -> Result<Arc<dyn PciFunction>, CliError> {
        self.card.function()
    }

    /// The card's name, as it was given.
    pub fn device(&self) -> &str {
        &self.card.device
    }

    /// Opens the card, which merges by `lro`, or by `profile` where that says nothing.
    pub fn open(
        &self,
        lro: &LroArgs,
        profile: Profile,
    ) -> Result<(Device, Vec<QueuePair>), CliError> {
        let config = lro.apply(profile, self.config())?;
        Ok(Device::open(self.function()?, config)?)
    }

    /// Opens the card to send.
    pub fn open_to_send(&self) -> Result<(Device, Vec<QueuePair>), CliError> {
        Ok(Device::open(self.function()?, self.config())?)
    }
}

/// Where threads with a queue pair each run.
#[derive(Args, Clone, Debug)]
pub struct CpuOptions {
    /// CPUs of the threads that have a queue pair each, in turn: numbers and ranges with commas, or
    /// `spread` for all that this process may use. Where the kernel puts them if not given.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
}

impl CpuOptions {
    /// For the driver.
    pub fn placement(&self) -> Result<Placement, CliError> {
        match self.cpus.as_deref() {
            None => Ok(Placement::Free),
            Some("spread") => Ok(Placement::Spread),
            Some(list) => {
                let possible = Cpus::of_this_machine()?.possible();
                let cpus = Mask::from_list(list, possible)
                    .map_err(|e| CliError::Usage(format!("--cpus {list}: {e}")))?;
                match cpus.is_empty() {
                    true => Err(CliError::Usage("--cpus names no CPU".into())),
                    false => Ok(Placement::Cpus(cpus.iter().collect())),
                }
            }
        }
    }
}

/// What merging did, for people.
pub fn merged(stats: &GroStats) -> String {
    format!(
        "{} segments in {} units, {:.1} segments a unit",
        stats.segments,
        stats.units,
        stats.segments_a_unit()
    )
}

/// Becomes true at SIGINT or SIGTERM; a second one ends the process.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Catches the signals from now on.
    pub fn catch() -> Result<Self, CliError> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let flag = Arc::new(AtomicBool::new(false));
        let register = |signal| -> io::Result<()> {
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            Ok(())
        };
        [SIGINT, SIGTERM]
            .into_iter()
            .try_for_each(register)
            .map_err(|e| CliError::Usage(format!("cannot catch signals: {e}")))?;
        Ok(Self(flag))
    }

    /// True once a signal came.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A MAC address as people write it.
pub fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}
