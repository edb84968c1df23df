//! `dma_read` against a root complex that splits, reorders, fails, loses and invents completions.

use std::collections::{HashMap, VecDeque};

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout};

const REQUESTER: u64 = 0x4320;
const CONTROL: usize = 0;
const TRANSMIT: usize = 1;
/// Cycles after which a tag is given up, and what the steps of the clock may add.
const TIMEOUT: u64 = 1600;

/// What host memory holds.
fn host_byte(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

#[derive(Clone, Debug)]
struct Request {
    addr: u64,
    len: u64,
    ptr: u64,
    cookie: u64,
    /// Bytes that were asked for so far.
    asked: u64,
    failed: bool,
}

/// A read on the link, with what is still to be completed.
#[derive(Clone, Debug)]
struct Read {
    tag: u64,
    client: usize,
    cookie: u64,
    at: u64,
    end: u64,
    lost: bool,
    /// Cycle of the request.
    since: u64,
}

/// Percentages of what goes wrong.
#[derive(Clone, Copy, Default)]
struct Faults {
    unsupported: u64,
    aborted: u64,
    poisoned: u64,
    lost: u64,
    surplus: u64,
}

struct Bench {
    block: Block,
    lanes: u64,
    max_read: u64,
    tags: u64,
    faults: Faults,
    offered: [Option<Request>; 2],
    open: [VecDeque<Request>; 2],
    /// Bytes that may still be written, and were.
    missing: HashMap<(usize, u64), u8>,
    reads: Vec<Read>,
    /// Beats on their way to the block: sop, eop, header, data.
    beats: VecDeque<(bool, bool, Bits, Vec<u8>)>,
    next_ptr: [u64; 2],
    next_cookie: u64,
    expected: [u64; 5],
    seen: [u64; 5],
    done: u64,
    halted: bool,
    asked_after_halt: u64,
}

const EVENTS: [&str; 5] = [
    "ev_unexpected_o",
    "ev_ur_o",
    "ev_ca_o",
    "ev_poisoned_o",
    "ev_timeout_o",
];

impl Bench {
    fn new(width: u64, faults: Faults, seed: u64, rng: &mut Rng) -> Result<Self, Failure> {
        let extended = rng.chance(50);
        let max_read = rng.pick(&[128, 256, 512, 4096]);
        let mut bench = Self {
            block: Block::new(&format!("dma_read_{width}"), seed)?,
            lanes: width / 8,
            max_read,
            tags: if extended && width >= 256 { 64 } else { 32 },
            faults,
            offered: [None, None],
            open: Default::default(),
            missing: HashMap::new(),
            reads: Vec::new(),
            beats: VecDeque::new(),
            next_ptr: [0, 0],
            next_cookie: 0,
            expected: [0; 5],
            seen: [0; 5],
            done: 0,
            halted: false,
            asked_after_halt: 0,
        };
        bench.block.set("max_read_i", max_read);
        bench.block.set("ext_tag_i", extended);
        bench.block.set("requester_i", REQUESTER);
        bench.block.set("timeout_off_i", faults.lost == 0);
        bench.block.tick()?;
        Ok(bench)
    }

    fn offer(&mut self, client: usize, rng: &mut Rng) {
        let open: u64 = self.open[client].iter().map(|r| r.len + 8).sum();
        if self.offered[client].is_some() || open > 40_000 {
            return;
        }
        let kinds = if self.faults.lost > 0 { 2 } else { 4 };
        let len = match rng.below(kinds) {
            0 => rng.range(1, 8),
            1 => rng.range(1, 256),
            2 => rng.range(1, 1526),
            _ => rng.range(1, 9228),
        };
        let page = rng.pick(&[0xffff_f000, 0x1_0000_0000, 0x12_3456_7000]);
        let addr = (client as u64 + 1) << 40 | (page + rng.below(4096));
        let mut ptr = self.next_ptr[client];
        if client == CONTROL {
            ptr = ptr & !3 | addr & 3;
        }
        self.next_ptr[client] = (ptr + len + 4) & 0xffff;
        self.next_cookie = (self.next_cookie + 1) & 0xff;
        self.offered[client] = Some(Request {
            addr,
            len,
            ptr: ptr & 0xffff,
            cookie: self.next_cookie,
            asked: 0,
            failed: false,
        });
    }

    fn cycle(
        &mut self,
        offer: u64,
        ready: u64,
        complete: u64,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        for client in [CONTROL, TRANSMIT] {
            if rng.chance(offer) {
                self.offer(client, rng);
            }
            let (valid, port) = [
                ("ctl_req_valid_i", "ctl_req_i"),
                ("tx_req_valid_i", "tx_req_i"),
            ][client];
            self.block.set(valid, self.offered[client].is_some());
            if let Some(Request {
                addr,
                len,
                ptr,
                cookie,
                ..
            }) = self.offered[client]
            {
                let fields = [
                    ("addr", addr),
                    ("len", len),
                    ("ptr", ptr),
                    ("cookie", cookie),
                ];
                self.block.set(port, layout("dma_rd_req_t").pack(&fields));
            }
        }
        self.block.set("np_ready_i", rng.chance(ready));
        self.block.set("halt_i", self.halted);
        if self.beats.is_empty() && rng.chance(complete) {
            self.completion(rng);
        }
        let beat = if rng.chance(complete) {
            self.beats.pop_front()
        } else {
            None
        };
        self.block.set("rc_valid_i", beat.is_some());
        if let Some((sop, eop, header, data)) = beat {
            self.block.set("rc_sop_i", sop);
            self.block.set("rc_eop_i", eop);
            self.block.set("rc_hdr_i", header);
            self.block.set("rc_data_i", Bits::from_bytes(&data));
        }
        self.block.settle()?;
        self.stored()?;
        for (client, port) in ["ctl_done_o", "tx_done_o"].into_iter().enumerate() {
            self.finished(client, port)?;
        }
        for (seen, port) in self.seen.iter_mut().zip(EVENTS) {
            *seen += u64::from(self.block.is(port));
        }
        if self.block.fires("np_valid_o", "np_ready_i") {
            self.read(rng)?;
        }
        let taken = [
            self.block.fires("ctl_req_valid_i", "ctl_req_ready_o"),
            self.block.fires("tx_req_valid_i", "tx_req_ready_o"),
        ];
        self.block.tick()?;
        for client in [CONTROL, TRANSMIT] {
            if taken[client]
                && let Some(request) = self.offered[client].take()
            {
                for i in 0..request.len {
                    let to = (client, (request.ptr + i) & 0xffff);
                    self.missing.insert(to, host_byte(request.addr + i));
                }
                self.open[client].push_back(request);
            }
        }
        Ok(())
    }

    /// A read request on the link: it must be the next piece of a request.
    fn read(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        let fields = layout("mem_req_t");
        let request = self.block.get("np_req_o");
        let tag = self.block.word("np_tag_o");
        let dws = match fields.get(&request, "dw_len") {
            0 => 1024,
            dws => dws,
        };
        let addr = fields.get(&request, "addr") << 2;
        let first = fields.get(&request, "first_be");
        let last = fields.get(&request, "last_be");
        ensure!(tag < self.tags, "tag {tag} of {}", self.tags);
        let now = self.block.cycle();
        // A tag that was given up for lost is free.
        self.reads
            .retain(|read| !(read.lost && read.tag == tag && now - read.since >= TIMEOUT));
        ensure!(
            self.reads.iter().all(|read| read.tag != tag),
            "tag {tag} is outstanding already"
        );
        ensure!(
            dws * 4 <= self.max_read,
            "{dws} DWs with {} allowed",
            self.max_read
        );
        ensure!(
            addr >> 12 == (addr + dws * 4 - 1) >> 12,
            "{dws} DWs at {addr:#x}"
        );
        ensure!(
            first != 0 && (dws == 1) == (last == 0),
            "enables {first:#b} {last:#b}"
        );
        let at = addr + u64::from(first.trailing_zeros());
        let top = if dws == 1 { first } else { last };
        let end = addr + 4 * (dws - 1) + u64::from(64 - top.leading_zeros());
        let client = (addr >> 40) as usize - 1;
        let next = self.open[client]
            .iter_mut()
            .find(|request| request.asked < request.len);
        let Some(request) = next else {
            return Err(Failure::Contract(format!(
                "nobody asked for {at:#x}..{end:#x}"
            )));
        };
        ensure!(
            at == request.addr + request.asked && end <= request.addr + request.len,
            "{at:#x}..{end:#x} is not next of {request:x?}"
        );
        request.asked += end - at;
        self.asked_after_halt += u64::from(self.halted);
        let cookie = request.cookie;
        let lost = rng.chance(self.faults.lost);
        if lost {
            request.failed = true;
            self.expected[4] += 1;
        }
        self.reads.push(Read {
            tag,
            client,
            cookie,
            at,
            end,
            lost,
            since: now,
        });
        Ok(())
    }

    /// Puts one completion of some read, or one of no read, into `beats`.
    fn completion(&mut self, rng: &mut Rng) {
        if rng.chance(self.faults.surplus) {
            self.surplus(rng);
            return;
        }
        let live: Vec<usize> = (0..self.reads.len())
            .filter(|i| !self.reads[*i].lost)
            .collect();
        if live.is_empty() {
            return;
        }
        let index = rng.pick(&live);
        let Read {
            tag,
            client,
            cookie,
            at,
            end,
            ..
        } = self.reads[index];
        let status = if rng.chance(self.faults.unsupported) {
            1
        } else if rng.chance(self.faults.aborted) {
            4
        } else {
            0
        };
        let poisoned = status == 0 && rng.chance(self.faults.poisoned);
        self.expected[1] += u64::from(status == 1);
        self.expected[2] += u64::from(status == 4);
        self.expected[3] += u64::from(poisoned);
        if status != 0 || poisoned {
            for request in &mut self.open[client] {
                request.failed |= request.cookie == cookie;
            }
        }
        // Up to a boundary of 64 bytes, at most 256 bytes; the rest comes later.
        let ends: Vec<u64> = (1..=4)
            .map(|i| (at & !63) + 64 * i)
            .filter(|stop| *stop < end)
            .chain((end - (at & !3) <= 256).then_some(end))
            .collect();
        let stop = rng.pick(&ends);
        self.packet(tag, status, poisoned, at, end - at, stop - at);
        if status != 0 || stop == end {
            self.reads.remove(index);
        } else {
            self.reads[index].at = stop;
        }
    }

    /// A completion that fits nothing: no tag, another byte count, address or requester.
    fn surplus(&mut self, rng: &mut Rng) {
        let free = (0..self.tags).find(|tag| self.reads.iter().all(|r| r.tag != *tag));
        match (rng.below(3), self.reads.first().cloned(), free) {
            // A read whose completion is under way is left alone: lost ones stay.
            (0, Some(read), _) => {
                let count = (read.end - read.at) % 4000 + 1;
                self.packet(read.tag, 0, false, read.at, count, 1);
            }
            (1, Some(read), _) => {
                let count = read.end - read.at;
                self.packet(read.tag, 0, false, read.at ^ 4, count, count.min(4));
            }
            (_, _, Some(tag)) => self.packet(tag, 0, false, rng.below(4096), 64, 64),
            _ => return,
        }
        self.expected[0] += 1;
    }

    fn packet(&mut self, tag: u64, status: u64, poisoned: bool, at: u64, count: u64, len: u64) {
        let start = at & !3;
        let dws = if status == 0 {
            (at + len - start).div_ceil(4)
        } else {
            0
        };
        let mut header = Bits::ZERO;
        header.set(
            24,
            8,
            if status == 0 {
                0b010_01010
            } else {
                0b000_01010
            },
        );
        header.set(14, 1, u64::from(poisoned));
        header.set(0, 10, dws);
        header.set(45, 3, status);
        header.set(32, 12, count & 0xfff);
        header.set(80, 16, REQUESTER);
        header.set(72, 8, tag);
        header.set(64, 7, at & 0x7f);
        let data: Vec<u8> = (start..start + dws * 4).map(host_byte).collect();
        let mut chunks: Vec<Vec<u8>> = data
            .chunks(self.lanes as usize)
            .map(<[u8]>::to_vec)
            .collect();
        if chunks.is_empty() {
            chunks.push(Vec::new());
        }
        let last = chunks.len() - 1;
        for (i, chunk) in chunks.into_iter().enumerate() {
            self.beats.push_back((i == 0, i == last, header, chunk));
        }
    }

    /// What goes into the RAMs must be asked for, and right.
    fn stored(&mut self) -> Result<(), Failure> {
        let enable = self.block.word("ram_we_o");
        if enable == 0 {
            return Ok(());
        }
        let client = self.block.word("ram_dst_o") as usize;
        let (word, increment) = (
            self.block.word("ram_waddr_o"),
            self.block.word("ram_winc_o"),
        );
        let data = self.block.get("ram_wdata_o").bytes();
        for lane in (0..self.lanes).filter(|lane| enable >> lane & 1 != 0) {
            let address = ((word + (increment >> lane & 1)) * self.lanes + lane) & 0xffff;
            let (got, wanted) = (data[lane as usize], self.missing.remove(&(client, address)));
            ensure!(
                wanted == Some(got),
                "RAM {client}: byte {address:#x} becomes {got:#x}, missing was {wanted:x?}"
            );
        }
        Ok(())
    }

    fn finished(&mut self, client: usize, port: &str) -> Result<(), Failure> {
        let fields = layout("dma_rd_done_t");
        let done = self.block.get(port);
        if fields.get(&done, "valid") == 0 {
            return Ok(());
        }
        self.done += 1;
        let (cookie, err) = (fields.get(&done, "cookie"), fields.get(&done, "err") != 0);
        let Some(request) = self.open[client].pop_front() else {
            return Err(Failure::Contract(format!("done {cookie} for nothing")));
        };
        ensure!(
            cookie == request.cookie,
            "done {cookie} instead of {request:x?}"
        );
        self.reads
            .retain(|read| !(read.lost && read.client == client && read.cookie == cookie));
        if !self.halted {
            ensure!(err == request.failed, "err is {err} for {request:x?}");
        }
        let left = (0..request.len)
            .filter(|i| {
                self.missing
                    .remove(&(client, (request.ptr + i) & 0xffff))
                    .is_some()
            })
            .count();
        ensure!(
            err || left == 0,
            "{left} bytes of {request:x?} were not written"
        );
        Ok(())
    }

    fn drain(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        self.faults.surplus = 0;
        for _ in 0..60 * TIMEOUT {
            self.cycle(0, 90, 90, rng)?;
            let empty = self.open.iter().all(VecDeque::is_empty)
                && self.offered.iter().all(Option::is_none)
                && self.beats.is_empty();
            if empty && self.block.is("idle_o") {
                for _ in 0..4 {
                    self.cycle(0, 90, 90, rng)?;
                }
                ensure!(
                    self.halted || self.seen == self.expected,
                    "{EVENTS:?}: {:?} seen, {:?} expected",
                    self.seen,
                    self.expected
                );
                return Ok(());
            }
        }
        Err(Failure::Contract(format!(
            "{:?} requests are open, {:x?} on the link",
            self.open.iter().map(VecDeque::len).collect::<Vec<_>>(),
            self.reads
        )))
    }

    fn random(&mut self, cycles: u64, rng: &mut Rng) -> Result<(), Failure> {
        let (mut offer, mut ready, mut complete) = (50, 50, 50);
        for cycle in 0..cycles {
            if cycle % 256 == 0 {
                offer = rng.pick(&[0, 10, 100]);
                ready = rng.pick(&[10, 50, 100]);
                complete = rng.pick(&[0, 30, 90, 100]);
            }
            self.cycle(offer, ready, complete, rng)?;
        }
        Ok(())
    }
}

#[test]
fn split_and_reordered_completions_arrive_whole() {
    for_seeds(8, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, Faults::default(), seed, rng)?;
            bench.random(6000, rng)?;
            bench.drain(rng)?;
            ensure!(bench.done > 5, "only {} requests", bench.done);
        }
        Ok(())
    });
}

#[test]
fn failed_and_poisoned_completions_fail_their_request_only() {
    for_seeds(8, |seed, rng| {
        for width in [64, 512] {
            let faults = Faults {
                unsupported: 2,
                aborted: 2,
                poisoned: 3,
                ..Faults::default()
            };
            let mut bench = Bench::new(width, faults, seed, rng)?;
            bench.random(6000, rng)?;
            bench.drain(rng)?;
        }
        Ok(())
    });
}

#[test]
fn surplus_completions_are_counted_and_write_nothing() {
    for_seeds(8, |seed, rng| {
        for width in [64, 512] {
            let faults = Faults {
                surplus: 15,
                ..Faults::default()
            };
            let mut bench = Bench::new(width, faults, seed, rng)?;
            bench.random(6000, rng)?;
            bench.drain(rng)?;
        }
        Ok(())
    });
}

#[test]
fn lost_completions_end_by_time() {
    for_seeds(3, |seed, rng| {
        for width in [64, 512] {
            let faults = Faults {
                lost: 3,
                ..Faults::default()
            };
            let mut bench = Bench::new(width, faults, seed, rng)?;
            // Others are answered at once, so that only those that are lost run out of time.
            for _ in 0..4000 {
                bench.cycle(2, 100, 100, rng)?;
            }
            bench.drain(rng)?;
        }
        Ok(())
    });
}

#[test]
fn halt_issues_no_more_and_finishes_all() {
    for_seeds(10, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, Faults::default(), seed, rng)?;
            let cycles = rng.below(1500);
            bench.random(cycles, rng)?;
            bench.halted = true;
            for _ in 0..300 {
                bench.cycle(50, 50, 50, rng)?;
            }
            bench.drain(rng)?;
            let more = bench.asked_after_halt;
            ensure!(more <= 2, "{more} reads after the halt");
            ensure!(bench.reads.is_empty(), "{:x?} was cut off", bench.reads);
        }
        Ok(())
    });
}
