//! A host on the wire: answers ARP, ICMP echo and UDP echo, and has a few TCP services.

mod service;
mod tcp;

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use super::{Pace, RxFrame, Wire};
use tcp::TcpPeer;

/// Its station address.
pub const PEER_MAC: [u8; 6] = [0x02, 0xfe, 0x01, 0xff, 0xff, 0xfe];

const MAX_WAITING: usize = 4096;
const ETHERNET: usize = 14;
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The peer. Without an address it answers for every address but the asker's own.
pub struct PeerWire {
    address: Option<Ipv4Addr>,
    pace: Pace,
    answers: VecDeque<RxFrame>,
    tcp: TcpPeer,
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
        })
    }

    fn is_mine(&self, address: [u8; 4]) -> bool {
        let address = Ipv4Addr::from(address);
        match self.address {
            Some(mine) => mine == address,
            None => !address.is_broadcast() && !address.is_multicast() && !address.is_unspecified(),
        }
    }

    fn answer(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let kind = u16::from_be_bytes(*frame.get(12..)?.first_chunk()?);
        let to = frame.get(..6)?;
        if to != PEER_MAC && to[0] & 1 == 0 {
            return None;
        }
        match kind {
            ARP => self.answer_arp(frame),
            IPV4 => self.answer_ipv4(frame),
            _ => None,
        }
    }

    fn answer_arp(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let arp = frame.get(ETHERNET..ETHERNET + 28)?;
        if arp[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
            return None;
        }
        let asker: [u8; 4] = arp[14..18].try_into().ok()?;
        let target: [u8; 4] = arp[24..28].try_into().ok()?;
        // A probe or an announcement of one's own address is no question for us.
        if asker == target || asker == [0; 4] || !self.is_mine(target) {
            return None;
        }
        let mut reply = Vec::with_capacity(42);
        reply.extend_from_slice(&arp[8..14]);
        reply.extend_from_slice(&PEER_MAC);
        reply.extend_from_slice(&ARP.to_be_bytes());
        reply.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 2]);
        reply.extend_from_slice(&PEER_MAC);
        reply.extend_from_slice(&target);
        reply.extend_from_slice(&arp[8..18]);
        Some(reply)
    }

    fn answer_ipv4(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let ip = frame.get(ETHERNET..)?;
        let header = usize::from(ip.first()? & 0xf) * 4;
        let length = usize::from(u16::from_be_bytes(*ip.get(2..)?.first_chunk()?));
        let fragment = u16::from_be_bytes(*ip.get(6..)?.first_chunk()?) & 0x3fff;
        if ip[0] >> 4 != 4 || header < 20 || length < header || fragment != 0 {
            return None;
        }
        let target: [u8; 4] = ip.get(16..20)?.try_into().ok()?;
        if !self.is_mine(target) {
            return None;
        }
        let protocol = *ip.get(9)?;
        let payload = ip.get(header..length)?;
        let payload = match protocol {
            ICMP => echo_icmp(payload)?,
            UDP => echo_udp(payload)?,
            TCP => {
                let source: [u8; 4] = ip.get(12..16)?.try_into().ok()?;
                self.tcp.take(frame, source.into());
                self.tcp.run(&mut self.answers);
                return None;
            }
            _ => return None,
        };
        let mut reply = Vec::with_capacity(ETHERNET + length);
        reply.extend_from_slice(frame.get(6..12)?);
        reply.extend_from_slice(&PEER_MAC);
        reply.extend_from_slice(&IPV4.to_be_bytes());
        // Options are not sent back.
        let mut head = [0; 20];
        head.copy_from_slice(&ip[..20]);
        head[0] = 0x45;
        let total = u16::try_from(20 + payload.len()).ok()?;
        head[2..4].copy_from_slice(&total.to_be_bytes());
        head[8] = 64;
        head[10..12].fill(0);
        head[12..16].copy_from_slice(&target);
        head[16..20].copy_from_slice(&ip[12..16]);
        let sum = checksum(&head);
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        reply.extend_from_slice(&head);
        reply.extend_from_slice(&payload);
        Some(reply)
    }
}

fn echo_icmp(request: &[u8]) -> Option<Vec<u8>> {
    if request.len() < 8 || request[..2] != [8, 0] || checksum(request) != 0 {
        return None;
    }
    let mut reply = request.to_vec();
    reply[0] = 0;
    reply[2..4].fill(0);
    let sum = checksum(&reply);
    reply[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(reply)
}

fn echo_udp(request: &[u8]) -> Option<Vec<u8>> {
    const ECHO_PORT: [u8; 2] = [0, 7];
    if request.len() < 8 || request[2..4] != ECHO_PORT {
        return None;
    }
    let mut reply = request.to_vec();
    reply[0..2].copy_from_slice(&ECHO_PORT);
    reply[2..4].copy_from_slice(&request[0..2]);
    // Swapping ports and addresses does not change the sum: it stays as it was.
    Some(reply)
}

/// The Internet checksum (RFC 1071).
fn checksum(data: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in data.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

impl Wire for PeerWire {
    fn next_frame(&mut self, _now: u64) -> Option<RxFrame> {
        self.answers.pop_front()
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        self.answers.front().map(|_| now)
    }

    fn sent(&mut self, _now: u64, frame: &[u8], aborted: bool) {
        if aborted || self.answers.len() >= MAX_WAITING {
            return;
        }
        if let Some(data) = self.answer(frame) {
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
        self.tcp.run(&mut self.answers);
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
mod tests {
    use super::*;

    const ASKER: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn ask(peer: &mut PeerWire, frame: &[u8]) -> Option<Vec<u8>> {
        peer.sent(0, frame, false);
        peer.next_frame(0).map(|f| f.data)
    }

    fn arp(asker: [u8; 4], target: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend(ASKER);
        frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(ASKER);
        frame.extend(asker);
        frame.extend([0; 6]);
        frame.extend(target);
        frame
    }

    fn ping() -> Vec<u8> {
        let mut frame = PEER_MAC.to_vec();
        frame.extend(ASKER);
        frame.extend([
            8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1,
        ]);
        let mut icmp = vec![8, 0, 0, 0, 0, 1, 0, 1, 1, 2, 3, 4];
        let sum = checksum(&icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        frame.extend(icmp);
        frame
    }

    #[test]
    fn arp_is_answered_but_not_for_the_asker() {
        let mut peer = PeerWire::new(None, Pace::Line).expect("a peer");
        let reply = ask(&mut peer, &arp([10, 0, 0, 2], [10, 0, 0, 1])).expect("answer");
        assert_eq!(reply[..6], ASKER);
        assert_eq!(reply[20..22], [0, 2]);
        assert_eq!(reply[28..32], [10, 0, 0, 1]);
        assert!(ask(&mut peer, &arp([10, 0, 0, 2], [10, 0, 0, 2])).is_none());
        assert!(ask(&mut peer, &arp([0; 4], [10, 0, 0, 2])).is_none());
        let mut one = PeerWire::new(Some(Ipv4Addr::new(10, 0, 0, 9)), Pace::Line).expect("a peer");
        assert!(ask(&mut one, &arp([10, 0, 0, 2], [10, 0, 0, 1])).is_none());
    }

    #[test]
    fn echo_request_is_answered_with_right_checksums() {
        let mut peer = PeerWire::new(None, Pace::Line).expect("a peer");
        let reply = ask(&mut peer, &ping()).expect("answer");
        assert_eq!(checksum(&reply[14..34]), 0);
        assert_eq!(checksum(&reply[34..]), 0);
        assert_eq!(reply[34], 0);
        assert_eq!(reply[38..], ping()[38..]);
    }

    #[test]
    fn cut_frames_are_ignored() {
        let mut peer = PeerWire::new(None, Pace::Line).expect("a peer");
        for frame in [ping(), arp([10, 0, 0, 2], [10, 0, 0, 1])] {
            for len in 0..frame.len() {
                assert!(ask(&mut peer, &frame[..len]).is_none(), "{len}");
            }
        }
    }
}
