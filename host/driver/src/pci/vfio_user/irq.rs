//! MSI-X vectors as eventfds.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::client::Client;
use super::wire::{SetIrqs, command, vfio};
use crate::pci::{Interrupts, PciError};

/// The enabled vectors.
pub(super) struct EventfdInterrupts {
    client: Arc<Client>,
    fds: Vec<OwnedFd>,
    /// Where the next look starts, so that a busy vector does not starve the others.
    next: AtomicUsize,
}

impl EventfdInterrupts {
    /// Sends an eventfd for each of `count` vectors, at most `block` in a message.
    pub(super) fn enable(client: Arc<Client>, count: u16, block: usize) -> Result<Self, PciError> {
        let fds = (0..count)
            .map(|_| {
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(|e| PciError::io("creating an eventfd", e))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let this = Self {
            client,
            fds,
            next: AtomicUsize::new(0),
        };
        for (i, part) in this.fds.chunks(block.max(1)).enumerate() {
            let fds: Vec<_> = part.iter().map(|fd| fd.as_fd()).collect();
            let set = SetIrqs {
                argsz: (size_of::<SetIrqs>() as u32).into(),
                flags: (vfio::IRQ_SET_DATA_EVENTFD | vfio::IRQ_SET_ACTION_TRIGGER).into(),
                index: vfio::MSIX_IRQ.into(),
                start: ((i * block.max(1)) as u32).into(),
                count: (part.len() as u32).into(),
            };
            this.client.request::<()>(
                "enabling interrupts",
                command::DEVICE_SET_IRQS,
                &[set.as_bytes()],
                &fds,
            )?;
        }
        Ok(this)
    }

    /// The first vector at or after `next` that fired, consumed.
    fn take(&self) -> Result<Option<u16>, PciError> {
        let count = self.fds.len();
        let start = self.next.load(Ordering::Relaxed);
        for vector in (0..count).map(|i| (start + i) % count) {
            let mut value = [0; 8];
            match rustix::io::read(&self.fds[vector], &mut value) {
                Ok(_) => {
                    self.next.store((vector + 1) % count, Ordering::Relaxed);
                    return Ok(Some(vector as u16));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(PciError::io("reading an eventfd", e)),
            }
        }
        Ok(None)
    }
}

impl Interrupts for EventfdInterrupts {
    fn count(&self) -> u16 {
        self.fds.len() as u16
    }

    fn wait(&self, timeout: Duration) -> Result<Option<u16>, PciError> {
        let start = Instant::now();
        loop {
            if let Some(vector) = self.take()? {
                return Ok(Some(vector));
            }
            let left = timeout.saturating_sub(start.elapsed());
            let left = Timespec {
                tv_sec: left.as_secs().min(i32::MAX as u64) as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds: Vec<_> = self
                .fds
                .iter()
                .map(|fd| PollFd::new(fd, PollFlags::IN))
                .collect();
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(PciError::io("waiting for an interrupt", e)),
            }
        }
    }
}

impl Drop for EventfdInterrupts {
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
