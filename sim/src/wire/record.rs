//! Another wire, with a record of what passes.

use std::borrow::Cow;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::{PcapPacket, PcapWriter};

use super::capture::CaptureError;
use super::pcap::Output;
use super::{Pace, RxFrame, Wire};
use crate::sim::NS_PER_CYCLE;

/// A wire that writes every frame, of either direction, into a capture.
pub struct RecordWire {
    wire: Box<dyn Wire>,
    file: Output,
    writer: PcapWriter<Output>,
}

impl RecordWire {
    /// Creates the capture.
    pub fn create(wire: Box<dyn Wire>, path: &Path) -> Result<Self, CaptureError> {
        let file = Output::create(path)?;
        let writer = file.writer(path)?;
        Ok(Self { wire, file, writer })
    }

    fn record(&mut self, now: u64, frame: &[u8]) {
        let packet = PcapPacket {
            timestamp: Duration::from_nanos(now.saturating_mul(NS_PER_CYCLE)),
            orig_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
        };
        if let Err(error) = self.writer.write_packet(&packet) {
            log::warn!("recording a frame: {error}");
        }
    }
}

impl Wire for RecordWire {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        let frame = self.wire.next_frame(now)?;
        self.record(now, &frame.data);
        Some(frame)
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.wire.next_event(now)
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        if !aborted {
            self.record(now, frame);
        }
        self.wire.sent(now, frame, aborted);
    }

    fn driver_ready(&mut self, now: u64, ready: bool) {
        self.wire.driver_ready(now, ready);
    }

    fn restart(&mut self) {
        self.wire.restart();
    }

    fn poll(&mut self) -> io::Result<()> {
        self.wire.poll()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.wire.fd()
    }

    fn flush(&mut self) -> io::Result<()> {
        let recorded = self.file.flush();
        self.wire.flush().and(recorded)
    }

    fn pace(&self) -> Pace {
        self.wire.pace()
    }

    fn lossless(&self) -> bool {
        self.wire.lossless()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{LoopbackWire, read_capture};

    #[test]
    fn both_directions_are_recorded_with_simulated_times() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("wire.pcap");
        let mut wire = RecordWire::create(Box::new(LoopbackWire::default()), &path).expect("wire");
        wire.sent(125, &[1; 60], false);
        wire.sent(126, &[2; 60], true);
        assert!(wire.next_frame(250).is_some_and(|frame| !frame.abort));
        wire.flush().expect("flush");
        let frames = read_capture(&path).expect("capture");
        let seen: Vec<(u128, u8)> = frames
            .iter()
            .map(|frame| (frame.time.as_nanos(), frame.data[0]))
            .collect();
        assert_eq!(seen, [(1000, 1), (2000, 1)]);
    }
}
