//! Debian's packages without Debian's package database: apt with a state of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::GuestError;
use crate::program::{on_path, output, run};

/// The suites; the second has a QEMU that knows vfio-user.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];
const NEWER: &str = "trixie-backports";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Names a mirror where this machine's apt names none of Debian's.
const MIRROR: &str = "FERRONIC_DEBIAN_MIRROR";

/// apt with everything it keeps under one directory.
pub struct Apt {
    dir: PathBuf,
}

impl Apt {
    /// Prepares the state.
    pub fn new(kit: &Path) -> Result<Self, GuestError> {
        for program in ["apt-get", "apt-cache", "dpkg-deb"] {
            if !on_path(program) {
                return Err(GuestError::Unavailable(format!(
                    "{program} is missing, and the kit comes as Debian packages; docs/guest.md says \
                     how to use a machine of your own"
                )));
            }
        }
        if !Path::new(KEYRING).is_file() {
            return Err(GuestError::Unavailable(format!(
                "{KEYRING} is missing: install debian-archive-keyring"
            )));
        }
        let mirror = mirror()?;
        let dir = kit.join("apt");
        for sub in ["lists/partial", "cache/archives/partial", "download"] {
            let path = dir.join(sub);
            fs::create_dir_all(&path).map_err(GuestError::file(&path))?;
        }
        let sources: String = SUITES
            .iter()
            .map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))
            .collect();
        for (name, text) in [("sources.list", sources.as_str()), ("status", "")] {
            let path = dir.join(name);
            fs::write(&path, text).map_err(GuestError::file(&path))?;
        }
        Ok(Self { dir })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let dir = self.dir.display();
        for option in [
            format!("Dir::State={dir}"),
            format!("Dir::State::lists={dir}/lists"),
            format!("Dir::State::status={dir}/status"),
            format!("Dir::Cache={dir}/cache"),
            format!("Dir::Etc::sourcelist={dir}/sources.list"),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            "Dir::Etc::preferences=/dev/null".to_owned(),
            "Dir::Etc::preferencesparts=/dev/null".to_owned(),
            "Acquire::Languages=none".to_owned(),
            // Mirrors that stand still serve Release files that have run out.
            "Acquire::Check-Valid-Until=false".to_owned(),
            "Acquire::Retries=3".to_owned(),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures::=amd64".to_owned(),
            "APT::Install-Recommends=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Debug::NoLocking=true".to_owned(),
            // What other packages want to have done after an update is about the host.
            "APT::Update::Post-Invoke::=true".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Fetches the lists.
    pub fn update(&self) -> Result<(), GuestError> {
        let mut command = self.command("apt-get");
        command.args(["update", "-qq", "--error-on=any"]);
        run(&mut command).map_err(|error| {
            GuestError::Unavailable(format!("the package lists cannot be fetched: {error}"))
        })
    }

    /// The packages that `package` depends on.
    pub fn dependencies(&self, package: &str) -> Result<Vec<String>, GuestError> {
        let mut command = self.command("apt-cache");
        command.args(["depends", "--important", package]);
        let text = output(&mut command)?;
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "));
        Ok(names.map(str::to_owned).collect())
    }

    /// Fetches packages with everything they depend on.
    pub fn install_files(&self, packages: &[&str]) -> Result<Vec<PathBuf>, GuestError> {
        let mut command = self.command("apt-get");
        command.args(["install", "-qq", "-y", "--print-uris", "-t", NEWER]);
        command.args(packages);
        // Each line: 'URI' file size sum.
        let names = output(&mut command)?;
        let mut command = self.command("apt-get");
        command.args(["install", "-qq", "-y", "--download-only", "-t", NEWER]);
        command.args(packages);
        run(&mut command)?;
        let archives = self.dir.join("cache/archives");
        let files: Vec<PathBuf> = names
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .map(|name| archives.join(name))
            .collect();
        // Once fetched a package is not named again.
        if files.iter().all(|file| file.is_file()) && !files.is_empty() {
            return Ok(files);
        }
        debs(&archives)
    }

    /// Fetches packages without what they depend on.
    pub fn download(&self, packages: &[&str]) -> Result<Vec<PathBuf>, GuestError> {
        let dir = self.dir.join("download");
        let mut command = self.command("apt-get");
        command.args(["download", "-qq", "-t", NEWER]);
        command.args(packages).current_dir(&dir);
        run(&mut command)?;
        let mut files = debs(&dir)?;
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            packages
                .iter()
                .any(|package| name.split('_').next() == Some(package))
        });
        Ok(files)
    }
}

fn debs(dir: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(GuestError::file(dir))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    files.sort();
    Ok(files)
}

/// Unpacks packages into `tree`, which is there whole or not at all.
pub fn unpack(packages: &[PathBuf], tree: &Path) -> Result<(), GuestError> {
    let partial = tree.with_extension("part");
    for path in [&partial, tree] {
        if path.exists() {
            fs::remove_dir_all(path).map_err(GuestError::file(path))?;
        }
    }
    fs::create_dir_all(&partial).map_err(GuestError::file(&partial))?;
    for package in packages {
        run(Command::new("dpkg-deb")
            .arg("-x")
            .arg(package)
            .arg(&partial))?;
    }
    fs::rename(&partial, tree).map_err(GuestError::file(tree))
}

/// A mirror of Debian: of the environment, else of this machine's own sources.
fn mirror() -> Result<String, GuestError> {
    if let Some(mirror) = std::env::var(MIRROR).ok().filter(|text| !text.is_empty()) {
        return Ok(mirror);
    }
    let mut texts = vec![fs::read_to_string("/etc/apt/sources.list").unwrap_or_default()];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|e| e.path()).collect();
        paths.sort();
        texts.extend(
            paths
                .iter()
                .filter_map(|path| fs::read_to_string(path).ok()),
        );
    }
    texts
        .iter()
        .find_map(|text| debian_uri(text))
        .ok_or_else(|| {
            GuestError::Unavailable(format!(
                "apt names no mirror of Debian here: set {MIRROR} to one"
            ))
        })
}

/// The first address in a list of sources, of either form, that is one of Debian's main archive.
fn debian_uri(text: &str) -> Option<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace)
        .find(|word| {
            let path = word.trim_end_matches('/');
            word.contains("://") && path.ends_with("/debian")
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_is_found_in_sources_of_both_forms() {
        let old = "# deb http://not.example/debian x main\n\
                   deb [arch=amd64] http://a.example/debian-security x main\n\
                   deb [arch=amd64] http://b.example/debian x main\n";
        assert_eq!(debian_uri(old).as_deref(), Some("http://b.example/debian"));
        let new = "Types: deb\nURIs: http://c.example/debian/\nSuites: x\n";
        assert_eq!(debian_uri(new).as_deref(), Some("http://c.example/debian/"));
        assert_eq!(debian_uri("deb http://d.example/ubuntu y main\n"), None);
    }
}
