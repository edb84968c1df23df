//! The card as a thing that is clocked: [`Endpoint`], its signals, and the Verilated RTL.

mod ffi;
mod strap;
mod verilated;

use thiserror::Error;

pub use strap::{DEFAULT_FEATURES, Strap};
pub use verilated::VerilatedCore;

/// Words of the widest data path; narrower ones use the first words.
pub const DATA_WORDS: usize = 8;

/// Queue pairs that the Verilated models were built with.
pub const QUEUE_PAIRS: u16 = parse_u16(env!("FERRONIC_QUEUE_PAIRS"));

/// Data path widths that this build has a model for.
pub const WIDTHS: &[u32] = ffi::WIDTHS;

/// One beat of a TLP channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Beat {
    /// 1: the other fields mean something.
    pub valid: u8,
    /// First beat of the TLP; `hdr` is valid.
    pub sop: u8,
    /// Last beat of the TLP.
    pub eop: u8,
    unused: [u8; 5],
    /// The TLP header, DW0 first.
    pub hdr: [u32; 4],
    /// The payload, byte 0 in bits 7:0 of word 0.
    pub data: [u64; DATA_WORDS],
}

/// One beat of a frame stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FrameBeat {
    /// 1: the other fields mean something.
    pub valid: u8,
    /// Last beat of the frame.
    pub last: u8,
    /// With `last`: the frame is void.
    pub abort: u8,
    /// Valid bytes; all of them before `last`.
    pub bytes: u8,
    unused: [u8; 4],
    /// The bytes, byte 0 in bits 7:0 of word 0.
    pub data: [u64; DATA_WORDS],
}

/// What the world gives to the card in one cycle.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Inputs {
    /// Added to the time base in this cycle.
    pub skip: u64,
    /// Reset, active low.
    pub rst_n: u8,
    /// The link takes a beat of a posted write.
    pub pt_ready: u8,
    /// The link takes a read request.
    pub np_ready: u8,
    /// The link takes a beat of a completion.
    pub cc_ready: u8,
    /// The wire takes a beat.
    pub tx_ready: u8,
    unused: [u8; 3],
    /// Requests to the card.
    pub rq: Beat,
    /// Completions of the card's reads.
    pub rc: Beat,
    /// Frames from the wire.
    pub rx: FrameBeat,
}

/// What the card shows after a clock edge.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Outputs {
    /// The time base in cycles.
    pub time: u64,
    /// While idle nothing happens by itself before this time.
    pub deadline: u64,
    /// Nothing is going on in the card.
    pub idle: u8,
    /// The card takes a beat of `rq`.
    pub rq_ready: u8,
    /// The card takes a beat of `rc`.
    pub rc_ready: u8,
    /// The card takes a beat of `rx`.
    pub rx_ready: u8,
    unused: [u8; 4],
    /// Posted writes.
    pub pt: Beat,
    /// Read requests.
    pub np: Beat,
    /// Completions of requests to the card.
    pub cc: Beat,
    /// Frames to the wire.
    pub tx: FrameBeat,
}

/// Bytes of the first words of a beat.
pub fn beat_bytes(data: &[u64; DATA_WORDS]) -> [u8; DATA_WORDS * 8] {
    let mut bytes = [0; DATA_WORDS * 8];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(data) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Fills a beat from at most `DATA_WORDS * 8` bytes; what is left of the last word is zero.
pub fn fill_beat(data: &mut [u64; DATA_WORDS], bytes: &[u8]) {
    for (word, chunk) in data.iter_mut().zip(bytes.chunks(8)) {
        let mut full = [0; 8];
        full[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(full);
    }
}

/// Something with the ports of `ferronic_core`: the RTL, or a behavioural stand-in in tests.
///
/// Outputs depend only on the state, never on the inputs of the same cycle.
pub trait Endpoint: Send {
    /// Bytes of a full beat.
    fn beat_bytes(&self) -> usize;

    /// One clock cycle with `input`; `output` becomes the state after the edge.
    fn step(&mut self, input: &Inputs, output: &mut Outputs) -> Result<(), ModelError>;

    /// Changes the straps from the next cycle on.
    fn set_strap(&mut self, strap: &Strap) {
        let _ = strap;
    }

    /// Starts writing a waveform.
    fn trace(&mut self, path: &std::path::Path) -> Result<(), ModelError> {
        let _ = path;
        Err(ModelError::NotBuilt("tracing", "trace"))
    }

    /// Writes collected coverage.
    fn write_coverage(&mut self, path: &std::path::Path) -> Result<(), ModelError> {
        let _ = path;
        Err(ModelError::NotBuilt("coverage", "coverage"))
    }
}

/// What can go wrong in the model itself.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// This build has no model of that width.
    #[error(
        "this build has no model with a data path of {asked} bits, only {built:?}: \
         build ferronic-sim with the feature `w{asked}` (of w64, w128, w256, w512)"
    )]
    Width {
        /// What was asked for.
        asked: u32,
        /// What there is.
        built: &'static [u32],
    },
    /// The model could not be created.
    #[error("the model could not be created: {0}")]
    Create(String),
    /// An assertion failed, or `$error`, `$fatal`, `$stop` or `$finish` was reached.
    #[error("the RTL reported an error in cycle {cycle}:\n{text}")]
    Rtl {
        /// Time base at the start of the cycle.
        cycle: u64,
        /// What the model printed.
        text: String,
    },
    /// A capability that is a cargo feature.
    #[error("this build has no {0}: build ferronic-sim with the feature `{1}`")]
    NotBuilt(&'static str, &'static str),
    /// A file could not be written.
    #[error("{0} cannot be written: check the directory and its permissions")]
    File(String),
}

const fn parse_u16(text: &str) -> u16 {
    let bytes = text.as_bytes();
    let mut value = 0;
    let mut i = 0;
    while i < bytes.len() {
        value = value * 10 + (bytes[i] - b'0') as u16;
        i += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beat_round_trip_keeps_bytes() {
        let bytes: Vec<u8> = (0..61).collect();
        let mut data = [u64::MAX; DATA_WORDS];
        fill_beat(&mut data, &bytes);
        assert_eq!(&beat_bytes(&data)[..61], &bytes[..]);
        assert_eq!(data[7] >> 40, 0);
    }

    #[test]
    fn parse_u16_reads_decimal() {
        assert_eq!(parse_u16("64"), 64);
    }
}
