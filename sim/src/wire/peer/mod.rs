//! A host on the wire, of IPv4 and IPv6: answers ARP, neighbour discovery, ICMP echo and UDP echo,
//! and has a few TCP services. What has a wrong sum it does not answer: to the sender it is lost.
//!
//! TCP data is taken as a host with receive offload takes it: what follows closely is one piece, of at
//! most 64 KB, and acknowledged once.

mod echo;
mod ip;
mod neighbour;
mod service;
mod tcp;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

use super::{Pace, RxFrame, Wire};
use ip::{ICMPV6, IPV4, IPV6, Packet, Refused, TCP};
use neighbour::{ARP, SOLICITATION};
use tcp::TcpPeer;

/// Its station address.
pub const PEER_MAC: [u8; 6] = [0x02, 0xfe, 0x01, 0xff, 0xff, 0xfe];
/// Its IPv6 address.
pub const PEER_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 1);

const MAX_WAITING: usize = 4096;
const ETHERNET: usize = 14;
/// Cycles without another frame after which waiting data is taken: 20 us.
const GAP: u64 = 2500;
/// Bytes that wait at most.
const PIECE: usize = 65_535;
/// Wrong sums that are told; the others are only counted.
const TOLD: u64 = 8;

/// The peer. Without an IPv4 address it answers for every one but the asker's own; its IPv6 address
/// is [`PEER_IPV6`].
pub struct PeerWire {
    address: Option<Ipv4Addr>,
    pace: Pace,
    answers: VecDeque<RxFrame>,
    tcp: TcpPeer,
    /// When the data that waits is taken.
    due: Option<u64>,
    waiting: usize,
    wrong_sums: u64,
}

impl PeerWire {
    /// A peer at `address`.
    ///
    /// # Errors
    /// When the system gives no timer.
    pub fn new(address: Option<Ipv4Addr>, pace: Pace) -> io::Result<Self> {
        Ok(Self {
            address,
            pace,
            answers: VecDeque::new(),
            tcp: TcpPeer::new(address)?,
            due: None,
            waiting: 0,
            wrong_sums: 0,
        })
    }

    /// Packets with a wrong checksum that came so far.
    pub const fn wrong_sums(&self) -> u64 {
        self.wrong_sums
    }

    fn is_mine(&self, address: IpAddr) -> bool {
        match (address, self.address) {
            (IpAddr::V6(address), _) => address == PEER_IPV6,
            (IpAddr::V4(address), Some(mine)) => mine == address,
            (IpAddr::V4(address), None) => {
                !address.is_broadcast() && !address.is_multicast() && !address.is_unspecified()
            }
        }
    }

    fn answer(&mut self, now: u64, frame: &[u8]) -> Option<Vec<u8>> {
        let kind = u16::from_be_bytes(*frame.get(12..)?.first_chunk()?);
        let to = frame.get(..6)?;
        if to != PEER_MAC && to[0] & 1 == 0 {
            return None;
        }
        let asker: [u8; 6] = *frame.get(6..)?.first_chunk()?;
        let (station, body) = match kind {
            ARP => (asker, neighbour::answer_arp(frame, |a| self.is_mine(a))?),
            IPV4 | IPV6 => self.answer_ip(now, kind, asker, frame.get(ETHERNET..)?)?,
            _ => return None,
        };
        Some(ethernet(station, kind, &body))
    }

    /// The station and the packet that answer a packet.
    fn answer_ip(
        &mut self,
        now: u64,
        kind: u16,
        asker: [u8; 6],
        data: &[u8],
    ) -> Option<([u8; 6], Vec<u8>)> {
        let packet = match Packet::parse(kind, data).and_then(|p| p.verify().map(|()| p)) {
            Ok(packet) => packet,
            Err(Refused::Form) => return None,
            Err(Refused::Sum) => {
                self.wrong_sums += 1;
                if self.wrong_sums <= TOLD {
                    let head = &data[..data.len().min(80)];
                    log::warn!(
                        "a packet of {} bytes has a wrong sum: {head:02x?}",
                        data.len()
                    );
                }
                return None;
            }
        };
        if packet.protocol == ICMPV6 && packet.payload.first() == Some(&SOLICITATION) {
            return neighbour::answer_solicitation(&packet, asker, |a| self.is_mine(a));
        }
        if !self.is_mine(packet.target) {
            return None;
        }
        if packet.protocol == TCP {
            self.tcp.take(packet.bytes, packet.source, asker);
            self.waiting += packet.payload.len();
            if tcp::may_wait(packet.payload) && self.waiting < PIECE {
                self.due = Some(now + GAP);
            } else {
                self.run_tcp();
            }
            return None;
        }
        Some((asker, echo::answer(&packet)?))
    }

    fn run_tcp(&mut self) {
        (self.due, self.waiting) = (None, 0);
        self.tcp.run(&mut self.answers);
    }
}

/// A frame from here.
fn ethernet(to: [u8; 6], kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET + body.len());
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&PEER_MAC);
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

impl Wire for PeerWire {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        if self.due.is_some_and(|due| due <= now) {
            self.run_tcp();
        }
        self.answers.pop_front()
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.answers.front().map(|_| now).or(self.due)
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        if aborted || self.answers.len() >= MAX_WAITING {
            return;
        }
        if let Some(data) = self.answer(now, frame) {
            self.answers.push_back(RxFrame { data, abort: false });
        }
    }

    fn driver_ready(&mut self, _now: u64, ready: bool) {
        if !ready {
            self.answers.clear();
        }
    }

    fn restart(&mut self) {
        self.answers.clear();
    }

    fn poll(&mut self) -> io::Result<()> {
        self.run_tcp();
        Ok(())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tcp.fd())
    }

    fn pace(&self) -> Pace {
        self.pace
    }
}

#[cfg(test)]
mod tests;
