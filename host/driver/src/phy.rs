//! A [smoltcp] device on a queue pair: a TCP/IP stack over the card.
//!
//! Checksums are not the stack's affair. What it receives was verified by the card, or is verified
//! here, or is dropped ([`crate::offload::admit`]); what it sends gets its TCP and UDP checksums from
//! the card where CSUM was negotiated. TCP over IPv4 leaves in pieces of up to 65,535 bytes that the
//! card segments, where HOST_TSO4 was negotiated; smoltcp 0.14 drops such pieces of TCP over IPv6, so
//! HOST_TSO6 is not told to it.

use std::collections::VecDeque;
use std::num::{NonZeroU16, NonZeroUsize};

use ferronic_spec::Features;
use ferronic_spec::net::{MAX_FRAME, MAX_SEGMENTED_IP};
use smoltcp::phy::{
    Checksum, Device as PhyDevice, DeviceCapabilities, Medium, PacketMeta, RxToken, TxToken,
};
use smoltcp::time::Instant;

use crate::error::Error;
use crate::gro::{GroOptions, GroStats};
use crate::offload::{Admitted, TxOffload};
use crate::queue::{MAX_BURST, PushResult, QueuePair};

/// Bytes of an Ethernet header; smoltcp's MTU includes it.
const ETHERNET_HEADER: usize = 14;
/// MTU of a card that does not offer one.
const DEFAULT_MTU: u16 = 1500;

/// Which offloads a stack uses, of those that were negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhyOptions {
    /// Largest IP packet; `None`: 1,500.
    pub mtu: Option<u16>,
    /// Let the card make the checksums of TCP and UDP.
    pub checksum: bool,
    /// Let the card segment TCP over IPv4; not without `checksum`.
    pub segmentation: bool,
    /// Merge received segments in the driver ([`crate::gro`]): the stack then takes up to 64 KB at
    /// a time.
    pub gro: bool,
}

impl Default for PhyOptions {
    fn default() -> Self {
        Self {
            mtu: None,
            checksum: true,
            segmentation: true,
            gro: false,
        }
    }
}

/// What became of received frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhyStats {
    /// Passed on because the card had verified them.
    pub by_card: u64,
    /// Passed on because they were verified here.
    pub verified: u64,
    /// Passed on after a partial checksum was completed.
    pub completed: u64,
    /// Passed on because they carry no TCP or UDP checksum.
    pub without: u64,
    /// Dropped: a wrong checksum, or one that cannot be verified.
    pub refused: u64,
    /// Passed on as units of several segments that were verified before they were merged.
    pub units: u64,
}

/// A queue pair as smoltcp sees it.
///
/// smoltcp's interface has no errors: the first one is kept, see [`Phy::flush`].
pub struct Phy {
    pair: QueuePair,
    mtu: usize,
    /// The card makes the checksums of TCP and UDP.
    checksum: bool,
    /// Largest frame that the card segments.
    segmented: Option<NonZeroUsize>,
    received: VecDeque<Vec<u8>>,
    scratch: Vec<u8>,
    stats: PhyStats,
    error: Option<Error>,
}

impl Phy {
    /// Wraps a queue pair, with all offloads that were negotiated; `mtu` is the card's, if it offers
    /// one.
    pub fn new(pair: QueuePair, mtu: Option<u16>) -> Self {
        let options = PhyOptions {
            mtu,
            ..PhyOptions::default()
        };
        Self::with_options(pair, options)
    }

    /// Wraps a queue pair, with those offloads that were negotiated and are chosen.
    pub fn with_options(mut pair: QueuePair, options: PhyOptions) -> Self {
        let offloads = pair.tx.offloads();
        let checksum = options.checksum && offloads.contains(Features::CSUM);
        let segments = checksum && options.segmentation && offloads.contains(Features::HOST_TSO4);
        let mtu = usize::from(options.mtu.unwrap_or(DEFAULT_MTU)) + ETHERNET_HEADER;
        let segmented = pair
            .tx
            .max_segmented()
            .map(|max| max.min(ETHERNET_HEADER + MAX_SEGMENTED_IP))
            .filter(|max| segments && *max > mtu);
        // Units end with each burst: the stack waits for interrupts, not for times.
        let error = pair.rx.set_gro(options.gro.then(GroOptions::default)).err();
        Self {
            pair,
            mtu,
            checksum,
            segmented: segmented.and_then(NonZeroUsize::new),
            received: VecDeque::new(),
            scratch: Vec::new(),
            stats: PhyStats::default(),
            error,
        }
    }

    /// What became of received frames.
    pub fn stats(&self) -> PhyStats {
        self.stats
    }

    /// Counters of merging in the driver.
    pub fn gro_stats(&self) -> GroStats {
        self.pair.rx.gro_stats()
    }

    /// True if the card makes the checksums of TCP and UDP.
    pub fn makes_checksums(&self) -> bool {
        self.checksum
    }

    /// Bytes of the largest frame that the stack gives to the card to segment, if it does.
    pub fn segments_up_to(&self) -> Option<usize> {
        self.segmented.map(NonZeroUsize::get)
    }

    /// Shows to the card what the stack has sent, and reports an error met since the last call.
    ///
    /// To be called after each `Interface::poll`.
    pub fn flush(&mut self) -> Result<(), Error> {
        if let Some(e) = self.error.take() {
            return Err(e);
        }
        self.pair.tx.flush()?;
        self.pair.tx.reap()?;
        Ok(())
    }

    /// The queue pair.
    pub fn pair(&mut self) -> &mut QueuePair {
        &mut self.pair
    }

    /// Gives the queue pair back.
    pub fn into_pair(self) -> QueuePair {
        self.pair
    }

    fn keep(&mut self, e: Error) {
        self.error.get_or_insert(e);
    }

    fn fill(&mut self) {
        let Self {
            pair,
            received,
            stats,
            ..
        } = self;
        let result = pair.rx.receive(MAX_BURST, |frame| {
            let mut bytes = Vec::with_capacity(frame.len());
            frame.copy_to(&mut bytes);
            if frame.is_unit() {
                // Its checksum is partial, and nobody looks at it.
                stats.units += 1;
                received.push_back(bytes);
                return;
            }
            match frame.admit(&mut bytes) {
                Ok(Admitted::ByCard) => stats.by_card += 1,
                Ok(Admitted::Verified) => stats.verified += 1,
                Ok(Admitted::Completed) => stats.completed += 1,
                Ok(Admitted::NoSum) => stats.without += 1,
                Err(why) => {
                    stats.refused += 1;
                    log::debug!("a received frame was dropped: {why}");
                    return;
                }
            }
            received.push_back(bytes);
        });
        if let Err(e) = result {
            self.keep(e);
        }
    }

    /// True if there is room for the largest frame that the stack may send; without it, the stack
    /// sends nothing.
    ///
    /// # Errors
    /// [`Error::Queue`] if the device broke the rules.
    pub fn has_room(&mut self) -> Result<bool, Error> {
        let most = self.segmented.map_or(MAX_FRAME, NonZeroUsize::get);
        self.pair.tx.has_room_for(most)
    }

    fn ready(&mut self) -> bool {
        match self.has_room() {
            Ok(room) => room,
            Err(e) => {
                self.keep(e);
                false
            }
        }
    }

    fn send(&mut self, segment: Option<NonZeroU16>) {
        let len = self.scratch.len();
        let offload = match segment {
            Some(size) => TxOffload::segment(&mut self.scratch, len, size.get()),
            None if self.checksum => Ok(TxOffload::checksum(&mut self.scratch).unwrap_or_default()),
            None => Ok(TxOffload::None),
        };
        let pushed = offload
            .map_err(Error::from)
            .and_then(|offload| self.pair.tx.push_offload(&self.scratch, offload));
        match pushed {
            Ok(PushResult::Queued) => {}
            // `transmit` and `receive` gave no token without room.
            Ok(PushResult::Full) => log::debug!("a frame was dropped: the ring is full"),
            Err(e) => self.keep(e),
        }
    }

    fn token(&mut self) -> Transmit<'_> {
        Transmit {
            phy: self,
            segment: None,
        }
    }
}

impl PhyDevice for Phy {
    type RxToken<'a> = Received;
    type TxToken<'a> = Transmit<'a>;

    fn receive(&mut self, _timestamp: Instant) -> Option<(Received, Transmit<'_>)> {
        if self.received.is_empty() {
            self.fill();
        }
        if self.received.is_empty() || !self.ready() {
            return None;
        }
        let bytes = self.received.pop_front()?;
        Some((Received { bytes }, self.token()))
    }

    fn transmit(&mut self, _timestamp: Instant) -> Option<Transmit<'_>> {
        self.ready().then(|| self.token())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.max_burst_size = Some(MAX_BURST);
        // Nothing is verified again; what nobody made for it the stack makes.
        let transport = if self.checksum {
            Checksum::None
        } else {
            Checksum::Tx
        };
        capabilities.checksum.ipv4 = Checksum::Tx;
        capabilities.checksum.tcp = transport;
        capabilities.checksum.udp = transport;
        capabilities.segmentation.tcpv4 = self.segmented;
        capabilities
    }
}

/// A received frame.
pub struct Received {
    bytes: Vec<u8>,
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.bytes)
    }
}

/// Room for a frame to send.
pub struct Transmit<'a> {
    phy: &'a mut Phy,
    segment: Option<NonZeroU16>,
}

impl TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        self.phy.scratch.clear();
        self.phy.scratch.resize(len, 0);
        let result = f(&mut self.phy.scratch);
        self.phy.send(self.segment);
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment = meta.segmentation_offload_size;
    }
}
