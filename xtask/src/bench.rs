//! Measurements.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Failure;
use crate::process::{self, cargo};
use crate::setup;

/// Options of `bench`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What to measure
    #[arg(value_enum)]
    what: What,
    /// A shorter measurement that ends within a minute once built
    #[arg(long)]
    quick: bool,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw cycles per frame over frame size (`cosim`), instructions by who merges (`lro`), or what each
    /// policy costs (`completion`), to this file as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// `completion`: count what the host's work costs, and compare it with what is recorded
    #[arg(long)]
    measure: bool,
    /// `completion`: options of the bench itself, behind `--`; `-- --help` lists them
    #[arg(last = true)]
    more: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Cycles, TLPs and bytes per frame of the whole card, and the simulator's own speed
    Cosim,
    /// Received TCP merged by nobody, the card, the driver, and both
    Lro,
    /// Transmit completion under each policy
    Completion,
    /// Choice of a transmit queue: lines that move between CPUs, order, instructions
    Steering,
}

const PACKAGE: &str = "ferronic-cosim-tests";

/// `cargo xtask bench`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    setup::setup(root)?;
    match arguments.what {
        What::Cosim => cosim(root, arguments),
        What::Lro => lro(root, arguments),
        What::Completion => completion(root, arguments),
        What::Steering => steering(root, arguments),
    }
}

/// Runs a bench of the co-simulation crate; arguments of its own come behind.
fn bench(root: &Path, name: &str) -> Command {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--package", PACKAGE, "--bin", name]);
    command
}

fn cosim(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let mut command = bench(root, "bench-cosim");
    command.arg("--");
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(path) = &arguments.json {
        command.arg("--json").arg(path);
    }
    if let Some(path) = &arguments.plot {
        command.arg("--plot").arg(path);
    }
    process::run("bench cosim", &mut command)
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

fn completion(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let mut command = bench(root, "bench-completion");
    command.arg("--");
    if arguments.measure {
        // Instructions are counted of what users build.
        let mut example = cargo(root);
        example.args(["build", "--quiet", "--release", "--package", "ferronic"]);
        example.args(["--example", "completion_cost"]);
        process::run("building the host whose cost is counted", &mut example)?;
        let program = target(root).join("release/examples/completion_cost");
        command.arg("--measure").arg(program);
    }
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(path) = &arguments.json {
        command.arg("--json").arg(path);
    }
    if let Some(path) = &arguments.plot {
        command.arg("--plot").arg(path);
    }
    command.args(&arguments.more);
    process::run("bench completion", &mut command)
}

/// Needs no card: an example of the driver, as users build it.
fn steering(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    if arguments.plot.is_some() || arguments.measure || !arguments.more.is_empty() {
        let why = "bench steering has neither --plot nor --measure nor options of its own; leave them out";
        return Err(Failure::Message(why.to_owned()));
    }
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--release", "--package", "ferronic"]);
    command.args(["--example", "bench_steering", "--"]);
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(path) = &arguments.json {
        command.arg("--json").arg(path);
    }
    process::run("bench steering", &mut command)
}

/// Flows of the card that is built for this alone.
const FLOWS: &str = "64";

fn lro(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let target = target(root);
    // Instructions are counted of what users build.
    let mut receiver = cargo(root);
    receiver.args(["build", "--quiet", "--release", "--package", "ferronic"]);
    receiver.args(["--example", "receive_cost"]);
    process::run("building the receiver", &mut receiver)?;

    let mut command = bench(root, "bench-lro");
    command.arg("--").arg("--receiver");
    command.arg(target.join("release/examples/receive_cost"));
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(path) = &arguments.json {
        command.arg("--json").arg(path);
    }
    if let Some(path) = &arguments.plot {
        command.arg("--plot").arg(path);
    }
    process::run("bench lro", &mut command)?;

    // A card that merges 64 flows at once, in a directory of its own: the usual one stays built.
    let mut command = bench(root, "bench-lro");
    command
        .args(["--no-default-features", "--target-dir"])
        .arg(target.join("lro-64"))
        .env("FERRONIC_LRO_CONTEXTS", FLOWS)
        .args(["--", "--many"]);
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(path) = &arguments.json {
        command.arg("--after").arg(path).arg("--json").arg(path);
    }
    process::run("bench lro with 64 contexts", &mut command)
}
