//! The seam between the driver and the world: one PCI function.
//!
//! Everything above this module (virtio, queues, the device) talks to the card only through
//! [`PciFunction`], [`RegisterIo`], [`Interrupts`] and [`DmaRegion`], and does not know whether a
//! simulator in the same process, a vfio-user server or the kernel stands behind them.

mod address;
pub mod caps;
mod dma;
mod error;
mod eventfds;
pub mod sysfs;
pub mod vfio;
pub mod vfio_user;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub use address::PciAddress;
pub use dma::{DMA_PAGE, DmaMemory, DmaRegion};
pub use error::PciError;

/// Access to one memory BAR, a register at a time.
///
/// Each call is one access of exactly that width. Writes may be posted: they can return before
/// the device has seen them, but no later access of the same function overtakes them.
pub trait RegisterIo: Send + Sync {
    /// Size of the BAR in bytes.
    fn len(&self) -> u64;
    /// True if the BAR has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Reads one byte.
    fn read8(&self, offset: u64) -> Result<u8, PciError>;
    /// Reads an aligned 16-bit register.
    fn read16(&self, offset: u64) -> Result<u16, PciError>;
    /// Reads an aligned 32-bit register.
    fn read32(&self, offset: u64) -> Result<u32, PciError>;
    /// Reads an aligned 64-bit register.
    fn read64(&self, offset: u64) -> Result<u64, PciError>;
    /// Writes one byte.
    fn write8(&self, offset: u64, value: u8) -> Result<(), PciError>;
    /// Writes an aligned 16-bit register.
    fn write16(&self, offset: u64, value: u16) -> Result<(), PciError>;
    /// Writes an aligned 32-bit register.
    fn write32(&self, offset: u64, value: u32) -> Result<(), PciError>;
    /// Writes an aligned 64-bit register.
    fn write64(&self, offset: u64, value: u64) -> Result<(), PciError>;
}

/// The MSI-X vectors of a function, enabled.
///
/// Dropping the value disables them.
pub trait Interrupts: Send {
    /// Number of vectors that were enabled.
    fn count(&self) -> u16;
    /// Takes some vectors out, for another thread to wait for: they keep their numbers, and this value
    /// no longer reports them. Vectors are disabled when the last part is dropped.
    ///
    /// # Errors
    /// [`PciError::Unsupported`] where there is no such thing: a simulator in the same process has one
    /// thread. Also if one of them was taken out already.
    fn part(&mut self, vectors: &[u16]) -> Result<Box<dyn Interrupts>, PciError> {
        let _ = vectors;
        Err(PciError::Unsupported(
            "interrupts of this card can only be waited for by one thread; use one queue pair, or \
             poll"
                .into(),
        ))
    }
    /// Waits until a vector fires and consumes it; `None` if none did within `timeout`.
    ///
    /// A vector that fired several times since it was last reported is reported at least once.
    /// Over a simulator `timeout` is simulated time.
    fn wait(&self, timeout: Duration) -> Result<Option<u16>, PciError>;
    /// Waits until a vector fires, which is consumed, or `other` can be read, or `timeout` of the
    /// host's time is over.
    ///
    /// This one looks at both in turn: for simulators, whose time passes only when they are asked.
    fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Woken, PciError> {
        let start = Instant::now();
        loop {
            if let Some(vector) = self.wait(SLICE)? {
                return Ok(Woken::Vector(vector));
            }
            if is_readable(other)? {
                return Ok(Woken::Readable);
            }
            if start.elapsed() >= timeout {
                return Ok(Woken::TimedOut);
            }
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A vector fired.
    Vector(u16),
    /// The other descriptor can be read.
    Readable,
    /// Nothing in time.
    TimedOut,
}

/// How long a simulator is let run between two looks at something else.
const SLICE: Duration = Duration::from_micros(20);

fn is_readable(fd: BorrowedFd<'_>) -> Result<bool, PciError> {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(PciError::io("looking whether a descriptor can be read", e)),
    }
}

/// One PCI function, as a backend offers it.
pub trait PciFunction: Send + Sync {
    /// Reads `buf.len()` bytes of configuration space.
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError>;
    /// Writes `data` to configuration space.
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError>;
    /// The registers of memory BAR `index` (0 to 5; a 64-bit BAR goes by its lower index).
    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError>;
    /// Allocates zeroed memory that the device can reach; `len` is rounded up to whole pages.
    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError>;
    /// Enables MSI-X vectors `0..count`. The device's MSI-X table is programmed by the backend.
    fn enable_interrupts(&self, count: u16) -> Result<Box<dyn Interrupts>, PciError>;
    /// Function level reset. BAR and bus-master settings are those of a fresh open afterwards.
    fn reset(&self) -> Result<(), PciError>;
    /// Gives a single-threaded simulator time to run; real devices do nothing.
    fn poll(&self) {}
}
