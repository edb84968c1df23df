//! What the tests of merging share: seeds, captures, a host that takes units and gives buffers
//! back, and what must be true of what it got.

#![allow(dead_code)] // each test uses a part

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ferronic_oracle::lro::{Counters, Lro, Unit};
use ferronic_oracle::vectors::Arrival;
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

/// Segments in each unit, on the average of what was opened or merged.
pub fn per_unit(counters: &Counters) -> f64 {
    let segments = counters.opened + counters.merged;
    segments as f64 / counters.opened.max(1) as f64
}
