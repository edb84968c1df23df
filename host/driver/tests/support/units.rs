//! Units as a card makes them of segments.

use ferronic_oracle::segment::Segment;

use super::SoftCard;

/// A unit as a card makes it, of segments of `size` bytes: the ten bytes of its header before
/// `num_buffers`, and the frame.
pub fn unit(first: &Segment, payload: usize, size: u16) -> ([u8; 10], Vec<u8>) {
    let mut segment = first.clone();
    segment.payload = (0..payload).map(|i| (i * 7 / 8) as u8).collect();
    let mut frame = segment.bytes();
    let (tcp, v6) = match frame[12..14] {
        [0x86, 0xdd] => (54, true),
        _ => (34, false),
    };
    // The sum of the pseudo header in the checksum's place.
    let addresses = if v6 { 22..54 } else { 26..34 };
    let halves = frame[addresses].chunks(2);
    let mut sum = halves.fold(6 + (frame.len() - tcp) as u32, |sum, half| {
        sum + u32::from(u16::from_be_bytes([half[0], half[1]]))
    });
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[tcp + 16..tcp + 18].copy_from_slice(&(sum as u16).to_be_bytes());
    let mut header = [1, if v6 { 4 } else { 1 }, 0, 0, 0, 0, tcp as u8, 0, 16, 0];
    header[2..4].copy_from_slice(&0xffff_u16.to_le_bytes());
    header[4..6].copy_from_slice(&size.to_le_bytes());
    (header, frame)
}

/// Puts a frame on the wire, of which the card says so much.
pub fn deliver(card: &SoftCard, header: [u8; 10], frame: Vec<u8>) {
    let mut model = card.model();
    model.claims.push_back(header);
    model.to_receive[0].push_back(frame);
    model.run();
}
