//! QEMU: that of the machine if it knows vfio-user, else that of the kit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::program::{on_path, output};

const PROGRAM: &str = "qemu-system-x86_64";
const DEVICE: &str = "vfio-user-pci";
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
/// Where Debian has libraries.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// How QEMU is run.
#[derive(Clone, Debug)]
pub struct Qemu {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Its version, for people.
    pub version: String,
}

impl Qemu {
    /// QEMU of the search path or of the unpacked packages.
    pub fn find(tree: &Path) -> Result<Self, GuestError> {
        if let Some(qemu) = Self::of_the_system() {
            return Ok(qemu);
        }
        let mut arguments = loaded(tree, &format!("usr/bin/{PROGRAM}"));
        for data in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
            arguments.push("-L".into());
            arguments.push(tree.join(data).into());
        }
        let qemu = Self {
            program: tree.join(LOADER),
            arguments,
            version: String::new(),
        };
        let version = version(&mut qemu.command())?;
        Ok(Self { version, ..qemu })
    }

    fn of_the_system() -> Option<Self> {
        if !on_path(PROGRAM) {
            return None;
        }
        let qemu = Self {
            program: PROGRAM.into(),
            arguments: Vec::new(),
            version: version(&mut Command::new(PROGRAM)).ok()?,
        };
        let devices = output(qemu.command().args(["-device", "help"])).ok()?;
        devices.contains(DEVICE).then_some(qemu)
    }

    /// QEMU, with what it needs to find its files.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

fn version(command: &mut Command) -> Result<String, GuestError> {
    let text = output(command.arg("--version"))?;
    let first = text.lines().next().unwrap_or_default();
    Ok(first
        .trim_start_matches("QEMU emulator version ")
        .to_owned())
}

/// Arguments of the loader that run a program of the unpacked packages with their own libraries.
fn loaded(tree: &Path, program: &str) -> Vec<OsString> {
    vec![
        "--library-path".into(),
        tree.join(LIBRARIES).into(),
        tree.join(program).into(),
    ]
}

/// The loader of the unpacked packages.
pub fn loader(tree: &Path) -> Command {
    Command::new(tree.join(LOADER))
}

/// A program of the unpacked packages.
pub fn private(tree: &Path, program: &str) -> Command {
    let mut command = loader(tree);
    command.args(loaded(tree, program));
    command
}
