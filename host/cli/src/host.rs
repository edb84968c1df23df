//! The cards of this machine as its kernel has them: `list`, `bind`, `unbind`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use ferronic::pci::PciAddress;
use ferronic::pci::sysfs::{Bound, HostDevice, OwnCapability, Sysfs, VFIO_PCI};
use serde_json::{Value, json};

use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};

/// Where the kernel shows its devices.
#[derive(Args)]
struct HostOptions {
    /// Another sysfs than this machine's, for tests.
    #[arg(
        long,
        hide = true,
        env = "FERRONIC_SYSFS",
        default_value = "/sys",
        value_name = "FOLDER"
    )]
    sysfs: PathBuf,
}

impl HostOptions {
    fn sysfs(&self) -> Sysfs {
        Sysfs::new(&self.sysfs, "/dev")
    }
}

/// Options of `list`.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    host: HostOptions,
    /// Print JSON instead of a table, or write it to a file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// Options of `bind`.
#[derive(Args)]
pub struct Bind {
    #[command(flatten)]
    host: HostOptions,
    /// The card, like 0000:01:00.0; `ferronic list` shows them.
    address: PciAddress,
    /// The driver that is to have it.
    #[arg(long, default_value = VFIO_PCI)]
    driver: String,
    /// Take the card even if its network interface is up.
    #[arg(long)]
    force: bool,
}

/// Options of `unbind`.
#[derive(Args)]
pub struct Unbind {
    #[command(flatten)]
    host: HostOptions,
    /// The card, like 0000:01:00.0; `ferronic list` shows them.
    address: PciAddress,
    /// Give it back to the kernel's own driver; else it is left without one.
    #[arg(long)]
    restore: bool,
    /// Take the card even if its network interface is up.
    #[arg(long)]
    force: bool,
}

impl List {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let cards = self.host.sysfs().cards()?;
        match &self.json {
            Some(path) if path != Path::new("-") => {
                write_json(Output::open(path)?, &report(&cards))?;
            }
            Some(_) => println!("{:#}", report(&cards)),
            None => print!("{}", table(&cards)),
        }
        Ok(Outcome::Done)
    }
}

impl Bind {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let (address, driver) = (self.address, &self.driver);
        match self.host.sysfs().bind(address, driver, self.force)? {
            Bound::Already => println!("{address} is with {driver} already"),
            Bound::Now(before) => {
                println!("{address} is with {driver} now ({} before)", name(before));
            }
        }
        Ok(Outcome::Done)
    }
}

impl Unbind {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let address = self.address;
        let done = self
            .host
            .sysfs()
            .unbind(address, self.restore, self.force)?;
        if done.before == done.after {
            println!("{address} is with {} already", name(done.after));
        } else {
            println!(
                "{address} is with {} now ({} before)",
                name(done.after),
                name(done.before)
            );
        }
        Ok(Outcome::Done)
    }
}

fn name(driver: Option<String>) -> String {
    driver.unwrap_or_else(|| "no driver".into())
}

fn own(card: &HostDevice) -> (&'static str, Value) {
    match card.own {
        OwnCapability::Present => ("yes", true.into()),
        OwnCapability::Absent => ("no", false.into()),
        OwnCapability::Hidden => ("ask root", Value::Null),
    }
}

/// A line a card, and below it what else there is to know.
fn table(cards: &[HostDevice]) -> String {
    if cards.is_empty() {
        return "no virtio network card is on the bus\n".into();
    }
    let mut text = format!(
        "{:<14} {:<10} {:<10} {:<9} {:<12} {:<6} interfaces\n",
        "address", "id", "subsystem", "ferronic", "driver", "group"
    );
    for card in cards {
        let group = card.group.as_ref();
        let interfaces: Vec<_> = card
            .interfaces
            .iter()
            .map(|(name, up)| format!("{name} ({})", if *up { "up" } else { "down" }))
            .collect();
        let mut line = format!(
            "{:<14} {:<10} {:<10} {:<9} {:<12} {:<6} {}",
            card.address.to_string(),
            format!("{:04x}:{:04x}", card.vendor, card.device),
            format!("{:04x}:{:04x}", card.subsystem_vendor, card.subsystem),
            own(card).0,
            card.driver.as_deref().unwrap_or("-"),
            group.map_or("-".into(), |group| group.id.to_string()),
            interfaces.join(", ")
        );
        line.truncate(line.trim_end().len());
        let _ = writeln!(text, "{line}");
        if let Some(driver) = &card.driver_override {
            let _ = writeln!(text, "    reserved for {driver} (driver_override)");
        }
        for other in group.map_or(&[][..], |group| &group.others) {
            let driver = other.driver.as_deref().unwrap_or("no driver");
            let note = if other.blocks() {
                ": keeps the group from VFIO"
            } else {
                ""
            };
            let _ = writeln!(text, "    in its group: {} ({driver}){note}", other.address);
        }
    }
    text
}

fn report(cards: &[HostDevice]) -> Value {
    let cards: Vec<_> = cards
        .iter()
        .map(|card| {
            let group = card.group.as_ref();
            let others: Vec<_> = group
                .map_or(&[][..], |group| &group.others)
                .iter()
                .map(|other| {
                    json!({
                        "address": other.address.to_string(),
                        "driver": other.driver,
                        "blocks": other.blocks(),
                    })
                })
                .collect();
            let interfaces: Vec<_> = card
                .interfaces
                .iter()
                .map(|(name, up)| json!({"name": name, "up": up}))
                .collect();
            json!({
                "address": card.address.to_string(),
                "vendor": card.vendor,
                "device": card.device,
                "subsystem_vendor": card.subsystem_vendor,
                "subsystem": card.subsystem,
                "ferronic": own(card).1,
                "driver": card.driver,
                "driver_override": card.driver_override,
                "iommu_group": group.map(|group| group.id),
                "noiommu": group.is_some_and(|group| group.noiommu),
                "group_others": others,
                "interfaces": interfaces,
            })
        })
        .collect();
    json!({"command": "list", "cards": cards})
}
