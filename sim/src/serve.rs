//! `ferronic-sim serve`: the card on a socket until told to stop.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use thiserror::Error;

use crate::figures;
use crate::model::{QUEUE_PAIRS, Strap};
use crate::sim::{NS_PER_CYCLE, Sim, SimConfig, SimError};
use crate::vfio_user::{MessageLog, ServeError, Server, SimDevice, Stop};
use crate::wire::{RecordWire, WireError, WireSpec};

/// Everything that `serve` was asked for.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where the socket is created.
    pub socket: PathBuf,
    /// The far side of the port.
    pub wire: WireSpec,
    /// Queue pairs in use at most.
    pub queues: u16,
    /// Width of the data path in bits.
    pub data_width: u32,
    /// Read latency of the host.
    pub pcie_latency_ns: u64,
    /// Everything random comes from it.
    pub seed: u64,
    /// MTU that is offered; 0: none.
    pub mtu: u16,
    /// Mask of the features that may be offered.
    pub features: u64,
    /// Waveform.
    pub trace: Option<PathBuf>,
    /// Stop after the first client.
    pub once: bool,
    /// Statistics, written at the end and on SIGUSR1.
    pub json: Option<PathBuf>,
    /// What passes on the wire, both ways.
    pub pcap: Option<PathBuf>,
    /// Messages of vfio-user, as text.
    pub messages: Option<PathBuf>,
}

/// Why `serve` failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// More queue pairs than the model has.
    #[error(
        "--queues {asked}: this build of the card has {built} queue pairs; choose 1 to {built}, or \
         build with FERRONIC_QUEUE_PAIRS={asked}"
    )]
    Queues {
        /// What was asked for.
        asked: u16,
        /// What there is.
        built: u16,
    },
    /// More wires than ports.
    #[error("--wire was given {0} times, but the card has one port")]
    Ports(usize),
    /// The wire.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The simulation.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Serving.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A file or descriptor.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> CommandError {
    let what = what.into();
    move |source| CommandError::Io { what, source }
}

/// Runs the command.
pub fn serve(options: &ServeOptions) -> Result<(), CommandError> {
    if options.queues == 0 || options.queues > QUEUE_PAIRS {
        return Err(CommandError::Queues {
            asked: options.queues,
            built: QUEUE_PAIRS,
        });
    }
    let signals = Signals::new().map_err(io_error("setting up signals"))?;
    let mut config = SimConfig {
        data_w: options.data_width,
        seed: options.seed,
        strap: Strap {
            mtu: options.mtu,
            features: options.features,
            ..Strap::default()
        },
        ..SimConfig::default()
    };
    config.root.read_latency = options.pcie_latency_ns / NS_PER_CYCLE;
    let mut wire = options.wire.open()?;
    if let Some(path) = &options.pcap {
        wire = Box::new(RecordWire::create(wire, path).map_err(WireError::from)?);
    }
    let mut sim = Sim::with_wire(config, wire)?;
    if let Some(path) = &options.trace {
        sim.trace(path)?;
    }
    let mut device = SimDevice::new(sim)?;
    device.limit_pairs(options.queues);
    let mut server = Server::bind(&options.socket, device, options.once)?;
    if let Some(path) = &options.messages {
        let log = MessageLog::create(path);
        server.log_to(log.map_err(io_error(format!("creating {}", path.display())))?);
    }
    let mut owner = Owner {
        signals,
        options,
        started: Instant::now(),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "ready {}", options.socket.display())
        .and_then(|()| out.flush())
        .map_err(io_error("writing to standard output"))?;
    drop(out);
    let result = server.run(&mut owner);
    // Whatever ended it: what was captured and counted so far is worth keeping.
    let flushed = server.device_mut().sim_mut().port.wire_mut().flush();
    let written = owner.write_figures(server.device_mut());
    result?;
    flushed.map_err(io_error("writing what the wire recorded"))?;
    written
}

struct Owner<'a> {
    signals: Signals,
    options: &'a ServeOptions,
    started: Instant,
}

impl Owner<'_> {
    fn write_figures(&self, device: &mut SimDevice) -> Result<(), CommandError> {
        let Some(path) = &self.options.json else {
            return Ok(());
        };
        let report = figures::serve(device.sim_mut(), self.options, self.started.elapsed());
        write_json(path, &report).map_err(io_error(format!("writing {}", path.display())))
    }
}

/// Writes beside the file first, so that a reader never sees half of it.
fn write_json(path: &Path, value: &serde_json::Value) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    std::fs::write(&beside, format!("{value:#}\n"))?;
    std::fs::rename(&beside, path)
}

impl Stop for Owner<'_> {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.signals.0.as_fd())
    }

    fn stop(&mut self, device: &mut SimDevice) -> bool {
        let mut stop = false;
        while let Some(signal) = self.signals.next() {
            if signal == libc::SIGUSR1 {
                if let Err(error) = self.write_figures(device) {
                    log::warn!("{error}");
                }
            } else {
                stop = true;
            }
        }
        stop
    }
}

/// SIGTERM, SIGINT and SIGUSR1 as a descriptor.
struct Signals(OwnedFd);

impl Signals {
    fn new() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before it is used; the calls have no
        // other preconditions. There is one thread.
        let fd = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
                libc::sigaddset(&mut set, signal);
            }
            if libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just made and belongs to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn next(&self) -> Option<i32> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer is valid for its length.
        let n = unsafe { libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) };
        let signal = info.first_chunk::<4>()?;
        (n == info.len() as isize).then(|| i32::from_ne_bytes(*signal))
    }
}
