//! A [smoltcp] device on a queue pair: a TCP/IP stack over the card.

use std::collections::VecDeque;

use smoltcp::phy::{Device as PhyDevice, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use crate::error::Error;
use crate::queue::{MAX_BURST, PushResult, QueuePair};

/// Bytes of an Ethernet header; smoltcp's MTU includes it.
const ETHERNET_HEADER: usize = 14;
/// MTU of a card that does not offer one.
const DEFAULT_MTU: u16 = 1500;

/// A queue pair as smoltcp sees it.
///
/// smoltcp's interface has no errors: the first one is kept, see [`Phy::flush`].
pub struct Phy {
    pair: QueuePair,
    mtu: usize,
    received: VecDeque<Vec<u8>>,
    scratch: Vec<u8>,
    error: Option<Error>,
}

impl Phy {
    /// Wraps a queue pair; `mtu` is the card's, if it offers one.
    pub fn new(pair: QueuePair, mtu: Option<u16>) -> Self {
        Self {
            pair,
            mtu: usize::from(mtu.unwrap_or(DEFAULT_MTU)) + ETHERNET_HEADER,
            received: VecDeque::new(),
            scratch: Vec::new(),
            error: None,
        }
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
        let Self { pair, received, .. } = self;
        let result = pair.rx.receive(MAX_BURST, |frame| {
            let mut bytes = Vec::with_capacity(frame.len());
            frame.copy_to(&mut bytes);
            received.push_back(bytes);
        });
        if let Err(e) = result {
            self.keep(e);
        }
    }

    fn has_room(&mut self) -> bool {
        match self.pair.tx.has_room() {
            Ok(room) => room,
            Err(e) => {
                self.keep(e);
                false
            }
        }
    }

    fn send(&mut self) {
        match self.pair.tx.push(&self.scratch) {
            Ok(PushResult::Queued) => {}
            // `transmit` and `receive` gave no token without room.
            Ok(PushResult::Full) => log::debug!("a frame was dropped: the ring is full"),
            Err(e) => self.keep(e),
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
        if self.received.is_empty() || !self.has_room() {
            return None;
        }
        let bytes = self.received.pop_front()?;
        Some((Received { bytes }, Transmit { phy: self }))
    }

    fn transmit(&mut self, _timestamp: Instant) -> Option<Transmit<'_>> {
        self.has_room().then_some(Transmit { phy: self })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.max_burst_size = Some(MAX_BURST);
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
}

impl TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        self.phy.scratch.clear();
        self.phy.scratch.resize(len, 0);
        let result = f(&mut self.phy.scratch);
        self.phy.send();
        result
    }
}
