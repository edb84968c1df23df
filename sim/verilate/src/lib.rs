//! For build scripts: Verilates RTL and compiles the models.
//!
//! Libraries live in `.tools/cache/verilated/<hash>`, by the content of what they are made of, so
//! that a build without a change to the RTL costs nothing.
//!
//! The makefile that Verilator writes is not used: the tools named in it are those of the machine
//! that Verilator was built on.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod hash;
mod sources;
mod toolchain;
mod tools;

pub use hash::Hasher;
pub use sources::{Sources, closure, collect};
pub use toolchain::{Built, Toolchain, Unit};
pub use tools::{cache_dir, output, read, run, verilator};
