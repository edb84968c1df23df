//! `ferronic capture`

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use ferronic::gro::{GroOptions, GroStats};
use ferronic::lro::Profile;
use ferronic::spec::net::MAX_SEGMENTED_FRAME;
use ferronic::{MAX_BURST, QueuePair, RxFrame};
use pcap_file::pcap::{PcapHeader, PcapWriter, RawPcapPacket};
use pcap_file::{DataLink, Endianness, TsResolution};
use serde_json::json;

use crate::control::Control;
use crate::control::owner::Plain;
use crate::error::{CliError, Outcome};
use crate::files::Output;
use crate::merging::LroArgs;
use crate::options::{QueueOptions, Stop, Switch, merged};
use crate::progress::Progress;

/// Longest wait for an interrupt: signals and progress are looked at in between.
const WAIT: Duration = Duration::from_millis(50);

/// Options of `capture`.
#[derive(Args)]
pub struct Capture {
    #[command(flatten)]
    queues: QueueOptions,
    /// The pcap file to write.
    #[arg(long, value_name = "FILE")]
    write: PathBuf,
    /// Write a JSON line for each frame to this file.
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    #[command(flatten)]
    lro: LroArgs,
    /// Merge TCP segments in the driver, and write what came of them.
    #[arg(long, value_enum, default_value_t = Switch::Off)]
    gro: Switch,
    /// Stop after this many frames.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop when no frame has come for this long.
    #[arg(long, value_name = "MS")]
    idle_timeout_ms: Option<u64>,
}

/// A buffered file that can still be flushed while a `PcapWriter` has it.
#[derive(Clone)]
struct Shared(Rc<RefCell<BufWriter<File>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// Where frames go.
struct Sink<'a> {
    options: &'a Capture,
    pcap: PcapWriter<Shared>,
    pcap_file: Shared,
    metadata: Option<BufWriter<File>>,
    bytes: Vec<u8>,
}

impl Capture {
    pub fn run(&self) -> Result<Outcome, CliError> {
        if self.metadata.as_ref() == Some(&self.write) {
            return Err(CliError::Usage(
                "--write and --metadata name the same file; give them two names".into(),
            ));
        }
        let stop = Stop::catch()?;
        let pcap = Output::open(&self.write)?;
        let metadata = self.metadata.as_deref().map(Output::open).transpose()?;
        let (device, mut pairs) = self.queues.open(&self.lro, Profile::Off)?;
        for pair in &mut pairs {
            let gro = (self.gro == Switch::On).then(GroOptions::default);
            pair.rx.set_gro(gro)?;
        }
        let mut sink = Sink::new(self, pcap, metadata)?;
        let mut progress = Progress::new("captured");
        let control = Control::offer(self.queues.device(), "capture");
        let received = self.receive(
            &device,
            &mut pairs,
            &stop,
            &control,
            &mut sink,
            &mut progress,
        );
        // What was received is kept, whatever happened.
        let flushed = sink.flush();
        drop(control);
        progress.finish();
        received.and(flushed)?;
        if self.gro == Switch::On {
            let stats = pairs.iter().map(|pair| pair.rx.gro_stats());
            let all = stats.fold(GroStats::default(), |all, one| all.plus(&one));
            eprintln!("merged {}", merged(&all));
        }
        if device.lro()?.is_some() {
            let units: u64 = pairs.iter().map(|pair| pair.rx.stats().units).sum();
            eprintln!("{units} of the frames were merged by the card");
        }
        drop(pairs);
        device.close()?;
        Ok(Outcome::Done)
    }

    fn receive(
        &self,
        device: &ferronic::Device,
        pairs: &mut [QueuePair],
        stop: &Stop,
        control: &Control,
        sink: &mut Sink<'_>,
        progress: &mut Progress,
    ) -> Result<(), CliError> {
        let idle = self.idle_timeout_ms.map(Duration::from_millis);
        let mut last = Instant::now();
        while !stop.requested() {
            control.serve(&mut Plain {
                device,
                transmitting: 0,
            });
            let mut got = 0;
            for pair in pairs.iter_mut() {
                let left = self.count.map_or(u64::MAX, |count| count - progress.frames);
                let max = MAX_BURST.min(usize::try_from(left).unwrap_or(MAX_BURST));
                let mut failed = Ok(());
                got += pair.rx.receive(max, |frame| {
                    if failed.is_ok() {
                        failed = sink.frame(frame);
                        progress.frame(frame.len());
                    }
                })?;
                failed?;
            }
            progress.tick();
            if self.count == Some(progress.frames) {
                return Ok(());
            }
            if got > 0 {
                last = Instant::now();
                continue;
            }
            if idle.is_some_and(|idle| last.elapsed() >= idle) {
                return Ok(());
            }
            let mut pending = false;
            for pair in pairs.iter_mut() {
                pending |= pair.rx.arm()?;
            }
            if !pending {
                let left = idle.map_or(WAIT, |idle| idle.saturating_sub(last.elapsed()));
                sink.flush_if_idle(device.wait(left.min(WAIT))?.is_none())?;
            }
        }
        Ok(())
    }
}

impl<'a> Sink<'a> {
    fn new(options: &'a Capture, pcap: Output, metadata: Option<Output>) -> Result<Self, CliError> {
        let header = PcapHeader {
            snaplen: MAX_SEGMENTED_FRAME as u32,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::MicroSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let pcap_file = Shared(Rc::new(RefCell::new(BufWriter::new(pcap.start()?))));
        let pcap =
            PcapWriter::with_header(pcap_file.clone(), header).map_err(|e| bad_pcap(options, e))?;
        let metadata = metadata
            .map(|file| file.start().map(BufWriter::new))
            .transpose()?;
        Ok(Self {
            options,
            pcap,
            pcap_file,
            metadata,
            bytes: Vec::new(),
        })
    }

    fn frame(&mut self, frame: &RxFrame<'_>) -> Result<(), CliError> {
        self.bytes.clear();
        frame.copy_to(&mut self.bytes);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let packet = RawPcapPacket {
            ts_sec: now.as_secs() as u32,
            ts_frac: now.subsec_micros(),
            incl_len: frame.len() as u32,
            orig_len: frame.len() as u32,
            data: (&self.bytes[..]).into(),
        };
        self.pcap
            .write_raw_packet(&packet)
            .map_err(|e| bad_pcap(self.options, e))?;
        let Some(file) = &mut self.metadata else {
            return Ok(());
        };
        let header = frame.header();
        let line = json!({
            "length": frame.len(),
            "queue": frame.pair(),
            "num_buffers": header.num_buffers.get(),
            "flags": header.flags,
            "gso_type": header.gso_type,
            "gso_size": header.gso_size.get(),
            "csum_start": header.csum_start.get(),
            "csum_offset": header.csum_offset.get(),
        });
        writeln!(file, "{line}").map_err(|e| bad_metadata(self.options, e))
    }

    /// Readers of the files see frames soon, without a flush for each of a burst.
    fn flush_if_idle(&mut self, idle: bool) -> Result<(), CliError> {
        if idle { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), CliError> {
        self.pcap_file
            .flush()
            .map_err(|e| CliError::file(&self.options.write, CANNOT_WRITE, e))?;
        match &mut self.metadata {
            Some(file) => file.flush().map_err(|e| bad_metadata(self.options, e)),
            None => Ok(()),
        }
    }
}

const CANNOT_WRITE: &str = "cannot be written";

fn bad_pcap(options: &Capture, e: pcap_file::PcapError) -> CliError {
    let source = match e {
        pcap_file::PcapError::IoError(e) => e,
        e => io::Error::other(e),
    };
    CliError::file(&options.write, CANNOT_WRITE, source)
}

fn bad_metadata(options: &Capture, source: io::Error) -> CliError {
    let path = options.metadata.as_deref().unwrap_or(&options.write);
    CliError::file(path, CANNOT_WRITE, source)
}
