//! Receives what a card delivered, for the sake of being measured: driver, merging in the driver and
//! smoltcp, to the end of a TCP connection.
//!
//! Arguments: a recording ([`recording`]), `stack` or `merging`, `gro` or `plain`. `stack` receives
//! through [`ferronic::phy::Phy`] on smoltcp; `merging` is [`ferronic::gro::Gro`] alone. Run it under
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*measured*'`: what is counted is
//! the receiver's work alone, not the card in software that the recording comes from. Prints
//! `name value` lines; fails if a byte of the streams is missing.

#[path = "../../tests/support/mod.rs"]
mod support;

mod flow;
mod host;
mod merging;
mod recording;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [file, what, how] = &args[..] else {
        eprintln!("error: give a recording, stack or merging, gro or plain");
        return ExitCode::FAILURE;
    };
    let done = recording::read(Path::new(file)).and_then(|recording| match what.as_str() {
        "stack" => host::receive(&recording, how == "gro"),
        "merging" => merging::merge(&recording),
        other => Err(format!("{other} is neither stack nor merging")),
    });
    match done {
        Ok(figures) => {
            for (name, value) in figures {
                println!("{name} {value}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
