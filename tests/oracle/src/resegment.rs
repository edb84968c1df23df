//! Cuts what a driver received back into the frames that were on the wire.
//!
//! Written from the specifications of what a merged frame is (virtio 1.2, "Processing of Incoming
//! Packets"; RFC 791, 793, 8200) and of segmentation, with the code that tells what a card sends
//! for a request; it knows nothing of how frames are merged.

use thiserror::Error;

use crate::header::{DATA_VALID, Header, NEEDS_CSUM, gso};
use crate::packet::{Protocol, parse};
use crate::sum::{fold, sum};
use crate::transmit::{complete, segment};

/// Why something that was received is not sound.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unsound {
    /// There is no whole virtio header.
    #[error("fewer than 12 bytes: no virtio header")]
    Short,
    /// A merged frame must ask for its checksum; other flags than two are of no feature.
    #[error("flags {0:#04x}: a merged frame has NEEDS_CSUM, and only DATA_VALID is known besides")]
    Flags(u8),
    /// Neither of the types that merging makes.
    #[error("gso_type {0:#04x} is not of this frame, or of no feature")]
    Type(u8),
    /// `gso_size` of a frame that is not merged, or one that does not cut it.
    #[error("gso_size {size} with {payload} bytes of payload: not at least two segments")]
    Size {
        /// `gso_size`.
        size: u16,
        /// Bytes behind the headers.
        payload: usize,
    },
    /// The checksum is not where TCP has it.
    #[error("checksum at {start} + {offset} is not that of TCP")]
    Place {
        /// `csum_start`.
        start: u16,
        /// `csum_offset`.
        offset: u16,
    },
    /// The hint is less than the headers.
    #[error("hdr_len {0} is less than the headers are")]
    Headers(u16),
    /// The IP header tells another length than the frame has.
    #[error("the IP length is not that of the frame")]
    Length,
    /// The sum of the IPv4 header is wrong.
    #[error("the sum of the IPv4 header is wrong")]
    HeaderSum,
    /// The TCP checksum is not the sum of the pseudo header.
    #[error("the TCP checksum is {found:#06x}, the sum of the pseudo header {wanted:#06x}")]
    Partial {
        /// In the frame.
        found: u16,
        /// By the merged length.
        wanted: u16,
    },
}

/// What was on the wire for a buffer with its virtio header.
///
/// # Errors
/// See [`resegment`].
pub fn resegment_buffer(buffer: &[u8]) -> Result<Vec<Vec<u8>>, Unsound> {
    let header = Header::read(buffer).ok_or(Unsound::Short)?;
    resegment(&header, &buffer[Header::LEN..])
}

/// What was on the wire for a received frame.
///
/// # Errors
/// When header and frame are not what a device may deliver with GUEST_CSUM, GUEST_TSO4 and
/// GUEST_TSO6: then what is merged cannot be told.
pub fn resegment(header: &Header, frame: &[u8]) -> Result<Vec<Vec<u8>>, Unsound> {
    let flags = header.flags;
    let needs = flags & NEEDS_CSUM != 0;
    if flags & !(NEEDS_CSUM | DATA_VALID) != 0 || (header.gso_type != gso::NONE && !needs) {
        return Err(Unsound::Flags(flags));
    }
    let place = Unsound::Place {
        start: header.csum_start,
        offset: header.csum_offset,
    };
    if header.gso_type == gso::NONE {
        if header.gso_size != 0 {
            let (size, payload) = (header.gso_size, frame.len());
            return Err(Unsound::Size { size, payload });
        }
        return match needs {
            true => Ok(vec![complete(header, frame).ok_or(place)?]),
            false => Ok(vec![frame.to_vec()]),
        };
    }

    let unknown = Unsound::Type(header.gso_type);
    let packet = parse(frame).ok_or(unknown)?;
    let wanted = if packet.v6 { gso::TCPV6 } else { gso::TCPV4 };
    if packet.protocol != Protocol::Tcp || header.gso_type != wanted {
        return Err(unknown);
    }
    let (start, offset) = (packet.transport, Protocol::Tcp.sum_at());
    if (header.csum_start.into(), header.csum_offset.into()) != (start, offset) {
        return Err(place);
    }
    if usize::from(header.hdr_len) < packet.payload {
        return Err(Unsound::Headers(header.hdr_len));
    }
    let (size, payload) = (header.gso_size, frame.len() - packet.payload);
    if size == 0 || payload <= size.into() {
        return Err(Unsound::Size { size, payload });
    }

    let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let ip = &frame[packet.ip..];
    let (told, length, addresses) = if packet.v6 {
        (half(packet.ip + 4), ip.len() - 40, &ip[8..40])
    } else {
        (half(packet.ip + 2), ip.len(), &ip[12..20])
    };
    if usize::from(told) != length {
        return Err(Unsound::Length);
    }
    if !packet.v6 && fold(sum(&ip[..4 * usize::from(ip[0] & 15)])) != 0xffff {
        return Err(Unsound::HeaderSum);
    }
    let tcp = frame.len() - start;
    let wanted = fold(sum(addresses) + u64::from(Protocol::Tcp.number()) + tcp as u64);
    let found = half(start + offset);
    if found != wanted {
        return Err(Unsound::Partial { found, wanted });
    }
    Ok(segment(&packet, frame, size.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Segment, flag};

    /// A stream of `count` segments of 100 bytes and one of 30, and the same as one unit, as the
    /// specification has it and by other code than that of segmentation.
    fn unit(first: &Segment, count: usize) -> (Vec<Vec<u8>>, Header, Vec<u8>) {
        let mut frames = vec![first.bytes()];
        let mut last = first.clone();
        let mut whole = first.clone();
        for i in 1..=count {
            last = last.next(if i == count { 30 } else { 100 });
            if i == count {
                last.flags |= flag::PSH;
            }
            frames.push(last.bytes());
            whole.payload.extend(&last.payload);
        }
        whole.flags = last.flags;
        let mut frame = whole.bytes();
        let at = whole.tcp();
        let (length, place) = (frame.len() - at, at + 16);
        let sum = partial(&frame, &whole, length);
        frame[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        let header = Header {
            flags: NEEDS_CSUM,
            gso_type: if whole.v6 { gso::TCPV6 } else { gso::TCPV4 },
            hdr_len: (frame.len() - whole.payload.len()) as u16,
            gso_size: 100,
            csum_start: at as u16,
            csum_offset: 16,
            num_buffers: 1,
        };
        (frames, header, frame)
    }

    fn partial(frame: &[u8], segment: &Segment, length: usize) -> u16 {
        let range = if segment.v6 { 8..40 } else { 12..20 };
        fold(sum(&frame[segment.ip()..][range]) + 6 + length as u64)
    }

    #[test]
    fn units_come_apart_into_the_frames_of_the_wire() {
        let mut firsts = vec![Segment::v4(0xffff_ff80, 100), Segment::v6(5, 100)];
        firsts[0].id = 0xffff;
        firsts.push(firsts[0].clone().stamps(1, 2));
        firsts.push(Segment {
            tags: vec![[0x88, 0xa8, 0, 3], [0x81, 0, 0x20, 4]],
            ..firsts[1].clone()
        });
        for first in &firsts {
            for count in [1, 2, 44] {
                let (frames, header, frame) = unit(first, count);
                assert_eq!(resegment(&header, &frame), Ok(frames.clone()));
                let buffer = [&header.bytes()[..], &frame].concat();
                assert_eq!(resegment_buffer(&buffer), Ok(frames));
            }
        }
    }

    #[test]
    fn frame_alone_is_itself_with_or_without_its_sum() {
        let segment = Segment::v4(1, 99);
        let frame = segment.bytes();
        for flags in [0, DATA_VALID] {
            let header = Header {
                flags,
                num_buffers: 1,
                ..Header::default()
            };
            assert_eq!(resegment(&header, &frame), Ok(vec![frame.clone()]));
        }
        let mut open = frame.clone();
        let sum = partial(&frame, &segment, frame.len() - segment.tcp());
        open[50..52].copy_from_slice(&sum.to_be_bytes());
        let mut header = Header {
            flags: NEEDS_CSUM,
            csum_start: 34,
            csum_offset: 16,
            ..Header::default()
        };
        assert_eq!(resegment(&header, &open), Ok(vec![frame.clone()]));
        header.csum_start = 0xfff0;
        assert!(matches!(
            resegment(&header, &open),
            Err(Unsound::Place { .. })
        ));
        header.gso_size = 1;
        assert!(matches!(
            resegment(&header, &open),
            Err(Unsound::Size { .. })
        ));
        assert_eq!(resegment_buffer(&[0; 11]), Err(Unsound::Short));
    }

    #[test]
    fn each_fault_of_a_unit_is_told() {
        type Fault = (fn(&mut Header, &mut Vec<u8>), fn(&Unsound) -> bool);
        let (_, header, frame) = unit(&Segment::v4(5, 100), 3);
        let faults: [Fault; 17] = [
            (|h, _| h.flags = 0, |e| *e == Unsound::Flags(0)),
            (|h, _| h.flags = DATA_VALID, |e| *e == Unsound::Flags(2)),
            (|h, _| h.flags |= 4, |e| *e == Unsound::Flags(5)),
            (
                |h, _| h.gso_type = gso::TCPV6,
                |e| matches!(e, Unsound::Type(4)),
            ),
            (
                |h, _| h.gso_type = gso::UDP_L4,
                |e| matches!(e, Unsound::Type(5)),
            ),
            (
                |h, _| h.gso_type |= gso::ECN,
                |e| matches!(e, Unsound::Type(0x81)),
            ),
            (|_, f| f[23] = 17, |e| matches!(e, Unsound::Type(1))),
            (
                |h, _| h.gso_size = 0,
                |e| matches!(e, Unsound::Size { size: 0, .. }),
            ),
            // One segment marked as several (floodlight/ivs#321).
            (
                |h, _| h.gso_size = 330,
                |e| matches!(e, Unsound::Size { payload: 330, .. }),
            ),
            (
                |h, _| h.csum_start += 2,
                |e| matches!(e, Unsound::Place { .. }),
            ),
            (
                |h, _| h.csum_offset = 6,
                |e| matches!(e, Unsound::Place { .. }),
            ),
            (|h, _| h.hdr_len -= 1, |e| matches!(e, Unsound::Headers(53))),
            // Padding that was merged, or bytes that were lost.
            (|_, f| f.push(0), |e| *e == Unsound::Length),
            (|_, f| f.truncate(200), |e| *e == Unsound::Length),
            (|_, f| f[24] ^= 1, |e| *e == Unsound::HeaderSum),
            // The first segment's sum was kept (nanos#1848), or it was inverted.
            (|_, f| f[50] ^= 1, |e| matches!(e, Unsound::Partial { .. })),
            (
                |_, f| f[50..52].iter_mut().for_each(|b| *b ^= 0xff),
                |e| matches!(e, Unsound::Partial { .. }),
            ),
        ];
        assert!(resegment(&header, &frame).is_ok());
        for (number, (change, told)) in faults.iter().enumerate() {
            let (mut header, mut frame) = (header, frame.clone());
            change(&mut header, &mut frame);
            let error = resegment(&header, &frame).expect_err("a fault was made");
            assert!(told(&error), "fault {number}: {error}");
        }
    }
}
