//! The list of RTL sources: `rtl/core.f`, packages first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Paths relative to the repository root, in the order in which Verilator reads them.
pub struct Sources {
    /// Modules and packages.
    pub files: Vec<PathBuf>,
    /// Include files: part of the content, not of the command line.
    pub headers: Vec<PathBuf>,
    /// Where the include files are.
    pub include_dirs: Vec<PathBuf>,
}

/// The sources of the core, or what is wrong with the list.
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

/// Those of `sources` that the module `top` needs: all packages, and the modules that are named in
/// what is needed already. A module lies in a file of its name.
pub fn closure(root: &Path, sources: &Sources, top: &str) -> Result<Sources, String> {
    let stem = |path: &Path| {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let names: BTreeSet<String> = sources.files.iter().map(|file| stem(file)).collect();
    if !names.contains(top) {
        return Err(format!("rtl/core.f names no file {top}.sv"));
    }
    let mut wanted: BTreeSet<String> = names
        .iter()
        .filter(|name| name.ends_with("_pkg"))
        .cloned()
        .collect();
    let mut open = vec![top.to_owned()];
    while let Some(name) = open.pop() {
        if !wanted.insert(name.clone()) {
            continue;
        }
        for file in sources.files.iter().filter(|file| stem(file) == name) {
            let path = root.join(file);
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let code = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""));
            let words = code.flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_'));
            open.extend(
                words
                    .filter(|word| names.contains(*word))
                    .map(str::to_owned),
            );
        }
    }
    Ok(Sources {
        files: sources
            .files
            .iter()
            .filter(|file| {
                wanted.contains(&stem(file)) || file.extension().is_some_and(|e| e == "vlt")
            })
            .cloned()
            .collect(),
        headers: sources.headers.clone(),
        include_dirs: sources.include_dirs.clone(),
    })
}
