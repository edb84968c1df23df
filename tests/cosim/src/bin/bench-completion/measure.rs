//! What the host's work costs, by callgrind.

use std::path::Path;
use std::process::Command;

use ferronic_cosim_tests::completion::Cost;

/// How often each action is done, and buffers of a batch. A large frame has 7 KiB more than another.
const COUNT: u64 = 200;
const BATCH: u64 = 64;
/// Another compiler may differ so much.
const TOLERANCE: f64 = 0.05;

fn instructions(program: &Path, action: &str) -> Result<f64, String> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .args([
            "--toggle-collect=*measured*",
            "--callgrind-out-file=/dev/null",
        ])
        .arg(program)
        .args([action, &COUNT.to_string()]);
    // A string instruction would count as one for each byte.
    command.env_clear().env(
        "GLIBC_TUNABLES",
        "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824",
    );
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let output = command
        .output()
        .map_err(|e| format!("valgrind: {e}; install it, the counts are those of callgrind"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    match line.and_then(|(_, count)| count.trim().parse::<f64>().ok()) {
        Some(count) if output.status.success() => Ok(count / COUNT as f64),
        _ => Err(format!("{}: {text}", program.display())),
    }
}

/// Counts all and compares with what is recorded.
pub fn all(program: &Path) -> Result<(), String> {
    let transmit = instructions(program, "transmit")?;
    let large = instructions(program, "large")?;
    let interrupt = instructions(program, "interrupt")?;
    let batch = instructions(program, "batch")?;
    let waiting = instructions(program, "wakeup")?;
    let recorded = Cost::recorded();
    let mut same = true;
    for (name, found, recorded) in [
        ("transmit", transmit, recorded.transmit),
        ("copy", (large - transmit) / 7.0, recorded.copy),
        (
            "reclaim",
            (batch - interrupt) / BATCH as f64,
            recorded.reclaim,
        ),
        ("interrupt", interrupt, recorded.interrupt),
        ("wakeup", waiting - batch, recorded.wakeup),
    ] {
        let near = (found / recorded as f64 - 1.0).abs() <= TOLERANCE;
        same &= near;
        let verdict = if near { "" } else { ", which is another" };
        println!("{name} {found:.0} (recorded: {recorded}{verdict})");
    }
    if same {
        return Ok(());
    }
    Err(
        "costs have changed: see why, and record them in tests/cosim/src/completion/cost.txt"
            .into(),
    )
}
