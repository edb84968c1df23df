//! `ferronic ping`

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use ferronic::lro::Profile;
use ferronic::phy::Phy;
use serde_json::{Value, json};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress};

use crate::control::Control;
use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};
use crate::merging::LroArgs;
use crate::options::{QueueOptions, Stop};
use crate::stack::{AddressOptions, DEFAULT_MTU, Stack, WAIT};

/// Identifier of our echo requests.
const IDENT: u16 = 0xfe01;
/// Bytes of the headers before the data of a request: IPv4 without options, ICMP.
const HEADERS: usize = 20 + 8;
/// Requests and answers that the stack holds.
const QUEUE: usize = 16;

/// Options of `ping`.
#[derive(Args)]
pub struct Ping {
    #[command(flatten)]
    queues: QueueOptions,
    /// The host to ping (IPv4).
    address: Ipv4Addr,
    #[command(flatten)]
    network: AddressOptions,
    #[command(flatten)]
    lro: LroArgs,
    /// Requests to send.
    #[arg(long, default_value_t = 4, value_name = "N")]
    count: u16,
    /// Bytes of data in a request; they must fit into one packet.
    #[arg(long, default_value_t = 56, value_name = "BYTES")]
    size: u16,
    /// Between two requests; with 0 the next goes as soon as the last is answered.
    #[arg(long, default_value_t = 200, value_name = "MS")]
    interval_ms: u64,
    /// How long to wait for an answer.
    #[arg(long, default_value_t = 5_000, value_name = "MS")]
    timeout_ms: u64,
    /// Write round trips and losses to this file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The stack, and what is out.
struct Session<'a> {
    stack: Stack<'a>,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    waiting: BTreeMap<u16, Instant>,
    sent: u16,
    times: Vec<Duration>,
    data: Vec<u8>,
}

impl Ping {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let stop = Stop::catch()?;
        let output = self.json.as_deref().map(Output::open).transpose()?;
        let (device, mut pairs) = self.queues.open(&self.lro, Profile::Strict)?;
        let mtu = device.mtu().unwrap_or(DEFAULT_MTU);
        if usize::from(self.size) + HEADERS > mtu.into() {
            return Err(CliError::Usage(format!(
                "--size {}: the card's MTU of {mtu} leaves {} bytes for data",
                self.size,
                usize::from(mtu).saturating_sub(HEADERS)
            )));
        }
        let phy = Phy::new(pairs.remove(0), device.mtu());
        let control = Control::offer(self.queues.device(), "ping");
        let stack = Stack::new(&self.network, self.address, &device, phy, control)?;
        let mut session = self.session(stack)?;
        let interval = Duration::from_millis(self.interval_ms);
        let mut next = Instant::now();
        while !stop.requested() {
            let now = Instant::now();
            if session.sent < self.count && now >= next && self.may_send(&session) {
                session.request(self.address)?;
                next = now + interval;
            }
            session.poll(self.address)?;
            session.expire(self.address, Duration::from_millis(self.timeout_ms));
            if session.sent == self.count && session.waiting.is_empty() {
                break;
            }
            let due = next.saturating_duration_since(now);
            let sends = session.sent < self.count && self.may_send(&session);
            let timeout = if sends { due } else { WAIT };
            session.stack.wait(&session.sockets, timeout)?;
        }
        if let Some(output) = output {
            write_json(output, &session.report(self.size))?;
        }
        let outcome = session.summary();
        drop(session);
        device.close()?;
        Ok(outcome)
    }

    fn may_send(&self, session: &Session<'_>) -> bool {
        self.interval_ms > 0 || session.waiting.is_empty()
    }

    fn session<'a>(&self, stack: Stack<'a>) -> Result<Session<'a>, CliError> {
        let bytes = QUEUE * (usize::from(self.size) + HEADERS);
        let buffer =
            || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; QUEUE], vec![0; bytes]);
        let mut sockets = SocketSet::new(Vec::new());
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket
            .bind(icmp::Endpoint::Ident(IDENT))
            .map_err(|e| CliError::Usage(format!("ICMP socket: {e}")))?;
        let socket = sockets.add(socket);
        Ok(Session {
            stack,
            sockets,
            socket,
            waiting: BTreeMap::new(),
            sent: 0,
            times: Vec::new(),
            data: vec![0xa5; self.size.into()],
        })
    }
}

impl Session<'_> {
    fn request(&mut self, address: Ipv4Addr) -> Result<(), CliError> {
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.socket);
        let request = Icmpv4Repr::EchoRequest {
            ident: IDENT,
            seq_no: self.sent,
            data: &self.data,
        };
        match socket.send(request.buffer_len(), IpAddress::Ipv4(address)) {
            Ok(payload) => {
                let mut packet = Icmpv4Packet::new_unchecked(payload);
                request.emit(&mut packet, &ChecksumCapabilities::default());
            }
            // Requests wait for the address of the next hop: this one goes later.
            Err(icmp::SendError::BufferFull) => return Ok(()),
            Err(e) => return Err(CliError::Incomplete(format!("cannot send a request: {e}"))),
        }
        self.waiting.insert(self.sent, Instant::now());
        self.sent += 1;
        Ok(())
    }

    fn poll(&mut self, address: Ipv4Addr) -> Result<(), CliError> {
        self.stack.poll(&mut self.sockets)?;
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.socket);
        while let Ok((payload, from)) = socket.recv() {
            let reply = Icmpv4Packet::new_checked(payload).and_then(|packet| {
                Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()).map(
                    |repr| match repr {
                        // An answer that is not what was sent is none.
                        Icmpv4Repr::EchoReply { seq_no, data, .. } if data == self.data => {
                            Some((seq_no, data.len()))
                        }
                        _ => None,
                    },
                )
            });
            let Ok(Some((number, len))) = reply else {
                continue;
            };
            if let Some(sent) = self.waiting.remove(&number)
                && from == IpAddress::Ipv4(address)
            {
                let time = sent.elapsed();
                println!(
                    "{} bytes from {address}: icmp_seq={number} time={:.3} ms",
                    len + 8,
                    time.as_secs_f64() * 1e3
                );
                self.times.push(time);
            }
        }
        Ok(())
    }

    fn expire(&mut self, address: Ipv4Addr, timeout: Duration) {
        self.waiting.retain(|number, sent| {
            let waits = sent.elapsed() < timeout;
            if !waits {
                println!("no answer from {address}: icmp_seq={number} after {timeout:?}");
            }
            waits
        });
    }

    /// Shortest, median and longest, in ms.
    fn round_trips(&self) -> Option<[f64; 3]> {
        let mut sorted = self.times.clone();
        sorted.sort();
        let at = |i: usize| sorted.get(i).map(|time| time.as_secs_f64() * 1e3);
        Some([at(0)?, at(sorted.len() / 2)?, at(sorted.len() - 1)?])
    }

    fn report(&self, size: u16) -> Value {
        let params = json!({"driver": "ferronic", "data_bytes": size});
        let figure = |name: &str, value: Value, unit: &str| -> Value {
            json!({"name": name, "params": &params, "value": value, "unit": unit})
        };
        let mut figures = vec![
            figure("pings_sent", self.sent.into(), "requests"),
            figure("pings_answered", self.times.len().into(), "answers"),
        ];
        if let Some([min, median, max]) = self.round_trips() {
            figures.push(figure("ping_ms_min", min.into(), "ms"));
            figures.push(figure("ping_ms_median", median.into(), "ms"));
            figures.push(figure("ping_ms_max", max.into(), "ms"));
        }
        json!({"command": "ping", "figures": figures})
    }

    fn summary(&self) -> Outcome {
        let (sent, received) = (self.sent, self.times.len());
        println!("{sent} sent, {received} received");
        if let Some([min, median, max]) = self.round_trips() {
            println!("round trip min/median/max {min:.3}/{median:.3}/{max:.3} ms");
        }
        if received == usize::from(sent) && sent > 0 {
            Outcome::Done
        } else {
            Outcome::NotPassed
        }
    }
}
