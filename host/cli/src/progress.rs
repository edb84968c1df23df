//! What is under way, on standard error, for anything that takes more than a second.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Between two lines on a terminal, and elsewhere.
const PERIOD: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Counts frames and says so now and then.
pub struct Progress {
    verb: &'static str,
    start: Instant,
    next: Instant,
    terminal: bool,
    shown: bool,
    /// Frames so far.
    pub frames: u64,
    /// Bytes so far.
    pub bytes: u64,
}

impl Progress {
    /// Starts to count; `verb` is what is done with frames.
    pub fn new(verb: &'static str) -> Self {
        let start = Instant::now();
        let terminal = stderr().is_terminal();
        Self {
            verb,
            start,
            next: start + PERIOD.0,
            terminal,
            shown: false,
            frames: 0,
            bytes: 0,
        }
    }

    /// One more frame.
    pub fn frame(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }

    /// Says something if it is time.
    pub fn tick(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + if self.terminal { PERIOD.0 } else { PERIOD.1 };
        self.shown = true;
        let end = if self.terminal { "\r" } else { "\n" };
        // A closed standard error is no reason to stop.
        let _ = write!(stderr(), "{}{end}", self.line());
    }

    fn line(&self) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        let (verb, frames, bytes) = (self.verb, self.frames, self.bytes);
        let rate = frames as f64 / seconds.max(1e-3);
        format!("{verb} {frames} frames, {bytes} bytes in {seconds:.1} s ({rate:.0} frames/s)")
    }

    /// The last line.
    pub fn finish(&self) {
        let clear = if self.shown && self.terminal {
            "\r\x1b[K"
        } else {
            ""
        };
        let _ = writeln!(stderr(), "{clear}{}", self.line());
    }
}
