//! Merging by the card, by the driver, by both and by nobody: the same streams, counted.
//!
//! Conditions are those of docs/benchmarks.md. Each stream goes through the card twice, with and
//! without merging; what the card delivers is recorded and received by the driver's example
//! `receive_cost`, with and without merging in the driver, and its instructions are counted.

#[path = "bench-lro/bounds.rs"]
mod bounds;
#[path = "bench-lro/card.rs"]
mod card;
#[path = "bench-lro/count.rs"]
mod count;
#[path = "bench-lro/plot.rs"]
mod plot;
#[path = "bench-lro/streams.rs"]
mod streams;
#[path = "bench-lro/table.rs"]
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use count::Counter;
use ferronic_cosim_tests::bench::{Output, exit};
use ferronic_cosim_tests::{Capture, captures};
use ferronic_figures::{Figure, Report};
use streams::Stream;

/// Received TCP with segments merged by nobody, the card, the driver, and both.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Only 64 flows at once, on a card that merges as many
    #[arg(long)]
    many: bool,
    /// Only streams whose name contains this, and none of the other measurements
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// The driver's example `receive_cost`, built with --release
    #[arg(long, value_name = "FILE")]
    receiver: Option<PathBuf>,
    /// Figures of an earlier run that come first in --json
    #[arg(long, value_name = "FILE")]
    after: Option<PathBuf>,
}

fn streams(captures: &[Capture], quick: bool) -> Vec<Stream> {
    let bytes = if quick { 400_000 } else { 1_500_000 };
    let synthetic = |flows, stamps, v6, mtu| Stream::synthetic(flows, stamps, v6, mtu, bytes);
    let mut streams = vec![synthetic(1, false, false, 1500)];
    if !quick {
        streams.extend([
            synthetic(1, true, false, 1500),
            synthetic(1, false, true, 1500),
            synthetic(1, true, true, 1500),
            synthetic(1, false, false, 9000),
            synthetic(1, true, true, 9000),
            synthetic(4, true, false, 1500),
        ]);
    }
    streams.extend([
        synthetic(16, true, false, 1500),
        synthetic(64, true, false, 1500),
        synthetic(1, true, false, 1500).slow(),
    ]);
    if !quick {
        streams.push(synthetic(16, true, false, 1500).slow());
    }
    // Whole, for they begin with small units.
    streams.extend(captures.iter().filter_map(Stream::captured));
    streams
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut figures = Vec::new();
    if let Some(path) = &arguments.after {
        let earlier: Report = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        figures = earlier.figures;
    }
    if arguments.many {
        bounds::many(arguments.output.quick, &mut figures)?;
    } else {
        all(arguments, &mut figures)?;
    }
    let output = &arguments.output;
    output.write("bench lro", figures, plot::instructions)
}

fn all(arguments: &Arguments, figures: &mut Vec<Figure>) -> Result<(), Box<dyn std::error::Error>> {
    let counter = arguments.receiver.clone().map(Counter::new).transpose()?;
    match &counter {
        None => println!("not counted: instructions and cache lines (no --receiver was given)"),
        Some(counter) if !counter.counts() => {
            println!("not counted: instructions and cache lines (valgrind is not there)");
        }
        Some(_) => {}
    }
    let captures = captures()?;
    table::conditions();
    let mut rows = Vec::new();
    for stream in streams(&captures, arguments.output.quick) {
        let only = arguments.stream.as_ref();
        if only.is_some_and(|name| !stream.name.contains(name)) {
            continue;
        }
        let found = table::measure(&stream, counter.as_ref())?;
        table::print(&stream, &found);
        table::figures(&stream, &found, figures);
        rows.push((stream, found));
    }
    table::ratios(&rows, figures);
    table::peer();
    if arguments.stream.is_some() {
        return Ok(());
    }
    bounds::captured(&captures, figures)?;
    bounds::bulk(arguments.output.quick, figures)?;
    bounds::cycles(arguments.output.quick, figures);
    Ok(())
}

fn main() -> ExitCode {
    exit(run(&Arguments::parse()))
}
