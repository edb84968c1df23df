//! A set of eventfds, one a vector, and the wait for any of them.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::{PciError, Woken};

/// One eventfd a vector.
pub(super) struct EventFds {
    fds: Vec<OwnedFd>,
    /// Where the next look starts, so that a busy vector does not starve the others.
    next: AtomicUsize,
}

impl EventFds {
    /// Makes `count` of them.
    pub(super) fn new(count: u16) -> Result<Self, PciError> {
        let fds = (0..count)
            .map(|_| {
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(|e| PciError::io("creating an eventfd", e))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            fds,
            next: AtomicUsize::new(0),
        })
    }

    /// The eventfds, by vector.
    pub(super) fn fds(&self) -> &[OwnedFd] {
        &self.fds
    }

    /// Number of vectors.
    pub(super) fn count(&self) -> u16 {
        self.fds.len() as u16
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

    /// Waits until a vector fires and consumes it; `None` if none did within `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Option<u16>, PciError> {
        match self.wait_any(None, timeout)? {
            Woken::Vector(vector) => Ok(Some(vector)),
            _ => Ok(None),
        }
    }

    /// The same, or until `other` can be read.
    pub(super) fn wait_any(
        &self,
        other: Option<BorrowedFd<'_>>,
        timeout: Duration,
    ) -> Result<Woken, PciError> {
        let start = Instant::now();
        loop {
            if let Some(vector) = self.take()? {
                return Ok(Woken::Vector(vector));
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
                .chain(other.iter().map(|fd| PollFd::new(fd, PollFlags::IN)))
                .collect();
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Ok(Woken::TimedOut),
                // An error of it, too: whoever reads it will see.
                Ok(_)
                    if fds[self.fds.len()..]
                        .iter()
                        .any(|fd| !fd.revents().is_empty()) =>
                {
                    return Ok(Woken::Readable);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(PciError::io("waiting for an interrupt", e)),
            }
        }
    }
}
