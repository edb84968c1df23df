//! `rx_steer`: the pair of a frame by the table of receive-side scaling, by the flow's last
//! transmission (S3-R9), or by the spread of flows, and how flows are forgotten.

use std::collections::HashMap;

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout, nightly};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    addresses: u16,
    ports: u16,
}

#[derive(Clone, Copy)]
struct Frame {
    flow: Flow,
    ip: bool,
    /// Low bits of the hash, if there is one.
    rss: Option<u8>,
}

struct Bench {
    block: Block,
    in_use: u64,
    time: u64,
    bank: u64,
    cfg: Vec<(&'static str, u64)>,
}

impl Bench {
    fn new(pairs: u64, seed: u64) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new(&format!("rx_steer_{pairs}"), seed)?,
            in_use: pairs,
            time: seed << 30,
            bank: 0,
            cfg: Vec::new(),
        };
        bench.use_pairs(pairs);
        bench.follow(28);
        Ok(bench)
    }

    fn use_pairs(&mut self, pairs: u64) {
        self.in_use = pairs;
        self.block.set("pairs_in_use_i", pairs);
    }

    fn set(&mut self, fields: Vec<(&'static str, u64)>) {
        self.cfg = fields;
        let mut fields = self.cfg.clone();
        fields.push(("bank", self.bank));
        let cfg = layout("steer_cfg_t").pack(&fields);
        self.block.set("cfg_i", cfg);
    }

    fn follow(&mut self, period: u64) {
        self.set(vec![("follow", 1), ("period", period)]);
    }

    fn tick(&mut self) -> Result<(), Failure> {
        self.block.set("time_i", self.time);
        self.block.tick()?;
        self.time += 1;
        Ok(())
    }

    fn run(&mut self, cycles: u64) -> Result<(), Failure> {
        (0..cycles).try_for_each(|_| self.tick())
    }

    /// Writes an entry of the table that is staged.
    fn entry(&mut self, row: u64, pair: u64) -> Result<(), Failure> {
        let write = [("table_we", 1), ("row", row), ("data", pair)];
        let write = layout("steer_write_t").pack(&write);
        self.block.set("write_i", write);
        self.tick()?;
        self.block.set("write_i", Bits::ZERO);
        self.run(4)
    }

    fn sent(&mut self, flow: Flow, pair: u64) -> Result<(), Failure> {
        let fields = [
            ("valid", 1),
            ("pair", pair),
            ("addr_hash", flow.addresses.into()),
            ("port_hash", flow.ports.into()),
        ];
        let flow = layout("tx_flow_t").pack(&fields);
        self.block.set("flow_i", flow);
        self.tick()?;
        self.block.set("flow_i", Bits::ZERO);
        self.run(2)
    }

    /// The pair of a frame, that is taken in half of the cycles.
    fn pair(&mut self, frame: Frame, rng: &mut Rng) -> Result<u64, Failure> {
        let mut verdict = layout("rx_verdict_t").pack(&[
            ("addr_hash", frame.flow.addresses.into()),
            ("port_hash", frame.flow.ports.into()),
            ("rss", frame.rss.is_some().into()),
            ("rss_low", frame.rss.unwrap_or(0).into()),
        ]);
        if frame.ip {
            let found = layout("hdr_found_t").pack(&[("ip", 1)]);
            let (low, width) = (layout("rx_verdict_t").width - 6, 5);
            verdict.set(low, width, found.0[0]);
        }
        let ptr = rng.next_u64() & 0xffff;
        let whole = [("ptr", ptr), ("len", 60), ("verdict", verdict.0[0])];
        let whole = layout("rx_frame_t").pack(&whole);
        self.block.set("frame_valid_i", true);
        self.block.set("frame_i", whole);
        self.block.set("frame_ready_i", false);
        let mut offered = true;
        for _ in 0..80 {
            self.block.set("time_i", self.time);
            self.block.settle()?;
            let taken = offered && self.block.is("frame_ready_o");
            let ready = rng.chance(50);
            self.block.set("frame_ready_i", ready);
            self.block.settle()?;
            if self.block.is("frame_valid_o") && ready {
                let (out, q) = (self.block.get("frame_o"), self.block.word("frame_q_o"));
                ensure!(
                    layout("rx_frame_t").get(&out, "ptr") == ptr,
                    "another frame"
                );
                ensure!(q % 2 == 0 && q / 2 < self.in_use, "queue {q} is not in use");
                self.tick()?;
                self.block.set("frame_ready_i", false);
                return Ok(q / 2);
            }
            self.tick()?;
            if taken {
                offered = false;
                self.block.set("frame_valid_i", false);
            }
        }
        Err(Failure::Contract(
            "a frame was not steered in 80 cycles".into(),
        ))
    }
}

fn flow(rng: &mut Rng) -> Flow {
    Flow {
        addresses: rng.next_u64() as u16,
        ports: rng.next_u64() as u16,
    }
}

fn plain(flow: Flow) -> Frame {
    Frame {
        flow,
        ip: true,
        rss: None,
    }
}

fn by_table(pairs: u64, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(pairs, seed)?;
    let mut tables = [[0; 128]; 2];
    for _ in 0..6 {
        let bits = rng.below(8);
        let unclassified = rng.below((pairs + 3).min(64));
        let staged = 1 - bench.bank as usize;
        for row in 0..128 {
            // Also pairs that the card does not have.
            let most = rng.pick(&[pairs, pairs, pairs, 64]);
            tables[staged][row as usize] = rng.below(most);
            bench.entry(row, tables[staged][row as usize])?;
        }
        bench.bank = staged as u64;
        bench.use_pairs(1 + rng.below(pairs));
        let mask = (1 << bits) - 1;
        let steer = [("hash", 1), ("steer", 1), ("follow", 1), ("period", 28)];
        let table = [("mask", mask), ("unclassified", unclassified)];
        bench.set([&steer[..], &table[..]].concat());
        for i in 0..200 {
            // Into the table that is staged: nothing of it is seen.
            if i % 3 == 0 {
                let row = rng.below(128);
                let pair = rng.below(64);
                tables[1 - staged][row as usize] = pair;
                bench.entry(row, pair)?;
            }
            let frame = Frame {
                rss: rng.chance(80).then(|| rng.below(128) as u8),
                ..plain(flow(rng))
            };
            bench.sent(frame.flow, rng.below(pairs))?;
            let chosen = match frame.rss {
                Some(low) => tables[staged][usize::from(low) & mask as usize],
                None => unclassified,
            };
            let want = if chosen < bench.in_use { chosen } else { 0 };
            let got = bench.pair(frame, rng)?;
            ensure!(
                got == want,
                "pair {got} instead of {want} for {:?}",
                frame.rss
            );
        }
    }
    Ok(())
}

#[test]
fn the_table_in_use_chooses_by_the_lowest_bits_of_the_hash() {
    for_seeds(4, |seed, rng| {
        by_table(4, seed, rng)?;
        by_table(64, seed, rng)
    });
}

fn following(pairs: u64, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(pairs, seed)?;
    let flows: Vec<Flow> = (0..40).map(|_| flow(rng)).collect();
    let mut last: HashMap<Flow, u64> = HashMap::new();
    let (mut followed, mut of) = (0, 0);
    for _ in 0..2000 {
        let flow = rng.pick(&flows);
        if rng.chance(40) {
            let pair = rng.below(pairs);
            bench.sent(flow, pair)?;
            last.insert(flow, pair);
            // The last that was sent to is always known.
            let got = bench.pair(plain(flow), rng)?;
            ensure!(got == pair, "pair {got}, sent on {pair}");
            // What is no IP is of no flow.
            let other = Frame {
                ip: false,
                ..plain(flow)
            };
            let spread = bench.pair(other, rng)?;
            bench.follow(28);
            ensure!(spread < pairs, "pair {spread}");
        } else if let Some(pair) = last.get(&flow) {
            of += 1;
            followed += u32::from(bench.pair(plain(flow), rng)? == *pair);
        }
    }
    // Two of 40 flows share a place of 256 now and then.
    ensure!(
        followed * 10 > of * 7,
        "{followed} of {of} came where they were sent from"
    );
    Ok(())
}

#[test]
fn a_flow_is_received_where_it_was_last_sent_from() {
    for_seeds(if nightly() { 50 } else { 3 }, |seed, rng| {
        following(4, seed, rng)?;
        following(64, seed, rng)
    });
}

/// CRC-8, polynomial 0x07, over the hash and a zero byte, scaled to the pairs in use.
fn spread(flow: Flow, pairs: u64) -> u64 {
    let mut crc = 0_u8;
    let [high, low] = (flow.addresses ^ flow.ports).to_be_bytes();
    for byte in [high, low, 0] {
        crc ^= byte;
        for _ in 0..8 {
            crc = (crc << 1) ^ if crc & 0x80 != 0 { 7 } else { 0 };
        }
    }
    (u64::from(crc) * pairs) >> 8
}

#[test]
fn flows_that_are_not_known_are_spread_over_all_pairs() {
    for_seeds(2, |seed, rng| {
        for pairs in [4, 64] {
            let mut bench = Bench::new(pairs, seed)?;
            for in_use in [pairs, 1, 3, pairs - 1] {
                bench.use_pairs(in_use);
                let mut seen = vec![0; pairs as usize];
                for _ in 0..64 * in_use {
                    let flow = flow(rng);
                    let got = bench.pair(plain(flow), rng)?;
                    seen[got as usize] += 1;
                    let want = spread(flow, in_use);
                    ensure!(got == want, "pair {got} instead of {want}");
                }
                let (least, most) = (1 + 64 / 4, 64 * 3);
                for n in &seen[..in_use as usize] {
                    ensure!((least..most).contains(n), "{seen:?}");
                }
            }
        }
        Ok(())
    });
}

/// A flow that differs from its spread pair, known at a time of its own, is known for two periods
/// and forgotten after three; a function reset forgets all.
#[test]
fn flows_age_and_a_reset_forgets_them() {
    for_seeds(if nightly() { 50 } else { 6 }, |seed, rng| {
        let mut bench = Bench::new(4, seed)?;
        bench.follow(12);
        bench.run(3000)?;
        for _ in 0..12 {
            let flow = flow(rng);
            let at_first = bench.pair(plain(flow), rng)?;
            let pair = (at_first + 1) % 4;
            bench.run(rng.below(5000))?;
            bench.sent(flow, pair)?;
            let sent = bench.time;
            while bench.time < sent + 2 * 4096 - 100 {
                let got = bench.pair(plain(flow), rng)?;
                ensure!(got == pair, "forgotten after {}", bench.time - sent);
                let others = rng.below(900);
                bench.run(others)?;
            }
            // A visit of all takes a while beside frames.
            while bench.time < sent + 3 * 4096 + 1500 {
                bench.run(10)?;
            }
            let got = bench.pair(plain(flow), rng)?;
            ensure!(got == at_first, "still on {got}");
            // Again, and then a reset.
            bench.sent(flow, pair)?;
            ensure!(bench.pair(plain(flow), rng)? == pair, "not known");
            bench.block.set("fn_rst_i", true);
            bench.run(rng.range(1, 4))?;
            bench.block.set("fn_rst_i", false);
            ensure!(
                bench.pair(plain(flow), rng)? == at_first,
                "known after a reset"
            );
            // Nothing of it comes back when all have been visited.
            bench.run(rng.pick(&[300, 1000, 2000]))?;
            ensure!(
                bench.pair(plain(flow), rng)? == at_first,
                "known after a reset"
            );
        }
        Ok(())
    });
}

#[test]
fn nothing_is_followed_while_that_is_off() {
    for_seeds(2, |seed, rng| {
        let mut bench = Bench::new(4, seed)?;
        for _ in 0..50 {
            let flow = flow(rng);
            let at_first = bench.pair(plain(flow), rng)?;
            bench.follow(28);
            bench.sent(flow, (at_first + 1) % 4)?;
            bench.set(vec![("follow", 0), ("period", 28)]);
            bench.run(2)?;
            ensure!(bench.pair(plain(flow), rng)? == at_first, "followed");
            bench.sent(flow, (at_first + 2) % 4)?;
            bench.run(1000)?;
            bench.follow(28);
            ensure!(bench.pair(plain(flow), rng)? == at_first, "known");
        }
        Ok(())
    });
}
