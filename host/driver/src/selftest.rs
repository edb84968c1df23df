//! Checks of a card that is not in use: identity, reset, negotiation, window, interrupts, traffic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic_spec::Features;
use ferronic_spec::pci::{SUBSYSTEM_ID, SUBSYSTEM_VENDOR_ID};

use crate::device::{Device, DeviceConfig, Event};
use crate::error::Error;
use crate::pci::PciFunction;
use crate::queue::{CompletionPolicy, PushResult};
use crate::virtio::Transport;

/// How long a frame may take, in host time (a simulator is slow).
const TRAFFIC: Duration = Duration::from_secs(20);
/// How long one wait for an interrupt lasts.
const WAIT: Duration = Duration::from_millis(10);
/// Frames sent by the transmit check.
const FRAMES: u64 = 8;
/// EtherType for local experiments (IEEE 802): no host does anything with it.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

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

const CHECKS: [(&str, Body); 7] = [
    ("identity", identity),
    ("reset", reset),
    ("negotiation", negotiation),
    ("window", window),
    ("configuration", configuration),
    ("transmit", transmit),
    ("reopen", reopen),
];

/// Runs all checks; `report` sees each as it ends. True if none failed.
pub fn run(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
    mut report: impl FnMut(&Check),
) -> bool {
    let mut good = true;
    for (name, body) in CHECKS {
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

/// Frames go out in every way that the queue can describe them, complete, are counted, and the
/// interrupt asked for comes.
fn transmit(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Outcome, Error> {
    let config = DeviceConfig {
        policy: CompletionPolicy::EventIndex,
        ..config.clone()
    };
    let (device, mut pairs) = Device::open(Arc::clone(function), config)?;
    let Some(tx) = pairs.first_mut().map(|pair| &mut pair.tx) else {
        return failed("the card has no queue");
    };
    let counted = |device: &Device| -> Result<Option<u64>, Error> {
        device.window().map(|w| Ok(w.queue(1)?.packets)).transpose()
    };
    let before = counted(&device)?;
    let mut frame = vec![0xff; 6];
    frame.extend(device.mac());
    frame.extend(ETHERTYPE);
    frame.resize(60, 0);
    for i in 0..FRAMES {
        let split = 14 + i as usize;
        let pushed = if i % 2 == 0 {
            tx.push(&frame)?
        } else {
            tx.push_pieces(&[&frame[..split], &frame[split..]])?
        };
        if pushed == PushResult::Full {
            return failed("the ring is full before anything was sent");
        }
    }
    let start = Instant::now();
    let mut interrupts = 0;
    tx.flush()?;
    while tx.outstanding() > 0 {
        if !tx.arm()? && device.wait(WAIT)? == Some(Event::Transmit(0)) {
            interrupts += 1;
        }
        tx.reap()?;
        if start.elapsed() > TRAFFIC {
            return failed(format!(
                "{} of {FRAMES} frames did not complete",
                tx.outstanding()
            ));
        }
    }
    let sent = counted(&device)?
        .zip(before)
        .map(|(after, before)| after.wrapping_sub(before));
    if let Some(sent) = sent.filter(|sent| *sent != FRAMES) {
        return failed(format!("sent {FRAMES} frames, the card counted {sent}"));
    }
    passed(format!("{FRAMES} frames, {interrupts} interrupts"))
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
