//! Register constants and their reference, from SystemRDL.

use std::path::Path;
use std::process::Command;

use crate::error::Failure;
use crate::process;
use crate::setup::{self, Tools};

/// Options of `regs`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write nothing; fail if a generated file differs from what the description gives
    #[arg(long)]
    check: bool,
}

/// `cargo xtask regs`.
pub fn run(root: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let tools = setup::setup(root)?;
    let mut command = generator(root, &tools);
    if arguments.check {
        command.arg("--check");
    }
    process::run("rtl/regs/generate.py", &mut command)
}

/// The generator, for a caller that adds options.
pub fn generator(root: &Path, tools: &Tools) -> Command {
    let mut command = Command::new(&tools.python);
    command.current_dir(root).arg("rtl/regs/generate.py");
    command
}
