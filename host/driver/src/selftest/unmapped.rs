//! Memory that was taken back from the card.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic_spec::net::HEADER_LEN;
use ferronic_spec::transport::Status;
use ferronic_spec::{Features, window};

use super::{Outcome, failed, open_transport, passed};
use crate::device::DeviceConfig;
use crate::error::Error;
use crate::pci::{DmaRegion, PciFunction};
use crate::stats::Window;
use crate::virtio::split::{Add, QueueOptions, Segment, SplitQueue};
use crate::virtio::{Doorbell, Transport};

/// Transmit queue of the first pair.
const QUEUE: u16 = 1;
/// Its size.
const SIZE: u16 = 16;
/// Bytes of the frame.
const FRAME: usize = 60;
/// How long a completion may take, in host time (a simulator is slow).
const PATIENCE: Duration = Duration::from_secs(20);

/// A queue by hand: what it is given is where the caller says.
struct ByHand {
    transport: Transport,
    window: Window,
    queue: SplitQueue,
    doorbell: Doorbell,
}

/// What the card counts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counted {
    sent: u64,
    refused: u32,
}

impl ByHand {
    fn open(function: &Arc<dyn PciFunction>, config: &DeviceConfig) -> Result<Self, Error> {
        let mut transport = open_transport(function, config)?;
        transport.negotiate(Features::VERSION_1, Features::VERSION_1)?;
        let window = Window::attach(&transport)?;
        let alloc = |len| function.dma_alloc(len).map(Arc::new);
        let options = QueueOptions {
            index: QUEUE,
            size: SIZE,
            event_idx: false,
            indirect_entries: 0,
        };
        let queue = SplitQueue::new(options, &alloc)?;
        let doorbell = transport.enable_queue(QUEUE, SIZE, queue.addresses(), None)?;
        transport.driver_ok()?;
        Ok(Self {
            transport,
            window,
            queue,
            doorbell,
        })
    }

    /// Sends what is at `addr`, whatever that is. True if it was completed, false if the card
    /// asks for a reset instead.
    fn send(&mut self, addr: u64) -> Result<bool, Error> {
        let len = (HEADER_LEN + FRAME) as u32;
        if self.queue.add(&[Segment { addr, len }], &[], false)? == Add::Full {
            return Ok(false);
        }
        self.queue.publish();
        self.doorbell.ring(self.queue.avail_idx())?;
        let start = Instant::now();
        while self.queue.pop()?.is_none() {
            if self.transport.status()?.contains(Status::NEEDS_RESET) {
                return Ok(false);
            }
            if start.elapsed() > PATIENCE {
                return Err(Error::Stuck {
                    what: "a frame in memory that was taken back",
                    after: PATIENCE,
                });
            }
            self.transport.function().poll();
        }
        Ok(true)
    }

    fn counted(&self) -> Result<Counted, Error> {
        let queue = self.window.queue(QUEUE)?;
        Ok(Counted {
            sent: queue.packets,
            refused: self.window.device_counter(window::PCIE_ERROR_CPL)?,
        })
    }
}

impl Drop for ByHand {
    /// The card lets go of the rings before they go.
    fn drop(&mut self) {
        if let Err(e) = self.transport.reset() {
            log::warn!("{e}");
        }
    }
}

fn frame(function: &Arc<dyn PciFunction>) -> Result<DmaRegion, Error> {
    let region = function.dma_alloc(HEADER_LEN + FRAME)?;
    let mut bytes = [0; FRAME];
    bytes[..6].fill(0xff);
    bytes[6..14].copy_from_slice(&[0x02, 0xfe, 0x01, 0, 0, 1, 0x88, 0xb5]);
    region.memory().write(HEADER_LEN, &bytes)?;
    Ok(region)
}

/// A frame in memory that was unmapped does not leave, and the refusal is seen by the card; it
/// works again after a reset.
pub(super) fn unmapped(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let transport = open_transport(function, config)?;
    if transport.capabilities().window.is_none() {
        return Ok(Outcome::Skipped(
            "not a Ferronic: no counter would say that the memory was refused".into(),
        ));
    }
    drop(transport);
    let mut card = ByHand::open(function, config)?;
    let region = frame(function)?;
    let addr = region.iova();
    let before = card.counted()?;
    let completed = card.send(addr)?;
    let mapped = card.counted()?;
    if !completed || mapped.sent != before.sent + 1 || mapped.refused != before.refused {
        return failed("a frame in memory that is mapped did not leave");
    }
    drop(region);
    card.send(addr)?;
    let unmapped = card.counted()?;
    let broken = card.transport.status()?.contains(Status::NEEDS_RESET);
    if unmapped.sent != mapped.sent {
        return failed("a frame left although its memory was unmapped");
    }
    if unmapped.refused == mapped.refused {
        return failed("the card did not see that its read was refused");
    }
    drop(card);
    let mut card = ByHand::open(function, config)?;
    let region = frame(function)?;
    let before = card.counted()?;
    if !card.send(region.iova())? || card.counted()?.sent != before.sent + 1 {
        return failed("nothing is sent after the refusal and a reset");
    }
    passed(format!(
        "a read after the unmap was refused and counted, {}",
        if broken {
            "and a reset asked for"
        } else {
            "and its frame dropped"
        }
    ))
}
