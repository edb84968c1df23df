//! Running tests.

use std::path::Path;

use crate::error::Failure;
use crate::formal;
use crate::guest;
use crate::lint::{self, Check};
use crate::process::{self, cargo};
use crate::setup::{self, Tools};

const COSIM: &str = "ferronic-cosim-tests";

/// What `FERRONIC_REQUIRE` may list.
const RESOURCES: [&str; 3] = ["captures", "guests", "firmware"];

/// Cards of another shape than the tests are built for: the frames of the captures and the resets
/// must not depend on it. Each is built in a directory of its own, so that nothing is built anew
/// when the usual shape comes next.
const SHAPES: [Shape; 2] = [
    Shape {
        name: "64 queue pairs",
        queue_pairs: 64,
        features: &[],
        tests: &["captures", "many_queues", "receive_steering", "reset"],
        nightly: false,
    },
    Shape {
        name: "128 and 256 bits",
        queue_pairs: 4,
        features: &["w128", "w256"],
        tests: &["captures"],
        nightly: true,
    },
];

struct Shape {
    name: &'static str,
    queue_pairs: u32,
    features: &'static [&'static str],
    tests: &'static [&'static str],
    nightly: bool,
}

/// Options of `test` and `cosim`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run the long versions of tests too
    #[arg(long)]
    nightly: bool,
    /// Leave out the checks of `lint`
    #[arg(long)]
    no_lint: bool,
    /// Only tests whose name contains one of these
    names: Vec<String>,
}

/// `cargo xtask test`: checks, then every test and every proof.
pub fn all(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    check_requirements()?;
    let tools = setup::setup(root)?;
    let mut failed = Vec::new();
    // A check that fails does not hide what the tests say.
    if !arguments.no_lint
        && arguments.names.is_empty()
        && let Err(failure) = checks(root, &tools)
    {
        failed.extend(failure.parts());
    }
    if arguments.names.is_empty() {
        guest::prepare(root);
    }
    if let Err(failure) = run_tests(root, arguments, None) {
        failed.extend(failure.parts());
    }
    if arguments.names.is_empty() {
        if let Err(failure) = doc_tests(root) {
            failed.extend(failure.parts());
        }
        for shape in &SHAPES {
            if let Err(failure) = run_shape(root, arguments, shape) {
                failed.extend(failure.parts());
            }
        }
    }
    if arguments.names.is_empty()
        && let Err(failure) = formal::all(root)
    {
        failed.extend(failure.parts());
    }
    say_what_was_skipped();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Checks(failed))
    }
}

/// `cargo xtask cosim`: the co-simulation tests alone.
pub fn cosim(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    check_requirements()?;
    setup::setup(root)?;
    run_tests(root, arguments, Some(COSIM))?;
    say_what_was_skipped();
    Ok(())
}

fn checks(root: &Path, tools: &Tools) -> Result<(), Failure> {
    lint::run_checks(root, tools, &Check::ALL)
}

fn run_tests(root: &Path, arguments: &Arguments, package: Option<&str>) -> Result<(), Failure> {
    let mut command = cargo(root);
    let nextest = process::on_path("cargo-nextest");
    command.args(if nextest {
        &["nextest", "run", "--no-fail-fast"][..]
    } else {
        &["test", "--no-fail-fast"]
    });
    match package {
        Some(name) => command.args(["--package", name]),
        None => command.arg("--workspace"),
    };
    if nextest {
        command.args(&arguments.names);
    } else {
        command
            .args(["--lib", "--bins", "--tests", "--"])
            .args(&arguments.names);
    }
    if arguments.nightly {
        command.env("FERRONIC_NIGHTLY", "1");
    }
    process::run("the test run", &mut command)
}

fn run_shape(root: &Path, arguments: &Arguments, shape: &Shape) -> Result<(), Failure> {
    if shape.nightly && !arguments.nightly {
        return Ok(());
    }
    println!("\ntests of a card with {}", shape.name);
    let mut command = cargo(root);
    command
        .args(["test", "--no-fail-fast", "--package", COSIM, "--features"])
        .arg(shape.features.join(","))
        .arg("--target-dir")
        .arg(root.join("target/shapes"))
        .env("FERRONIC_QUEUE_PAIRS", shape.queue_pairs.to_string());
    for name in shape.tests {
        command.args(["--test", name]);
    }
    process::run(shape.name, &mut command)
}

fn doc_tests(root: &Path) -> Result<(), Failure> {
    process::run(
        "the documentation's tests",
        cargo(root).args(["test", "--doc", "--workspace"]),
    )
}

fn check_requirements() -> Result<(), Failure> {
    let list = std::env::var("FERRONIC_REQUIRE").unwrap_or_default();
    match list
        .split(',')
        .map(str::trim)
        .find(|word| !word.is_empty() && !RESOURCES.contains(word))
    {
        None => Ok(()),
        Some(word) => Err(Failure::Message(format!(
            "FERRONIC_REQUIRE names {word:?}: it may list {}, with commas",
            RESOURCES.join(", ")
        ))),
    }
}

fn say_what_was_skipped() {
    if std::env::var_os("FERRONIC_CAPTURES").is_none() {
        println!(
            "skipped: captures from outside the repository (set FERRONIC_CAPTURES to a directory \
             of pcap files; those under tests/data were used)"
        );
    }
}
