//! `ferronic selftest`

use clap::Args;
use ferronic::selftest::Outcome as Verdict;

use crate::error::{CliError, Outcome};
use crate::options::QueueOptions;

/// Options of `selftest`.
#[derive(Args)]
pub struct Selftest {
    #[command(flatten)]
    queues: QueueOptions,
}

impl Selftest {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let function = self.queues.function()?;
        let good = ferronic::selftest::run(&function, &self.queues.config(), |check| {
            let (verdict, words) = match &check.outcome {
                Verdict::Passed(words) => ("passed", words),
                Verdict::Skipped(words) => ("skipped", words),
                Verdict::Failed(words) => ("FAILED", words),
            };
            println!("{:<14} {verdict:<8} {words}", check.name);
        });
        Ok(if good {
            Outcome::Done
        } else {
            Outcome::NotPassed
        })
    }
}
