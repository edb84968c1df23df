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
    tx_begun: u64,
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
            tx_begun: 0,
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

    /// True if no beat will pass unless the card does something: no frame is known to come, or one is
    /// shown and not taken.
    pub fn waits(&self, now: u64) -> bool {
        self.tx.is_empty() && (self.rx_shown || self.next_event(now).is_none())
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
        if self.tx.is_empty() {
            self.tx_begun = now;
        }
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
            // A frame takes its time on the wire from its first beat on.
            let pace = self.wire.pace().cycles(self.tx.len());
            self.tx_free = (now + 1).max(self.tx_begun + pace);
            self.wire.sent(now, &self.tx, aborted);
            self.tx.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Pace, WireQueue};

    /// Runs the port against a card that sends back what it gets, beat by beat.
    fn echo(port: &mut WirePort, cycles: u64) {
        let (mut output, mut input) = (Outputs::default(), Inputs::default());
        output.rx_ready = 1;
        for now in 0..cycles {
            port.cycle(now, &output, &mut input);
            let taken = output.tx.valid == 1 && input.tx_ready == 1;
            if taken || output.tx.valid == 0 {
                output.tx = input.rx;
            } else if input.rx.valid == 1 {
                panic!("this card has room for one beat");
            }
        }
    }

    #[test]
    fn frames_of_every_length_come_back_whole() {
        let (queue, wire) = WireQueue::new();
        let mut port = WirePort::new(wire, 8, 0);
        port.stalls.rx = 300;
        let frames: Vec<Vec<u8>> = (1..100).map(|n| (0..n).collect()).collect();
        frames.iter().for_each(|f| queue.push(f.clone()));
        queue.push_aborted([1, 2, 3]);
        echo(&mut port, 5000);
        let sent = queue.take_all();
        assert_eq!(sent.len(), 100);
        assert!(
            sent.iter()
                .zip(&frames)
                .all(|(s, f)| s.data == *f && !s.aborted)
        );
        assert!(sent[99].aborted);
        assert_eq!((port.stats.tx_frames, port.stats.tx_aborted), (99, 1));
        assert!(!port.is_busy());
    }

    #[test]
    fn gigabit_pace_counts_preamble_padding_fcs_and_gap() {
        let (queue, wire) = WireQueue::new();
        queue.set_pace(Pace::Gigabit);
        let mut port = WirePort::new(wire, 8, 0);
        (0..4).for_each(|_| queue.push([0; 60]));
        (0..2).for_each(|_| queue.push([0; 1514]));
        echo(&mut port, 10_000);
        let times: Vec<u64> = queue.take_all().iter().map(|f| f.time).collect();
        assert_eq!(times[1] - times[0], 84);
        assert_eq!(times[5] - times[4], 1538);
    }
}
