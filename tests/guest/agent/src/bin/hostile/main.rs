//! A driver that takes memory away from under the card, over kernel VFIO: `hostile ADDRESS CASE`.
//!
//! Each case begins with a fresh card and ends by showing that it works after a reset. Exit code 0:
//! the card behaved.

#![deny(unsafe_op_in_unsafe_fn)]

mod cases;
mod raw;

use std::process::ExitCode;

use cases::{CASES, Failure};
use raw::Raw;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [address, case] => match run(address, case) {
            Ok(words) => {
                println!("{words}");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("hostile: {case}: {failure}");
                ExitCode::FAILURE
            }
        },
        _ => {
            for (name, _) in CASES {
                println!("{name}");
            }
            ExitCode::SUCCESS
        }
    }
}

fn run(address: &str, case: &str) -> Result<String, Failure> {
    let (_, body) = CASES
        .iter()
        .find(|(name, _)| *name == case)
        .ok_or("no such case")?;
    let raw = Raw::new(ferronic::backend::open(address)?)?;
    let words = body(&raw)?;
    cases::works(&raw).map_err(|failure| format!("{words}, but afterwards: {failure}"))?;
    raw.function_reset()?;
    cases::works(&raw).map_err(|failure| format!("{words}, but after an FLR: {failure}"))?;
    Ok(words)
}
