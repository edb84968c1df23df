//! Errors of everything above the seam.

use std::time::Duration;

use ferronic_spec::Features;
use thiserror::Error;

use crate::coalesce::CoalesceError;
use crate::completion::CompletionError;
use crate::filter::FilterError;
use crate::follow::FollowError;
use crate::lro::LroError;
use crate::offload::OffloadError;
use crate::pci::PciError;
use crate::readback::ReadbackError;
use crate::rss::RssError;
use crate::tap::TapError;

/// What the device wrote into a ring or a frame header that it must not.
///
/// A queue with a fault is stopped: every later call returns the same fault until it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QueueFault {
    /// More completions than buffers outstanding, or an index that went back.
    #[error("used.idx is {idx}, but only {outstanding} buffers after {last} are outstanding")]
    UsedIndex {
        /// The index read.
        idx: u16,
        /// The last index that was taken.
        last: u16,
        /// Buffers outstanding.
        outstanding: u16,
    },
    /// A completion for a descriptor that the ring does not have.
    #[error("used entry names descriptor {id}, the ring has {size}")]
    UsedIdRange {
        /// The id read.
        id: u32,
        /// Ring size.
        size: u16,
    },
    /// A completion for a buffer that is not outstanding.
    #[error("used entry names descriptor {id}, which is not an outstanding buffer")]
    UsedIdFree {
        /// The id read.
        id: u32,
    },
    /// More bytes written than the buffer has.
    #[error("used entry of buffer {id} says {len} bytes were written, it has {limit}")]
    UsedLength {
        /// The id read.
        id: u32,
        /// The length read.
        len: u32,
        /// Bytes that the device may write.
        limit: u32,
    },
    /// A received frame without room for its header, or with less than an Ethernet header behind.
    #[error("received frame of {len} bytes, header included, is too short")]
    FrameTooShort {
        /// Bytes, the virtio header included.
        len: u32,
    },
    /// A received frame that is longer than any.
    #[error("a received frame has {len} bytes so far, header included; the longest has {max}")]
    FrameTooLong {
        /// Bytes up to the buffer at which it was given up.
        len: u32,
        /// Bytes of the longest frame.
        max: u32,
    },
    /// A received frame that spans no buffer.
    #[error("num_buffers of a received frame is 0")]
    NoBuffers,
    /// A received frame whose other buffers are not there.
    #[error("num_buffers of a received frame is {wanted}, but only {found} buffers were used")]
    MissingBuffers {
        /// `num_buffers`.
        wanted: u16,
        /// Used entries found.
        found: u16,
    },
    /// A buffer of a merged frame into which nothing was written.
    #[error("buffer {index} of a merged frame is empty")]
    EmptyBuffer {
        /// Which one.
        index: u16,
    },
}

/// An error of the driver.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The backend failed.
    #[error(transparent)]
    Pci(#[from] PciError),
    /// Not a modern virtio network device.
    #[error(
        "PCI ID {vendor:04x}:{device:04x} revision {revision} is not a modern virtio network \
         device (1af4:1041 revision 1 or later); check the device name"
    )]
    WrongDevice {
        /// Vendor ID.
        vendor: u16,
        /// Device ID.
        device: u16,
        /// Revision.
        revision: u8,
    },
    /// The device's capabilities do not make sense.
    #[error("the device's PCI capabilities are broken: {0}")]
    Capabilities(String),
    /// The device does not offer what is needed.
    #[error("the device does not offer {missing:?} (it offers {offered:?})")]
    MissingFeatures {
        /// What is needed and missing.
        missing: Features,
        /// What the device offers.
        offered: Features,
    },
    /// The device refused the features chosen.
    #[error("the device refused the features {0:?}; try with fewer (DeviceConfig::features)")]
    FeaturesRefused(Features),
    /// A setting that cannot be.
    #[error("{what} is {value}, but {must}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it must be.
        must: String,
    },
    /// The device did not finish something in time.
    #[error("{what} did not finish within {after:?}; reset the card, or restart the simulator")]
    Stuck {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// The device asks to be reset.
    #[error(
        "the device met an error and stopped (DEVICE_NEEDS_RESET); open it again, and see its \
         counters for the cause"
    )]
    NeedsReset,
    /// The device broke the rules of a queue.
    #[error("queue {queue}: {fault}; the queue is stopped until it is reset")]
    Queue {
        /// Virtqueue number.
        queue: u16,
        /// What it did.
        fault: QueueFault,
    },
    /// A frame that cannot be sent.
    #[error("a frame of {len} bytes cannot be sent: the card takes {min} to {max} bytes")]
    FrameLength {
        /// Its length.
        len: usize,
        /// Smallest length.
        min: usize,
        /// Largest length.
        max: usize,
    },
    /// An offload that a frame cannot have.
    #[error("a frame was not sent: {0}")]
    Offload(#[from] OffloadError),
    /// Transmitted frames cannot be completed as it was asked.
    #[error(transparent)]
    Completion(#[from] CompletionError),
    /// The card does not merge as it was asked to.
    #[error(transparent)]
    Lro(#[from] LroError),
    /// Received frames cannot be spread as it was asked.
    #[error(transparent)]
    Rss(#[from] RssError),
    /// The card does not follow what is transmitted as it was asked to.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// The card does not filter received frames as it was asked to.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The card does not coalesce notifications as it was asked to.
    #[error(transparent)]
    Coalesce(#[from] CoalesceError),
    /// The card did not keep a setting.
    #[error(transparent)]
    Readback(#[from] ReadbackError),
    /// The interface of a bridge failed.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// Memory that the card cannot read.
    #[error("a part of a frame is in a buffer of another card; use one of Device::buffer of this")]
    ForeignBuffer,
    /// A scatter list that cannot be sent.
    #[error("a buffer of {segments} segments does not fit: the limit is {limit}")]
    Segments {
        /// Its segments.
        segments: usize,
        /// The limit of this queue.
        limit: usize,
    },
    /// The configuration space kept changing while it was read.
    #[error("the device's configuration changed in each of {0} tries to read it")]
    UnstableConfig(u32),
    /// The card's own window is missing or of another kind.
    #[error("the card's own register window: {0}")]
    Window(String),
}
