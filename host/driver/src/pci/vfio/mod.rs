//! The kernel's VFIO: the card is a real one, or one that a virtual machine shows to its guest.
//!
//! The kernel resets the function (FLR) when it is opened and when the last descriptor of it is
//! closed, however the process ends; it keeps it in D0 meanwhile, and lets it reach only memory
//! that was mapped here. A card that is pulled takes its mapped registers along: the next access to
//! them is a SIGBUS.

mod bar;
mod barrier;
mod check;
mod error;
mod ioctl;
mod iova;
mod irq;

use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ferronic_spec::pci::header;
use rustix::io::Errno;
use vfio_bindings::bindings::vfio::{
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_REGION_INFO_FLAG_MMAP,
};
use vfio_ioctls::{VfioContainer, VfioDevice, VfioRegionInfoCap};

pub use error::VfioError;

use super::caps::Capabilities;
use super::sysfs::Sysfs;
use super::{
    DMA_PAGE, DmaMemory, DmaRegion, Interrupts, PciAddress, PciError, PciFunction, RegisterIo,
};
use bar::{Area, Bar, RegionInfo};
use iova::IovaAllocator;
use irq::VfioInterrupts;

/// Tries of a reset while the kernel has the function locked.
const RESET_TRIES: u32 = 50;
/// Between two of them.
const RESET_PAUSE: Duration = Duration::from_millis(20);

/// A PCI function that vfio-pci has.
pub struct VfioFunction {
    device: Arc<Opened>,
    vectors: u16,
    config: RegionInfo,
    /// Extended configuration space as sysfs shows it, if VFIO hides the card's own capability.
    extended: Option<Vec<u8>>,
}

/// What must live until the last mapping, register block and interrupt is gone.
struct Opened {
    // Dropped by hand, see `drop`.
    card: ManuallyDrop<VfioDevice>,
    container: Arc<VfioContainer>,
    addresses: Mutex<IovaAllocator>,
    address: PciAddress,
}

impl Opened {
    fn card(&self) -> &VfioDevice {
        &self.card
    }

    fn address(&self) -> PciAddress {
        self.address
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the device is open as long as `self` lives.
        unsafe { BorrowedFd::borrow_raw(self.card.as_raw_fd()) }
    }

    fn addresses(&self) -> std::sync::MutexGuard<'_, IovaAllocator> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRawFd for Opened {
    fn as_raw_fd(&self) -> RawFd {
        self.card.as_raw_fd()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: nothing uses the value after this.
        let card = unsafe { ManuallyDrop::take(&mut self.card) };
        // Its drop panics if the function is gone from sysfs: a card that was pulled.
        if catch_unwind(AssertUnwindSafe(|| drop(card))).is_err() {
            log::warn!("{} went away while it was in use", self.address);
        }
    }
}

impl VfioFunction {
    /// Opens a card of this machine.
    pub fn open(address: PciAddress) -> Result<Self, PciError> {
        let sysfs = Sysfs::default();
        let group = check::ready(&sysfs, address)?;
        let container =
            VfioContainer::new(None).map_err(|e| check::explain(&sysfs, address, group, e))?;
        let container = Arc::new(container);
        let card = VfioDevice::new(&sysfs.folder(address), container.clone(), false)
            .map_err(|e| check::explain(&sysfs, address, group, e))?;
        let addresses = addresses(&container)?;
        let config = region(&card, VFIO_PCI_CONFIG_REGION_INDEX as u8);
        let vectors = card
            .get_irq_info(VFIO_PCI_MSIX_IRQ_INDEX)
            .map_or(0, |irq| u16::try_from(irq.count).unwrap_or(u16::MAX));
        let device = Arc::new(Opened {
            card: ManuallyDrop::new(card),
            container,
            addresses: Mutex::new(addresses),
            address,
        });
        let mut this = Self {
            device,
            vectors,
            config,
            extended: None,
        };
        let mut vendor = [0; 2];
        this.config_read(0, &mut vendor)?;
        if vendor == [0xff; 2] {
            return Err(VfioError::NoAnswer { address }.into());
        }
        this.extended = this.hidden_capabilities(&sysfs)?;
        Ok(this)
    }

    /// VFIO hides vendor-specific extended capabilities in kernels before 6.4. If ours is not
    /// there, root finds it in sysfs.
    fn hidden_capabilities(&self, sysfs: &Sysfs) -> Result<Option<Vec<u8>>, PciError> {
        if self.config.size < header::EXPRESS_LEN as u64 {
            return Ok(None);
        }
        let mut shown = vec![0; header::EXPRESS_LEN];
        self.config_read(0, &mut shown)?;
        let has_window =
            |config: &[u8]| Capabilities::parse(config).is_ok_and(|caps| caps.window.is_some());
        if has_window(&shown) {
            return Ok(None);
        }
        let config = match sysfs.config(self.device.address) {
            Ok(config) => config,
            Err(e) => {
                log::debug!("{e}");
                return Ok(None);
            }
        };
        if config.len() < header::EXPRESS_LEN {
            log::info!(
                "{}: VFIO shows no capability of the card's own; kernels before 6.4 hide it from \
                 all but root",
                self.device.address
            );
            return Ok(None);
        }
        Ok(has_window(&config).then_some(config))
    }
}

fn region(card: &VfioDevice, index: u8) -> RegionInfo {
    RegionInfo {
        index,
        offset: card.get_region_offset(index.into()),
        size: card.get_region_size(index.into()),
    }
}

/// The allocator of what the container's IOMMU can translate.
fn addresses(container: &VfioContainer) -> Result<IovaAllocator, PciError> {
    let info = ioctl::iommu_info(container)
        .map_err(|e| PciError::io("asking the IOMMU for its valid addresses", e))?;
    // Memory comes in pages of the host at least, whatever the IOMMU can do.
    let smallest = match info.page_sizes {
        0 => DMA_PAGE as u64,
        sizes => 1 << sizes.trailing_zeros(),
    };
    let page = smallest.max(rustix::param::page_size() as u64);
    log::debug!("IOMMU pages of {page} bytes, ranges {:x?}", info.ranges);
    Ok(if info.ranges.is_empty() {
        IovaAllocator::new(&iova::GUESS, page)
    } else {
        IovaAllocator::new(&info.ranges, page)
    })
}

/// What of a BAR may be mapped.
fn areas(card: &VfioDevice, region: RegionInfo) -> Vec<Area> {
    let index = region.index.into();
    if card.get_region_flags(index) & VFIO_REGION_INFO_FLAG_MMAP == 0 {
        return Vec::new();
    }
    let sparse = card
        .get_region_caps(index)
        .into_iter()
        .find_map(|cap| match cap {
            VfioRegionInfoCap::SparseMmap(sparse) => Some(sparse),
            _ => None,
        });
    match sparse {
        Some(sparse) => sparse
            .areas
            .iter()
            .map(|area| (area.offset, area.size))
            .collect(),
        None => vec![(0, region.size)],
    }
}

impl PciFunction for VfioFunction {
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError> {
        let from = u64::from(offset);
        let end = from + buf.len() as u64;
        if end > self.config.size {
            return Err(PciError::OutOfRange {
                what: "configuration space",
                offset: from,
                len: buf.len() as u64,
                size: self.config.size,
            });
        }
        bar::read_exact(self.device.fd(), self.config, from, buf)?;
        if let Some(extended) = &self.extended {
            overlay(
                buf,
                usize::from(offset),
                extended,
                header::CONVENTIONAL_LEN..header::EXPRESS_LEN,
            );
        }
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        bar::write_all(self.device.fd(), self.config, offset.into(), data)
    }

    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError> {
        if index > 5 {
            return Err(PciError::NoSuchBar(index));
        }
        let region = region(self.device.card(), index);
        if region.size == 0 {
            return Err(PciError::NoSuchBar(index));
        }
        let areas = areas(self.device.card(), region);
        Ok(Arc::new(Bar::new(self.device.clone(), region, &areas)))
    }

    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError> {
        let page = self.device.addresses().page();
        // More than the address space is refused by the memory itself.
        let len = len.max(1).checked_next_multiple_of(page as usize);
        let memory = DmaMemory::new(len.unwrap_or(usize::MAX))?;
        let len = memory.len() as u64;
        let iova = {
            let mut addresses = self.device.addresses();
            addresses
                .allocate(len)
                .ok_or_else(|| VfioError::NoAddress {
                    len,
                    ranges: addresses.describe(),
                })?
        };
        // SAFETY: the memory is a mapping that is only ever accessed by copies and atomics, and it
        // outlives the device's access: `DmaRegion` drops the `Mapping` first.
        let mapped = unsafe {
            self.device
                .container
                .vfio_dma_map(iova, memory.len(), memory.as_ptr())
        };
        if let Err(source) = mapped {
            self.device.addresses().release(iova, len);
            return Err(check::explain_map(iova, len, source).into());
        }
        let mapping = Mapping {
            device: self.device.clone(),
            memory: Arc::clone(&memory),
            iova,
        };
        Ok(DmaRegion::new(memory, iova, Some(Box::new(mapping))))
    }

    fn enable_interrupts(&self, count: u16) -> Result<Box<dyn Interrupts>, PciError> {
        if count == 0 || count > self.vectors {
            return Err(PciError::Vectors {
                wanted: count,
                available: self.vectors,
            });
        }
        Ok(Box::new(VfioInterrupts::enable(
            self.device.clone(),
            count,
        )?))
    }

    fn reset(&self) -> Result<(), PciError> {
        // The kernel restores what it finds: bus mastering is to be off afterwards.
        let mut command = [0; 2];
        self.config_read(header::COMMAND, &mut command)?;
        let value = u16::from_le_bytes(command) & !header::COMMAND_BUS_MASTER;
        self.config_write(header::COMMAND, &value.to_le_bytes())?;
        for _ in 0..RESET_TRIES {
            match ioctl::reset(&*self.device) {
                Err(e) if busy(&e) => thread::sleep(RESET_PAUSE),
                result => {
                    let address = self.device.address;
                    return Ok(result.map_err(|source| VfioError::Reset { address, source })?);
                }
            }
        }
        Err(PciError::Timeout {
            what: "a function level reset".into(),
            after: RESET_TRIES * RESET_PAUSE,
        })
    }
}

/// True while something else in the kernel holds the function.
fn busy(error: &io::Error) -> bool {
    [Errno::AGAIN, Errno::INTR].contains(&Errno::from_io_error(error).unwrap_or(Errno::INVAL))
}

/// Puts the part of `from` that is in `range` over `buf`, which begins at `offset`.
fn overlay(buf: &mut [u8], offset: usize, from: &[u8], range: Range<usize>) {
    let start = offset.max(range.start);
    let end = (offset + buf.len()).min(range.end).min(from.len());
    if start < end {
        buf[start - offset..end - offset].copy_from_slice(&from[start..end]);
    }
}

/// Memory that the device can reach.
struct Mapping {
    device: Arc<Opened>,
    memory: Arc<DmaMemory>,
    iova: u64,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let unmapped = self
            .device
            .container
            .vfio_dma_unmap(self.iova, self.memory.len());
        match unmapped {
            Ok(()) => self
                .device
                .addresses()
                .release(self.iova, self.memory.len() as u64),
            Err(e) => {
                // The device may still reach it: it is never freed, and its address never reused.
                log::error!("unmapping DMA memory at {:#x}: {e}", self.iova);
                std::mem::forget(Arc::clone(&self.memory));
            }
        }
    }
}

#[cfg(test)]
mod tests;
