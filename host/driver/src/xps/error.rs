//! Errors of transmit steering.

use std::time::Duration;

use thiserror::Error;

use super::mask::MaskError;

/// Why steering was not changed, or could not be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum XpsError {
    /// A transmit queue that the card does not have.
    #[error(
        "there is no transmit queue {queue}: the card has {allocated}, 0 to {}; name one of them",
        .allocated - 1
    )]
    NoQueue {
        /// The queue.
        queue: u16,
        /// Queues that there are.
        allocated: u16,
    },
    /// A transmit queue that is there and not in use.
    #[error(
        "transmit queue {queue} is not in use: {in_use} of {allocated} are, 0 to {}; name one of \
         them, or raise the number of queues first",
        .in_use - 1
    )]
    NotInUse {
        /// The queue.
        queue: u16,
        /// Queues in use.
        in_use: u16,
        /// Queues that there are.
        allocated: u16,
    },
    /// Nothing to choose from.
    #[error(
        "the card has a single transmit queue, which takes every packet; there is nothing to set"
    )]
    SingleQueue,
    /// A number of queues that cannot be.
    #[error("{queues} transmit queues cannot be in use; 1 to {allocated} can")]
    Queues {
        /// The number asked for.
        queues: u16,
        /// Queues that there are.
        allocated: u16,
    },
    /// A mask names a CPU that cannot be.
    #[error("CPUs: {0}")]
    Cpus(MaskError),
    /// A mask names a receive queue that is not there.
    #[error("receive queues: {0}")]
    RxQueues(MaskError),
    /// A traffic class that is not there.
    #[error("there is no traffic class {class}: there are {classes} (at most 16)")]
    NoClass {
        /// The class.
        class: u8,
        /// How many there are.
        classes: u8,
    },
    /// A traffic class has queues that are not in use.
    #[error(
        "queues {first} to {last} cannot be those of a traffic class: 0 to {} are in use",
        .in_use - 1
    )]
    ClassQueues {
        /// First queue.
        first: u16,
        /// Last queue.
        last: u16,
        /// Queues in use.
        in_use: u16,
    },
    /// A priority above 15.
    #[error("priority {priority} is not one; priorities are 0 to 15")]
    Priority {
        /// The priority.
        priority: u8,
    },
    /// The queue is in no traffic class.
    #[error("transmit queue {queue} belongs to no traffic class; give it to one first")]
    Unclassed {
        /// The queue.
        queue: u16,
    },
    /// The memory for a map was not to be had; the old one stands.
    #[error(
        "no memory for a map of {words} words; the map was left as it was, try again when there is \
         memory"
    )]
    Memory {
        /// Words of the map.
        words: usize,
    },
    /// A reader did not let go of what it looked at.
    #[error(
        "a thread has held a view of the queues for {waited:?}; the queues are limited already, \
         drop the view and set their number again to have the others flushed"
    )]
    Readers {
        /// How long it was waited for.
        waited: Duration,
    },
    /// What the kernel tells of CPUs was not to be read.
    #[error("{path}: {why}; without it the number of CPUs must be given")]
    System {
        /// The file.
        path: &'static str,
        /// Why not.
        why: String,
    },
}
