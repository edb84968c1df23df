//! What others think of frames: `etherparse` of received ones, the oracle of transmitted ones. Neither
//! shares anything with the driver.
//!
//! [`headers`] is what both the test `fuzz_headers` and the fuzz target of the same name call.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use ferronic::offload::{Admitted, HeaderFault, Sum, Verdict, admit, verify};
use ferronic::spec::net::{HEADER_WINDOW, HeaderFlags, MAX_FRAME, MIN_FRAME, gso};
use ferronic::spec::{Features, NetHeader};
use ferronic::{OffloadError, Segmentation, TxOffload};
use ferronic_oracle::{Header, Offloads, Outcome, transmit};
use zerocopy::IntoBytes;

/// What `etherparse` finds of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opinion {
    Right,
    Wrong,
    NoSum,
    Unknown,
}

/// A sum of 0 and its other form are one (RFC 1071).
fn same(found: u16, wanted: u16) -> bool {
    found == wanted || (matches!(found, 0 | 0xffff) && matches!(wanted, 0 | 0xffff))
}

fn opinion(frame: &[u8]) -> Opinion {
    let Ok(packet) = SlicedPacket::from_ethernet(frame) else {
        return Opinion::Unknown;
    };
    enum Addresses {
        V4([u8; 4], [u8; 4]),
        V6([u8; 16], [u8; 16]),
    }
    let addresses = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let mut header = ip.header().to_header();
            // It has no place for the reserved flag: what that adds is taken from the sum.
            let reserved = u32::from(ip.header().slice()[6] & 0x80) << 8;
            let found = u32::from(header.header_checksum) + reserved;
            header.header_checksum = ((found & 0xffff) + (found >> 16)) as u16;
            if !same(header.header_checksum, header.calc_header_checksum()) {
                return Opinion::Wrong;
            }
            if ip.header().is_fragmenting_payload() {
                return Opinion::Unknown;
            }
            Addresses::V4(header.source, header.destination)
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header().to_header();
            if ip.is_payload_fragmented() {
                return Opinion::Unknown;
            }
            Addresses::V6(header.source, header.destination)
        }
        _ => return Opinion::NoSum,
    };
    let (found, wanted) = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let wanted = match addresses {
                Addresses::V4(s, d) => tcp.calc_checksum_ipv4(s, d),
                Addresses::V6(s, d) => tcp.calc_checksum_ipv6(s, d),
            };
            (tcp.checksum(), wanted)
        }
        Some(TransportSlice::Udp(udp)) => {
            let header = udp.to_header();
            let wanted = match addresses {
                Addresses::V4(..) if header.checksum == 0 => return Opinion::NoSum,
                Addresses::V6(..) if header.checksum == 0 => return Opinion::Wrong,
                Addresses::V4(s, d) => header.calc_checksum_ipv4_raw(s, d, udp.payload()),
                Addresses::V6(s, d) => header.calc_checksum_ipv6_raw(s, d, udp.payload()),
            };
            (header.checksum, wanted)
        }
        _ => return Opinion::NoSum,
    };
    match wanted {
        Ok(wanted) if same(found, wanted) => Opinion::Right,
        Ok(_) => Opinion::Wrong,
        Err(_) => Opinion::Unknown,
    }
}

/// EtherType behind at most two VLAN tags: `etherparse` looks behind more, and into others.
fn is_plain_ip(frame: &[u8]) -> bool {
    let mut at = 12;
    while at < 20 && matches!(frame.get(at..at + 2), Some([0x81, 0] | [0x88, 0xa8])) {
        at += 4;
    }
    matches!(frame.get(at..at + 2), Some([8, 0] | [0x86, 0xdd]))
}

/// The verdict on a received frame, if it is one that can be.
fn received(frame: &[u8]) -> Result<Verdict, String> {
    let (found, other) = (verify(frame), opinion(frame));
    let agree = match (found, other) {
        (Verdict::Right, _) => other == Opinion::Right,
        (Verdict::Wrong(Sum::Ipv4 | Sum::Tcp | Sum::Udp), _) => {
            matches!(other, Opinion::Wrong | Opinion::Unknown)
        }
        (Verdict::NoSum, _) => {
            matches!(other, Opinion::NoSum | Opinion::Unknown) || !is_plain_ip(frame)
        }
        // No claim is made. What is right may go unverified only for what is not looked behind, and
        // lengths of 0, which for `etherparse` are all that is there.
        (Verdict::Unverifiable(fault), Opinion::Right) => matches!(
            fault,
            HeaderFault::Extension(_) | HeaderFault::HeaderLength | HeaderFault::Truncated
        ),
        (Verdict::Unverifiable(_), _) => true,
    };
    match agree {
        true => Ok(found),
        false => Err(format!("{found:?}, but etherparse finds {other:?}")),
    }
}

/// Admission of a received frame with any header.
fn admitted(header: &NetHeader, frame: &[u8], verdict: Verdict) -> Result<(), String> {
    for guest_csum in [false, true] {
        let mut bytes = frame.to_vec();
        let got = admit(header, guest_csum, &mut bytes);
        let flags = HeaderFlags::from_bits_retain(header.flags);
        let partial = guest_csum && flags.contains(HeaderFlags::NEEDS_CSUM);
        let said = guest_csum && !partial && flags.contains(HeaderFlags::DATA_VALID);
        let right = match got {
            Ok(Admitted::Completed) => {
                let at =
                    usize::from(header.csum_start.get()) + usize::from(header.csum_offset.get());
                let mut undone = bytes.clone();
                undone[at..at + 2].copy_from_slice(&frame[at..at + 2]);
                partial && undone == frame
            }
            Ok(Admitted::ByCard) => said && bytes == frame,
            Ok(Admitted::Verified) => !partial && !said && verdict == Verdict::Right,
            Ok(Admitted::NoSum) => !partial && !said && verdict == Verdict::NoSum,
            Err(_) => {
                let wrong = !matches!(verdict, Verdict::Right | Verdict::NoSum);
                bytes == frame && !said && (partial || wrong)
            }
        };
        if !right {
            return Err(format!(
                "{got:?} of {verdict:?} with {header:?}, {guest_csum}"
            ));
        }
    }
    Ok(())
}

fn offloads(features: Features) -> Offloads {
    Offloads {
        csum: features.contains(Features::CSUM),
        tso4: features.contains(Features::HOST_TSO4),
        tso6: features.contains(Features::HOST_TSO6),
        ecn: features.contains(Features::HOST_ECN),
        uso: features.contains(Features::HOST_USO),
    }
}

/// The header of a request, whether it can be or not.
fn unchecked(offload: TxOffload) -> Header {
    match offload {
        TxOffload::None => Header::default(),
        TxOffload::Checksum { start, offset } => Header {
            flags: 1,
            csum_start: start,
            csum_offset: offset,
            ..Header::default()
        },
        TxOffload::Segment { kind, size, ecn } => Header {
            flags: 1,
            gso_type: if ecn { gso::ECN } else { 0 }
                | match kind {
                    Segmentation::TcpV4 => gso::TCPV4,
                    Segmentation::TcpV6 => gso::TCPV6,
                    Segmentation::Udp => gso::UDP_L4,
                },
            gso_size: size,
            ..Header::default()
        },
    }
}

/// What the driver takes the card sends, and what it refuses the card would drop.
fn requested(offload: TxOffload, features: Features, frame: &[u8]) -> Result<bool, String> {
    let segment = matches!(offload, TxOffload::Segment { .. });
    if frame.len() < MIN_FRAME || (!segment && frame.len() > MAX_FRAME) {
        return Ok(false);
    }
    let head = &frame[..frame.len().min(HEADER_WINDOW)];
    let header = offload.header(features, head, frame.len());
    let asked = match header {
        Ok(header) => Header::read(header.as_bytes()).unwrap_or_default(),
        Err(_) => unchecked(offload),
    };
    let sent = matches!(
        transmit(&asked, frame, offloads(features)),
        Outcome::Sent(_)
    );
    let agree = match header {
        Ok(header) => sent && (!segment || usize::from(header.hdr_len.get()) <= HEADER_WINDOW),
        // Rules for drivers that a card need not keep.
        Err(
            OffloadError::CwrWithoutEcn
            | OffloadError::IpLength(_)
            | OffloadError::Headers(HeaderFault::Extension(0)),
        ) => true,
        Err(_) => !sent,
    };
    match agree {
        true => Ok(header.is_ok()),
        false => Err(format!(
            "{offload:?} became {header:?}, but is sent: {sent}"
        )),
    }
}

/// A prepared frame whose checksum the card completes: right then, whatever it was. That of an IPv4
/// header is the sender's.
fn completed(offload: TxOffload, frame: &[u8]) -> Result<(), String> {
    let head = &frame[..frame.len().min(HEADER_WINDOW)];
    let header = offload.header(Features::TX_OFFLOADS, head, frame.len());
    let header = header.map_err(|e| format!("a prepared checksum is refused: {e}"))?;
    let header = Header::read(header.as_bytes()).unwrap_or_default();
    let Outcome::Sent(wire) = transmit(&header, frame, Offloads::ALL) else {
        return Err("a prepared checksum is dropped".into());
    };
    match verify(&wire[0]) {
        Verdict::Right | Verdict::Wrong(Sum::Ipv4) => Ok(()),
        other => Err(format!("a completed frame is {other:?}")),
    }
}

/// Requests as [`TxOffload::checksum`] and [`TxOffload::segment`] prepare them.
fn prepared(size: u16, frame: &[u8]) -> Result<(), String> {
    let all = Features::TX_OFFLOADS;
    let mut bytes = frame.to_vec();
    match TxOffload::checksum(&mut bytes) {
        None if bytes != frame => return Err("a frame without a checksum was changed".into()),
        Some(offload) if bytes.len() <= MAX_FRAME => completed(offload, &bytes)?,
        _ => {}
    }
    let mut bytes = frame.to_vec();
    let len = bytes.len();
    match TxOffload::segment(&mut bytes, len, size) {
        Err(_) if bytes != frame => Err("a frame that cannot be segmented was changed".into()),
        Err(_) => Ok(()),
        Ok(offload) => requested(offload, all, &bytes).map(|_| ()),
    }
}

/// What [`headers`] met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// A frame whose checksums are right, for both.
    pub right: bool,
    /// One whose checksums are wrong.
    pub wrong: bool,
    /// One that cannot be verified.
    pub unverifiable: bool,
    /// A request that was granted.
    pub granted: bool,
}

/// Bytes in front of the frame in the input of [`headers`].
pub const PREFIX: usize = 10;

/// Reads an input as a virtio header, a request and a frame, and lets the driver judge all of it.
///
/// # Errors
/// When somebody else judges otherwise.
pub fn headers(input: &[u8]) -> Result<Met, String> {
    let Some((prefix, frame)) = input.split_at_checked(PREFIX) else {
        return Ok(Met::default());
    };
    let half = |at: usize| u16::from_le_bytes([prefix[at], prefix[at + 1]]);
    let (start, offset, size) = (half(1), half(3), half(5));
    let header = NetHeader {
        flags: prefix[0],
        csum_start: start.into(),
        csum_offset: offset.into(),
        gso_size: size.into(),
        ..NetHeader::default()
    };
    let verdict = received(frame)?;
    admitted(&header, frame, verdict)?;
    let ecn = prefix[7] & 0x80 != 0;
    let kind = match prefix[7] & 3 {
        0 => Segmentation::TcpV4,
        1 => Segmentation::TcpV6,
        _ => Segmentation::Udp,
    };
    let mut features = Features::TX_OFFLOADS;
    let [one, two] = [prefix[8], prefix[9]].map(|byte| 1_u64 << (byte & 63));
    features.remove(Features::from_bits_retain(one | two));
    let features = features.with_requirements();
    let checksum = requested(TxOffload::Checksum { start, offset }, features, frame)?;
    let segment = requested(TxOffload::Segment { kind, size, ecn }, features, frame)?;
    prepared(size, frame)?;
    Ok(Met {
        right: verdict == Verdict::Right,
        wrong: matches!(verdict, Verdict::Wrong(_)),
        unverifiable: matches!(verdict, Verdict::Unverifiable(_)),
        granted: checksum || segment,
    })
}
