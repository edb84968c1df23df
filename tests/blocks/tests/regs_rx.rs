//! `regs_rx` against a model of its registers: what is staged, what is applied, what is refused, and
//! what is written into tables elsewhere.

use std::collections::BTreeMap;

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout};
use ferronic_spec::window as w;

/// Cycles of an access.
const ANSWER: u64 = 4;

struct Bench {
    block: Block,
    settings: BTreeMap<u64, u32>,
    /// What was staged when RSS_APPLY was written.
    used: BTreeMap<u64, u32>,
    bank: u64,
    low: u32,
    window: Vec<(u64, bool, u32)>,
    /// A request to the rest of the window was there in the cycle before.
    waits: bool,
}

fn defaults() -> BTreeMap<u64, u32> {
    [
        (w::RSS_CAPS, 128 | 40 << 16 | 0x3f << 24),
        (w::RSS_TYPES, 0),
        (w::RSS_TABLE_BITS, 0),
        (w::RSS_UNCLASSIFIED, 0),
        (w::RSS_APPLY, 0),
        (w::HASH_REPORT, 0),
        (w::RX_FOLLOW, 1 | 28 << 8),
        (w::RX_FILTER, 1),
        (w::RX_FILTER_CAPS, 16),
    ]
    .into()
}

/// What was written to tables: in the cycle of the answer and no other.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Table {
    Key(u64, u32),
    Entry(u64, u32),
    Address(u64, bool, u64),
    Vlan(u64, u32),
}

impl Bench {
    fn new(seed: u64) -> Result<Self, Failure> {
        Ok(Self {
            block: Block::new("regs_rx", seed)?,
            settings: defaults(),
            used: BTreeMap::new(),
            bank: 0,
            low: 0,
            window: Vec::new(),
            waits: false,
        })
    }

    fn takes(&self, register: u64, value: u32) -> bool {
        match register {
            w::RSS_TYPES | w::RSS_UNCLASSIFIED => value < 64,
            w::RSS_TABLE_BITS => value < 8,
            w::RSS_APPLY => matches!(value, 0 | 1 | 3),
            w::RX_FOLLOW => {
                value & !0x3f01 == 0 && (10..=40).contains(&w::RX_FOLLOW_PERIOD.get(value))
            }
            w::RX_FILTER => value & !0x13f == 0,
            _ => false,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let (steer, filter) = (self.block.get("steer_o"), self.block.get("filter_o"));
        let of = |name| layout("steer_cfg_t").get(&steer, name) as u32;
        let (apply, follow) = (self.settings[&w::RSS_APPLY], self.settings[&w::RX_FOLLOW]);
        let used = |register| self.used.get(&register).copied().unwrap_or(0);
        let hash = apply & 1;
        let want = [
            ("hash", hash),
            ("steer", apply >> 1),
            ("types", if hash == 1 { used(w::RSS_TYPES) } else { 0 }),
            ("mask", (1 << used(w::RSS_TABLE_BITS)) - 1),
            ("unclassified", used(w::RSS_UNCLASSIFIED)),
            ("follow", follow & 1),
            ("period", follow >> 8),
            ("bank", self.bank as u32),
        ];
        for (name, want) in want {
            ensure!(of(name) == want, "{name} is {:#x}, not {want:#x}", of(name));
        }
        let filter = filter.0[0] as u32;
        let modes = self.settings[&w::RX_FILTER];
        ensure!(
            filter == (modes & 0x3f) | (modes >> 8) << 6,
            "filter {filter:#x} for {modes:#x}"
        );
        Ok(())
    }

    fn tables(&self) -> Vec<Table> {
        let (steer, filter) = (
            self.block.get("steer_write_o"),
            self.block.get("filter_write_o"),
        );
        let steer = |name| layout("steer_write_t").get(&steer, name);
        let filter = |name| layout("filter_write_t").get(&filter, name);
        let mut seen = Vec::new();
        if steer("key_we") == 1 {
            seen.push(Table::Key(steer("row"), steer("data") as u32));
        }
        if steer("table_we") == 1 {
            seen.push(Table::Entry(steer("row"), steer("data") as u32));
        }
        if filter("address_we") == 1 {
            let used = filter("used") == 1;
            seen.push(Table::Address(filter("row"), used, filter("data")));
        }
        if filter("vlan_we") == 1 {
            seen.push(Table::Vlan(filter("row"), filter("data") as u32));
        }
        seen
    }

    /// What a write into a table has to become.
    fn table(&mut self, register: u64, value: u32) -> Option<Table> {
        let row = |base: u64, stride: u64, count: u64| {
            (base..base + stride * count)
                .contains(&register)
                .then(|| (register - base) / stride)
        };
        if let Some(row) = row(w::RSS_KEY, w::RSS_KEY_STRIDE, 16) {
            return Some(Table::Key(row, value.swap_bytes()));
        }
        if let Some(row) = row(w::RSS_TABLE, w::RSS_TABLE_STRIDE, 128) {
            return Some(Table::Entry(row, value));
        }
        if let Some(row) = row(w::RX_VLAN, w::RX_VLAN_STRIDE, 128) {
            return Some(Table::Vlan(row, value));
        }
        let row = row(w::RX_ADDRESS_LO, w::RX_ADDRESS_LO_STRIDE, 16)?;
        if register.is_multiple_of(w::RX_ADDRESS_LO_STRIDE) {
            self.low = value;
            return None;
        }
        let address = u64::from(value & 0xffff) << 32 | u64::from(self.low);
        Some(Table::Address(row, value >> 31 == 1, address))
    }

    fn cycle(&mut self, rng: &mut Rng) -> Result<(Option<u32>, Vec<Table>), Failure> {
        self.block.settle()?;
        // The rest of the window answers after a while.
        let request = self.block.get("window_req_o");
        let of = |name| layout("reg_req_t").get(&request, name);
        let answers = of("valid") == 1 && self.waits && rng.chance(40);
        self.waits = of("valid") == 1 && !answers;
        if answers {
            self.window
                .push((of("addr"), of("write") == 1, of("wdata") as u32));
        }
        let answer = layout("reg_rsp_t").pack(&[("ack", answers.into()), ("rdata", 0x5a5a)]);
        self.block.set("window_rsp_i", answer);
        self.block.settle()?;
        let response = self.block.get("rsp_o");
        let of = |name| layout("reg_rsp_t").get(&response, name);
        let answer = (of("ack") == 1).then(|| of("rdata") as u32);
        let tables = self.tables();
        self.block.tick()?;
        Ok((answer, tables))
    }

    fn access(
        &mut self,
        write: bool,
        at: u64,
        be: u64,
        value: u32,
        rng: &mut Rng,
    ) -> Result<(u32, Vec<Table>), Failure> {
        let request = [
            ("valid", 1),
            ("write", write.into()),
            ("addr", 0x8000 + at),
            ("be", be),
            ("wdata", value.into()),
        ];
        self.block.set("req_i", layout("reg_req_t").pack(&request));
        let mine = is_mine(at);
        let mut written = Vec::new();
        for cycle in 0..200 {
            let (answer, tables) = self.cycle(rng)?;
            written.extend(tables);
            if let Some(value) = answer {
                self.block.set("req_i", Bits::ZERO);
                ensure!(
                    !mine || cycle < ANSWER,
                    "{at:#x}: answered after {cycle} cycles"
                );
                return Ok((value, written));
            }
        }
        Err(Failure::Contract(format!("{at:#x}: no answer")))
    }
}

fn is_mine(at: u64) -> bool {
    matches!(at >> 8, 2 | 4 | 5 | 6 | 8 | 9)
}

fn run(seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut bench = Bench::new(seed)?;
    let known: Vec<u64> = defaults().into_keys().collect();
    // It is undefined until it is written.
    bench.access(true, w::RX_ADDRESS_LO, 0xf, 0, rng)?;
    for _ in 0..3000 {
        let at = match rng.below(4) {
            0 | 1 => rng.pick(&known),
            2 => 0x200 + 4 * rng.below(0x200),
            _ => 4 * rng.below(0x2000),
        };
        let value = match rng.below(4) {
            0 => rng.below(4) as u32,
            1 => rng.below(64) as u32,
            2 => rng.below(0x4000) as u32 & 0x3f01,
            _ => rng.next_u64() as u32,
        };
        let before = bench.window.len();
        if rng.chance(1) {
            bench.block.set("fn_rst_i", true);
            bench.cycle(rng)?;
            bench.block.set("fn_rst_i", false);
            bench.settings = defaults();
            bench.used.clear();
        }
        if rng.chance(60) {
            let be = rng.pick(&[0xf, 0xf, 0xf, 0xf, 3, 0]);
            let (_, tables) = bench.access(true, at, be, value, rng)?;
            let mut want = Vec::new();
            if be == 0xf && is_mine(at) {
                want.extend(bench.table(at, value));
                if bench.takes(at, value) {
                    bench.settings.insert(at, value);
                    if at == w::RSS_APPLY {
                        bench.used = bench.settings.clone();
                        bench.bank ^= u64::from(value & 1);
                    }
                }
            }
            ensure!(
                tables == want,
                "{at:#x} be {be:x}: {tables:x?} instead of {want:x?}"
            );
        } else {
            let (got, tables) = bench.access(false, at, 0xf, 0, rng)?;
            let want = if is_mine(at) {
                bench.settings.get(&at).copied().unwrap_or(0)
            } else {
                0x5a5a
            };
            ensure!(got == want, "{at:#x} reads {got:#x}, not {want:#x}");
            ensure!(tables.is_empty(), "a read writes {tables:x?}");
        }
        ensure!(
            (bench.window.len() > before) != is_mine(at),
            "{at:#x} went to the wrong block"
        );
        bench.check()?;
    }
    Ok(())
}

#[test]
fn settings_and_tables_are_as_the_description_says() {
    for_seeds(4, run);
}
