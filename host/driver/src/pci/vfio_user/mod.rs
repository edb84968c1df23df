//! The vfio-user backend: the card is a server on a unix socket.
//!
//! A small client of our own: it checks error replies, bounds every wait, sends file descriptors
//! in blocks that the server takes, and posts register writes without waiting for a reply.

mod client;
mod irq;
mod wire;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zerocopy::IntoBytes;

use super::{DMA_PAGE, DmaMemory, DmaRegion, Interrupts, PciError, PciFunction, RegisterIo};
use client::{Client, ServerLimits};
use irq::EventfdInterrupts;
use wire::{DeviceInfo, DmaMap, DmaUnmap, IrqInfo, RegionAccess, RegionInfo, command, vfio};

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// First address given to DMA memory: above 4 GiB, as a card in a real machine would see.
const IOVA_BASE: u64 = 0x1_0000_0000;

/// A PCI function behind a vfio-user server.
pub struct VfioUserFunction {
    client: Arc<Client>,
    limits: ServerLimits,
    /// Sizes of the regions, by number.
    regions: Vec<u64>,
    vectors: u16,
    next_iova: AtomicU64,
}

impl VfioUserFunction {
    /// Connects to the server that listens on `path`.
    pub fn connect(path: &Path) -> Result<Self, PciError> {
        let stream = UnixStream::connect(path).map_err(|e| {
            PciError::io(
                format!(
                    "connecting to {} (is the simulator running? \
                     `ferronic-sim serve --socket {0}` starts one)",
                    path.display()
                ),
                e,
            )
        })?;
        Self::from_stream(stream, TIMEOUT)
    }

    /// Talks to a server over a connected socket.
    pub fn from_stream(stream: UnixStream, timeout: Duration) -> Result<Self, PciError> {
        let client = Arc::new(Client::new(stream, timeout)?);
        let limits = client.negotiate()?;
        let info = DeviceInfo {
            argsz: (size_of::<DeviceInfo>() as u32).into(),
            ..DeviceInfo::default()
        };
        let what = "asking what device it is";
        let (info, _): (DeviceInfo, _) =
            client.request(what, command::DEVICE_GET_INFO, &[info.as_bytes()], &[])?;
        let protocol = |detail: &str| PciError::Protocol {
            what: what.into(),
            detail: detail.into(),
        };
        if info.flags.get() & vfio::DEVICE_FLAGS_PCI == 0 {
            return Err(protocol("it is not a PCI device"));
        }
        if info.regions.get() <= vfio::CONFIG_REGION {
            return Err(protocol("it has no configuration space"));
        }
        let regions = (0..=vfio::CONFIG_REGION)
            .map(|index| region_size(&client, index))
            .collect::<Result<Vec<_>, _>>()?;
        let vectors = match info.irqs.get() > vfio::MSIX_IRQ {
            true => msix_vectors(&client)?,
            false => 0,
        };
        let next_iova = AtomicU64::new(IOVA_BASE);
        Ok(Self {
            client,
            limits,
            regions,
            vectors,
            next_iova,
        })
    }

    fn region(&self, index: u32) -> Region {
        let size = self.regions.get(index as usize).copied().unwrap_or(0);
        Region {
            client: Arc::clone(&self.client),
            index,
            size,
        }
    }
}

fn region_size(client: &Client, index: u32) -> Result<u64, PciError> {
    let info = RegionInfo {
        argsz: (size_of::<RegionInfo>() as u32).into(),
        index: index.into(),
        ..RegionInfo::default()
    };
    let (info, _): (RegionInfo, _) = client.request(
        &format!("asking for region {index}"),
        command::DEVICE_GET_REGION_INFO,
        &[info.as_bytes()],
        &[],
    )?;
    Ok(info.size.get())
}

fn msix_vectors(client: &Client) -> Result<u16, PciError> {
    let info = IrqInfo {
        argsz: (size_of::<IrqInfo>() as u32).into(),
        index: vfio::MSIX_IRQ.into(),
        ..IrqInfo::default()
    };
    let (info, _): (IrqInfo, _) = client.request(
        "asking for its MSI-X vectors",
        command::DEVICE_GET_IRQ_INFO,
        &[info.as_bytes()],
        &[],
    )?;
    // Servers that do not fill in the flags still take eventfds.
    if info.flags.get() & vfio::IRQ_INFO_EVENTFD == 0 {
        log::debug!("vfio-user: the server does not say that MSI-X takes eventfds");
    }
    Ok(u16::try_from(info.count.get()).unwrap_or(u16::MAX))
}

impl PciFunction for VfioUserFunction {
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError> {
        let region = self.region(vfio::CONFIG_REGION);
        let mut at = u64::from(offset);
        for part in buf.chunks_mut(self.limits.max_transfer) {
            region.read(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.region(vfio::CONFIG_REGION).write(offset.into(), data)
    }

    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError> {
        let region = self.region(index.into());
        if index > 5 || region.size == 0 {
            return Err(PciError::NoSuchBar(index));
        }
        Ok(Arc::new(region))
    }

    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError> {
        let memory = DmaMemory::new(len)?;
        let size = memory.len() as u64;
        // A page is left out between regions: a device that runs over an end meets nothing.
        let iova = self
            .next_iova
            .fetch_add(size + DMA_PAGE as u64, Ordering::Relaxed);
        let map = DmaMap {
            argsz: (size_of::<DmaMap>() as u32).into(),
            flags: vfio::DMA_READ_WRITE.into(),
            offset: 0.into(),
            address: iova.into(),
            size: size.into(),
        };
        self.client.request::<()>(
            &format!("mapping {size} bytes of DMA memory"),
            command::DMA_MAP,
            &[map.as_bytes()],
            &[memory.file().as_fd()],
        )?;
        let mapping = Mapping {
            client: Arc::clone(&self.client),
            iova,
            size,
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
        let client = Arc::clone(&self.client);
        Ok(Box::new(EventfdInterrupts::enable(
            client,
            count,
            self.limits.max_fds,
        )?))
    }

    fn reset(&self) -> Result<(), PciError> {
        self.client
            .request::<()>("resetting the device", command::DEVICE_RESET, &[], &[])
            .map(|_| ())
    }
}

/// DMA memory that the server has mapped.
struct Mapping {
    client: Arc<Client>,
    iova: u64,
    size: u64,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let unmap = DmaUnmap {
            argsz: (size_of::<DmaUnmap>() as u32).into(),
            flags: 0.into(),
            address: self.iova.into(),
            size: self.size.into(),
        };
        let unmapped = self.client.request::<()>(
            "unmapping DMA memory",
            command::DMA_UNMAP,
            &[unmap.as_bytes()],
            &[],
        );
        if let Err(e) = unmapped {
            log::debug!("{e}");
        }
    }
}

/// A region of the device: a BAR, or configuration space.
struct Region {
    client: Arc<Client>,
    index: u32,
    size: u64,
}

impl Region {
    fn access(&self, offset: u64, len: usize) -> Result<RegionAccess, PciError> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.size => Ok(RegionAccess {
                offset: offset.into(),
                region: self.index.into(),
                count: (len as u32).into(),
            }),
            _ => Err(PciError::OutOfRange {
                what: "a region",
                offset,
                len: len as u64,
                size: self.size,
            }),
        }
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), PciError> {
        let access = self.access(offset, buf.len())?;
        let what = format!(
            "reading {} bytes at {offset:#x} of region {}",
            buf.len(),
            self.index
        );
        let (echo, data): (RegionAccess, _) =
            self.client
                .request(&what, command::REGION_READ, &[access.as_bytes()], &[])?;
        if data.len() != buf.len() || echo.count != access.count {
            let detail = format!("its reply has {} bytes", data.len());
            return Err(PciError::Protocol { what, detail });
        }
        buf.copy_from_slice(&data);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), PciError> {
        let access = self.access(offset, data.len())?;
        let what = format!(
            "writing {} bytes at {offset:#x} of region {}",
            data.len(),
            self.index
        );
        self.client.request::<RegionAccess>(
            &what,
            command::REGION_WRITE,
            &[access.as_bytes(), data],
            &[],
        )?;
        Ok(())
    }

    fn read_register<const N: usize>(&self, offset: u64) -> Result<[u8; N], PciError> {
        aligned(offset, N)?;
        let mut bytes = [0; N];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Posted: the socket keeps the order, so that a later read sees the write's effect.
    fn write_register(&self, offset: u64, data: &[u8]) -> Result<(), PciError> {
        aligned(offset, data.len())?;
        let access = self.access(offset, data.len())?;
        self.client.post(
            "a register write",
            command::REGION_WRITE,
            &[access.as_bytes(), data],
        )
    }
}

fn aligned(offset: u64, len: usize) -> Result<(), PciError> {
    if offset.is_multiple_of(len as u64) {
        Ok(())
    } else {
        Err(PciError::Misaligned {
            offset,
            len: len as u64,
        })
    }
}

impl RegisterIo for Region {
    fn len(&self) -> u64 {
        self.size
    }
    fn read8(&self, offset: u64) -> Result<u8, PciError> {
        self.read_register(offset).map(u8::from_le_bytes)
    }
    fn read16(&self, offset: u64) -> Result<u16, PciError> {
        self.read_register(offset).map(u16::from_le_bytes)
    }
    fn read32(&self, offset: u64) -> Result<u32, PciError> {
        self.read_register(offset).map(u32::from_le_bytes)
    }
    fn read64(&self, offset: u64) -> Result<u64, PciError> {
        self.read_register(offset).map(u64::from_le_bytes)
    }
    fn write8(&self, offset: u64, value: u8) -> Result<(), PciError> {
        self.write_register(offset, &value.to_le_bytes())
    }
    fn write16(&self, offset: u64, value: u16) -> Result<(), PciError> {
        self.write_register(offset, &value.to_le_bytes())
    }
    fn write32(&self, offset: u64, value: u32) -> Result<(), PciError> {
        self.write_register(offset, &value.to_le_bytes())
    }
    fn write64(&self, offset: u64, value: u64) -> Result<(), PciError> {
        self.write_register(offset, &value.to_le_bytes())
    }
}
