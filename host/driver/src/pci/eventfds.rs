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
    /// Their vectors.
    vectors: Vec<u16>,
    /// Vectors that were enabled, those among them that are with others now.
    count: u16,
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
            vectors: (0..count).collect(),
            count,
            next: AtomicUsize::new(0),
        })
    }

    /// Takes some vectors out, for somebody else to wait for.
    pub(super) fn part(&mut self, vectors: &[u16]) -> Result<Self, PciError> {
        let at = |vector: &u16| self.vectors.iter().position(|own| own == vector);
        if vectors.iter().any(|vector| at(vector).is_none()) {
            return Err(PciError::Unsupported(format!(
                "of the interrupt vectors {vectors:?} one is not there, or with another thread"
            )));
        }
        let mut part = Self {
            fds: Vec::new(),
            vectors: vectors.to_vec(),
            count: self.count,
            next: AtomicUsize::new(0),
        };
        for vector in vectors {
            if let Some(at) = self.vectors.iter().position(|own| own == vector) {
                part.fds.push(self.fds.remove(at));
                self.vectors.remove(at);
            }
        }
        self.next.store(0, Ordering::Relaxed);
        Ok(part)
    }

    /// The eventfds, by vector.
    pub(super) fn fds(&self) -> &[OwnedFd] {
        &self.fds
    }

    /// Number of vectors that were enabled.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// The first vector at or after `next` that fired, consumed.
    fn take(&self) -> Result<Option<u16>, PciError> {
        let count = self.fds.len();
        let start = self.next.load(Ordering::Relaxed);
        for at in (0..count).map(|i| (start + i) % count) {
            let mut value = [0; 8];
            match rustix::io::read(&self.fds[at], &mut value) {
                Ok(_) => {
                    self.next.store((at + 1) % count, Ordering::Relaxed);
                    return Ok(Some(self.vectors[at]));
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

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    fn fire(events: &EventFds, vector: u16) {
        let at = events.vectors.iter().position(|own| *own == vector);
        let fd = &events.fds[at.expect("a vector of it")];
        rustix::io::write(fd, &1u64.to_ne_bytes()).expect("written");
    }

    #[test]
    fn vectors_that_were_taken_out_are_reported_to_who_has_them_only() {
        let mut all = EventFds::new(5).expect("eventfds");
        let part = all.part(&[3, 1]).expect("taken");
        for vector in [1, 3] {
            fire(&part, vector);
            assert_eq!(all.wait(SOON).expect("wait"), None);
            assert_eq!(part.wait(SOON).expect("wait"), Some(vector));
        }
        for vector in [4, 0, 2] {
            fire(&all, vector);
            assert_eq!(part.wait(SOON).expect("wait"), None);
            assert_eq!(all.wait(SOON).expect("wait"), Some(vector));
        }
        assert_eq!((all.count(), part.count()), (5, 5));
        // Nobody has a vector twice, and there are no others.
        for vectors in [&[1][..], &[2, 3], &[5]] {
            assert!(all.part(vectors).is_err());
        }
        // What could not be taken out in whole is where it was.
        fire(&all, 2);
        assert_eq!(all.wait(SOON).expect("wait"), Some(2));
    }
}
