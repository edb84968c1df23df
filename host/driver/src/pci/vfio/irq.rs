//! MSI-X through eventfds.

use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd};
use std::sync::Arc;
use std::time::Duration;

use vmm_sys_util::eventfd::EventFd;

use super::Opened;
use super::error::VfioError;
use crate::pci::eventfds::EventFds;
use crate::pci::{Interrupts, PciError, Woken};

/// The enabled vectors.
pub(super) struct VfioInterrupts {
    enabled: Arc<Enabled>,
    events: EventFds,
}

/// Vectors are enabled as long as there is one.
struct Enabled {
    device: Arc<Opened>,
}

impl VfioInterrupts {
    /// Gives the kernel an eventfd for each of `count` vectors.
    pub(super) fn enable(device: Arc<Opened>, count: u16) -> Result<Self, PciError> {
        let events = EventFds::new(count)?;
        // The kernel holds on to what is behind a descriptor; these are closed afterwards.
        let copies = events
            .fds()
            .iter()
            .map(|fd| {
                let fd = fd
                    .try_clone()
                    .map_err(|e| PciError::io("copying an eventfd", e))?;
                // SAFETY: the descriptor is an eventfd, and from here on is owned by the value.
                Ok(unsafe { EventFd::from_raw_fd(fd.into_raw_fd()) })
            })
            .collect::<Result<Vec<_>, PciError>>()?;
        device
            .card()
            .enable_msix(copies.iter().collect())
            .map_err(|source| VfioError::Setup {
                address: device.address(),
                what: "enabling MSI-X",
                source,
                remedy: "the machine may have no interrupt vectors left: use fewer queues",
            })?;
        Ok(Self {
            enabled: Arc::new(Enabled { device }),
            events,
        })
    }
}

impl Interrupts for VfioInterrupts {
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
        if let Err(e) = self.device.card().disable_msix() {
            log::debug!("{e}");
        }
    }
}
