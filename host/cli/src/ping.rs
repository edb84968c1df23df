//! `ferronic ping`

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use clap::Args;
use ferronic::Device;
use ferronic::phy::Phy;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{EthernetAddress, Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr, Ipv4Cidr};

use crate::error::{CliError, Outcome};
use crate::options::{QueueOptions, Stop};

/// Longest wait for an interrupt.
const WAIT: Duration = Duration::from_millis(20);
/// Identifier of our echo requests.
const IDENT: u16 = 0xfe01;
/// Bytes of an echo request's data.
const DATA: usize = 56;

/// Options of `ping`.
#[derive(Args)]
pub struct Ping {
    #[command(flatten)]
    queues: QueueOptions,
    /// The host to ping (IPv4).
    address: Ipv4Addr,
    /// The card's own address and prefix.
    #[arg(long, default_value = "192.168.77.2/24", value_name = "ADDRESS/PREFIX",
          value_parser = parse_cidr)]
    local: Ipv4Cidr,
    /// Router for hosts outside the prefix.
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<Ipv4Addr>,
    /// Requests to send.
    #[arg(long, default_value_t = 4, value_name = "N")]
    count: u16,
    /// Between two requests.
    #[arg(long, default_value_t = 200, value_name = "MS")]
    interval_ms: u64,
    /// How long to wait for an answer.
    #[arg(long, default_value_t = 5_000, value_name = "MS")]
    timeout_ms: u64,
}

fn parse_cidr(text: &str) -> Result<Ipv4Cidr, String> {
    text.parse()
        .map_err(|()| "an address and a prefix are needed, like 192.168.77.2/24".into())
}

/// The stack, and what is out.
struct Session<'a> {
    device: &'a Device,
    phy: Phy,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    start: Instant,
    waiting: BTreeMap<u16, Instant>,
    sent: u16,
    times: Vec<Duration>,
}

impl Ping {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let stop = Stop::catch()?;
        let (device, mut pairs) = self.queues.open()?;
        let phy = Phy::new(pairs.remove(0), device.mtu());
        let mut session = self.session(&device, phy)?;
        let interval = Duration::from_millis(self.interval_ms);
        let mut next = Instant::now();
        while !stop.requested() {
            let now = Instant::now();
            if session.sent < self.count && now >= next {
                session.request(self.address)?;
                next = now + interval;
            }
            session.poll(self.address)?;
            session.expire(self.address, Duration::from_millis(self.timeout_ms));
            if session.sent == self.count && session.waiting.is_empty() {
                break;
            }
            let due = next.saturating_duration_since(now);
            session.wait(if session.sent < self.count {
                due.min(WAIT)
            } else {
                WAIT
            })?;
        }
        Ok(session.summary())
    }

    fn session<'a>(&self, device: &'a Device, mut phy: Phy) -> Result<Session<'a>, CliError> {
        let mut config = Config::new(EthernetAddress(device.mac()).into());
        config.random_seed = std::process::id().into();
        let now = smoltcp::time::Instant::ZERO;
        let mut interface = Interface::new(config, &mut phy, now);
        interface.update_ip_addrs(|addresses| {
            // There is room for one in an empty list.
            let _ = addresses.push(IpCidr::Ipv4(self.local));
        });
        if let Some(gateway) = self.gateway {
            interface
                .routes_mut()
                .add_default_ipv4_route(gateway)
                .map_err(|e| CliError::Usage(format!("--gateway {gateway}: {e}")))?;
        } else if !self.local.contains_addr(&self.address) {
            return Err(CliError::Usage(format!(
                "{} is not in {}: give --local another address, or a --gateway",
                self.address, self.local
            )));
        }
        let buffer =
            || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; 16], vec![0; 16 * 128]);
        let mut sockets = SocketSet::new(Vec::new());
        let mut socket = icmp::Socket::new(buffer(), buffer());
        socket
            .bind(icmp::Endpoint::Ident(IDENT))
            .map_err(|e| CliError::Usage(format!("ICMP socket: {e}")))?;
        let socket = sockets.add(socket);
        Ok(Session {
            device,
            phy,
            interface,
            sockets,
            socket,
            start: Instant::now(),
            waiting: BTreeMap::new(),
            sent: 0,
            times: Vec::new(),
        })
    }
}

impl Session<'_> {
    fn request(&mut self, address: Ipv4Addr) -> Result<(), CliError> {
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.socket);
        let data = [0xa5; DATA];
        let request = Icmpv4Repr::EchoRequest {
            ident: IDENT,
            seq_no: self.sent,
            data: &data,
        };
        match socket.send(request.buffer_len(), IpAddress::Ipv4(address)) {
            Ok(payload) => {
                let mut packet = Icmpv4Packet::new_unchecked(payload);
                request.emit(&mut packet, &ChecksumCapabilities::default());
            }
            Err(e) => return Err(CliError::Incomplete(format!("cannot send a request: {e}"))),
        }
        self.waiting.insert(self.sent, Instant::now());
        self.sent += 1;
        Ok(())
    }

    fn poll(&mut self, address: Ipv4Addr) -> Result<(), CliError> {
        let now = smoltcp::time::Instant::from_micros(self.start.elapsed().as_micros() as i64);
        self.interface.poll(now, &mut self.phy, &mut self.sockets);
        self.phy.flush()?;
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.socket);
        while let Ok((payload, from)) = socket.recv() {
            let reply = Icmpv4Packet::new_checked(payload).and_then(|packet| {
                Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()).map(
                    |repr| match repr {
                        Icmpv4Repr::EchoReply { seq_no, data, .. } => Some((seq_no, data.len())),
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

    fn wait(&mut self, timeout: Duration) -> Result<(), CliError> {
        if !self.phy.pair().rx.arm()? {
            self.device.wait(timeout)?;
        }
        Ok(())
    }

    fn summary(&self) -> Outcome {
        let (sent, received) = (self.sent, self.times.len());
        println!("{sent} sent, {received} received");
        if let (Some(min), Some(max)) = (self.times.iter().min(), self.times.iter().max()) {
            let mut sorted = self.times.clone();
            sorted.sort();
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            println!(
                "round trip min/median/max {:.3}/{:.3}/{:.3} ms",
                ms(*min),
                ms(sorted[sorted.len() / 2]),
                ms(*max)
            );
        }
        if received == usize::from(sent) && sent > 0 {
            Outcome::Done
        } else {
            Outcome::NotPassed
        }
    }
}
