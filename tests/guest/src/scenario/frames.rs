//! Files of frames.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};

use crate::GuestError;

/// A frame, without its FCS.
pub type Frame = Vec<u8>;

/// Frames of 60 to 1,514 bytes, each different.
pub fn random(count: usize) -> Vec<Frame> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|number| {
            let len = 60 + (next() % 1455) as usize;
            let mut frame: Frame = (0..len).map(|_| next() as u8).collect();
            frame[..6].fill(0xff);
            frame[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 1]);
            // For local experiments: no host does anything with it.
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame[14..18].copy_from_slice(&(number as u32).to_be_bytes());
            frame
        })
        .collect()
}

/// Writes a pcap file.
pub fn write(path: &Path, frames: &[Frame]) -> Result<(), GuestError> {
    let failed = |error: pcap_file::PcapError| GuestError::Check(format!("{path:?}: {error}"));
    let file = File::create(path).map_err(GuestError::file(path))?;
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(BufWriter::new(file), header).map_err(failed)?;
    for (number, frame) in (0..).zip(frames) {
        let packet = PcapPacket::new(Duration::from_micros(number), frame.len() as u32, frame);
        writer.write_packet(&packet).map_err(failed)?;
    }
    Ok(())
}

/// Reads a pcap file.
pub fn read(path: &Path) -> Result<Vec<Frame>, GuestError> {
    let failed = |error: pcap_file::PcapError| GuestError::Check(format!("{path:?}: {error}"));
    let file = File::open(path).map_err(GuestError::file(path))?;
    let mut reader = PcapReader::new(BufReader::new(file)).map_err(failed)?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.map_err(failed)?.data.into_owned());
    }
    Ok(frames)
}
