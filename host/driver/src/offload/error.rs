//! Requests that cannot be.

use ferronic_spec::Features;
use ferronic_spec::net::{MAX_FRAME, MAX_SEGMENTED_IP};
use thiserror::Error;

use super::headers::HeaderFault;
use super::transmit::Segmentation;

/// Why a frame cannot be sent with the offload that was asked for. Nothing of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// The card does not do it, or was not asked to when it was opened.
    #[error(
        "it needs {0:?}, which was not negotiated: offered by the card and wanted by \
         DeviceConfig::features it must be; or do it in software"
    )]
    NotNegotiated(Features),
    /// A checksum that does not lie in the frame.
    #[error(
        "the checksum at {start} + {offset} does not lie within the frame of {len} bytes; it has \
         two bytes"
    )]
    ChecksumOutside {
        /// Where summing starts.
        start: u16,
        /// Where the checksum is, from there.
        offset: u16,
        /// Bytes of the frame.
        len: usize,
    },
    /// Segments without payload.
    #[error("segments of 0 bytes of payload cannot be; give 1 or more")]
    SegmentSize,
    /// The headers that each segment gets cannot be found.
    #[error("it cannot be segmented: {0}")]
    Headers(HeaderFault),
    /// The headers are of another kind.
    #[error("segmentation as {asked:?} was asked for, but its headers are of {found}")]
    Kind {
        /// What was asked for.
        asked: Segmentation,
        /// What the headers are.
        found: &'static str,
    },
    /// ECN is a matter of TCP.
    #[error("`ecn` was asked for with UDP, which has none; ask without")]
    EcnOfUdp,
    /// CWR belongs on the first segment only, which the card must be told.
    #[error("its TCP header has CWR, but `ecn` was not asked for; set it")]
    CwrWithoutEcn,
    /// More than an IP header's length can say.
    #[error("its IP packet has {0} bytes; the card segments at most {MAX_SEGMENTED_IP}")]
    IpLength(usize),
    /// Segments that are too long for the wire.
    #[error(
        "its first segment would have {0} bytes; the card sends at most {MAX_FRAME}: ask for \
         smaller segments"
    )]
    SegmentLength(usize),
}
