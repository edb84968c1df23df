//! Wire, walker, write engine and used ring around the block.

use std::collections::{HashMap, HashSet, VecDeque};

use ferronic_block_tests::{Bits, Block, Buffer, Failure, Rng, Walker, ensure, layout};
use ferronic_oracle::card::CAUSES;
use ferronic_oracle::lro::{Config, Lro, Profile, Unit};
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{Header, order, resegment};

pub use crate::settings::{Events, Posting, Rates, Settings};

/// Nothing was written there.
const BLANK: u16 = 0x100;

/// A write command under way: address, length, RAM address, bytes read so far.
struct Write {
    addr: u64,
    len: u64,
    ptr: u64,
    data: Vec<u8>,
    due: u64,
    /// The buffer is no longer the card's, but the write was on its way.
    late: bool,
}

pub struct Bench {
    pub block: Block,
    pub rates: Rates,
    pub posting: Posting,
    pub walker: Walker,
    pub units: Vec<Unit>,
    pub events: Events,
    /// Causes in the order in which they were told.
    pub causes: Vec<usize>,
    /// Drops of any kind.
    pub drops: HashMap<&'static str, u64>,
    lanes: usize,
    /// Frames for the wire, and where the first of them stands.
    wire: VecDeque<Vec<u8>>,
    at: usize,
    writes: VecDeque<Write>,
    reading: bool,
    /// Bytes of buffers that were posted and not published, by the number of the buffer.
    memory: HashMap<u64, Vec<u16>>,
    /// Buffers that the block has taken and not published.
    taken: HashMap<(u64, u64), Buffer>,
    /// Buffers that were published before they were committed: a frame ends in one of several
    /// segments whose rest is read yet.
    early: HashSet<(u64, u64)>,
    /// The function is in reset: nothing that the block says counts.
    reset: bool,
    used: Vec<(u64, u64, u64)>,
    /// Buffers of each queue that were given out, and that came back.
    posted: HashMap<u64, u64>,
    back: HashMap<u64, u64>,
    next_buffer: u64,
    time: u64,
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
    pub fn new(width: usize, seed: u64) -> Result<Self, Failure> {
        Self::of(&format!("rx_path_lro_{width}"), width, seed)
    }

    /// The same around one that can be relaxed.
    pub fn relaxed(width: usize, seed: u64) -> Result<Self, Failure> {
        Self::of(&format!("rx_path_lro_relaxed_{width}"), width, seed)
    }

    /// The same around a block of that name.
    pub fn of(name: &str, width: usize, seed: u64) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new(name, seed)?,
            rates: Rates::FULL,
            posting: Posting::default(),
            walker: Walker::default(),
            units: Vec::new(),
            events: Events::default(),
            causes: Vec::new(),
            drops: HashMap::new(),
            lanes: width / 8,
            wire: VecDeque::new(),
            at: 0,
            writes: VecDeque::new(),
            reading: false,
            memory: HashMap::new(),
            taken: HashMap::new(),
            early: HashSet::new(),
            reset: false,
            used: Vec::new(),
            posted: HashMap::new(),
            back: HashMap::new(),
            next_buffer: 0,
            time: seed << 20,
        };
        for input in [
            "mrg_rxbuf_i",
            "guest_csum_i",
            "guest_tso4_i",
            "guest_tso6_i",
            "driver_ok_i",
            "lossless_i",
            "link_up_i",
        ] {
            bench.block.set(input, true);
        }
        bench.block.set("max_frame_i", 9216);
        let everything = layout("filter_cfg_t").pack(&[("promiscuous", 1)]);
        bench.block.set("filter_i", everything);
        bench.pairs(1);
        bench.set(Settings::LONG);
        Ok(bench)
    }

    /// So many pairs receive.
    pub fn pairs(&mut self, pairs: u64) {
        self.block.set("pairs_in_use_i", pairs);
    }

    pub fn set(&mut self, settings: Settings) {
        let fields = [
            ("strict", u64::from(settings.strict)),
            ("relaxed", u64::from(settings.relaxed)),
            ("gap", settings.gap),
            ("hold", settings.hold),
            ("max_bytes", settings.max_bytes),
            ("low_water", settings.low_water),
        ];
        let bits = layout("lro_cfg_t").pack(&fields);
        self.block.set("lro_cfg_i", bits);
    }

    pub fn send(&mut self, frame: &[u8]) {
        self.wire.push_back(frame.to_vec());
    }

    /// Frames that are not whole in the card.
    pub fn waiting(&self) -> usize {
        self.wire.len()
    }

    /// Forgets what has not begun to be sent.
    pub fn clear_wire(&mut self) {
        self.wire.truncate(usize::from(self.at > 0));
    }

    pub fn time(&self) -> u64 {
        self.time
    }

    fn post(&mut self, q: u64, rng: &mut Rng) {
        let number = self.next_buffer;
        self.next_buffer += 1;
        let base = (number + 1) << 20;
        let mut at = rng.below(64);
        let mut buffer = Buffer {
            id: number & 0x7ff,
            segments: Vec::new(),
            broken: false,
        };
        let count = rng.range(self.posting.segments.0, self.posting.segments.1);
        for i in 0..count {
            let len = match self.posting.first {
                Some(first) if i == 0 && count > 1 => first,
                _ => rng.pick(&self.posting.sizes),
            };
            buffer.segments.push((base + at, len));
            at += len + rng.below(64);
        }
        self.memory.insert(number, vec![BLANK; at as usize]);
        *self.posted.entry(q).or_default() += 1;
        self.walker.posted.entry(q).or_default().push_back(buffer);
    }

    fn post_all(&mut self, rng: &mut Rng) -> bool {
        let mut some = false;
        for pair in 0..self.posting.queues {
            let q = 2 * pair;
            let count = |counts: &HashMap<u64, u64>| counts.get(&q).copied().unwrap_or(0);
            while count(&self.posted) - count(&self.back) < self.posting.buffers as u64
                && count(&self.posted) < self.posting.left
                && rng.chance(self.posting.often)
            {
                self.post(q, rng);
                some = true;
                if self.posting.often < 100 {
                    break;
                }
            }
        }
        some
    }

    /// One cycle.
    pub fn cycle(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        let lanes = self.lanes;
        let some = self.post_all(rng);
        self.block.set("buf_avail_i", some || rng.chance(2));
        let look = self.block.word("buf_look_q_o");
        let at_hand = self.walker.posted.get(&look).map_or(0, VecDeque::len);
        self.block.set("buf_count_i", at_hand.min(128) as u64);
        self.block.set("time_i", self.time & 0x1ff_ffff);
        self.time += 1;
        self.walker.drive(&mut self.block, rng);
        let beat = self
            .wire
            .front()
            .filter(|_| self.block.is("rx_valid_i") || rng.chance(self.rates.wire));
        let mut ends = false;
        self.block.set("rx_valid_i", beat.is_some());
        if let Some(frame) = beat {
            let chunk = &frame[self.at..frame.len().min(self.at + lanes)];
            ends = self.at + chunk.len() == frame.len();
            self.block.set("rx_last_i", ends);
            self.block.set("rx_bytes_i", chunk.len() as u64);
            self.block.set("rx_data_i", Bits::from_bytes(chunk));
        }
        let done = self.writes.front().is_some_and(|write| {
            write.data.len() as u64 >= write.len && write.due <= self.block.cycle()
        });
        if done && let Some(write) = self.writes.pop_front() {
            self.store(&write)?;
        }
        self.block.set("wr_done_i", done);
        let ready = self.writes.len() < 4 && rng.chance(self.rates.commands);
        self.block.set("wr_cmd_ready_i", ready);
        self.block.set("used_ready_i", rng.chance(self.rates.used));
        self.reading = self.read(rng);
        self.block.settle()?;
        self.observe(rng)?;
        let taken = self.block.fires("rx_valid_i", "rx_ready_o");
        self.block.tick()?;
        if self.reading {
            let data = self.block.get("ram_rdata_o").bytes();
            if let Some(write) = self
                .writes
                .iter_mut()
                .find(|write| (write.data.len() as u64) < write.len)
            {
                let skip = match write.data.is_empty() {
                    true => write.ptr as usize % lanes,
                    false => 0,
                };
                write.data.extend_from_slice(&data[skip..lanes]);
            }
        }
        if taken {
            self.at += lanes;
            if ends {
                self.at = 0;
                self.wire.pop_front();
            }
        }
        Ok(())
    }

    fn observe(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        if self.reset {
            self.command(rng)?;
            return Ok(());
        }
        self.walker.observe(&self.block, true, rng)?;
        while let Some((q, buffers)) = self.walker.committed.pop_front() {
            for buffer in buffers {
                if !self.early.remove(&(q, buffer.id)) {
                    self.taken.insert((q, buffer.id), buffer);
                }
            }
        }
        self.command(rng)?;
        let (event, fields) = (self.block.get("lro_event_o"), layout("lro_event_t"));
        if fields.get(&event, "closed") != 0 {
            let cause = fields.get(&event, "cause") as usize;
            ensure!(cause < CAUSES, "cause {cause}");
            self.events.closed[cause] += 1;
            self.causes.push(cause);
        }
        self.events.opened += fields.get(&event, "opened");
        self.events.merged += fields.get(&event, "merged");
        for drop in DROPS {
            *self.drops.entry(drop).or_default() += u64::from(self.block.is(drop));
        }
        if self.block.fires("used_valid_o", "used_ready_i") {
            let fields = layout("vq_used_t");
            let used = self.block.get("used_o");
            let get = |name| fields.get(&used, name);
            self.used.push((get("q"), get("id"), get("len")));
            if get("publish") != 0 {
                let used = std::mem::take(&mut self.used);
                self.publish(&used)?;
            }
        }
        Ok(())
    }

    /// A write is asked for.
    fn command(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        if self.block.fires("wr_cmd_valid_o", "wr_cmd_ready_i") {
            let fields = layout("dma_wr_cmd_t");
            let command = self.block.get("wr_cmd_o");
            let (addr, len) = (fields.get(&command, "addr"), fields.get(&command, "len"));
            if !self.reset {
                self.inside(addr, len)?;
            }
            self.writes.push_back(Write {
                addr,
                len,
                ptr: fields.get(&command, "ptr"),
                data: Vec::new(),
                due: self.block.cycle() + rng.below(self.rates.write),
                late: self.reset,
            });
        }
        Ok(())
    }

    /// A write must lie in one segment of a buffer that the walker gave and that is not published.
    fn inside(&self, addr: u64, len: u64) -> Result<(), Failure> {
        let held = self.walker.posted.get(&self.walker.queue);
        let held = held.into_iter().flatten().take(self.walker.taken);
        let mut segments = held
            .chain(self.taken.values())
            .flat_map(|buffer| &buffer.segments);
        ensure!(
            len > 0 && segments.any(|(at, n)| addr >= *at && addr + len <= at + n),
            "{len} bytes to {addr:#x}, which is in no buffer at hand"
        );
        Ok(())
    }

    fn store(&mut self, write: &Write) -> Result<(), Failure> {
        let number = (write.addr >> 20) - 1;
        let at = (write.addr & 0xf_ffff) as usize;
        let Some(memory) = self.memory.get_mut(&number) else {
            if write.late {
                return Ok(());
            }
            return Err(Failure::Contract(format!(
                "{} bytes reach {:#x} behind the publication of the buffer",
                write.len, write.addr
            )));
        };
        let bytes = write.data[..write.len as usize].iter();
        for (place, byte) in memory[at..].iter_mut().zip(bytes) {
            *place = u16::from(*byte);
        }
        Ok(())
    }

    /// Reads the next word of the frame RAM for the oldest write that needs one.
    fn read(&mut self, rng: &mut Rng) -> bool {
        let lanes = self.lanes as u64;
        let write = self
            .writes
            .iter()
            .find(|write| (write.data.len() as u64) < write.len)
            .filter(|_| rng.chance(self.rates.reads));
        self.block.set("ram_re_i", write.is_some());
        self.block.set("ram_rinc_i", Bits::ZERO);
        if let Some(write) = write {
            let words = 65536 / lanes;
            let byte = write.ptr + write.data.len() as u64;
            self.block.set("ram_raddr_i", byte / lanes % words);
        }
        write.is_some()
    }

    /// A unit was published: it is in the buffers of its used entries.
    fn publish(&mut self, used: &[(u64, u64, u64)]) -> Result<(), Failure> {
        let name = format!("unit {}", self.units.len());
        let q = used[0].0;
        *self.back.entry(q).or_default() += used.len() as u64;
        let mut bytes = Vec::new();
        for (i, (of, id, len)) in used.iter().enumerate() {
            ensure!(*of == q, "{name}: {used:?} is of several queues");
            let buffer = match self.taken.remove(&(q, *id)) {
                Some(buffer) => buffer,
                None => self.uncommitted(q, *id).ok_or_else(|| {
                    Failure::Contract(format!("{name}: buffer {id} of queue {q} is not at hand"))
                })?,
            };
            let (last, room) = (i + 1 == used.len(), buffer.len());
            ensure!(
                *len > 0 && *len <= room && (last || *len == room),
                "{name}: {len} bytes in a buffer of {room}, {i} of {}",
                used.len()
            );
            let number = (buffer.segments[0].0 >> 20) - 1;
            let memory = self.memory.remove(&number).unwrap_or_default();
            for address in buffer.addresses().take(*len as usize) {
                let byte = memory[(address & 0xf_ffff) as usize];
                ensure!(
                    byte != BLANK,
                    "{name}: byte {} of it was not written",
                    bytes.len()
                );
                bytes.push(byte as u8);
            }
        }
        let header = Header::read(&bytes);
        let Some(header) = header.filter(|h| usize::from(h.num_buffers) == used.len()) else {
            return Err(Failure::Contract(format!(
                "{name}: {header:?} in {} buffers",
                used.len()
            )));
        };
        let frame = bytes.split_off(Header::LEN);
        let segments = match resegment(&header, &frame) {
            Ok(frames) => frames.len(),
            Err(error) => {
                return Err(Failure::Contract(format!(
                    "{name}: {error}: {header:?} {:02x?}",
                    &frame[..frame.len().min(96)]
                )));
            }
        };
        ensure!(
            q.is_multiple_of(2) && q < 2 * self.posting.queues,
            "{name}: queue {q}"
        );
        self.units.push(Unit {
            at: self.time,
            queue: q as u16 / 2,
            header,
            frame,
            segments,
            cause: None,
        });
        Ok(())
    }

    /// A buffer that the walker gave, and that is published first.
    fn uncommitted(&mut self, q: u64, id: u64) -> Option<Buffer> {
        let given = match self.walker.queue == q && !self.early.contains(&(q, id)) {
            true => self.walker.taken,
            false => 0,
        };
        let mut posted = self.walker.posted.get(&q)?.iter().take(given);
        let buffer = posted.find(|buffer| buffer.id == id)?.clone();
        self.early.insert((q, id));
        Some(buffer)
    }

    pub fn cycles(&mut self, count: u64, rng: &mut Rng) -> Result<(), Failure> {
        (0..count).try_for_each(|_| self.cycle(rng))
    }

    /// Nothing is under way, though segments may be held.
    pub fn is_idle(&self) -> bool {
        self.wire.is_empty() && self.writes.is_empty() && self.block.is("idle_o")
    }

    /// Until nothing is under way.
    pub fn settle(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        let mut quiet = 0;
        let mut cycles = 0;
        while quiet < 8 {
            self.cycle(rng)?;
            quiet = if self.is_idle() { quiet + 1 } else { 0 };
            cycles += 1;
            ensure!(
                cycles < 3_000_000,
                "{} frames on the wire, {} units, {:?}: it does not end",
                self.wire.len(),
                self.units.len(),
                self.drops
            );
        }
        Ok(())
    }

    /// Asks for all that is held, and waits for it.
    pub fn flush(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        self.block.set("lro_flush_i", true);
        self.block.settle()?;
        let mut cycles = 0;
        while !self.block.is("lro_flushed_o") || cycles == 0 {
            self.cycle(rng)?;
            cycles += 1;
            ensure!(cycles < 300_000, "a flush does not end");
        }
        self.block.set("lro_flush_i", false);
        Ok(())
    }

    /// A queue is reset: its buffers are the driver's again.
    pub fn forget_queue(&mut self, q: u64) {
        let gone: Vec<_> = self
            .taken
            .keys()
            .filter(|key| key.0 == q)
            .copied()
            .collect();
        for key in gone {
            if let Some(buffer) = self.taken.remove(&key) {
                self.memory.remove(&((buffer.segments[0].0 >> 20) - 1));
            }
        }
        for buffer in self.walker.posted.remove(&q).unwrap_or_default() {
            self.memory.remove(&((buffer.segments[0].0 >> 20) - 1));
        }
        self.posted.remove(&q);
        self.back.remove(&q);
    }

    /// Resets the function for some cycles.
    pub fn reset(&mut self, cycles: u64, rng: &mut Rng) -> Result<(), Failure> {
        self.block.set("fn_rst_i", true);
        self.reset = true;
        self.forget();
        let left = std::mem::take(&mut self.posting.left);
        self.cycles(cycles, rng)?;
        self.forget();
        self.block.set("fn_rst_i", false);
        self.reset = false;
        self.posting.left = left;
        Ok(())
    }

    /// The function is reset: all buffers are the driver's again; what is on its way still comes.
    fn forget(&mut self) {
        self.writes.iter_mut().for_each(|write| write.late = true);
        self.walker = Walker::default();
        self.memory.clear();
        self.taken.clear();
        self.early.clear();
        self.used.clear();
        self.posted.clear();
        self.back.clear();
    }

    /// Writes that have not taken effect.
    pub fn writes(&self) -> usize {
        self.writes.len()
    }

    pub fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }

    /// That units and events are the model's.
    pub fn as_model(
        &self,
        config: Config,
        arrivals: &[Arrival],
        posted: usize,
    ) -> Result<(), Failure> {
        let relaxed = config.profile == Profile::Relaxed;
        let mut lro = Lro::new(config);
        for queue in 0..64 {
            lro.post(0, queue, posted);
        }
        for (at, arrival) in (0..).zip(arrivals) {
            lro.receive(at, arrival.queue, &arrival.frame);
        }
        lro.stop(arrivals.len() as u64);
        let mut wanted = lro.take();
        if relaxed {
            wanted = order::as_cut(wanted);
        }
        order::units(&wanted, &self.units, arrivals).map_err(Failure::Contract)?;
        let events = Events::of(lro.counters());
        ensure!(
            self.events == events,
            "the units are right, but told was {:?} instead of {events:?}",
            self.events
        );
        Ok(())
    }

    /// That what was delivered, cut back, is what arrived.
    pub fn undone(&self, arrivals: &[Arrival]) -> Result<(), Failure> {
        let delivered = order::cut(&self.units).map_err(Failure::Contract)?;
        for queue in 0..self.posting.queues as u16 {
            let came: Vec<Arrival> = arrivals
                .iter()
                .filter(|a| a.queue == queue)
                .cloned()
                .collect();
            let went: Vec<_> = delivered
                .iter()
                .filter(|(q, _)| *q == queue)
                .cloned()
                .collect();
            order::same(&came, &went)
                .map_err(|error| Failure::Contract(format!("queue {queue}: {error}")))?;
        }
        Ok(())
    }
}
