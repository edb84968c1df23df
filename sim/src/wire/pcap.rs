//! Captures as a wire: one is replayed to the card, what the card sends goes into another.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, TsResolution};

use super::capture::{CaptureError, CapturedFrame, read_capture};
use super::{Pace, RxFrame, Wire};
use crate::sim::NS_PER_CYCLE;

/// A replay and a recorder.
pub struct PcapWire {
    frames: Vec<CapturedFrame>,
    next: usize,
    /// Since when the driver is ready.
    started: Option<u64>,
    /// When the replay began.
    origin: u64,
    writer: Option<PcapWriter<Output>>,
    file: Option<Output>,
    output: PathBuf,
    failed: Option<io::Error>,
    pace: Pace,
    drop: bool,
}

impl PcapWire {
    /// Reads `input` whole and creates `output`.
    pub fn open(
        input: Option<&Path>,
        output: Option<&Path>,
        pace: Pace,
        drop: bool,
    ) -> Result<Self, CaptureError> {
        let frames = match input {
            Some(path) => read_capture(path)?,
            None => Vec::new(),
        };
        let file = output.map(Output::create).transpose()?;
        let writer = match (&file, output) {
            (Some(file), Some(path)) => Some(file.writer(path)?),
            _ => None,
        };
        Ok(Self {
            frames,
            next: 0,
            started: None,
            origin: 0,
            writer,
            file,
            output: output.map(Path::to_path_buf).unwrap_or_default(),
            failed: None,
            pace,
            drop,
        })
    }

    /// Frames that were not replayed yet.
    pub fn left(&self) -> usize {
        self.frames.len() - self.next
    }

    fn due(&self) -> Option<u64> {
        self.started?;
        let frame = self.frames.get(self.next)?;
        if self.pace != Pace::Captured {
            return Some(self.origin);
        }
        let first = self.frames.first().map_or(Duration::ZERO, |f| f.time);
        let after = frame.time.saturating_sub(first);
        let cycles = u64::try_from(after.as_nanos() / u128::from(NS_PER_CYCLE)).unwrap_or(u64::MAX);
        Some(self.origin.saturating_add(cycles))
    }
}

/// The file behind a `PcapWriter`, which gives no access to it for flushing.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<BufWriter<File>>>);

impl Output {
    pub(super) fn create(path: &Path) -> Result<Self, CaptureError> {
        let file = File::create(path).map_err(|source| CaptureError::Open {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Self(Arc::new(Mutex::new(BufWriter::new(file)))))
    }

    pub(super) fn writer(&self, path: &Path) -> Result<PcapWriter<Self>, CaptureError> {
        let header = PcapHeader {
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        PcapWriter::with_header(self.clone(), header).map_err(|source| CaptureError::Write {
            path: path.display().to_string(),
            source,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Output {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.lock().write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

impl Wire for PcapWire {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        if self.due()? > now {
            return None;
        }
        let frame = self.frames.get(self.next)?;
        self.next += 1;
        Some(RxFrame {
            data: frame.data.clone(),
            abort: false,
        })
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        Some(self.due()?.max(now))
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if aborted || self.failed.is_some() {
            return;
        }
        let packet = PcapPacket {
            timestamp: Duration::from_nanos(now.saturating_mul(NS_PER_CYCLE)),
            orig_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
        };
        if let Err(error) = writer.write_packet(&packet) {
            let error = io::Error::other(error.to_string());
            log::error!("writing {}: {error}", self.output.display());
            self.failed = Some(error);
        }
    }

    fn driver_ready(&mut self, now: u64, ready: bool) {
        if !ready {
            self.started = None;
        } else if self.started.is_none() {
            self.started = Some(now);
            if self.next == 0 {
                self.origin = now;
            }
        }
    }

    fn restart(&mut self) {
        self.next = 0;
        self.started = None;
        if let Err(error) = self.flush() {
            log::error!("writing {}: {error}", self.output.display());
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        match &mut self.file {
            Some(file) => file.flush(),
            None => Ok(()),
        }
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn lossless(&self) -> bool {
        !self.drop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wire whose input is what another one recorded.
    fn recorded(dir: &Path, times: &[u64], pace: Pace) -> PcapWire {
        let path = dir.join("frames.pcap");
        let mut recorder = PcapWire::open(None, Some(&path), Pace::Line, false).expect("create");
        for (i, time) in times.iter().enumerate() {
            recorder.sent(*time, &[i as u8; 60], false);
        }
        recorder.sent(0, &[0xff; 60], true);
        recorder.flush().expect("flush");
        PcapWire::open(Some(&path), None, pace, false).expect("read")
    }

    #[test]
    fn replay_waits_for_the_driver_and_starts_again_for_a_new_client() {
        let dir = tempfile::tempdir().expect("directory");
        let mut wire = recorded(dir.path(), &[0, 1], Pace::Line);
        assert_eq!(wire.next_event(5), None);
        assert!(wire.next_frame(5).is_none());
        wire.driver_ready(10, true);
        assert_eq!(wire.next_frame(10).map(|f| f.data[0]), Some(0));
        wire.driver_ready(20, false);
        assert!(wire.next_frame(20).is_none());
        wire.driver_ready(30, true);
        assert_eq!(wire.next_frame(30).map(|f| f.data[0]), Some(1));
        // The void frame was not recorded.
        assert_eq!((wire.left(), wire.next_event(40)), (0, None));
        wire.restart();
        assert!(wire.next_frame(50).is_none());
        wire.driver_ready(60, true);
        assert_eq!(wire.next_frame(60).map(|f| f.data[0]), Some(0));
    }

    #[test]
    fn captured_pace_follows_the_time_stamps() {
        let dir = tempfile::tempdir().expect("directory");
        let mut wire = recorded(dir.path(), &[1000, 1500], Pace::Captured);
        wire.driver_ready(7, true);
        assert!(wire.next_frame(7).is_some());
        assert!(wire.next_frame(506).is_none());
        assert_eq!(wire.next_event(8), Some(507));
        assert!(wire.next_frame(507).is_some());
    }
}
