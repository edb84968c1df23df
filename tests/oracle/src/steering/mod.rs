//! Transmit steering, from its rules (S3-R1 to S3-R9) and the documents of Linux alone.
//!
//! * [`rules`]: which queue a packet takes.
//! * [`queues`]: transmit queues of different speeds, and whether flows keep their order behind them.
//! * [`lines`]: which caches a line of memory moves between.

pub mod lines;
pub mod queues;
pub mod rules;
