//! The simulated card behind the driver's seam, in the same process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ferronic::pci::{DmaMemory, DmaRegion, Interrupts, PciError, PciFunction, RegisterIo};

use crate::rng::Rng;
use crate::root_complex::{Access, Backing};
use crate::sim::{Sim, SimError, cycles_of};

/// Cycles that [`PciFunction::poll`] simulates at most.
const POLL_CYCLES: u64 = 16;

/// The card as a [`PciFunction`]. Single-threaded in effect: each call takes the simulation for
/// itself and advances it only as far as it needs. Same calls, same seed: same cycles.
///
/// Clones are handles to the same card.
#[derive(Clone)]
pub struct SimFunction {
    shared: Arc<Shared>,
}

struct Shared {
    sim: Mutex<Sim>,
    addresses: Mutex<AddressSpace>,
}

impl Shared {
    fn sim(&self) -> MutexGuard<'_, Sim> {
        self.sim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimFunction {
    /// Enumerates the card and takes it over. Bus mastering is off, as after an open of VFIO: it
    /// is for the driver to turn on.
    pub fn new(mut sim: Sim) -> Result<Self, SimError> {
        sim.enumerate()?;
        let addresses = AddressSpace::new(sim.config().seed);
        Ok(Self {
            shared: Arc::new(Shared {
                sim: Mutex::new(sim),
                addresses: Mutex::new(addresses),
            }),
        })
    }

    /// The simulation, for tests that look behind the seam. Nothing else runs while it is held.
    pub fn sim(&self) -> MutexGuard<'_, Sim> {
        self.shared.sim()
    }

    /// Simulates `cycles` cycles.
    pub fn run(&self, cycles: u64) -> Result<(), SimError> {
        self.sim().run(cycles)
    }

    /// The time base in cycles.
    pub fn now(&self) -> u64 {
        self.sim().now()
    }
}

impl PciFunction for SimFunction {
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError> {
        Ok(self.sim().config_read(offset, buf)?)
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        Ok(self.sim().config_write(offset, data)?)
    }

    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError> {
        let size = match (index, self.sim().function()) {
            (0, Some(function)) => function.bar.size,
            _ => return Err(PciError::NoSuchBar(index)),
        };
        Ok(Arc::new(SimBar {
            shared: self.shared.clone(),
            size,
        }))
    }

    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError> {
        let memory = DmaMemory::new(len)?;
        let len = memory.len() as u64;
        let iova = self
            .shared
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .allocate(len);
        self.sim()
            .root
            .memory
            .map(
                iova,
                len,
                &Backing::from(memory.clone()),
                0,
                Access::READ_WRITE,
            )
            .map_err(|e| PciError::Unsupported(e.to_string()))?;
        let unmap = Unmap {
            shared: self.shared.clone(),
            iova,
            len,
        };
        Ok(DmaRegion::new(memory, iova, Some(Box::new(unmap))))
    }

    fn enable_interrupts(&self, count: u16) -> Result<Box<dyn Interrupts>, PciError> {
        let mut sim = self.sim();
        let available = sim.function().map_or(0, |f| f.msix.vectors);
        if count > available {
            return Err(PciError::Vectors {
                wanted: count,
                available,
            });
        }
        sim.enable_msix(count)?;
        Ok(Box::new(SimInterrupts {
            shared: self.shared.clone(),
            count,
        }))
    }

    fn reset(&self) -> Result<(), PciError> {
        Ok(self.sim().function_level_reset()?)
    }

    /// Simulates up to the next event, at most 16 cycles.
    ///
    /// # Panics
    /// If the RTL reports an error: like a failed assertion of Rust, it must end a test even
    /// inside a loop that only polls.
    fn poll(&self) {
        let mut sim = self.sim();
        if let Err(error) = sim.poll_wire() {
            log::warn!("the wire failed: {error}");
        }
        let result = sim.run(POLL_CYCLES);
        drop(sim);
        if let Err(error) = result {
            panic!("{error}");
        }
    }
}

struct Unmap {
    shared: Arc<Shared>,
    iova: u64,
    len: u64,
}

impl Drop for Unmap {
    fn drop(&mut self) {
        let result = self.shared.sim().root.memory.unmap(self.iova, self.len);
        if let Err(error) = result {
            log::error!("unmapping DMA memory: {error}");
        }
    }
}

struct SimBar {
    shared: Arc<Shared>,
    size: u64,
}

impl SimBar {
    fn read(&self, offset: u64, len: usize) -> Result<u64, PciError> {
        self.check(offset, len)?;
        Ok(self.shared.sim().bar_read(offset, len)?)
    }

    fn write(&self, offset: u64, len: usize, value: u64) -> Result<(), PciError> {
        self.check(offset, len)?;
        Ok(self.shared.sim().bar_write(offset, len, value)?)
    }

    fn check(&self, offset: u64, len: usize) -> Result<(), PciError> {
        let len = len as u64;
        if offset.checked_add(len).is_none_or(|end| end > self.size) {
            let what = "BAR 0";
            let size = self.size;
            return Err(PciError::OutOfRange {
                what,
                offset,
                len,
                size,
            });
        }
        if !offset.is_multiple_of(len) {
            return Err(PciError::Misaligned { offset, len });
        }
        Ok(())
    }
}

impl RegisterIo for SimBar {
    fn len(&self) -> u64 {
        self.size
    }

    fn read8(&self, offset: u64) -> Result<u8, PciError> {
        Ok(self.read(offset, 1)? as u8)
    }

    fn read16(&self, offset: u64) -> Result<u16, PciError> {
        Ok(self.read(offset, 2)? as u16)
    }

    fn read32(&self, offset: u64) -> Result<u32, PciError> {
        Ok(self.read(offset, 4)? as u32)
    }

    fn read64(&self, offset: u64) -> Result<u64, PciError> {
        self.read(offset, 8)
    }

    fn write8(&self, offset: u64, value: u8) -> Result<(), PciError> {
        self.write(offset, 1, value.into())
    }

    fn write16(&self, offset: u64, value: u16) -> Result<(), PciError> {
        self.write(offset, 2, value.into())
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), PciError> {
        self.write(offset, 4, value.into())
    }

    fn write64(&self, offset: u64, value: u64) -> Result<(), PciError> {
        self.write(offset, 8, value)
    }
}

struct SimInterrupts {
    shared: Arc<Shared>,
    count: u16,
}

impl Interrupts for SimInterrupts {
    fn count(&self) -> u16 {
        self.count
    }

    fn wait(&self, timeout: Duration) -> Result<Option<u16>, PciError> {
        let mut sim = self.shared.sim();
        if let Err(error) = sim.poll_wire() {
            log::warn!("the wire failed: {error}");
        }
        sim.run_until(cycles_of(timeout), |sim| sim.root.has_message())?;
        Ok(sim.take_vector())
    }
}

impl Drop for SimInterrupts {
    fn drop(&mut self) {
        let mut sim = self.shared.sim();
        // A simulation that failed has said so already.
        if sim.check().is_ok()
            && let Err(error) = sim.disable_msix()
        {
            log::error!("disabling MSI-X: {error}");
        }
        while sim.take_vector().is_some() {}
    }
}

/// Hands out I/O virtual addresses: below and above 4 GiB in turn, with gaps, so that a card that
/// runs off the end of a region faults, and both header formats are used.
struct AddressSpace {
    low: u64,
    high: u64,
    turn: bool,
    rng: Rng,
}

const LOW: std::ops::Range<u64> = 0x1000_0000..0xe000_0000;

impl AddressSpace {
    fn new(seed: u64) -> Self {
        Self {
            low: LOW.start,
            high: 0x5_0000_0000,
            turn: false,
            rng: Rng::new(seed).fork(3),
        }
    }

    fn allocate(&mut self, len: u64) -> u64 {
        self.turn = !self.turn;
        let gap = 4096 * (1 + self.rng.below(16));
        let used = len.saturating_add(gap);
        if self.turn && LOW.end - self.low > used {
            let iova = self.low;
            self.low += used;
            iova
        } else {
            let iova = self.high;
            self.high = self.high.saturating_add(used);
            iova
        }
    }
}
