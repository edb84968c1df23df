//! Transmit steering (XPS): the transmit queue of a packet by the CPU that sends it, or by the receive
//! queue of its socket, with the semantics of Linux.
//!
//! * [`Xps`] is what threads share: a mask of CPUs ([`Xps::set_cpus`]) and one of receive queues
//!   ([`Xps::set_rxqs`]) for each transmit queue, kept as maps the other way round.
//! * [`View::pick`] chooses, by rules that are tried one after the other, without a lock and without
//!   a write to memory that threads share.
//! * [`Flow`] keeps a flow on its queue while anything of it is in flight, and [`Lane`] is a transmit
//!   queue that says when it is not.
//! * [`Mask`] reads and prints sets of CPUs as Linux does.
//!
//! ```
//! use ferronic::xps::{Cpus, Flow, Mask, Xps};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Four queue pairs, eight CPUs; queue 2 is that of CPUs 0 to 3 and 7.
//! let xps = Xps::new(4, 4, Cpus::new(8))?;
//! xps.set_cpus(2, &Mask::from_list("0-3,7", 8)?)?;
//! assert_eq!(xps.cpus(2)?.hex().to_string(), "8f");
//!
//! let mut flow = Flow::new(0x51cc_c178);
//! let (pick, in_flight) = flow.send(&xps.view(), 3, 0);
//! assert_eq!(pick.queue, 2);
//! // It stays there, whichever CPU sends, until the card has completed what is in flight.
//! assert_eq!(flow.send(&xps.view(), 5, 0).0.queue, 2);
//! drop(in_flight);
//! # Ok(())
//! # }
//! ```
//!
//! docs/steering.md has the rules, and where they differ from what Linux does by accident.

mod classes;
mod control;
mod cpus;
mod error;
mod flow;
mod hash;
mod lane;
mod map;
mod mask;
mod probe;
mod steering;

pub use control::Xps;
pub use cpus::{Cpus, current_cpu};
pub use error::XpsError;
pub use flow::{Flow, InFlight, Socket};
pub use hash::{KEY, flow_hash, toeplitz};
pub use lane::{Lane, Sent};
pub use mask::{Hex, List, Mask, MaskError};
pub use probe::Probe;
pub use steering::{Packet, Pick, Rule, Select, View};
