//! The command line of `ferronic-sim`, for every program that offers it.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::features;
use crate::serve::{self, CommandError, ServeOptions};
use crate::wire::WireSpec;

/// Arguments of `ferronic-sim serve`.
#[derive(clap::Args)]
pub struct Serve {
    /// Socket to create (mode 0600; a stale one is replaced).
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Far side of the port: pcap:in=A,out=B,pace=line|captured|1G[,drop=1], tap:NAME, loopback,
    /// stream:PATH, peer[:ip=A] (a host at IPv4 address A, or at every one, and at fd66::1), none.
    /// Once per port; the card has one.
    #[arg(long, value_name = "SPEC", default_value = "none")]
    wire: Vec<WireSpec>,
    /// Queue pairs in use at most.
    #[arg(long, value_name = "N", default_value_t = crate::model::QUEUE_PAIRS)]
    queues: u16,
    /// Width of the data path in bits.
    #[arg(long, value_name = "BITS", default_value_t = crate::model::WIDTHS[0])]
    data_width: u32,
    /// Latency of the host's memory; posted writes take half of it.
    #[arg(long, value_name = "NS", default_value_t = 1000)]
    pcie_latency_ns: u64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// MTU to offer; larger frames are then dropped and counted.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    mtu: u16,
    /// Features offered: -name,+name.
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true,
          allow_hyphen_values = true, value_parser = features::parse)]
    features: u64,
    /// Write a waveform (needs the cargo feature `trace`).
    #[arg(long, value_name = "F.fst")]
    trace: Option<PathBuf>,
    /// Stop when the first client is gone.
    #[arg(long)]
    once: bool,
    /// Write statistics there at the end, and on SIGUSR1.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Record what passes on the wire, both ways, with simulated times.
    #[arg(long, value_name = "F.pcap")]
    pcap: Option<PathBuf>,
    /// Write down the messages of vfio-user.
    #[arg(long, value_name = "F.log")]
    messages: Option<PathBuf>,
}

/// `ferronic-sim serve`. Says on standard error what `RUST_LOG` asks for, warnings by default.
pub fn serve(arguments: Serve) -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ferronic-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Serve) -> Result<(), CommandError> {
    let [wire] = arguments.wire.as_slice() else {
        return Err(CommandError::Ports(arguments.wire.len()));
    };
    serve::serve(&ServeOptions {
        socket: arguments.socket,
        wire: wire.clone(),
        queues: arguments.queues,
        data_width: arguments.data_width,
        pcie_latency_ns: arguments.pcie_latency_ns,
        seed: arguments.seed,
        mtu: arguments.mtu,
        features: arguments.features,
        trace: arguments.trace,
        once: arguments.once,
        json: arguments.json,
        pcap: arguments.pcap,
        messages: arguments.messages,
    })
}
