//! Output files that are only touched once there is something to put into them, and pcap input.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

use crate::error::CliError;

/// An output file, opened early and emptied late: a command that fails before it has anything to
/// write leaves what was there.
pub struct Output {
    path: PathBuf,
    file: File,
}

impl Output {
    /// Opens `path` for writing, without emptying it.
    pub fn open(path: &Path) -> Result<Self, CliError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|e| CliError::file(path, "cannot be opened for writing", e))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Empties the file and hands it over.
    pub fn start(self) -> Result<File, CliError> {
        // Pipes and devices have no length.
        let regular = self.file.metadata().is_ok_and(|m| m.is_file());
        if regular {
            self.file
                .set_len(0)
                .map_err(|e| CliError::file(&self.path, "cannot be emptied", e))?;
        }
        Ok(self.file)
    }
}

/// Writes a report for programs.
pub fn write_json(output: Output, report: &serde_json::Value) -> Result<(), CliError> {
    let path = output.path.clone();
    writeln!(output.start()?, "{report:#}")
        .map_err(|e| CliError::file(&path, "cannot be written", e))
}

/// The frames of a pcap file.
pub struct Input {
    path: PathBuf,
    reader: PcapReader<BufReader<File>>,
    records: u64,
}

/// A record of a capture.
pub struct Record {
    /// The frame, as far as it was captured.
    pub data: Vec<u8>,
    /// Bytes that it had on the wire.
    pub original: u32,
    /// Its number, from 1.
    pub number: u64,
}

impl Input {
    /// Opens a capture of Ethernet frames.
    pub fn open(path: &Path) -> Result<Self, CliError> {
        let mut file = File::open(path).map_err(|e| CliError::file(path, "cannot be read", e))?;
        let bad = |what: String| CliError::Capture {
            path: path.to_owned(),
            what,
        };
        let mut magic = [0; 4];
        let found = file
            .read(&mut magic)
            .map_err(|e| CliError::file(path, "cannot be read", e))?;
        if found == 4 && magic == [0x0a, 0x0d, 0x0d, 0x0a] {
            return Err(bad(
                "this is a pcapng file; convert it with `editcap -F pcap IN OUT`".into(),
            ));
        }
        let file = File::open(path).map_err(|e| CliError::file(path, "cannot be read", e))?;
        let reader = PcapReader::new(BufReader::new(file))
            .map_err(|e| bad(format!("not a pcap file ({e})")))?;
        let link = reader.header().datalink;
        if link != DataLink::ETHERNET {
            return Err(bad(format!(
                "its link type is {link:?}; only captures of Ethernet frames can be sent"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            reader,
            records: 0,
        })
    }

    /// The next frame; `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Record>, CliError> {
        let number = self.records + 1;
        match self.reader.next_raw_packet() {
            None => Ok(None),
            Some(Ok(packet)) => {
                self.records = number;
                Ok(Some(Record {
                    original: packet.orig_len,
                    data: packet.data.into_owned(),
                    number,
                }))
            }
            Some(Err(e)) => Err(CliError::Capture {
                path: self.path.clone(),
                what: format!(
                    "record {number} is damaged or cut off ({e}); the {} before it are good",
                    self.records
                ),
            }),
        }
    }
}
