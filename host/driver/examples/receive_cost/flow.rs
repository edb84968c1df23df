//! The connections of a recording: their headers, and where their streams begin and end.

use ferronic_oracle::{fold, sum};

/// Offsets of headers in a frame.
#[derive(Clone, Copy)]
pub struct At {
    /// IP header.
    pub ip: usize,
    /// TCP header.
    pub tcp: usize,
    /// Payload.
    pub payload: usize,
    /// End of the packet.
    pub end: usize,
    /// IPv6.
    pub v6: bool,
}

/// A connection.
pub struct Flow {
    /// Addresses and ports.
    pub key: Vec<u8>,
    /// The headers of its first segment.
    pub template: Vec<u8>,
    /// Where they are.
    pub at: At,
    /// Sequence number of the first byte, and of the byte behind the last.
    pub seq: (u32, u32),
    /// The acknowledgement number of the recording, and the one that our stack expects instead.
    pub ack: (u32, u32),
}

/// A word of the frame.
pub fn word(frame: &[u8], at: usize) -> u32 {
    frame[at..at + 4]
        .iter()
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Where the headers of a TCP segment are.
///
/// # Errors
/// When it is none without VLAN tags, IP options and extension headers.
pub fn locate(frame: &[u8]) -> Result<At, String> {
    let none = || "a frame of the recording is no plain TCP segment".to_owned();
    let v6 = match frame.get(12..15) {
        Some([0x08, 0x00, 0x45]) => false,
        Some([0x86, 0xdd, _]) => true,
        _ => return Err(none()),
    };
    let (ip, tcp) = (14, if v6 { 54 } else { 34 });
    if frame.len() < tcp + 20 || frame[if v6 { 20 } else { 23 }] != 6 {
        return Err(none());
    }
    let half = |at: usize| usize::from(frame[at]) << 8 | usize::from(frame[at + 1]);
    let end = if v6 { 54 + half(18) } else { 14 + half(16) };
    let payload = tcp + usize::from(frame[tcp + 12] >> 4) * 4;
    if payload > end || end > frame.len() {
        return Err(none());
    }
    Ok(At {
        ip,
        tcp,
        payload,
        end,
        v6,
    })
}

/// Addresses and ports.
pub fn key(frame: &[u8], at: At) -> Vec<u8> {
    let from = at.ip + if at.v6 { 8 } else { 12 };
    frame[from..at.tcp + 4].to_vec()
}

/// Makes the sums of a segment right whose lengths are.
pub fn make_sums(frame: &mut [u8], at: At) {
    if !at.v6 {
        frame[at.ip + 10..at.ip + 12].fill(0);
        let check = !fold(sum(&frame[at.ip..at.tcp]));
        frame[at.ip + 10..at.ip + 12].copy_from_slice(&check.to_be_bytes());
    }
    let addresses = at.ip + if at.v6 { 8 } else { 12 };
    let pseudo = sum(&frame[addresses..at.tcp]) + 6 + (at.end - at.tcp) as u64;
    frame[at.tcp + 16..at.tcp + 18].fill(0);
    let check = !fold(pseudo + sum(&frame[at.tcp..at.end]));
    frame[at.tcp + 16..at.tcp + 18].copy_from_slice(&check.to_be_bytes());
}

impl Flow {
    /// A segment of the connection without payload.
    pub fn segment(&self, seq: u32, ack: u32, flags: u8, options: &[u8]) -> Vec<u8> {
        let mut frame = self.template[..self.at.tcp + 20].to_vec();
        frame.extend(options);
        let at = At {
            payload: frame.len(),
            end: frame.len(),
            ..self.at
        };
        let (place, len) = if at.v6 {
            (18, frame.len() - 54)
        } else {
            (16, frame.len() - 14)
        };
        frame[place..place + 2].copy_from_slice(&(len as u16).to_be_bytes());
        frame[at.tcp + 4..at.tcp + 8].copy_from_slice(&seq.to_be_bytes());
        frame[at.tcp + 8..at.tcp + 12].copy_from_slice(&ack.to_be_bytes());
        frame[at.tcp + 12] = ((20 + options.len()) as u8 / 4) << 4;
        frame[at.tcp + 13] = flags;
        frame[at.tcp + 18..at.tcp + 20].fill(0);
        make_sums(&mut frame, at);
        frame
    }

    /// Makes a segment of the recording one of the connection with our stack.
    pub fn adopt(&self, frame: &mut [u8], at: At, partial: bool) {
        let moved = word(frame, at.tcp + 8).wrapping_sub(self.ack.0);
        let ack = self.ack.1.wrapping_add(moved);
        frame[at.tcp + 8..at.tcp + 12].copy_from_slice(&ack.to_be_bytes());
        if !partial {
            make_sums(frame, at);
        }
    }
}
