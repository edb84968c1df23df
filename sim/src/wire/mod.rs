//! The far side of the card's port: where received frames come from and sent frames go.

mod capture;
mod loopback;
mod pcap;
mod peer;
mod port;
mod queue;
mod record;
mod spec;
mod stream;
mod tap;

use std::io;
use std::os::fd::BorrowedFd;

pub use capture::{CaptureError, CapturedFrame, read_capture};
pub use loopback::LoopbackWire;
pub use pcap::PcapWire;
pub use peer::{PEER_IPV6, PEER_MAC, PeerWire};
pub use port::{WirePort, WireStalls, WireStats};
pub use queue::{QueueWire, SentFrame, WireQueue};
pub use record::RecordWire;
pub use spec::{WireError, WireSpec};
pub use stream::StreamWire;
pub use tap::TapWire;

/// A frame on its way to the card, without FCS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RxFrame {
    /// The bytes.
    pub data: Vec<u8>,
    /// The frame ends with an error: the card must drop it.
    pub abort: bool,
}

/// How fast frames follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the data path takes them.
    #[default]
    Line,
    /// By the time stamps of the capture; sent frames leave at line pace.
    Captured,
    /// 1 Gbit/s, with preamble, padding, FCS and gap.
    Gigabit,
}

impl Pace {
    /// Cycles of 8 ns that a frame of `len` bytes keeps the wire busy.
    pub fn cycles(self, len: usize) -> u64 {
        match self {
            Self::Line | Self::Captured => 0,
            // At 1 Gbit/s a byte takes 8 ns, which is one cycle.
            Self::Gigabit => len.max(60) as u64 + 4 + 8 + 12,
        }
    }
}

/// A peer on the wire. Times are cycles of the card's time base.
pub trait Wire: Send {
    /// The next frame for the card, if one is due.
    fn next_frame(&mut self, now: u64) -> Option<RxFrame>;

    /// When [`Wire::next_frame`] will give a frame; `None`: nothing is known to come.
    fn next_event(&self, now: u64) -> Option<u64>;

    /// A frame that the card sent; `aborted`: it ended with an error and is void.
    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool);

    /// The driver became ready (`true`) or was reset (`false`).
    fn driver_ready(&mut self, now: u64, ready: bool) {
        let _ = (now, ready);
    }

    /// A new client: a replay starts again.
    fn restart(&mut self) {}

    /// Moves data between the host's descriptors and this wire, without waiting.
    fn poll(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A descriptor that becomes readable when [`Wire::poll`] has something to do.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Writes out what is buffered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Pace in both directions.
    fn pace(&self) -> Pace {
        Pace::Line
    }

    /// True if frames wait for receive buffers instead of being dropped.
    fn lossless(&self) -> bool {
        true
    }
}

/// A wire with nobody at the other end.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWire;

impl Wire for NoWire {
    fn next_frame(&mut self, _now: u64) -> Option<RxFrame> {
        None
    }

    fn next_event(&self, _now: u64) -> Option<u64> {
        None
    }

    fn sent(&mut self, _now: u64, _frame: &[u8], _aborted: bool) {}
}
