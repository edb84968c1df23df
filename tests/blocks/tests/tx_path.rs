//! `tx_path`: buffers of a queue to frames on the wire (virtio 1.2, "Packet Transmission" of the
//! network device).

use std::collections::{HashMap, VecDeque};

use ferronic_block_tests::{
    Bits, Block, Buffer, Failure, HostMemory, Rng, Walker, ensure, for_seeds, layout,
};

const HEADER: u64 = 12;
const PAIRS: u64 = 4;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fate {
    Sent,
    Short,
    Long,
    Offload,
    ReadError,
    Broken,
}

const FATES: [(Fate, &str); 5] = [
    (Fate::Short, "drop_short_o"),
    (Fate::Long, "drop_long_o"),
    (Fate::Offload, "drop_offload_o"),
    (Fate::ReadError, "drop_read_o"),
    (Fate::Broken, "drop_other_o"),
];

/// A read under way: address, length, RAM address, cookie, bytes written so far.
struct Read {
    addr: u64,
    len: u64,
    ptr: u64,
    cookie: u64,
    written: u64,
    err: bool,
    due: u64,
}

struct Bench {
    block: Block,
    width: usize,
    walker: Walker,
    memory: HostMemory,
    /// By queue: frames whose buffer is not back yet, and frames that are to leave.
    waiting: HashMap<u64, VecDeque<(u64, Fate)>>,
    leaving: HashMap<u64, VecDeque<Vec<u8>>>,
    expected: HashMap<Fate, u64>,
    seen: HashMap<Fate, u64>,
    errors: u64,
    reads: VecDeque<Read>,
    /// Addresses of which a read fails.
    bad: Vec<u64>,
    out: Vec<u8>,
    work: Option<u64>,
    next: u64,
    sent: u64,
}

impl Bench {
    fn new(width: usize, seed: u64) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new(&format!("tx_path_{width}"), seed)?,
            width,
            walker: Walker::default(),
            memory: HostMemory::default(),
            waiting: HashMap::new(),
            leaving: HashMap::new(),
            expected: HashMap::new(),
            seen: HashMap::new(),
            errors: 0,
            reads: VecDeque::new(),
            bad: Vec::new(),
            out: Vec::new(),
            work: None,
            next: 0,
            sent: 0,
        };
        bench.block.set("fn_rst_i", true);
        bench.block.tick()?;
        bench.block.set("fn_rst_i", false);
        for _ in 0..16 {
            bench.block.tick()?; // the scheduler clears its RAM
        }
        Ok(bench)
    }

    /// Posts a buffer of `len` bytes, header included, cut into `pieces` at random places.
    fn post(&mut self, q: u64, len: u64, pieces: u64, fate: Fate, rng: &mut Rng) {
        self.next += 1;
        let id = self.next & 0xffff;
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        let header = HEADER.min(len) as usize;
        bytes[..header].fill(0);
        if header > 1 && fate == Fate::Offload {
            // NEEDS_CSUM, or a kind of segmentation: neither is offered.
            let (at, value) = rng.pick(&[(0, 1), (1, 1), (1, 4)]);
            bytes[at] = value;
        }
        let mut cuts: Vec<u64> = (1..pieces).map(|_| rng.range(1, len - 1)).collect();
        cuts.extend([0, len]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut at = (self.next << 20) + rng.below(4096);
        let mut buffer = Buffer {
            id,
            segments: Vec::new(),
            broken: fate == Fate::Broken,
        };
        for pair in cuts.windows(2) {
            let part = &bytes[pair[0] as usize..pair[1] as usize];
            self.memory.store(at, part);
            buffer.segments.push((at, part.len() as u64));
            at += part.len() as u64 + rng.below(70);
        }
        if fate == Fate::ReadError {
            self.bad.push(rng.pick(&buffer.segments).0);
        }
        if fate == Fate::Sent {
            self.leaving
                .entry(q)
                .or_default()
                .push_back(bytes[HEADER as usize..].to_vec());
        }
        *self.expected.entry(fate).or_default() += 1;
        self.waiting.entry(q).or_default().push_back((id, fate));
        self.walker.posted.entry(q).or_default().push_back(buffer);
        self.work = Some(q);
    }

    fn cycle(&mut self, ready: u64, rng: &mut Rng) -> Result<(), Failure> {
        let lanes = (self.width / 8) as u64;
        self.walker.drive(&mut self.block, rng);
        self.block.set("work_valid_i", self.work.is_some());
        self.block.set("work_q_i", self.work.unwrap_or(1));
        self.block
            .set("rd_req_ready_i", self.reads.len() < 16 && rng.chance(80));
        self.block.set("used_ready_i", rng.chance(ready));
        self.block.set("tx_ready_i", rng.chance(ready));
        // One beat of read data a cycle, in the order of the requests.
        let mut done = Bits::ZERO;
        self.block.set("ram_we_i", Bits::ZERO);
        let now = self.block.cycle();
        if let Some(read) = self.reads.front_mut()
            && read.due <= now
        {
            if read.written < read.len && !read.err {
                let to = (read.ptr + read.written) & 0xffff;
                let (lane, left) = (to % lanes, read.len - read.written);
                let count = left.min(lanes - lane);
                let mut data = vec![0u8; lanes as usize];
                for i in 0..count {
                    let byte = self.memory.byte(read.addr + read.written + i);
                    data[(lane + i) as usize] = byte.unwrap_or(0);
                }
                let enable = ((1u128 << count) - 1) << lane;
                self.block.set("ram_we_i", enable as u64);
                self.block.set("ram_dst_i", true);
                self.block.set("ram_waddr_i", to / lanes);
                self.block.set("ram_wdata_i", Bits::from_bytes(&data));
                read.written += count;
            } else {
                let fields = [
                    ("valid", 1),
                    ("err", u64::from(read.err)),
                    ("cookie", read.cookie),
                ];
                done = layout("dma_rd_done_t").pack(&fields);
                self.reads.pop_front();
            }
        }
        self.block.set("rd_done_i", done);
        self.block.settle()?;
        let check = self.block.word("check_q_o");
        // As the walker has it: what is in hand is not committed.
        self.block.set("has_work_i", self.walker.has(check));
        self.block.settle()?;

        self.walker.observe(&self.block, false, rng)?;
        if self.block.fires("rd_req_valid_o", "rd_req_ready_i") {
            let fields = layout("dma_rd_req_t");
            let request = self.block.get("rd_req_o");
            let get = |name| fields.get(&request, name);
            let (addr, len) = (get("addr"), get("len"));
            self.reads.push_back(Read {
                addr,
                len,
                ptr: get("ptr"),
                cookie: get("cookie"),
                written: 0,
                err: self.bad.contains(&addr),
                due: self.block.cycle() + rng.below(60),
            });
        }
        if self.block.fires("used_valid_o", "used_ready_i") {
            self.used()?;
        }
        if self.block.is("queue_error_o") {
            self.errors += 1;
        }
        for (fate, port) in FATES {
            *self.seen.entry(fate).or_default() += u64::from(self.block.is(port));
        }
        if self.block.fires("tx_valid_o", "tx_ready_i") {
            self.beat()?;
        }
        self.work = None;
        self.block.tick()
    }

    fn used(&mut self) -> Result<(), Failure> {
        let fields = layout("vq_used_t");
        let used = self.block.get("used_o");
        let get = |name| fields.get(&used, name);
        let (q, id, len) = (get("q"), get("id"), get("len"));
        ensure!(
            len == 0 && get("publish") == 1,
            "used entry {id} of {len} bytes"
        );
        let first = self.waiting.entry(q).or_default().pop_front();
        ensure!(
            first.is_some_and(|(wanted, fate)| wanted == id && fate != Fate::Broken),
            "buffer {id} of queue {q} is back, {first:?} is next"
        );
        Ok(())
    }

    fn beat(&mut self) -> Result<(), Failure> {
        let lanes = self.width / 8;
        let (last, bytes) = (
            self.block.is("tx_last_o"),
            self.block.word("tx_bytes_o") as usize,
        );
        ensure!(
            bytes == lanes || last && bytes > 0 && bytes < lanes,
            "a beat of {bytes} bytes, last is {last}"
        );
        self.out
            .extend_from_slice(&self.block.get("tx_data_o").bytes()[..bytes]);
        if !last {
            return Ok(());
        }
        ensure!(!self.block.is("tx_abort_o"), "a frame was aborted");
        let frame = std::mem::take(&mut self.out);
        let queue = self
            .leaving
            .values_mut()
            .find(|queue| queue.front() == Some(&frame));
        let Some(queue) = queue else {
            return Err(Failure::Contract(format!(
                "a frame of {} bytes that is next of no queue",
                frame.len()
            )));
        };
        queue.pop_front();
        self.sent += 1;
        Ok(())
    }

    fn drain(&mut self, ready: u64, rng: &mut Rng) -> Result<(), Failure> {
        for _ in 0..100_000 {
            self.cycle(ready, rng)?;
            if self.waiting.values().all(VecDeque::is_empty)
                && self.leaving.values().all(VecDeque::is_empty)
                && self.block.is("idle_o")
            {
                for _ in 0..4 {
                    self.cycle(ready, rng)?;
                }
                for (fate, port) in FATES {
                    let count = |of: &HashMap<Fate, u64>| of.get(&fate).copied().unwrap_or(0);
                    let (seen, wanted) = (count(&self.seen), count(&self.expected));
                    ensure!(seen == wanted, "{port}: {seen} instead of {wanted}");
                }
                return Ok(());
            }
        }
        let waiting: usize = self.waiting.values().map(VecDeque::len).sum();
        let leaving: usize = self.leaving.values().map(VecDeque::len).sum();
        Err(Failure::Contract(format!(
            "{waiting} buffers are not back, {leaving} frames have not left"
        )))
    }

    /// `count` frames of random sizes over random queues.
    fn random(&mut self, count: u64, fates: &[Fate], rng: &mut Rng) -> Result<(), Failure> {
        let (post, ready) = (rng.pick(&[2, 20, 100]), rng.pick(&[30, 90, 100]));
        let mut posted = 0;
        while posted < count {
            if rng.chance(post) {
                let fate = rng.pick(fates);
                let frame = match rng.below(4) {
                    0 => rng.range(14, 80),
                    1 => rng.range(14, 9216),
                    _ => rng.range(14, 1514),
                };
                let len = match fate {
                    Fate::Short => rng.range(1, HEADER + 13),
                    Fate::Long => rng.pick(&[9217, 9300, 20_000]) + HEADER,
                    _ => frame + HEADER,
                };
                let pieces = rng.range(1, 6).min(len);
                let q = rng.below(PAIRS) * 2 + 1;
                self.post(q, len, pieces, fate, rng);
                posted += 1;
            }
            self.cycle(ready, rng)?;
        }
        self.drain(ready, rng)
    }
}

#[test]
fn segments_of_any_size_and_alignment_become_the_frame() {
    for_seeds(5, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed)?;
            bench.random(100, &[Fate::Sent], rng)?;
            ensure!(bench.sent == 100, "{} frames", bench.sent);
        }
        Ok(())
    });
}

#[test]
fn frames_that_are_none_are_dropped_and_their_buffers_come_back() {
    for_seeds(5, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed)?;
            let fates = [
                Fate::Sent,
                Fate::Sent,
                Fate::Short,
                Fate::Long,
                Fate::Offload,
            ];
            bench.random(100, &fates, rng)?;
        }
        Ok(())
    });
}

#[test]
fn failed_reads_drop_their_frame_alone() {
    for_seeds(5, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed)?;
            bench.random(80, &[Fate::Sent, Fate::Sent, Fate::ReadError], rng)?;
            let wanted = bench.expected.get(&Fate::ReadError).copied().unwrap_or(0);
            let errors = bench.errors;
            ensure!(
                errors == wanted,
                "{errors} queue errors for {wanted} frames"
            );
        }
        Ok(())
    });
}

#[test]
fn broken_chain_is_dropped_and_its_buffer_stays() {
    for_seeds(3, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed)?;
            bench.post(3, 500, 3, Fate::Broken, rng);
            for _ in 0..1000 {
                bench.cycle(100, rng)?;
            }
            let seen = bench.seen.get(&Fate::Broken).copied().unwrap_or(0);
            ensure!(seen == 1, "{seen} broken chains counted");
            ensure!(
                bench.sent == 0 && bench.out.is_empty(),
                "something was sent"
            );
            ensure!(
                bench.walker.committed.is_empty(),
                "a broken chain was committed"
            );
        }
        Ok(())
    });
}

#[test]
fn frames_of_several_queues_leave_in_turn() {
    for_seeds(2, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed)?;
            // Queue 1 has much to do when queue 3 gets its one frame.
            for _ in 0..40 {
                bench.post(1, 300, 1, Fate::Sent, rng);
                bench.cycle(0, rng)?;
            }
            bench.post(3, 300, 1, Fate::Sent, rng);
            let mut before = 0;
            while bench.leaving.get(&3).is_some_and(|queue| !queue.is_empty()) {
                bench.cycle(100, rng)?;
                before = bench.sent;
                ensure!(before < 40, "queue 3 waits behind all of queue 1");
            }
            ensure!(before > 0, "nothing was sent");
            bench.drain(100, rng)?;
        }
        Ok(())
    });
}
