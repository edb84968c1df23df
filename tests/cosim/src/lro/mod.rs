//! Reception through the whole card as merging needs it looked at: buffers of any shape in guarded
//! memory, units put together from used rings, compared with the oracle's model and with the stream.

mod expect;
mod receiver;
mod registers;
pub mod vectors;

pub use expect::{Expected, steered, undone};
pub use receiver::{MERGING, Plan, Receiver};
pub use registers::{Closed, LONGEST, Settings};
