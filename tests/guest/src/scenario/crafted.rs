//! Frames that no traffic of a kernel has, sent through the stock driver by packet sockets: congestion
//! marks, options, extension headers, a VLAN tag, segments of eight bytes (the least that the kernel
//! lets pass). What leaves is compared byte by byte with the segmentation in software of
//! [`ferronic_oracle`].

use ferronic_guest_agent::{Interface, Request};
use ferronic_oracle::{
    Header, NEEDS_CSUM, Offloads, Outcome, Protocol, Rng, Shape, fold, gso, sum, transmit,
};
use ferronic_transfer::Pattern;

use crate::{Guest, GuestError, ensure};

/// Neither guest nor peer: nobody answers.
pub const SOURCE: [u8; 6] = [2, 0, 0, 0, 0x0c, 1];
const TARGET: [u8; 6] = [2, 0, 0, 0, 0x0c, 2];

const CWR: u8 = 0x80;
const FLAGS: u8 = CWR | 0x10 | 0x08 | 0x01;

const HOP_BY_HOP: u8 = 0;
const DESTINATION: u8 = 60;

/// A frame and what is still to be done to it.
pub struct Crafted {
    what: &'static str,
    header: Header,
    headers: Vec<u8>,
    payload: usize,
    seed: u64,
}

/// What a frame is made of.
struct Plan {
    what: &'static str,
    shape: Shape,
    ecn: bool,
    /// Bytes of a segment; 0: only the checksum is to be completed.
    size: usize,
    payload: usize,
}

/// A frame without anything special.
fn plan(what: &'static str, v6: bool, protocol: Protocol, size: usize, payload: usize) -> Plan {
    Plan {
        what,
        shape: Shape {
            tags: 0,
            v6,
            protocol,
            ip_options: 0,
            extensions: Vec::new(),
            tcp_options: 0,
        },
        ecn: false,
        size,
        payload,
    }
}

/// All of them.
pub fn frames() -> Vec<Crafted> {
    use Protocol::{Tcp, Udp};
    let plans = [
        Plan {
            ecn: true,
            ..plan("TCP by IPv4 with ECN", false, Tcp, 1460, 60_000)
        },
        Plan {
            ecn: true,
            ..plan("TCP by IPv6 with ECN", true, Tcp, 1441, 30_007)
        },
        options(
            3,
            plan("TCP by IPv4, time stamps", false, Tcp, 1448, 20_000),
        ),
        options(10, plan("TCP by IPv4, all options", false, Tcp, 999, 9_001)),
        options(10, plan("TCP by IPv6, all options", true, Tcp, 1001, 9_001)),
        plan("TCP by IPv4, segments of 8 bytes", false, Tcp, 8, 301),
        plan("TCP by IPv6, one segment and a byte", true, Tcp, 1000, 1001),
        plan("UDP by IPv4", false, Udp, 1472, 60_001),
        plan("UDP by IPv6", true, Udp, 333, 10_001),
        extended(plan(
            "TCP by IPv6, extension headers",
            true,
            Tcp,
            1200,
            9_999,
        )),
        tagged(plan("TCP by IPv4 behind a tag", false, Tcp, 1460, 15_000)),
        plan("checksum of TCP by IPv4", false, Tcp, 0, 1001),
        plan("checksum of TCP by IPv6", true, Tcp, 0, 1400),
        plan("checksum of UDP by IPv4", false, Udp, 0, 1),
        plan("checksum of UDP by IPv6", true, Udp, 0, 777),
    ];
    let mut rng = Rng::new(5);
    (1000..)
        .zip(plans)
        .map(|(seed, plan)| plan.craft(seed, &mut rng))
        .collect()
}

/// With so many DWs of options of TCP, and as many of IPv4 if that is all there can be.
fn options(words: usize, mut plan: Plan) -> Plan {
    plan.shape.tcp_options = words;
    if words == 10 && !plan.shape.v6 {
        plan.shape.ip_options = words;
    }
    plan
}

fn extended(mut plan: Plan) -> Plan {
    plan.shape.extensions = vec![(HOP_BY_HOP, 0), (DESTINATION, 2)];
    plan
}

fn tagged(mut plan: Plan) -> Plan {
    plan.shape.tags = 1;
    plan
}

impl Plan {
    fn craft(self, seed: u64, rng: &mut Rng) -> Crafted {
        let shape = &self.shape;
        let mut headers = shape.headers(rng);
        headers[..6].copy_from_slice(&TARGET);
        headers[6..12].copy_from_slice(&SOURCE);
        if shape.tags > 0 {
            headers[12..14].copy_from_slice(&[0x81, 0]);
        }
        let (ip, at) = (shape.ip(), shape.transport());
        let length = headers.len() - at + self.payload;
        // The kernel looks at lengths, and at the sum of the pseudo header where that is completed.
        let addresses = if shape.v6 {
            put(&mut headers, ip + 4, at - ip - 40 + length);
            ip + 8..ip + 40
        } else {
            put(&mut headers, ip + 2, at - ip + length);
            put(&mut headers, ip + 10, 0);
            let check = !fold(sum(&headers[ip..at]));
            put(&mut headers, ip + 10, check.into());
            ip + 12..ip + 20
        };
        let kind = match (shape.protocol, shape.v6) {
            (Protocol::Udp, _) => {
                put(&mut headers, at + 4, length);
                gso::UDP_L4
            }
            (Protocol::Tcp, v6) => {
                headers[at + 13] = FLAGS;
                if v6 { gso::TCPV6 } else { gso::TCPV4 }
            }
        };
        if !self.ecn && shape.protocol == Protocol::Tcp {
            headers[at + 13] &= !CWR;
        }
        let place = at + shape.protocol.sum_at();
        let number = u64::from(shape.protocol.number());
        let partial = fold(sum(&headers[addresses]) + number + length as u64);
        put(&mut headers, place, partial.into());
        Crafted {
            what: self.what,
            header: Header {
                flags: NEEDS_CSUM,
                gso_type: match (self.size, self.ecn) {
                    (0, _) => gso::NONE,
                    (_, true) => kind | gso::ECN,
                    (_, false) => kind,
                },
                hdr_len: headers.len() as u16,
                gso_size: self.size as u16,
                csum_start: at as u16,
                csum_offset: shape.protocol.sum_at() as u16,
                num_buffers: 0,
            },
            headers,
            payload: self.payload,
            seed,
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

impl Crafted {
    /// Sends it.
    pub fn send(&self, guest: &mut Guest, interface: &Interface) -> Result<(), GuestError> {
        guest.order(Request::Packet {
            interface: interface.name.clone(),
            virtio: self.header.bytes().to_vec(),
            headers: self.headers.clone(),
            payload: self.payload,
            seed: self.seed,
        })
    }

    /// The frames that must leave for it.
    fn segments(&self) -> Result<Vec<Vec<u8>>, GuestError> {
        let mut frame = self.headers.clone();
        let begin = frame.len();
        frame.resize(begin + self.payload, 0);
        Pattern::new(self.seed).fill(&mut frame[begin..]);
        match transmit(&self.header, &frame, Offloads::ALL) {
            Outcome::Sent(frames) => Ok(frames),
            Outcome::Dropped(causes) => Err(GuestError::Check(format!(
                "{}: nothing may leave: {causes:?}",
                self.what
            ))),
        }
    }
}

/// How many frames must leave for all of them.
pub fn segments(crafted: &[Crafted]) -> Result<usize, GuestError> {
    crafted
        .iter()
        .map(|one| one.segments().map(|frames| frames.len()))
        .sum()
}

/// What left, from [`SOURCE`] and in order, is what had to leave for all of them.
pub fn compare(crafted: &[Crafted], left: &[&[u8]]) -> Result<(), GuestError> {
    let mut left = left.iter();
    let mut count = 0;
    for one in crafted {
        let want = one.segments()?;
        for (number, want) in (1..).zip(&want) {
            let seen = left.next();
            ensure!(
                seen.is_some_and(|seen| *seen == want),
                "{}, segment {number}: {want:02x?} had to leave, {seen:02x?} did",
                one.what
            );
            count += 1;
        }
    }
    let more = left.count();
    ensure!(more == 0, "{more} frames left that nobody asked for");
    println!(
        "  {} frames of packet sockets left as {count}, byte by byte as the specifications want them",
        crafted.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crafted_frames_are_as_the_specifications_want_them_and_others_are_found() {
        let crafted = frames();
        let all: Vec<Vec<u8>> = crafted
            .iter()
            .flat_map(|one| one.segments().expect("segments"))
            .collect();
        assert!(all.len() > 200);
        let left: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        compare(&crafted, &left).expect("they are the same");
        assert!(compare(&crafted, &left[1..]).is_err());
        assert!(compare(&crafted, &[&left[..], &left[..1]].concat()).is_err());
        let mut other = all.clone();
        other[20][30] ^= 1;
        let left: Vec<&[u8]> = other.iter().map(Vec::as_slice).collect();
        assert!(compare(&crafted, &left).is_err());
    }
}
