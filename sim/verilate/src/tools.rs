//! Finding and running the tools.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where built models are kept: `FERRONIC_CACHE`, or a folder of the tree at `root`.
pub fn cache_dir(root: &Path) -> PathBuf {
    match env::var_os("FERRONIC_CACHE") {
        Some(dir) => PathBuf::from(dir),
        None => root.join(".tools/cache"),
    }
    .join("verilated")
}

/// The Verilator launcher: the environment's choice, the one that set-up made, or the system's.
pub fn verilator(root: &Path) -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("FERRONIC_VERILATOR") {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!(
                "FERRONIC_VERILATOR names {}, which is not a file",
                path.display()
            ))
        };
    }
    let own = root.join(".tools/bin/verilator");
    println!("cargo::rerun-if-changed={}", own.display());
    if own.is_file() {
        return Ok(own);
    }
    env::var_os("PATH")
        .iter()
        .flat_map(env::split_paths)
        .map(|dir| dir.join("verilator"))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            "Verilator was not found: run `cargo xtask setup` (it goes into .tools/), or put \
             `verilator` 5.032 or later on PATH, or name it in FERRONIC_VERILATOR"
                .to_owned()
        })
}

/// Reads a file; the error names it.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Standard output of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "{program}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command, quietly if it succeeds.
pub fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{what}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{what} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}
