//! Where the socket of a card is.

use std::fs::{DirBuilder, symlink_metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ferronic::pci::PciAddress;

/// Bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// The name of a card that all names of it have in common.
pub fn canonical(device: &str) -> String {
    if let Ok(address) = device
        .strip_prefix("vfio:")
        .unwrap_or(device)
        .parse::<PciAddress>()
    {
        return format!("vfio:{address}");
    }
    match device.split_once(':') {
        Some(("vfio-user", path)) => {
            let whole = Path::new(path).canonicalize();
            format!("vfio-user:{}", whole.unwrap_or(path.into()).display())
        }
        _ => device.to_owned(),
    }
}

/// The socket of a card, by its canonical name, that there may be.
///
/// It is in XDG_RUNTIME_DIR, or in a folder of the user's own where there is none.
pub fn socket(card: &str) -> io::Result<PathBuf> {
    let folder = folder();
    check(&folder)?;
    // Names of cards may be longer than names of sockets.
    Ok(folder.join(format!("{:016x}.sock", hash(card))))
}

/// The same, to be made; the folder is, if it is missing.
pub fn socket_to_be(card: &str) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(folder()) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => socket(card),
    }
}

fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(runtime) if runtime.is_absolute() => runtime.join("ferronic"),
        _ => {
            let uid = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("ferronic-{uid}"))
        }
    }
}

/// An error if somebody else could have put something into the folder.
fn check(folder: &Path) -> io::Result<()> {
    let found = symlink_metadata(folder)?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && own && found.mode() & OTHERS == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} is no folder that only this user can use; remove it, or set XDG_RUNTIME_DIR",
        folder.display()
    )))
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn names_of_one_card_lead_to_one_socket() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("nic");
        std::fs::write(&path, "").expect("file");
        symlink(&path, dir.path().join("link")).expect("link");
        let name = |file: &str| format!("vfio-user:{}", dir.path().join(file).display());
        assert_eq!(canonical(&name("link")), canonical(&name("nic")));
        assert_ne!(canonical(&name("link")), canonical(&name("other")));
        assert_eq!(canonical("vfio:0000:01:00.0"), "vfio:0000:01:00.0");
        assert_eq!(canonical("0000:01:00.0"), "vfio:0000:01:00.0");
    }

    #[test]
    fn folder_that_others_can_use_is_refused() {
        let dir = tempfile::tempdir().expect("directory");
        let folder = dir.path().join("a");
        std::fs::create_dir(&folder).expect("folder");
        let with = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&folder, mode).expect("mode");
            check(&folder)
        };
        assert!(with(0o700).is_ok());
        for mode in [0o701, 0o720, 0o740, 0o755, 0o1777] {
            let error = with(mode).expect_err("it is open to others");
            assert!(error.to_string().contains("XDG_RUNTIME_DIR"), "{error}");
        }
        with(0o700).expect("it is closed again");
        let link = dir.path().join("b");
        symlink(&folder, &link).expect("link");
        assert!(check(&link).is_err());
        assert!(check(&dir.path().join("c")).is_err());
    }
}
