//! What `--wire` takes.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::{
    LoopbackWire, NoWire, Pace, PcapWire, PeerWire, StreamWire, TapWire, Wire,
    capture::CaptureError,
};

/// A wire that cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// Not one of the kinds.
    #[error(
        "`{0}` is not a wire: use pcap:in=A,out=B,pace=line|captured|1G, tap:NAME, loopback, \
         stream:PATH, peer, or none"
    )]
    Unknown(String),
    /// An option that the kind does not have, or with a wrong value.
    #[error("the wire option `{option}` is not understood: {hint}")]
    Option {
        /// As it was written.
        option: String,
        /// What is possible.
        hint: &'static str,
    },
    /// A capture file.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, and what may help.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl WireError {
    pub(super) fn io(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Io {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// A wire as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireSpec {
    /// Nobody at the other end.
    None,
    /// Sent frames come back.
    Loopback,
    /// Captures in and out.
    Pcap {
        /// Frames for the card.
        input: Option<PathBuf>,
        /// Where sent frames go.
        output: Option<PathBuf>,
        /// How fast.
        pace: Pace,
        /// Frames are dropped while no buffer is posted.
        drop: bool,
    },
    /// A TAP interface.
    Tap(String),
    /// A unix stream socket in QEMU's framing.
    Stream(PathBuf),
    /// Answers ARP, ICMP echo and UDP echo, and has TCP services.
    Peer {
        /// Its address; none: it answers for every address.
        address: Option<Ipv4Addr>,
        /// How fast.
        pace: Pace,
    },
}

impl FromStr for WireSpec {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("none", "") => Ok(Self::None),
            ("loopback", "") => Ok(Self::Loopback),
            ("pcap", rest) if !rest.is_empty() => pcap(rest),
            ("tap", name) if !name.is_empty() => Ok(Self::Tap(name.to_owned())),
            ("stream", path) if !path.is_empty() => Ok(Self::Stream(path.into())),
            ("peer", rest) => peer(rest),
            _ => Err(WireError::Unknown(text.to_owned())),
        }
    }
}

fn options(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.split(',').filter(|o| !o.is_empty()).map(|option| {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        (option, key, value)
    })
}

fn bad(option: &str, hint: &'static str) -> WireError {
    WireError::Option {
        option: option.to_owned(),
        hint,
    }
}

fn pace(option: &str, value: &str) -> Result<Pace, WireError> {
    match value {
        "line" => Ok(Pace::Line),
        "captured" => Ok(Pace::Captured),
        "1G" | "1g" => Ok(Pace::Gigabit),
        _ => Err(bad(option, "pace is line, captured or 1G")),
    }
}

fn pcap(text: &str) -> Result<WireSpec, WireError> {
    let (mut input, mut output, mut speed, mut drop) = (None, None, Pace::Line, false);
    for (option, key, value) in options(text) {
        match (key, value) {
            ("in", path) if !path.is_empty() => input = Some(PathBuf::from(path)),
            ("out", path) if !path.is_empty() => output = Some(PathBuf::from(path)),
            ("pace", value) => speed = pace(option, value)?,
            ("drop", "0") => drop = false,
            ("drop", "1") => drop = true,
            _ => return Err(bad(option, "a pcap wire has in=, out=, pace= and drop=0|1")),
        }
    }
    Ok(WireSpec::Pcap {
        input,
        output,
        pace: speed,
        drop,
    })
}

fn peer(text: &str) -> Result<WireSpec, WireError> {
    let (mut address, mut speed) = (None, Pace::Line);
    for (option, key, value) in options(text) {
        match key {
            "ip" => {
                address = Some(
                    value
                        .parse()
                        .map_err(|_| bad(option, "ip is an IPv4 address"))?,
                );
            }
            "pace" => speed = pace(option, value)?,
            _ => return Err(bad(option, "a peer has ip= and pace=")),
        }
    }
    Ok(WireSpec::Peer {
        address,
        pace: speed,
    })
}

impl WireSpec {
    /// Makes the wire: reads captures, creates files and interfaces.
    pub fn open(&self) -> Result<Box<dyn Wire>, WireError> {
        Ok(match self {
            Self::None => Box::new(NoWire),
            Self::Loopback => Box::new(LoopbackWire::default()),
            Self::Pcap {
                input,
                output,
                pace,
                drop,
            } => Box::new(PcapWire::open(
                input.as_deref(),
                output.as_deref(),
                *pace,
                *drop,
            )?),
            Self::Tap(name) => Box::new(TapWire::open(name)?),
            Self::Stream(path) => Box::new(StreamWire::open(path)?),
            Self::Peer { address, pace } => {
                let peer = PeerWire::new(*address, *pace);
                Box::new(peer.map_err(|error| WireError::io("the peer's timer", error))?)
            }
        })
    }
}

impl fmt::Display for WireSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Loopback => f.write_str("loopback"),
            Self::Pcap { .. } => f.write_str("pcap"),
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Stream(path) => write!(f, "stream:{}", path.display()),
            Self::Peer { .. } => f.write_str("peer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_understood() {
        assert_eq!(
            "loopback".parse::<WireSpec>().ok(),
            Some(WireSpec::Loopback)
        );
        assert_eq!(
            "pcap:in=a.pcap,out=b.pcap,pace=1G,drop=1"
                .parse::<WireSpec>()
                .ok(),
            Some(WireSpec::Pcap {
                input: Some("a.pcap".into()),
                output: Some("b.pcap".into()),
                pace: Pace::Gigabit,
                drop: true,
            })
        );
        assert_eq!(
            "stream:/tmp/a:b".parse::<WireSpec>().ok(),
            Some(WireSpec::Stream("/tmp/a:b".into()))
        );
        assert_eq!(
            "peer:ip=10.0.0.1".parse::<WireSpec>().ok(),
            Some(WireSpec::Peer {
                address: Some(Ipv4Addr::new(10, 0, 0, 1)),
                pace: Pace::Line,
            })
        );
    }

    #[test]
    fn wrong_specifications_say_what_is_possible() {
        for text in [
            "",
            "pcap",
            "pcap:",
            "tap:",
            "stream:",
            "cable",
            "loopback:x",
        ] {
            let error = text.parse::<WireSpec>().expect_err(text).to_string();
            assert!(error.contains("pcap:in="), "{error}");
        }
        for text in [
            "pcap:in=",
            "pcap:pace=2G",
            "pcap:drop=2",
            "peer:ip=x",
            "peer:a=b",
        ] {
            assert!(text.parse::<WireSpec>().is_err(), "{text}");
        }
    }
}
