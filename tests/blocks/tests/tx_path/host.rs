//! Host memory, and reads of it with a latency: written in any order, done in that of the requests.

use std::collections::{BTreeMap, VecDeque};

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, layout};

/// Bytes of a read at most.
const CHUNK: u64 = 2048;
/// Reads under way at most.
const READS: usize = 16;

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

impl Read {
    fn is_done(&self, now: u64) -> bool {
        self.due <= now && (self.err || self.written == self.len)
    }
}

/// The memory, and what is being read.
pub struct Host {
    width: usize,
    memory: BTreeMap<u64, Vec<u8>>,
    reads: VecDeque<Read>,
    /// The read that is being written.
    writing: usize,
    /// Addresses of bytes that cannot be read.
    pub bad: Vec<u64>,
}

impl Host {
    /// For a data path of so many bits.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            memory: BTreeMap::new(),
            reads: VecDeque::new(),
            writing: 0,
            bad: Vec::new(),
        }
    }

    /// Whether no read is under way.
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty()
    }

    /// Drives the inputs of this cycle; whether something was written.
    pub fn drive(&mut self, block: &mut Block, rng: &mut Rng) -> bool {
        let ready = self.reads.len() < READS && rng.chance(80);
        block.set("rd_req_ready_i", ready);
        self.complete(block);
        self.write(block, rng)
    }

    /// Puts bytes into memory from about `base` on; address and length of each piece.
    pub fn store(
        &mut self,
        base: u64,
        bytes: &[u8],
        pieces: u64,
        rng: &mut Rng,
    ) -> Vec<(u64, u64)> {
        let len = bytes.len() as u64;
        let mut cuts: Vec<u64> = (1..pieces.min(len))
            .map(|_| match rng.below(4) {
                // Close to the headers, where it hurts.
                0 => rng.range(1, 160.min(len - 1)),
                _ => rng.range(1, len - 1),
            })
            .collect();
        cuts.extend([0, len]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut at = base + rng.below(4096);
        let mut segments = Vec::new();
        for pair in cuts.windows(2) {
            let part = &bytes[pair[0] as usize..pair[1] as usize];
            self.memory.insert(at, part.to_vec());
            segments.push((at, part.len() as u64));
            at += part.len() as u64 + rng.below(70);
        }
        segments
    }

    /// Reads end in the order of the requests.
    fn complete(&mut self, block: &mut Block) {
        let now = block.cycle();
        let mut done = Bits::ZERO;
        if self.reads.front().is_some_and(|read| read.is_done(now))
            && let Some(read) = self.reads.pop_front()
        {
            self.writing = self.writing.saturating_sub(1);
            done = layout("dma_rd_done_t").pack(&[
                ("valid", 1),
                ("err", u64::from(read.err)),
                ("cookie", read.cookie),
            ]);
        }
        block.set("rd_done_i", done);
    }

    /// One beat of read data a cycle, of any read that is under way; whether there was one.
    fn write(&mut self, block: &mut Block, rng: &mut Rng) -> bool {
        let lanes = (self.width / 8) as u64;
        let now = block.cycle();
        block.set("ram_we_i", Bits::ZERO);
        let ready = |read: &Read| read.due <= now && !read.err && read.written < read.len;
        // The same read for a while, as completions come.
        if !self.reads.get(self.writing).is_some_and(ready) || rng.chance(3) {
            let waiting: Vec<usize> = (0..self.reads.len())
                .filter(|i| ready(&self.reads[*i]))
                .collect();
            if waiting.is_empty() {
                return false;
            }
            self.writing = rng.pick(&waiting);
        }
        let read = &mut self.reads[self.writing];
        let to = (read.ptr + read.written) & 0xffff;
        let lane = to % lanes;
        // To the end of the word, or into the next one.
        let room = if rng.chance(50) { lanes } else { lanes - lane };
        let count = room.min(read.len - read.written);
        let from = read.addr + read.written;
        let Some((base, bytes)) = self.memory.range(..=from).next_back() else {
            return false;
        };
        let bytes = &bytes[(from - base) as usize..][..count as usize];
        let (mut data, mut enable, mut wrapped) = (vec![0u8; lanes as usize], 0u64, 0u64);
        for (i, byte) in bytes.iter().enumerate() {
            let place = lane + i as u64;
            data[(place % lanes) as usize] = *byte;
            enable |= 1 << (place % lanes);
            wrapped |= u64::from(place >= lanes) << (place % lanes);
        }
        block.set("ram_we_i", enable);
        block.set("ram_dst_i", true);
        block.set("ram_waddr_i", to / lanes);
        block.set("ram_winc_i", wrapped);
        block.set("ram_wdata_i", Bits::from_bytes(&data));
        read.written += count;
        true
    }

    /// Takes a request.
    pub fn request(&mut self, block: &Block, rng: &mut Rng) -> Result<(), Failure> {
        let fields = layout("dma_rd_req_t");
        let request = block.get("rd_req_o");
        let get = |name| fields.get(&request, name);
        let (addr, len) = (get("addr"), get("len"));
        ensure!((1..=CHUNK).contains(&len), "a read of {len} bytes");
        let inside = self.memory.range(..=addr).next_back();
        ensure!(
            inside.is_some_and(|(base, bytes)| addr + len <= base + bytes.len() as u64),
            "a read of {len} bytes at {addr:#x} that nobody posted"
        );
        let bad = |at: &u64| (addr..addr + len).contains(at);
        self.reads.push_back(Read {
            addr,
            len,
            ptr: get("ptr"),
            cookie: get("cookie"),
            written: 0,
            err: self.bad.iter().any(bad),
            due: block.cycle() + rng.below(60),
        });
        Ok(())
    }
}
