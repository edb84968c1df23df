//! The list of RTL sources: `rtl/core.f`, packages first.

use std::fs;
use std::path::{Path, PathBuf};

/// Paths relative to the repository root, in the order in which Verilator reads them.
pub struct Sources {
    pub files: Vec<PathBuf>,
    /// Include files: part of the content, not of the command line.
    pub headers: Vec<PathBuf>,
    pub include_dirs: Vec<PathBuf>,
}

pub fn collect(root: &Path) -> Result<Sources, String> {
    println!("cargo::rerun-if-changed={}", root.join("rtl").display());
    let list = root.join("rtl/core.f");
    let mut include_dirs = vec![PathBuf::from("rtl/common")];
    let files = if list.is_file() {
        let text = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
        let mut files = Vec::new();
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or("");
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            } else if let Some(dirs) = line.strip_prefix("+incdir+") {
                include_dirs.extend(dirs.split('+').map(PathBuf::from));
            } else {
                files.push(PathBuf::from(line));
            }
        }
        files
    } else {
        glob(root)?
    };
    include_dirs.dedup();
    for file in &files {
        if !root.join(file).is_file() {
            return Err(format!(
                "rtl/core.f names {}, which does not exist",
                file.display()
            ));
        }
    }
    let mut headers = Vec::new();
    for dir in &include_dirs {
        headers.extend(with_extension(root, dir, "svh")?);
    }
    Ok(Sources {
        files,
        headers,
        include_dirs,
    })
}

/// Every source of the core's blocks, for a tree without `rtl/core.f`.
fn glob(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for dir in ["common", "pcie", "irq", "virtio", "rx", "tx", "regs"] {
        let dir = Path::new("rtl").join(dir);
        if root.join(&dir).is_dir() {
            files.extend(with_extension(root, &dir, "sv")?);
        }
    }
    files.push(PathBuf::from("rtl/ferronic_core.sv"));
    files.sort_by_key(|path| !path.to_string_lossy().ends_with("_pkg.sv"));
    Ok(files)
}

fn with_extension(root: &Path, dir: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let full = root.join(dir);
    let mut found = Vec::new();
    let entries = fs::read_dir(&full).map_err(|e| format!("{}: {e}", full.display()))?;
    for entry in entries {
        let path = entry
            .map_err(|e| format!("{}: {e}", full.display()))?
            .path();
        if path.extension().is_some_and(|e| e == extension)
            && let Some(name) = path.file_name()
        {
            found.push(dir.join(name));
        }
    }
    found.sort();
    Ok(found)
}
