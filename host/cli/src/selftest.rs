//! `ferronic selftest`

use std::path::PathBuf;

use clap::Args;
use ferronic::selftest::{Check, Options, Outcome as Verdict};
use serde_json::{Value, json};

use crate::error::{CliError, Outcome};
use crate::files::{Output, write_json};
use crate::options::{QueueOptions, Stop};

/// Options of `selftest`.
#[derive(Args)]
pub struct Selftest {
    #[command(flatten)]
    queues: QueueOptions,
    /// Also check that memory taken from the card is refused it; the kernel logs the refusal.
    #[arg(long)]
    faults: bool,
    /// Write the outcome of each check to this file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Selftest {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let stop = Stop::catch()?;
        let output = self.json.as_deref().map(Output::open).transpose()?;
        let function = self.queues.function()?;
        let mut checks = Vec::new();
        let good = ferronic::selftest::run(
            &function,
            &self.queues.config(),
            Options {
                faults: self.faults,
            },
            || stop.requested(),
            |check| {
                let (verdict, words) = words(check);
                println!("{:<14} {verdict:<8} {words}", check.name);
                checks.push(check.clone());
            },
        );
        println!("{}", summary(&checks));
        if let Some(output) = output {
            write_json(output, &report(&checks))?;
        }
        if stop.requested() {
            return Err(CliError::Incomplete("stopped by a signal".into()));
        }
        Ok(if good {
            Outcome::Done
        } else {
            Outcome::NotPassed
        })
    }
}

fn words(check: &Check) -> (&'static str, &str) {
    match &check.outcome {
        Verdict::Passed(words) => ("passed", words),
        Verdict::Skipped(words) => ("skipped", words),
        Verdict::Failed(words) => ("FAILED", words),
    }
}

/// What was not run is said as loudly as what was.
fn summary(checks: &[Check]) -> String {
    let count = |want: &str| checks.iter().filter(|c| words(c).0 == want).count();
    let (passed, failed, skipped) = (count("passed"), count("FAILED"), count("skipped"));
    format!("{passed} passed, {failed} failed, {skipped} not run")
}

fn report(checks: &[Check]) -> Value {
    let figures: Vec<_> = checks
        .iter()
        .map(|check| {
            let (outcome, detail) = words(check);
            let passed = u8::from(outcome == "passed");
            let outcome = outcome.to_lowercase();
            json!({
                "name": "selftest",
                "params": {"check": check.name, "outcome": outcome, "detail": detail},
                "value": passed,
                "unit": "passed",
            })
        })
        .collect();
    json!({"command": "selftest", "figures": figures})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_were_not_run_are_not_counted_as_passed() {
        let check = |name, outcome| Check { name, outcome };
        let checks = [
            check("a", Verdict::Passed("x".into())),
            check("b", Verdict::Skipped("no loopback".into())),
            check("c", Verdict::Failed("y".into())),
        ];
        assert_eq!(summary(&checks), "1 passed, 1 failed, 1 not run");
        let report = report(&checks);
        let seen: Vec<_> = report["figures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| {
                (
                    f["params"]["outcome"].as_str().unwrap(),
                    f["value"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(seen, [("passed", 1), ("skipped", 0), ("failed", 0)]);
    }
}
