//! What the tests of merging share: seeds, captures, a host that takes units and gives buffers
//! back, and what must be true of what it got.

#![allow(dead_code)] // each test uses a part

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ferronic_oracle::frames::{fold, sum};
use ferronic_oracle::lro::{Counters, Lro, Unit};
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{Protocol, parse, resegment};
use pcap_file::pcap::PcapReader;

/// 1 to `count`, or what `FERRONIC_SEED` says: a number, or the first and last of a range.
pub fn seeds(count: u64) -> RangeInclusive<u64> {
    let Ok(text) = env::var("FERRONIC_SEED") else {
        return 1..=count;
    };
    let number = |text: &str| {
        text.parse()
            .expect("FERRONIC_SEED: a number, or two and ..")
    };
    match text.split_once("..") {
        Some((first, last)) => number(first)..=number(last),
        None => number(&text)..=number(&text),
    }
}

/// Whether the longer versions of tests are asked for.
pub fn nightly() -> bool {
    env::var_os("FERRONIC_NIGHTLY").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Frames with their times in nanoseconds.
pub type Timed = Vec<(u64, Vec<u8>)>;

/// The frames of each capture, by its name.
pub fn captures() -> Vec<(String, Timed)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("tests/data")];
    match env::var_os("FERRONIC_CAPTURES") {
        Some(folder) => folders.push(root.join(folder)),
        None => {
            let required = env::var("FERRONIC_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|word| word.trim() == "captures"),
                "FERRONIC_REQUIRE lists captures, but FERRONIC_CAPTURES names none"
            );
            eprintln!("skipped: captures from outside (FERRONIC_CAPTURES is not set)");
        }
    }
    let files = |folder: &PathBuf| {
        let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let paths = entries.map(|entry| entry.expect("an entry of a folder").path());
        let mut files: Vec<_> = paths
            .filter(|p| p.extension().is_some_and(|e| e == "pcap"))
            .collect();
        assert!(
            !files.is_empty(),
            "{}: no file ends in .pcap",
            folder.display()
        );
        files.sort();
        files
    };
    folders
        .iter()
        .flat_map(files)
        .map(|path| read(&path))
        .collect()
}

fn read(path: &Path) -> (String, Timed) {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader = PcapReader::new(file).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut frames = Vec::new();
    let mut last = 0;
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        last = last.max(packet.timestamp.as_nanos() as u64);
        frames.push((last, packet.data.into_owned()));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.into_owned(), frames)
}

/// Posts so many buffers for each of four queues, and posts those of a unit again some ticks after
/// it was delivered.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub buffers: usize,
    pub delay: u64,
}

/// Runs a stream; afterwards the card is stopped and nothing is held.
pub fn run(lro: Lro, host: Host, arrivals: &[Arrival]) -> (Vec<Unit>, Counters) {
    let mut bench = Bench {
        lro,
        host,
        back: VecDeque::new(),
        units: Vec::new(),
    };
    (0..4).for_each(|queue| bench.lro.post(0, queue, host.buffers));
    for arrival in arrivals {
        bench.until(arrival.at);
        bench.lro.receive(arrival.at, arrival.queue, &arrival.frame);
        bench.collect();
    }
    // What waits for buffers gets them.
    let mut now = arrivals.last().map_or(0, |last| last.at);
    while bench.lro.waiting() > 0 {
        now += 1 + host.delay;
        bench.until(now);
    }
    bench.lro.stop(now);
    bench.collect();
    let counters = bench.lro.counters().clone();
    (bench.units, counters)
}

struct Bench {
    lro: Lro,
    host: Host,
    /// Buffers that come back: when, for which queue, how many.
    back: VecDeque<(u64, u16, usize)>,
    units: Vec<Unit>,
}

impl Bench {
    /// All that happens up to `now`, in the order of time.
    fn until(&mut self, now: u64) {
        loop {
            let back = self.back.front().map(|(at, ..)| *at);
            let own = self.lro.deadline();
            match (back, own) {
                (Some(at), own) if at <= now && own.is_none_or(|own| at < own) => {
                    if let Some((_, queue, count)) = self.back.pop_front() {
                        self.lro.post(at, queue, count);
                    }
                }
                (_, Some(at)) if at <= now => self.lro.advance(at),
                _ => return,
            }
            self.collect();
        }
    }

    fn collect(&mut self) {
        for unit in self.lro.take() {
            let buffers = usize::from(unit.header.num_buffers);
            self.back
                .push_back((unit.at + self.host.delay, unit.queue, buffers));
            self.units.push(unit);
        }
    }
}

/// The frames of the wire that units stand for, with their queues.
pub fn cut(units: &[Unit]) -> Result<Vec<(u16, Vec<u8>)>, String> {
    let mut frames = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        let cut = resegment(&unit.header, &unit.frame)
            .map_err(|error| format!("unit {number} ({:?}): {error}", unit.cause))?;
        if cut.len() != unit.segments {
            return Err(format!(
                "unit {number}: {} frames, not {}",
                cut.len(),
                unit.segments
            ));
        }
        frames.extend(cut.into_iter().map(|frame| (unit.queue, frame)));
    }
    Ok(frames)
}

/// What a frame must stay in order with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kin {
    /// The frames of a flow: tags, addresses and ports.
    Flow(Vec<u8>, Vec<u8>),
    /// All TCP between two addresses, since ports cannot be told.
    Addresses(Vec<u8>),
    /// All frames of its queue, since no field can be trusted.
    Queue,
    /// Nothing.
    Stranger,
}

fn kin(frame: &[u8]) -> Kin {
    let half = |at: usize| match frame.get(at..at + 2) {
        Some(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
        None => 0,
    };
    let mut ip = 14;
    while ip < 22 && [0x8100, 0x88a8].contains(&half(ip - 2)) {
        ip += 4;
    }
    let version = frame.get(ip).map_or(0, |byte| byte >> 4);
    let (addresses, protocol) = match (half(ip - 2), version) {
        (0x0800, 4) => {
            let header = 4 * usize::from(frame[ip] & 15);
            match frame.get(ip..ip + header) {
                Some(bytes) if header >= 20 && fold(sum(bytes)) == 0xffff => {
                    (bytes[12..20].to_vec(), bytes[9])
                }
                _ => return Kin::Queue,
            }
        }
        (0x86dd, 6) => match frame.get(ip..ip + 40) {
            Some(bytes) => (bytes[8..40].to_vec(), bytes[6]),
            None => return Kin::Queue,
        },
        _ => return Kin::Stranger,
    };
    if protocol == 6
        && let Some(packet) = parse(frame)
        && packet.protocol == Protocol::Tcp
    {
        let ports = &frame[packet.transport..packet.transport + 4];
        let key = [&frame[12..ip], ports].concat();
        return Kin::Flow(addresses, key);
    }
    match protocol {
        6 | 0 | 43 | 44 | 51 | 60 => Kin::Addresses(addresses),
        _ => Kin::Stranger,
    }
}

/// That the same frames arrived and were delivered, and those of each flow in the same order, with
/// those among them that may be of the flow.
pub fn same(arrivals: &[Arrival], delivered: &[(u16, Vec<u8>)]) -> Result<(), String> {
    let came: Vec<(u16, &[u8])> = arrivals.iter().map(|a| (a.queue, &a.frame[..])).collect();
    let went: Vec<(u16, &[u8])> = delivered.iter().map(|(q, f)| (*q, &f[..])).collect();
    let (mut a, mut b) = (came.clone(), went.clone());
    a.sort_unstable();
    b.sort_unstable();
    if a != b {
        let at = a.iter().zip(&b).position(|(a, b)| a != b);
        let frame = at.map_or("the last".to_owned(), |at| format!("{:02x?}", a[at]));
        return Err(format!(
            "{} came, {} went; {frame} is not alike",
            a.len(),
            b.len()
        ));
    }
    let (came, went) = (by_flow(&came), by_flow(&went));
    for (flow, frames) in &came {
        if went.get(flow) != Some(frames) {
            return Err(format!("frames of {flow:02x?} are not in order"));
        }
    }
    Ok(())
}

type Flows<'a> = BTreeMap<(Option<u16>, Kin), Vec<&'a [u8]>>;

/// The frames of each flow, whatever the queue, with those between its addresses; and those of each
/// flow in each queue, with those of the queue that cannot be trusted.
fn by_flow<'a>(frames: &[(u16, &'a [u8])]) -> Flows<'a> {
    let kins: Vec<Kin> = frames.iter().map(|(_, frame)| kin(frame)).collect();
    let mut flows: Flows = BTreeMap::new();
    for ((queue, _), kin) in frames.iter().zip(&kins) {
        if let Kin::Flow(..) = kin {
            flows.entry((None, kin.clone())).or_default();
            flows.entry((Some(*queue), kin.clone())).or_default();
        }
    }
    for ((queue, frame), kin) in frames.iter().zip(&kins) {
        match kin {
            Kin::Flow(..) => {
                for queue in [None, Some(*queue)] {
                    flows.entry((queue, kin.clone())).or_default().push(frame);
                }
            }
            Kin::Stranger => {}
            Kin::Addresses(_) | Kin::Queue => {
                for ((of, flow), list) in &mut flows {
                    let Kin::Flow(addresses, _) = flow else {
                        continue;
                    };
                    let with = match kin {
                        Kin::Addresses(own) => of.is_none() && own == addresses,
                        _ => *of == Some(*queue),
                    };
                    if with {
                        list.push(frame);
                    }
                }
            }
        }
    }
    flows
}

/// Segments in each unit, on the average of what was opened or merged.
pub fn per_unit(counters: &Counters) -> f64 {
    let segments = counters.opened + counters.merged;
    segments as f64 / counters.opened.max(1) as f64
}
