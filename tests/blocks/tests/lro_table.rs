//! `lro_table` with `lro_walk`: what becomes of each frame, and which units close for it, is what the
//! oracle's model says, whatever else closes in between.

use std::collections::{BTreeMap, VecDeque};

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout, nightly};
use ferronic_oracle::card;
use ferronic_oracle::frames::{fold, sum, verdict};
use ferronic_oracle::lro::{Cause, Config, Lro, Unit};
use ferronic_oracle::resegment;
use ferronic_oracle::segment::Segment;
use ferronic_oracle::stream::Traffic;

const PASS: u64 = 0;
const OPEN: u64 = 1;
const APPEND: u64 = 2;

/// What the writer has yet to do for the last frame.
enum Task {
    Close(u64),
    /// Context and bytes of its unit from the IP header on; with a first segment queue and payload.
    Touch(u64, u64, Option<(u64, u64)>),
}

struct Bench {
    block: Block,
    lanes: usize,
    lro: Lro,
    /// Frames to come; beats of the one that is stored; frames that are whole, the last maybe not.
    frames: VecDeque<Vec<u8>>,
    beats: VecDeque<(Bits, bool, bool)>,
    stored: VecDeque<Vec<u8>>,
    /// Frames that were taken and are not decided.
    taken: VecDeque<Vec<u8>>,
    tasks: VecDeque<Task>,
    wait: u64,
    /// Tag of what is open in each context, and bytes from the IP header on.
    open: BTreeMap<u64, (u32, u64)>,
    decided: usize,
    appended: usize,
}

fn tag(frame: &[u8]) -> u32 {
    let said = verdict(frame);
    u32::from(said.addresses) << 16 | u32::from(said.ports)
}

/// Tag of the flow that a unit is of.
fn tag_of(unit: &Unit) -> u32 {
    let frames = resegment(&unit.header, &unit.frame).unwrap_or_default();
    frames.first().map_or(0, |frame| tag(frame))
}

/// What the header parser says of a frame.
fn parsed(frame: &[u8]) -> u64 {
    let half = |at: usize| match frame.get(at..at + 2) {
        Some(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
        None => 0,
    };
    let (mut ip, mut tags) = (14, 0);
    while ip < 22 && [0x8100, 0x88a8].contains(&half(ip - 2)) {
        (ip, tags) = (ip + 4, tags + 1);
    }
    let first = frame.get(ip).copied().unwrap_or(0);
    let found = match (half(ip - 2), first >> 4) {
        (0x0800, 4) => {
            let length = 4 * usize::from(first & 15);
            let header = frame.get(ip..ip + length).filter(|_| length >= 20);
            let right = header.is_some_and(|header| fold(sum(header)) == 0xffff);
            vec![("ip", 1), ("tags", tags), ("sum_ok", right.into())]
        }
        (0x86dd, 6) => vec![("ip", 1), ("tags", tags), ("v6", 1)],
        _ => Vec::new(),
    };
    let said = verdict(frame);
    let fields = [
        ("sum_ok", said.sum_ok.into()),
        ("found", layout("hdr_found_t").pack(&found).0[0]),
        ("addr_hash", said.addresses.into()),
        ("port_hash", said.ports.into()),
    ];
    layout("rx_verdict_t").pack(&fields).0[0]
}

impl Bench {
    fn new(width: usize, seed: u64) -> Result<Self, Failure> {
        let contexts = if width == 64 { 4 } else { 16 };
        let mut block = Block::new(&format!("lro_table_{width}"), seed)?;
        block.set("tso4_i", true);
        block.set("tso6_i", true);
        let settings = [
            ("strict", 1),
            ("gap", 1),
            ("hold", 1),
            ("max_bytes", 65_535),
        ];
        block.set("cfg_i", layout("lro_cfg_t").pack(&settings));
        let mut lro = Lro::new(Config {
            contexts,
            ..card::config()
        });
        lro.post(0, 0, 1 << 30);
        Ok(Self {
            block,
            lanes: width / 8,
            lro,
            frames: VecDeque::new(),
            beats: VecDeque::new(),
            stored: VecDeque::new(),
            taken: VecDeque::new(),
            tasks: VecDeque::new(),
            wait: 0,
            open: BTreeMap::new(),
            decided: 0,
            appended: 0,
        })
    }

    fn cycle(&mut self, ready: u64, closing: u64, rng: &mut Rng) -> Result<(), Failure> {
        let beat = self.store(rng);
        let whole = self.stored.len() > usize::from(!self.beats.is_empty());
        let offered = whole && (self.block.is("frame_valid_i") || rng.chance(60));
        self.block.set("frame_valid_i", offered);
        if let Some(frame) = self.stored.front().filter(|_| offered) {
            let fields = [
                ("ptr", 64),
                ("len", frame.len() as u64),
                ("verdict", parsed(frame)),
            ];
            let bits = layout("rx_frame_t").pack(&fields);
            self.block.set("frame_i", bits);
        }
        let busy = self.write(closing, rng);
        self.block.set("op_ready_i", !busy && rng.chance(ready));
        self.block.settle()?;
        if self.block.fires("op_valid_o", "op_ready_i") {
            self.decide()?;
        }
        let taken = self.block.fires("frame_valid_i", "frame_ready_o");
        self.block.tick()?;
        if beat {
            self.beats.pop_front();
        }
        if taken {
            self.taken.extend(self.stored.pop_front());
        }
        Ok(())
    }

    /// A beat of a frame that is stored.
    fn store(&mut self, rng: &mut Rng) -> bool {
        if self.beats.is_empty()
            && self.block.is("headers_ready_o")
            && self.stored.len() < 20
            && let Some(frame) = self.frames.pop_front()
        {
            let count = frame.len().div_ceil(self.lanes);
            for (i, chunk) in frame.chunks(self.lanes).enumerate() {
                let beat = (Bits::from_bytes(chunk), i == 0, i + 1 == count);
                self.beats.push_back(beat);
            }
            self.stored.push_back(frame);
        }
        let beat = self.beats.front().filter(|_| rng.chance(80)).copied();
        self.block.set("beat_valid_i", beat.is_some());
        if let Some((data, first, last)) = beat {
            self.block.set("beat_data_i", data);
            self.block.set("beat_first_i", first);
            self.block.set("beat_last_i", last);
        }
        beat.is_some()
    }

    /// What the writer tells in this cycle; whether it is busy. Now and then a unit's time is over.
    fn write(&mut self, closing: u64, rng: &mut Rng) -> bool {
        self.block.set("closed_i", false);
        self.block.set("opened_i", false);
        self.block.set("touch_i", false);
        if self.wait > 0 {
            self.wait -= 1;
            return true;
        }
        let over = rng.pick(&[0, 1, 2, 3]) as usize;
        let task = match self.tasks.pop_front() {
            None if rng.chance(closing) => {
                let some = self.open.keys().nth(over).copied();
                if let Some((tag, _)) = some.and_then(|context| self.open.remove(&context)) {
                    self.lro.expire(0, |key| card::tag(key) == tag);
                    self.lro.take();
                }
                some.map(Task::Close)
            }
            task => task,
        };
        match task {
            Some(Task::Close(context)) => {
                self.block.set("closed_i", true);
                self.block.set("closed_ctx_i", context);
                // Not one behind the other.
                self.wait = 1 + rng.below(3);
            }
            Some(Task::Touch(context, total, first)) => {
                self.block.set("touch_i", true);
                self.block.set("touch_ctx_i", context);
                self.block.set("touch_total_i", total);
                if let Some((queue, payload)) = first {
                    self.block.set("opened_i", true);
                    self.block.set("opened_q_i", queue);
                    self.block.set("opened_pay_i", payload);
                }
                self.wait = 1;
            }
            None => return false,
        }
        true
    }

    /// The block decided on a frame; the model does, too.
    fn decide(&mut self) -> Result<(), Failure> {
        let Some(frame) = self.taken.pop_front() else {
            return Err(Failure::Contract("a frame that never came".to_owned()));
        };
        let name = format!("frame {}", self.decided);
        let (op, fields) = (self.block.get("op_o"), layout("lro_op_t"));
        // `segment` is the last field: its bits are the lowest.
        let segment = layout("lro_segment_t");
        let (kind, last) = (fields.get(&op, "kind"), fields.get(&op, "last") != 0);
        let (closes, context) = (self.block.word("op_close_o"), self.block.word("op_ctx_o"));
        let mut gone = Vec::new();
        for context in (0..64).filter(|context| closes >> context & 1 == 1) {
            match self.open.remove(&context) {
                Some((tag, _)) => gone.push(tag),
                None => return Err(Failure::Contract(format!("{name}: {context} is not open"))),
            }
            self.tasks.push_back(Task::Close(context));
        }

        let before = self.lro.counters().clone();
        self.lro.receive(0, 0, &frame);
        let after = self.lro.counters();
        let wanted = if after.opened > before.opened {
            OPEN
        } else if after.merged > before.merged {
            APPEND
        } else {
            PASS
        };
        let mut units = self.lro.take();
        units.retain(|unit| unit.cause.is_some());
        let ends = [Some(Cause::Push), Some(Cause::Smaller)];
        let ended = wanted == APPEND && units.last().is_some_and(|unit| ends.contains(&unit.cause));
        if ended {
            units.pop();
        }
        let mut others: Vec<u32> = units.iter().map(tag_of).collect();
        gone.sort_unstable();
        others.sort_unstable();
        let told = fields.get(&op, "cause") as usize;
        let cause = units.iter().filter_map(|unit| unit.cause).next();
        ensure!(
            kind == wanted
                && gone == others
                && (kind != APPEND || last == ended)
                && cause.is_none_or(|cause| card::counter(cause) == told),
            "{name}: kind {kind}, last {last}, closes {gone:x?} for {told}, instead of {wanted}, \
             {ended}, {others:x?} for {cause:?}: {:02x?}",
            &frame[..frame.len().min(96)]
        );
        let of = |name| segment.get(&op, name);
        match kind {
            OPEN => {
                let (queue, payload, total) = (fields.get(&op, "q"), of("pay"), of("total"));
                self.open.insert(context, (tag(&frame), total));
                let task = Task::Touch(context, total, Some((queue, payload)));
                self.tasks.push_back(task);
            }
            APPEND => {
                let Some((held, total)) = self.open.get_mut(&context) else {
                    return Err(Failure::Contract(format!("{name}: {context} is not open")));
                };
                ensure!(*held == tag(&frame), "{name}: appended to {held:x}");
                *total += of("pay");
                self.tasks.push_back(Task::Touch(context, *total, None));
                self.appended += 1;
                if last {
                    self.open.remove(&context);
                    self.tasks.push_back(Task::Close(context));
                }
            }
            _ => {}
        }
        self.decided += 1;
        Ok(())
    }

    fn run(
        &mut self,
        frames: Vec<Vec<u8>>,
        ready: u64,
        closing: u64,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        let count = self.decided + frames.len();
        self.frames.extend(frames);
        let mut cycles = 0;
        while self.decided < count {
            self.cycle(ready, closing, rng)?;
            cycles += 1;
            ensure!(cycles < 2_000_000, "{} of {count} decided", self.decided);
        }
        Ok(())
    }
}

fn random(width: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut traffic = Traffic::new(seed, rng.pick(&[1, 3, 8, 20, 70]), 1, 1);
    let mut frames: Vec<_> = (0..500).map(|_| traffic.arrival().frame).collect();
    frames.retain(|frame| (14..=9216).contains(&frame.len()));
    let (ready, closing) = (rng.pick(&[3, 30, 100]), rng.pick(&[0, 0, 1, 5]));
    Bench::new(width, seed)?.run(frames, ready, closing, rng)
}

#[test]
fn frames_are_dealt_with_as_the_model_does() {
    let seeds = if nightly() { 400 } else { 20 };
    for_seeds(seeds, |seed, rng| random(64, seed, rng));
    for_seeds(seeds, |seed, rng| random(512, seed, rng));
}

/// A flow with one VLAN tag whose MAC addresses look like those and the first tag of another, if
/// bytes are compared four further on.
#[test]
fn numbers_of_vlan_tags_count_whatever_the_addresses_are() {
    for_seeds(1, |seed, rng| {
        for (first, width) in [(Segment::v4(0, 100), 64), (Segment::v6(0, 100), 512)] {
            let mut two = first;
            two.tags = vec![[0x88, 0xa8, 0, 7], [0x81, 0, 0, 10]];
            let mut one = two.next(100);
            one.tags.remove(0);
            one.macs[..8].copy_from_slice(&two.macs[4..]);
            one.macs[8..].copy_from_slice(&two.tags[0]);
            let more = one.next(100);
            let again = Segment {
                macs: two.macs,
                tags: two.tags.clone(),
                ..more.next(100)
            };
            let frames = [two, one, more, again].map(|segment| segment.bytes());
            let mut bench = Bench::new(width, seed)?;
            bench.run(frames.to_vec(), 100, 0, rng)?;
            ensure!(bench.appended == 1, "{} appended", bench.appended);
        }
        Ok(())
    });
}
