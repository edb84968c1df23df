//! Reading capture files, classic and next generation.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use thiserror::Error;

/// A capture that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It cannot be opened or created.
    #[error("the capture {path} cannot be opened: {source}")]
    Open {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a capture, or damaged.
    #[error("the capture {path} is damaged or not a pcap file, at packet {packet}: {source}")]
    Damaged {
        /// The file.
        path: String,
        /// Packets read before.
        packet: usize,
        /// What was found.
        source: PcapError,
    },
    /// Not Ethernet.
    #[error("the capture {path} holds {link:?}, not Ethernet frames")]
    LinkType {
        /// The file.
        path: String,
        /// What it holds.
        link: DataLink,
    },
    /// It cannot be written.
    #[error("writing the capture {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: PcapError,
    },
}

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Since the epoch.
    pub time: Duration,
    /// The bytes that were captured.
    pub data: Vec<u8>,
}

/// Reads all frames of an Ethernet capture.
pub fn read_capture(path: &Path) -> Result<Vec<CapturedFrame>, CaptureError> {
    let name = || path.display().to_string();
    let open = |source| CaptureError::Open {
        path: name(),
        source,
    };
    let mut file = BufReader::new(File::open(path).map_err(open)?);
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(open)?;
    // Read again from the start.
    let file = BufReader::new(File::open(path).map_err(open)?);
    if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
        read_next_generation(file, path)
    } else {
        read_classic(file, path)
    }
}

fn damaged(path: &Path, packet: usize) -> impl Fn(PcapError) -> CaptureError {
    move |source| CaptureError::Damaged {
        path: path.display().to_string(),
        packet,
        source,
    }
}

fn ethernet(path: &Path, link: DataLink) -> Result<(), CaptureError> {
    if link == DataLink::ETHERNET {
        return Ok(());
    }
    Err(CaptureError::LinkType {
        path: path.display().to_string(),
        link,
    })
}

fn read_classic(file: impl Read, path: &Path) -> Result<Vec<CapturedFrame>, CaptureError> {
    let mut reader = PcapReader::new(file).map_err(damaged(path, 0))?;
    ethernet(path, reader.header().datalink)?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(damaged(path, frames.len()))?;
        frames.push(CapturedFrame {
            time: packet.timestamp,
            data: packet.data.into_owned(),
        });
    }
    Ok(frames)
}

fn read_next_generation(file: impl Read, path: &Path) -> Result<Vec<CapturedFrame>, CaptureError> {
    let mut reader = PcapNgReader::new(file).map_err(damaged(path, 0))?;
    let mut frames = Vec::new();
    let mut last = Duration::ZERO;
    // Per interface: link type and units of the time stamps.
    let mut interfaces: Vec<(DataLink, u8)> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.map_err(damaged(path, frames.len()))? {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(interface) => {
                let resolution = interface.options.iter().find_map(|o| match o {
                    InterfaceDescriptionOption::IfTsResol(r) => Some(*r),
                    _ => None,
                });
                interfaces.push((interface.linktype, resolution.unwrap_or(6)));
            }
            Block::EnhancedPacket(packet) => {
                let (link, resolution) = interfaces
                    .get(packet.interface_id as usize)
                    .copied()
                    .unwrap_or((DataLink::ETHERNET, 6));
                ethernet(path, link)?;
                // The crate takes every time stamp for nanoseconds.
                last = scale(packet.timestamp.as_nanos() as u64, resolution);
                frames.push(CapturedFrame {
                    time: last,
                    data: packet.data.into_owned(),
                });
            }
            Block::SimplePacket(packet) => {
                let (link, _) = interfaces
                    .first()
                    .copied()
                    .unwrap_or((DataLink::ETHERNET, 6));
                ethernet(path, link)?;
                frames.push(CapturedFrame {
                    time: last,
                    data: packet.data.into_owned(),
                });
            }
            _ => {}
        }
    }
    Ok(frames)
}

/// A time stamp in units of 10^-n seconds, or 2^-n if the top bit is set.
fn scale(raw: u64, resolution: u8) -> Duration {
    let exponent = u32::from(resolution & 0x7f);
    let units = if resolution & 0x80 != 0 {
        1_u128.checked_shl(exponent)
    } else {
        10_u128.checked_pow(exponent)
    };
    let units = units.unwrap_or(u128::MAX).max(1);
    let nanos = (u128::from(raw)).saturating_mul(1_000_000_000) / units;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_knows_decimal_and_binary_units() {
        assert_eq!(scale(5, 6), Duration::from_micros(5));
        assert_eq!(scale(5, 9), Duration::from_nanos(5));
        assert_eq!(scale(3, 0x81), Duration::from_millis(1500));
        assert_eq!(scale(7, 0x7f), Duration::ZERO);
    }

    #[test]
    fn missing_and_damaged_captures_are_named() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("x.pcap");
        assert!(matches!(
            read_capture(&path),
            Err(CaptureError::Open { .. })
        ));
        std::fs::write(&path, b"not a capture at all, not at all").expect("write");
        let error = read_capture(&path).expect_err("damaged").to_string();
        assert!(error.contains("x.pcap"), "{error}");
    }
}
