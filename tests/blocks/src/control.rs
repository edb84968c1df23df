//! The surroundings of a virtqueue block: control reads with a latency, and the control RAM.

use std::collections::{HashMap, VecDeque};

use crate::{Bits, Block, Failure, HostMemory, Rng, ensure, layout};

/// A control read under way, as the block asked for it.
#[derive(Clone, Copy, Debug)]
pub struct ControlRead {
    /// Queue.
    pub q: u64,
    /// Area of the queue: 0 descriptors, 1 driver, 3 absolute.
    pub area: u64,
    /// Byte offset in the area.
    pub offset: u64,
    /// Address in host memory.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    ptr: u64,
    cookie: u64,
    due: u64,
    err: bool,
}

/// Answers the control reads of one block from host memory, in the order of issue, and holds the
/// control RAM into which they go. Drives the ports `rd_*`, `done_i` and `ram_*`.
pub struct ControlHost {
    /// What the block reads.
    pub memory: HostMemory,
    /// Address of each queue's area, by queue and area.
    pub areas: HashMap<(u64, u64), u64>,
    /// Cycles from request to completion: at least and at most.
    pub latency: (u64, u64),
    /// Hundredths of the cycles in which the block may read.
    pub ready: u64,
    /// Hundredths of the reads that fail.
    pub errors: u64,
    ram: Vec<u8>,
    queue: VecDeque<ControlRead>,
    granted: Option<u64>,
}

/// What happened at the ports in a cycle.
#[derive(Default)]
pub struct ControlEvents {
    /// A read was accepted.
    pub accepted: Option<ControlRead>,
    /// A read ended; whether it failed.
    pub done: Option<(ControlRead, bool)>,
}

impl Default for ControlHost {
    fn default() -> Self {
        Self {
            memory: HostMemory::default(),
            areas: HashMap::new(),
            latency: (10, 40),
            ready: 70,
            errors: 0,
            ram: vec![0xa5; 4096],
            queue: VecDeque::new(),
            granted: None,
        }
    }
}

impl ControlHost {
    /// Whether no read is under way.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Drives the inputs of this cycle, before the block settles. What is read is read now.
    pub fn drive(&mut self, block: &mut Block, rng: &mut Rng) -> ControlEvents {
        let mut events = ControlEvents::default();
        let due = self
            .queue
            .front()
            .is_some_and(|read| read.due <= block.cycle());
        let done = due.then(|| self.queue.pop_front()).flatten();
        let fields = match done {
            None => Bits::ZERO,
            Some(read) => {
                if !read.err {
                    let to = (read.ptr + read.address % 4) as usize;
                    for i in 0..read.len {
                        let byte = self.memory.byte(read.address.wrapping_add(i));
                        let ram = self.ram.len();
                        self.ram[(to + i as usize) % ram] = byte.unwrap_or(0);
                    }
                }
                events.done = Some((read, read.err));
                layout("dma_rd_done_t").pack(&[
                    ("valid", 1),
                    ("err", u64::from(read.err)),
                    ("cookie", read.cookie),
                ])
            }
        };
        block.set("done_i", fields);
        block.set("rd_ready_i", rng.chance(self.ready));
        block.set("ram_valid_i", self.granted.is_some());
        if let Some(word) = self.granted.take() {
            let at = (word * 8) as usize;
            block.set("ram_data_i", Bits::from_bytes(&self.ram[at..at + 8]));
        }
        block.set("ram_gnt_i", false);
        events
    }

    /// Grants the RAM and takes a read, after the block settled; it must settle again.
    pub fn answer(
        &mut self,
        block: &mut Block,
        rng: &mut Rng,
        events: &mut ControlEvents,
    ) -> Result<(), Failure> {
        if block.is("ram_req_o") && rng.chance(self.ready) {
            block.set("ram_gnt_i", true);
            self.granted = Some(block.word("ram_addr_o"));
            block.settle()?;
        }
        if block.fires("rd_valid_o", "rd_ready_i") {
            let (fields, read) = (layout("vq_rd_t"), block.get("rd_o"));
            let (area, q) = (fields.get(&read, "area"), fields.get(&read, "q"));
            let base = match area {
                3 => fields.get(&read, "base"),
                _ => match self.areas.get(&(q, area)) {
                    Some(base) => *base,
                    None => {
                        return Err(Failure::Contract(format!(
                            "a read of area {area} of queue {q}"
                        )));
                    }
                },
            };
            let offset = fields.get(&read, "offset");
            let address = base.wrapping_add(offset);
            let len = fields.get(&read, "len");
            let ptr = fields.get(&read, "ptr");
            ensure!((1..=256).contains(&len), "a read of {len} bytes");
            ensure!(ptr + len <= 4096, "a read to {ptr:#x}, {len} bytes");
            let cookie = (address >> 1 & 1) << 7
                | fields.get(&read, "client") << 4
                | fields.get(&read, "tag");
            let mut due = block.cycle() + rng.range(self.latency.0, self.latency.1);
            if let Some(last) = self.queue.back() {
                due = due.max(last.due + 1);
            }
            let read = ControlRead {
                q,
                area,
                offset,
                address,
                len,
                ptr,
                cookie,
                due,
                err: rng.chance(self.errors),
            };
            self.queue.push_back(read);
            events.accepted = Some(read);
        }
        Ok(())
    }
}

/// Clears the state of all queues with `fn_rst_i` up, as the reset of the function does.
pub fn clear_queues(block: &mut Block, queues: u64) -> Result<(), Failure> {
    block.set("fn_rst_i", true);
    for q in 0..queues {
        block.set(
            "clear_i",
            layout("vq_clear_t").pack(&[("valid", 1), ("q", q)]),
        );
        block.tick()?;
    }
    block.set("clear_i", false);
    block.set("fn_rst_i", false);
    block.tick()
}

/// Tells the block one queue's size, vector and that it is enabled.
pub fn configure(block: &mut Block, q: u64, size: u64, vector: u64) -> Result<(), Failure> {
    let all = [
        ("we_ring", 1),
        ("we_vector", 1),
        ("q", q),
        ("ring", u64::from(size.ilog2())),
        ("vector", vector & 0xff),
    ];
    block.set("cfg_i", layout("vq_cfg_t").pack(&all));
    block.tick()?;
    block.set("cfg_i", Bits::ZERO);
    block.tick()
}
