//! The peer's TCP services.
//!
//! | port | service |
//! | --- | --- |
//! | 7 | echo |
//! | 9 | sink: takes everything; when the other end has sent all, answers with the number of bytes (8, big endian) and their SHA-256 |
//! | 19 | source: is told a number of bytes and a seed (8 bytes each, big endian), sends so many bytes, then their SHA-256 |
//!
//! Its clock is that of the host, not of the card: simulated time stands still, or leaps, while the
//! host computes, and a retransmission timer must do neither.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant as HostInstant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::ip::{IPV4, IPV6, Packet, checksum};
use super::service::{ECHO, Service};
use super::{PEER_IPV6, ethernet};
use crate::wire::RxFrame;

/// Largest IP packet: a frame of the card is at most 9,216 bytes.
const MTU: usize = 9202;
const BUFFER: usize = 256 * 1024;
/// Connections of each service at a time.
const SOCKETS: usize = 8;
/// A connection whose other end is gone is given up after this.
const PATIENCE: Duration = Duration::from_secs(15);
/// An address of nobody (RFC 5737): what stands for "every address".
const ANYBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Packets on their way in and out of the stack.
#[derive(Default)]
struct Queues {
    input: VecDeque<Vec<u8>>,
    output: Vec<Vec<u8>>,
}

struct In(Vec<u8>);

impl RxToken for In {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Out<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = In;
    type TxToken<'a> = Out<'a>;

    fn receive(&mut self, _timestamp: Instant) -> Option<(In, Out<'_>)> {
        let packet = self.input.pop_front()?;
        Some((In(packet), Out(&mut self.output)))
    }

    fn transmit(&mut self, _timestamp: Instant) -> Option<Out<'_>> {
        Some(Out(&mut self.output))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        // They were verified before the packet came here.
        capabilities.checksum.ipv4 = Checksum::Tx;
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities
    }
}

/// True of a segment after which its sender is likely to send more at once: data that says nothing else.
pub(super) fn may_wait(segment: &[u8]) -> bool {
    const ACK: u8 = 0x10;
    let Some(&[offset, flags]) = segment.get(12..14).and_then(|two| two.first_chunk()) else {
        return false;
    };
    flags == ACK && segment.len() > usize::from(offset >> 4) * 4
}

/// Identifications of IPv4 packets, which count up in each connection, as those of other stacks
/// do: smoltcp gives all the same, and segments with the same are never merged.
#[derive(Default)]
struct Numbers(HashMap<[u8; 12], u16>);

impl Numbers {
    /// More connections than there can be at a time.
    const MOST: usize = 1024;

    /// Gives the next number to a packet without IPv4 options.
    fn number(&mut self, packet: &mut [u8]) {
        let (Some(0x45), Some(key)) = (packet.first(), packet.get(12..24)) else {
            return;
        };
        let Ok(key) = <[u8; 12]>::try_from(key) else {
            return;
        };
        if self.0.len() > Self::MOST {
            self.0.clear();
        }
        let next = self.0.entry(key).or_default();
        *next = next.wrapping_add(1);
        packet[4..6].copy_from_slice(&next.to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum(0, &packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

struct Connection {
    handle: SocketHandle,
    port: u16,
    service: Service,
}

/// The stack and its services.
pub(super) struct TcpPeer {
    interface: Interface,
    sockets: SocketSet<'static>,
    connections: Vec<Connection>,
    queues: Queues,
    /// Who has which address: what answers are sent to.
    neighbours: HashMap<IpAddr, [u8; 6]>,
    numbers: Numbers,
    began: HostInstant,
    timer: OwnedFd,
}

impl TcpPeer {
    /// Services at `address`, or at every address.
    pub fn new(address: Option<Ipv4Addr>) -> io::Result<Self> {
        let mut queues = Queues::default();
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
        let mine = address.unwrap_or(ANYBODY);
        interface.update_ip_addrs(|addresses| {
            // There is room for one of each version in an empty list.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(mine), 32));
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv6(PEER_IPV6), 128));
        });
        interface.set_any_ip(address.is_none());
        // The way to everybody; entries of an empty table.
        let _ = interface.routes_mut().add_default_ipv4_route(mine);
        let _ = interface.routes_mut().add_default_ipv6_route(PEER_IPV6);
        let mut sockets = SocketSet::new(Vec::new());
        let mut connections = Vec::new();
        for port in Service::PORTS {
            for _ in 0..SOCKETS {
                let room = || SocketBuffer::new(vec![0; BUFFER]);
                let mut socket = Socket::new(room(), room());
                socket.set_timeout(Some(PATIENCE));
                socket.set_keep_alive(Some(PATIENCE / 3));
                // Small pieces go at once only where somebody waits for each.
                socket.set_nagle_enabled(port != ECHO);
                connections.push(Connection {
                    handle: sockets.add(socket),
                    port,
                    service: Service::new(port),
                });
            }
        }
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        let mut peer = Self {
            interface,
            sockets,
            connections,
            queues,
            neighbours: HashMap::new(),
            numbers: Numbers::default(),
            began: HostInstant::now(),
            timer,
        };
        peer.serve();
        Ok(peer)
    }

    /// Becomes readable when [`TcpPeer::run`] has something to do.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Takes a packet that carries TCP, whose sums hold; `source`, at this station, sent it.
    pub fn take(&mut self, packet: &[u8], source: IpAddr, station: [u8; 6]) {
        self.neighbours.insert(source, station);
        self.queues.input.push_back(packet.to_vec());
    }

    /// Lets time pass and gives what is to be sent.
    pub fn run(&mut self, answers: &mut VecDeque<RxFrame>) {
        let now = self.now();
        loop {
            self.interface
                .poll(now, &mut self.queues, &mut self.sockets);
            // What a service sends needs another turn.
            if !self.serve() && self.queues.input.is_empty() {
                break;
            }
        }
        for mut packet in self.queues.output.drain(..) {
            self.numbers.number(&mut packet);
            let kind = match packet.first().map(|first| first >> 4) {
                Some(6) => IPV6,
                _ => IPV4,
            };
            let target = Packet::parse(kind, &packet).map(|packet| packet.target);
            let Some(mac) = target.ok().and_then(|target| self.neighbours.get(&target)) else {
                continue;
            };
            let data = ethernet(*mac, kind, &packet);
            answers.push_back(RxFrame { data, abort: false });
        }
        self.arm(now);
    }

    fn now(&self) -> Instant {
        Instant::from_micros(i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// Runs the services; true if there is something to send that was not there before.
    fn serve(&mut self) -> bool {
        let mut more = false;
        for connection in &mut self.connections {
            let socket = self.sockets.get_mut::<Socket>(connection.handle);
            match socket.state() {
                State::Closed => {
                    connection.service = Service::new(connection.port);
                    // Fails only for a socket that is open, or a port of 0.
                    let _ = socket.listen(connection.port);
                }
                State::Listen | State::SynReceived => {}
                State::TimeWait => {
                    // Nobody else has this address: the connection is over for both.
                    socket.abort();
                }
                before => {
                    let queued = socket.send_queue();
                    connection.service.serve(socket);
                    more |= socket.send_queue() != queued || socket.state() != before;
                }
            }
        }
        more
    }

    /// Wakes the server up when the stack wants to act by itself.
    fn arm(&mut self, now: Instant) {
        let at = self.interface.poll_at(now, &self.sockets);
        let after = at.map_or(0, |at| (at - now).total_micros().max(1));
        let value = Itimerspec {
            it_interval: Timespec::default(),
            // All zero: never.
            it_value: Timespec {
                tv_sec: i64::try_from(after / 1_000_000).unwrap_or(i64::MAX),
                tv_nsec: (after % 1_000_000 * 1000) as i64,
            },
        };
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value);
        if let Err(error) = set {
            log::warn!("the peer's timer: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use smoltcp::socket::tcp::Socket;

    use std::net::Ipv6Addr;

    use super::super::ETHERNET;

    /// A client and its peer, of each version.
    const ENDS: [(IpAddr, IpAddr); 2] = [
        (
            IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
            IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        ),
        (
            IpAddr::V6(Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 2)),
            IpAddr::V6(PEER_IPV6),
        ),
    ];
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// A client's stack whose packets go straight to the peer and back.
    struct Client {
        interface: Interface,
        queues: Queues,
        sockets: SocketSet<'static>,
        handle: SocketHandle,
        ends: (IpAddr, IpAddr),
        peer: TcpPeer,
    }

    impl Client {
        fn connect(ends: (IpAddr, IpAddr), port: u16) -> Self {
            let mut queues = Queues::default();
            let config = Config::new(HardwareAddress::Ip);
            let mut interface = Interface::new(config, &mut queues, Instant::ZERO);
            interface.update_ip_addrs(|addresses| {
                addresses
                    .push(IpCidr::new(IpAddress::from(ends.0), 24))
                    .expect("room");
            });
            let mut sockets = SocketSet::new(Vec::new());
            let room = || SocketBuffer::new(vec![0; 20_000]);
            let mut socket = Socket::new(room(), room());
            socket.set_ack_delay(None);
            let to = (IpAddress::from(ends.1), port);
            socket
                .connect(interface.context(), to, 50_000)
                .expect("connect");
            let handle = sockets.add(socket);
            Self {
                interface,
                queues,
                sockets,
                handle,
                ends,
                peer: TcpPeer::new(None).expect("peer"),
            }
        }

        /// A turn of both ends.
        fn turn(&mut self) {
            let now = self.peer.now();
            self.interface
                .poll(now, &mut self.queues, &mut self.sockets);
            for packet in self.queues.output.drain(..) {
                // Sums that smoltcp made hold for the peer.
                let kind = if self.ends.0.is_ipv4() { IPV4 } else { IPV6 };
                let parsed = Packet::parse(kind, &packet).expect("a packet");
                parsed.verify().expect("right sums");
                self.peer.take(&packet, parsed.source, MAC);
            }
            let mut answers = VecDeque::new();
            self.peer.run(&mut answers);
            for answer in answers {
                assert_eq!(answer.data[..6], MAC);
                self.queues
                    .input
                    .push_back(answer.data[ETHERNET..].to_vec());
            }
        }

        fn socket(&mut self) -> &mut Socket<'static> {
            self.sockets.get_mut(self.handle)
        }

        /// Sends `data`, ends, and gives what comes until the other end ends.
        fn exchange(&mut self, data: &[u8]) -> Vec<u8> {
            let (mut sent, mut got) = (0, Vec::new());
            // Delayed acknowledgements take their time.
            let begin = HostInstant::now();
            while begin.elapsed() < PATIENCE.into() {
                self.turn();
                let socket = self.socket();
                if socket.can_send() && sent < data.len() {
                    sent += socket.send_slice(&data[sent..]).expect("send");
                    if sent == data.len() {
                        socket.close();
                    }
                }
                while socket.can_recv() {
                    let mut piece = [0; 4096];
                    let n = socket.recv_slice(&mut piece).expect("receive");
                    got.extend_from_slice(&piece[..n]);
                }
                if sent == data.len() && !socket.may_recv() && socket.state() != State::SynSent {
                    return got;
                }
            }
            panic!("no end; {sent} sent, {} received", got.len());
        }
    }

    #[test]
    fn identifications_count_up_in_each_connection() {
        let mut numbers = Numbers::default();
        let packet = |port: u8| {
            let mut packet = [0; 40];
            packet[0] = 0x45;
            packet[9] = 6;
            packet[23] = port;
            packet
        };
        let mut id = |port| {
            let mut packet = packet(port);
            numbers.number(&mut packet);
            assert_eq!(checksum(0, &packet[..20]), 0, "the sum of its header");
            u16::from_be_bytes([packet[4], packet[5]])
        };
        assert_eq!([id(1), id(1), id(2), id(1), id(2)], [1, 2, 1, 3, 2]);
        for _ in 3..65_536 {
            id(1);
        }
        assert_eq!([id(1), id(1)], [1, 2], "past 65,535");
        // Nothing else is touched.
        for mut other in [vec![0x45; 20], vec![0x60; 40], vec![0x46; 40], Vec::new()] {
            let before = other.clone();
            numbers.number(&mut other);
            assert_eq!(other, before);
        }
    }

    fn sum(data: &[u8]) -> Vec<u8> {
        Sha256::digest(data).to_vec()
    }

    #[test]
    fn sink_answers_with_count_and_digest() {
        for ends in ENDS {
            let data: Vec<u8> = (0..300_001_u32).map(|n| (n * 7) as u8).collect();
            let got = Client::connect(ends, 9).exchange(&data);
            assert_eq!(got[..8], 300_001_u64.to_be_bytes());
            assert_eq!(got[8..], sum(&data));
        }
    }

    #[test]
    fn source_sends_what_was_ordered_and_its_digest() {
        let order = |bytes: u64, seed: u64| {
            let mut order = bytes.to_be_bytes().to_vec();
            order.extend(seed.to_be_bytes());
            order
        };
        for ends in ENDS {
            for bytes in [0_usize, 1, 300_003] {
                let got = Client::connect(ends, 19).exchange(&order(bytes as u64, 5));
                assert_eq!(got.len(), bytes + 32);
                assert_eq!(got[bytes..], sum(&got[..bytes]), "{bytes}");
            }
            let one = Client::connect(ends, 19).exchange(&order(64, 1));
            assert_ne!(one, Client::connect(ends, 19).exchange(&order(64, 2)));
        }
    }

    #[test]
    fn echo_returns_everything_and_sockets_are_used_again() {
        for ends in ENDS {
            let mut client = Client::connect(ends, 7);
            let data: Vec<u8> = (0..100_000_u32).map(|n| (n * 3) as u8).collect();
            assert_eq!(client.exchange(&data), data);
            for n in 0..2 * SOCKETS as u16 {
                // The last acknowledgement is on its way.
                while !client.peer.listens() {
                    client.turn();
                }
                let room = || SocketBuffer::new(vec![0; 2000]);
                let mut socket = Socket::new(room(), room());
                socket.set_ack_delay(None);
                let to = (IpAddress::from(ends.1), 7);
                socket
                    .connect(client.interface.context(), to, 50_001 + n)
                    .expect("connect");
                client.handle = client.sockets.add(socket);
                assert_eq!(client.exchange(b"again"), b"again", "{n}");
            }
        }
    }

    impl TcpPeer {
        fn listens(&self) -> bool {
            self.sockets.iter().all(|(_, socket)| match socket {
                smoltcp::socket::Socket::Tcp(tcp) => tcp.state() == State::Listen,
                _ => true,
            })
        }
    }
}
