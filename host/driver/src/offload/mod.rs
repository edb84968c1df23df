//! Checksums and segmentation: what a transmitted frame may ask of the card, and received frames
//! that the card did not verify.

pub(crate) mod checksum;
mod error;
mod headers;
mod receive;
mod transmit;
mod unit;

pub use error::OffloadError;
pub use headers::HeaderFault;
pub use receive::{Admitted, Refused, Sum, Verdict, admit, verify};
pub use transmit::{Segmentation, TxOffload};
pub use unit::{UnitFault, check_unit};
