//! The control socket: settings of a card that a running command has.
//!
//! A function has one owner at a time. A command that keeps it for long ([`Control::offer`]) therefore
//! listens on a socket in the user's runtime directory; `queues`, `rss`, `coalesce`, `filter`, `offload`,
//! `xps` and `stats` ask it ([`client::ask`]). What is asked for is done by the thread that owns the
//! transport, between bursts ([`Control::serve`]): it looks at one word, and the rest of the work,
//! reading, parsing, waiting for who does not read, is that of threads of the socket's own.
//!
//! A request and its answer are a line of JSON each. docs/control-socket.md has them.

pub mod client;
pub mod message;
pub mod owner;
mod place;
mod server;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use owner::Owner;
pub use server::Control;

/// Version of the protocol.
pub const VERSION: u32 = 1;
/// Longest request, in bytes.
const MAX_REQUEST: usize = 64 * 1024;
/// Longest answer that a client takes, in bytes.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Clients that are served at a time.
const MAX_CLIENTS: usize = 8;
/// How long a client may take to send a request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the owner of the card may take; a client waits somewhat longer.
const OWNER: Duration = Duration::from_secs(20);
