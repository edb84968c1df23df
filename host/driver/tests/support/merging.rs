//! Merging over buffers in ordinary memory. Buffers that were given back are overwritten, so that
//! what is used too late shows.
#![allow(dead_code)] // Each test file uses its part of it.

use std::cell::RefCell;

use ferronic::gro::{Arrival, Buffers, Gro, GroOptions, Part, Unit, Verified};
use ferronic::pci::PciError;
use ferronic::spec::NetHeader;
use ferronic::spec::net::HEADER_LEN;
use ferronic_oracle::frames::verdict;
use ferronic_oracle::{Segment, resegment_buffer};
use zerocopy::IntoBytes;

/// Receive buffers.
pub struct Memory {
    bytes: RefCell<Vec<u8>>,
    size: usize,
}

impl Memory {
    fn range(
        &self,
        buffer: u16,
        from: usize,
        len: usize,
    ) -> Result<std::ops::Range<usize>, PciError> {
        if from + len > self.size {
            return Err(PciError::OutOfRange {
                what: "a buffer",
                offset: from as u64,
                len: len as u64,
                size: self.size as u64,
            });
        }
        let start = usize::from(buffer) * self.size + from;
        Ok(start..start + len)
    }
}

impl Buffers for Memory {
    fn read(&self, buffer: u16, from: usize, out: &mut [u8]) -> Result<(), PciError> {
        out.copy_from_slice(&self.bytes.borrow()[self.range(buffer, from, out.len())?]);
        Ok(())
    }
    fn write(&self, buffer: u16, from: usize, data: &[u8]) -> Result<(), PciError> {
        self.bytes.borrow_mut()[self.range(buffer, from, data.len())?].copy_from_slice(data);
        Ok(())
    }
}

/// `first` and the next `n - 1`, of 100 bytes each.
pub fn stream(first: &Segment, n: usize) -> Vec<Segment> {
    let mut all = vec![first.clone()];
    for _ in 1..n {
        let next = all[all.len() - 1].next(100);
        all.push(next);
    }
    all
}

/// Something delivered.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub header: NetHeader,
    pub frame: Vec<u8>,
    pub segments: u16,
    pub verified: Verified,
}

impl Delivered {
    /// What was on the wire, by the oracle.
    pub fn cut(&self) -> Vec<Vec<u8>> {
        let buffer = [self.header.as_bytes(), &self.frame].concat();
        match resegment_buffer(&buffer) {
            Ok(frames) => frames,
            Err(e) => panic!("{e}: {:02x?}", &self.frame[..self.frame.len().min(120)]),
        }
    }
}

/// A queue that merges.
pub struct Merger {
    pub gro: Gro,
    pub memory: Memory,
    free: Vec<u16>,
    /// Bytes that the card writes into a buffer before it takes the next.
    pub piece: usize,
    /// The card says what it verified; else it says nothing.
    pub card_verifies: bool,
    pub out: Vec<Delivered>,
}

impl Merger {
    pub fn new(options: GroOptions, buffers: u16, size: usize) -> Self {
        Self {
            gro: Gro::new(options, buffers),
            memory: Memory {
                bytes: RefCell::new(vec![0xee; usize::from(buffers) * size]),
                size,
            },
            free: (0..buffers).rev().collect(),
            piece: size,
            card_verifies: true,
            out: Vec::new(),
        }
    }

    /// Buffers that are not held.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    pub fn offer(&mut self, frame: &[u8], now: u64) {
        let verified = self.card_verifies && verdict(frame).sum_ok;
        let header = NetHeader {
            flags: if verified { 2 } else { 0 },
            ..NetHeader::default()
        };
        self.offer_with(header, verified, frame, now);
    }

    /// A frame as the card delivers it.
    pub fn offer_with(&mut self, header: NetHeader, verified: bool, frame: &[u8], now: u64) {
        let count = (HEADER_LEN + frame.len()).div_ceil(self.piece);
        let header = NetHeader {
            num_buffers: (count as u16).into(),
            ..header
        };
        let bytes = [header.as_bytes(), frame].concat();
        let parts: Vec<_> = bytes
            .chunks(self.piece)
            .enumerate()
            .map(|(i, piece)| {
                let buffer = self.free.pop().expect("there are buffers");
                self.memory.write(buffer, 0, piece).unwrap();
                Part {
                    buffer,
                    skip: if i == 0 { HEADER_LEN as u16 } else { 0 },
                    len: piece.len() as u32,
                }
            })
            .collect();
        let arrival = Arrival {
            header,
            verified,
            len: frame.len(),
            parts: &parts,
        };
        if self.gro.merge(&self.memory, &arrival, now) {
            assert!(self.gro.next().is_none(), "nothing ends because of it");
            return;
        }
        self.gro.offer(&self.memory, &arrival, now).unwrap();
        self.drain();
    }

    pub fn end_of_burst(&mut self, now: u64) {
        self.gro.end_of_burst(&self.memory, now).unwrap();
        self.drain();
    }

    pub fn flush(&mut self) {
        self.gro.flush(&self.memory).unwrap();
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(unit) = self.gro.next() {
            let delivered = self.collect(&unit);
            self.out.push(delivered);
        }
    }

    fn collect(&mut self, unit: &Unit) -> Delivered {
        let parts: Vec<_> = self.gro.parts(unit).to_vec();
        assert_eq!(parts.len(), usize::from(unit.buffers));
        assert_eq!(unit.header.num_buffers.get(), unit.buffers);
        let mut frame = Vec::new();
        for part in &parts {
            let mut bytes = vec![0; part.len as usize];
            self.memory.read(part.buffer, 0, &mut bytes).unwrap();
            if frame.is_empty() {
                assert_eq!(
                    bytes[..HEADER_LEN],
                    *unit.header.as_bytes(),
                    "the virtio header stands in front"
                );
            }
            frame.extend(&bytes[usize::from(part.skip)..]);
            let poison = vec![0xee; self.memory.size];
            self.memory.write(part.buffer, 0, &poison).unwrap();
            assert!(!self.free.contains(&part.buffer), "delivered twice");
            self.free.push(part.buffer);
        }
        assert_eq!(frame.len(), unit.len as usize);
        Delivered {
            header: unit.header,
            frame,
            segments: unit.segments,
            verified: unit.verified,
        }
    }

    pub fn take(&mut self) -> Vec<Delivered> {
        std::mem::take(&mut self.out)
    }
}
