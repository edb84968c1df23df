//! Between a [`Wire`], which knows frames, and the card's streams, which know beats.

use crate::model::{Inputs, Outputs, beat_bytes, fill_beat};
use crate::rng::Rng;

use super::{RxFrame, Wire};

/// Random stalls of the frame streams, in thousandths of the cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireStalls {
    /// Gaps between beats towards the card.
    pub rx: u16,
    /// The wire is not ready for a beat.
    pub tx: u16,
}

/// Counters of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireStats {
    /// Frames given to the card.
    pub rx_frames: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    /// Frames that the card sent.
    pub tx_frames: u64,
    /// Their bytes, without FCS.
    pub tx_bytes: u64,
    /// Frames that ended with an error.
    pub tx_aborted: u64,
    /// Cycle in which the last beat of the last sent frame was taken.
    pub last_tx: u64,
    /// Cycle in which the last beat of the last received frame was taken.
    pub last_rx: u64,
}

/// The port: one wire and the streams of the card.
pub struct WirePort {
    wire: Box<dyn Wire>,
    /// Random stalls; may be changed at any time.
    pub stalls: WireStalls,
    /// Counters.
    pub stats: WireStats,
    rng: Rng,
    width: usize,
    rx: Option<RxFrame>,
    rx_at: usize,
    /// The beat was shown and not taken: it has to stay.
    rx_shown: bool,
    rx_free: u64,
    tx: Vec<u8>,
    tx_free: u64,
    tx_fault: Option<&'static str>,
}

/// More than any frame of the card: a frame that does not end is a fault.
const MAX_FRAME: usize = 16 * 1024;

impl WirePort {
    /// A port with beats of `width` bytes.
    pub fn new(wire: Box<dyn Wire>, width: usize, seed: u64) -> Self {
        Self {
            wire,
            stalls: WireStalls::default(),
            stats: WireStats::default(),
            rng: Rng::new(seed),
            width,
            rx: None,
            rx_at: 0,
            rx_shown: false,
            rx_free: 0,
            tx: Vec::with_capacity(MAX_FRAME),
            tx_free: 0,
            tx_fault: None,
        }
    }

    /// The wire.
    pub fn wire(&self) -> &dyn Wire {
        self.wire.as_ref()
    }

    /// The wire.
    pub fn wire_mut(&mut self) -> &mut dyn Wire {
        self.wire.as_mut()
    }

    /// Replaces the wire; a frame under way is finished first.
    pub fn set_wire(&mut self, wire: Box<dyn Wire>) {
        self.wire = wire;
    }

    /// A frame is under way in either direction.
    pub fn is_busy(&self) -> bool {
        self.rx.is_some() || !self.tx.is_empty()
    }

    /// When the port has something to do without the card; `None`: nothing known.
    pub fn next_event(&self, now: u64) -> Option<u64> {
        if self.rx.is_some() {
            return Some(now);
        }
        Some(self.wire.next_event(now)?.max(self.rx_free))
    }

    /// What the card did wrong on its transmit stream, once.
    pub fn take_fault(&mut self) -> Option<&'static str> {
        self.tx_fault.take()
    }

    /// One cycle.
    pub fn cycle(&mut self, now: u64, output: &Outputs, input: &mut Inputs) {
        self.receive(now, output, input);
        self.transmit(now, output, input);
    }

    fn receive(&mut self, now: u64, output: &Outputs, input: &mut Inputs) {
        input.rx.valid = 0;
        if self.rx.is_none() && now >= self.rx_free {
            self.rx = self.wire.next_frame(now).filter(|f| !f.data.is_empty());
            self.rx_at = 0;
        }
        let Some(frame) = &self.rx else { return };
        if !self.rx_shown && self.rng.chance(self.stalls.rx) {
            return;
        }
        let end = (self.rx_at + self.width).min(frame.data.len());
        let last = end == frame.data.len();
        input.rx.valid = 1;
        input.rx.last = u8::from(last);
        input.rx.abort = u8::from(last && frame.abort);
        input.rx.bytes = (end - self.rx_at) as u8;
        fill_beat(&mut input.rx.data, &frame.data[self.rx_at..end]);
        self.rx_shown = output.rx_ready == 0;
        if self.rx_shown {
            return;
        }
        if self.rx_at == 0 {
            self.rx_free = now + self.wire.pace().cycles(frame.data.len());
        }
        self.rx_at = end;
        if last {
            self.stats.rx_frames += 1;
            self.stats.rx_bytes += frame.data.len() as u64;
            self.stats.last_rx = now;
            self.rx = None;
        }
    }

    fn transmit(&mut self, now: u64, output: &Outputs, input: &mut Inputs) {
        let ready = now >= self.tx_free && !self.rng.chance(self.stalls.tx);
        input.tx_ready = u8::from(ready);
        let beat = &output.tx;
        if beat.valid == 0 || !ready {
            return;
        }
        let bytes = usize::from(beat.bytes);
        let whole = beat.last == 1 || bytes == self.width;
        // Only the end of a void frame may carry nothing.
        let some = bytes > 0 || (beat.last == 1 && beat.abort == 1);
        if bytes > self.width || !whole || !some {
            self.tx_fault = Some("a beat of a sent frame has a wrong number of bytes");
        } else if self.tx.len() + bytes > MAX_FRAME {
            self.tx_fault = Some("a sent frame does not end");
            self.tx.clear();
        }
        self.tx
            .extend_from_slice(&beat_bytes(&beat.data)[..bytes.min(self.width)]);
        if beat.last == 1 {
            let aborted = beat.abort == 1;
            if aborted {
                self.stats.tx_aborted += 1;
            } else {
                self.stats.tx_frames += 1;
                self.stats.tx_bytes += self.tx.len() as u64;
            }
            self.stats.last_tx = now;
            // A frame takes its time on the wire from its first beat; the next may come after it.
            self.tx_free = now + 1 + self.wire.pace().cycles(self.tx.len());
            self.wire.sent(now, &self.tx, aborted);
            self.tx.clear();
        }
    }
}
