//! What the co-simulation tests share: captures, and the rules for those that come from outside.
//!
//! Two small captures are in the repository (`tests/data`). More come from the directory that
//! `FERRONIC_CAPTURES` names; without the variable the tests run on ours alone and say so, with a
//! variable that names nothing they fail. `FERRONIC_REQUIRE`, a list of `captures`, `guests` and
//! `firmware`, turns "not there, so skipped" into a failure; CI sets it.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod bench;
mod captures;
pub mod card;
pub mod completion;
pub mod lro;
pub mod raw_driver;
pub mod requests;
mod require;
pub mod tso;

pub use captures::{Capture, CaptureError, captures, own_captures, read_capture, repository_root};
pub use require::{RequireError, Resource, is_required, nightly};
