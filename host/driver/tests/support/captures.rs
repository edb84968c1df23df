//! Frames of captures: those of the repository, and those that `FERRONIC_CAPTURES` names.

use std::path::{Path, PathBuf};

/// The frames of each capture that is at hand, by its name.
pub fn all() -> Vec<(String, Vec<Vec<u8>>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut directories = vec![root.join("tests/data")];
    match std::env::var_os("FERRONIC_CAPTURES") {
        // A relative path is one from the top of the repository.
        Some(given) => directories.push(root.join(PathBuf::from(given))),
        None => {
            let required = std::env::var("FERRONIC_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|what| what == "captures"),
                "FERRONIC_REQUIRE lists captures, but FERRONIC_CAPTURES names no directory of them"
            );
            eprintln!("skipped: captures from outside (FERRONIC_CAPTURES is not set)");
        }
    }
    let mut all = Vec::new();
    for directory in directories {
        let files = std::fs::read_dir(&directory)
            .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
            .map(|entry| entry.expect("the directory can be read").path())
            .filter(|path| path.extension().is_some_and(|e| e == "pcap"));
        let before = all.len();
        all.extend(files.map(|path| (path.display().to_string(), frames(&path))));
        assert!(
            all.len() > before,
            "{} has no captures",
            directory.display()
        );
    }
    all
}

/// The frames of a pcap file of a little-endian machine that were captured whole.
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let word = |at: usize| {
        let word = bytes[at..at + 4].try_into().expect("4 bytes are 4 bytes");
        u32::from_le_bytes(word) as usize
    };
    assert!(
        matches!(word(0), 0xa1b2_c3d4 | 0xa1b2_3c4d),
        "{} is no pcap file",
        path.display()
    );
    let mut at = 24;
    let mut frames = Vec::new();
    while at < bytes.len() {
        let (len, whole) = (word(at + 8), word(at + 12));
        at += 16 + len;
        if len == whole {
            frames.push(bytes[at - len..at].to_vec());
        }
    }
    assert!(!frames.is_empty(), "{} has no frames", path.display());
    frames
}
