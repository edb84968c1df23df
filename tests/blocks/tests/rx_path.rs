//! `rx_path`: frames from the wire to the buffers of a queue (virtio 1.2, "Processing of Incoming
//! Packets" of the network device).

use std::collections::{HashMap, VecDeque};

use ferronic_block_tests::{
    Bits, Block, Buffer, Failure, HostMemory, Rng, Walker, ensure, for_seeds, frames, layout,
};

const HEADER: u64 = 12;
const DATA_VALID: u8 = 2;

/// A write command under way: address, length, RAM address, bytes read so far.
struct Write {
    addr: u64,
    len: u64,
    ptr: u64,
    data: Vec<u8>,
    due: u64,
}

struct Bench {
    block: Block,
    width: usize,
    walker: Walker,
    memory: HostMemory,
    /// Frames for the wire: bytes, aborted; and where the first of them stands.
    wire: VecDeque<(Vec<u8>, bool)>,
    at: usize,
    /// Good frames that were sent whole and neither delivered nor dropped.
    sent: VecDeque<Vec<u8>>,
    max_frame: u64,
    lossless: bool,
    merge: bool,
    writes: VecDeque<Write>,
    reading: bool,
    /// Used entries of the frame under way.
    used: Vec<(u64, u64, u64)>,
    /// Used entries of frames that were published. The commit of the last buffer may come later:
    /// its other segments are read first.
    frames: VecDeque<Vec<(u64, u64, u64)>>,
    /// Which queue frames of a hash went to.
    flows: HashMap<u16, u64>,
    /// GUEST_CSUM was negotiated.
    checks: bool,
    marked: u64,
    next_buffer: u64,
    queues: u64,
    delivered: u64,
    drops: HashMap<&'static str, u64>,
    dropped_events: u64,
}

const DROPS: [&str; 6] = [
    "drop_short_o",
    "drop_long_o",
    "drop_abort_o",
    "drop_full_o",
    "drop_nobuf_o",
    "drop_other_o",
];

impl Bench {
    fn new(
        width: usize,
        seed: u64,
        (lossless, merge): (bool, bool),
        rng: &mut Rng,
    ) -> Result<Self, Failure> {
        let pairs = rng.pick(&[1, 4]);
        let mut bench = Self {
            block: Block::new(&format!("rx_path_{width}"), seed)?,
            width,
            walker: Walker::default(),
            memory: HostMemory::default(),
            wire: VecDeque::new(),
            at: 0,
            sent: VecDeque::new(),
            max_frame: rng.pick(&[1514, 9216]),
            lossless,
            merge,
            writes: VecDeque::new(),
            reading: false,
            used: Vec::new(),
            frames: VecDeque::new(),
            flows: HashMap::new(),
            checks: rng.chance(75),
            marked: 0,
            next_buffer: 0,
            queues: pairs,
            delivered: 0,
            drops: HashMap::new(),
            dropped_events: 0,
        };
        bench.block.set("pairs_in_use_i", pairs);
        let everything = layout("filter_cfg_t").pack(&[("promiscuous", 1)]);
        bench.block.set("filter_i", everything);
        bench.block.set("mrg_rxbuf_i", merge);
        bench.block.set("guest_csum_i", bench.checks);
        bench.block.set("driver_ok_i", true);
        bench.block.set("lossless_i", lossless);
        bench.block.set("max_frame_i", bench.max_frame);
        Ok(bench)
    }

    /// A frame of one of a few IPv4 flows.
    fn frame(&mut self, len: u64, rng: &mut Rng) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        if len >= 60 {
            let flow = rng.below(6) as u8;
            frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            frame[20..22].copy_from_slice(&[0, 0]);
            frame[23] = 17;
            frame[26..38].copy_from_slice(&[10, 0, 0, flow, 10, 0, 0, 1, 0, flow, 0, 9]);
        }
        frame
    }

    fn send(&mut self, rng: &mut Rng) {
        let len = match rng.below(10) {
            0 => rng.range(1, 20),
            1 => rng.range(60, self.max_frame + 4),
            2..6 => 64,
            _ => rng.range(60, 1514),
        };
        // Half of them with headers of all kinds, right and wrong.
        let frame = if rng.chance(50) {
            frames::frame(rng)
        } else {
            self.frame(len, rng)
        };
        self.wire.push_back((frame, rng.chance(5)));
    }

    fn post(&mut self, q: u64, segments: u64, shortest: u64, longest: u64, rng: &mut Rng) {
        let base = (self.next_buffer + 1) << 20;
        let mut at = base + rng.below(64);
        let mut buffer = Buffer {
            id: self.next_buffer & 0xffff,
            segments: Vec::new(),
            broken: false,
        };
        self.next_buffer += 1;
        for _ in 0..segments {
            let len = rng.range(shortest, longest);
            buffer.segments.push((at, len));
            at += len + rng.below(64);
        }
        self.walker.posted.entry(q).or_default().push_back(buffer);
    }

    fn cycle(&mut self, wire: u64, rng: &mut Rng) -> Result<(), Failure> {
        let lanes = self.width / 8;
        self.walker.drive(&mut self.block, rng);
        let beat = self
            .wire
            .front()
            .filter(|_| self.block.is("rx_valid_i") || rng.chance(wire));
        let mut ends = false;
        self.block.set("rx_valid_i", beat.is_some());
        if let Some((frame, abort)) = beat {
            let chunk = &frame[self.at..frame.len().min(self.at + lanes)];
            ends = self.at + chunk.len() == frame.len();
            self.block.set("rx_last_i", ends);
            self.block.set("rx_abort_i", *abort && ends);
            self.block.set("rx_bytes_i", chunk.len() as u64);
            self.block.set("rx_data_i", Bits::from_bytes(chunk));
        }
        let done = self.writes.front().is_some_and(|write| {
            write.data.len() as u64 >= write.len && write.due <= self.block.cycle()
        });
        // Data is in memory with `done`, and not before.
        if done && let Some(write) = self.writes.pop_front() {
            self.memory
                .store(write.addr, &write.data[..write.len as usize]);
        }
        self.block.set("wr_done_i", done);
        self.block
            .set("wr_cmd_ready_i", self.writes.len() < 4 && rng.chance(80));
        self.block.set("used_ready_i", rng.chance(70));
        self.block.set("buf_avail_i", rng.chance(2));
        self.reading = self.read(lanes as u64);
        self.block.settle()?;

        self.walker.observe(&self.block, true, rng)?;
        if self.block.fires("wr_cmd_valid_o", "wr_cmd_ready_i") {
            let fields = layout("dma_wr_cmd_t");
            let command = self.block.get("wr_cmd_o");
            let (addr, len) = (fields.get(&command, "addr"), fields.get(&command, "len"));
            let held = self.walker.posted.get(&self.walker.queue);
            let held = held.into_iter().flatten().take(self.walker.taken.max(1));
            let latest = self
                .walker
                .committed
                .back()
                .into_iter()
                .flat_map(|(_, b)| b);
            let inside = held.chain(latest).flat_map(|buffer| &buffer.segments);
            ensure!(
                inside
                    .into_iter()
                    .any(|(at, n)| addr >= *at && addr + len <= at + n),
                "{len} bytes to {addr:#x}, which is in no buffer at hand"
            );
            self.writes.push_back(Write {
                addr,
                len,
                ptr: fields.get(&command, "ptr"),
                data: Vec::new(),
                due: self.block.cycle() + rng.below(30),
            });
        }
        if self.block.fires("used_valid_o", "used_ready_i") {
            let fields = layout("vq_used_t");
            let used = self.block.get("used_o");
            let get = |name| fields.get(&used, name);
            self.used.push((get("q"), get("id"), get("len")));
            if get("publish") != 0 {
                self.frames.push_back(std::mem::take(&mut self.used));
            }
        }
        while !self.frames.is_empty() && !self.walker.committed.is_empty() {
            self.published()?;
        }
        for drop in DROPS {
            *self.drops.entry(drop).or_default() += u64::from(self.block.is(drop));
        }
        let (event, fields) = (self.block.get("event_o"), layout("frame_event_t"));
        if fields.get(&event, "valid") != 0 {
            self.dropped_events += fields.get(&event, "drop");
        }
        let taken = self.block.fires("rx_valid_i", "rx_ready_o");
        self.block.tick()?;
        if self.reading {
            let data = self.block.get("ram_rdata_o").bytes();
            if let Some(write) = self
                .writes
                .iter_mut()
                .find(|write| (write.data.len() as u64) < write.len)
            {
                let skip = if write.data.is_empty() {
                    write.ptr as usize % lanes
                } else {
                    0
                };
                write.data.extend_from_slice(&data[skip..lanes]);
            }
        }
        if taken {
            self.at += lanes;
            if ends && let Some((frame, abort)) = self.wire.pop_front() {
                self.at = 0;
                let len = frame.len() as u64;
                if !abort && len >= 14 && len <= self.max_frame {
                    self.sent.push_back(frame);
                }
            }
        }
        Ok(())
    }

    /// Reads the next word of the frame RAM for the oldest write that needs one.
    fn read(&mut self, lanes: u64) -> bool {
        let write = self
            .writes
            .iter()
            .find(|write| (write.data.len() as u64) < write.len);
        self.block.set("ram_re_i", write.is_some());
        self.block.set("ram_rinc_i", Bits::ZERO);
        if let Some(write) = write {
            let words = 65536 / lanes;
            let byte = match write.data.len() as u64 {
                0 => write.ptr,
                read => write.ptr + read,
            };
            self.block.set("ram_raddr_i", byte / lanes % words);
        }
        write.is_some()
    }

    /// A frame was published: it is in the buffers of its used entries, and in them alone.
    fn published(&mut self) -> Result<(), Failure> {
        let (Some(used), Some((q, buffers))) =
            (self.frames.pop_front(), self.walker.committed.pop_front())
        else {
            return Ok(());
        };
        ensure!(
            buffers.len() == used.len(),
            "{} buffers were committed, {} used",
            buffers.len(),
            used.len()
        );
        ensure!(
            q % 2 == 0 && q < 2 * self.queues,
            "queue {q} of {} pairs",
            self.queues
        );
        let mut bytes = Vec::new();
        for (i, (buffer, (used_q, id, len))) in buffers.iter().zip(&used).enumerate() {
            ensure!(
                (*used_q, *id) == (q, buffer.id),
                "{used:x?} for {buffer:x?} of queue {q}"
            );
            let filled = if i + 1 < used.len() {
                *len == buffer.len()
            } else {
                *len <= buffer.len()
            };
            ensure!(
                filled && *len > 0,
                "{len} bytes in {buffer:x?}, buffer {i} of {}",
                used.len()
            );
            for address in buffer.addresses().take(*len as usize) {
                let Some(byte) = self.memory.byte(address) else {
                    return Err(Failure::Contract(format!("{address:#x} was not written")));
                };
                bytes.push(byte);
            }
        }
        let header = &bytes[..HEADER as usize];
        let said = frames::verdict(&bytes[HEADER as usize..]);
        let mut wanted = [0u8; HEADER as usize];
        if said.sum_ok && self.checks {
            wanted[0] = DATA_VALID;
            self.marked += 1;
        }
        wanted[10..].copy_from_slice(&(used.len() as u16).to_le_bytes());
        ensure!(
            *header == wanted,
            "header {header:?} with {} buffers: {said:?}, checks {}: {:02x?}",
            used.len(),
            self.checks,
            &bytes[HEADER as usize..]
        );
        let frame = &bytes[HEADER as usize..];
        // Frames leave in order; some are dropped on the way.
        while let Some(sent) = self.sent.pop_front() {
            if sent == frame {
                self.delivered += 1;
                let known = *self.flows.entry(said.hash()).or_insert(q);
                ensure!(known == q, "a flow on queues {known} and {q}");
                return Ok(());
            }
            ensure!(
                !self.lossless || !self.merge,
                "a frame of {} bytes is gone",
                sent.len()
            );
        }
        Err(Failure::Contract(format!(
            "a frame of {} bytes that was not sent",
            frame.len()
        )))
    }

    fn idle(&self) -> bool {
        self.wire.is_empty() && self.writes.is_empty() && self.block.is("idle_o")
    }

    fn drop_count(&self, names: &[&str]) -> u64 {
        names
            .iter()
            .map(|name| self.drops.get(name).copied().unwrap_or(0))
            .sum()
    }
}

/// Frames and buffers of random sizes, with stalls everywhere.
fn random(
    seed: u64,
    rng: &mut Rng,
    modes: (bool, bool),
    (segments, shortest, longest): (u64, u64, u64),
    post: u64,
) -> Result<(), Failure> {
    for width in [64, 512] {
        let mut bench = Bench::new(width, seed, modes, rng)?;
        let count = 120;
        let (mut good, mut bad) = (0, 0);
        for _ in 0..count {
            bench.send(rng);
        }
        for (frame, abort) in &bench.wire {
            let len = frame.len() as u64;
            let ok = !abort && (14..=bench.max_frame).contains(&len);
            good += u64::from(ok);
            bad += u64::from(!ok);
        }
        let wire = rng.pick(&[30, 100]);
        let mut cycles = 0;
        while !bench.idle() {
            for pair in 0..bench.queues {
                let held = bench
                    .walker
                    .posted
                    .get(&(2 * pair))
                    .map_or(0, VecDeque::len);
                if held < 70 && rng.chance(post) {
                    let count = rng.range(1, segments);
                    bench.post(2 * pair, count, shortest, longest, rng);
                }
            }
            bench.cycle(wire, rng)?;
            cycles += 1;
            ensure!(
                cycles < 300_000,
                "{width} bits: {} of {good} frames delivered, {:?}",
                bench.delivered,
                bench.drops
            );
        }
        for _ in 0..4 {
            bench.cycle(wire, rng)?;
        }
        let void = bench.drop_count(&["drop_short_o", "drop_long_o", "drop_abort_o"]);
        let open = (
            bench.frames.len(),
            bench.walker.committed.len(),
            bench.walker.taken,
        );
        ensure!(
            open == (0, 0, 0),
            "published, committed and in hand at the end: {open:?}"
        );
        // One that met a full FIFO is counted as that.
        let full = bench.drop_count(&["drop_full_o"]);
        ensure!(
            void <= bad && bad <= void + full,
            "{void} void frames counted, {bad} sent: {:?}",
            bench.drops
        );
        let dropped = bench.drop_count(&["drop_full_o", "drop_nobuf_o", "drop_other_o"]);
        ensure!(
            bench.delivered + dropped + void == count && bench.delivered <= good,
            "{count} frames, {good} of them good, {} delivered, {:?}",
            bench.delivered,
            bench.drops
        );
        let steered = bench.drop_count(&["drop_nobuf_o", "drop_other_o"]);
        ensure!(
            steered == bench.dropped_events,
            "{} events",
            bench.dropped_events
        );
        if modes == (true, true) {
            ensure!(
                dropped == 0,
                "dropped though the wire can wait: {:?}",
                bench.drops
            );
        }
    }
    Ok(())
}

#[test]
fn frames_fill_one_buffer_each() {
    for_seeds(3, |seed, rng| {
        random(seed, rng, (true, true), (1, 9300, 9300), 50)
    });
}

#[test]
fn frames_fill_as_many_buffers_as_they_need() {
    // A frame of 9,216 bytes in buffers of at least 150: within the 64 that a frame may take.
    for_seeds(3, |seed, rng| {
        random(seed, rng, (true, true), (1, 150, 700), 50)
    });
}

#[test]
fn buffers_of_several_segments_are_filled_in_turn() {
    for_seeds(3, |seed, rng| {
        random(seed, rng, (true, true), (6, 150, 300), 50)
    });
}

#[test]
fn frames_wait_for_buffers_if_the_wire_can() {
    for_seeds(3, |seed, rng| {
        random(seed, rng, (true, true), (3, 600, 3000), 1)
    });
}

#[test]
fn frames_without_a_buffer_are_dropped_and_counted() {
    for_seeds(3, |seed, rng| {
        random(seed, rng, (false, true), (2, 600, 3000), 1)
    });
}

#[test]
fn frames_larger_than_their_buffer_are_dropped_without_merging() {
    for_seeds(3, |seed, rng| {
        random(seed, rng, (true, false), (2, 300, 800), 50)
    });
}

#[test]
fn buffer_of_a_dropped_frame_takes_the_next_one() {
    for_seeds(2, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed, (true, false), rng)?;
            bench.block.set("pairs_in_use_i", 1);
            let (large, small) = (bench.frame(1000, rng), bench.frame(100, rng));
            bench.wire.extend([(large, false), (small, false)]);
            bench.post(0, 1, 200, 200, rng);
            for _ in 0..2000 {
                bench.cycle(100, rng)?;
            }
            ensure!(
                bench.delivered == 1 && bench.drop_count(&["drop_nobuf_o"]) == 1,
                "{} delivered, {:?}",
                bench.delivered,
                bench.drops
            );
        }
        Ok(())
    });
}
