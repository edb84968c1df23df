//! A stream that a kernel sent, joined and cut again, is the stream.

use std::fs::File;
use std::path::Path;

use ferronic_oracle::{
    Header, NEEDS_CSUM, Offloads, Opinion, Outcome, Packet, Protocol, gso, opinion, parse, transmit,
};
use pcap_file::pcap::PcapReader;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// TCP frames without padding whose sums are right.
fn capture() -> Vec<(Vec<u8>, Packet)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tcp_veth.pcap");
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let frame = packet.unwrap().data.into_owned();
        let Some(packet) = parse(&frame) else {
            continue;
        };
        let whole =
            packet.v6 || usize::from(half(&frame, packet.ip + 2)) == frame.len() - packet.ip;
        if packet.protocol == Protocol::Tcp && whole && opinion(&frame) == Opinion::Right {
            frames.push((frame, packet));
        }
    }
    frames
}

fn half(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn sequence(frame: &[u8], packet: &Packet) -> u32 {
    let at = packet.transport + 4;
    u32::from(half(frame, at)) << 16 | u32::from(half(frame, at + 2))
}

/// Whether `next` is what a cut behind `frame` gives.
fn follows(frame: &[u8], next: &[u8], packet: &Packet) -> bool {
    let length = (frame.len() - packet.payload) as u32;
    let expected = sequence(frame, packet).wrapping_add(length);
    let id = |frame: &[u8]| half(frame, packet.ip + 4);
    let flags = |frame: &[u8]| frame[packet.transport + 13];
    let mut headers = [
        frame[..packet.payload].to_vec(),
        next[..packet.payload].to_vec(),
    ];
    for header in &mut headers {
        let (ip, tcp) = (packet.ip, packet.transport);
        let lengths = if packet.v6 {
            ip + 4..ip + 6
        } else {
            ip + 2..ip + 4
        };
        header[lengths].fill(0);
        if !packet.v6 {
            header[ip + 4..ip + 6].fill(0);
            header[ip + 10..ip + 12].fill(0);
        }
        header[tcp + 4..tcp + 8].fill(0);
        header[tcp + 13] &= !(FIN | PSH | CWR);
        header[tcp + 16..tcp + 18].fill(0);
    }
    length > 0
        && next.len() > packet.payload
        && next.len() <= frame.len()
        && headers[0] == headers[1]
        && sequence(next, packet) == expected
        && (packet.v6 || id(next) == id(frame).wrapping_add(1))
        && flags(frame) & (FIN | PSH) == 0
        && flags(next) & CWR == 0
}

#[test]
fn streams_of_a_kernel_come_back_after_they_were_joined() {
    let frames = capture();
    let (mut at, mut joined, mut longest) = (0, 0, 0);
    while at < frames.len() {
        let (first, packet) = &frames[at];
        let mut run = vec![first.clone()];
        let mut whole = first.clone();
        let size = first.len() - packet.payload;
        while let Some((next, other)) = frames.get(at + run.len())
            && packet == other
            && follows(&run[run.len() - 1], next, packet)
            && run[run.len() - 1].len() == first.len()
            && whole.len() + size < 65_535
        {
            whole.extend(&next[packet.payload..]);
            // What only the last has.
            whole[packet.transport + 13] |= next[packet.transport + 13];
            run.push(next.clone());
        }
        at += run.len();
        if size == 0 {
            continue;
        }
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type: if packet.v6 { gso::TCPV6 } else { gso::TCPV4 },
            gso_size: size as u16,
            ..Header::default()
        };
        // Lengths and sums say nothing.
        let (ip, tcp) = (packet.ip, packet.transport);
        whole[if packet.v6 { ip + 4 } else { ip + 10 }] ^= 0x5a;
        whole[tcp + 16] ^= 0xa5;
        joined += run.len() - 1;
        longest = longest.max(run.len());
        assert_eq!(transmit(&header, &whole, Offloads::ALL), Outcome::Sent(run));
    }
    assert!(
        joined > 10 && longest > 5,
        "{joined} joined, {longest} at most"
    );
}
