//! The card's own register window: identification, counters, pairs in use.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferronic_spec::window as w;

use crate::completion::{TxEmpty, TxInterrupts};
use crate::error::Error;
use crate::filter::{FilterOptions, Rows};
use crate::lro::{Lro, LroCounters};
use crate::pci::PciFunction;
use crate::pci::caps::Place;
use crate::rss::RssOptions;
use crate::virtio::Transport;
use crate::virtio::transport::Registers;

/// Major version of the window that this driver knows.
const MAJOR: u32 = 0;

/// Counters of one virtqueue, taken at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Frames received into or sent from the queue.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time base at the last frame; 0 if there was none.
    pub last_stamp: u64,
    /// Frames dropped.
    pub drops: u32,
    /// Interrupts asked for.
    pub interrupts: u32,
}

/// Counters of the card, all of the same moment as its last queue's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardStats {
    /// Time base, in cycles of [`CardStats::clock_hz`].
    pub time: u64,
    /// Frequency of the time base.
    pub clock_hz: u32,
    /// A virtqueue each, in order.
    pub queues: Vec<QueueCounters>,
    /// Counters of the whole card, by name.
    pub device: Vec<(&'static str, u32)>,
    /// Counters of merging, if the card can.
    pub lro: Option<LroCounters>,
    /// Why it interrupted for transmit queues beside virtio's own means, a pair each; none if the card
    /// has no ring-empty interrupt.
    pub tx_interrupts: Vec<TxInterrupts>,
}

/// The counters of the whole card.
const DEVICE_COUNTERS: [(&str, u64); 13] = [
    ("rx_short", w::RX_SHORT),
    ("rx_long", w::RX_LONG),
    ("rx_abort", w::RX_ABORT),
    ("rx_no_buffer", w::RX_NO_BUFFER),
    ("rx_fifo_full", w::RX_FIFO_FULL),
    ("rx_filtered", w::RX_FILTERED),
    ("tx_bad_frame", w::TX_BAD_FRAME),
    ("pcie_unexpected_cpl", w::PCIE_UNEXPECTED_CPL),
    ("pcie_error_cpl", w::PCIE_ERROR_CPL),
    ("pcie_poisoned", w::PCIE_POISONED),
    ("pcie_timeout", w::PCIE_TIMEOUT),
    ("pcie_unsupported_req", w::PCIE_UNSUPPORTED_REQ),
    ("queue_errors", w::QUEUE_ERRORS),
];

/// The window of a card.
pub struct Window {
    registers: Registers,
    pairs: u16,
    data_bytes: u16,
    version: (u16, u16),
    features: u32,
    kept: Mutex<Kept>,
}

/// Settings whose registers cannot be read.
#[derive(Default)]
pub(crate) struct Kept {
    pub rss: Option<RssOptions>,
    pub filter: FilterOptions,
    pub rows: Rows,
}

impl Window {
    /// The window of an opened function, without touching anything else of it: for looking on.
    pub fn attach(transport: &Transport) -> Result<Self, Error> {
        match transport.capabilities().window {
            Some((place, _)) => Self::open(&**transport.function(), place),
            None => Err(Error::Window(
                "this device has none: is it a Ferronic card?".into(),
            )),
        }
    }

    pub(crate) fn open(function: &dyn PciFunction, place: Place) -> Result<Self, Error> {
        let registers = Registers::new(function, "the card's window", place, w::QUEUE_ERRORS + 4)?;
        let uuid = [w::UUID0, w::UUID1, w::UUID2, w::UUID3];
        for (offset, word) in uuid.into_iter().zip(ferronic_spec::pci::dvsec::CARD_UUID) {
            let found = registers.read32(offset)?;
            if found != word {
                return Err(Error::Window(format!(
                    "UUID word at {offset:#x} is {found:#010x}, not {word:#010x}: not a Ferronic \
                     window"
                )));
            }
        }
        let version = registers.read32(w::VERSION)?;
        let (major, minor) = (w::VERSION_MAJOR.get(version), w::VERSION_MINOR.get(version));
        if major != MAJOR {
            return Err(Error::Window(format!(
                "version {major}.{minor}, this driver knows {MAJOR}.x; use a driver of the card's \
                 release"
            )));
        }
        let caps = registers.read32(w::CAPS)?;
        Ok(Self {
            pairs: w::CAPS_QUEUE_PAIRS.get(caps) as u16,
            data_bytes: w::CAPS_DATA_BYTES.get(caps) as u16,
            version: (major as u16, minor as u16),
            features: registers.read32(w::FEATURES)?,
            registers,
            kept: Mutex::default(),
        })
    }

    /// Queue pairs that the card was built with.
    pub fn pairs(&self) -> u16 {
        self.pairs
    }

    /// Width of the data path in bytes.
    pub fn data_bytes(&self) -> u16 {
        self.data_bytes
    }

    /// Version of the window, major and minor.
    pub fn version(&self) -> (u16, u16) {
        self.version
    }

    pub(crate) fn registers(&self) -> &Registers {
        &self.registers
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        // What it guards is whole after each statement.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the card steers received frames by receive-side scaling ([`crate::rss`]) and by the
    /// queue that transmits ([`crate::follow`]).
    pub fn has_steering(&self) -> bool {
        w::FEATURES_STEERING.get(self.features) == 1
    }

    /// Whether the card filters received frames ([`crate::filter`]).
    pub fn has_filters(&self) -> bool {
        w::FEATURES_FILTERS.get(self.features) == 1
    }

    /// Whether the card coalesces notifications ([`crate::coalesce`]).
    pub fn has_coalescing(&self) -> bool {
        w::FEATURES_COALESCING.get(self.features) == 1
    }

    /// Whether the card has large receive offload.
    pub fn has_lro(&self) -> bool {
        w::FEATURES_LRO.get(self.features) == 1
    }

    /// Settings and counters of large receive offload, if the card has it.
    ///
    /// # Errors
    /// When the card says that it has it, but cannot.
    pub fn lro(&self) -> Result<Option<Lro<'_>>, Error> {
        if !self.has_lro() {
            return Ok(None);
        }
        Lro::new(&self.registers).map(Some)
    }

    /// Whether the card has the ring-empty interrupt, max-age and marker of transmit queues.
    pub fn has_tx_empty(&self) -> bool {
        w::FEATURES_TX_EMPTY.get(self.features) == 1
    }

    /// The ring-empty registers of a pair, if the card has them.
    pub(crate) fn tx_empty(&self, pair: u16) -> Result<Option<TxEmpty>, Error> {
        if !self.has_tx_empty() {
            return Ok(None);
        }
        TxEmpty::new(&self.registers, pair).map(Some)
    }

    /// Why the card interrupted for the transmit queue of a pair, other than by virtio's own means;
    /// `None` if the card has no ring-empty interrupt.
    ///
    /// # Errors
    /// When the card says that it has it, but cannot.
    pub fn tx_interrupts(&self, pair: u16) -> Result<Option<TxInterrupts>, Error> {
        let row = self.tx_empty(pair)?;
        row.map(|row| row.counters()).transpose()
    }

    /// Sets how many pairs receive.
    pub fn set_pairs_in_use(&self, pairs: u16) -> Result<(), Error> {
        if w::FEATURES_PAIRS_IN_USE.get(self.features) == 0 && pairs == 1 {
            return Ok(());
        }
        self.registers
            .write32(w::PAIRS_IN_USE, w::PAIRS_IN_USE_PAIRS.set(0, pairs.into()))?;
        let found = self.pairs_in_use()?;
        if found != pairs {
            return Err(Error::Window(format!(
                "PAIRS_IN_USE is {found} after writing {pairs}; the card has {} pairs",
                self.pairs
            )));
        }
        Ok(())
    }

    /// How many pairs receive.
    pub fn pairs_in_use(&self) -> Result<u16, Error> {
        Ok(w::PAIRS_IN_USE_PAIRS.get(self.registers.read32(w::PAIRS_IN_USE)?) as u16)
    }

    fn wide(&self, low: u64, high: u64) -> Result<u64, Error> {
        let low = self.registers.read32(low)?;
        Ok(u64::from(self.registers.read32(high)?) << 32 | u64::from(low))
    }

    /// The card's time base now, in cycles of 8 ns.
    pub fn time(&self) -> Result<u64, Error> {
        self.registers
            .write32(w::SNAPSHOT, w::SNAPSHOT_QUEUE.set(0, 0))?;
        self.wide(w::TIME_LO, w::TIME_HI)
    }

    /// Takes a snapshot of a virtqueue and reads it.
    pub fn queue(&self, queue: u16) -> Result<QueueCounters, Error> {
        self.registers
            .write32(w::SNAPSHOT, w::SNAPSHOT_QUEUE.set(0, queue.into()))?;
        let found = w::SNAP_QUEUE_QUEUE.get(self.registers.read32(w::SNAP_QUEUE)?);
        if found != u32::from(queue) {
            return Err(Error::Window(format!(
                "a snapshot of queue {queue} says it is of queue {found}; does another process \
                 use the card?"
            )));
        }
        Ok(QueueCounters {
            packets: self.wide(w::SNAP_PACKETS_LO, w::SNAP_PACKETS_HI)?,
            bytes: self.wide(w::SNAP_BYTES_LO, w::SNAP_BYTES_HI)?,
            last_stamp: self.wide(w::SNAP_STAMP_LO, w::SNAP_STAMP_HI)?,
            drops: self.registers.read32(w::SNAP_DROPS)?,
            interrupts: self.registers.read32(w::SNAP_INTERRUPTS)?,
        })
    }

    /// One of the counters of the whole card, as of the last snapshot.
    pub(crate) fn device_counter(&self, offset: u64) -> Result<u32, Error> {
        Ok(self.registers.read32(offset)?)
    }

    /// Reads all counters of all queues.
    pub fn stats(&self) -> Result<CardStats, Error> {
        let queues = (0..2 * self.pairs)
            .map(|queue| self.queue(queue))
            .collect::<Result<_, _>>()?;
        let device = DEVICE_COUNTERS
            .into_iter()
            .map(|(name, offset)| Ok((name, self.registers.read32(offset)?)))
            .collect::<Result<_, Error>>()?;
        Ok(CardStats {
            time: self.wide(w::TIME_LO, w::TIME_HI)?,
            clock_hz: self.registers.read32(w::CLOCK_HZ)?,
            queues,
            device,
            lro: self.lro()?.map(|lro| lro.counters()).transpose()?,
            tx_interrupts: (0..self.pairs)
                .filter_map(|pair| self.tx_interrupts(pair).transpose())
                .collect::<Result<_, _>>()?,
        })
    }
}
