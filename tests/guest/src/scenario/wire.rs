//! What the card sent, as `etherparse` reads it from a capture: it shares no code with the card, the
//! driver or the peer.

use std::path::Path;

use etherparse::{NetSlice, SlicedPacket, TcpSlice, TransportSlice};
use ferronic_sim::wire::{PEER_MAC, read_capture};

use crate::{GuestError, ensure};

const ETHERNET: usize = 14;

/// The data that one end of a connection, or of an exchange of datagrams, sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// By IPv6.
    pub v6: bool,
    /// TCP, else UDP.
    pub tcp: bool,
    /// The port of the other end.
    pub port: u16,
    /// The packets, in the order of the wire.
    pub packets: Vec<Data>,
    own_port: u16,
    /// What follows what was sent.
    next: u32,
    /// TCP payload that was sent more than once.
    pub again: usize,
    /// Packets whose IPv4 identification does not follow that of the one before.
    pub leaps: usize,
    last_id: Option<u16>,
}

/// A packet with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Bytes from the first of the IP header.
    pub len: usize,
    /// Of it, payload.
    pub payload: usize,
    /// It says that there is no more for now: PSH or FIN.
    pub last: bool,
}

impl Flow {
    /// Bytes of payload, each counted once.
    pub fn bytes(&self) -> usize {
        self.packets.iter().map(|data| data.payload).sum::<usize>() - self.again
    }

    fn segment(&mut self, tcp: &TcpSlice<'_>, len: usize, id: Option<u16>, name: &str) -> Verdict {
        let sequence = tcp.sequence_number();
        if tcp.syn() {
            self.next = sequence.wrapping_add(1);
        }
        if let Some(id) = id {
            let follows = self.last_id.is_none_or(|last| id == last.wrapping_add(1));
            self.leaps += usize::from(!follows);
            self.last_id = Some(id);
        }
        let payload = tcp.payload().len();
        if payload == 0 {
            return Ok(());
        }
        let before = self.next.wrapping_sub(sequence);
        // A segment may come again, but none may be left out.
        ensure!(
            before < 1 << 31,
            "{name}: bytes are missing before sequence number {sequence}"
        );
        self.again += payload.min(before as usize);
        if payload > before as usize {
            self.next = sequence.wrapping_add(payload as u32);
        }
        self.packets.push(Data {
            len,
            payload,
            last: tcp.psh() || tcp.fin(),
        });
        Ok(())
    }
}

type Verdict = Result<(), GuestError>;

/// The frames in a capture that did not come from the peer, with their numbers.
pub fn sent(path: &Path) -> Result<Vec<(usize, Vec<u8>)>, GuestError> {
    let frames =
        read_capture(path).map_err(|error| GuestError::Check(format!("the wire: {error}")))?;
    Ok((1..)
        .zip(frames.into_iter().map(|frame| frame.data))
        .filter(|(_, frame)| frame.get(6..12) != Some(&PEER_MAC))
        .collect())
}

/// Reads frames. Every IPv4, TCP, UDP and ICMPv6 packet must have right sums, lengths that agree, and
/// nothing behind it; flows come in the order in which they began.
pub fn flows<'a>(
    frames: impl IntoIterator<Item = &'a (usize, Vec<u8>)>,
) -> Result<Vec<Flow>, GuestError> {
    let mut flows = Vec::new();
    for (number, frame) in frames {
        take(&mut flows, &format!("frame {number}"), frame)?;
    }
    Ok(flows)
}

fn take(flows: &mut Vec<Flow>, name: &str, frame: &[u8]) -> Verdict {
    let sliced = SlicedPacket::from_ethernet(frame)
        .map_err(|error| GuestError::Check(format!("{name}: {error}: {frame:02x?}")))?;
    let (v6, len, id) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            ensure!(
                header.calc_header_checksum() == header.header_checksum,
                "{name}: wrong sum of the IPv4 header: {frame:02x?}"
            );
            (false, header.total_len.into(), Some(header.identification))
        }
        Some(NetSlice::Ipv6(ip)) => {
            let len = 40 + usize::from(ip.header().payload_length());
            (true, len, None)
        }
        _ => return Ok(()),
    };
    ensure!(
        ETHERNET + len == frame.len(),
        "{name}: a packet of {len} bytes in a frame of {}",
        frame.len()
    );
    ensure!(sum_is_right(&sliced), "{name}: wrong sum: {frame:02x?}");
    match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let key = (v6, true, tcp.source_port(), tcp.destination_port());
            // A SYN that comes again begins nothing.
            let after = tcp.sequence_number().wrapping_add(1);
            let begun = |flow: &Flow| flow.key() == key && flow.next == after;
            let new = tcp.syn() && !flows.iter().any(begun);
            flow(flows, key, new, name)?.segment(tcp, len, id, name)
        }
        Some(TransportSlice::Udp(udp)) => {
            ensure!(
                usize::from(udp.length()) == udp.slice().len(),
                "{name}: a datagram of {} bytes says {}",
                udp.slice().len(),
                udp.length()
            );
            let key = (v6, false, udp.source_port(), udp.destination_port());
            let new = !flows.iter().any(|flow| flow.key() == key);
            flow(flows, key, new, name)?.packets.push(Data {
                len,
                payload: udp.payload().len(),
                last: false,
            });
            Ok(())
        }
        _ => Ok(()),
    }
}

type Key = (bool, bool, u16, u16);

impl Flow {
    fn key(&self) -> Key {
        (self.v6, self.tcp, self.own_port, self.port)
    }
}

/// The flow of a packet: the youngest of these ports, or a new one.
fn flow<'a>(
    flows: &'a mut Vec<Flow>,
    key: Key,
    new: bool,
    name: &str,
) -> Result<&'a mut Flow, GuestError> {
    if new {
        let (v6, tcp, own_port, port) = key;
        flows.push(Flow {
            v6,
            tcp,
            own_port,
            port,
            ..Flow::default()
        });
    }
    let found = flows.iter_mut().rev().find(|flow| flow.key() == key);
    found.ok_or_else(|| GuestError::Check(format!("{name} belongs to no connection")))
}

fn sum_is_right(packet: &SlicedPacket<'_>) -> bool {
    enum Ends {
        V4([u8; 4], [u8; 4]),
        V6([u8; 16], [u8; 16]),
    }
    let ends = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => Ends::V4(ip.header().source(), ip.header().destination()),
        Some(NetSlice::Ipv6(ip)) => Ends::V6(ip.header().source(), ip.header().destination()),
        _ => return true,
    };
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let sum = match ends {
                Ends::V4(from, to) => tcp.calc_checksum_ipv4(from, to),
                Ends::V6(from, to) => tcp.calc_checksum_ipv6(from, to),
            };
            sum.ok() == Some(tcp.checksum())
        }
        Some(TransportSlice::Udp(udp)) => {
            let header = udp.to_header();
            let sum = match ends {
                Ends::V4(from, to) => header.calc_checksum_ipv4_raw(from, to, udp.payload()),
                Ends::V6(from, to) => header.calc_checksum_ipv6_raw(from, to, udp.payload()),
            };
            sum.ok() == Some(header.checksum)
        }
        Some(TransportSlice::Icmpv6(icmp)) => match ends {
            Ends::V6(from, to) => icmp.is_checksum_valid(from, to),
            Ends::V4(..) => false,
        },
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::super::frames;
    use super::*;

    const GUEST: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// Segments of the guest, by IPv4 and by IPv6, with right sums.
    fn segments(v6: bool) -> Vec<Vec<u8>> {
        let mut sequence = u32::MAX - 100;
        (0..4_u16)
            .map(|number| {
                let link = PacketBuilder::ethernet2(GUEST, PEER_MAC);
                let ip = if v6 {
                    link.ipv6([2; 16], [1; 16], 64)
                } else {
                    let mut header = etherparse::Ipv4Header::new(
                        0,
                        64,
                        etherparse::IpNumber::TCP,
                        [2; 4],
                        [1; 4],
                    )
                    .expect("a header");
                    header.identification = number.wrapping_sub(2);
                    link.ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
                };
                let tcp = ip.tcp(4000, 9, sequence, 1000).ack(5);
                let (tcp, len) = match number {
                    0 => (tcp.syn(), 0),
                    3 => (tcp.psh(), 50),
                    _ => (tcp, 100),
                };
                sequence = sequence.wrapping_add(len + u32::from(number == 0));
                let mut frame = Vec::new();
                tcp.write(&mut frame, &vec![number as u8; len as usize])
                    .expect("a frame");
                frame.splice(..12, [PEER_MAC, GUEST].concat());
                frame
            })
            .collect()
    }

    fn read(all: &[Vec<u8>]) -> Result<Vec<Flow>, GuestError> {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("wire.pcap");
        frames::write(&path, all).expect("capture");
        flows(&sent(&path)?)
    }

    #[test]
    fn flows_are_read_with_their_lengths_in_order() {
        let both = [segments(false), segments(true)].concat();
        let flows = read(&both).expect("flows");
        assert_eq!(flows.len(), 2);
        for (flow, header) in flows.iter().zip([40, 60]) {
            assert_eq!((flow.v6, flow.tcp, flow.port), (header == 60, true, 9));
            assert_eq!((flow.bytes(), flow.again, flow.leaps), (250, 0, 0));
            let seen: Vec<(usize, bool)> = flow.packets.iter().map(|d| (d.len, d.last)).collect();
            let want = [(100, false), (100, false), (50, true)];
            assert_eq!(seen, want.map(|(len, last)| (len + header, last)));
        }
    }

    #[test]
    fn any_wrong_bit_of_a_segment_is_found() {
        for v6 in [false, true] {
            let good = segments(v6);
            // The addresses of the link are in no sum, nor are the first bytes of IPv6.
            let begin = ETHERNET + if v6 { 8 } else { 0 };
            for at in begin..good[3].len() {
                let mut all = good.clone();
                all[3][at] ^= 0x10;
                assert!(read(&all).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn what_is_missing_or_comes_again_or_is_behind_the_packet_is_found() {
        for good in [segments(false), segments(true)] {
            let mut hole = good.clone();
            hole.remove(1);
            assert!(read(&hole).is_err());
            let mut again = good.clone();
            again.insert(1, good[0].clone());
            again.push(good[2].clone());
            let flows = read(&again).expect("flows");
            assert_eq!(flows.len(), 1);
            assert_eq!((flows[0].bytes(), flows[0].again), (250, 100));
            assert_eq!(flows[0].leaps, 2 * usize::from(!flows[0].v6));
            let mut longer = good;
            longer[2].push(0);
            assert!(read(&longer).is_err());
        }
    }
}
