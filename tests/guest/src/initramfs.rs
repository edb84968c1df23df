//! The first and only file system of a guest.

use std::fs;
use std::path::Path;

use crate::GuestError;
use crate::cpio::Archive;
use crate::kit::Kit;
use crate::programs::Programs;

/// Directories that are mount points or have files below.
const DIRECTORIES: [&str; 6] = ["bin", "dev", "modules", "proc", "sys", "tmp"];

/// A file for the guest beside those that each has.
#[derive(Clone, Debug)]
pub struct Extra {
    /// Where, without a slash before it.
    pub path: String,
    /// What.
    pub content: Content,
}

/// What an [`Extra`] is.
#[derive(Clone, Debug)]
pub enum Content {
    /// A file.
    Data(Vec<u8>),
    /// A symbolic link to this path.
    Link(String),
}

/// Makes the archive.
pub fn build(kit: &Kit, programs: &Programs, extras: &[Extra]) -> Result<Vec<u8>, GuestError> {
    let read = |path: &Path| fs::read(path).map_err(GuestError::file(path));
    let mut archive = Archive::default();
    // The root itself: by itself it is open to everybody, which DPDK refuses.
    archive.directory(".");
    for path in DIRECTORIES {
        archive.directory(path);
    }
    archive.file("init", &read(&programs.agent)?);
    archive.file("bin/ferronic", &read(&programs.ferronic)?);
    archive.file("bin/hostile", &read(&programs.hostile)?);
    if let Some(busybox) = &kit.busybox {
        archive.file("bin/busybox", &read(busybox)?);
        archive.link("bin/sh", "busybox");
    }
    let modules = fs::read_dir(&kit.modules).map_err(GuestError::file(&kit.modules))?;
    for entry in modules.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        archive.file(&format!("modules/{name}"), &read(&entry.path())?);
    }
    let mut made: Vec<String> = DIRECTORIES.map(str::to_owned).to_vec();
    for extra in extras {
        let parts: Vec<&str> = extra.path.split('/').collect();
        for depth in 1..parts.len() {
            let dir = parts[..depth].join("/");
            if !made.contains(&dir) {
                archive.directory(&dir);
                made.push(dir);
            }
        }
        match &extra.content {
            Content::Data(data) => archive.file(&extra.path, data),
            Content::Link(target) => archive.link(&extra.path, target),
        }
    }
    Ok(archive.finish())
}
