//! One run of SymbiYosys: a proof, or one of its mutants.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::error::Failure;
use crate::hash::Fnv;

use super::table::{Mode, Mutant, Proof};

/// A run that takes longer has an error; whole seconds.
const TIMEOUT: u32 = 900;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// All assertions hold.
    Pass,
    /// One does not.
    Fail,
    /// It took too long.
    Timeout,
    /// The tools could not tell.
    #[default]
    Error,
}

impl Verdict {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Timeout => "TIMEOUT",
            Self::Error => "ERROR",
        }
    }
}

/// What came of a run, and how.
#[derive(Debug, Default)]
pub struct Outcome {
    pub verdict: Verdict,
    pub seconds: f64,
    /// From an earlier run.
    pub kept: bool,
    /// The assertion that failed, or where to read on.
    pub why: String,
}

/// One run.
pub struct Job {
    /// `prim_fifo`, or `prim_fifo-overwrites`.
    name: String,
    mutant: bool,
    /// Path and text of each file.
    files: Vec<(String, String)>,
    script: String,
    hash: u128,
}

impl Job {
    /// A proof.
    pub fn proof(root: &Path, proof: &Proof, version: &str) -> Result<Self, Failure> {
        Self::new(root, proof, None, version)
    }

    /// A proof on sources with a mistake, within a bound.
    pub fn mutant(
        root: &Path,
        proof: &Proof,
        mutant: &Mutant,
        version: &str,
    ) -> Result<Self, Failure> {
        Self::new(root, proof, Some(mutant), version)
    }

    fn new(
        root: &Path,
        proof: &Proof,
        mutant: Option<&Mutant>,
        version: &str,
    ) -> Result<Self, Failure> {
        let sources = proof.sources(root)?;
        if let Some(mutant) = mutant
            && !sources.contains(&mutant.file)
        {
            return Err(Failure::Message(format!(
                "mutant {} changes {}, which proof {} does not read",
                mutant.name, mutant.file, proof.name
            )));
        }
        if let Some(smaller) = proof.smaller.iter().find(|s| !sources.contains(&s.file)) {
            return Err(Failure::Message(format!(
                "proof {} makes {} smaller, which it does not read",
                proof.name, smaller.file
            )));
        }
        let mut files = Vec::new();
        for file in sources.iter().map(String::as_str).chain([HEADER]) {
            let path = root.join(file);
            let mut text =
                fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
            for smaller in proof.smaller.iter().filter(|smaller| smaller.file == file) {
                text = smaller.apply(&text)?;
            }
            if let Some(mutant) = mutant.filter(|mutant| mutant.file == file) {
                text = mutant.apply(&text)?;
            }
            files.push((file.to_owned(), text));
        }
        let script = script(proof, mutant, &sources);
        let mut hash = Fnv::default();
        for part in [version, &script] {
            hash.add(part.as_bytes());
        }
        for (name, text) in &files {
            hash.add(name.as_bytes());
            hash.add(text.as_bytes());
        }
        Ok(Self {
            name: mutant.map_or_else(
                || proof.name.clone(),
                |mutant| format!("{}-{}", proof.name, mutant.name),
            ),
            mutant: mutant.is_some(),
            files,
            script,
            hash: hash.value(),
        })
    }

    /// What is wanted of it.
    const fn wanted(&self) -> Verdict {
        if self.mutant {
            Verdict::Fail
        } else {
            Verdict::Pass
        }
    }

    /// A line for people.
    pub fn describe(&self, outcome: &Outcome) -> String {
        let name = &self.name;
        let said = match (self.mutant, outcome.verdict) {
            (true, Verdict::Fail) => format!("caught by {}", outcome.why),
            (true, Verdict::Pass) => "NOT caught".to_owned(),
            (_, Verdict::Pass) => "holds".to_owned(),
            (_, other) => format!("{}: {}", other.name(), outcome.why),
        };
        if outcome.kept {
            format!("{name} {said} (unchanged)")
        } else {
            format!("{name} {said} ({:.1} s)", outcome.seconds)
        }
    }

    /// Runs it, or finds that it was run before and came out as wanted.
    pub fn run(&self, root: &Path, bin: &Path, again: bool) -> Result<Outcome, Failure> {
        let kept = root.join(format!(
            ".tools/cache/formal/{}-{:032x}",
            self.name, self.hash
        ));
        if !again && let Ok(text) = fs::read_to_string(&kept) {
            let (seconds, why) = text.split_once(' ').unwrap_or((&text, ""));
            return Ok(Outcome {
                verdict: self.wanted(),
                seconds: seconds.parse().unwrap_or_default(),
                kept: true,
                why: why.to_owned(),
            });
        }
        let directory = self.lay_out(root)?;
        let outcome = self.sby(&directory, bin)?;
        if outcome.verdict == self.wanted() {
            self.keep(&kept, &outcome)?;
        }
        Ok(outcome)
    }

    /// A directory with copies of all that is read: the tools see nothing else.
    fn lay_out(&self, root: &Path) -> Result<PathBuf, Failure> {
        let directory = root.join("target/formal").join(&self.name);
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(|source| Failure::io(&directory, source))?;
        }
        let task = [("task.sby".to_owned(), self.script.clone())];
        for (name, text) in self.files.iter().chain(&task) {
            let path = directory.join(name);
            let parent = path.parent().unwrap_or(&directory);
            fs::create_dir_all(parent).map_err(|source| Failure::io(parent, source))?;
            fs::write(&path, text).map_err(|source| Failure::io(&path, source))?;
        }
        Ok(directory)
    }

    fn sby(&self, directory: &Path, bin: &Path) -> Result<Outcome, Failure> {
        let log = directory.join("output.log");
        let failed = |source| Failure::io(&log, source);
        let file = File::create(&log).map_err(failed)?;
        let second = file.try_clone().map_err(failed)?;
        let mut path = vec![bin.to_owned()];
        path.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path = std::env::join_paths(path)
            .map_err(|error| Failure::Message(format!("the search path: {error}")))?;
        let begin = Instant::now();
        let sby = bin.join("sby");
        let status = Command::new(&sby)
            .current_dir(directory)
            .args(["-f", "task.sby"])
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(second)
            .status()
            .map_err(|source| Failure::Start {
                program: sby.display().to_string(),
                source,
                remedy: "; delete .tools/ and run `./x setup`".to_owned(),
            })?;
        let text = fs::read_to_string(&log).map_err(failed)?;
        // The exit codes of SymbiYosys.
        let verdict = match status.code() {
            Some(0) => Verdict::Pass,
            Some(2) => Verdict::Fail,
            Some(8) => Verdict::Timeout,
            _ => Verdict::Error,
        };
        let why = failed_assertion(&text).unwrap_or_else(|| format!("see {}", log.display()));
        Ok(Outcome {
            verdict,
            seconds: begin.elapsed().as_secs_f64(),
            kept: false,
            why,
        })
    }

    /// Notes a result that came out as wanted; older ones of the name are of no more use.
    fn keep(&self, kept: &Path, outcome: &Outcome) -> Result<(), Failure> {
        let folder = kept.parent().unwrap_or(kept);
        let failed = |source| Failure::io(folder, source);
        fs::create_dir_all(folder).map_err(failed)?;
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hash = name
                .strip_prefix(&self.name)
                .and_then(|rest| rest.strip_prefix('-'));
            if hash.is_some_and(|hash| hash.len() == 32 && !hash.contains('-')) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        fs::write(kept, format!("{:.1} {}", outcome.seconds, outcome.why)).map_err(failed)
    }
}

const HEADER: &str = "rtl/common/ferronic_assert.svh";

/// What SymbiYosys is asked to do.
fn script(proof: &Proof, mutant: Option<&Mutant>, sources: &[String]) -> String {
    let (mode, depth) = match mutant {
        Some(mutant) if mutant.depth == 0 => (Mode::Prove, 1),
        Some(mutant) => (Mode::Bmc, mutant.depth),
        None => (proof.mode, proof.depth.max(1)),
    };
    let top = proof.top();
    let parameters: String = proof
        .parameters
        .iter()
        .map(|(name, value)| format!(" -G {name}={value}"))
        .collect();
    let engine = match mode {
        // Invariants are found by the engine itself, so that harnesses need to know no inside.
        Mode::Prove => "pdr",
        Mode::Bmc => "bmc3",
    };
    let prepare: String = proof
        .prepare
        .iter()
        .filter(|_| mode == Mode::Prove)
        .map(|command| format!("{command}; "))
        .collect();
    let without: String = proof
        .without
        .iter()
        .map(|name| format!("chformal -assert -remove c:*{name}\n"))
        .collect();
    let zero = if proof.zero {
        "setundef -init -zero\nopt\n"
    } else {
        ""
    };
    let files: String = sources
        .iter()
        .map(String::as_str)
        .chain([HEADER])
        .map(|file| format!("{file} {file}\n"))
        .collect();
    format!(
        "[options]\nmode {mode}\ndepth {depth}\ntimeout {TIMEOUT}\n\n[engines]\nabc {prepare}{engine}\n\n\
         [script]\n\
         read_slang --threads 1 --no-synthesis-define -D FORMAL --top {top}{parameters} \
         -I rtl/common {sources}\nprep -top {top}\n{without}{zero}\n[files]\n{files}",
        mode = mode.name(),
        sources = sources.join(" ")
    )
}

/// `msix_fv.NotWhileMasked` of sby's closing lines.
fn failed_assertion(log: &str) -> Option<String> {
    let line = log
        .lines()
        .find(|line| line.contains("failed assertion "))?;
    let name = line.split("failed assertion ").nth(1)?;
    name.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn failed_assertion_is_read_from_the_closing_lines() {
        let log = "SBY 1:2:3 [task] summary: engine_0 (abc pdr) returned FAIL\n\
                   SBY 1:2:3 [task] summary:   failed assertion a_fv.Name at a_fv.sv:9.5-9.7 step 3\n";
        assert_eq!(failed_assertion(log).as_deref(), Some("a_fv.Name"));
        assert_eq!(failed_assertion("summary: PASS"), None);
    }
}
