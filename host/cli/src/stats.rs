//! `ferronic stats`

use std::path::PathBuf;

use clap::Args;
use ferronic::queue::Limits;
use ferronic::virtio::Transport;
use ferronic::{CardStats, Window};
use serde_json::{Value, json};

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
        let transport = Transport::open(self.card.function()?, Limits::default().reset)?;
        let stats = Window::attach(&transport)?.stats()?;
        print(&stats);
        if let Some(output) = output {
            write_json(output, &report(&stats))?;
        }
        Ok(Outcome::Done)
    }
}

fn print(stats: &CardStats) {
    println!(
        "{:<10} {:>14} {:>16} {:>10} {:>12}",
        "queue", "frames", "bytes", "drops", "interrupts"
    );
    for (i, queue) in stats.queues.iter().enumerate() {
        println!(
            "{:<10} {:>14} {:>16} {:>10} {:>12}",
            format!("{}{}", direction(i), i / 2),
            queue.packets,
            queue.bytes,
            queue.drops,
            queue.interrupts
        );
    }
    for (pair, row) in stats.tx_interrupts.iter().enumerate() {
        for (cause, value) in row.by_cause() {
            println!("{:<25} {value:>10}", format!("tx{pair}_{cause}"));
        }
    }
    for (name, value) in &stats.device {
        println!("{name:<25} {value:>10}");
    }
    if let Some(lro) = &stats.lro {
        println!("{:<25} {:>10}", "lro_opened", lro.opened);
        println!("{:<25} {:>10}", "lro_merged", lro.merged);
        for (cause, value) in &lro.closed {
            println!("{:<25} {value:>10}", format!("lro_closed_{cause}"));
        }
    }
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
fn report(stats: &CardStats) -> Value {
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
