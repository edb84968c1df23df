//! Transmit steering: its rules, against an oracle that was written from them alone.

mod bugs;
mod changes;
mod lane;
mod masks;
mod memory;
mod order;
mod port;
mod random;
mod rules;
#[path = "../support/mod.rs"]
mod support;

use ferronic::xps::{Cpus, Mask, Packet, Xps};

/// A card with so many queue pairs in a machine of so many CPUs.
fn card(pairs: u16, cpus: u16) -> Xps {
    Xps::new(pairs, pairs, Cpus::new(cpus)).unwrap()
}

fn list(text: &str, bits: usize) -> Mask {
    Mask::from_list(text, bits).unwrap()
}

/// A packet of this flow, sent by this CPU.
fn from(cpu: u32, hash: u32) -> Packet {
    Packet {
        cpu,
        hash,
        ..Packet::default()
    }
}

/// A hash that is this part of all hashes.
fn part(numerator: u64, denominator: u64) -> u32 {
    u32::try_from((numerator << 32) / denominator).unwrap()
}
