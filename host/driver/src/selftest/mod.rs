//! Checks of a card that is not in use: identity, reset, power, negotiation, window, interrupts,
//! traffic, offloads, merging.

mod merging;
mod offload;
mod power;
mod traffic;
mod unmapped;

use std::sync::Arc;

use ferronic_spec::Features;
use ferronic_spec::pci::{SUBSYSTEM_ID, SUBSYSTEM_VENDOR_ID};

use crate::device::{Device, DeviceConfig};
use crate::error::Error;
use crate::pci::PciFunction;
use crate::virtio::Transport;

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds; a few words on what was seen.
    Passed(String),
    /// It could not be checked on this card.
    Skipped(String),
    /// It does not hold.
    Failed(String),
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// What came of it.
    pub outcome: Outcome,
}

type Body = fn(&Arc<dyn PciFunction>, &DeviceConfig) -> Result<Outcome, Error>;

const CHECKS: [(&str, Body); 12] = [
    ("identity", identity),
    ("reset", reset),
    ("power", power::power),
    ("negotiation", negotiation),
    ("window", window),
    ("configuration", configuration),
    ("transmit", traffic::transmit),
    ("interrupt", traffic::interrupt),
    ("receive", traffic::receive),
    ("offload", offload::offload),
    ("merging", merging::merging),
    ("reopen", reopen),
];

/// Checks that provoke errors which a host's kernel reports.
const FAULTS: [(&str, Body); 1] = [("unmapped", unmapped::unmapped)];

/// Which checks are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Those, too, that have the card reach for memory that it may not: the IOMMU refuses and the
    /// kernel's log says so.
    pub faults: bool,
}

/// Runs all checks; `report` sees each as it ends. True if none failed. Before each check `stop` is
/// asked; the checks left over when it says so are reported as skipped.
pub fn run(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
    options: Options,
    stop: impl Fn() -> bool,
    mut report: impl FnMut(&Check),
) -> bool {
    let mut good = true;
    let faults = FAULTS.iter().filter(|_| options.faults);
    for &(name, body) in CHECKS.iter().chain(faults) {
        if stop() {
            let outcome = Outcome::Skipped("stopped before it".into());
            report(&Check { name, outcome });
            continue;
        }
        let outcome = body(function, config).unwrap_or_else(|e| Outcome::Failed(e.to_string()));
        good &= !matches!(outcome, Outcome::Failed(_));
        report(&Check { name, outcome });
    }
    good
}

fn passed(words: impl Into<String>) -> Result<Outcome, Error> {
    Ok(Outcome::Passed(words.into()))
}

fn failed(words: impl Into<String>) -> Result<Outcome, Error> {
    Ok(Outcome::Failed(words.into()))
}

fn open_transport(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Transport, Error> {
    Transport::open(Arc::clone(function), config.limits.reset)
}

fn identity(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    let transport = open_transport(function, config)?;
    let caps = transport.capabilities();
    let id = caps.identity;
    let text = format!(
        "{:04x}:{:04x} subsystem {:04x}:{:04x}, {} MSI-X vectors",
        id.vendor, id.device, id.subsystem_vendor, id.subsystem, caps.msix_vectors
    );
    if (id.subsystem_vendor, id.subsystem) != (SUBSYSTEM_VENDOR_ID, SUBSYSTEM_ID) {
        return Ok(Outcome::Skipped(format!(
            "{text}: a virtio card, but not a Ferronic"
        )));
    }
    passed(text)
}

fn reset(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    let mut transport = open_transport(function, config)?;
    transport.negotiate(config.features, Features::VERSION_1)?;
    transport.reset()?;
    let offered = transport.offered()?;
    function.reset()?;
    let transport = open_transport(function, config)?;
    let again = transport.offered()?;
    if again != offered {
        return failed(format!(
            "offers {offered:?} before a function reset, {again:?} after"
        ));
    }
    passed("by status and by function level reset")
}

fn negotiation(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    let mut transport = open_transport(function, config)?;
    transport.reset()?;
    let offered = transport.offered()?;
    // The first feature that is not offered: asking for it must be refused.
    let Some(bit) = (0..64)
        .map(|i| Features::from_bits_retain(1 << i))
        .find(|f| !offered.contains(*f))
    else {
        return Ok(Outcome::Skipped("every bit is offered".into()));
    };
    let refused = transport.refuses(offered | bit)?;
    transport.reset()?;
    if !refused {
        return failed(format!("took {bit:?}, which it does not offer"));
    }
    transport.negotiate(config.features, Features::VERSION_1)?;
    let accepted = transport.features();
    transport.reset()?;
    passed(format!("{accepted:?}"))
}

fn window(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    let (device, _queues) = Device::open(Arc::clone(function), config.clone())?;
    let Some(window) = device.window() else {
        return Ok(Outcome::Skipped("the card has none".into()));
    };
    let first = window.stats()?;
    let second = window.stats()?;
    if second.time <= first.time {
        return failed(format!(
            "the time base went from {} to {}",
            first.time, second.time
        ));
    }
    let (major, minor) = window.version();
    passed(format!(
        "version {major}.{minor}, {} pairs, {} bits, {} Hz",
        window.pairs(),
        8 * window.data_bytes(),
        first.clock_hz
    ))
}

fn configuration(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    let (device, _queues) = Device::open(Arc::clone(function), config.clone())?;
    let link = device.link()?;
    let mac = device.mac();
    if mac == [0; 6] || mac[0] & 1 != 0 {
        return failed(format!("{mac:02x?} is not the address of a card"));
    }
    passed(format!(
        "link {}, MTU {:?}",
        if link.up { "up" } else { "down" },
        device.mtu()
    ))
}

/// A card that was dropped in use works again.
fn reopen(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    for _ in 0..3 {
        let (device, pairs) = Device::open(Arc::clone(function), config.clone())?;
        device.check()?;
        drop(pairs);
        device.close()?;
    }
    passed("three times")
}
