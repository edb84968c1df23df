//! Proofs of properties of blocks, and the seeded mistakes that each of them must find.
//!
//! rtl/formal/tasks.toml lists the proofs; each has a harness in rtl/formal that holds the block, what
//! is assumed of its surroundings, and what must hold. A proof that never failed shows nothing, so
//! each one has mutants: the same proof on a copy of the sources with one mistake, which must fail.

mod job;
mod table;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use ferronic_figures::{Figure, Report};

use crate::error::Failure;
use crate::setup;
use job::{Job, Outcome, Verdict};
pub use table::Table;
use table::{Mode, Proof};

/// Proofs run at once at most: each takes a core.
const AT_ONCE: usize = 2;

/// Options of `formal`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Proofs to run; all without one
    names: Vec<String>,
    /// Run also what was proven before with the same sources and tools
    #[arg(long)]
    again: bool,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// `cargo xtask formal`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    setup::setup(root)?;
    let table = Table::read(root)?;
    let proofs = table.chosen(&arguments.names)?;
    let rows = prove(root, &proofs, arguments.again)?;
    println!("\n{}\n", text(&rows));
    if let Some(path) = &arguments.json {
        let report = Report {
            command: "formal".to_owned(),
            figures: rows.iter().flat_map(Row::figures).collect(),
        };
        report
            .write(path)
            .map_err(|source| Failure::io(path, source))?;
    }
    conclude(&rows)
}

/// Every proof with every mutant, as part of `test`.
pub fn all(root: &Path) -> Result<(), Failure> {
    let arguments = Arguments {
        names: Vec::new(),
        again: false,
        json: None,
    };
    run(root, &arguments)
}

/// A proof with what came of it and of its mutants.
struct Row<'a> {
    proof: &'a Proof,
    outcome: Outcome,
    mutants: Vec<(&'a str, Outcome)>,
}

impl Row<'_> {
    fn holds(&self) -> bool {
        self.outcome.verdict == Verdict::Pass
    }

    fn caught(&self) -> usize {
        let caught = |(_, outcome): &&(&str, Outcome)| outcome.verdict == Verdict::Fail;
        self.mutants.iter().filter(caught).count()
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |name, value, unit| {
            Figure::new(name, value, unit)
                .with("proof", self.proof.name.as_str())
                .with("mode", self.proof.mode.name())
                .with("depth", self.proof.depth_text())
        };
        vec![
            figure("holds", f64::from(u8::from(self.holds())), "1"),
            figure("proof_s", self.outcome.seconds, "s"),
            figure("mutants", self.mutants.len() as f64, "1"),
            figure("mutants_caught", self.caught() as f64, "1"),
        ]
    }
}

fn prove<'a>(root: &Path, proofs: &[&'a Proof], again: bool) -> Result<Vec<Row<'a>>, Failure> {
    let bin = setup::setup_formal(root)?;
    let version = setup::formal_pins(root)?;
    // The longest first, so that none is left alone at the end: proofs before mutants.
    let mut jobs = Vec::new();
    for (index, &proof) in proofs.iter().enumerate() {
        jobs.push((index, None, Job::proof(root, proof, &version)?));
    }
    for (index, &proof) in proofs.iter().enumerate() {
        for (which, mutant) in proof.mutants.iter().enumerate() {
            jobs.push((
                index,
                Some(which),
                Job::mutant(root, proof, mutant, &version)?,
            ));
        }
    }
    eprintln!(
        "formal: {} proofs and {} mutants of them, {AT_ONCE} at once",
        proofs.len(),
        jobs.len() - proofs.len()
    );
    let queue = Mutex::new(jobs.into_iter().collect::<VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((proof, mutant, job)) = next(&queue) {
                    let outcome = job.run(root, &bin, again);
                    if let Ok(outcome) = &outcome {
                        eprintln!("formal: {}", job.describe(outcome));
                    }
                    if let Ok(mut done) = done.lock() {
                        done.push((proof, mutant, outcome));
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_default();
    let mut rows: Vec<Row<'a>> = proofs
        .iter()
        .map(|&proof| Row {
            proof,
            outcome: Outcome::default(),
            mutants: proof
                .mutants
                .iter()
                .map(|mutant| (mutant.name.as_str(), Outcome::default()))
                .collect(),
        })
        .collect();
    for (proof, mutant, outcome) in done {
        let row = &mut rows[proof];
        match mutant {
            None => row.outcome = outcome?,
            Some(which) => row.mutants[which].1 = outcome?,
        }
    }
    Ok(rows)
}

fn next<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    queue.lock().ok()?.pop_front()
}

/// The table of proofs.
fn text(rows: &[Row<'_>]) -> String {
    let mut out = format!(
        "{:<18}{:<8}{:>6}{:>9}  {:<9}{}",
        "proof", "mode", "depth", "seconds", "result", "mutants caught"
    );
    for row in rows {
        let kept = if row.outcome.kept { "*" } else { " " };
        out += &format!(
            "\n{:<18}{:<8}{:>6}{:>8.1}{kept}  {:<9}{} of {}",
            row.proof.name,
            row.proof.mode.name(),
            row.proof.depth_text(),
            row.outcome.seconds,
            row.outcome.verdict.name(),
            row.caught(),
            row.mutants.len()
        );
    }
    out + "\n(* unchanged, proven by an earlier run)"
}

/// Names what does not hold and what was not found; fails if there is any.
fn conclude(rows: &[Row<'_>]) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for row in rows {
        let name = &row.proof.name;
        if !row.holds() {
            failed.push(format!(
                "formal {name} ({}: {})",
                row.outcome.verdict.name(),
                row.outcome.why
            ));
        }
        for (mutant, outcome) in &row.mutants {
            match outcome.verdict {
                Verdict::Fail => {}
                Verdict::Pass => failed.push(format!("formal {name} does not notice {mutant}")),
                other => failed.push(format!(
                    "formal {name} with {mutant} ({}: {})",
                    other.name(),
                    outcome.why
                )),
            }
        }
    }
    if failed.is_empty() {
        let mutants: usize = rows.iter().map(|row| row.mutants.len()).sum();
        let bounded = rows.iter().filter(|row| row.proof.mode == Mode::Bmc);
        println!(
            "formal: {} proofs hold, {} of them to a bounded depth; {mutants} of {mutants} mutants \
             caught",
            rows.len(),
            bounded.count()
        );
        return Ok(());
    }
    Err(Failure::Checks(failed))
}

#[cfg(test)]
mod checks {
    use super::*;

    fn proof() -> Proof {
        let text = "[[proof]]\nname = \"a\"\nmode = \"prove\"\n\
                    [[proof.mutant]]\nname = \"m\"\nfile = \"f\"\nfind = \"x\"\nreplace = \"y\"\n";
        let mut table = Table::parse(text).expect("a table");
        table.proofs.remove(0)
    }

    fn outcome(verdict: Verdict) -> Outcome {
        Outcome {
            verdict,
            ..Outcome::default()
        }
    }

    #[test]
    fn proof_counts_only_if_it_holds_and_its_mutants_fail() {
        let proof = proof();
        let ends = |own, mutant| {
            let rows = [Row {
                proof: &proof,
                outcome: outcome(own),
                mutants: vec![("m", outcome(mutant))],
            }];
            conclude(&rows).is_ok()
        };
        assert!(ends(Verdict::Pass, Verdict::Fail));
        assert!(!ends(Verdict::Pass, Verdict::Pass));
        assert!(!ends(Verdict::Pass, Verdict::Timeout));
        assert!(!ends(Verdict::Pass, Verdict::Error));
        assert!(!ends(Verdict::Fail, Verdict::Fail));
        assert!(!ends(Verdict::Error, Verdict::Fail));
    }
}
