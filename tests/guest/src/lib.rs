//! Guests: a stock kernel in an unpatched QEMU, with the RTL as its network card.
//!
//! ```text
//!   scenario ── Guest ── serial port ── agent (/init) ── the kernel's drivers
//!      │                                                    │ PCI, behind an IOMMU
//!      │                                  QEMU ── vfio-user-pci
//!      └── Card ── ferronic-sim serve ──────────────┘ socket
//!                      └── wire: a peer in Rust
//! ```
//!
//! A [`Kit`] is fetched once; [`Machine::boot`] starts the simulator, then QEMU; a scenario asks the
//! agent to do things and looks at both ends. Where the kit cannot be had the tests say so and are
//! skipped, or fail where `FERRONIC_REQUIRE` names `guests`.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod card;
mod child;
mod cpio;
mod error;
mod guest;
mod initramfs;
mod kit;
mod machine;
mod program;
mod programs;
mod reference;
pub mod scenario;
pub mod summary;

pub use card::{Card, Counters};
pub use error::GuestError;
pub use guest::{Guest, PATIENCE, Pending};
pub use initramfs::{Content, Extra};
pub use kit::{Kit, Qemu};
pub use machine::{Iommu, Machine, Plan};
pub use programs::Programs;
