//! The whole system in one process: the driver, the RTL and a wire whose far end the test holds.

use std::sync::Arc;

use ferronic::pci::PciFunction;
use ferronic::{Device, DeviceConfig, PushResult, QueuePair};
use ferronic_sim::wire::WireQueue;
use ferronic_sim::{Sim, SimConfig, SimFunction};
use ferronic_spec::NetHeader;

/// A frame as the driver handed it over.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Queue pair that received it.
    pub pair: u16,
    /// Header that the device wrote.
    pub header: NetHeader,
    /// Bytes written into each of its buffers, the header included.
    pub buffers: Vec<u32>,
    /// The driver takes its checksums for verified.
    pub verified: bool,
    /// The frame.
    pub data: Vec<u8>,
}

/// An opened card.
pub struct Card {
    /// The simulated function, to look behind the seam.
    pub function: SimFunction,
    /// Far end of the cable.
    pub wire: WireQueue,
    /// The driver's device.
    pub device: Device,
    /// Its queues.
    pub pairs: Vec<QueuePair>,
}

/// Cycles after which a test gives up waiting for the card to do something.
pub const PATIENCE: u64 = 2_000_000;

impl Card {
    /// Builds the simulation and lets the driver open the card.
    ///
    /// # Panics
    /// When either fails: a test can do nothing with that.
    pub fn open(sim: SimConfig, driver: DeviceConfig) -> Self {
        let (wire, port) = WireQueue::new();
        let sim = Sim::with_wire(sim, port).expect("the model starts");
        let function = SimFunction::new(sim).expect("the card enumerates");
        Self::attach(function, wire, driver)
    }

    /// Lets the driver open a card that exists.
    ///
    /// # Panics
    /// When it cannot.
    pub fn attach(function: SimFunction, wire: WireQueue, driver: DeviceConfig) -> Self {
        let seam: Arc<dyn PciFunction> = Arc::new(function.clone());
        let (device, pairs) = Device::open(seam, driver).expect("the driver opens the card");
        Self {
            function,
            wire,
            device,
            pairs,
        }
    }

    /// What is in the receive queues now.
    ///
    /// # Panics
    /// When the driver finds the device at fault.
    pub fn receive(&mut self) -> Vec<Received> {
        let mut got = Vec::new();
        for pair in &mut self.pairs {
            pair.rx
                .receive(64, |frame| {
                    let mut data = Vec::with_capacity(frame.len());
                    frame.copy_to(&mut data);
                    got.push(Received {
                        pair: frame.pair(),
                        header: frame.header(),
                        buffers: frame.buffer_lens().collect(),
                        verified: frame.is_verified(),
                        data,
                    });
                })
                .expect("the device behaves");
        }
        got
    }

    /// Receives until there are `count` frames.
    ///
    /// # Panics
    /// When the card has been silent for [`PATIENCE`] cycles.
    pub fn receive_count(&mut self, count: usize) -> Vec<Received> {
        let mut got = Vec::new();
        let mut last = self.function.now();
        while got.len() < count {
            let more = self.receive();
            if more.is_empty() {
                self.device.poll();
                assert!(
                    self.function.now() - last < PATIENCE,
                    "{} of {count} frames came, then none for {PATIENCE} cycles",
                    got.len()
                );
            } else {
                last = self.function.now();
                got.extend(more);
            }
        }
        got
    }

    /// Sends `frames` over the pairs in turn, in bursts of 64, and waits until the last has left.
    ///
    /// # Panics
    /// When the driver finds the device at fault, or the card is silent for [`PATIENCE`] cycles.
    pub fn send<F: AsRef<[u8]>>(&mut self, frames: &[F]) {
        let before = self.wire.sent();
        let pairs = self.pairs.len();
        let mut last = self.function.now();
        for (i, frame) in frames.iter().enumerate() {
            let tx = &mut self.pairs[i % pairs].tx;
            while tx.push(frame.as_ref()).expect("a sound frame") == PushResult::Full {
                tx.flush().expect("the device behaves");
                if tx.reap().expect("the device behaves") == 0 {
                    self.device.poll();
                    assert!(
                        self.function.now() - last < PATIENCE,
                        "no completion for {PATIENCE} cycles"
                    );
                } else {
                    last = self.function.now();
                }
            }
            if i % (64 * pairs) >= 63 * pairs || i + pairs >= frames.len() {
                self.pairs[i % pairs]
                    .tx
                    .flush()
                    .expect("the device behaves");
            }
        }
        let mut left = self.wire.sent();
        last = self.function.now();
        while left - before < frames.len() {
            self.device.poll();
            for pair in &mut self.pairs {
                pair.tx.reap().expect("the device behaves");
            }
            if self.wire.sent() != left {
                left = self.wire.sent();
                last = self.function.now();
            }
            assert!(
                self.function.now() - last < PATIENCE,
                "{} of {} frames left, then none for {PATIENCE} cycles",
                left - before,
                frames.len()
            );
        }
    }
}
