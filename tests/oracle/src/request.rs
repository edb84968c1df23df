//! Random buffers as drivers transmit them, and as they should not.

use crate::header::{Header, NEEDS_CSUM, Offloads, gso};
use crate::packet::{Protocol, parse};
use crate::rng::Rng;
use crate::shape::{Shape, random};
use crate::sum::{fold, sum};
use crate::transmit::{MAX_FRAME, Outcome, complete, transmit};

/// A frame to be transmitted, with its virtio header.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it is, for messages.
    pub kind: &'static str,
    /// The virtio header.
    pub header: Header,
    /// The frame.
    pub frame: Vec<u8>,
}

impl Request {
    /// As it lies in memory.
    pub fn buffer(&self) -> Vec<u8> {
        [&self.header.bytes()[..], &self.frame].concat()
    }

    /// A frame that asks for nothing.
    pub fn plain(frame: Vec<u8>) -> Self {
        Self {
            kind: "plain",
            header: Header::default(),
            frame,
        }
    }
}

/// Bounds of the time that a request takes in simulation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a packet.
    pub packet: usize,
    /// Segments.
    pub segments: usize,
}

impl Limits {
    /// As large as packets can be.
    pub const ALL: Self = Self {
        packet: 65_535,
        segments: 200,
    };
}

/// A frame of 14 to `most` bytes that asks for nothing.
pub fn plain(most: usize, rng: &mut Rng) -> Request {
    let top = match rng.below(4) {
        0 => 80,
        1 => most,
        _ => 1514,
    };
    let length = rng.range(14, top.min(most) as u64) as usize;
    let mut request = Request::plain(random(rng, length));
    garbage(&mut request.header, rng);
    // Bits of flags that mean nothing on transmit.
    request.header.flags = rng.pick(&[0, 0, 2, 4, 0xfe]);
    request
}

/// A frame of at most `most` bytes whose checksum is to be completed: of TCP or UDP with the sum of
/// the pseudo header in its place, or at any offsets.
pub fn checksum(most: usize, rng: &mut Rng) -> Request {
    if rng.chance(50) {
        let shape = Shape::random(rng);
        let mut frame = shape.headers(rng);
        let room = most.min(MAX_FRAME) - frame.len();
        let payload = rng.pick(&[0, 1, 20, 1000, room]).min(room);
        frame.extend(random(rng, payload));
        return pseudo(frame, rng);
    }
    let mut request = plain(most, rng);
    let length = request.frame.len() as u64;
    // The place at least fits; zeros and ones reach sums of 0 and of 0xffff.
    if rng.chance(20) {
        request.frame.fill(rng.pick(&[0, 0, 0xff]));
    }
    let any = rng.below(length - 1);
    let place = rng.pick(&[0, length - 2, any, any]);
    let any = rng.below(place + 1);
    let offset = rng.pick(&[0, 6, 6, 16, place, any]).min(place);
    request.kind = "a checksum anywhere";
    request.header.flags = NEEDS_CSUM | rng.pick(&[0, 0, 2, 0xfe]);
    request.header.csum_start = (place - offset) as u16;
    request.header.csum_offset = offset as u16;
    request
}

/// A packet with right lengths and the sum of the pseudo header where TCP's or UDP's checksum goes.
fn pseudo(mut frame: Vec<u8>, rng: &mut Rng) -> Request {
    let mut header = Header {
        flags: NEEDS_CSUM,
        hdr_len: rng.next_u64() as u16,
        ..Header::default()
    };
    if let Some(packet) = parse(&frame) {
        let (ip, at, end) = (packet.ip, packet.transport, frame.len());
        let addresses = if packet.v6 {
            put(&mut frame, ip + 4, end - ip - 40);
            ip + 8..ip + 40
        } else {
            put(&mut frame, ip + 2, end - ip);
            put(&mut frame, ip + 10, 0);
            let options = 20 + 4 * usize::from((frame[ip] & 15) - 5);
            let check = !fold(sum(&frame[ip..ip + options]));
            put(&mut frame, ip + 10, check.into());
            ip + 12..ip + 20
        };
        if packet.protocol == Protocol::Udp {
            put(&mut frame, at + 4, end - at);
        }
        let number = u64::from(packet.protocol.number());
        let partial = fold(sum(&frame[addresses]) + number + (end - at) as u64);
        put(&mut frame, at + packet.protocol.sum_at(), partial.into());
        header.csum_start = at as u16;
        header.csum_offset = packet.protocol.sum_at() as u16;
    }
    Request {
        kind: "the checksum of a packet",
        header,
        frame,
    }
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

/// A packet of at most `most` bytes of payload that is right in every length and sum.
pub fn packet(most: usize, rng: &mut Rng) -> Vec<u8> {
    let shape = Shape::random(rng);
    let mut frame = shape.headers(rng);
    let payload = rng.below(most as u64 + 1) as usize;
    frame.extend(random(rng, payload));
    let request = pseudo(frame, rng);
    complete(&request.header, &request.frame).unwrap_or(request.frame)
}

/// Fills what nobody may trust.
fn garbage(header: &mut Header, rng: &mut Rng) {
    let any = rng.next_u64() as u16;
    header.hdr_len = rng.pick(&[0, 14, 54, 0xffff, any]);
    header.num_buffers = rng.next_u64() as u16;
    let any = rng.next_u64() as u16;
    header.csum_start = rng.pick(&[0, 34, 0xffff, any]);
    let any = rng.next_u64() as u16;
    header.csum_offset = rng.pick(&[0, 6, 16, 0xffff, any]);
    header.gso_size = rng.next_u64() as u16;
}

/// The type of segmentation of a shape.
fn type_of(shape: &Shape, ecn: bool) -> u8 {
    let kind = match (shape.protocol, shape.v6) {
        (Protocol::Udp, _) => return gso::UDP_L4,
        (Protocol::Tcp, false) => gso::TCPV4,
        (Protocol::Tcp, true) => gso::TCPV6,
    };
    if ecn { kind | gso::ECN } else { kind }
}

/// A packet to be cut into segments, as `offloads` allow; every third asks for only one segment, or
/// for a few bytes in each.
pub fn segmented(limits: &Limits, offloads: Offloads, rng: &mut Rng) -> Request {
    let (shape, gso_type) = loop {
        let shape = Shape::random(rng);
        let gso_type = type_of(&shape, rng.chance(30));
        if offloads.allows(gso_type) {
            break (shape, gso_type);
        }
        if !offloads.segments() {
            return plain(1514, rng);
        }
    };
    let headers = shape.headers(rng);
    // The length of the whole packet, IP header included, is in 16 bits.
    let room = limits.packet - (shape.len() - shape.ip());
    let payload = match rng.below(8) {
        0 => rng.below(4) as usize,
        1 => room,
        2 | 3 => rng.below(room as u64 + 1) as usize,
        _ => rng.below(6000) as usize,
    };
    let payload = payload.min(room);
    let most = MAX_FRAME - shape.len();
    let size = match rng.below(10) {
        0 => rng.range(1, 16) as usize,
        1 => payload,
        2 => payload / 2,
        3 => payload + rng.range(1, 60_000) as usize,
        4 => rng.range(1, most as u64) as usize,
        5 => most,
        6 => 536,
        _ => 1500 - (shape.len() - shape.ip()),
    };
    // Neither too many segments nor too large ones.
    let mut size = size.max(payload.div_ceil(limits.segments)).max(1);
    if payload > most {
        size = size.min(most);
    }
    let mut request = Request {
        kind: "segmentation",
        header: Header::default(),
        frame: [headers, random(rng, payload)].concat(),
    };
    garbage(&mut request.header, rng);
    request.header.flags = rng.pick(&[NEEDS_CSUM, NEEDS_CSUM, 0, 0xff]);
    request.header.gso_type = gso_type;
    request.header.gso_size = size.min(0xffff) as u16;
    if rng.chance(10) {
        sum_to_zero(&mut request, offloads);
    }
    request
}

/// Changes the payload so that the sum of the first segment is 0, which chance seldom makes.
fn sum_to_zero(request: &mut Request, offloads: Offloads) {
    let Some(packet) = parse(&request.frame) else {
        return;
    };
    let place = packet.transport + packet.protocol.sum_at();
    let at = packet.payload;
    if let Outcome::Sent(segments) = transmit(&request.header, &request.frame, offloads)
        && let Some(first) = segments.first()
        && first.len() >= at + 2
    {
        let more = sum(&first[place..place + 2]) + sum(&first[at..at + 2]);
        put(&mut request.frame, at, fold(more).into());
    }
}

/// Anything sound, within what `offloads` allow.
pub fn sound(limits: &Limits, offloads: Offloads, rng: &mut Rng) -> Request {
    let most = limits.packet.min(MAX_FRAME);
    match rng.below(10) {
        0..2 => plain(most, rng),
        2..4 if offloads.csum => checksum(most, rng),
        _ => segmented(limits, offloads, rng),
    }
}

/// A small request with something wrong in it, mostly. What becomes of it says the oracle: chance
/// makes some of them sound.
pub fn malformed(offloads: Offloads, rng: &mut Rng) -> Request {
    let small = Limits {
        packet: 400,
        segments: 12,
    };
    let mut request = segmented(&small, offloads, rng);
    let headers = parse(&request.frame);
    let Some(packet) = headers.filter(|_| request.kind == "segmentation") else {
        return request;
    };
    let (ip, at) = (packet.ip, packet.transport);
    let frame = &mut request.frame;
    let header = &mut request.header;
    request.kind = match rng.below(16) {
        0 => {
            frame.truncate(rng.below(packet.payload as u64) as usize);
            "headers cut off"
        }
        1 => {
            let field = rng.pick(&[0x2000, 0x0001, 0x1fff, 0x3fff, 0x6000, 0x8000]);
            if !packet.v6 {
                put(frame, ip + 6, field);
            } else {
                frame[ip + 6] = 44;
            }
            "a fragment"
        }
        2 => {
            header.gso_type = rng.next_u64() as u8;
            "any type"
        }
        3 => {
            header.gso_type = rng.pick(&[1, 2, 3, 4, 5, 0x80, 0x81, 0x83, 0x84, 0x85]);
            "another type"
        }
        4 => {
            header.gso_size = 0;
            "segments of 0 bytes"
        }
        5 => {
            let length = frame.len();
            header.gso_type = gso::NONE;
            header.flags = NEEDS_CSUM;
            // Just outside, far outside, and around the end of 16 bits.
            let (start, offset) = rng.pick(&[
                (length - 1, 0),
                (length, 0),
                (length - 8, 7),
                (0, length - 1),
                (0, 0xffff),
                (0xffff, 0),
                (0xffff, 1),
                (0xfff0, 0x60),
                (0xffff, 0xffff),
            ]);
            (header.csum_start, header.csum_offset) = (start as u16, offset as u16);
            "a checksum outside"
        }
        6 => {
            header.gso_type = gso::NONE;
            header.flags = NEEDS_CSUM;
            header.csum_start = rng.below(2 * frame.len() as u64) as u16;
            header.csum_offset = rng.below(2 * frame.len() as u64) as u16;
            "a checksum here or there"
        }
        7 => {
            if packet.protocol == Protocol::Tcp {
                frame[at + 12] = (rng.below(16) << 4) as u8;
            }
            "any data offset"
        }
        8 => {
            if packet.v6 {
                frame[ip + 6] = rng.pick(&[0, 60]);
                frame[ip + 41] = rng.next_u64() as u8;
            } else {
                frame[ip] = 0x40 | rng.below(16) as u8;
            }
            "headers of any length"
        }
        9 => {
            frame[ip] = rng.next_u64() as u8;
            "any version"
        }
        10 => {
            let field = rng.pick(&[0x8100, 0x88a8, 0x0800, 0x86dd, 0x9100, 0x0806, 64]);
            put(frame, ip - 2, field);
            "any type of Ethernet"
        }
        11 => {
            let any = rng.next_u64() as u8;
            let next = rng.pick(&[0, 1, 6, 17, 43, 44, 50, 51, 59, 60, any]);
            frame[ip + if packet.v6 { 6 } else { 9 }] = next;
            "any protocol"
        }
        // These take long.
        12 if rng.chance(25) => {
            let room = rng.pick(&[1, 2, 500, 4000]);
            let more = random(rng, MAX_FRAME + room - frame.len());
            frame.extend(more);
            // All of it in one segment, or as many as are good.
            header.gso_size = rng.pick(&[0x2400, 0x3fff, 0xffff, 4000]);
            "a long segment"
        }
        13 => {
            let length = rng.range(0, 200) as usize;
            *frame = random(rng, length);
            "no frame"
        }
        14 if rng.chance(25) => {
            let length = MAX_FRAME + rng.pick(&[1, 2, 100, 4000]);
            frame.resize(length, 0x5a);
            header.gso_type = gso::NONE;
            header.flags = rng.pick(&[0, NEEDS_CSUM]);
            "a long frame"
        }
        _ => {
            for _ in 0..rng.range(1, 4) {
                let bit = rng.below(8 * packet.payload as u64) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            "bits flipped"
        }
    };
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opinion::{Opinion, opinion};
    use crate::transmit::Cause;
    use std::collections::HashSet;

    #[test]
    fn sound_requests_leave_and_etherparse_agrees_with_every_segment() {
        let mut rng = Rng::new(11);
        let (mut one, mut many, mut largest) = (0, 0, 0);
        // TCP's sums of 0, and UDP's.
        let mut zeros = [0; 2];
        for _ in 0..600 {
            let request = segmented(&Limits::ALL, Offloads::ALL, &mut rng);
            let Outcome::Sent(segments) = transmit(&request.header, &request.frame, Offloads::ALL)
            else {
                panic!("dropped: {:x?}", request.header);
            };
            for segment in &segments {
                assert_eq!(opinion(segment), Opinion::Right, "{segment:02x?}");
                let packet = parse(segment).expect("the headers of a packet");
                let place = packet.transport + packet.protocol.sum_at();
                match (packet.protocol, &segment[place..place + 2]) {
                    (Protocol::Tcp, [0, 0]) => zeros[0] += 1,
                    (Protocol::Udp, [0xff, 0xff]) => zeros[1] += 1,
                    _ => {}
                }
            }
            one += usize::from(segments.len() == 1);
            many += usize::from(segments.len() > 40);
            largest = largest.max(request.frame.len());
            assert!(segments.len() <= Limits::ALL.segments);
        }
        assert!(
            one > 50 && many > 50,
            "{one} of one segment, {many} of many"
        );
        assert!(largest >= 14 + 65_535, "{largest}");
        assert!(zeros[0] > 5 && zeros[1] > 5, "{zeros:?}");
    }

    #[test]
    fn completed_packets_are_right_for_etherparse() {
        let mut rng = Rng::new(12);
        let (mut packets, mut others) = (0, 0);
        for _ in 0..2000 {
            let request = checksum(MAX_FRAME, &mut rng);
            let Outcome::Sent(frames) = transmit(&request.header, &request.frame, Offloads::ALL)
            else {
                panic!("dropped: {:x?}", request.header);
            };
            assert_eq!(frames.len(), 1);
            if request.kind == "the checksum of a packet" {
                assert_eq!(opinion(&frames[0]), Opinion::Right, "{:02x?}", frames[0]);
                packets += 1;
            } else {
                others += 1;
            }
        }
        assert!(packets > 500 && others > 500);
    }

    #[test]
    fn malformed_requests_are_of_every_kind_and_mostly_dropped() {
        let mut rng = Rng::new(13);
        let (mut kinds, mut causes) = (HashSet::new(), HashSet::new());
        let mut dropped = 0;
        for _ in 0..4000 {
            let request = malformed(Offloads::ALL, &mut rng);
            kinds.insert(request.kind);
            match transmit(&request.header, &request.frame, Offloads::ALL) {
                Outcome::Sent(frames) => {
                    for frame in frames {
                        let length = frame.len();
                        assert!((14..=MAX_FRAME).contains(&length), "{length} bytes");
                    }
                }
                Outcome::Dropped(why) => {
                    dropped += 1;
                    causes.extend(why);
                }
            }
        }
        assert!(kinds.len() >= 16, "{kinds:?}");
        assert!((2000..3900).contains(&dropped), "{dropped} dropped");
        assert_eq!(
            causes,
            HashSet::from([Cause::Short, Cause::Long, Cause::Offload])
        );
    }
}
