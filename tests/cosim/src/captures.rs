//! Frames from pcap files.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use pcap_file::pcap::PcapReader;
use pcap_file::{DataLink, PcapError};
use thiserror::Error;

use crate::require::{RequireError, Resource, is_required};

/// The frames of one capture file, in order.
#[derive(Clone, Debug)]
pub struct Capture {
    /// File name without directory.
    pub name: String,
    /// Whole Ethernet frames without FCS.
    pub frames: Vec<Vec<u8>>,
}

impl Capture {
    /// Bytes of all frames together.
    pub fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| frame.len() as u64).sum()
    }
}

/// Why a capture cannot be used.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file or directory cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not a pcap file, or a damaged one.
    #[error("{}: {source}; only classic pcap is read (editcap -F pcap converts)", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        source: PcapError,
    },
    /// Not a capture of whole Ethernet frames.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what would help.
        what: String,
    },
    /// The captures that the environment promises are not there.
    #[error("{0}")]
    Missing(String),
    /// The environment asks for something unknown.
    #[error(transparent)]
    Require(#[from] RequireError),
}

/// The top of the repository.
pub fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The captures in the repository.
///
/// # Errors
/// When one cannot be read.
pub fn own_captures() -> Result<Vec<Capture>, CaptureError> {
    read_directory(&repository_root().join("tests/data"))
}

/// The captures in the repository and those of `FERRONIC_CAPTURES`.
///
/// # Errors
/// When one cannot be read, when the variable names no captures, or when it is unset although
/// `FERRONIC_REQUIRE` lists `captures`.
pub fn captures() -> Result<Vec<Capture>, CaptureError> {
    let mut all = own_captures()?;
    match env::var_os("FERRONIC_CAPTURES") {
        Some(dir) => {
            let given = resolve(&PathBuf::from(dir));
            let more = read_directory(&given)?;
            if more.is_empty() {
                return Err(CaptureError::Missing(format!(
                    "FERRONIC_CAPTURES names {}, where no file ends in .pcap",
                    given.display()
                )));
            }
            all.extend(more);
        }
        None if is_required(Resource::Captures)? => {
            return Err(CaptureError::Missing(
                "FERRONIC_REQUIRE lists captures, but FERRONIC_CAPTURES does not name a directory \
                 of pcap files"
                    .to_owned(),
            ));
        }
        None => eprintln!("skipped: captures from outside (FERRONIC_CAPTURES is not set)"),
    }
    Ok(all)
}

/// A relative path is one from the top of the repository: tests run in their crate's directory.
fn resolve(path: &Path) -> PathBuf {
    if path.is_absolute() {
        path.to_owned()
    } else {
        repository_root().join(path)
    }
}

fn read_directory(dir: &Path) -> Result<Vec<Capture>, CaptureError> {
    let failed = |source| CaptureError::Io {
        path: dir.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "pcap")
        {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read_capture(path)).collect()
}

/// Reads one capture.
///
/// # Errors
/// When it is not a classic pcap file of whole Ethernet frames of 14 to 9,216 bytes.
pub fn read_capture(path: &Path) -> Result<Capture, CaptureError> {
    let file = File::open(path).map_err(|source| CaptureError::Io {
        path: path.to_owned(),
        source,
    })?;
    let damaged = |source| CaptureError::Format {
        path: path.to_owned(),
        source,
    };
    let content = |what| CaptureError::Content {
        path: path.to_owned(),
        what,
    };
    let mut reader = PcapReader::new(BufReader::new(file)).map_err(damaged)?;
    let link = reader.header().datalink;
    if link != DataLink::ETHERNET {
        return Err(content(format!(
            "link type {link:?}: capture on an Ethernet interface"
        )));
    }
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(damaged)?;
        let (number, length) = (frames.len() + 1, packet.data.len());
        if length as u32 != packet.orig_len {
            return Err(content(format!(
                "frame {number} is cut short: capture with -s 0"
            )));
        }
        if !(14..=9216).contains(&length) {
            return Err(content(format!(
                "frame {number} has {length} bytes, not 14 to 9216"
            )));
        }
        frames.push(packet.data.into_owned());
    }
    if frames.is_empty() {
        return Err(content("no frame in it".to_owned()));
    }
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    Ok(Capture { name, frames })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_captures_are_whole_and_cover_the_sizes() {
        let captures = own_captures().expect("tests/data is part of the repository");
        let names: Vec<_> = captures
            .iter()
            .map(|capture| capture.name.as_str())
            .collect();
        assert_eq!(names, ["edges.pcap", "tcp_veth.pcap"]);
        let sizes = || captures.iter().flat_map(|c| &c.frames).map(Vec::len);
        assert_eq!((sizes().min(), sizes().max()), (Some(14), Some(9216)));
        assert!(sizes().filter(|&size| size == 1514).count() > 40);
    }

    #[test]
    fn given_captures_are_read_where_there_are_any() {
        let all = captures().expect("the environment names captures that can be read");
        assert!(all.len() >= 2);
        assert!(all.iter().all(|capture| capture.bytes() > 0));
    }

    #[test]
    fn capture_that_is_no_pcap_is_refused_with_its_name() {
        let error = read_capture(&repository_root().join("Cargo.toml")).expect_err("no pcap");
        assert!(error.to_string().contains("Cargo.toml"), "{error}");
    }
}
