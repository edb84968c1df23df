//! Merges a bulk stream for the sake of being measured:
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*measured*'`.
//!
//! Arguments: segments, flows interleaved, payload of a segment, 4 or 6, stamps or plain. Prints how
//! many segments became how many units; instructions divided by segments are the cost of one, frames
//! put into buffers not counted.

use std::cell::UnsafeCell;

use ferronic::gro::{Arrival, Buffers, Gro, GroOptions, Part};
use ferronic::pci::PciError;
use ferronic::spec::NetHeader;
use ferronic_oracle::Segment;

/// Bytes of a buffer.
const SIZE: usize = 2048;
/// Frames of a burst.
const BURST: usize = 64;

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

#[inline(never)]
fn measured(gro: &mut Gro, memory: &Memory, lens: &[usize]) -> u64 {
    let mut parts = 0;
    for (buffer, len) in (0..).zip(lens) {
        let header = NetHeader {
            flags: 2,
            num_buffers: 1.into(),
            ..NetHeader::default()
        };
        let frame = Arrival {
            header,
            verified: true,
            len: *len,
            parts: &[Part {
                buffer,
                skip: 12,
                len: 12 + *len as u32,
            }],
        };
        if !gro.merge(memory, &frame, 0) {
            gro.offer(memory, &frame, 0).expect("the frame is there");
            parts += drain(gro);
        }
    }
    gro.end_of_burst(memory, 0).expect("the frames are there");
    parts + drain(gro)
}

fn drain(gro: &mut Gro) -> u64 {
    let mut parts = 0;
    while let Some(unit) = gro.next() {
        parts += gro
            .parts(&unit)
            .iter()
            .map(|part| u64::from(part.len))
            .sum::<u64>();
    }
    parts
}

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| {
        args.get(i)
            .and_then(|arg| arg.parse().ok())
            .unwrap_or(default)
    };
    let (count, flows, payload) = (number(0, 64_000), number(1, 1), number(2, 1448));
    let plain = match number(3, 4) {
        6 => Segment::v6(1, payload),
        _ => Segment::v4(1, payload),
    };
    let plain = match args.get(4).map(String::as_str) {
        Some("plain") => plain,
        _ => plain.stamps(1, 1),
    };
    let mut next: Vec<_> = (0..flows)
        .map(|i| Segment {
            ports: [i as u16, 80],
            ..plain.clone()
        })
        .collect();
    let memory = Memory(UnsafeCell::new(vec![0; BURST * SIZE]));
    let mut gro = Gro::new(GroOptions::default(), BURST as u16);
    let mut bytes = 0;
    for burst in 0..count.div_ceil(BURST) {
        let mut lens = Vec::with_capacity(BURST);
        for i in 0..BURST {
            let flow = &mut next[(burst * BURST + i) % flows];
            let frame = flow.bytes();
            *flow = flow.next(payload);
            memory.write(i as u16, 12, &frame).expect("it fits");
            lens.push(frame.len());
        }
        bytes += measured(&mut gro, &memory, &lens);
    }
    let stats = gro.stats();
    println!(
        "{} segments, {} units, {:.1} segments a unit, {bytes} bytes of buffers",
        stats.segments,
        stats.units,
        stats.segments_a_unit()
    );
}
