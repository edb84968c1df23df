//! The card on a unix socket, by the vfio-user protocol.
//!
//! One client at a time; when it goes, the card is reset and the next one is served. One thread:
//! the socket is polled while there is something to simulate, and slept on when there is not.

mod connection;
mod device;
mod mapping;
mod messages;
pub mod protocol;
mod server;
mod session;

pub use connection::{Connection, Message, Received};
pub use device::SimDevice;
pub use mapping::FileMaps;
pub use messages::MessageLog;
pub use server::{ServeError, Server, Stop};
pub use session::{Device, Session};
