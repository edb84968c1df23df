//! Requests and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Version of the protocol.
    pub version: u32,
    /// The card, by its canonical name.
    pub device: String,
    /// What is asked for.
    pub request: Request,
}

/// The line that answers it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Version of the protocol.
    pub version: u32,
    /// The command that has the card.
    pub command: String,
    /// Its process.
    pub pid: u32,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The state afterwards: one of the types here, or the report of `stats`.
    Done(Value),
    /// It was not done: cause and remedy.
    Error(String),
}

/// What is asked for; without a change the state is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Counters of the card.
    Stats,
    /// Queue pairs: how many are to be in use.
    Queues(Option<u16>),
    /// Receive-side scaling, and following.
    Rss(Option<RssChange>),
    /// Coalescing.
    Coalesce(Option<CoalesceChange>),
    /// Filters.
    Filter(Option<FilterChange>),
    /// Offloads.
    Offload(Option<OffloadChange>),
    /// Transmit steering.
    Xps(Option<XpsChange>),
}

impl Request {
    /// Whether something is to be changed.
    pub fn changes(&self) -> bool {
        match self {
            Self::Stats => false,
            Self::Queues(change) => change.is_some(),
            Self::Rss(change) => change.is_some(),
            Self::Coalesce(change) => change.is_some(),
            Self::Filter(change) => change.is_some(),
            Self::Offload(change) => change.is_some(),
            Self::Xps(change) => change.is_some(),
        }
    }
}

/// Queue pairs of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queues {
    /// Those that the card was built with.
    pub card: u16,
    /// Those that the command opened.
    pub opened: u16,
    /// Those over which received frames are spread.
    pub receiving: u16,
    /// Those by which the command sends.
    pub transmitting: u16,
    /// Threads with a pair each, if the command has such.
    pub threads: Vec<Thread>,
}

/// Counters of a thread, as its driver has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its pair.
    pub pair: u16,
    /// Frames received and their bytes.
    pub received: [u64; 2],
    /// Frames sent and their bytes.
    pub sent: [u64; 2],
}

/// Change of receive-side scaling; what is not given stays, or is as at first if it was off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RssChange {
    /// No longer by a table.
    pub off: bool,
    /// Key, two hexadecimal digits a byte.
    pub key: Option<String>,
    /// Pairs 0 to N - 1 in turn.
    pub equal: Option<u16>,
    /// Shares of pairs.
    pub weights: Option<Vec<u32>>,
    /// Entries.
    pub table: Option<Vec<u16>>,
    /// Names of hash types, with commas.
    pub types: Option<String>,
    /// The pair for frames without a hash.
    pub unclassified: Option<u16>,
    /// Whether receive follows transmit while there is no table.
    pub follow: Option<bool>,
    /// For how long at least: a period, in microseconds.
    pub follow_us: Option<u64>,
}

/// Receive-side scaling of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rss {
    /// The table, if frames are spread by one.
    pub table: Option<Table>,
    /// Whether receive follows transmit while they are not.
    pub follow: bool,
    /// A flow of which nothing is sent for two to three of these is forgotten, in microseconds.
    pub follow_us: u64,
}

/// What frames are spread by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Key, as ethtool prints it.
    pub key: String,
    /// Pairs.
    pub entries: Vec<u16>,
    /// Names of hash types, with commas.
    pub types: String,
    /// The pair for frames without a hash.
    pub unclassified: u16,
}

/// Change of coalescing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoalesceChange {
    /// Of this pair; else of all.
    pub queue: Option<u16>,
    /// Of receive queues.
    pub rx: bool,
    /// Of transmit queues.
    pub tx: bool,
    /// Packets.
    pub packets: u32,
    /// Microseconds.
    pub usecs: u64,
}

/// Coalescing of a pair, by direction: packets and microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coalesce {
    /// The pair.
    pub queue: u16,
    /// Packets, 0 for every one.
    pub rx_packets: u32,
    /// Microseconds after the first, 0 for none.
    pub rx_usecs: f64,
    /// Packets, 0 for every one.
    pub tx_packets: u32,
    /// Microseconds after the first, 0 for none.
    pub tx_usecs: f64,
}

/// Change of filters; what is not given stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilterChange {
    /// Modes by their names, on or off.
    pub modes: Vec<(String, bool)>,
    /// Addresses that are taken from now on.
    pub add: Vec<String>,
    /// Addresses that are not.
    pub remove: Vec<String>,
    /// VLANs as a list of numbers and ranges; `all` for no filter.
    pub vlans: Option<String>,
}

/// Filters of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// Modes that are on, by their names.
    pub modes: Vec<String>,
    /// Addresses.
    pub addresses: Vec<String>,
    /// VLANs as a list; none for all.
    pub vlans: Option<String>,
    /// Addresses that the card holds; with more it takes all.
    pub room: usize,
}

/// Change of offloads; what is not given stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadChange {
    /// Profile of merging: off, strict, relaxed.
    pub lro: Option<String>,
    /// Longest wait for the next segment, in microseconds.
    pub lro_gap_us: Option<u64>,
    /// Longest that the first waits, in microseconds.
    pub lro_hold_us: Option<u64>,
    /// Checksums of sent frames by the card.
    pub tx_checksum: Option<bool>,
    /// Segmentation by the card.
    pub tso: Option<bool>,
    /// Verified checksums of received frames.
    pub rx_checksum: Option<bool>,
}

/// Offloads of a card as it was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offload {
    /// Profile of merging, off if there is none.
    pub lro: String,
    /// Longest wait for the next segment, in microseconds.
    pub lro_gap_us: f64,
    /// Longest that the first waits, in microseconds.
    pub lro_hold_us: f64,
    /// Whether merging can be changed: it was asked for when the card was opened.
    pub lro_fixed: bool,
    /// Checksums of received frames are verified.
    pub rx_checksum: bool,
    /// Checksums of sent frames are completed.
    pub tx_checksum: bool,
    /// Segments are made of TCP over IPv4, TCP over IPv6, UDP.
    pub tso: [bool; 3],
    /// Whether what is sent can be changed.
    pub tx_fixed: bool,
}

/// Change of transmit steering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XpsChange {
    /// The transmit queue.
    pub queue: u16,
    /// Of CPUs, or else of receive queues.
    pub cpus: bool,
    /// In the hexadecimal form, or else as a list.
    pub hex: bool,
    /// The mask.
    pub mask: String,
}

/// Transmit steering of one queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct XpsQueue {
    /// The transmit queue.
    pub queue: u16,
    /// CPUs, as a list and in the hexadecimal form.
    pub cpus: [String; 2],
    /// Receive queues, likewise.
    pub rxqs: [String; 2],
}
