//! DPDK's testpmd with what it needs of the kit's libraries.

use std::fs;
use std::path::{Path, PathBuf};

use super::apt::{self, Apt};
use super::qemu::{LIBRARIES, loader};
use crate::program::output;
use crate::{Content, Extra, GuestError};

/// The package with the program. Most of what it depends on serves to build against DPDK, so only
/// libraries are taken.
const PACKAGE: &str = "dpdk-dev";
/// Drivers that testpmd loads when it starts; no package asks for them.
const PLUGINS: [&str; 4] = [
    "librte-bus-pci25",
    "librte-bus-vdev25",
    "librte-mempool-ring25",
    "librte-net-virtio25",
];
const PROGRAM: &str = "usr/bin/dpdk-testpmd";
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
/// Loaded by the C library when a thread ends.
const UNWINDER: &str = "libgcc_s.so.1";

/// Fetches the packages into `tree`.
pub fn fetch(kit: &Path, tree: &Path) -> Result<(), GuestError> {
    let apt = Apt::new(kit)?;
    eprintln!("guest kit: DPDK (10 MB), once");
    let mut names: Vec<String> = apt
        .dependencies(PACKAGE)?
        .into_iter()
        .filter(|name| is_library(name))
        .collect();
    names.push(PACKAGE.to_owned());
    names.extend(PLUGINS.map(str::to_owned));
    names.sort();
    names.dedup();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    apt::unpack(&apt.download(&names)?, tree)
}

fn is_library(name: &str) -> bool {
    let library = name.starts_with("lib") || name == "ibverbs-providers";
    library && !name.ends_with("-dev")
}

/// Everything that testpmd needs in a guest.
pub fn files(tree: &Path, system: &Path) -> Result<Vec<Extra>, GuestError> {
    let tree = &fs::canonicalize(tree).map_err(GuestError::file(tree))?;
    let plugins = plugins(tree)?;
    let path = std::env::join_paths([tree.join(LIBRARIES), system.join(LIBRARIES)])
        .map_err(|error| GuestError::program("guest kit", error))?;
    let mut libraries: Vec<PathBuf> = vec![system.join(LIBRARIES).join(UNWINDER)];
    for object in plugins.iter().chain([&tree.join(PROGRAM)]) {
        let mut command = loader(system);
        command.arg("--library-path").arg(&path).arg("--list");
        let list = output(command.arg(object))?;
        // name => path (address)
        for line in list.lines().filter_map(|line| line.split_once("=> ")) {
            let found = line.1.split(" (").next().unwrap_or_default();
            if !found.starts_with('/') {
                let why = format!("{} is not among the packages", line.0.trim());
                return Err(GuestError::program("guest kit", why));
            }
            libraries.push(found.into());
        }
    }
    let mut files = vec![
        extra(LOADER, &system.join("usr").join(LOADER))?,
        extra(PROGRAM, &tree.join(PROGRAM))?,
    ];
    libraries.sort();
    libraries.dedup();
    for library in libraries.iter().filter(|path| !path.ends_with(LOADER)) {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        let path = format!("{LIBRARIES}/{name}");
        let real = fs::canonicalize(library).map_err(GuestError::file(library))?;
        // A plug-in that is a library too must be one file: loaded twice, it refuses.
        files.push(if plugins.contains(&real) {
            Extra {
                path,
                content: Content::Link(format!("/{}", inside(tree, &real))),
            }
        } else {
            extra(&path, library)?
        });
    }
    for plugin in &plugins {
        files.push(extra(&inside(tree, plugin), plugin)?);
    }
    // testpmd keeps its state there.
    files.push(Extra {
        path: "var/run/.keep".to_owned(),
        content: Content::Data(Vec::new()),
    });
    Ok(files)
}

fn inside(tree: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(tree).unwrap_or(path);
    inside.display().to_string()
}

fn extra(path: &str, from: &Path) -> Result<Extra, GuestError> {
    Ok(Extra {
        path: path.to_owned(),
        content: Content::Data(fs::read(from).map_err(GuestError::file(from))?),
    })
}

/// The plug-ins by the name that testpmd looks for: with their whole version.
fn plugins(tree: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let top = tree.join(LIBRARIES).join("dpdk");
    let mut found = Vec::new();
    for dir in fs::read_dir(&top).map_err(GuestError::file(&top))? {
        let dir = dir.map_err(GuestError::file(&top))?.path();
        for entry in fs::read_dir(&dir).map_err(GuestError::file(&dir))? {
            let path = entry.map_err(GuestError::file(&dir))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let wanted = PLUGINS.iter().any(|package| {
                // librte-net-virtio25 holds librte_net_virtio.so.25.0.
                let stem = package.trim_end_matches(|c: char| c.is_ascii_digit());
                name.starts_with(&format!("{}.so.", stem.replace('-', "_")))
            });
            if wanted && name.matches('.').count() == 3 {
                found.push(path.clone());
            }
        }
    }
    for path in &mut found {
        *path = fs::canonicalize(&*path).map_err(GuestError::file(path))?;
    }
    found.sort();
    if found.len() == PLUGINS.len() {
        Ok(found)
    } else {
        let why = format!("plug-ins of DPDK are missing: there are {found:?}");
        Err(GuestError::program("guest kit", why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_are_taken() {
        assert!(is_library("librte-eal25") && is_library("ibverbs-providers"));
        assert!(!is_library("libdpdk-dev") && !is_library("python3"));
    }
}
