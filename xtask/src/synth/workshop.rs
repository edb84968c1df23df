//! Runs of Yosys and nextpnr, each kept by a hash of all that went into it.
//!
//! The tools are WebAssembly and see nothing but the directory they are started in, so each run has
//! one of its own below target/synth, with copies of the sources: an edit meanwhile does not mix
//! two states of them either.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Failure;
use crate::hash::Fnv;
use crate::process::run_logged;

/// A run of one tool.
pub struct Run<'a> {
    /// What people call it, and the beginning of its directory's name.
    pub name: String,
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Files that it reads: their names in the directory, and where they are.
    pub inputs: Vec<(String, PathBuf)>,
    /// A file that it reads, and its text.
    pub script: Option<(&'a str, String)>,
    /// The pinned versions of the tools.
    pub version: String,
}

impl Run<'_> {
    /// The directory with what the run wrote; at once if it was run before.
    pub fn directory(&self, root: &Path) -> Result<PathBuf, Failure> {
        let top = root.join("target/synth");
        fs::create_dir_all(&top).map_err(|source| Failure::io(&top, source))?;
        let _lock = lock(&top.join(format!("{}.lock", self.name)))?;
        let inputs = self.read_inputs()?;
        let directory = top.join(format!("{}-{:032x}", self.name, self.hash(&inputs)));
        let done = directory.join("done");
        if done.exists() {
            eprintln!("synth: {}: unchanged, kept from an earlier run", self.name);
            return Ok(directory);
        }
        self.forget_others(&top)?;
        for (name, text) in &inputs {
            let path = directory.join(name);
            let parent = path.parent().unwrap_or(&directory);
            fs::create_dir_all(parent).map_err(|source| Failure::io(parent, source))?;
            fs::write(&path, text).map_err(|source| Failure::io(&path, source))?;
        }
        let mut command = Command::new(self.program);
        command.current_dir(&directory).args(&self.arguments);
        run_logged(&self.name, &mut command, &directory.join("output.log"))?;
        File::create(&done).map_err(|source| Failure::io(&done, source))?;
        Ok(directory)
    }

    fn read_inputs(&self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut texts = Vec::new();
        for (name, path) in &self.inputs {
            let text = fs::read(path).map_err(|source| Failure::io(path, source))?;
            texts.push((name.clone(), text));
        }
        if let Some((name, text)) = &self.script {
            texts.push(((*name).to_owned(), text.clone().into_bytes()));
        }
        Ok(texts)
    }

    fn hash(&self, inputs: &[(String, Vec<u8>)]) -> u128 {
        let mut hash = Fnv::default();
        hash.add(self.version.as_bytes());
        for argument in &self.arguments {
            hash.add(argument.as_bytes());
        }
        for (name, text) in inputs {
            hash.add(name.as_bytes());
            hash.add(text);
        }
        hash.value()
    }

    /// Only the newest run of a name is kept: a netlist takes 20 MB and more.
    fn forget_others(&self, top: &Path) -> Result<(), Failure> {
        let failed = |source| Failure::io(top, source);
        for entry in fs::read_dir(top).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hash = name
                .strip_prefix(&self.name)
                .and_then(|rest| rest.strip_prefix('-'));
            if hash.is_some_and(|hash| hash.len() == 32) {
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Two commands started at once must not write into one another's files.
fn lock(path: &Path) -> Result<File, Failure> {
    let failed = |source| Failure::io(path, source);
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(path);
    let file = file.map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

/// Reads a JSON file that a run wrote.
pub fn json(path: &Path) -> Result<Value, Failure> {
    let text = fs::read(path).map_err(|source| Failure::io(path, source))?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::Message(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn run_is_repeated_only_if_something_changed() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let source = root.path().join("a.sv");
        fs::write(&source, "one").expect("written");
        let script = "cat rtl/a.sv >> ../trace; printf '{}' > out.json";
        let run = |argument: &str| {
            let arguments = ["-c", script, argument].map(str::to_owned);
            let run = Run {
                name: "step".to_owned(),
                program: Path::new("/bin/sh"),
                arguments: arguments.to_vec(),
                inputs: vec![("rtl/a.sv".to_owned(), source.clone())],
                script: None,
                version: "1".to_owned(),
            };
            run.directory(root.path()).expect("run")
        };
        let first = run("x");
        assert_eq!(run("x"), first);
        fs::write(&source, "two").expect("written");
        let second = run("x");
        assert_ne!(second, first);
        assert!(!first.exists());
        assert_ne!(run("y"), second);
        let trace = fs::read_to_string(root.path().join("target/synth/trace"));
        assert_eq!(trace.expect("written"), "onetwotwo");
    }
}
