//! Frames out, and back in if the wire is a loopback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Outcome, failed, passed};
use crate::device::{Device, DeviceConfig, Event};
use crate::error::Error;
use crate::pci::PciFunction;
use crate::queue::{PushResult, QueuePair, TxQueue, Wakeup};

/// How long a frame may take, in host time (a simulator is slow).
pub(super) const TRAFFIC: Duration = Duration::from_secs(20);
/// How long one wait for an interrupt lasts.
pub(super) const WAIT: Duration = Duration::from_millis(10);
/// How long the first frame may take to come back before there is no loopback.
pub(super) const LOOP: Duration = Duration::from_secs(2);
/// Frames sent by a check.
const FRAMES: u64 = 8;
/// EtherType for local experiments (IEEE 802): no host does anything with it.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

pub(super) fn open(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<(Device, Vec<QueuePair>), Error> {
    let config = DeviceConfig {
        wakeup: Wakeup::Interrupt,
        ..config.clone()
    };
    Device::open(Arc::clone(function), config)
}

/// A broadcast frame of this card, `len` bytes, that names its number.
fn frame(device: &Device, number: u64, len: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(device.mac());
    frame.extend(ETHERTYPE);
    frame.extend(b"ferronic selftest ");
    frame.extend(number.to_be_bytes());
    let from = frame.len();
    frame.resize(len.max(from), 0);
    for (i, byte) in frame[from..].iter_mut().enumerate() {
        *byte = (i as u8).wrapping_mul(7).wrapping_add(number as u8);
    }
    frame
}

/// Waits until everything is sent. Returns the interrupts that told of it.
pub(super) fn complete(device: &Device, tx: &mut TxQueue) -> Result<u64, Error> {
    let start = Instant::now();
    let mut interrupts = 0;
    tx.flush()?;
    while tx.outstanding() > 0 {
        if !tx.arm()? && matches!(device.wait(WAIT)?, Some(Event::Transmit(_))) {
            interrupts += 1;
        }
        tx.reap()?;
        if start.elapsed() > TRAFFIC {
            return Err(Error::Stuck {
                what: "transmission",
                after: TRAFFIC,
            });
        }
    }
    Ok(interrupts)
}

/// Frames go out in every way that the queue can describe them, complete, and are counted.
pub(super) fn transmit(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let (device, mut pairs) = open(function, config)?;
    let Some(tx) = pairs.first_mut().map(|pair| &mut pair.tx) else {
        return failed("the card has no queue");
    };
    let counted = |device: &Device| -> Result<Option<u64>, Error> {
        device.window().map(|w| Ok(w.queue(1)?.packets)).transpose()
    };
    let before = counted(&device)?;
    for i in 0..FRAMES {
        let frame = frame(&device, i, 60);
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
    complete(&device, tx)?;
    let Some(before) = before else {
        return passed(format!(
            "{FRAMES} frames completed; not a Ferronic, so no counter says that they left"
        ));
    };
    let sent = counted(&device)?.map_or(0, |after| after.wrapping_sub(before));
    if sent != FRAMES {
        return failed(format!("sent {FRAMES} frames, the card counted {sent}"));
    }
    passed(format!("{FRAMES} frames completed and counted"))
}

/// An interrupt that was asked for before its cause comes, and one that was not asked for does
/// not.
pub(super) fn interrupt(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let (device, mut pairs) = open(function, config)?;
    let Some(tx) = pairs.first_mut().map(|pair| &mut pair.tx) else {
        return failed("the card has no queue");
    };
    let frame = frame(&device, 0, 60);
    for round in 0..FRAMES {
        // Nothing is outstanding, so nothing can be there yet.
        if tx.arm()? {
            return failed("a completion without a frame");
        }
        if tx.push(&frame)? == PushResult::Full {
            return failed("the ring is full before anything was sent");
        }
        tx.flush()?;
        let start = Instant::now();
        while device.wait(WAIT)? != Some(Event::Transmit(0)) {
            if start.elapsed() > TRAFFIC {
                let done = tx.reap()?;
                return failed(format!(
                    "no interrupt for frame {round} in {TRAFFIC:?} ({done} completed)"
                ));
            }
        }
        if tx.reap()? != 1 {
            return failed(format!("an interrupt before frame {round} completed"));
        }
    }
    tx.disarm();
    if tx.push(&frame)? == PushResult::Full {
        return failed("the ring is full");
    }
    tx.drain(TRAFFIC)?;
    while let Some(event) = device.wait(WAIT)? {
        if event == Event::Transmit(0) {
            return failed("an interrupt that was not asked for");
        }
    }
    passed(format!("{FRAMES} asked for and come, none else"))
}

/// Frames of several sizes come back whole and in order, if they come back at all.
pub(super) fn receive(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let (device, mut pairs) = open(function, config)?;
    let Some(QueuePair { tx, .. }) = pairs.first_mut() else {
        return failed("the card has no queue");
    };
    let frames: Vec<_> = [60, 61, 64, 65, 128, 576, 1024, 1513, 1514]
        .iter()
        .enumerate()
        .map(|(i, len)| frame(&device, i as u64, *len))
        .collect();
    for frame in &frames {
        if tx.push(frame)? == PushResult::Full {
            return failed("the ring is full before anything was sent");
        }
    }
    complete(&device, tx)?;
    let mut came = 0;
    let mut wrong = None;
    let mut last = Instant::now();
    while came < frames.len() && wrong.is_none() {
        for pair in &mut pairs {
            pair.rx.receive(64, |received| {
                let mut bytes = Vec::new();
                received.copy_to(&mut bytes);
                // Other traffic may be on the wire; a frame of this check names itself.
                if !bytes.starts_with(&frames[0][..32]) {
                    return;
                }
                if frames.get(came).is_none_or(|want| *want != bytes) {
                    wrong.get_or_insert(format!("frame {came} came back changed or out of turn"));
                }
                came += 1;
                last = Instant::now();
            })?;
        }
        let patience = if came == 0 { LOOP } else { TRAFFIC };
        if last.elapsed() > patience {
            break;
        }
        let mut pending = false;
        for pair in &mut pairs {
            pending |= pair.rx.arm()?;
        }
        if !pending && came < frames.len() {
            device.wait(WAIT)?;
        }
    }
    match (wrong, came) {
        (Some(wrong), _) => failed(wrong),
        (None, 0) => Ok(Outcome::Skipped(format!(
            "the wire is no loopback: nothing came back in {LOOP:?}"
        ))),
        (None, came) if came < frames.len() => {
            failed(format!("{came} of {} frames came back", frames.len()))
        }
        (None, came) => passed(format!("{came} frames of 60 to 1514 bytes came back whole")),
    }
}
