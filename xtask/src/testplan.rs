//! tests/testplan.md: every test that it names must exist.
//!
//! The plan's tables have a requirement in the first column and tests in the last, each test as
//! `crate::name` in backquotes: a test function of that name somewhere in that crate, `lint::name`
//! for a check of `cargo xtask lint`, or `formal::name` for a proof of `cargo xtask formal`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::docs::tracked_files;
use crate::error::Failure;
use crate::formal;
use crate::lint::Check;

const PLAN: &str = "tests/testplan.md";

/// Crates with tests, and their folders.
const CRATES: [(&str, &str); 12] = [
    ("ferronic", "host/driver"),
    ("ferronic-block-tests", "tests/blocks"),
    ("ferronic-cli", "host/cli"),
    ("ferronic-cosim-tests", "tests/cosim"),
    ("ferronic-figures", "xtask/figures"),
    ("ferronic-guest-agent", "tests/guest/agent"),
    ("ferronic-guest-tests", "tests/guest"),
    ("ferronic-oracle", "tests/oracle"),
    ("ferronic-sim", "sim"),
    ("ferronic-spec", "host/spec"),
    ("ferronic-transfer", "host/transfer"),
    ("xtask", "xtask/src"),
];

/// Checks the plan against the tree.
pub fn check(root: &Path) -> Result<(), Failure> {
    let path = root.join(PLAN);
    let plan = fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
    let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    known.insert(
        "lint",
        Check::ALL
            .iter()
            .map(|check| check.name().to_owned())
            .collect(),
    );
    let proofs = formal::Table::read(root)?.proofs;
    known.insert(
        "formal",
        proofs.into_iter().map(|proof| proof.name).collect(),
    );
    for (name, folder) in CRATES {
        let mut tests = BTreeSet::new();
        for file in tracked_files(root, &[folder])? {
            if file.ends_with(".rs") {
                let full = root.join(&file);
                let text =
                    fs::read_to_string(&full).map_err(|source| Failure::io(&full, source))?;
                tests.extend(tests_in(&text));
            }
        }
        known.insert(name, tests);
    }
    let faults = faults(&plan, &known);
    for fault in &faults {
        eprintln!("{PLAN}:{fault}");
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "{} faults in the test plan, named above",
        faults.len()
    )))
}

/// Names of the functions that carry a `#[test]` attribute.
fn tests_in(source: &str) -> Vec<String> {
    let mut tests = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") {
            marked = true;
        }
        if marked && let Some(rest) = line.split("fn ").nth(1).filter(|_| !line.starts_with("//")) {
            tests.push(
                rest.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect(),
            );
            marked = false;
        }
    }
    tests
}

fn faults(plan: &str, known: &BTreeMap<&str, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, line) in plan.lines().enumerate() {
        let number = index + 1;
        let Some(row) = line.trim().strip_prefix('|') else {
            continue;
        };
        let cells: Vec<&str> = row
            .trim_end_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let (Some(&id), Some(&tests)) = (cells.first(), cells.last()) else {
            continue;
        };
        if id.is_empty() || id == "id" || id.starts_with("--") {
            continue;
        }
        if let Some(before) = seen.insert(id.to_owned(), number) {
            faults.push(format!(
                "{number}: {id} is listed already, in line {before}"
            ));
        }
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            faults.push(format!("{number}: {id} names no test"));
        }
        for name in names {
            let Some((owner, test)) = name.split_once("::") else {
                faults.push(format!("{number}: {name} is not of the form crate::test"));
                continue;
            };
            match known.get(owner) {
                None => faults.push(format!("{number}: there is no crate {owner}")),
                Some(tests) if !tests.contains(test) => {
                    faults.push(format!("{number}: {owner} has no test {test}"));
                }
                Some(_) => {}
            }
        }
    }
    if seen.is_empty() {
        faults.push("1: no requirement is listed".to_owned());
    }
    faults
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn test_functions_are_found_behind_attributes() {
        let source = "fn helper() {}\n#[test]\n#[cfg(unix)]\nfn one() {}\n    #[test]\n    \
                      // why\n    fn two(input in 0..9u8) {}\nfn three() {}\n";
        assert_eq!(tests_in(source), ["one", "two"]);
    }

    #[test]
    fn plan_that_names_a_missing_test_is_a_fault() {
        let known = BTreeMap::from([("sim", BTreeSet::from(["one".to_owned(), "two".to_owned()]))]);
        let good =
            "| id | what | tests |\n| --- | --- | --- |\n| A1 | x | `sim::one`, `sim::two` |";
        assert!(faults(good, &known).is_empty());
        let bad =
            "| A1 | x | `sim::one` |\n| A1 | x | `sim::six` |\n| A2 | x | - |\n| A3 | x | `one` |";
        let found = faults(bad, &known);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(faults("", &known).len(), 1);
    }
}
