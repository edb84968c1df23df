//! What the card owes for a frame, in software, written from the specifications (RFC 791, 793, 768,
//! 1071, 3168, 8200; IEEE 802.1Q; virtio 1.2 and 1.3, network device) and not from the RTL.
//!
//! * [`transmit()`]: what leaves for a transmitted buffer, or why nothing does.
//! * [`request`]: random buffers, sound and malformed.
//! * [`frames`]: random received frames, and what may be claimed of them.
//! * [`lro`]: the reference model of merging received segments.
//! * [`card`]: what of that is particular to this card.
//! * [`order`]: whether what was delivered is what arrived.
//! * [`resegment()`]: the frames of the wire that a received unit stands for.
//! * [`stream`]: random streams of segments, with everything that happens to them.
//! * [`steering`]: transmit steering, which is the driver's.
//! * [`vectors`]: the smallest stream for each rule of merging.
//! * [`rss`]: the hash of receive-side scaling.
//! * [`segment`]: TCP segments, field by field.
//! * [`opinion`]: what `etherparse`, which shares nothing with the above, finds of checksums.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod card;
pub mod drift;
pub mod frames;
mod header;
pub mod lro;
mod opinion;
pub mod order;
mod packet;
pub mod request;
mod resegment;
mod rng;
pub mod rss;
pub mod segment;
mod shape;
pub mod steering;
pub mod stream;
mod sum;
mod transmit;
pub mod vectors;

pub use header::{DATA_VALID, Header, NEEDS_CSUM, Offloads, gso};
pub use opinion::{Opinion, opinion};
pub use packet::{Packet, Protocol, WINDOW, parse};
pub use request::{Limits, Request};
pub use resegment::{Unsound, resegment, resegment_buffer};
pub use rng::Rng;
pub use segment::Segment;
pub use shape::Shape;
pub use sum::{fold, sum};
pub use transmit::{Cause, MAX_FRAME, Outcome, transmit, transmit_buffer};
