//! Size of the core on an ECP5, and the clock it reaches there.

mod area;
mod netlist;
mod route;
mod workshop;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ferronic_figures::{Figure, Report};

use crate::error::Failure;
use crate::setup;
use area::{Cells, Hierarchy};
use netlist::{Build, Flat, TOP};

/// What the core must keep to; the table shows them, and nothing fails for them.
const COMB_LIMIT: u64 = 23_000;
const COMB_LIMIT_LRO: u64 = 20_000;
const COMB_LIMIT_TX_EMPTY: u64 = 15_600;
const COMB_LIMIT_NEITHER: u64 = 15_000;
const EBR_LIMIT: u64 = 60;
const FMAX_LIMIT: f64 = 110.0;
const RATIO_LIMIT: f64 = 1.5;
/// The configuration that the limits are for.
const LIMITS_FOR: (u32, u32) = (64, 4);
/// The configurations that `--compare` compares.
const FEW_QUEUES: u32 = 4;
const MANY_QUEUES: u32 = 64;

/// How deep the table of blocks goes.
const DEPTH: usize = 2;
/// How many of the slowest ends of paths are named.
const WORST: usize = 10;

/// Options of `synth`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Place and route the core out of context too, for the clock it reaches
    #[arg(long)]
    route: bool,
    /// Only the sizes with 4 and with 64 queue pairs, and their ratio
    #[arg(long, conflicts_with_all = ["route", "queues"])]
    compare: bool,
    /// Bits of the data path
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = data_width)]
    data_width: u32,
    /// Queue pairs, a power of two up to 64
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = queue_pairs)]
    queues: u32,
    /// Leave large receive offload out of the core
    #[arg(long, conflicts_with = "compare")]
    without_lro: bool,
    /// Leave ring-empty interrupts, max-age and markers of transmit queues out of the core
    #[arg(long, conflicts_with = "compare")]
    without_tx_empty: bool,
    /// Leave steering and filters of received frames out of the core
    #[arg(long, conflicts_with = "compare")]
    without_steering: bool,
    /// Where placement begins: another seed is another placement
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u32,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn data_width(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bits @ (64 | 128 | 256 | 512)) => Ok(bits),
        _ => Err("the data path has 64, 128, 256 or 512 bits".to_owned()),
    }
}

fn queue_pairs(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(count) if (1..=64).contains(&count) && count.is_power_of_two() => Ok(count),
        _ => Err("queue pairs are a power of two from 1 to 64".to_owned()),
    }
}

/// `cargo xtask synth`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let tools = setup::setup(root)?;
    let mut build = Build {
        root,
        yosys: &tools.yosys,
        version: setup::pins(root)?,
        data_width: arguments.data_width,
        queues: arguments.queues,
        lro: !arguments.without_lro,
        tx_empty: !arguments.without_tx_empty,
        steering: !arguments.without_steering,
    };
    let mut figures = Vec::new();
    if arguments.compare {
        compare(&mut build, &mut figures)?;
    } else {
        one(root, &build, arguments, &mut figures)?;
    }
    if let Some(path) = &arguments.json {
        let report = Report {
            command: "synth".to_owned(),
            figures,
        };
        report
            .write(path)
            .map_err(|source| Failure::io(path, source))?;
    }
    Ok(())
}

fn one(
    root: &Path,
    build: &Build<'_>,
    arguments: &Arguments,
    figures: &mut Vec<Figure>,
) -> Result<(), Failure> {
    eprintln!(
        "synth: {TOP}, {} bits, {} queue pairs, {} LRO, {} ring-empty interrupts, {} steering, \
         for ECP5 (minutes; the first run of a tool compiles it)",
        build.data_width,
        build.queues,
        with(build.lro),
        with(build.tx_empty),
        with(build.steering)
    );
    let flat = build.flat()?;
    eprintln!("synth: each block by itself");
    let hierarchy = build.hierarchy()?;
    let rows = rows(&flat, &hierarchy);
    println!("\n{}\n", table(&rows));
    println!(
        "COMB = LUT4 + 2 CCU2C + 6 DPR16X4. A block's cells are those of the one netlist that"
    );
    println!(
        "drive its nets; \"alone\" is COMB of the block synthesised without its neighbours.\n"
    );
    for row in rows.iter().filter(|row| !row.rest) {
        figures.extend(size_figures(build, &row.block, &row.cells));
        let alone = row.alone.comb() as f64;
        figures.push(figure(build, &row.block, "comb_alone", alone, "cells"));
    }
    let mut limits = size_limits(&flat.cells, build);

    if arguments.route {
        let nextpnr = setup::setup_route(root)?;
        let wrapped = build.wrapped(&flat)?;
        eprintln!(
            "synth: place and route for LFE5UM5G-45F-8, seed {}",
            arguments.seed
        );
        let routed = route::run(build, &nextpnr, &wrapped, arguments.seed)?;
        let owners = flat.owners(&hierarchy);
        println!("{}\n", routed.describe(&owners, &hierarchy, WORST));
        let fmax = routed.fmax_mhz();
        figures.push(
            figure(build, TOP, "fmax_mhz", fmax, "MHz").with("seed", u64::from(arguments.seed)),
        );
        limits.push(Limit {
            name: "fmax_mhz",
            value: format!("{fmax:.1}"),
            limit: format!(">= {FMAX_LIMIT:.0}"),
            kept: fmax >= FMAX_LIMIT,
        });
    }
    println!("{}", limit_table(&limits, build));
    Ok(())
}

fn compare(build: &mut Build<'_>, figures: &mut Vec<Figure>) -> Result<(), Failure> {
    let mut comb = Vec::new();
    for queues in [FEW_QUEUES, MANY_QUEUES] {
        build.queues = queues;
        eprintln!(
            "synth: {TOP}, {} bits, {queues} queue pairs, for ECP5",
            build.data_width
        );
        let cells = build.flat()?.cells;
        println!(
            "{queues:>3} pairs: {:>6} LUT4 {:>6} COMB {:>6} FF {:>4} EBR",
            cells.lut4,
            cells.comb(),
            cells.ff,
            cells.ebr
        );
        figures.extend(size_figures(build, TOP, &cells));
        comb.push(cells.comb() as f64);
    }
    let ratio = comb[1] / comb[0];
    figures.push(figure(build, TOP, "comb_ratio", ratio, "1"));
    let limit = Limit {
        name: "comb_ratio",
        value: format!("{ratio:.3}"),
        limit: format!("<= {RATIO_LIMIT}"),
        kept: ratio <= RATIO_LIMIT,
    };
    println!("\n{}", limit_table(&[limit], build));
    Ok(())
}

/// One line of the table of blocks.
struct Row {
    /// `ferronic_core`, `virtio`, `virtio.used`.
    block: String,
    module: String,
    depth: usize,
    /// What a block holds besides the blocks listed below it.
    rest: bool,
    cells: Cells,
    alone: Cells,
}

/// The core and the blocks in it, the largest first.
fn rows(flat: &Flat, hierarchy: &Hierarchy) -> Vec<Row> {
    let shared = area::summed(&flat.owners(hierarchy).cells());
    let alone = hierarchy.totals();
    let mut rows = Vec::new();
    add_rows(&mut rows, "", 0, hierarchy, &shared, &alone);
    rows
}

fn add_rows(
    rows: &mut Vec<Row>,
    path: &str,
    depth: usize,
    hierarchy: &Hierarchy,
    shared: &BTreeMap<String, Cells>,
    alone: &BTreeMap<String, Cells>,
) {
    let of = |map: &BTreeMap<String, Cells>, path: &str| map.get(path).copied().unwrap_or_default();
    rows.push(Row {
        block: block_name(path),
        module: hierarchy.module(path).unwrap_or_default().to_owned(),
        depth,
        rest: false,
        cells: of(shared, path),
        alone: of(alone, path),
    });
    if depth == DEPTH {
        return;
    }
    let mut below: Vec<&str> = hierarchy.below(path).collect();
    if below.is_empty() {
        return;
    }
    below.sort_by_key(|path| std::cmp::Reverse(of(shared, path).comb()));
    let mut rest = (of(shared, path), of(alone, path));
    for path in below {
        rest.0 -= of(shared, path);
        rest.1 -= of(alone, path);
        add_rows(rows, path, depth + 1, hierarchy, shared, alone);
    }
    rows.push(Row {
        block: "(rest)".to_owned(),
        module: String::new(),
        depth: depth + 1,
        rest: true,
        cells: rest.0,
        alone: rest.1,
    });
}

/// `u_virtio.u_used` is the block `virtio.used`.
fn block_name(path: &str) -> String {
    if path.is_empty() {
        return TOP.to_owned();
    }
    let parts = path.split('.');
    let parts: Vec<&str> = parts
        .map(|part| part.strip_prefix("u_").unwrap_or(part))
        .collect();
    parts.join(".")
}

fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<24}{:<20}{:>7}{:>7}{:>7}{:>5}{:>6}{:>8}",
        "block", "module", "LUT4", "COMB", "FF", "EBR", "MULT", "alone"
    );
    for row in rows {
        let name = row.block.rsplit('.').next().unwrap_or_default();
        let cells = &row.cells;
        out += &format!(
            "\n{:<24}{:<20}{:>7}{:>7}{:>7}{:>5}{:>6}{:>8}",
            format!("{:1$}{name}", "", 2 * row.depth),
            row.module,
            cells.lut4,
            cells.comb(),
            cells.ff,
            cells.ebr,
            cells.mult,
            row.alone.comb()
        );
    }
    out
}

/// A figure beside its bound.
struct Limit {
    name: &'static str,
    value: String,
    limit: String,
    kept: bool,
}

fn size_limits(cells: &Cells, build: &Build<'_>) -> Vec<Limit> {
    let comb = match (build.lro, build.tx_empty) {
        (true, true) => COMB_LIMIT,
        (true, false) => COMB_LIMIT_LRO,
        (false, true) => COMB_LIMIT_TX_EMPTY,
        (false, false) => COMB_LIMIT_NEITHER,
    };
    [("comb", cells.comb(), comb), ("ebr", cells.ebr, EBR_LIMIT)]
        .into_iter()
        .map(|(name, value, limit)| Limit {
            name,
            value: value.to_string(),
            limit: format!("<= {limit}"),
            kept: value <= limit,
        })
        .collect()
}

fn limit_table(limits: &[Limit], build: &Build<'_>) -> String {
    let mut out = format!("{:<12}{:>10}{:>12}", "figure", "value", "limit");
    for limit in limits {
        let verdict = if limit.kept { "" } else { "  missed" };
        out += &format!(
            "\n{:<12}{:>10}{:>12}{verdict}",
            limit.name, limit.value, limit.limit
        );
    }
    if limits.len() > 1 && (build.data_width, build.queues) != LIMITS_FOR {
        out += &format!(
            "\n(the limits are for {} bits, {} pairs)",
            LIMITS_FOR.0, LIMITS_FOR.1
        );
    }
    out
}

fn size_figures(build: &Build<'_>, block: &str, cells: &Cells) -> Vec<Figure> {
    [
        ("lut4", cells.lut4),
        ("comb", cells.comb()),
        ("ff", cells.ff),
        ("ebr", cells.ebr),
    ]
    .into_iter()
    .map(|(name, value)| figure(build, block, name, value as f64, "cells"))
    .collect()
}

fn with(has: bool) -> &'static str {
    if has { "with" } else { "without" }
}

/// What the core has, as figures name it.
fn features(build: &Build<'_>) -> String {
    let parts = [
        (build.lro, "-lro"),
        (build.tx_empty, "-tx-empty"),
        (build.steering, "-steering"),
    ];
    let missing: String = (parts.iter().filter(|(has, _)| !has))
        .map(|(_, name)| *name)
        .collect();
    if missing.is_empty() {
        "all".to_owned()
    } else {
        format!("without{missing}")
    }
}

fn figure(build: &Build<'_>, block: &str, name: &str, value: f64, unit: &str) -> Figure {
    Figure::new(name, value, unit)
        .with("block", block)
        .with("data_w", build.data_width)
        .with("queues", build.queues)
        .with("features", features(build))
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn queue_pairs_are_a_power_of_two() {
        assert_eq!(queue_pairs("64"), Ok(64));
        for text in ["0", "3", "128", "x"] {
            assert!(queue_pairs(text).is_err(), "{text}");
        }
    }

    #[test]
    fn blocks_are_named_by_their_instances() {
        assert_eq!(block_name(""), "ferronic_core");
        assert_eq!(block_name("u_virtio.u_used"), "virtio.used");
    }
}
