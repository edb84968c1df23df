//! A cable plugged back into its own port.

use std::collections::VecDeque;

use super::{RxFrame, Wire};

/// Frames that the card sends come back to it.
#[derive(Debug, Default)]
pub struct LoopbackWire(VecDeque<RxFrame>);

/// Frames held while the card does not take them: a cable has no more memory than this.
const LIMIT: usize = 4096;

impl Wire for LoopbackWire {
    fn next_frame(&mut self, _now: u64) -> Option<RxFrame> {
        self.0.pop_front()
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.0.front().map(|_| now)
    }

    fn sent(&mut self, _now: u64, frame: &[u8], aborted: bool) {
        if self.0.len() < LIMIT {
            self.0.push_back(RxFrame {
                data: frame.to_vec(),
                abort: aborted,
            });
        }
    }

    fn driver_ready(&mut self, _now: u64, ready: bool) {
        if !ready {
            self.0.clear();
        }
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}
