//! Place and route of the core out of context, by nextpnr.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::area::{Hierarchy, Owners};
use super::netlist::Build;
use super::workshop::{Run, json};
use crate::error::Failure;

/// The instance of the core in its wrapper.
const INSTANCE: &str = "u_core.";

/// What nextpnr reported.
pub struct Routed {
    report: Value,
}

/// Places and routes `ooc.json` of the directory `wrapped`.
pub fn run(
    build: &Build<'_>,
    nextpnr: &Path,
    wrapped: &Path,
    seed: u32,
) -> Result<Routed, Failure> {
    let seed = seed.to_string();
    let arguments = [
        &["--um5g-45k", "--speed", "8", "--package", "CABGA381"][..],
        // The placer looks more at what is late than it does by default: a clock 3 to 13 % higher.
        &[
            "--placer-heap-critexp",
            "4",
            "--placer-heap-timingweight",
            "20",
        ],
        // A pin is not where a pin would be, and a miss is a figure and no failure.
        &[
            "--freq",
            "125",
            "--timing-allow-fail",
            "--lpf-allow-unconstrained",
        ],
        &[
            "--json",
            "ooc.json",
            "--seed",
            &seed,
            "--quiet",
            "--log",
            "nextpnr.log",
        ],
        &["--report", "report.json", "--detailed-timing-report"],
    ];
    let run = Run {
        name: build.name(&format!("route{seed}")),
        program: nextpnr,
        arguments: arguments
            .concat()
            .iter()
            .map(|&part| part.to_owned())
            .collect(),
        inputs: vec![("ooc.json".to_owned(), wrapped.join("ooc.json"))],
        script: None,
        version: build.version.clone(),
    };
    let directory = run.directory(build.root)?;
    let report = json(&directory.join("report.json"))?;
    if report["fmax"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        return Err(Failure::Message(format!(
            "nextpnr reported no clock; see nextpnr.log in {}",
            directory.display()
        )));
    }
    Ok(Routed { report })
}

impl Routed {
    /// The highest clock at which every path is in time.
    pub fn fmax_mhz(&self) -> f64 {
        let clocks = self.report["fmax"].as_object().into_iter().flatten();
        clocks
            .filter_map(|(_, clock)| clock["achieved"].as_f64())
            .fold(f64::INFINITY, f64::min)
    }

    /// The critical path, and the `count` slowest ends of paths, with blocks and signals.
    pub fn describe(&self, owners: &Owners<'_>, hierarchy: &Hierarchy, count: usize) -> String {
        let place = |cell: &str| place(owners, hierarchy, cell);
        let mut out = String::new();
        if let Some(path) = self.critical_path() {
            let cell =
                |step: &Value, end: &str| step[end]["cell"].as_str().unwrap_or("?").to_owned();
            let of = |kind: &str| -> f64 {
                let steps = path.iter().filter(|step| step["type"] == kind);
                steps.filter_map(|step| step["delay"].as_f64()).sum()
            };
            let logic = path.iter().filter(|step| step["type"] == "logic").count();
            let total: f64 = path.iter().filter_map(|step| step["delay"].as_f64()).sum();
            out += &format!(
                "critical path: {total:.2} ns, {:.2} ns of it wires, through {logic} cells\n",
                of("routing")
            );
            out += &format!("  from {}\n", place(&cell(&path[0], "from")));
            let mut last = String::new();
            for step in path.iter().filter(|step| step["type"] == "routing") {
                let through = place(&cell(step, "to"));
                if through != last && through != "carry" {
                    out += &format!("  then {through}\n");
                    last = through;
                }
            }
        }
        out += &format!("slowest ends of paths:\n{:>8}  {:<5} where", "ns", "port");
        let mut seen = BTreeSet::new();
        for (delay, cell, port) in self.ends() {
            let place = place(cell);
            if seen.insert(place.clone()) {
                out += &format!("\n{delay:>8.2}  {port:<5} {place}");
            }
            if seen.len() == count {
                break;
            }
        }
        out
    }

    /// The slowest path between registers, step by step.
    fn critical_path(&self) -> Option<&Vec<Value>> {
        let paths = self.report["critical_paths"].as_array()?.iter();
        let steps = |path: &&Value| {
            let edge = |end: &str| {
                path[end]
                    .as_str()
                    .is_some_and(|text| text.starts_with("posedge"))
            };
            edge("from") && edge("to")
        };
        let delay = |path: &&Vec<Value>| -> f64 {
            path.iter().filter_map(|step| step["delay"].as_f64()).sum()
        };
        paths
            .filter(steps)
            .filter_map(|path| path["path"].as_array())
            .filter(|path| !path.is_empty())
            .max_by(|a, b| delay(a).total_cmp(&delay(b)))
    }

    /// Every register input with the time at which its signal arrives, the latest first.
    fn ends(&self) -> Vec<(f64, &str, &str)> {
        let mut ends = Vec::new();
        let nets = self.report["detailed_net_timings"].as_array();
        for net in nets.into_iter().flatten() {
            let clocked = net["event"]
                .as_str()
                .is_some_and(|text| text.starts_with("posedge"));
            let sinks = net["endpoints"].as_array().into_iter().flatten();
            for sink in sinks.filter(|_| clocked) {
                let delay = match &sink["delay"] {
                    Value::Array(range) => {
                        range.iter().filter_map(Value::as_f64).fold(0.0, f64::max)
                    }
                    other => other.as_f64().unwrap_or(0.0),
                };
                let text = |name: &str| sink[name].as_str().unwrap_or("?");
                ends.push((delay, text("cell"), text("port")));
            }
        }
        ends.sort_by(|a, b| b.0.total_cmp(&a.0));
        ends
    }
}

/// `virtio.used (vq_used): state_q` for a cell of the core.
fn place(owners: &Owners<'_>, hierarchy: &Hierarchy, cell: &str) -> String {
    if cell.starts_with('$') {
        // A carry chain's own beginning or end.
        return "carry".to_owned();
    }
    let Some(inside) = cell.strip_prefix(INSTANCE) else {
        return format!("wrapper: {cell}");
    };
    // What nextpnr made of a cell of several parts: `x$CCU2_COMB1`.
    let inside = inside.split('$').next().unwrap_or(inside);
    let Some(name) = owners.cell(inside) else {
        return format!("? ({inside})");
    };
    let path = owners.instance(name);
    let block = super::block_name(path);
    let module = hierarchy.module(path).unwrap_or("?");
    let mut out = format!("{block} ({module})");
    if let Some(signal) = owners.signal(name) {
        let signal = signal.strip_prefix(path).unwrap_or(signal);
        out += &format!(": {}", signal.trim_start_matches('.'));
    }
    if let Some(source) = owners.source(name) {
        // `rtl/a.sv:12.3-14.5`: the first line is enough.
        let end = source.find(".sv:").map_or(0, |at| at + 4);
        let line = source[end..].split('.').next().unwrap_or_default();
        out += &format!(" [{}{line}]", &source[..end]);
    }
    out
}

#[cfg(test)]
mod checks {
    use super::*;
    use crate::synth::area;
    use serde_json::json;

    fn routed() -> Routed {
        let step = |kind: &str, delay: f64, from: &str, to: &str| json!({"type": kind, "delay": delay, "from": {"cell": from}, "to": {"cell": to}});
        let (a, b) = (
            "u_core.u_a.x_q_TRELLIS_FF_Q",
            "u_core.u_a.mem.0.0$DPRAM_COMB3",
        );
        let end =
            |cell: &str, delay: f64| json!({"cell": cell, "port": "DI", "delay": [0.1, delay]});
        Routed {
            report: json!({
                "fmax": {"clk": {"achieved": 120.5, "constraint": 125.0}},
                "critical_paths": [
                    {"from": "<async>", "to": "posedge clk", "path": [step("logic", 99.0, a, b)]},
                    {"from": "posedge clk", "to": "posedge clk", "path": [
                        step("clk-to-q", 0.5, a, a), step("routing", 7.0, a, b),
                        step("setup", 0.25, b, b)]}
                ],
                "detailed_net_timings": [
                    {"event": "posedge clk", "endpoints": [end(a, 3.0), end(b, 7.5), end(b, 7.25)]},
                    {"event": "<async>", "endpoints": [end(a, 50.0)]}
                ]
            }),
        }
    }

    #[test]
    fn critical_path_and_slow_ends_are_named_by_block_and_signal() {
        let stat = json!({"modules": {
            "\\core": {"num_cells_by_type": {"a$core.u_a": 1}},
            "\\a$core.u_a": {"num_cells_by_type": {"TRELLIS_FF": 1}}
        }});
        let hierarchy = Hierarchy::new(&area::modules(&stat), "core");
        let module = json!({
            "netnames": {"u_a.x_q": {"bits": [2]}},
            "cells": {
                "u_a.x_q_TRELLIS_FF_Q": {"type": "TRELLIS_FF", "port_directions": {"Q": "output"},
                                         "connections": {"Q": [2]}},
                "u_a.mem.0.0": {"type": "TRELLIS_DPR16X4"}
            }
        });
        let owners = Owners::new(&hierarchy, &module);
        let routed = routed();
        assert!((routed.fmax_mhz() - 120.5).abs() < 1e-9);
        let text = routed.describe(&owners, &hierarchy, 10);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "critical path: 7.75 ns, 7.00 ns of it wires, through 0 cells",
                "from a (a): x_q",
                "then a (a): mem.0.0",
                "slowest ends of paths:",
                "ns  port  where",
                "7.50  DI    a (a): mem.0.0",
                "3.00  DI    a (a): x_q",
            ]
        );
    }
}
