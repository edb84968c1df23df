//! `rx_path` with large receive offload: units in the buffers of a queue, at any stall, with scarce
//! buffers, and with pauses, resets and changes of settings at any moment. Compared with the oracle's
//! model where time and buffers do not matter, and with the stream where they do.

mod bench;
mod low;
mod moments;
mod relaxed;
mod rules;
mod settings;
mod streams;
