//! A card with the settings of steering, filters and coalescing in its window, as
//! docs/registers.md has them. What it holds is looked at by tests; no frame is steered by it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ferronic::pci::{DmaRegion, Interrupts, PciError, PciFunction, RegisterIo};
use ferronic::spec::pci::bar0;
use ferronic::spec::window as w;

/// What FEATURES says of it: steering, filters, coalescing.
pub const ALL: u32 = 7 << 5;

/// The registers, and what was done to them.
pub struct Settings {
    pub features: u32,
    pub values: BTreeMap<u64, u32>,
    /// Writes in order, offset and value.
    pub writes: Vec<(u64, u32)>,
    /// A register that ignores writes.
    pub stuck: Option<u64>,
    pub clock_hz: u32,
}

impl Settings {
    pub fn get(&self, offset: u64) -> u32 {
        self.values.get(&offset).copied().unwrap_or(0)
    }

    fn read(&self, offset: u64, below: u32) -> u32 {
        match offset {
            w::FEATURES => below | self.features,
            w::CLOCK_HZ => self.clock_hz,
            // Write-only.
            w::RSS_KEY..w::TX_EMPTY => 0,
            _ => self.get(offset),
        }
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.writes.push((offset, value));
        let bit = match offset {
            ..w::RX_FILTER => 5,
            w::RX_FILTER..w::RSS_KEY => 6,
            w::RSS_KEY..w::RX_ADDRESS_LO => 5,
            w::RX_ADDRESS_LO..w::TX_EMPTY => 6,
            _ => 7,
        };
        if self.stuck == Some(offset) || self.features >> bit & 1 == 0 {
            return;
        }
        let mask = match offset {
            w::RSS_TYPES | w::RSS_UNCLASSIFIED => 0x3f,
            w::RSS_TABLE_BITS => 7,
            w::RSS_APPLY => 3,
            w::HASH_REPORT => 1,
            w::RX_FOLLOW => 0x3f01,
            w::RX_FILTER => 0x13f,
            w::COAL_RX_PACKETS | w::COAL_TX_PACKETS => 0xffff,
            w::COAL_RX_TIME | w::COAL_TX_TIME => 0x7f_ffff,
            w::COAL_PACKETS..w::COAL_RX_PACKETS if offset.is_multiple_of(8) => 0xffff,
            w::COAL_PACKETS..w::COAL_RX_PACKETS => 0x7f_ffff,
            w::RSS_CAPS | w::RX_FILTER_CAPS => 0,
            _ => u32::MAX,
        };
        self.values.insert(offset, value & mask);
        // Those of all queues of a kind.
        let (first, register) = match offset {
            w::COAL_RX_PACKETS => (0, w::COAL_PACKETS),
            w::COAL_RX_TIME => (0, w::COAL_TIME),
            w::COAL_TX_PACKETS => (1, w::COAL_PACKETS),
            w::COAL_TX_TIME => (1, w::COAL_TIME),
            _ => return,
        };
        for queue in (first..128).step_by(2) {
            self.values.insert(register + 8 * queue, value & mask);
        }
    }
}

/// A card with them.
pub struct Steered {
    below: Arc<dyn PciFunction>,
    settings: Arc<Mutex<Settings>>,
}

impl Steered {
    /// With these bits of FEATURES beside those of the card's.
    pub fn over(
        below: Arc<dyn PciFunction>,
        features: u32,
    ) -> (Arc<dyn PciFunction>, Arc<Mutex<Settings>>) {
        let values = [
            (w::RSS_CAPS, 0x3f28_0080),
            (w::RX_FOLLOW, 0x1c01),
            (w::RX_FILTER, 1),
            (w::RX_FILTER_CAPS, 16),
        ];
        let settings = Arc::new(Mutex::new(Settings {
            features,
            values: values.into(),
            writes: Vec::new(),
            stuck: None,
            clock_hz: 125_000_000,
        }));
        let this = Self {
            below,
            settings: Arc::clone(&settings),
        };
        (Arc::new(this), settings)
    }
}

impl PciFunction for Steered {
    fn config_read(&self, offset: u16, buf: &mut [u8]) -> Result<(), PciError> {
        self.below.config_read(offset, buf)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.below.config_write(offset, data)
    }
    fn bar(&self, index: u8) -> Result<Arc<dyn RegisterIo>, PciError> {
        Ok(Arc::new(Bar {
            below: self.below.bar(index)?,
            settings: Arc::clone(&self.settings),
        }))
    }
    fn dma_alloc(&self, len: usize) -> Result<DmaRegion, PciError> {
        self.below.dma_alloc(len)
    }
    fn enable_interrupts(&self, count: u16) -> Result<Box<dyn Interrupts>, PciError> {
        self.below.enable_interrupts(count)
    }
    fn reset(&self) -> Result<(), PciError> {
        self.below.reset()
    }
    fn poll(&self) {
        self.below.poll();
    }
}

struct Bar {
    below: Arc<dyn RegisterIo>,
    settings: Arc<Mutex<Settings>>,
}

/// The offset in the window if the register is one of ours.
fn own(offset: u64) -> Option<u64> {
    let offset = offset.checked_sub(bar0::WINDOW)?;
    match offset {
        w::FEATURES | w::CLOCK_HZ => Some(offset),
        w::RSS_CAPS..w::TX_EMPTY | w::COAL_PACKETS.. => Some(offset),
        _ => None,
    }
}

impl RegisterIo for Bar {
    fn len(&self) -> u64 {
        self.below.len()
    }
    fn read8(&self, offset: u64) -> Result<u8, PciError> {
        self.below.read8(offset)
    }
    fn read16(&self, offset: u64) -> Result<u16, PciError> {
        self.below.read16(offset)
    }
    fn read32(&self, offset: u64) -> Result<u32, PciError> {
        let below = self.below.read32(offset)?;
        let settings = self.settings.lock().unwrap();
        Ok(own(offset).map_or(below, |own| settings.read(own, below)))
    }
    fn read64(&self, offset: u64) -> Result<u64, PciError> {
        self.below.read64(offset)
    }
    fn write8(&self, offset: u64, value: u8) -> Result<(), PciError> {
        self.below.write8(offset, value)
    }
    fn write16(&self, offset: u64, value: u16) -> Result<(), PciError> {
        self.below.write16(offset, value)
    }
    fn write32(&self, offset: u64, value: u32) -> Result<(), PciError> {
        match own(offset) {
            Some(own) => self.settings.lock().unwrap().write(own, value),
            None => self.below.write32(offset, value)?,
        }
        Ok(())
    }
    fn write64(&self, offset: u64, value: u64) -> Result<(), PciError> {
        self.below.write64(offset, value)
    }
}
