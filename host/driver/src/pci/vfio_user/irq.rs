//! MSI-X vectors as eventfds.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use zerocopy::IntoBytes;

use super::client::Client;
use super::wire::{SetIrqs, command, vfio};
use crate::pci::eventfds::EventFds;
use crate::pci::{Interrupts, PciError, Woken};

/// The enabled vectors.
pub(super) struct EventfdInterrupts {
    enabled: Arc<Enabled>,
    events: EventFds,
}

/// Vectors are enabled as long as there is one.
struct Enabled {
    client: Arc<Client>,
}

impl EventfdInterrupts {
    /// Sends an eventfd for each of `count` vectors, at most `block` in a message.
    pub(super) fn enable(client: Arc<Client>, count: u16, block: usize) -> Result<Self, PciError> {
        let this = Self {
            enabled: Arc::new(Enabled { client }),
            events: EventFds::new(count)?,
        };
        for (i, part) in this.events.fds().chunks(block.max(1)).enumerate() {
            let fds: Vec<_> = part.iter().map(|fd| fd.as_fd()).collect();
            let set = SetIrqs {
                argsz: (size_of::<SetIrqs>() as u32).into(),
                flags: (vfio::IRQ_SET_DATA_EVENTFD | vfio::IRQ_SET_ACTION_TRIGGER).into(),
                index: vfio::MSIX_IRQ.into(),
                start: ((i * block.max(1)) as u32).into(),
                count: (part.len() as u32).into(),
            };
            this.enabled.client.request::<()>(
                "enabling interrupts",
                command::DEVICE_SET_IRQS,
                &[set.as_bytes()],
                &fds,
            )?;
        }
        Ok(this)
    }
}

impl Interrupts for EventfdInterrupts {
    fn count(&self) -> u16 {
        self.events.count()
    }

    fn part(&mut self, vectors: &[u16]) -> Result<Box<dyn Interrupts>, PciError> {
        Ok(Box::new(Self {
            events: self.events.part(vectors)?,
            enabled: Arc::clone(&self.enabled),
        }))
    }

    fn wait(&self, timeout: Duration) -> Result<Option<u16>, PciError> {
        self.events.wait(timeout)
    }

    fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Woken, PciError> {
        self.events.wait_any(Some(other), timeout)
    }
}

impl Drop for Enabled {
    fn drop(&mut self) {
        let set = SetIrqs {
            argsz: (size_of::<SetIrqs>() as u32).into(),
            flags: (vfio::IRQ_SET_DATA_NONE | vfio::IRQ_SET_ACTION_TRIGGER).into(),
            index: vfio::MSIX_IRQ.into(),
            start: 0.into(),
            count: 0.into(),
        };
        let disabled = self.client.request::<()>(
            "disabling interrupts",
            command::DEVICE_SET_IRQS,
            &[set.as_bytes()],
            &[],
        );
        if let Err(e) = disabled {
            log::debug!("{e}");
        }
    }
}
