//! What the card's TLPs do once they arrive: memory, messages, completions.

use super::completer::PendingRead;
use super::{
    CARD_ID, Fault, MAX_MEMORY_FAULTS, MSI_WINDOW, MemoryFault, MsiMessage, RootComplex, Up,
};
use crate::tlp::{self, Kind};

/// Bytes that no read asked for: a card that uses them shows it.
const FILL: u8 = 0xee;

impl RootComplex {
    pub(super) fn take_effect(&mut self, now: u64, up: Up) {
        match tlp::kind(&up.header) {
            Kind::MemWrite => self.memory_write(now, &up),
            Kind::MemRead => self.memory_read(&up),
            Kind::Completion | Kind::CompletionData => {
                match self.requester.complete(&up.header, &up.payload, CARD_ID) {
                    Ok(Some(limits)) => self.limits = limits,
                    Ok(None) => {}
                    Err(rule) => self.checker.violate(now, rule, &up.header),
                }
            }
            Kind::CfgRead | Kind::CfgWrite | Kind::Other(_) => {
                let rule = "a TLP of a kind that the card must not send";
                self.checker.violate(now, rule, &up.header);
            }
        }
        if up.payload.capacity() > 0 {
            self.spare.push(up.payload);
        }
    }

    fn memory_write(&mut self, now: u64, up: &Up) {
        let address = tlp::address(&up.header);
        if MSI_WINDOW.contains(&address) {
            self.message(now, address, up);
            return;
        }
        if up.payload.len() != tlp::payload_bytes(&up.header) {
            return; // a violation already
        }
        let (first, last) = tlp::byte_enables(&up.header);
        let end = up.payload.len();
        let contiguous =
            matches!(first, 0xf | 0xe | 0xc | 8) && (end == 4 || matches!(last, 1 | 3 | 7 | 0xf));
        if contiguous {
            let (start, count) = tlp::enabled_span(&up.header);
            let skip = (start - address) as usize;
            self.store(start, &up.payload[skip..skip + count]);
            return;
        }
        // Holes: byte by byte.
        for (i, byte) in up.payload.iter().enumerate() {
            let enables = if i < 4 {
                first
            } else if i >= end - 4 {
                last
            } else {
                0xf
            };
            if enables >> (i % 4) & 1 == 1 {
                self.store(address + i as u64, std::slice::from_ref(byte));
            }
        }
    }

    fn store(&mut self, address: u64, data: &[u8]) {
        if let Err(fault) = self.memory.write(address, data) {
            self.note_fault(fault);
        }
    }

    fn note_fault(&mut self, fault: MemoryFault) {
        log::debug!("the card's access was refused: {fault:x?}");
        self.stats.refused += 1;
        if self.memory_faults.len() < MAX_MEMORY_FAULTS {
            self.memory_faults.push(fault);
        }
    }

    fn message(&mut self, now: u64, address: u64, up: &Up) {
        match (up.payload.as_slice(), tlp::byte_enables(&up.header)) {
            (&[a, b, c, d], (0xf, 0)) => {
                self.stats.interrupts += 1;
                self.messages.push_back(MsiMessage {
                    time: now,
                    address,
                    data: u32::from_le_bytes([a, b, c, d]),
                });
            }
            _ => {
                let rule = "an MSI-X message that is not one whole DW";
                self.checker.violate(now, rule, &up.header);
            }
        }
    }

    fn memory_read(&mut self, up: &Up) {
        let (first, count) = tlp::enabled_span(&up.header);
        let skip = (first & 3) as usize;
        let mut image = self.completer.buffer();
        image.clear();
        image.resize((skip + count).next_multiple_of(4), FILL);
        let mut fault = self.faults.pick(first, &mut self.rng);
        // A flush reads nothing.
        let flush = tlp::byte_enables(&up.header).0 == 0;
        if !flush && let Err(refused) = self.memory.read(first, &mut image[skip..skip + count]) {
            self.note_fault(refused);
            fault = fault.or(Some(Fault::UnsupportedRequest));
        }
        if fault == Some(Fault::Lost) {
            return;
        }
        let jitter = self.rng.below(self.config.latency_jitter);
        self.completer.add(PendingRead {
            ready_at: up.accepted + self.config.read_latency + jitter,
            requester: tlp::requester(&up.header),
            tag: tlp::request_tag(&up.header),
            first,
            count,
            image,
            done: 0,
            fault,
        });
    }
}
