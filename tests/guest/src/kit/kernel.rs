//! The kernel as QEMU likes it best: an ELF file, and modules that need no decompressor.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::qemu::private;
use crate::GuestError;
use crate::program::run;

/// The kernel in its directory.
pub const IMAGE: &str = "vmlinux";
/// The modules in its directory, all in one level.
pub const MODULES: &str = "modules";

/// Modules that scenarios load; found by name anywhere in the tree of modules.
const WANTED: [&str; 11] = [
    "llc",
    "stp",
    "bridge",
    "failover",
    "net_failover",
    "virtio_net",
    "irqbypass",
    "vfio",
    "vfio_iommu_type1",
    "vfio-pci-core",
    "vfio-pci",
];

/// Fields of the head of a bzImage (Linux boot protocol 2.08 and later).
const SETUP_SECTORS: usize = 0x1f1;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The length of what was compressed follows the payload and counts as a part of it.
const TRAILER: usize = 4;

/// What a prepared kernel is made of: with another list it has to be made anew.
pub fn contents() -> String {
    format!("{}\n", WANTED.join(" "))
}

/// Makes `to` of the kernel package in `tree`.
pub fn prepare(tree: &Path, to: &Path) -> Result<(), GuestError> {
    let partial = to.with_extension("part");
    for path in [partial.as_path(), to] {
        if path.exists() {
            fs::remove_dir_all(path).map_err(GuestError::file(path))?;
        }
    }
    let modules = partial.join(MODULES);
    fs::create_dir_all(&modules).map_err(GuestError::file(&modules))?;
    let image = entry(&tree.join("boot"), "vmlinuz-")?;
    let packed = partial.join("payload.zst");
    let data = fs::read(&image).map_err(GuestError::file(&image))?;
    let payload = payload(&data).ok_or_else(|| {
        GuestError::program(
            "guest kit",
            format!("{} is not a kernel packed with zstd", image.display()),
        )
    })?;
    fs::write(&packed, payload).map_err(GuestError::file(&packed))?;
    let mut zstd = private(tree, "usr/bin/zstd");
    zstd.args(["-d", "-q", "-o"]);
    zstd.arg(partial.join(IMAGE)).arg(&packed);
    run(&mut zstd)?;
    fs::remove_file(&packed).map_err(GuestError::file(&packed))?;

    let mut found = Vec::new();
    find_modules(&tree.join("usr/lib/modules"), &mut found)?;
    for name in WANTED {
        let packed = found
            .iter()
            .find(|path| stem(path) == name)
            .ok_or_else(|| {
                GuestError::program("guest kit", format!("the kernel has no module {name}"))
            })?;
        let path = modules.join(format!("{name}.ko"));
        let file = File::create(&path).map_err(GuestError::file(&path))?;
        let mut xz = private(tree, "usr/bin/xz");
        xz.args(["-d", "-c"]).arg(packed).stdout(Stdio::from(file));
        run(&mut xz)?;
    }
    fs::rename(&partial, to).map_err(GuestError::file(to))
}

/// What is packed in a bzImage.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let setup = usize::from(*image.get(SETUP_SECTORS)?);
    let begin = ((setup + 1) * 512).checked_add(word(PAYLOAD_OFFSET)?)?;
    let length = word(PAYLOAD_LENGTH)?.checked_sub(TRAILER)?;
    let payload = image.get(begin..begin.checked_add(length)?)?;
    payload.starts_with(&ZSTD_MAGIC).then_some(payload)
}

fn entry(dir: &Path, prefix: &str) -> Result<PathBuf, GuestError> {
    fs::read_dir(dir)
        .map_err(GuestError::file(dir))?
        .filter_map(Result::ok)
        .find(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .ok_or_else(|| {
            GuestError::program("guest kit", format!("no {prefix}* in {}", dir.display()))
        })
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn find_modules(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), GuestError> {
    for entry in fs::read_dir(dir).map_err(GuestError::file(dir))? {
        let path = entry.map_err(GuestError::file(dir))?.path();
        if path.is_dir() {
            find_modules(&path, found)?;
        } else if path.to_string_lossy().ends_with(".ko.xz") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_cut_where_the_head_says() {
        let mut image = vec![0; 2048];
        image[SETUP_SECTORS] = 1;
        image[PAYLOAD_OFFSET] = 16;
        image[PAYLOAD_LENGTH] = 12;
        image[1040..1044].copy_from_slice(&ZSTD_MAGIC);
        image[1047] = 7;
        assert_eq!(payload(&image).map(|p| (p.len(), p[7])), Some((8, 7)));
        image[1040] = 0;
        assert_eq!(payload(&image), None);
        assert_eq!(payload(&image[..600]), None);
    }
}
