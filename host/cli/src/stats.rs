//! `ferronic stats`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ferronic::queue::Limits;
use ferronic::virtio::Transport;
use ferronic::{CardStats, Window};
use serde_json::{Value, json};

use crate::control::client;
use crate::control::message::{Outcome as Answered, Request};
use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};
use crate::options::CardOptions;

/// Options of `stats`.
#[derive(Args)]
pub struct Stats {
    #[command(flatten)]
    card: CardOptions,
    /// Write the counters to this file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Stats {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let output = self.json.as_deref().map(Output::open).transpose()?;
        let report = self.counters()?;
        print!("{}", table(&report));
        if let Some(output) = output {
            write_json(output, &report)?;
        }
        Ok(Outcome::Done)
    }

    /// Of the command that has the card, or without disturbing it.
    fn counters(&self) -> Result<Value, CliError> {
        if let Some(answer) = client::ask(&self.card.device, &Request::Stats)?
            && let Answered::Done(report) = answer.outcome
        {
            eprintln!("of the running `ferronic {}`", answer.command);
            return Ok(report);
        }
        let transport = Transport::open(self.card.function()?, Limits::default().reset)?;
        Ok(report(&Window::attach(&transport)?.stats()?))
    }
}

/// A line a queue, then a line a counter.
fn table(report: &Value) -> String {
    let mut text = format!(
        "{:<10} {:>14} {:>16} {:>10} {:>12}\n",
        "queue", "frames", "bytes", "drops", "interrupts"
    );
    let figures = report["figures"].as_array().map_or(&[][..], Vec::as_slice);
    let mut columns = Vec::new();
    let mut lines = String::new();
    for figure in figures {
        let name = figure["name"].as_str().unwrap_or("");
        let params = &figure["params"];
        let value = &figure["value"];
        let cause = params["cause"].as_str();
        match (name, params["queue"].as_u64(), cause) {
            ("time", ..) | ("last_stamp", ..) => {}
            (_, Some(queue), None) => {
                columns.push(value.to_string());
                if let [frames, bytes, drops, interrupts] = &columns[..] {
                    let queue = format!("{}{queue}", params["direction"].as_str().unwrap_or(""));
                    let _ = writeln!(
                        text,
                        "{queue:<10} {frames:>14} {bytes:>16} {drops:>10} {interrupts:>12}"
                    );
                    columns.clear();
                }
            }
            (_, Some(queue), Some(cause)) => {
                let _ = writeln!(lines, "{:<25} {value:>10}", format!("tx{queue}_{cause}"));
            }
            (name, None, cause) => {
                let name = cause.map_or(name.to_owned(), |cause| format!("{name}_{cause}"));
                let _ = writeln!(lines, "{name:<25} {value:>10}");
            }
        }
    }
    text + &lines
}

/// Of what a counter of a transmit queue is: interrupts, and times that none was due after all.
fn tx_counter(cause: &str) -> (&'static str, &'static str) {
    match cause {
        "overtaken" => ("tx_overtaken", "times"),
        _ => ("tx_interrupts", "interrupts"),
    }
}

fn direction(queue: usize) -> &'static str {
    if queue.is_multiple_of(2) { "rx" } else { "tx" }
}

/// The counters in the form that all figures of the project have.
pub fn report(stats: &CardStats) -> Value {
    let mut figures = Vec::new();
    for (i, queue) in stats.queues.iter().enumerate() {
        let mut add = |name: &str, value: Value, unit: &str| {
            let params = json!({"queue": i / 2, "direction": direction(i)});
            figures.push(json!({"name": name, "params": params, "value": value, "unit": unit}));
        };
        add("packets", queue.packets.into(), "frames");
        add("bytes", queue.bytes.into(), "bytes");
        add("drops", queue.drops.into(), "frames");
        add("interrupts", queue.interrupts.into(), "interrupts");
        add("last_stamp", queue.last_stamp.into(), "cycles");
    }
    for (pair, row) in stats.tx_interrupts.iter().enumerate() {
        for (cause, value) in row.by_cause() {
            let (name, unit) = tx_counter(cause);
            let params = json!({"queue": pair, "direction": "tx", "cause": cause});
            figures.push(json!({"name": name, "params": params, "value": value, "unit": unit}));
        }
    }
    for (name, value) in &stats.device {
        figures.push(json!({"name": name, "params": {}, "value": value, "unit": "events"}));
    }
    if let Some(lro) = &stats.lro {
        let mut add = |name: &str, params: Value, value: u32, unit: &str| {
            figures.push(json!({"name": name, "params": params, "value": value, "unit": unit}));
        };
        add("lro_opened", json!({}), lro.opened, "segments");
        add("lro_merged", json!({}), lro.merged, "segments");
        for (cause, value) in &lro.closed {
            add("lro_closed", json!({"cause": cause}), *value, "packets");
        }
    }
    figures.push(json!({"name": "time", "params": {}, "value": stats.time, "unit": "cycles"}));
    json!({"command": "stats", "figures": figures})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_line_a_queue_and_a_line_a_counter() {
        let queue = |packets| ferronic::QueueCounters {
            packets,
            bytes: 64 * packets,
            last_stamp: 5,
            drops: 1,
            interrupts: 2,
        };
        let row = ferronic::completion::TxInterrupts {
            empty: 7,
            ..Default::default()
        };
        let stats = CardStats {
            queues: vec![queue(3), queue(4)],
            device: vec![("rx_short", 9)],
            tx_interrupts: vec![row],
            lro: Some(ferronic::lro::LroCounters {
                opened: 6,
                merged: 8,
                closed: vec![("push", 5)],
            }),
            ..CardStats::default()
        };
        let table = table(&report(&stats));
        let words = table.lines().map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.join(" ")
        });
        assert_eq!(
            words.collect::<Vec<_>>(),
            [
                "queue frames bytes drops interrupts",
                "rx0 3 192 1 2",
                "tx0 4 256 1 2",
                "tx0_empty 7",
                "tx0_max_age 0",
                "tx0_marker 0",
                "tx0_overtaken 0",
                "rx_short 9",
                "lro_opened 6",
                "lro_merged 8",
                "lro_closed_push 5",
            ]
        );
    }

    #[test]
    fn report_keeps_64_bit_counters() {
        let queue = ferronic::QueueCounters {
            packets: u64::MAX,
            ..Default::default()
        };
        let stats = CardStats {
            queues: vec![queue],
            ..CardStats::default()
        };
        let report = report(&stats);
        assert_eq!(report["figures"][0]["value"].as_u64(), Some(u64::MAX));
        assert_eq!(report["figures"][0]["params"]["direction"], "rx");
    }

    #[test]
    fn report_tells_why_the_card_interrupted_for_transmit_queues() {
        let row = ferronic::completion::TxInterrupts {
            empty: 1,
            max_age: 2,
            marker: 3,
            overtaken: 4,
        };
        let stats = CardStats {
            tx_interrupts: vec![row, Default::default()],
            ..CardStats::default()
        };
        let report = report(&stats);
        let figures = report["figures"].as_array().expect("a list");
        let of_pair = |pair: u64| {
            let figures = figures.iter().filter(move |f| f["params"]["queue"] == pair);
            let found = figures.map(|f| (f["name"].as_str(), f["value"].as_u64()));
            found.collect::<Vec<_>>()
        };
        let (irqs, overtaken) = (Some("tx_interrupts"), Some("tx_overtaken"));
        let all = [
            (irqs, Some(1)),
            (irqs, Some(2)),
            (irqs, Some(3)),
            (overtaken, Some(4)),
        ];
        assert_eq!(of_pair(0), all);
        assert_eq!(of_pair(1).len(), 4);
    }

    #[test]
    fn report_has_the_counters_of_merging_where_the_card_merges() {
        let lro = ferronic::lro::LroCounters {
            opened: 1,
            merged: u32::MAX,
            closed: vec![("push", 3), ("gap", 4)],
        };
        let with = report(&CardStats {
            lro: Some(lro),
            ..CardStats::default()
        });
        let figures = with["figures"].as_array().expect("a list");
        let found: Vec<_> = figures
            .iter()
            .filter_map(|f| {
                let name = f["name"].as_str()?.strip_prefix("lro_")?;
                Some((name, f["params"]["cause"].as_str(), f["value"].as_u64()?))
            })
            .collect();
        let most = u32::MAX.into();
        assert_eq!(
            found,
            [
                ("opened", None, 1),
                ("merged", None, most),
                ("closed", Some("push"), 3),
                ("closed", Some("gap"), 4)
            ]
        );
        assert!(!report(&CardStats::default()).to_string().contains("lro"));
    }
}
