//! The Ferronic card in simulation.
//!
//! [`Sim`] holds the Verilated RTL, a PCIe [root complex](root_complex) and a [wire].
//! [`SimFunction`] offers it to the driver in the same process; [`vfio_user`] offers it on a
//! socket. Everything random comes from one seed: the same calls give the same cycle counts.
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

pub mod cli;
pub mod features;
mod figures;
pub mod model;
pub mod rng;
pub mod root_complex;
pub mod serve;
pub mod tlp;
pub mod vfio_user;
pub mod wire;

mod function;
mod sim;

pub use function::SimFunction;
pub use model::Strap;
pub use sim::{
    Bar, FunctionInfo, MsixInfo, NS_PER_CYCLE, Sim, SimConfig, SimError, SimStats, cycles_of,
};
