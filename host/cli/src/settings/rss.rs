//! `ferronic rss`

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use clap::{Args, Subcommand};
use ferronic::RssOptions;
use ferronic::rss::{HashTypes, Tuple, key_text, parse_key};
use serde_json::json;

use super::{Target, switch};
use crate::control::message::{Request, Rss as State, RssChange};
use crate::error::{CliError, Outcome};
use crate::options::Switch;

/// Options of `rss`.
#[derive(Args)]
#[command(after_help = "Examples:
  ferronic rss show --device vfio-user:/tmp/nic.sock
  ferronic rss set --equal 4
  ferronic rss set --weight 6,2 --types tcp4,tcp6
  ferronic rss set --off --follow on
  ferronic rss hash --source 66.9.149.187:2794 --destination 161.142.100.80:1766
The card may also be named by FERRONIC_DEVICE.")]
pub struct Rss {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// By what received frames are spread over queue pairs.
    Show {
        #[command(flatten)]
        target: Target,
    },
    /// Spread them by a table, as `ethtool -X`, or no longer. What is not given stays.
    Set(Box<Set>),
    /// The hash of a flow, computed here: what the card says of its frames.
    Hash(Hash),
}

#[derive(Args)]
struct Set {
    /// No longer by a table: each flow on the pair that transmits to it, or by a hash of the card's.
    #[arg(long, conflicts_with_all = ["key", "equal", "weight", "table", "types", "unclassified"])]
    off: bool,
    /// The key: 40 bytes of two hexadecimal digits, with or without colons between them.
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
    /// A table of the pairs 0 to N - 1 in turn.
    #[arg(long, value_name = "N", conflicts_with_all = ["weight", "table"])]
    equal: Option<u16>,
    /// A table of which each pair has its share, with commas.
    #[arg(
        long,
        value_name = "W0,W1,...",
        value_delimiter = ',',
        conflicts_with = "table"
    )]
    weight: Option<Vec<u32>>,
    /// A table of these pairs: 1 to 128, a power of two.
    #[arg(long, value_name = "P0,P1,...", value_delimiter = ',')]
    table: Option<Vec<u16>>,
    /// Frames that have a hash: ip4, tcp4, udp4, ip6, tcp6, udp6, with commas; all; none.
    #[arg(long, value_name = "TYPES")]
    types: Option<HashTypes>,
    /// The pair for frames without a hash.
    #[arg(long, value_name = "PAIR")]
    unclassified: Option<u16>,
    /// While there is no table, whether the frames of a flow come to the pair that transmits to it.
    #[arg(long, value_enum)]
    follow: Option<Switch>,
    /// A flow of which nothing is sent for two to three of these is forgotten; rounded up to a power
    /// of two of the card's cycles.
    #[arg(long, value_name = "US")]
    follow_us: Option<u64>,
    #[command(flatten)]
    target: Target,
}

#[derive(Args)]
struct Hash {
    /// Source address and port, or address alone for what has no ports.
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    source: String,
    /// Destination, likewise.
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    destination: String,
    /// The protocol, where there are ports.
    #[arg(long, value_enum, default_value_t = Protocol::Tcp)]
    protocol: Protocol,
    /// The key; that of the published vectors if not given.
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
    /// Frames that have a hash.
    #[arg(long, value_name = "TYPES", default_value = "all")]
    types: HashTypes,
    /// Tell the pair as well, of a table of this many pairs in turn.
    #[arg(long, value_name = "N")]
    equal: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    Tcp,
    Udp,
}

impl Rss {
    pub fn run(&self) -> Result<Outcome, CliError> {
        match &self.action {
            Action::Show { target } => target.run("rss show", &Request::Rss(None), table)?,
            Action::Set(set) => {
                let change = RssChange {
                    off: set.off,
                    key: set.key.clone(),
                    equal: set.equal,
                    weights: set.weight.clone(),
                    table: set.table.clone(),
                    types: set.types.map(|types| types.to_string()),
                    unclassified: set.unclassified,
                    follow: set.follow.map(|follow| follow == Switch::On),
                    follow_us: set.follow_us,
                };
                if change == RssChange::default() {
                    return Err(CliError::Usage(
                        "nothing is to be set; give --equal, --weight, --key or another option"
                            .into(),
                    ));
                }
                set.target
                    .run("rss set", &Request::Rss(Some(change)), table)?;
            }
            Action::Hash(hash) => hash.run()?,
        }
        Ok(Outcome::Done)
    }
}

fn table(state: &State) -> String {
    let mut text = String::new();
    let follow = format!(
        "follow        {}, flows are forgotten after {} to {} us\n",
        switch(state.follow),
        2 * state.follow_us,
        3 * state.follow_us
    );
    let Some(table) = &state.table else {
        return format!("rss           off\n{follow}");
    };
    let _ = writeln!(
        text,
        "rss           on, a table of {} entries",
        table.entries.len()
    );
    for (row, pairs) in table.entries.chunks(8).enumerate() {
        let pairs: Vec<_> = pairs.iter().map(|pair| format!("{pair:>5}")).collect();
        let _ = writeln!(text, "{:>5}: {}", 8 * row, pairs.join(" "));
    }
    let _ = writeln!(text, "key           {}", table.key);
    let _ = writeln!(text, "types         {}", table.types);
    let _ = writeln!(text, "unclassified  pair {}", table.unclassified);
    text + &follow
}

impl Hash {
    fn run(&self) -> Result<(), CliError> {
        let of_driver = |e: ferronic::RssError| CliError::from(ferronic::Error::from(e));
        let mut options = RssOptions::equal(self.equal.unwrap_or(1)).map_err(of_driver)?;
        if let Some(key) = &self.key {
            options = options.with_key(parse_key(key).map_err(of_driver)?);
        }
        let options = options.with_types(self.types);
        let flow = self.flow()?.map_err(of_driver)?;
        let hash = options.hash(&flow);
        let pair = self.equal.map(|_| options.pair(&flow));
        if self.json {
            let report = json!({
                "command": "rss hash",
                "hash": hash.map(|(hash, _)| hash),
                "over": hash.map(|(_, report)| report.name()),
                "pair": pair,
                "key": key_text(options.key()),
            });
            println!("{report:#}");
            return Ok(());
        }
        match hash {
            Some((hash, report)) => println!("{hash:#010x} {}", report.name()),
            None => println!("none"),
        }
        if let Some(pair) = pair {
            println!("pair {pair}");
        }
        Ok(())
    }

    fn flow(&self) -> Result<Result<Tuple, ferronic::RssError>, CliError> {
        let ports = (self.source.parse(), self.destination.parse());
        if let (Ok(source), Ok(destination)) = ports {
            let (source, destination): (SocketAddr, SocketAddr) = (source, destination);
            return Ok(match self.protocol {
                Protocol::Tcp => Tuple::tcp(source, destination),
                Protocol::Udp => Tuple::udp(source, destination),
            });
        }
        let address = |text: &str| {
            text.parse::<IpAddr>().map_err(|_| {
                CliError::Usage(format!(
                    "{text:?}: give both as ADDRESS:PORT ([ADDRESS]:PORT for IPv6), or both as ADDRESS"
                ))
            })
        };
        Ok(Tuple::ip(
            address(&self.source)?,
            address(&self.destination)?,
        ))
    }
}
