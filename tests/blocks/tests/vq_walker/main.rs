//! `vq_walker` against a walk of the descriptor table in Rust (virtio 1.2, "The Virtqueue
//! Descriptor Table" and "Indirect Descriptors").

mod broken;

use std::collections::VecDeque;

use ferronic_block_tests::{
    Bits, Block, ControlHost, Failure, Rng, clear_queues, configure, ensure, for_seeds, layout,
};

const QUEUES: u64 = 8;
const DEPTH: u64 = 16;
const NEXT: u64 = 1;
const WRITE: u64 = 2;
const INDIRECT: u64 = 4;
/// Longer buffers are told as this long (`vq_desc_t`): no frame is longer.
const LEN_MAX: u64 = 0x1_ffff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    Data {
        id: u64,
        addr: u64,
        len: u64,
        last: bool,
    },
    None {
        off: bool,
    },
    Error,
}

#[derive(Clone, Copy, Debug, Default)]
struct Descriptor {
    addr: u64,
    len: u64,
    flags: u64,
    next: u64,
}

impl Descriptor {
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.addr.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes()[..4]);
        bytes[12..14].copy_from_slice(&self.flags.to_le_bytes()[..2]);
        bytes[14..].copy_from_slice(&self.next.to_le_bytes()[..2]);
        bytes
    }
}

/// One receive queue as its driver sees it.
struct Queue {
    table: u64,
    size: u64,
    free: Vec<u64>,
    /// Posted heads that were not committed, with their descriptors; and how many were ever.
    heads: VecDeque<(u64, Vec<u64>)>,
    posted: u64,
    committed: u64,
    /// Heads taken since the last commit.
    taken: usize,
}

struct Bench {
    block: Block,
    host: ControlHost,
    queues: Vec<Queue>,
    indirect: bool,
    next_table: u64,
    /// Reports of room that are due.
    credits: VecDeque<u64>,
    storing: Option<u64>,
    credit_rate: u64,
}

impl Bench {
    fn new(seed: u64, indirect: bool, rng: &mut Rng) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new("vq_walker", seed)?,
            host: ControlHost::default(),
            queues: Vec::new(),
            indirect,
            next_table: 0x77_0000_0000,
            credits: VecDeque::new(),
            storing: None,
            credit_rate: 100,
        };
        bench.block.set("indirect_i", indirect);
        bench.block.set("run_i", true);
        for q in 0..QUEUES {
            let size = rng.pick(&[4, 8, 64, 256]);
            let table = (q + 1) << 32 | rng.below(256) << 4;
            bench.host.areas.insert((q, 0), table);
            let mut free: Vec<u64> = (0..size).rev().collect();
            if rng.chance(30) {
                for i in (1..free.len()).rev() {
                    free.swap(i, rng.below(i as u64 + 1) as usize);
                }
            }
            bench.queues.push(Queue {
                table,
                size,
                free,
                heads: VecDeque::new(),
                posted: 0,
                committed: 0,
                taken: 0,
            });
            configure(&mut bench.block, q, size, 0)?;
        }
        clear_queues(&mut bench.block, QUEUES)?;
        Ok(bench)
    }

    fn put(&mut self, address: u64, descriptor: Descriptor) {
        self.host.memory.store(address, &descriptor.bytes());
    }

    fn descriptor(&self, address: u64) -> Descriptor {
        Descriptor {
            addr: self.host.memory.number(address, 8),
            len: self.host.memory.number(address + 8, 4),
            flags: self.host.memory.number(address + 12, 2),
            next: self.host.memory.number(address + 14, 2),
        }
    }

    /// Writes a good chain of `count` buffers, the last `table` of them in an indirect table, into
    /// descriptors of its own. The head's number and the descriptors used.
    fn chain(&mut self, q: u64, count: u64, table: u64, rng: &mut Rng) -> (u64, Vec<u64>) {
        let direct = (count - table) + u64::from(table > 0);
        let queue = &mut self.queues[q as usize];
        let from = queue.free.len() - direct as usize;
        let mut numbers = queue.free.split_off(from);
        numbers.reverse();
        let base = queue.table;
        let buffer = |rng: &mut Rng| Descriptor {
            addr: rng.next_u64() >> 8,
            len: rng.range(1, 0xffff_ffff),
            flags: WRITE,
            next: rng.below(1 << 16), // means nothing without the flag
        };
        for (i, number) in numbers.iter().enumerate() {
            let mut descriptor = buffer(rng);
            if let Some(next) = numbers.get(i + 1) {
                descriptor.flags |= NEXT;
                descriptor.next = *next;
            } else if table > 0 {
                let entries = table + rng.below(3).min(self.queues[q as usize].size - table);
                descriptor.addr = self.next_table;
                descriptor.len = entries * 16;
                // The direction of the descriptor that refers to a table means nothing.
                descriptor.flags = INDIRECT | rng.pick(&[0, WRITE]);
                let at = self.next_table;
                self.next_table += 0x10000 + rng.below(256) * 16;
                // In order, or backwards from the last.
                let reverse = entries > 1 && rng.chance(30);
                for k in 0..table {
                    let place = |k: u64| if reverse && k > 0 { entries - k } else { k };
                    let mut entry = buffer(rng);
                    if k + 1 < table {
                        entry.flags |= NEXT;
                        entry.next = place(k + 1);
                    }
                    self.put(at + 16 * place(k), entry);
                }
            }
            self.put(base + 16 * number, descriptor);
        }
        (numbers[0], numbers)
    }

    /// The segments of a chain, as the specification has them; ends with `last` or an error.
    fn walk(&self, q: u64, head: u64) -> Vec<Segment> {
        let size = self.queues[q as usize].size;
        let (mut base, mut limit, mut nested) = (self.queues[q as usize].table, size, false);
        let (mut number, mut segments) = (head, Vec::new());
        loop {
            let descriptor = self.descriptor(base + 16 * number);
            let Descriptor {
                addr,
                len,
                flags,
                next,
            } = descriptor;
            let more = flags & NEXT != 0;
            if flags & INDIRECT != 0 {
                if nested || more || !self.indirect || len == 0 || len % 16 != 0 || len / 16 > size
                {
                    segments.push(Segment::Error);
                    return segments;
                }
                (base, limit, nested, number) = (addr, len / 16, true, 0);
                continue;
            }
            if len == 0 || flags & WRITE == 0 || segments.len() as u64 == size {
                segments.push(Segment::Error);
                return segments;
            }
            segments.push(Segment::Data {
                id: head,
                addr,
                len: len.min(LEN_MAX),
                last: !more,
            });
            if !more {
                return segments;
            }
            if next >= limit {
                segments.push(Segment::Error);
                return segments;
            }
            number = next;
        }
    }

    /// Posts a head: it comes with its descriptor, as `vq_desc_load` read it.
    fn post(&mut self, q: u64, head: u64, numbers: Vec<u64>) {
        let descriptor = self.descriptor(self.queues[q as usize].table + 16 * head);
        let kept = [
            ("indirect", u64::from(descriptor.flags & INDIRECT != 0)),
            ("write", u64::from(descriptor.flags & WRITE != 0)),
            ("next_valid", u64::from(descriptor.flags & NEXT != 0)),
            (
                "next",
                if descriptor.next < 2048 {
                    descriptor.next
                } else {
                    0xfff
                },
            ),
            ("len", descriptor.len.min(LEN_MAX)),
            ("addr", descriptor.addr),
        ];
        let mut value = layout("vq_desc_t").pack(&kept);
        value.set(layout("vq_desc_t").width, 11, head);
        self.block.set("head_valid_i", true);
        self.block.set("head_q_i", q);
        self.block.set("head_i", value);
        self.storing = Some(q);
        self.queues[q as usize].heads.push_back((head, numbers));
    }

    /// Sometimes posts a random good chain.
    fn maybe_post(&mut self, percent: u64, rng: &mut Rng) {
        if self.storing.is_some() || !rng.chance(percent) {
            return;
        }
        let q = rng.below(QUEUES / 2) * 2;
        let queue = &self.queues[q as usize];
        let free = queue.free.len() as u64;
        if queue.heads.len() as u64 >= DEPTH || free == 0 {
            return;
        }
        let most = rng.pick(&[1, 1, 3, 40]).min(queue.size);
        let count = rng.range(1, most);
        let table = if self.indirect && rng.chance(40) {
            rng.range(1, count)
        } else {
            0
        };
        if (count - table) + u64::from(table > 0) <= free {
            let (head, numbers) = self.chain(q, count, table, rng);
            self.post(q, head, numbers);
        }
    }

    fn cycle(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        let mut events = self.host.drive(&mut self.block, rng);
        self.block
            .set("credit_ready_i", rng.chance(self.credit_rate));
        let look = rng.below(QUEUES / 2) * 2;
        self.block.set("look_q_i", look);
        self.block.set("check_q_i", look);
        self.block.settle()?;
        self.host.answer(&mut self.block, rng, &mut events)?;
        let queue = &self.queues[look as usize];
        let has = queue.posted > queue.committed;
        ensure!(
            self.block.is("check_has_o") == has,
            "queue {look}: {} posted, {} committed, has work is {}",
            queue.posted,
            queue.committed,
            !has
        );
        let commit = self.block.word("look_commit_o");
        ensure!(
            commit == queue.committed & 0xff,
            "queue {look}: {commit} instead of {} committed",
            queue.committed
        );
        let work = self
            .block
            .is("work_valid_o")
            .then(|| self.block.word("work_q_o"));
        ensure!(
            work == self.storing,
            "work of {work:?}, not {:?}",
            self.storing
        );
        if self.block.fires("credit_valid_o", "credit_ready_i") {
            let q = self.block.word("credit_q_o");
            ensure!(
                self.credits.pop_front() == Some(q),
                "room of queue {q} is not due"
            );
        }
        self.block.tick()?;
        if let Some(q) = self.storing.take() {
            self.queues[q as usize].posted += 1;
            self.block.set("head_valid_i", false);
        }
        Ok(())
    }

    /// Asks for the next buffer of a queue and returns its segments.
    fn take(&mut self, q: u64, post: u64, rng: &mut Rng) -> Result<Vec<Segment>, Failure> {
        let fields = layout("vq_seg_t");
        let mut segments = Vec::new();
        let mut asked = false;
        for _ in 0..20_000 {
            self.block.set("buf_req_valid_i", !asked);
            self.block.set("buf_req_q_i", q);
            self.block.set("seg_ready_i", rng.chance(70));
            self.maybe_post(post, rng);
            self.block.settle()?;
            let accepted = self.block.fires("buf_req_valid_i", "buf_req_ready_o");
            let segment = self
                .block
                .fires("seg_valid_o", "seg_ready_i")
                .then(|| self.block.get("seg_o"));
            let error = self
                .block
                .is("error_o")
                .then(|| self.block.word("error_q_o"));
            self.cycle(rng)?;
            asked |= accepted;
            if let Some(bits) = segment {
                ensure!(asked, "a segment that nobody asked for");
                let get = |name| fields.get(&bits, name);
                let (segment, end) = if get("none") != 0 {
                    (
                        Segment::None {
                            off: get("off") != 0,
                        },
                        true,
                    )
                } else if get("err") != 0 {
                    (Segment::Error, true)
                } else {
                    let last = get("last") != 0;
                    let (id, addr, len) = (get("id"), get("addr"), get("len"));
                    (
                        Segment::Data {
                            id,
                            addr,
                            len,
                            last,
                        },
                        last,
                    )
                };
                let wanted = (segment == Segment::Error).then_some(q);
                ensure!(
                    error == wanted,
                    "error of {error:?} with {segment:?} of queue {q}"
                );
                segments.push(segment);
                ensure!(segments.len() < 5000, "queue {q}: a buffer without an end");
                if end {
                    self.block.set("seg_ready_i", false);
                    return Ok(segments);
                }
            }
        }
        Err(Failure::Contract(format!(
            "queue {q}: no end after {segments:?}"
        )))
    }

    fn pulse(&mut self, port: &str, rng: &mut Rng) -> Result<(), Failure> {
        self.block.set("buf_req_valid_i", false);
        self.block.set(port, true);
        self.block.settle()?;
        self.cycle(rng)?;
        self.block.set(port, false);
        Ok(())
    }

    fn commit(&mut self, q: u64, rng: &mut Rng) -> Result<(), Failure> {
        let queue = &self.queues[q as usize];
        let now = queue.committed + queue.taken as u64;
        if queue.taken > 0 && (now / 8 != queue.committed / 8 || now + 1 >= queue.posted) {
            self.credits.push_back(q);
        }
        self.pulse("commit_i", rng)?;
        let queue = &mut self.queues[q as usize];
        queue.committed = now;
        for _ in 0..queue.taken {
            if let Some((_, numbers)) = queue.heads.pop_front() {
                queue.free.extend(numbers.iter().rev());
            }
        }
        queue.taken = 0;
        Ok(())
    }

    fn rewind(&mut self, q: u64, rng: &mut Rng) -> Result<(), Failure> {
        self.pulse("rewind_i", rng)?;
        self.queues[q as usize].taken = 0;
        Ok(())
    }
}

#[test]
fn buffers_come_in_order_through_commit_and_rewind() {
    for_seeds(10, |seed, rng| {
        let mut bench = Bench::new(seed, rng.chance(70), rng)?;
        bench.credit_rate = rng.pick(&[30, 100]);
        for _ in 0..150 {
            let q = rng.below(QUEUES / 2) * 2;
            let mut none = false;
            for _ in 0..rng.range(1, 6) {
                // Only what is posted before the request is sure to be seen.
                let posted = bench.queues[q as usize].posted;
                let segments = bench.take(q, 5, rng)?;
                let queue = &bench.queues[q as usize];
                let index = queue.committed + queue.taken as u64;
                if segments == [Segment::None { off: false }] {
                    ensure!(
                        index >= posted,
                        "queue {q}: buffer {index} of {posted} is withheld"
                    );
                    none = true;
                    break;
                }
                let Some((head, _)) = queue.heads.get(queue.taken) else {
                    return Err(Failure::Contract(format!("{segments:x?} out of nothing")));
                };
                let wanted = bench.walk(q, *head);
                ensure!(
                    segments == wanted,
                    "queue {q}: {segments:x?} instead of {wanted:x?}"
                );
                bench.queues[q as usize].taken += 1;
            }
            // After `none` comes a rewind: rx_path and tx_path promise it.
            if !none && rng.chance(60) {
                bench.commit(q, rng)?;
            } else {
                bench.rewind(q, rng)?;
            }
        }
        bench.credit_rate = 100;
        for _ in 0..50 {
            bench.cycle(rng)?;
        }
        ensure!(
            bench.credits.is_empty(),
            "room of {:?} was not reported",
            bench.credits
        );
        Ok(())
    });
}

#[test]
fn many_buffers_taken_before_one_commit() {
    for_seeds(4, |seed, rng| {
        let mut bench = Bench::new(seed, true, rng)?;
        let q = 2;
        for _ in 0..30 {
            while (bench.queues[q as usize].heads.len() as u64) < DEPTH
                && !bench.queues[q as usize].free.is_empty()
            {
                let (head, numbers) = bench.chain(q, 1, 0, rng);
                bench.post(q, head, numbers);
                bench.cycle(rng)?;
            }
            for commit in [false, true] {
                for (head, _) in bench.queues[q as usize].heads.clone() {
                    let segments = bench.take(q, 0, rng)?;
                    ensure!(
                        segments == bench.walk(q, head),
                        "{segments:x?} for head {head}"
                    );
                    bench.queues[q as usize].taken += 1;
                }
                if commit {
                    bench.commit(q, rng)?;
                } else {
                    let none = bench.take(q, 0, rng)?;
                    let empty = [Segment::None { off: false }];
                    ensure!(none == empty, "{none:x?} from an empty queue");
                    bench.rewind(q, rng)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn queue_that_is_not_enabled_or_stopped_is_off() {
    for_seeds(1, |seed, rng| {
        let mut bench = Bench::new(seed, true, rng)?;
        let (head, numbers) = bench.chain(0, 1, 0, rng);
        bench.post(0, head, numbers);
        bench.cycle(rng)?;
        bench.block.set("run_i", false);
        let segments = bench.take(0, 0, rng)?;
        ensure!(
            segments == [Segment::None { off: true }],
            "{segments:x?} while stopped"
        );
        bench.block.set("run_i", true);
        let off = [("we_ring", 1), ("q", 4), ("ring", 0xf)];
        bench.block.set("cfg_i", layout("vq_cfg_t").pack(&off));
        bench.cycle(rng)?;
        bench.block.set("cfg_i", Bits::ZERO);
        let segments = bench.take(4, 0, rng)?;
        ensure!(
            segments == [Segment::None { off: true }],
            "{segments:x?} while disabled"
        );
        Ok(())
    });
}
