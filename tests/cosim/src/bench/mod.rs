//! What the benches share: options, where their figures go, and how they are drawn.

mod output;
pub mod plot;

pub use output::{Output, exit};
