//! A walker of descriptor chains, as the data path sees one: buffers of segments by queue.

use std::collections::{HashMap, VecDeque};

use crate::{Block, Failure, Rng, ensure, layout};

/// A buffer that the driver posted.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Head descriptor.
    pub id: u64,
    /// Address and length of each segment.
    pub segments: Vec<(u64, u64)>,
    /// The chain is broken behind these segments.
    pub broken: bool,
}

impl Buffer {
    /// Bytes in all.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|(_, len)| len).sum()
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of each byte.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments
            .iter()
            .flat_map(|(addr, len)| *addr..addr + len)
    }
}

/// Serves the walker ports `buf_*` and `seg_*` of a block.
#[derive(Default)]
pub struct Walker {
    /// Buffers by queue that were not committed.
    pub posted: HashMap<u64, VecDeque<Buffer>>,
    /// Buffers taken from the queue of the last request since the last commit or rewind.
    pub taken: usize,
    /// The queue of the last request.
    pub queue: u64,
    /// Queue and buffers of each commit, until the test takes them.
    pub committed: VecDeque<(u64, Vec<Buffer>)>,
    answer: VecDeque<(bool, bool, bool, u64, u64, u64)>,
    wait: u64,
}

impl Walker {
    /// Whether a queue has a buffer.
    pub fn has(&self, q: u64) -> bool {
        self.posted
            .get(&q)
            .is_some_and(|buffers| !buffers.is_empty())
    }

    /// Drives the inputs of this cycle.
    pub fn drive(&mut self, block: &mut Block, rng: &mut Rng) {
        self.wait = self.wait.saturating_sub(1);
        let offered = block.is("seg_valid_i");
        let segment = self.answer.front().filter(|_| offered || self.wait == 0);
        block.set("seg_valid_i", segment.is_some());
        if let Some((none, err, last, id, addr, len)) = segment {
            let fields = [
                ("none", u64::from(*none)),
                ("err", u64::from(*err)),
                ("last", u64::from(*last)),
                ("id", *id),
                ("addr", *addr),
                ("len", *len),
            ];
            block.set("seg_i", layout("vq_seg_t").pack(&fields));
        }
        block.set("buf_req_ready_i", self.answer.is_empty() && rng.chance(70));
    }

    /// Looks at what the block did in this cycle, after it settled.
    pub fn observe(&mut self, block: &Block, rewinds: bool, rng: &mut Rng) -> Result<(), Failure> {
        if block.fires("seg_valid_i", "seg_ready_o") {
            self.answer.pop_front();
            self.wait = rng.pick(&[0, 0, 3]);
        }
        // A commit may come with the next request, and is of what was taken before it.
        if block.is("buf_commit_o") {
            let q = block.word("buf_commit_q_o");
            ensure!(
                q == self.queue && self.taken > 0,
                "commit of queue {q} with nothing in hand"
            );
            let buffers = self.posted.entry(q).or_default();
            self.committed
                .push_back((q, buffers.drain(..self.taken).collect()));
            self.taken = 0;
        }
        if block.fires("buf_req_valid_o", "buf_req_ready_i") {
            let q = block.word("buf_req_q_o");
            ensure!(
                self.taken == 0 || q == self.queue,
                "queue {q} asked for with buffers of queue {} in hand",
                self.queue
            );
            self.queue = q;
            self.wait = rng.pick(&[1, 1, 4, 20]);
            let buffer = self
                .posted
                .get(&q)
                .and_then(|buffers| buffers.get(self.taken));
            match buffer {
                None => self.answer.push_back((true, false, false, 0, 0, 0)),
                Some(buffer) => {
                    let count = buffer.segments.len();
                    for (i, (addr, len)) in buffer.segments.iter().enumerate() {
                        let last = i + 1 == count && !buffer.broken;
                        self.answer
                            .push_back((false, false, last, buffer.id, *addr, *len));
                    }
                    if buffer.broken {
                        self.answer.push_back((false, true, true, 0, 0, 0));
                    }
                    self.taken += 1;
                }
            }
        }
        if rewinds && block.is("buf_rewind_o") {
            let q = block.word("buf_rewind_q_o");
            ensure!(q == self.queue, "rewind of queue {q}, not {}", self.queue);
            self.taken = 0;
        }
        Ok(())
    }
}
