//! `ferronic tcp`

mod transfer;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use ferronic::lro::Profile;
use ferronic::phy::{Phy, PhyOptions};
use ferronic::spec::net::MAX_FRAME;
use ferronic_transfer::{SINK, SOURCE};
use serde_json::{Value, json};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::IpAddress;

use crate::control::Control;
use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};
use crate::merging::{self, LroArgs};
use crate::options::{QueueOptions, Stop, Switch, merged};
use crate::progress::Progress;
use crate::stack::{AddressOptions, DEFAULT_MTU, Stack, Traffic, WAIT};
use transfer::{Checked, Transfer};

/// Bytes of the stack's buffers: as much may be on its way.
const BUFFER: usize = 256 * 1024;
/// The least MTU that a host must take (RFC 791).
const LEAST_MTU: u16 = 576;
/// What fits into the largest frame of a card that names no MTU.
const MOST_MTU: u16 = MAX_FRAME as u16 - 14;
/// Ports for those who do not care which (RFC 6335).
const EPHEMERAL: u16 = 49_152;
/// How long the other end may take to end the connection when all is through.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Direction {
    /// To a sink, which answers with the number of bytes and their SHA-256.
    Send,
    /// From a source, which sends what it is told, then the SHA-256.
    Receive,
}

impl Direction {
    /// As figures name it, and what is done.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Send => ("tx", "sent"),
            Self::Receive => ("rx", "received"),
        }
    }
}

/// Options of `tcp`.
#[derive(Args)]
pub struct Tcp {
    #[command(flatten)]
    queues: QueueOptions,
    /// Where the bytes go.
    #[arg(value_enum)]
    direction: Direction,
    /// The host with the service (IPv4); the `peer` wire of ferronic-sim has both.
    address: Ipv4Addr,
    #[command(flatten)]
    network: AddressOptions,
    /// How much.
    #[arg(long, default_value_t = 1 << 20, value_name = "N")]
    bytes: u64,
    /// Determines the bytes.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Port of the service; 9 for a sink, 19 for a source if not given.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Largest IP packet; the card's MTU if not given, 1500 if it names none.
    #[arg(long, value_name = "BYTES",
          value_parser = clap::value_parser!(u16).range(i64::from(LEAST_MTU)..))]
    mtu: Option<u16>,
    /// Give the card up to 64 KB at a time, which it cuts into segments; not without --checksum on.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    tso: Switch,
    /// Let the card make the checksums of what is sent.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    checksum: Switch,
    #[command(flatten)]
    lro: LroArgs,
    /// Merge received segments that the card did not merge in the driver: the stack takes up to 64 KB at a time.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    gro: Switch,
    /// How long nothing may move before the transfer is given up.
    #[arg(long, default_value_t = 10_000, value_name = "MS")]
    timeout_ms: u64,
    /// Print JSON instead of a table, or write it to this file, too.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// How the card merged.
struct Lro {
    words: String,
    params: Value,
}

/// A transfer that ran to its end.
struct Done {
    checked: Checked,
    seconds: f64,
    traffic: Traffic,
}

impl Tcp {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let stop = Stop::catch()?;
        let to_file = self.json.as_deref().filter(|path| *path != Path::new("-"));
        let output = to_file.map(Output::open).transpose()?;
        let (device, mut pairs) = self.queues.open(&self.lro, Profile::Strict)?;
        let offered = device.mtu();
        let most = offered.unwrap_or(MOST_MTU);
        let mtu = self.mtu.or(offered).unwrap_or(DEFAULT_MTU);
        if mtu > most {
            return Err(CliError::Usage(format!(
                "--mtu {mtu}: the card takes packets of at most {most} bytes, give that or less"
            )));
        }
        let options = PhyOptions {
            mtu: Some(mtu),
            checksum: self.checksum == Switch::On,
            segmentation: self.tso == Switch::On,
            gro: self.gro == Switch::On,
        };
        let lro = Lro {
            words: merging::words(&device)?,
            params: merging::params(&device)?,
        };
        let phy = Phy::with_options(pairs.remove(0), options);
        let control = Control::offer(self.queues.device(), "tcp");
        let stack = Stack::new(&self.network, self.address, &device, phy, control)?;
        let done = self.transfer(stack, &stop);
        // The last words of the connection, or its reset, have left.
        let lingered = device.linger();
        let closed = device.close();
        let done = done?;
        lingered?;
        closed?;
        let report = self.report(&done, mtu, &lro);
        if let Some(output) = output {
            write_json(output, &report)?;
        }
        if self.json.is_some() && to_file.is_none() {
            println!("{report:#}");
        } else {
            self.table(&done, mtu, &lro);
        }
        Ok(self.outcome(&done.checked))
    }

    fn port(&self) -> u16 {
        self.port.unwrap_or(match self.direction {
            Direction::Send => SINK,
            Direction::Receive => SOURCE,
        })
    }

    /// The other end, for people.
    fn peer(&self) -> String {
        format!("{}:{}", self.address, self.port())
    }

    fn transfer(&self, mut stack: Stack<'_>, stop: &Stop) -> Result<Done, CliError> {
        let room = || SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = Socket::new(room(), room());
        socket.set_nagle_enabled(false);
        let local = EPHEMERAL + std::process::id() as u16 % (u16::MAX - EPHEMERAL);
        let remote = (IpAddress::Ipv4(self.address), self.port());
        socket
            .connect(stack.interface.context(), remote, local)
            .map_err(|e| CliError::Usage(format!("{} cannot be connected to: {e}", self.peer())))?;
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        let result = self.exchange(&mut stack, &mut sockets, handle, stop);
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        if result.is_err() {
            // The other end need not wait for what will not come.
            socket.abort();
            stack.poll(&mut sockets)?;
            return result;
        }
        socket.close();
        let begin = Instant::now();
        while begin.elapsed() < FAREWELL {
            stack.poll(&mut sockets)?;
            match sockets.get::<Socket<'_>>(handle).state() {
                State::Closed | State::TimeWait => break,
                _ => stack.wait(&sockets, WAIT)?,
            }
        }
        result
    }

    fn exchange(
        &self,
        stack: &mut Stack<'_>,
        sockets: &mut SocketSet<'_>,
        handle: SocketHandle,
        stop: &Stop,
    ) -> Result<Done, CliError> {
        let mut transfer = Transfer::new(self.direction, self.bytes, self.seed);
        let mut progress = Progress::of_bytes(self.direction.names().1, self.bytes);
        let timeout = Duration::from_millis(self.timeout_ms);
        let mut begin: Option<Instant> = None;
        let mut moved = Instant::now();
        let result = loop {
            if stop.requested() {
                break Err("stopped by a signal".to_owned());
            }
            stack.poll(sockets)?;
            let socket = sockets.get_mut::<Socket<'_>>(handle);
            match (socket.state(), begin) {
                (State::SynSent, _) => {}
                (State::Closed, None) => break Err(self.refused()),
                (_, None) => {
                    begin = Some(Instant::now());
                    moved = Instant::now();
                }
                (_, Some(begin)) => {
                    let before = (transfer.passed(), socket.send_queue());
                    transfer.turn(socket);
                    if let Some(checked) = transfer.checked() {
                        let seconds = begin.elapsed().as_secs_f64();
                        let traffic = stack.traffic();
                        break Ok(Done {
                            checked,
                            seconds,
                            traffic,
                        });
                    }
                    if !socket.may_recv() {
                        break Err(format!("{} ended the connection", self.peer()));
                    }
                    if before != (transfer.passed(), socket.send_queue()) {
                        moved = Instant::now();
                        // What was just queued may go at once.
                        continue;
                    }
                }
            }
            if moved.elapsed() > timeout {
                break Err(self.silent(begin.is_some()));
            }
            progress.bytes = transfer.passed();
            progress.tick();
            stack.wait(sockets, WAIT)?;
        };
        progress.clear();
        result.map_err(|why| {
            let (passed, verb) = (transfer.passed(), self.direction.names().1);
            CliError::Incomplete(format!("{why}; {passed} of {} bytes {verb}", self.bytes))
        })
    }

    fn refused(&self) -> String {
        let service = match self.direction {
            Direction::Send => "a sink",
            Direction::Receive => "a source",
        };
        format!(
            "{} refuses connections: is there {service}? `--port` names another, `ferronic-sim \
             serve --wire peer` has one",
            self.peer()
        )
    }

    fn silent(&self, connected: bool) -> String {
        let (peer, ms) = (self.peer(), self.timeout_ms);
        if connected {
            format!("{peer} was silent for {ms} ms: give --timeout-ms more, or look at the wire")
        } else {
            format!(
                "no answer from {peer} for {ms} ms: is that host on the wire, and are --local and \
                 --gateway right?"
            )
        }
    }

    fn outcome(&self, checked: &Checked) -> Outcome {
        if checked.bytes == self.bytes && checked.sent == checked.received {
            return Outcome::Done;
        }
        eprintln!(
            "ferronic: what arrived is not what was sent: {} of {} bytes, SHA-256 {} became {}",
            checked.bytes, self.bytes, checked.sent, checked.received
        );
        Outcome::NotPassed
    }

    fn table(&self, done: &Done, mtu: u16, lro: &Lro) {
        let (direction, peer) = (self.direction, self.peer());
        let towards = if direction == Direction::Send {
            "to"
        } else {
            "from"
        };
        println!("{} {towards} {peer}, MTU {mtu}", direction.names().1);
        println!("bytes    {}", done.checked.bytes);
        println!("SHA-256  {}", done.checked.received);
        println!("seconds  {:.3}", done.seconds);
        println!("Mbit/s   {:.1}", done.mbit());
        let (sent, got) = (&done.traffic.sent, &done.traffic.received);
        println!(
            "to card  {} frames ({} for it to segment), {} descriptors, {} doorbells",
            sent.frames, sent.segmented, sent.descriptors, sent.doorbells
        );
        println!(
            "from it  {} frames that it verified, {} verified here, {} dropped",
            got.by_card,
            got.verified + got.completed,
            got.refused
        );
        println!(
            "LRO      {}; {} units came",
            lro.words, done.traffic.card_units
        );
        if self.gro == Switch::On {
            println!("merged   {}", merged(&done.traffic.merged));
        }
    }

    fn report(&self, done: &Done, mtu: u16, lro: &Lro) -> Value {
        let mut params = json!({
            "driver": "ferronic",
            "direction": self.direction.names().0,
            "mtu": mtu,
            "tso": Switch::name(done.traffic.tso),
            "checksum": Switch::name(done.traffic.checksum),
            "gro": Switch::name(self.gro == Switch::On),
            "sha256": done.checked.received,
            "intact": done.checked.sent == done.checked.received,
        });
        if let (Some(all), Some(more)) = (params.as_object_mut(), lro.params.as_object()) {
            all.extend(more.clone());
        }
        let figure = |name: &str, value: Value, unit: &str| -> Value {
            json!({"name": name, "params": &params, "value": value, "unit": unit})
        };
        let (sent, got) = (&done.traffic.sent, &done.traffic.received);
        let merged = &done.traffic.merged;
        json!({"command": "tcp", "figures": [
            figure("tcp_bytes", done.checked.bytes.into(), "B"),
            figure("tcp_s", done.seconds.into(), "s"),
            figure("tcp_mbit_s", done.mbit().into(), "Mbit/s"),
            figure("buffers_per_mb", done.per_mb(sent.frames).into(), "buffers"),
            figure("descriptors_per_mb", done.per_mb(sent.descriptors).into(), "descriptors"),
            figure("doorbells_per_mb", done.per_mb(sent.doorbells).into(), "doorbells"),
            figure("verified_by_card", got.by_card.into(), "frames"),
            figure("verified_by_driver", (got.verified + got.completed).into(), "frames"),
            figure("refused", got.refused.into(), "frames"),
            figure("units", got.units.into(), "frames"),
            figure("units_by_card", done.traffic.card_units.into(), "frames"),
            figure("segments_per_unit", merged.segments_a_unit().into(), "segments"),
        ]})
    }
}

impl Done {
    /// Of the card's work for a million bytes of payload.
    fn per_mb(&self, count: u64) -> f64 {
        count as f64 * 1e6 / self.checked.bytes.max(1) as f64
    }

    fn mbit(&self) -> f64 {
        self.checked.bytes as f64 * 8e-6 / self.seconds.max(1e-9)
    }
}
