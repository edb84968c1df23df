//! What lies around a block: the RAM of frames, and host memory.

use std::collections::BTreeMap;

use crate::Bits;

/// A frame RAM as `rtl/common/lane_ram.sv` describes it: each lane has an address of its own, read
/// data comes one cycle after the request and stays.
pub struct FrameRam {
    lanes: usize,
    bytes: Vec<u8>,
}

impl FrameRam {
    /// A RAM of `bytes.len()` bytes, a power of two, for a data path of `data_w` bits.
    pub fn new(data_w: usize, bytes: Vec<u8>) -> Self {
        Self {
            lanes: data_w / 8,
            bytes,
        }
    }

    /// The byte at an address, which wraps at the size.
    pub fn byte(&self, address: usize) -> u8 {
        self.bytes[address % self.bytes.len()]
    }

    /// All lanes of one read: lane `l` is of word `word + increment[l]`.
    pub fn read(&self, word: u64, increment: u64) -> Bits {
        let lanes: Vec<u8> = (0..self.lanes)
            .map(|lane| {
                let word = word as usize + (increment >> lane & 1) as usize;
                self.byte(word * self.lanes + lane)
            })
            .collect();
        Bits::from_bytes(&lanes)
    }
}

/// Sparse host memory; bytes that were never written are not there.
#[derive(Default)]
pub struct HostMemory(BTreeMap<u64, u8>);

impl HostMemory {
    /// The byte at an address, if it was written.
    pub fn byte(&self, address: u64) -> Option<u8> {
        self.0.get(&address).copied()
    }

    /// A little-endian number of `len` bytes; bytes that are not there are 0.
    pub fn number(&self, address: u64, len: u64) -> u64 {
        (0..len)
            .map(|i| u64::from(self.byte(address.wrapping_add(i)).unwrap_or(0)) << (8 * i))
            .sum()
    }

    /// Stores bytes.
    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            self.0.insert(address.wrapping_add(i as u64), *byte);
        }
    }

    /// A posted write of whole DWs with byte enables: the bytes that it touches.
    pub fn write_dws(&mut self, address: u64, first: u64, last: u64, data: &[u8]) -> Vec<u64> {
        let dws = data.len() / 4;
        let mut touched = Vec::new();
        for (i, byte) in data.iter().enumerate() {
            let enable = match i / 4 {
                0 => first,
                dw if dw + 1 == dws => last,
                _ => 0xf,
            };
            if enable >> (i % 4) & 1 != 0 {
                let address = address + i as u64;
                self.0.insert(address, *byte);
                touched.push(address);
            }
        }
        touched
    }
}
