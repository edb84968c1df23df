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
    /// Bytes that there will be, where bytes are counted and not frames.
    total: Option<u64>,
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
            total: None,
            frames: 0,
            bytes: 0,
        }
    }

    /// Starts to count bytes, of which there will be `total`.
    pub fn of_bytes(verb: &'static str, total: u64) -> Self {
        Self {
            total: Some(total),
            ..Self::new(verb)
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
        if let Some(total) = self.total {
            let rate = bytes as f64 * 8e-6 / seconds.max(1e-3);
            return format!("{verb} {bytes} of {total} bytes in {seconds:.1} s ({rate:.1} Mbit/s)");
        }
        let rate = frames as f64 / seconds.max(1e-3);
        format!("{verb} {frames} frames, {bytes} bytes in {seconds:.1} s ({rate:.0} frames/s)")
    }

    /// Takes away what a terminal shows.
    pub fn clear(&self) {
        if self.shown && self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }

    /// The last line.
    pub fn finish(&self) {
        self.clear();
        let _ = writeln!(stderr(), "{}", self.line());
    }
}
