//! The pieces of a guest: QEMU with vfio-user, and a stock kernel with its modules.
//!
//! They come once, from Debian's suites on the mirror that this machine's own apt names, into
//! `.tools/guest`; no root, and nothing of the host changes. Each step leaves a stamp, so that a kit
//! that was interrupted goes on where it was.

mod apt;
mod dpdk;
mod kernel;
mod qemu;

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

pub use qemu::Qemu;

use crate::{Extra, GuestError};
use apt::Apt;

/// Raised when a kit of before does not do any more.
const VERSION: u32 = 1;

/// Packages with their dependencies: QEMU, and what unpacks the kernel.
const PROGRAMS: [&str; 3] = ["qemu-system-x86", "zstd", "xz-utils"];
/// Of one package, which depends on that of a version.
const KERNEL: &str = "linux-image-cloud-amd64";
/// The unpacked packages.
const TREE: &str = "root";
/// For looking around in a guest.
const EXTRAS: [&str; 1] = ["busybox-static"];

/// Everything that a guest is made of.
#[derive(Clone, Debug)]
pub struct Kit {
    /// How to run QEMU.
    pub qemu: Qemu,
    /// The kernel, as an ELF file that QEMU starts directly.
    pub kernel: PathBuf,
    /// Its modules, not compressed.
    pub modules: PathBuf,
    /// A shell for the guest, if there is one.
    pub busybox: Option<PathBuf>,
    dir: PathBuf,
}

impl Kit {
    /// The kit of the clone at `root`; fetches what is missing.
    ///
    /// # Errors
    /// [`GuestError::Unavailable`] when it cannot be had here; others when it is broken.
    pub fn get(root: &Path) -> Result<Self, GuestError> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(GuestError::Unavailable(
                "the guest's kernel is for x86-64".to_owned(),
            ));
        }
        let dir = root.join(".tools/guest");
        fs::create_dir_all(&dir).map_err(GuestError::file(&dir))?;
        let tree = dir.join(TREE);
        let kernel = dir.join("kernel");
        once(&dir, "stamp", &kit(), || fetch(&dir, &tree))?;
        once(&dir, "stamp-kernel", &(kit() + &kernel::contents()), || {
            eprintln!("guest kit: kernel and modules");
            kernel::prepare(&tree, &kernel)
        })?;
        let busybox = tree.join("usr/bin/busybox");
        Ok(Self {
            qemu: Qemu::find(&tree)?,
            kernel: kernel.join(kernel::IMAGE),
            modules: kernel.join(kernel::MODULES),
            busybox: busybox.is_file().then_some(busybox),
            dir,
        })
    }

    /// DPDK's testpmd for a guest; fetched when it is first asked for.
    ///
    /// # Errors
    /// As [`Kit::get`].
    pub fn dpdk(&self) -> Result<Vec<Extra>, GuestError> {
        let tree = self.dir.join("dpdk");
        once(&self.dir, "stamp-dpdk", &kit(), || {
            dpdk::fetch(&self.dir, &tree)
        })?;
        dpdk::files(&tree, &self.dir.join(TREE))
    }
}

/// What the stamps of packages say.
fn kit() -> String {
    format!("kit {VERSION}\n")
}

fn fetch(dir: &Path, tree: &Path) -> Result<(), GuestError> {
    let apt = Apt::new(dir)?;
    eprintln!("guest kit: package lists (10 MB) and packages (75 MB), once");
    apt.update()?;
    let package = apt.dependencies(KERNEL)?;
    let package = package
        .first()
        .ok_or_else(|| GuestError::program("guest kit", format!("{KERNEL} depends on nothing")))?;
    let mut packages = apt.install_files(&PROGRAMS)?;
    packages.extend(apt.download(&[package])?);
    packages.extend(apt.download(&EXTRAS)?);
    eprintln!("guest kit: unpacking {} packages", packages.len());
    apt::unpack(&packages, tree)
}

/// Does something that takes long, unless its stamp says as `wanted` that it was done.
fn once(
    dir: &Path,
    stamp: &str,
    wanted: &str,
    work: impl FnOnce() -> Result<(), GuestError>,
) -> Result<(), GuestError> {
    let _lock = lock(&dir.join("lock"))?;
    let stamp = dir.join(stamp);
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    work()?;
    fs::write(&stamp, wanted).map_err(GuestError::file(&stamp))
}

/// Two tests started at once must not fetch into one another.
fn lock(path: &Path) -> Result<File, GuestError> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(GuestError::file(path))?;
    if file.try_lock().is_err() {
        eprintln!("guest kit: waiting for another command that fetches it");
        file.lock().map_err(GuestError::file(path))?;
    }
    Ok(file)
}
