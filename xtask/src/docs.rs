//! The book under docs/ and the API documentation.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::error::Failure;
use crate::process::{self, cargo};

/// `cargo xtask doc`.
pub fn build(root: &Path) -> Result<(), Failure> {
    // The simulator's build script compiles the model, and needs Verilator for it.
    crate::setup::setup(root)?;
    check(root)?;
    process::run("cargo doc", &mut rustdoc(root))?;
    println!("The book begins at docs/README.md, the API at target/doc/ferronic/index.html");
    Ok(())
}

/// The API documentation, with warnings denied.
pub fn rustdoc(root: &Path) -> Command {
    let mut command = cargo(root);
    command
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "--deny warnings");
    command
}

/// Every relative link leads to a file, and where its text is a name in backquotes, the file has
/// that name in it: so the walk through the code does not outlive the code.
pub fn check(root: &Path) -> Result<(), Failure> {
    let mut faults = 0;
    for file in tracked_files(root, &[])? {
        if !file.ends_with(".md") {
            continue;
        }
        let path = root.join(&file);
        let text = fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
        let dir = path.parent().unwrap_or(root);
        for (number, line) in text.lines().enumerate() {
            for link in links(line) {
                if let Some(fault) = check_link(dir, &link) {
                    eprintln!("{file}:{}: {fault}", number + 1);
                    faults += 1;
                }
            }
        }
    }
    if faults == 0 {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "{faults} links lead nowhere, named above"
    )))
}

/// Files that git knows or would add, relative to the top; below `under` if that is not empty.
pub fn tracked_files(root: &Path, under: &[&str]) -> Result<Vec<String>, Failure> {
    let mut command = Command::new("git");
    command
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = process::output(command.arg("--").args(under)).ok_or_else(|| {
        Failure::Message("git ls-files failed: this must run in a clone, with git".to_owned())
    })?;
    let mut files: Vec<String> = listed
        .lines()
        .filter(|file| root.join(file).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

#[derive(Debug, PartialEq, Eq)]
struct Link {
    text: String,
    target: String,
}

/// The links `[text](target)` of one line.
fn links(line: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let text = rest[..middle]
            .rfind('[')
            .map(|open| &rest[open + 1..middle]);
        let after = &rest[middle + 2..];
        let Some(close) = after.find(')') else { break };
        if let Some(text) = text {
            found.push(Link {
                text: text.to_owned(),
                target: after[..close].to_owned(),
            });
        }
        rest = &after[close + 1..];
    }
    found
}

fn check_link(dir: &Path, link: &Link) -> Option<String> {
    let target = link.target.split('#').next().unwrap_or_default();
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let path = normal(&dir.join(target));
    if !path.exists() {
        return Some(format!("{target} does not exist"));
    }
    let name = link.text.strip_prefix('`')?.strip_suffix('`')?;
    // A path as the text says no more than the target does.
    if name.contains('/') || name.contains('.') || !path.is_file() {
        return None;
    }
    let text = fs::read_to_string(&path).ok()?;
    let last = name
        .trim_end_matches("()")
        .rsplit("::")
        .next()
        .unwrap_or(name);
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let there = text.split(|c: char| !word(c)).any(|found| found == last);
    (!there).then(|| format!("{target} has no `{name}` in it"))
}

/// The path without `.` and `..`, which need not be resolved on disk.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn links_are_found_in_a_line() {
        let found = links("see [`a`](../x.rs) and [the b](b.md#part), not [c] (d)");
        let pairs: Vec<_> = found
            .iter()
            .map(|l| (l.text.as_str(), l.target.as_str()))
            .collect();
        assert_eq!(pairs, [("`a`", "../x.rs"), ("the b", "b.md#part")]);
    }

    #[test]
    fn link_to_a_name_that_the_file_lost_is_a_fault() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(
            dir.path().join("x.rs"),
            "fn kept() {}\nfn renamed_now() {}\n",
        )
        .expect("written");
        let link = |text: &str, target: &str| Link {
            text: text.into(),
            target: target.into(),
        };
        assert_eq!(check_link(dir.path(), &link("`m::kept()`", "x.rs")), None);
        assert!(check_link(dir.path(), &link("`renamed`", "x.rs")).is_some());
        assert!(check_link(dir.path(), &link("other", "y.rs")).is_some());
        assert_eq!(
            check_link(dir.path(), &link("web", "https://example.org/y")),
            None
        );
    }
}
