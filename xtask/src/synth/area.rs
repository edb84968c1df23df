//! What a netlist for ECP5 is made of, and which block of the core each cell belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{AddAssign, SubAssign};

use serde_json::Value;

/// The cells that a netlist for ECP5 may hold; anything else is a black box.
const KNOWN: [&str; 9] = [
    "LUT4",
    "CCU2C",
    "TRELLIS_DPR16X4",
    "TRELLIS_FF",
    "DP16KD",
    "MULT18X18D",
    "PFUMX",
    "L6MUX21",
    "$scopeinfo",
];

/// Numbers of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    /// Look-up tables of four inputs.
    pub lut4: u64,
    /// Carry cells of two bits.
    pub ccu2c: u64,
    /// Distributed RAMs of 16 words of four bits.
    pub dpr16x4: u64,
    /// Flip-flops.
    pub ff: u64,
    /// Block RAMs of 18 kbit.
    pub ebr: u64,
    /// Multipliers of 18 by 18 bits.
    pub mult: u64,
}

impl Cells {
    /// Counts cells by type as `stat -json` lists them.
    pub fn of_types(types: &BTreeMap<String, u64>) -> Self {
        let mut cells = Self::default();
        for (name, &count) in types {
            cells.count(name, count);
        }
        cells
    }

    fn count(&mut self, kind: &str, count: u64) {
        match kind {
            "LUT4" => self.lut4 += count,
            "CCU2C" => self.ccu2c += count,
            "TRELLIS_DPR16X4" => self.dpr16x4 += count,
            "TRELLIS_FF" => self.ff += count,
            "DP16KD" => self.ebr += count,
            "MULT18X18D" => self.mult += count,
            _ => {}
        }
    }

    /// What the place-and-route tool counts as TRELLIS_COMB: a carry cell takes two and a
    /// distributed RAM six of the places of a look-up table.
    pub fn comb(&self) -> u64 {
        self.lut4 + 2 * self.ccu2c + 6 * self.dpr16x4
    }

    /// The largest difference to `other` in any of the counts, as a share of it.
    pub fn difference(&self, other: &Self) -> f64 {
        [
            (self.comb(), other.comb()),
            (self.lut4, other.lut4),
            (self.ff, other.ff),
            (self.ebr, other.ebr),
            (self.mult, other.mult),
        ]
        .into_iter()
        .map(|(a, b)| a.abs_diff(b) as f64 / b.max(1) as f64)
        .fold(0.0, f64::max)
    }
}

impl AddAssign for Cells {
    fn add_assign(&mut self, other: Self) {
        self.lut4 += other.lut4;
        self.ccu2c += other.ccu2c;
        self.dpr16x4 += other.dpr16x4;
        self.ff += other.ff;
        self.ebr += other.ebr;
        self.mult += other.mult;
    }
}

impl SubAssign for Cells {
    fn sub_assign(&mut self, other: Self) {
        self.lut4 -= other.lut4;
        self.ccu2c -= other.ccu2c;
        self.dpr16x4 -= other.dpr16x4;
        self.ff -= other.ff;
        self.ebr -= other.ebr;
        self.mult -= other.mult;
    }
}

/// Cells by type of each module, from `stat -json`.
pub fn modules(stat: &Value) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    for (name, module) in stat["modules"].as_object().into_iter().flatten() {
        let types = module["num_cells_by_type"].as_object();
        let types = types.into_iter().flatten();
        let types = types.map(|(kind, count)| (kind.clone(), count.as_u64().unwrap_or(0)));
        found.insert(
            name.trim_start_matches('\\').to_owned(),
            types.collect::<BTreeMap<String, u64>>(),
        );
    }
    found
}

/// Types that are neither cells of the device nor modules of the design.
pub fn black_boxes(modules: &BTreeMap<String, BTreeMap<String, u64>>) -> Vec<String> {
    let kinds: BTreeSet<&String> = modules.values().flat_map(BTreeMap::keys).collect();
    kinds
        .into_iter()
        .filter(|kind| !KNOWN.contains(&kind.as_str()) && !modules.contains_key(*kind))
        .cloned()
        .collect()
}

/// Every instance of the design: its path below the core without `u_`, joined by dots, and what
/// module it is of.
#[derive(Debug, Default)]
pub struct Hierarchy {
    modules: BTreeMap<String, String>,
    own: BTreeMap<String, Cells>,
}

impl Hierarchy {
    /// From the modules of a netlist that kept its hierarchy: each instance is a module of its own,
    /// `vq_used$ferronic_core.u_virtio.u_used`.
    pub fn new(modules: &BTreeMap<String, BTreeMap<String, u64>>, top: &str) -> Self {
        let mut all = Self::default();
        for (name, types) in modules {
            let (module, path) = name.split_once('$').unwrap_or((name, top));
            let path = path.strip_prefix(top).unwrap_or(path);
            let path = path.trim_start_matches('.').to_owned();
            all.own.insert(path.clone(), Cells::of_types(types));
            all.modules.insert(path, module.to_owned());
        }
        all
    }

    /// The module of the instance at `path`.
    pub fn module(&self, path: &str) -> Option<&str> {
        self.modules.get(path).map(String::as_str)
    }

    /// The instances directly in that at `path`; generate blocks are none.
    pub fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        self.modules
            .keys()
            .map(String::as_str)
            .filter(move |other| {
                let rest = match path {
                    "" => Some(*other),
                    _ => other
                        .strip_prefix(path)
                        .and_then(|rest| rest.strip_prefix('.')),
                };
                rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('.'))
            })
    }

    /// Cells below each path, each block synthesised by itself.
    pub fn totals(&self) -> BTreeMap<String, Cells> {
        summed(&self.own)
    }

    /// The longest path of an instance that `name` lies in.
    pub fn instance<'a>(&self, name: &'a str) -> &'a str {
        let mut end = name.len();
        loop {
            if self.modules.contains_key(&name[..end]) {
                return &name[..end];
            }
            match name[..end].rfind('.') {
                Some(dot) => end = dot,
                None => return "",
            }
        }
    }
}

/// Adds what each path holds to all paths above it, to the empty one at last.
pub fn summed(own: &BTreeMap<String, Cells>) -> BTreeMap<String, Cells> {
    let mut totals: BTreeMap<String, Cells> = BTreeMap::new();
    for (path, &cells) in own {
        let mut at = path.as_str();
        loop {
            *totals.entry(at.to_owned()).or_default() += cells;
            match at.rfind('.') {
                Some(dot) => at = &at[..dot],
                None if at.is_empty() => break,
                None => at = "",
            }
        }
    }
    totals
}

/// Where the cells of one flat netlist come from.
///
/// Yosys names cells after whatever named thing is near, often in another block. But registers
/// and adders keep their place in the sources, which is a module, and flattening leaves a net its
/// names: that in the block which drives it, `u_a.x_o`, and those in the blocks which read it,
/// `u_b.x_i`. What has neither lies inside an expression; such a cell belongs with the majority of
/// the cells it feeds.
pub struct Owners<'a> {
    hierarchy: &'a Hierarchy,
    names: BTreeMap<u64, &'a str>,
    kinds: BTreeMap<&'a str, &'a str>,
    sources: BTreeMap<&'a str, &'a str>,
    outputs: BTreeMap<&'a str, Vec<u64>>,
    readers: BTreeMap<u64, Vec<&'a str>>,
    paths: BTreeMap<&'a str, &'a str>,
}

impl<'a> Owners<'a> {
    /// From the module of a netlist as `write_json` writes it.
    pub fn new(hierarchy: &'a Hierarchy, module: &'a Value) -> Self {
        let mut owners = Self {
            hierarchy,
            names: BTreeMap::new(),
            kinds: BTreeMap::new(),
            sources: BTreeMap::new(),
            outputs: BTreeMap::new(),
            readers: BTreeMap::new(),
            paths: BTreeMap::new(),
        };
        for (name, net) in module["netnames"].as_object().into_iter().flatten() {
            if made_up(name) {
                continue;
            }
            for bit in bits(&net["bits"]) {
                let best = owners.names.entry(bit).or_insert(name);
                if rank(hierarchy, name) > rank(hierarchy, best) {
                    *best = name;
                }
            }
        }
        for (name, cell) in module["cells"].as_object().into_iter().flatten() {
            let kind = cell["type"].as_str().unwrap_or_default();
            owners.kinds.insert(name, kind);
            let source = cell["attributes"]["src"].as_str().unwrap_or_default();
            if let Some(source) = source.split('|').find(|part| part.starts_with("rtl/")) {
                owners.sources.insert(name, source);
            }
            let mut outputs = Vec::new();
            for (port, connected) in cell["connections"].as_object().into_iter().flatten() {
                if cell["port_directions"][port] == "output" {
                    outputs.extend(bits(connected));
                } else {
                    for bit in bits(connected) {
                        owners.readers.entry(bit).or_default().push(name);
                    }
                }
            }
            owners.outputs.insert(name, outputs);
        }
        owners.find_paths();
        owners
    }

    /// Cells that tell where they come from first; then, from these backwards, the others.
    fn find_paths(&mut self) {
        let mut modules: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
        for (path, module) in &self.hierarchy.modules {
            modules.entry(module).or_default().push(path);
        }
        let mut waiting = Vec::new();
        for &cell in self.kinds.keys() {
            let module = self.sources.get(cell).and_then(|source| {
                let file = source.split(':').next()?.rsplit('/').next()?;
                file.strip_suffix(".sv")
            });
            let only = match module.and_then(|module| modules.get(module)) {
                Some(paths) if paths.len() == 1 => Some(paths[0]),
                _ => None,
            };
            let named = || Some(driver(self.hierarchy, self.signal(cell)?));
            match only.or_else(named) {
                Some(path) => {
                    self.paths.insert(cell, path);
                }
                None => waiting.push(cell),
            }
        }
        while !waiting.is_empty() {
            let found: Vec<(&str, &str)> = waiting
                .iter()
                .filter_map(|cell| Some((*cell, self.majority(cell)?)))
                .collect();
            if found.is_empty() {
                break;
            }
            self.paths.extend(found);
            waiting.retain(|cell| !self.paths.contains_key(cell));
        }
    }

    fn majority(&self, cell: &str) -> Option<&'a str> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for bit in self.outputs.get(cell)? {
            for reader in self.readers.get(bit).into_iter().flatten() {
                if let Some(path) = self.paths.get(reader) {
                    *votes.entry(path).or_default() += 1;
                }
            }
        }
        let most = votes.into_iter().max_by_key(|&(_, count)| count);
        most.map(|(path, _)| path)
    }

    /// Where in the sources `cell` is, if it kept that; look-up tables do not.
    pub fn source(&self, cell: &str) -> Option<&'a str> {
        self.sources.get(cell).copied()
    }

    /// The name in the sources of what `cell` drives, or of the memory that it is part of.
    pub fn signal(&self, cell: &'a str) -> Option<&'a str> {
        if !made_up(cell) {
            return Some(cell);
        }
        let outputs = self.outputs.get(cell)?;
        outputs.iter().find_map(|bit| self.names.get(bit)).copied()
    }

    /// The path of the instance that `cell` lies in.
    pub fn instance(&self, cell: &str) -> &'a str {
        self.paths.get(cell).copied().unwrap_or_default()
    }

    /// The cell of this name, if there is one.
    pub fn cell(&self, name: &str) -> Option<&'a str> {
        self.kinds.get_key_value(name).map(|(name, _)| *name)
    }

    /// Cells of each instance without those below it.
    pub fn cells(&self) -> BTreeMap<String, Cells> {
        let mut own: BTreeMap<String, Cells> = BTreeMap::new();
        for (&name, kind) in &self.kinds {
            let path = self.instance(name).to_owned();
            own.entry(path).or_default().count(kind, 1);
        }
        own
    }
}

fn bits(list: &Value) -> impl Iterator<Item = u64> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
}

/// Whether Yosys made the name up: `state_q_TRELLIS_FF_Q_DI_LUT4_Z`, `u_ram.mem.0.0_DO`.
fn made_up(name: &str) -> bool {
    let (_, memory) = name.split_once(".mem.").unwrap_or_default();
    if memory.contains('_') {
        return true;
    }
    let kinds = KNOWN.iter();
    let mut places = kinds.filter_map(|kind| name.find(kind).map(|at| (at, at + kind.len())));
    places.any(|(start, end)| {
        name[..start].ends_with('_') && (name[end..].starts_with('_') || end == name.len())
    })
}

/// The instance that drives the net `name`: an input is driven from around the block.
fn driver<'a>(hierarchy: &Hierarchy, name: &'a str) -> &'a str {
    let path = hierarchy.instance(name);
    if name.ends_with("_i") {
        hierarchy.instance(path.rsplit_once('.').map_or("", |(around, _)| around))
    } else {
        path
    }
}

/// Names that tell the driver of a net come last: not an input's, deep in the hierarchy, a register.
/// Of inputs alone, that of the outermost block.
fn rank(hierarchy: &Hierarchy, name: &str) -> (bool, isize, bool) {
    let depth = hierarchy.instance(name).split('.').count() as isize;
    let input = name.ends_with("_i");
    (
        !input,
        if input { -depth } else { depth },
        name.ends_with("_q"),
    )
}

#[cfg(test)]
mod checks {
    use super::*;
    use serde_json::json;

    fn hierarchy() -> Hierarchy {
        let stat = json!({"modules": {
            "\\core": {"num_cells_by_type": {"LUT4": 1, "a$core.u_a": 1, "b$core.u_b": 1}},
            "\\a$core.u_a": {"num_cells_by_type": {"CCU2C": 2, "c$core.u_a.u_c": 1}},
            "\\c$core.u_a.u_c": {"num_cells_by_type": {"TRELLIS_DPR16X4": 1, "TRELLIS_FF": 5}},
            "\\b$core.u_b": {"num_cells_by_type": {"LUT4": 7, "DP16KD": 1}}
        }});
        let modules = modules(&stat);
        assert_eq!(black_boxes(&modules), Vec::<String>::new());
        Hierarchy::new(&modules, "core")
    }

    #[test]
    fn cells_add_up_along_the_hierarchy() {
        let totals = hierarchy().totals();
        assert_eq!(totals[""].comb(), 1 + 4 + 6 + 7);
        assert_eq!(totals["u_a"].comb(), 10);
        assert_eq!(totals["u_a.u_c"].ff, 5);
        assert_eq!(totals["u_b"].ebr, 1);
        assert_eq!(hierarchy().module("u_a.u_c"), Some("c"));
    }

    #[test]
    fn black_box_is_named() {
        let stat = json!({"modules": {"\\core": {"num_cells_by_type": {"LUT4": 1, "PLL": 1}}}});
        assert_eq!(black_boxes(&modules(&stat)), ["PLL"]);
    }

    #[test]
    fn cell_belongs_to_the_block_that_drives_its_net() {
        let hierarchy = hierarchy();
        let cell = |kind: &str, output: u64, input: u64| {
            json!({"type": kind, "port_directions": {"Z": "output", "A": "input"},
                   "connections": {"Z": [output], "A": [input]}})
        };
        let module = json!({
            "netnames": {
                "out_o": {"bits": [5]}, "u_a.u_c.out_o": {"bits": [5]}, "u_a.out_o": {"bits": [5]},
                "u_b.far.in_i": {"bits": [5]}, "u_b.x_q": {"bits": [6]},
                "u_b.x_q_LUT4_Z_A_LUT4_Z": {"bits": [7]}
            },
            "cells": {
                "u_b.x_q_LUT4_A": cell("TRELLIS_FF", 5, 7),
                "u_b.x_q_LUT4_Z_A_LUT4_Z": cell("LUT4", 7, 6),
                "u_b.x_q_LUT4_Z": cell("LUT4", 6, 5),
                "u_b.mem.0.0": cell("DP16KD", 8, 5)
            }
        });
        let owners = Owners::new(&hierarchy, &module);
        let cells = owners.cells();
        assert_eq!((cells["u_a.u_c"].ff, cells["u_a.u_c"].lut4), (1, 1));
        assert_eq!((cells["u_b"].ebr, cells["u_b"].lut4), (1, 1));
        assert_eq!(owners.signal("u_b.x_q_LUT4_A"), Some("u_a.u_c.out_o"));
        assert_eq!(owners.signal("u_b.x_q_LUT4_Z_A_LUT4_Z"), None);
    }

    #[test]
    fn difference_is_the_largest_of_all_counts() {
        let table = Cells {
            lut4: 100,
            ff: 50,
            ..Cells::default()
        };
        let trimmed = Cells { ff: 48, ..table };
        assert_eq!(table.difference(&table), 0.0);
        assert!((trimmed.difference(&table) - 0.04).abs() < 1e-9);
    }
}
