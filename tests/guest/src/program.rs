//! Running other programs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::GuestError;

/// Lines of a failed program that are shown.
const SHOWN: usize = 20;

/// Whether `program` is on the search path.
pub fn on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|dir| dir.join(Path::new(program)).is_file())
}

/// Runs a program to its end; what it printed is in the error if it fails.
pub fn run(command: &mut Command) -> Result<(), GuestError> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| GuestError::program(&name, error))?;
    if output.status.success() {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    Err(GuestError::program(
        name,
        format!("{}\n{end}", output.status),
    ))
}

/// What a program prints.
pub fn output(command: &mut Command) -> Result<String, GuestError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| GuestError::program(&name, error))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(GuestError::program(
            name,
            format!("{}\n{}", output.status, text.trim_end()),
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
