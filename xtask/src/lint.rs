//! Checks that need no simulation.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::error::Failure;
use crate::filelist::FileList;
use crate::process::{cargo, run_logged};
use crate::setup::{self, Tools};
use crate::{docs, regs, testplan};

/// Data path widths at which the RTL is checked; tests run at both as well.
const WIDTHS: [u32; 2] = [64, 512];

/// Options of `lint`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Checks to run; all without one
    #[arg(value_enum)]
    checks: Vec<Check>,
}

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Check {
    /// rustfmt has nothing to change
    Format,
    /// Generated register files are those that the description gives
    Regs,
    /// Every test that the test plan names exists, every requirement stands in it once
    Testplan,
    /// Links and names in the documentation lead somewhere
    Docs,
    /// Columns, tabs and licence lines of the RTL
    Style,
    /// Verilator -Wall has nothing to say, at 64 and at 512 bits
    Verilator,
    /// Yosys reads all RTL: no latch, no second driver, no black box
    Yosys,
    /// Clippy with warnings denied
    Clippy,
    /// The API documentation with warnings denied
    Rustdoc,
}

impl Check {
    /// All of them, quick ones first.
    pub const ALL: [Self; 9] = [
        Self::Format,
        Self::Regs,
        Self::Testplan,
        Self::Docs,
        Self::Style,
        Self::Verilator,
        Self::Yosys,
        Self::Clippy,
        Self::Rustdoc,
    ];

    /// Its name on the command line and in the test plan (`lint::name`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Regs => "regs",
            Self::Testplan => "testplan",
            Self::Docs => "docs",
            Self::Style => "style",
            Self::Verilator => "verilator",
            Self::Yosys => "yosys",
            Self::Clippy => "clippy",
            Self::Rustdoc => "rustdoc",
        }
    }
}

/// `cargo xtask lint`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let tools = setup::setup(root)?;
    let checks = if arguments.checks.is_empty() {
        &Check::ALL[..]
    } else {
        &arguments.checks[..]
    };
    run_checks(root, &tools, checks)
}

/// Runs every one of `checks`, also after one has failed.
pub fn run_checks(root: &Path, tools: &Tools, checks: &[Check]) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for &check in checks {
        eprintln!("lint {} ...", check.name());
        let begin = Instant::now();
        match run_check(root, tools, check) {
            Ok(()) => {
                eprintln!(
                    "lint {} ok ({:.1} s)",
                    check.name(),
                    begin.elapsed().as_secs_f32()
                );
            }
            Err(failure) => {
                eprintln!("lint {} FAILED: {failure}", check.name());
                failed.push(format!("lint {}", check.name()));
            }
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Checks(failed))
    }
}

fn run_check(root: &Path, tools: &Tools, check: Check) -> Result<(), Failure> {
    let log = root.join(format!(".tools/log/lint-{}.log", check.name()));
    match check {
        Check::Format => run_logged(
            "cargo fmt",
            cargo(root).args(["fmt", "--all", "--check"]),
            &log,
        ),
        Check::Regs => run_logged(
            "regs --check",
            regs::generator(root, tools).arg("--check"),
            &log,
        ),
        Check::Testplan => testplan::check(root),
        Check::Docs => docs::check(root),
        Check::Style => rtl_style(root),
        Check::Verilator => WIDTHS
            .iter()
            .try_for_each(|&width| verilator(root, tools, width)),
        Check::Yosys => WIDTHS
            .iter()
            .try_for_each(|&width| yosys(root, tools, width)),
        Check::Clippy => {
            let mut command = cargo(root);
            command.args(["clippy", "--quiet", "--workspace", "--all-targets"]);
            run_logged(
                "cargo clippy",
                command.args(["--", "--deny", "warnings"]),
                &log,
            )
        }
        Check::Rustdoc => run_logged("cargo doc", &mut docs::rustdoc(root), &log),
    }
}

fn verilator(root: &Path, tools: &Tools, width: u32) -> Result<(), Failure> {
    let list = FileList::read(root)?;
    let mut command = Command::new(&tools.verilator);
    command
        .current_dir(root)
        .args(["--lint-only", "-Wall", "--assert", "--no-timing"]);
    command
        .args(["--top-module", "ferronic_core"])
        .arg(format!("-GDataW={width}"));
    command
        .args(list.include_dirs.iter().map(|dir| format!("-I{dir}")))
        .args(&list.waivers)
        .args(&list.files);
    let log = root.join(format!(".tools/log/lint-verilator-{width}.log"));
    run_logged(&format!("verilator at {width} bits"), &mut command, &log)
}

fn yosys(root: &Path, tools: &Tools, width: u32) -> Result<(), Failure> {
    let list = FileList::read(root)?;
    let includes: String = list
        .include_dirs
        .iter()
        .map(|dir| format!(" -I {dir}"))
        .collect();
    // One thread and paths without `..`: the WebAssembly build knows neither.
    let script = format!(
        "read_slang --threads 1 --top ferronic_core -G DataW={width}{includes} {files}; \
         hierarchy -check -top ferronic_core; proc; check -assert; \
         select -assert-none t:$dlatch t:$adlatch t:$dlatchsr; \
         select -assert-none =A:blackbox",
        files = list.files.join(" ")
    );
    let mut command = Command::new(&tools.yosys);
    command.current_dir(root).args(["-q", "-p", &script]);
    let log = root.join(format!(".tools/log/lint-yosys-{width}.log"));
    run_logged(&format!("yosys at {width} bits"), &mut command, &log)
}

/// What no tool checks: 100 columns, no tab, a licence line, one module a file of the same name.
fn rtl_style(root: &Path) -> Result<(), Failure> {
    let mut faults = 0;
    let mut fault = |file: &str, line: usize, text: &str| {
        eprintln!("{file}:{line}: {text}");
        faults += 1;
    };
    for path in docs::tracked_files(root, &["rtl"])? {
        if !path.ends_with(".sv") && !path.ends_with(".svh") {
            continue;
        }
        let full = root.join(&path);
        let text = fs::read_to_string(&full).map_err(|source| Failure::io(&full, source))?;
        if !text
            .lines()
            .take(2)
            .any(|line| line.contains("SPDX-License-Identifier:"))
        {
            fault(
                &path,
                1,
                "no SPDX-License-Identifier in the first two lines",
            );
        }
        for (index, line) in text.lines().enumerate() {
            if line.chars().count() > 100 {
                fault(&path, index + 1, "more than 100 columns");
            }
            if line.contains('\t') {
                fault(&path, index + 1, "a tab");
            }
            let name = line.strip_prefix("module ").and_then(|rest| {
                rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                    .find(|s| !s.is_empty())
            });
            let stem = full
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            if let Some(name) = name.filter(|name| stem.as_deref() != Some(*name)) {
                fault(
                    &path,
                    index + 1,
                    &format!("module {name} wants a file of its own name"),
                );
            }
        }
    }
    if faults == 0 {
        return Ok(());
    }
    Err(Failure::Message(format!("{faults} faults, named above")))
}
