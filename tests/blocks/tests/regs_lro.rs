//! `regs_lro` against a model of its registers: a write that changes what is merged is answered when
//! nothing is held any more, and nothing else waits.

use std::collections::BTreeMap;

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout};
use ferronic_spec::window as w;

const CONTEXTS: u32 = 16;
/// Cycles of an access that waits for nothing.
const ANSWER: u64 = 6;
const CAUSES: u64 = 26;
const SETTINGS: [u64; 5] = [
    w::LRO_PROFILE,
    w::LRO_GAP,
    w::LRO_HOLD,
    w::LRO_MAX_BYTES,
    w::LRO_LOW_WATER,
];

/// What the registers are.
struct Model {
    settings: BTreeMap<u64, u32>,
    counters: BTreeMap<u64, u32>,
}

fn defaults() -> BTreeMap<u64, u32> {
    [
        (w::LRO_PROFILE, 1),
        (w::LRO_GAP, 12_500),
        (w::LRO_HOLD, 50_000),
        (w::LRO_MAX_BYTES, 65_535),
        (w::LRO_LOW_WATER, 0),
    ]
    .into()
}

fn sound(register: u64, value: u32) -> bool {
    match register {
        w::LRO_PROFILE => value <= 2,
        w::LRO_GAP | w::LRO_HOLD => (1..=8_388_607).contains(&value),
        w::LRO_MAX_BYTES => (576..=65_535).contains(&value),
        w::LRO_LOW_WATER => value <= 64,
        _ => false,
    }
}

impl Model {
    fn read(&self, register: u64) -> u32 {
        if register == w::LRO_CAPS {
            return 64 << 16 | CONTEXTS;
        }
        let known = self.settings.get(&register);
        *known.or(self.counters.get(&register)).unwrap_or(&0)
    }
}

struct Bench {
    block: Block,
    model: Model,
    /// Cycles until nothing is held once the flush was seen; `None`: it never ends.
    holds: Option<u64>,
    /// Cycles for which the flush has been asked for, and since nothing is held.
    flushing: u64,
    flushed: bool,
    /// What the rest of the window got.
    window: Vec<(u64, bool, u32)>,
    window_wait: Option<u64>,
    event_rate: u64,
    /// Cycles without an event that are owed, so that the FIFO never fills.
    event_gap: u64,
}

impl Bench {
    fn new(seed: u64) -> Result<Self, Failure> {
        Self::of("regs_lro", seed)
    }

    fn of(name: &str, seed: u64) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new(name, seed)?,
            model: Model {
                settings: defaults(),
                counters: BTreeMap::new(),
            },
            holds: Some(0),
            flushing: 0,
            flushed: false,
            window: Vec::new(),
            window_wait: None,
            event_rate: 0,
            event_gap: 0,
        };
        bench.block.settle()?;
        bench.check_cfg()?;
        Ok(bench)
    }

    fn cfg(&self) -> BTreeMap<u64, u32> {
        let cfg = self.block.get("lro_cfg_o");
        let of = |name| layout("lro_cfg_t").get(&cfg, name) as u32;
        [
            (w::LRO_PROFILE, 2 * of("relaxed") + of("strict")),
            (w::LRO_GAP, of("gap")),
            (w::LRO_HOLD, of("hold")),
            (w::LRO_MAX_BYTES, of("max_bytes")),
            (w::LRO_LOW_WATER, of("low_water")),
        ]
        .into()
    }

    fn check_cfg(&self) -> Result<(), Failure> {
        let cfg = self.cfg();
        ensure!(cfg == self.model.settings, "settings are {cfg:x?}");
        Ok(())
    }

    /// One cycle; what the block answers if it does.
    fn cycle(&mut self, reset: bool, rng: &mut Rng) -> Result<Option<u32>, Failure> {
        self.block.set("fn_rst_i", reset);
        // The rest of the window.
        let answer = self.window_wait == Some(0);
        let rdata = rng.below(1 << 32);
        self.block.set(
            "window_rsp_i",
            layout("reg_rsp_t").pack(&[("ack", answer.into()), ("rdata", rdata)]),
        );
        // What is held: the answer counts from the third cycle of a flush on.
        let done = self.holds.is_some_and(|cycles| self.flushing > cycles);
        let says = if self.flushing >= 2 {
            done
        } else {
            rng.chance(50)
        };
        self.block.set("lro_flushed_i", says);
        self.flushed |= self.flushing >= 2 && done;
        // Events.
        let mut event = Bits::ZERO;
        self.event_gap = self.event_gap.saturating_sub(1);
        // Sixteen fit, and each takes six cycles at most; a bus access takes its share.
        if self.event_gap < 50 && rng.chance(self.event_rate) {
            let (cause, which) = (rng.below(CAUSES), rng.below(7) + 1);
            event = layout("lro_event_t").pack(&[
                ("closed", which & 1),
                ("cause", cause),
                ("opened", which >> 1 & 1),
                ("merged", which >> 2),
            ]);
            for (bit, register) in [
                (1, w::LRO_CLOSED_UNTRUSTED + 4 * cause),
                (2, w::LRO_OPENED),
                (4, w::LRO_MERGED),
            ] {
                if which & bit != 0 {
                    *self.model.counters.entry(register).or_default() += 1;
                }
            }
            self.event_gap += 10;
        }
        self.block.set("lro_event_i", event);
        self.block.settle()?;

        let response = self.block.get("rsp_o");
        let response = layout("reg_rsp_t").get(&response, "ack").eq(&1).then(|| {
            let value = layout("reg_rsp_t").get(&response, "rdata");
            ensure!(!answer || value == rdata, "the window's word is {value:x}");
            Ok(value as u32)
        });
        let request = self.block.get("window_req_o");
        let of = |name| layout("reg_req_t").get(&request, name);
        if answer {
            self.window_wait = None;
        } else if of("valid") == 1 && self.window_wait.is_none() {
            let offset = of("addr") & 0x7fff;
            self.window
                .push((offset, of("write") == 1, of("wdata") as u32));
            self.window_wait = Some(rng.below(6));
            if of("write") == 1 && offset == w::PAIRS_IN_USE {
                ensure!(
                    self.flushed,
                    "the pairs are changed while something is held"
                );
            }
        } else {
            self.window_wait = self.window_wait.map(|wait| wait - 1);
        }

        let before = self.cfg();
        let flush = self.block.is("lro_flush_o");
        self.flushing = if flush { self.flushing + 1 } else { 0 };
        self.block.tick()?;
        self.block.settle()?;
        if reset {
            self.model.settings = defaults();
            self.check_cfg()?;
        } else if self.cfg() != before {
            ensure!(flush && self.flushed, "a setting changes while one is held");
            ensure!(
                !self.block.is("lro_flush_o"),
                "something may be held by the old setting still"
            );
        }
        response.transpose()
    }

    fn cycles(&mut self, count: u64, rng: &mut Rng) -> Result<(), Failure> {
        for _ in 0..count {
            let response = self.cycle(false, rng)?;
            ensure!(response.is_none(), "an answer to nothing");
        }
        Ok(())
    }

    /// One access, with a reset after some cycles if asked for; the cycles that it took.
    fn access(
        &mut self,
        address: u64,
        write: Option<u32>,
        be: u64,
        reset: Option<u64>,
        rng: &mut Rng,
    ) -> Result<(u32, u64), Failure> {
        self.flushed = false;
        let request = layout("reg_req_t").pack(&[
            ("valid", 1),
            ("write", write.is_some().into()),
            ("addr", 0x8000 + address),
            ("be", be),
            ("wdata", write.unwrap_or(0).into()),
        ]);
        for cycle in 1..5_000 {
            self.block.set("req_i", request);
            let response = self.cycle(reset == Some(cycle), rng)?;
            if let Some(value) = response {
                self.block.set("req_i", Bits::ZERO);
                return Ok((value, cycle));
            }
        }
        Err(Failure::Contract(format!("no answer at {address:#x}")))
    }

    /// A read, of a moment at which no event waits.
    fn read(&mut self, register: u64, rng: &mut Rng) -> Result<u32, Failure> {
        let rate = std::mem::take(&mut self.event_rate);
        for _ in 0..200 {
            if self.block.is("idle_o") {
                break;
            }
            self.cycles(1, rng)?;
        }
        let (value, cycles) = self.access(register, None, 15, None, rng)?;
        ensure!(
            self.flushing == 0 && cycles <= ANSWER,
            "a read took {cycles} cycles"
        );
        self.event_rate = rate;
        Ok(value)
    }

    fn check_all(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        for register in (0x100..0x200).step_by(4) {
            let value = self.read(register, rng)?;
            let wanted = self.model.read(register);
            ensure!(
                value == wanted,
                "{register:#x} reads {value:#x}, {wanted:#x} is right"
            );
        }
        ensure!(
            self.window.is_empty(),
            "the rest of the window got {:x?}",
            self.window
        );
        self.check_cfg()
    }
}

/// A value for a register: at its limits, or any.
fn value(rng: &mut Rng) -> u32 {
    let edges = [
        0,
        1,
        2,
        575,
        576,
        1_023,
        1_024,
        65_535,
        65_536,
        8_388_607,
        8_388_608,
        0x0100_0000,
        0x8000_0001,
        u32::MAX,
    ];
    if rng.chance(60) {
        rng.pick(&edges)
    } else {
        rng.below(1 << 32) as u32 >> rng.below(32)
    }
}

#[test]
fn registers_read_defaults_then_what_was_written() {
    for_seeds(20, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        bench.check_all(rng)?;
        for _ in 0..60 {
            let register = rng.pick(&SETTINGS);
            let value = value(rng);
            bench.access(register, Some(value), 15, None, rng)?;
            if sound(register, value) {
                bench.model.settings.insert(register, value);
            }
            bench.check_cfg()?;
        }
        bench.check_all(rng)?;
        bench.cycle(true, rng)?;
        bench.check_all(rng)
    });
}

#[test]
fn card_without_the_relaxed_profile_ignores_it() {
    for_seeds(1, |seed, rng| {
        let mut bench = Bench::of("regs_lro_strict", seed)?;
        for profile in [2, 0, 2, 1] {
            let (_, cycles) = bench.access(w::LRO_PROFILE, Some(profile), 15, None, rng)?;
            if profile == 2 {
                ensure!(
                    cycles <= ANSWER,
                    "a write that changes nothing waited {cycles}"
                );
            } else {
                bench.model.settings.insert(w::LRO_PROFILE, profile);
            }
            bench.check_all(rng)?;
        }
        Ok(())
    });
}

#[test]
fn setting_is_acknowledged_when_nothing_is_held() {
    for_seeds(40, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        bench.event_rate = rng.pick(&[0, 10, 100]);
        for _ in 0..40 {
            bench.holds = Some(rng.pick(&[0, 1, 2, 3, 10, 300]));
            let (register, value) = (rng.pick(&SETTINGS), value(rng));
            let (_, cycles) = bench.access(register, Some(value), 15, None, rng)?;
            if sound(register, value) {
                ensure!(bench.flushed, "{register:#x} is set while one is held");
                bench.model.settings.insert(register, value);
            } else {
                ensure!(
                    cycles <= ANSWER,
                    "a write that changes nothing waited {cycles}"
                );
            }
            bench.check_cfg()?;
            bench.cycles(rng.below(4), rng)?;
            ensure!(!bench.block.is("lro_flush_o"), "the flush does not end");
        }
        bench.check_all(rng)
    });
}

#[test]
fn partial_and_foreign_writes_change_nothing() {
    for_seeds(10, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        bench.holds = None;
        for register in (0x100..0x200).step_by(4) {
            let setting = SETTINGS.contains(&register);
            let be = if setting { rng.below(15) } else { 15 };
            let (_, cycles) = bench.access(register, Some(1_000), be, None, rng)?;
            ensure!(cycles <= ANSWER, "{register:#x} waited {cycles}");
        }
        bench.check_all(rng)
    });
}

#[test]
fn rest_of_the_window_is_passed_on_and_pairs_wait_for_the_flush() {
    for_seeds(20, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        for _ in 0..60 {
            bench.holds = Some(rng.below(40));
            let register = rng.pick(&[w::UUID0, w::SNAPSHOT, w::PAIRS_IN_USE, 0x200, 0x7ffc]);
            let write = rng.chance(50).then(|| value(rng));
            bench.access(register, write, rng.pick(&[1, 15]), None, rng)?;
            let got = std::mem::take(&mut bench.window);
            let wanted = (register, write.is_some(), write.unwrap_or(0));
            ensure!(got == [wanted], "{got:x?} instead of {wanted:x?}");
            let pairs = register == w::PAIRS_IN_USE && write.is_some();
            ensure!(bench.flushed == pairs, "a flush for {wanted:x?}");
            bench.cycles(1 + rng.below(2), rng)?;
            ensure!(!bench.block.is("lro_flush_o"), "the flush does not end");
        }
        bench.check_all(rng)
    });
}

#[test]
fn reset_ends_a_write_that_waits_without_effect() {
    for_seeds(40, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        bench.access(w::LRO_GAP, Some(7), 15, None, rng)?;
        bench.access(w::LRO_PROFILE, Some(0), 15, None, rng)?;
        bench.holds = None;
        let after = 3 + rng.below(20);
        let register = rng.pick(&[w::LRO_HOLD, w::LRO_GAP, w::PAIRS_IN_USE]);
        let (_, cycles) = bench.access(register, Some(3), 15, Some(after), rng)?;
        ensure!(cycles <= after + 2, "answered {cycles} cycles after all");
        bench.check_all(rng)?;
        // And it works as before.
        bench.holds = Some(5);
        bench.access(w::LRO_HOLD, Some(99), 15, None, rng)?;
        bench.model.settings.insert(w::LRO_HOLD, 99);
        bench.check_all(rng)
    });
}

#[test]
fn events_are_counted_by_cause_and_outlive_resets() {
    for_seeds(20, |seed, rng| {
        let mut bench = Bench::new(seed)?;
        bench.event_rate = rng.pick(&[5, 50, 100]);
        for _ in 0..10 {
            bench.cycles(rng.below(300), rng)?;
            // Reads and writes between them lose none.
            bench.access(rng.pick(&SETTINGS), None, 15, None, rng)?;
            bench.access(w::LRO_CAPS, Some(1), 15, None, rng)?;
        }
        bench.cycle(true, rng)?;
        bench.cycles(50, rng)?;
        bench.check_all(rng)
    });
}
