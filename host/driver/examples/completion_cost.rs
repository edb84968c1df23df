//! What transmission costs the host: instructions of the driver for a transmit call, for taking a
//! buffer back, for an interrupt, and for waking a sender that waited.
//!
//! `completion_cost ACTION COUNT` does it so often; instructions are those that callgrind counts in
//! functions with `measured` in their name. `cargo xtask bench completion --measure` runs all of it and
//! says what one costs; the bench takes them from tests/cosim/src/completion/cost.txt.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use ferronic::completion::{CompletionPolicy, Push, SenderId};
use ferronic::pci::{DmaRegion, Interrupts, PciError, PciFunction, RegisterIo};
use ferronic::spec::pci::bar0;
use ferronic::{Device, DeviceConfig, Error, Event, TxOffload, TxPart, TxPort, Wakeup};
use support::{Function, OFFER, SoftCard};

/// Bytes of a datagram of 1 KiB with its headers.
const LEN: usize = 14 + 20 + 8 + 1024;
/// Bytes of a frame that has 7 KiB more.
const LARGE: usize = LEN + 7 * 1024;
/// Frames that are outstanding at most.
const BATCH: usize = 64;

/// The card, but a doorbell is a store and a vector is a load, as on hardware.
struct Quick {
    card: Function,
    signals: Arc<Signals>,
}

#[derive(Default)]
struct Signals {
    rung: AtomicU16,
    vector: AtomicU16,
}

struct Bar {
    inner: Arc<dyn RegisterIo>,
    signals: Arc<Signals>,
}

impl RegisterIo for Bar {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read8(&self, offset: u64) -> Result<u8, PciError> {
        self.inner.read8(offset)
    }
    fn read16(&self, offset: u64) -> Result<u16, PciError> {
        self.inner.read16(offset)
    }
    fn read32(&self, offset: u64) -> Result<u32, PciError> {
        self.inner.read32(offset)
    }
    fn read64(&self, offset: u64) -> Result<u64, PciError> {
        self.inner.read64(offset)
    }
    fn write8(&self, offset: u64, value: u8) -> Result<(), PciError> {
        self.inner.write8(offset, value)
    }
    fn write16(&self, offset: u64, value: u16) -> Result<(), PciError> {
        if (bar0::NOTIFY..bar0::MSIX_TABLE).contains(&offset) {
            self.signals.rung.store(value, Ordering::Relaxed);
            return Ok(());
        }
        self.inner.write16(offset, value)
    }
    fn write32(&self, offset: u64, value: u32) -> Result<(), PciError> {
        if (bar0::NOTIFY..bar0::MSIX_TABLE).contains(&offset) {
            self.signals.rung.store(value as u16, Ordering::Relaxed);
            return Ok(());
        }
        self.inner.write32(offset, value)
    }
    fn write64(&self, offset: u64, value: u64) -> Result<(), PciError> {
        self.inner.write64(offset, value)
    }
}

struct Vectors(Arc<Signals>);

impl Interrupts for Vectors {
    fn count(&self) -> u16 {
        3
    }
    fn wait(&self, _timeout: Duration) -> Result<Option<u16>, PciError> {
        Ok(Some(self.0.vector.load(Ordering::Relaxed)))
    }
}

impl PciFunction for Quick {
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError> {
        self.card.config_read(offset, buf)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.card.config_write(offset, data)
    }
    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError> {
        Ok(Arc::new(Bar {
            inner: self.card.bar(index)?,
            signals: Arc::clone(&self.signals),
        }))
    }
    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError> {
        self.card.dma_alloc(len)
    }
    fn enable_interrupts(&self, _count: u16) -> Result<Box<dyn Interrupts>, PciError> {
        // The vector of the transmit queue of pair 0.
        self.signals.vector.store(2, Ordering::Relaxed);
        Ok(Box::new(Vectors(Arc::clone(&self.signals))))
    }
    fn reset(&self) -> Result<(), PciError> {
        self.card.reset()
    }
}

struct Host {
    card: Arc<SoftCard>,
    bar: Arc<dyn RegisterIo>,
    device: Device,
    port: TxPort,
    sender: SenderId,
}

fn open() -> Result<Host, Error> {
    let card = SoftCard::telling(OFFER, 1, 256);
    let signals = Arc::default();
    let function = Arc::new(Quick {
        card: Function(Arc::clone(&card)),
        signals,
    });
    let bar = function.card.bar(0)?;
    let config = DeviceConfig {
        wakeup: Wakeup::Interrupt,
        ring_size: Some(256),
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config)?;
    let mut tx = pairs.remove(0).tx;
    device.set_completion(&mut tx, CompletionPolicy::DEFAULT)?;
    let mut port = TxPort::new(tx);
    let sender = port.open(BATCH * LEN);
    Ok(Host {
        card,
        bar,
        device,
        port,
        sender,
    })
}

impl Host {
    /// A call of a sender: one frame into the ring, the card told.
    fn send(&mut self, frame: &[u8]) -> Result<Push, Error> {
        let push = self
            .port
            .send(self.sender, &[TxPart::Bytes(frame)], TxOffload::None)?;
        self.port.flush()?;
        Ok(push)
    }

    /// From the wait for a vector to the wait for the next.
    fn interrupt(&mut self) -> Result<usize, Error> {
        match self.device.wait(Duration::ZERO)? {
            Some(Event::Transmit(0)) => self.port.service(),
            _ => Ok(0),
        }
    }

    /// Lets the card complete all that it was told of.
    fn complete(&self) -> Result<(), Error> {
        self.bar.write16(bar0::NOTIFY + 4, 1)?;
        self.card.run();
        let mut model = self.card.model();
        model.sent.clear();
        model.layouts.clear();
        model.irqs.clear();
        Ok(())
    }
}

#[inline(never)]
fn measured_send(host: &mut Host, frame: &[u8]) -> Result<Push, Error> {
    host.send(frame)
}

#[inline(never)]
fn measured_interrupt(host: &mut Host) -> Result<usize, Error> {
    host.interrupt()
}

#[inline(never)]
fn measured_wake(host: &mut Host) -> Option<SenderId> {
    host.port.next_ready()
}

/// Does an action `count` times, what leads to it not counted.
fn run(action: &str, count: usize) -> Result<(), Error> {
    let mut host = open()?;
    let frame = vec![7; LEN];
    let large = vec![7; LARGE];
    for _ in 0..count {
        let _ = match action {
            "transmit" => measured_send(&mut host, &frame)?,
            "large" => measured_send(&mut host, &large)?,
            _ => host.send(&frame)?,
        };
        match action {
            // Without anything to take back.
            "interrupt" => drop(measured_interrupt(&mut host)?),
            "wakeup" => {
                // One more than its send buffer holds, which has it wait.
                while host.send(&frame)? == Push::Queued {}
                host.complete()?;
                measured_interrupt(&mut host)?;
                while measured_wake(&mut host).is_some() {}
            }
            "batch" => {
                while host.port.charged(host.sender)? < BATCH * LEN {
                    let _ = host.send(&frame)?;
                }
                host.complete()?;
                measured_interrupt(&mut host)?;
            }
            _ => {}
        }
        host.complete()?;
        host.interrupt()?;
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let usage = "completion_cost transmit|large|interrupt|batch|wakeup COUNT";
    let action = arguments.next().ok_or(usage)?;
    let count = arguments.next().and_then(|n| n.parse().ok()).ok_or(usage)?;
    run(&action, count).map_err(|e| e.to_string())
}
