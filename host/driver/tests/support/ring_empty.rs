//! The ring-empty interrupt, max-age and marker of the card in software. It has no time: a hold-off is
//! over at once, and a completion is too old when a test says so.

use std::collections::BTreeMap;

use ferronic::spec::window as w;

use super::Model;

/// Number of the marker's bit in a descriptor's flags.
pub const MARKER_BIT: u32 = 14;

/// What the card keeps of a transmit queue.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    unreported: u32,
    marked: bool,
    /// Interrupts by cause: empty, max-age, marker.
    irqs: [u32; 3],
}

pub struct RingEmpty {
    registers: BTreeMap<u64, u32>,
    rows: Vec<Row>,
    /// Unreported completions are too old.
    pub aged: bool,
}

impl RingEmpty {
    pub fn new(pairs: u16) -> Self {
        Self {
            registers: BTreeMap::new(),
            rows: vec![Row::default(); pairs.into()],
            aged: false,
        }
    }

    pub fn register(&self, register: u64, pair: usize) -> u32 {
        self.read(register + w::TX_EMPTY_STRIDE * pair as u64)
    }

    pub fn read(&self, offset: u64) -> u32 {
        if offset == w::TX_EMPTY_CAPS {
            return MARKER_BIT;
        }
        let pair = ((offset - w::TX_EMPTY) / w::TX_EMPTY_STRIDE) as usize;
        let register = w::TX_EMPTY + (offset - w::TX_EMPTY) % w::TX_EMPTY_STRIDE;
        let irqs = self.rows.get(pair).map_or([0; 3], |row| row.irqs);
        match register {
            w::TX_IRQ_EMPTY => irqs[0],
            w::TX_IRQ_MAX_AGE => irqs[1],
            w::TX_IRQ_MARKER => irqs[2],
            _ => self.registers.get(&offset).copied().unwrap_or(0),
        }
    }

    pub fn write(&mut self, offset: u64, value: u32) {
        let register = w::TX_EMPTY + (offset - w::TX_EMPTY) % w::TX_EMPTY_STRIDE;
        let mask = match register {
            w::TX_EMPTY => w::TX_EMPTY_HOLDOFF.mask() | w::TX_EMPTY_ENABLE.mask(),
            w::TX_MAX_AGE => w::TX_MAX_AGE_CYCLES.mask(),
            w::TX_MARKER => w::TX_MARKER_ENABLE.mask(),
            _ => return,
        };
        self.registers.insert(offset, value & mask);
    }

    pub fn used(&mut self, pair: usize, flags: u16) {
        let enabled = self.register(w::TX_MARKER, pair) != 0;
        let row = &mut self.rows[pair];
        row.unreported += 1;
        row.marked |= enabled && flags & (1 << MARKER_BIT) != 0;
    }

    pub fn reported(&mut self, pair: usize) {
        (self.rows[pair].unreported, self.rows[pair].marked) = (0, false);
    }

    pub fn reset(&mut self, pair: usize) {
        let first = w::TX_EMPTY + w::TX_EMPTY_STRIDE * pair as u64;
        self.registers
            .retain(|offset, _| !(first..first + w::TX_EMPTY_STRIDE).contains(offset));
        self.reported(pair);
    }

    /// The cause for an interrupt now; `empty`: the queue has nothing more.
    fn due(&mut self, pair: usize, empty: bool) -> Option<usize> {
        let on = w::TX_EMPTY_ENABLE.get(self.register(w::TX_EMPTY, pair)) == 1;
        let age = self.register(w::TX_MAX_AGE, pair) != 0;
        let row = &self.rows[pair];
        let cause = match () {
            () if row.marked => 2,
            () if row.unreported == 0 => return None,
            () if on && empty => 0,
            () if age && self.aged => 1,
            () => return None,
        };
        self.rows[pair].irqs[cause] += 1;
        Some(cause)
    }
}

impl Model {
    pub fn ring_empty_interrupts(&mut self, pair: usize) {
        let queue = 2 * pair + 1;
        // Asked to come again, it has not run empty.
        let empty = !self.is_kicked(queue);
        if let Some(card) = &mut self.ring_empty
            && card.due(pair, empty).is_some()
        {
            self.raise(queue);
        }
    }
}
