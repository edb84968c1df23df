//! Merging in the driver alone.

use std::cell::UnsafeCell;

use ferronic::gro::{Arrival, Buffers, Gro, GroOptions, Part};
use ferronic::pci::PciError;
use ferronic::queue::MAX_BURST;
use ferronic::spec::NetHeader;
use ferronic::spec::net::HEADER_LEN;

use crate::recording::{Frame, Recording};

/// Bytes of a buffer; as in [`crate::host`].
const SIZE: usize = 4096;

/// Buffers that are accessed as the driver does it: checked, then copied.
struct Memory(UnsafeCell<Vec<u8>>);

impl Buffers for Memory {
    #[inline]
    fn read(&self, buffer: u16, from: usize, out: &mut [u8]) -> Result<(), PciError> {
        let at = usize::from(buffer) * SIZE + from;
        // SAFETY: one thread, and no reference outlives a call.
        let all = unsafe { &*self.0.get() };
        out.copy_from_slice(&all[at..at + out.len()]);
        Ok(())
    }
    fn write(&self, buffer: u16, from: usize, data: &[u8]) -> Result<(), PciError> {
        let at = usize::from(buffer) * SIZE + from;
        // SAFETY: as above.
        let all = unsafe { &mut *self.0.get() };
        all[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// A receive queue, as far as merging is concerned.
struct Merging {
    gro: Gro,
    memory: Memory,
    /// What was delivered last.
    parts: Vec<Part>,
}

// What counts is what is in here: not the loops that call it.
impl Merging {
    #[inline(never)]
    fn measured_frame(&mut self, frame: &Arrival<'_>) -> Result<(), Box<PciError>> {
        if self.gro.merge(&self.memory, frame, 0) {
            return Ok(());
        }
        self.other(frame)
    }

    /// Called by the former alone.
    #[inline(never)]
    fn other(&mut self, frame: &Arrival<'_>) -> Result<(), Box<PciError>> {
        self.gro.offer(&self.memory, frame, 0)?;
        self.deliver();
        Ok(())
    }

    #[inline(never)]
    fn measured_end(&mut self) -> Result<(), Box<PciError>> {
        self.gro.end_of_burst(&self.memory, 0)?;
        self.deliver();
        Ok(())
    }

    #[inline]
    fn deliver(&mut self) {
        while let Some(unit) = self.gro.next() {
            self.parts.clear();
            self.parts.extend_from_slice(self.gro.parts(&unit));
        }
    }

    fn burst(&mut self, frames: &[(usize, Vec<Part>)]) -> Result<(), Box<PciError>> {
        for (len, list) in frames {
            let header = NetHeader {
                flags: 2,
                num_buffers: (list.len() as u16).into(),
                ..NetHeader::default()
            };
            let frame = Arrival {
                header,
                verified: true,
                len: *len,
                parts: list,
            };
            self.measured_frame(&frame)?;
        }
        self.measured_end()
    }
}

/// Merges a recording of frames that are not merged.
///
/// # Errors
/// When some are.
pub fn merge(recording: &Recording) -> Result<Vec<(&'static str, u64)>, String> {
    let mut all = recording.iter().flatten();
    if all.any(|frame| frame.header[1] != 0 || frame.header[0] != 2) {
        return Err("something is merged already, or not verified".to_owned());
    }
    let needed = |burst: &Vec<Frame>| -> usize {
        let needed = burst
            .iter()
            .map(|frame| (HEADER_LEN + frame.bytes.len()).div_ceil(SIZE));
        needed.sum()
    };
    let buffers = recording.iter().map(needed).max().unwrap_or(1);
    let mut merging = Merging {
        gro: Gro::new(GroOptions::default(), buffers as u16),
        memory: Memory(UnsafeCell::new(vec![0; buffers * SIZE])),
        parts: Vec::with_capacity(buffers),
    };
    // As the driver takes them at once.
    for together in recording.iter().flat_map(|frames| frames.chunks(MAX_BURST)) {
        let (mut frames, mut next) = (Vec::new(), 0_u16);
        for frame in together {
            let bytes = [&frame.header[..], &frame.bytes].concat();
            let mut list = Vec::new();
            for piece in bytes.chunks(SIZE) {
                let written = merging.memory.write(next, 0, piece);
                written.map_err(|e| e.to_string())?;
                list.push(Part {
                    buffer: next,
                    skip: if list.is_empty() {
                        HEADER_LEN as u16
                    } else {
                        0
                    },
                    len: piece.len() as u32,
                });
                next += 1;
            }
            frames.push((frame.bytes.len(), list));
        }
        merging.burst(&frames).map_err(|e| e.to_string())?;
    }
    let stats = merging.gro.stats();
    Ok(vec![("segments", stats.segments), ("units", stats.units)])
}
