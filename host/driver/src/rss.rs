//! Receive-side scaling (RSS): the card spreads received frames over queue pairs by a hash.
//!
//! The hash is Toeplitz's over the addresses of a frame, and over its ports where TCP or UDP is asked
//! for; its lowest bits choose an entry of a table, which names a pair. Frames that have no hash go to
//! one pair. [`RssOptions`] is all of it, [`Device::set_rss`] puts it to use as a whole: the card
//! delivers first what it holds for merging. While it is off, the card follows what is transmitted
//! ([`crate::follow`]).
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use ferronic::rss::{RssOptions, Tuple};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first and third of the published vectors.
//! let options = RssOptions::equal(4)?;
//! let source: SocketAddr = "66.9.149.187:2794".parse()?;
//! let destination: SocketAddr = "161.142.100.80:1766".parse()?;
//! let (hash, report) = options.hash(&Tuple::tcp(source, destination)?).unwrap();
//! assert_eq!((hash, report.name()), (0x51cc_c178, "tcp4"));
//! // Entry 0x78 of the table.
//! assert_eq!(options.pair(&Tuple::tcp(source, destination)?), 0);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use bitflags::bitflags;
use ferronic_spec::window as w;
use thiserror::Error as ThisError;

use crate::device::Device;
use crate::error::Error;
use crate::readback::{reach, write_back};
use crate::stats::Window;
use crate::virtio::transport::Registers;
use crate::xps::{KEY, toeplitz};

/// Bytes of the key.
pub const KEY_BYTES: usize = 40;
/// Entries of the largest table.
pub const MAX_TABLE: usize = 128;
/// Pairs that a table can name.
const MAX_PAIRS: u16 = 64;

bitflags! {
    /// Of which frames a hash is computed; the bits are `hash_types` of virtio.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct HashTypes: u32 {
        /// Addresses of IPv4.
        const IPV4 = 1;
        /// Addresses and ports of TCP over IPv4.
        const TCP4 = 1 << 1;
        /// Addresses and ports of UDP over IPv4.
        const UDP4 = 1 << 2;
        /// Addresses of IPv6.
        const IPV6 = 1 << 3;
        /// Addresses and ports of TCP over IPv6.
        const TCP6 = 1 << 4;
        /// Addresses and ports of UDP over IPv6.
        const UDP6 = 1 << 5;
    }
}

/// Names of the types, in the order of their bits.
const TYPE_NAMES: [&str; 6] = ["ip4", "tcp4", "udp4", "ip6", "tcp6", "udp6"];

impl fmt::Display for HashTypes {
    /// Their names with commas, as [`HashTypes::from_str`] reads them; `none` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let names = TYPE_NAMES.into_iter().enumerate();
        let named = names.filter(|(bit, _)| self.bits() >> bit & 1 == 1);
        for (n, (_, name)) in named.enumerate() {
            write!(f, "{}{name}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for HashTypes {
    type Err = RssError;

    fn from_str(text: &str) -> Result<Self, RssError> {
        match text {
            "none" => return Ok(Self::empty()),
            "all" => return Ok(Self::all()),
            _ => {}
        }
        let bit = |name: &str| {
            let bit = TYPE_NAMES.iter().position(|known| *known == name);
            bit.ok_or_else(|| RssError::TypeName(name.to_owned()))
        };
        text.split(',').try_fold(Self::empty(), |types, name| {
            Ok(types | Self::from_bits_truncate(1 << bit(name)?))
        })
    }
}

/// Over what a hash was computed, as `hash_report` of virtio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashReport(HashTypes);

impl HashReport {
    /// Its name, that of its type.
    pub fn name(self) -> &'static str {
        TYPE_NAMES[self.bit()]
    }

    /// The value that a header with a hash has.
    pub fn value(self) -> u16 {
        self.bit() as u16 + 1
    }

    fn bit(self) -> usize {
        self.0.bits().trailing_zeros().min(5) as usize
    }
}

/// What the card sees of a frame's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    source: IpAddr,
    destination: IpAddr,
    ports: Option<(Protocol, u16, u16)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Protocol {
    Tcp,
    Udp,
}

impl Tuple {
    /// A frame of TCP that is no fragment.
    ///
    /// # Errors
    /// [`RssError::Families`].
    pub fn tcp(source: SocketAddr, destination: SocketAddr) -> Result<Self, RssError> {
        Self::with_ports(Protocol::Tcp, source, destination)
    }

    /// A frame of UDP that is no fragment.
    ///
    /// # Errors
    /// [`RssError::Families`].
    pub fn udp(source: SocketAddr, destination: SocketAddr) -> Result<Self, RssError> {
        Self::with_ports(Protocol::Udp, source, destination)
    }

    /// A fragment, or a frame of another protocol.
    ///
    /// # Errors
    /// [`RssError::Families`].
    pub fn ip(source: IpAddr, destination: IpAddr) -> Result<Self, RssError> {
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(RssError::Families);
        }
        Ok(Self {
            source,
            destination,
            ports: None,
        })
    }

    fn with_ports(
        protocol: Protocol,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Result<Self, RssError> {
        Ok(Self {
            ports: Some((protocol, source.port(), destination.port())),
            ..Self::ip(source.ip(), destination.ip())?
        })
    }

    /// The types by which it has a hash, the one that goes before the other first.
    fn types(&self) -> [HashTypes; 2] {
        let of = |four, six| if self.source.is_ipv4() { four } else { six };
        let with_ports = match self.ports {
            Some((Protocol::Tcp, ..)) => of(HashTypes::TCP4, HashTypes::TCP6),
            Some((Protocol::Udp, ..)) => of(HashTypes::UDP4, HashTypes::UDP6),
            None => HashTypes::empty(),
        };
        [with_ports, of(HashTypes::IPV4, HashTypes::IPV6)]
    }

    /// What the hash is over: addresses, then ports if they count, in network order.
    fn input(&self, ports: bool) -> Vec<u8> {
        let mut input = Vec::with_capacity(36);
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => input.extend(address.octets()),
                IpAddr::V6(address) => input.extend(address.octets()),
            }
        }
        if let Some((_, source, destination)) = self.ports.filter(|_| ports) {
            input.extend(source.to_be_bytes());
            input.extend(destination.to_be_bytes());
        }
        input
    }
}

/// Why frames are not spread as it was asked.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum RssError {
    /// The card cannot.
    #[error(
        "this card has no receive-side scaling (FEATURES.steering of its window is 0, or it has no \
         window); it spreads frames over the queue pairs in use by a hash of its own"
    )]
    NotThere,
    /// A key of another length.
    #[error("a key of {0} bytes is not possible; give {KEY_BYTES} bytes of two hexadecimal digits")]
    Key(usize),
    /// Something in a key that is no hexadecimal digit.
    #[error(
        "{0:?} in a key is no hexadecimal digit; write bytes of two digits, with or without colons \
         between them"
    )]
    KeyDigit(char),
    /// A table of a length that cannot be.
    #[error("a table of {0} entries is not possible; give 1 to {MAX_TABLE}, a power of two")]
    Table(usize),
    /// A table that this card does not hold.
    #[error("a table of {wanted} entries is too long for this card, which has {there}")]
    TableOfCard {
        /// Its entries.
        wanted: usize,
        /// Those of the card's.
        there: usize,
    },
    /// A pair that no card has, or that is not in use.
    #[error(
        "queue pair {pair} cannot receive: {in_use} are in use, 0 to {}; name one of them, or raise \
         their number first",
        .in_use.saturating_sub(1)
    )]
    Pair {
        /// The pair.
        pair: u16,
        /// Pairs in use.
        in_use: u16,
    },
    /// A number of pairs that cannot be.
    #[error("a table over {0} queue pairs is not possible; give 1 to {MAX_PAIRS}")]
    Pairs(usize),
    /// Weights that give no table.
    #[error(
        "weights of {0} in all are not possible; give at least 1 and at most {MAX_TABLE}, the \
         entries of the table that they share"
    )]
    Weights(u64),
    /// A hash type that there is not.
    #[error("{0:?} is no hash type; there are ip4, tcp4, udp4, ip6, tcp6, udp6, all and none")]
    TypeName(String),
    /// Hash types that this card does not have.
    #[error("this card has no hash over {0}; leave it out")]
    TypesOfCard(HashTypes),
    /// A key of another length in the card.
    #[error("this card's key has {0} bytes; this driver knows {KEY_BYTES} only, use a newer one")]
    KeyOfCard(usize),
    /// Addresses of two families.
    #[error("a frame has addresses of one family: give both as IPv4 or both as IPv6")]
    Families,
}

/// How received frames are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RssOptions {
    key: [u8; KEY_BYTES],
    table: Vec<u16>,
    types: HashTypes,
    unclassified: u16,
}

impl RssOptions {
    /// A table of 128 entries that name the pairs below `pairs` (1 to 64) in turn, the key of the
    /// published vectors, all hash types, and pair 0 for what has no hash.
    ///
    /// # Errors
    /// [`RssError::Pairs`].
    pub fn equal(pairs: u16) -> Result<Self, RssError> {
        if !(1..=MAX_PAIRS).contains(&pairs) {
            return Err(RssError::Pairs(pairs.into()));
        }
        Ok(Self {
            key: KEY,
            table: (0..MAX_TABLE).map(|i| i as u16 % pairs).collect(),
            types: HashTypes::all(),
            unclassified: 0,
        })
    }

    /// The same with a table of 128 entries of which each pair has its share, as `ethtool -X DEV
    /// weight` makes it.
    ///
    /// # Errors
    /// [`RssError::Weights`], [`RssError::Pairs`].
    pub fn with_weights(self, weights: &[u32]) -> Result<Self, RssError> {
        let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        if weights.len() > usize::from(MAX_PAIRS) {
            return Err(RssError::Pairs(weights.len()));
        }
        if sum == 0 || sum > MAX_TABLE as u64 {
            return Err(RssError::Weights(sum));
        }
        let mut table = Vec::with_capacity(MAX_TABLE);
        let mut partial = 0;
        for (pair, weight) in (0u16..).zip(weights) {
            partial += u64::from(*weight);
            // Entry i is of the first pair up to which more than i / 128 of the weight lies.
            let end = MAX_TABLE as u64 * partial / sum;
            table.resize(end as usize, pair);
        }
        self.with_table(table)
    }

    /// The same with another table: 1 to 128 entries, a power of two, of pairs 0 to 63.
    ///
    /// # Errors
    /// [`RssError::Table`], [`RssError::Pair`].
    pub fn with_table(self, table: Vec<u16>) -> Result<Self, RssError> {
        if !table.len().is_power_of_two() || table.len() > MAX_TABLE {
            return Err(RssError::Table(table.len()));
        }
        if let Some(&pair) = table.iter().find(|pair| **pair >= MAX_PAIRS) {
            let in_use = MAX_PAIRS;
            return Err(RssError::Pair { pair, in_use });
        }
        Ok(Self { table, ..self })
    }

    /// The same with another key, of 40 bytes.
    pub fn with_key(self, key: [u8; KEY_BYTES]) -> Self {
        Self { key, ..self }
    }

    /// The same with hashes of these types only.
    pub fn with_types(self, types: HashTypes) -> Self {
        Self { types, ..self }
    }

    /// The same with another pair, 0 to 63, for frames that have no hash.
    ///
    /// # Errors
    /// [`RssError::Pair`].
    pub fn with_unclassified(self, pair: u16) -> Result<Self, RssError> {
        if pair >= MAX_PAIRS {
            let in_use = MAX_PAIRS;
            return Err(RssError::Pair { pair, in_use });
        }
        Ok(Self {
            unclassified: pair,
            ..self
        })
    }

    /// The key.
    pub fn key(&self) -> &[u8; KEY_BYTES] {
        &self.key
    }

    /// The table.
    pub fn table(&self) -> &[u16] {
        &self.table
    }

    /// Hash types.
    pub fn types(&self) -> HashTypes {
        self.types
    }

    /// The pair for frames without a hash.
    pub fn unclassified(&self) -> u16 {
        self.unclassified
    }

    /// The largest pair that is named.
    pub fn last_pair(&self) -> u16 {
        let table = self.table.iter().copied().max().unwrap_or(0);
        table.max(self.unclassified)
    }

    /// The hash that the card has for frames of a flow, and over what; `None` for none.
    pub fn hash(&self, flow: &Tuple) -> Option<(u32, HashReport)> {
        let [with_ports, addresses] = flow.types();
        let by = |of: HashTypes| !of.is_empty() && self.types.contains(of);
        let (of, ports) = match () {
            () if by(with_ports) => (with_ports, true),
            () if by(addresses) => (addresses, false),
            () => return None,
        };
        Some((toeplitz(&self.key, &flow.input(ports)), HashReport(of)))
    }

    /// The pair that receives frames of a flow.
    pub fn pair(&self, flow: &Tuple) -> u16 {
        match self.hash(flow) {
            Some((hash, _)) => self.table[hash as usize % self.table.len()],
            None => self.unclassified,
        }
    }
}

/// Reads a key: 40 bytes of two hexadecimal digits, with or without colons between them, as ethtool
/// prints and takes it.
///
/// # Errors
/// [`RssError::Key`], [`RssError::KeyDigit`].
pub fn parse_key(text: &str) -> Result<[u8; KEY_BYTES], RssError> {
    let digits = text.chars().filter(|c| *c != ':');
    let digits = digits
        .map(|c| c.to_digit(16).ok_or(RssError::KeyDigit(c)))
        .collect::<Result<Vec<_>, _>>()?;
    let (bytes, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = bytes.iter().map(|[h, l]| (h << 4 | l) as u8).collect();
    match bytes.try_into() {
        Ok(key) if rest.is_empty() => Ok(key),
        _ => Err(RssError::Key(digits.len().div_ceil(2))),
    }
}

/// A key as ethtool prints it.
pub fn key_text(key: &[u8; KEY_BYTES]) -> String {
    key.map(|byte| format!("{byte:02x}")).join(":")
}

/// What a card has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RssCaps {
    /// Entries of the table at most.
    pub table: usize,
    /// Bytes of the key.
    pub key: usize,
    /// Hash types.
    pub types: HashTypes,
}

/// The registers of receive-side scaling in a card's window.
pub struct Rss<'a> {
    registers: &'a Registers,
}

impl<'a> Rss<'a> {
    pub(crate) fn new(registers: &'a Registers) -> Result<Self, Error> {
        reach(registers, "RSS", w::RSS_TABLE + 4 * MAX_TABLE as u64)?;
        Ok(Self { registers })
    }

    /// What the card has.
    ///
    /// # Errors
    /// When the card cannot be reached.
    pub fn caps(&self) -> Result<RssCaps, Error> {
        let caps = self.registers.read32(w::RSS_CAPS)?;
        Ok(RssCaps {
            table: w::RSS_CAPS_TABLE_ENTRIES.get(caps) as usize,
            key: w::RSS_CAPS_KEY_BYTES.get(caps) as usize,
            types: HashTypes::from_bits_truncate(w::RSS_CAPS_TYPES.get(caps)),
        })
    }

    /// Whether frames are spread by a table now.
    ///
    /// # Errors
    /// When the card cannot be reached.
    pub fn is_on(&self) -> Result<bool, Error> {
        Ok(w::RSS_APPLY_STEER.get(self.registers.read32(w::RSS_APPLY)?) == 1)
    }

    /// Puts it to use. Nothing is written if it cannot be.
    fn apply(&self, options: &RssOptions, in_use: u16) -> Result<(), Error> {
        let caps = self.caps()?;
        let (wanted, there) = (options.table.len(), caps.table);
        if wanted > there {
            return Err(RssError::TableOfCard { wanted, there }.into());
        }
        if caps.key != KEY_BYTES {
            return Err(RssError::KeyOfCard(caps.key).into());
        }
        let missing = options.types - caps.types;
        if !missing.is_empty() {
            return Err(RssError::TypesOfCard(missing).into());
        }
        let pair = options.last_pair();
        if pair >= in_use {
            return Err(RssError::Pair { pair, in_use }.into());
        }
        let r = self.registers;
        let (words, _) = options.key.as_chunks::<4>();
        for (row, word) in (0u64..).zip(words) {
            let offset = w::RSS_KEY + w::RSS_KEY_STRIDE * row;
            r.write32(offset, u32::from_le_bytes(*word))?;
        }
        for (row, pair) in (0u64..).zip(&options.table) {
            let offset = w::RSS_TABLE + w::RSS_TABLE_STRIDE * row;
            r.write32(offset, w::RSS_TABLE_PAIR.set(0, (*pair).into()))?;
        }
        let bits = options.table.len().ilog2();
        let unclassified = u32::from(options.unclassified);
        let on = w::RSS_APPLY_STEER.set(w::RSS_APPLY_HASH.set(0, 1), 1);
        write_back(r, "RSS_TYPES", w::RSS_TYPES, options.types.bits())?;
        write_back(r, "RSS_TABLE_BITS", w::RSS_TABLE_BITS, bits)?;
        write_back(r, "RSS_UNCLASSIFIED", w::RSS_UNCLASSIFIED, unclassified)?;
        write_back(r, "RSS_APPLY", w::RSS_APPLY, on)
    }

    fn off(&self) -> Result<(), Error> {
        write_back(self.registers, "RSS_APPLY", w::RSS_APPLY, 0)
    }
}

impl Device {
    /// How received frames are spread by a table; `None` if they are not.
    ///
    /// # Errors
    /// [`Error::Rss`] if the card cannot spread them so.
    pub fn rss(&self) -> Result<Option<RssOptions>, Error> {
        let window = self.window().ok_or(RssError::NotThere)?;
        // Key and table are not readable: what was set last is what there is.
        let on = window.rss()?.is_on()?;
        Ok(window.kept().rss.clone().filter(|_| on))
    }

    /// Spreads received frames by a table from now on, or no longer. What the card holds for merging
    /// is delivered first; frames that wait in the card go by the table, too, with the hash that they
    /// were given when they came.
    ///
    /// # Errors
    /// [`Error::Rss`] for what the card cannot, or if a pair is named that is not in use: nothing is
    /// changed then. [`Error::Readback`] if the card does not keep it.
    pub fn set_rss(&self, options: Option<&RssOptions>) -> Result<(), Error> {
        let Some(window) = self.window() else {
            return match options {
                Some(_) => Err(RssError::NotThere.into()),
                None => Ok(()),
            };
        };
        match options {
            Some(options) => window.rss()?.apply(options, window.pairs_in_use()?)?,
            None if window.has_steering() => window.rss()?.off()?,
            None => {}
        }
        window.kept().rss = options.cloned();
        Ok(())
    }
}

impl Window {
    /// The registers of receive-side scaling.
    ///
    /// # Errors
    /// [`RssError::NotThere`], and when the card says that it has them, but cannot.
    pub fn rss(&self) -> Result<Rss<'_>, Error> {
        match self.has_steering() {
            true => Rss::new(self.registers()),
            false => Err(RssError::NotThere.into()),
        }
    }
}
