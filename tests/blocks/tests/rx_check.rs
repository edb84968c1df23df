//! `rx_check`: the hash of receive-side scaling beside every verdict, at the widths of the data
//! path, against the published function and a reading of virtio of our own. What it says of sums
//! is `header_parser`'s, and is compared here again.

use std::collections::VecDeque;

use ferronic_block_tests::frames::{frame, malformed, verdict};
use ferronic_block_tests::rss::{Hash, KEY, PUBLISHED_KEY, hash};
use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout, nightly};

struct Bench {
    block: Block,
    lanes: usize,
    key: [u8; KEY],
    types: u8,
    bank: u64,
    sent: VecDeque<Vec<u8>>,
    /// By `hash_report`, how often it was seen.
    seen: [usize; 7],
    cycles: u64,
}

impl Bench {
    fn new(width: usize, seed: u64) -> Result<Self, Failure> {
        Ok(Self {
            block: Block::new(&format!("rx_check_{width}"), seed)?,
            lanes: width / 8,
            key: [0; KEY],
            types: 0,
            bank: 0,
            sent: VecDeque::new(),
            seen: [0; 7],
            cycles: 0,
        })
    }

    /// What is expected of frames from now on; none may be on its way.
    fn set(&mut self, key: [u8; KEY], types: u8) -> Result<(), Failure> {
        for (row, bytes) in key.chunks(4).enumerate() {
            let word = u32::from_be_bytes(bytes.try_into().unwrap_or_default());
            let write = [("key_we", 1), ("row", row as u64), ("data", word.into())];
            let write = layout("steer_write_t").pack(&write);
            self.block.set("steer_write_i", write);
            self.tick()?;
        }
        self.block.set("steer_write_i", Bits::ZERO);
        self.bank ^= 1;
        (self.key, self.types) = (key, types);
        let settings = [("bank", self.bank), ("types", types.into()), ("hash", 1)];
        let settings = layout("steer_cfg_t").pack(&settings);
        self.block.set("steer_i", settings);
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Failure> {
        self.block.settle()?;
        if self.block.is("result_valid_o") {
            let said = self.block.get("verdict_o");
            let (report, value) = (self.block.word("report_o"), self.block.word("hash_o"));
            let Some(frame) = self.sent.pop_front() else {
                return Err(Failure::Contract("a result without a frame".into()));
            };
            let field = |name| layout("rx_verdict_t").get(&said, name);
            let want = verdict(&frame);
            ensure!(
                (field("sum_ok"), field("addr_hash"), field("port_hash"))
                    == (want.sum_ok.into(), want.addresses.into(), want.ports.into()),
                "{said:x?} instead of {want:x?}: {frame:02x?}"
            );
            let got = Hash::Is(report as u8, value as u32);
            let want = hash(&frame, &self.key, self.types);
            ensure!(
                want == Hash::Cut || got == want,
                "types {:#x}: {got:x?} instead of {want:x?}: {frame:02x?}",
                self.types
            );
            ensure!(
                field("rss") == u64::from(report != 0)
                    && field("rss_low") == u64::from(value as u32 & 0x7f),
                "{said:x?} for {got:x?}"
            );
            self.seen[report as usize] += 1;
        }
        self.block.tick()?;
        self.cycles += 1;
        Ok(())
    }

    fn idle(&mut self, cycles: usize) -> Result<(), Failure> {
        self.block.set("beat_valid_i", false);
        (0..cycles).try_for_each(|_| self.tick())
    }

    /// Beats of a frame; `cut` leaves out the last, as the wire does when a frame is void.
    fn send(&mut self, frame: &[u8], cut: bool, gaps: u64, rng: &mut Rng) -> Result<(), Failure> {
        // As rx_fifo: a header is written in front of each frame.
        self.idle(if self.lanes == 8 { 2 } else { 1 })?;
        self.block.settle()?;
        for _ in 0..200 {
            if self.block.is("ready_o") {
                break;
            }
            self.idle(1)?;
            self.block.settle()?;
        }
        ensure!(
            self.block.is("ready_o"),
            "no frame may begin for 200 cycles"
        );
        let beats: Vec<&[u8]> = frame.chunks(self.lanes).collect();
        for (i, beat) in beats.iter().enumerate() {
            while rng.chance(gaps) {
                self.idle(1)?;
            }
            let last = i + 1 == beats.len();
            if last && cut {
                break;
            }
            self.block.set("beat_valid_i", true);
            self.block.set("beat_first_i", i == 0);
            self.block.set("beat_last_i", last);
            self.block.set("beat_bytes_i", beat.len() as u64);
            let mut data = beat.to_vec();
            // At 64 bits nothing is masked behind the parser; rx_fifo's input has zeros there.
            data.resize(self.lanes, 0);
            self.block.set("beat_data_i", Bits::from_bytes(&data));
            if last {
                self.sent.push_back(frame.to_vec());
            }
            self.tick()?;
        }
        self.block.set("beat_valid_i", false);
        Ok(())
    }

    fn done(&mut self) -> Result<(), Failure> {
        self.idle(300)?;
        ensure!(self.sent.is_empty(), "{} without a result", self.sent.len());
        Ok(())
    }
}

fn random_key(rng: &mut Rng) -> [u8; KEY] {
    std::array::from_fn(|_| rng.next_u64() as u8)
}

fn random(seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    for width in [64, 512] {
        let mut bench = Bench::new(width, seed)?;
        for round in 0..12 {
            let any = rng.below(64) as u8;
            let types = match round {
                0..3 => 0x3f,
                3 => 0x09,
                _ => rng.pick(&[0x3f, 0x36, 0x12, 0, any]),
            };
            bench.set(random_key(rng), types)?;
            let gaps = rng.pick(&[0, 0, 20]);
            for _ in 0..150 {
                let frame = if rng.chance(70) {
                    frame(rng)
                } else {
                    malformed(rng)
                };
                let cut = frame.len() > bench.lanes && rng.chance(5);
                bench.send(&frame, cut, gaps, rng)?;
            }
            bench.done()?;
        }
        ensure!(
            bench.seen.iter().all(|n| *n > 5),
            "not all kinds were seen: {:?}",
            bench.seen
        );
    }
    Ok(())
}

#[test]
fn hashes_of_all_kinds_of_frames_are_those_of_the_specification() {
    for_seeds(if nightly() { 200 } else { 4 }, random);
}

/// Of the shortest frame with these headers.
fn shortest(v6: bool, protocol: u8, rng: &mut Rng) -> Vec<u8> {
    let mut frame = vec![2; 12];
    let (length, header) = if protocol == 6 { (20, 20) } else { (8, 8) };
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, length, protocol, 64]);
        frame.extend((0..32).map(|_| rng.next_u64() as u8));
    } else {
        frame.extend([
            0x08,
            0,
            0x45,
            0,
            0,
            20 + length,
            0,
            0,
            0x40,
            0,
            64,
            protocol,
            0,
            0,
        ]);
        frame.extend((0..8).map(|_| rng.next_u64() as u8));
    }
    frame.extend((0..header).map(|_| rng.next_u64() as u8));
    frame.resize(frame.len().max(64), 0);
    frame
}

/// Cycles a frame of 64 bytes or the shortest of its kind, one behind the other.
#[test]
fn the_hash_keeps_the_bounds_of_the_receive_path() {
    for_seeds(1, |seed, rng| {
        for (width, bound) in [(64, 20), (512, 12)] {
            for v6 in [false, true] {
                for protocol in [6, 17] {
                    let mut bench = Bench::new(width, seed)?;
                    bench.set(PUBLISHED_KEY, 0x3f)?;
                    let frames: Vec<_> = (0..200).map(|_| shortest(v6, protocol, rng)).collect();
                    let before = bench.cycles;
                    for frame in &frames {
                        bench.send(frame, false, 0, rng)?;
                    }
                    let cycles = (bench.cycles - before) as f64 / frames.len() as f64;
                    println!("{width} bits, IPv6 {v6}, protocol {protocol}: {cycles:.1} cycles");
                    bench.done()?;
                    ensure!(cycles <= f64::from(bound), "{cycles} cycles a frame");
                }
            }
        }
        Ok(())
    });
}
