//! Transmit steering, counted: lines of memory that move between CPUs, packets that overtake others,
//! instructions of a choice. `cargo xtask bench steering` runs it; docs/steering.md has the conditions.

mod cost;
mod lines;
mod order;
mod rate;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ferronic_figures::{Figure, Report};

/// Which queue a packet takes, and what it costs: the driver's layout and others.
#[derive(Parser)]
struct Arguments {
    /// A shorter measurement
    #[arg(long)]
    quick: bool,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Do one thing so often, for who counts it, instead of all else
    #[arg(long, value_name = "CASE", hide = true)]
    repeat: Option<cost::Case>,
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(case) = arguments.repeat {
        return case.repeat();
    }
    let mut figures = Vec::new();
    for (title, more) in [
        (lines::TITLE, lines::figures()?),
        (order::TITLE, order::figures(arguments.quick)?),
        (cost::TITLE, cost::figures()?),
        (rate::TITLE, rate::figures(arguments.quick)?),
    ] {
        println!("{title}");
        print(&more);
        figures.extend(more);
    }
    let broken = figures.iter().filter(|figure| !holds(figure)).count();
    let report = Report {
        command: "bench steering".to_owned(),
        figures,
    };
    if let Some(path) = &arguments.json {
        report
            .write(path)
            .map_err(|e| format!("{}: {e}; choose a path that can be written", path.display()))?;
    }
    match broken {
        0 => Ok(()),
        _ => Err(
            format!("{broken} figures of the driver's layout are not 0, as they must be").into(),
        ),
    }
}

fn text(figure: &Figure, param: &str) -> String {
    match figure.params.get(param) {
        None => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A row a name, case and layout; a column a number of CPUs.
fn print(figures: &[Figure]) {
    if figures.is_empty() {
        println!("  not measured");
    }
    let head = |figure: &Figure| {
        let (case, layout) = (text(figure, "case"), text(figure, "layout"));
        format!("{:32} {case:10} {layout:10}", figure.name)
    };
    let mut heads: Vec<String> = Vec::new();
    for figure in figures {
        if !heads.contains(&head(figure)) {
            heads.push(head(figure));
        }
    }
    for row in heads {
        let values = figures.iter().filter(|figure| head(figure) == row);
        let values = values.map(|figure| match text(figure, "cpus") {
            cpus if cpus.is_empty() => format!("{:10.3}", figure.value),
            cpus => format!("{:10.3} ({cpus} CPUs)", figure.value),
        });
        println!("  {row} {}", values.collect::<Vec<_>>().join(" "));
    }
}

/// Nothing moves and nothing is overtaken in the driver's own layout.
fn holds(figure: &Figure) -> bool {
    let counted = ["line_transfers_per_packet", "reordered"].contains(&figure.name.as_str());
    !counted || text(figure, "layout") != "ferronic" || figure.value == 0.0
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench steering: {error}");
            ExitCode::FAILURE
        }
    }
}
