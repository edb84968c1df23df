//! What runs in the guest: the agent, our own command and a hostile driver, linked statically, since
//! the guest has no libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::program::run;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const AGENT: &str = "ferronic-guest-agent";
const COMMAND: &str = "ferronic";
const HOSTILE: &str = "hostile";

/// Paths of programs for the guest.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The agent.
    pub agent: PathBuf,
    /// `ferronic`.
    pub ferronic: PathBuf,
    /// A driver that does what none should.
    pub hostile: PathBuf,
}

impl Programs {
    /// Builds them, in a target directory of their own: with other flags they would throw away what
    /// the tests were built from.
    pub fn build(root: &Path) -> Result<Self, GuestError> {
        let target = target_directory(root).join("guest");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .current_dir(root)
            .args(["build", "--quiet", "--release", "--target", TARGET])
            .args(["--package", AGENT, "--package", "ferronic-cli"])
            .arg("--bins")
            .arg("--target-dir")
            .arg(&target)
            .env("CARGO_PROFILE_RELEASE_STRIP", "true")
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        // Set for the tests; a build script of another crate must not see them.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text == "CARGO_MANIFEST_DIR" {
                command.env_remove(&name);
            }
        }
        run(&mut command)?;
        let dir = target.join(TARGET).join("release");
        Ok(Self {
            agent: dir.join(AGENT),
            ferronic: dir.join(COMMAND),
            hostile: dir.join(HOSTILE),
        })
    }
}

fn target_directory(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root.join(dir),
        None => root.join("target"),
    }
}
