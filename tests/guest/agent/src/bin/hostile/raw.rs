//! The card by its registers, for a driver that does what none should.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ferronic::pci::{DmaRegion, PciError, PciFunction, RegisterIo};
use ferronic::spec::Features;
use ferronic::spec::pci::{bar0, header};
use ferronic::spec::ring::RingLayout;
use ferronic::spec::transport::{NO_VECTOR, Status, common};

/// Descriptor flag: for the device to write.
pub const WRITE: u16 = 2;

/// Entries of each ring.
pub const SIZE: u16 = 64;

/// How long anything may take that must come.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A virtqueue, each part in memory of its own. A part that is taken away is unmapped.
pub struct Ring {
    /// Number of the queue.
    pub index: u16,
    /// Descriptor table.
    pub desc: Option<DmaRegion>,
    /// Available ring.
    pub avail: Option<DmaRegion>,
    /// Used ring.
    pub used: Option<DmaRegion>,
    addresses: [u64; 3],
    next: u16,
}

impl Ring {
    /// Memory for a queue.
    pub fn new(function: &Arc<dyn PciFunction>, index: u16) -> Result<Self, PciError> {
        let layout = RingLayout { size: SIZE };
        let desc = function.dma_alloc(layout.desc_len())?;
        let avail = function.dma_alloc(layout.avail_len())?;
        let used = function.dma_alloc(layout.used_len())?;
        Ok(Self {
            index,
            addresses: [desc.iova(), avail.iova(), used.iova()],
            desc: Some(desc),
            avail: Some(avail),
            used: Some(used),
            next: 0,
        })
    }

    /// Offers a buffer of one descriptor; parts that were taken away are left out.
    pub fn offer(&mut self, address: u64, len: u32, flags: u16) -> Result<(), PciError> {
        let slot = self.next % SIZE;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        if let Some(desc) = &self.desc {
            desc.memory().write(16 * usize::from(slot), &bytes)?;
        }
        self.next = self.next.wrapping_add(1);
        if let Some(avail) = &self.avail {
            let at = 4 + 2 * usize::from(slot);
            avail.memory().write(at, &slot.to_le_bytes())?;
        }
        Ok(())
    }

    /// Lets the card see what was offered.
    pub fn publish(&self) -> Result<(), PciError> {
        // Earlier writes must be visible first.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        match &self.avail {
            Some(avail) => avail.memory().write(2, &self.next.to_le_bytes()),
            None => Ok(()),
        }
    }

    /// The used index in memory; `None` if the used ring was taken away.
    pub fn used_index(&self) -> Result<Option<u16>, PciError> {
        let Some(used) = &self.used else {
            return Ok(None);
        };
        let mut bytes = [0; 2];
        used.memory().read(2, &mut bytes)?;
        Ok(Some(u16::from_le_bytes(bytes)))
    }
}

/// The card.
pub struct Raw {
    /// The function.
    pub function: Arc<dyn PciFunction>,
    bar: Arc<dyn RegisterIo>,
}

impl Raw {
    /// Takes the card over and lets it access memory.
    pub fn new(function: Arc<dyn PciFunction>) -> Result<Self, PciError> {
        let bar = function.bar(0)?;
        let raw = Self { function, bar };
        raw.bus_master()?;
        Ok(raw)
    }

    fn bus_master(&self) -> Result<(), PciError> {
        let command = header::COMMAND_MEMORY | header::COMMAND_BUS_MASTER;
        self.function
            .config_write(header::COMMAND, &command.to_le_bytes())
    }

    /// Function level reset.
    pub fn function_reset(&self) -> Result<(), PciError> {
        self.function.reset()?;
        self.bus_master()
    }

    /// Device status.
    pub fn status(&self) -> Result<Status, PciError> {
        let bits = self.bar.read8(bar0::COMMON + common::DEVICE_STATUS)?;
        Ok(Status::from_bits_retain(bits))
    }

    fn set_status(&self, status: Status) -> Result<(), PciError> {
        self.bar
            .write8(bar0::COMMON + common::DEVICE_STATUS, status.bits())
    }

    /// Reset by status; false if it does not end.
    pub fn reset(&self) -> Result<bool, PciError> {
        self.set_status(Status::empty())?;
        until(|| Ok(self.status()?.is_empty()))
    }

    /// Waits for DEVICE_NEEDS_RESET.
    pub fn breaks(&self) -> Result<bool, PciError> {
        until(|| Ok(self.status()?.contains(Status::NEEDS_RESET)))
    }

    /// Reset, features, and rings 0 (receive) and 1 (transmit), up to DRIVER_OK.
    pub fn start(&self) -> Result<[Ring; 2], PciError> {
        if !self.reset()? {
            return Err(PciError::Unsupported("the reset does not end".to_owned()));
        }
        let mut status = Status::ACKNOWLEDGE | Status::DRIVER;
        self.set_status(status)?;
        let features = Features::VERSION_1 | Features::ACCESS_PLATFORM | Features::MRG_RXBUF;
        for half in 0..2_u32 {
            self.bar.write32(common::DRIVER_FEATURE_SELECT, half)?;
            let bits = (features.bits() >> (32 * half)) as u32;
            self.bar.write32(common::DRIVER_FEATURE, bits)?;
        }
        status |= Status::FEATURES_OK;
        self.set_status(status)?;
        if !self.status()?.contains(Status::FEATURES_OK) {
            return Err(PciError::Unsupported(
                "the card refuses the features".to_owned(),
            ));
        }
        let rings = [Ring::new(&self.function, 0)?, Ring::new(&self.function, 1)?];
        for ring in &rings {
            self.place(ring.index, ring.addresses)?;
            self.bar.write16(common::QUEUE_SIZE, SIZE)?;
            self.bar.write16(common::QUEUE_MSIX_VECTOR, NO_VECTOR)?;
            self.bar.write16(common::QUEUE_ENABLE, 1)?;
        }
        self.set_status(status | Status::DRIVER_OK)?;
        Ok(rings)
    }

    /// Writes the addresses of a queue.
    pub fn place(&self, queue: u16, addresses: [u64; 3]) -> Result<(), PciError> {
        self.bar.write16(common::QUEUE_SELECT, queue)?;
        for (register, address) in [
            common::QUEUE_DESC,
            common::QUEUE_DRIVER,
            common::QUEUE_DEVICE,
        ]
        .into_iter()
        .zip(addresses)
        {
            self.bar.write32(register, address as u32)?;
            self.bar.write32(register + 4, (address >> 32) as u32)?;
        }
        Ok(())
    }

    /// Rings a doorbell.
    pub fn kick(&self, queue: u16) -> Result<(), PciError> {
        let offset = bar0::NOTIFY + u64::from(bar0::NOTIFY_MULTIPLIER) * u64::from(queue);
        self.bar.write16(offset, queue)
    }

    /// Publishes and rings.
    pub fn send(&self, ring: &Ring) -> Result<(), PciError> {
        ring.publish()?;
        self.kick(ring.index)
    }
}

/// Looks again and again; false if it never came true.
pub fn until(mut look: impl FnMut() -> Result<bool, PciError>) -> Result<bool, PciError> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if look()? {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(false)
}
