//! rtl/formal/tasks.toml: the proofs and their mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::docs::tracked_files;
use crate::error::Failure;
use crate::filelist::FileList;

/// Where the table and the harnesses are.
const FOLDER: &str = "rtl/formal";
const TABLE: &str = "rtl/formal/tasks.toml";

/// All proofs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// In the order in which they are listed.
    #[serde(rename = "proof")]
    pub proofs: Vec<Proof>,
}

/// One proof.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// How people call it.
    pub name: String,
    /// The harness; the name with `_fv` if there is none.
    top: Option<String>,
    /// Parameters of the harness.
    #[serde(default)]
    pub parameters: BTreeMap<String, u64>,
    /// Without a bound or with one.
    pub mode: Mode,
    /// Cycles, if there is a bound.
    #[serde(default)]
    pub depth: u32,
    /// What ABC does before; a simplification that some proofs need.
    pub prepare: Option<String>,
    /// Registers without a reset begin at 0, as the configuration of an FPGA leaves them.
    #[serde(default)]
    pub zero: bool,
    /// Assertions inside the blocks themselves that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    /// What is made smaller for the proof, and for its mutants.
    #[serde(default)]
    pub smaller: Vec<Smaller>,
    /// Seeded mistakes.
    #[serde(default, rename = "mutant")]
    pub mutants: Vec<Mutant>,
}

/// A size that is no parameter: in one file, one text is another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smaller {
    /// The source that it is in.
    pub file: String,
    /// A text that stands there exactly once.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
}

/// A seeded mistake: in one file, one text is another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What it does wrong, in a few words with hyphens.
    pub name: String,
    /// The source that it is in.
    pub file: String,
    /// A text that stands there exactly once.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
    /// Cycles within which the mistake shows; 0 if that takes so many that the engine of proofs
    /// without a bound finds it sooner.
    #[serde(default = "mutant_depth")]
    pub depth: u32,
}

const fn mutant_depth() -> u32 {
    20
}

/// How far a proof reaches.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// For ever.
    Prove,
    /// To a number of cycles from reset.
    Bmc,
}

impl Mode {
    /// As SymbiYosys calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prove => "prove",
            Self::Bmc => "bmc",
        }
    }
}

impl Proof {
    /// Module of the harness.
    pub fn top(&self) -> String {
        self.top
            .clone()
            .unwrap_or_else(|| format!("{}_fv", self.name))
    }

    /// The bound, for people.
    pub fn depth_text(&self) -> String {
        match self.mode {
            Mode::Prove => "any".to_owned(),
            Mode::Bmc => self.depth.to_string(),
        }
    }

    /// The sources that the harness needs, packages first.
    pub fn sources(&self, root: &Path) -> Result<Vec<String>, Failure> {
        let list = FileList::read(root)?;
        let mut modules: BTreeMap<String, String> = BTreeMap::new();
        let mut packages = Vec::new();
        for file in list
            .files
            .into_iter()
            .chain(tracked_files(root, &[FOLDER])?)
        {
            let Some(stem) = file.strip_suffix(".sv").and_then(|f| f.rsplit('/').next()) else {
                continue;
            };
            if stem.ends_with("_pkg") {
                packages.push((stem.to_owned(), file));
            } else {
                modules.insert(stem.to_owned(), file);
            }
        }
        let top = self.top();
        if !modules.contains_key(&top) {
            return Err(Failure::Message(format!(
                "{TABLE}: proof {} wants {FOLDER}/{top}.sv, which does not exist",
                self.name
            )));
        }
        let mut words: BTreeSet<String> = BTreeSet::new();
        let mut wanted = vec![top];
        let mut files = BTreeSet::new();
        while let Some(module) = wanted.pop() {
            let Some(file) = modules.get(&module).filter(|file| !files.contains(*file)) else {
                continue;
            };
            files.insert(file.clone());
            let path = root.join(file);
            let text = fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
            for word in identifiers(&text) {
                if words.insert(word.to_owned()) && modules.contains_key(word) {
                    wanted.push(word.to_owned());
                }
            }
        }
        // Packages import packages; there are few, and all are short.
        let needed = packages.iter().any(|(name, _)| words.contains(name));
        let packages = packages
            .into_iter()
            .filter(|_| needed)
            .map(|(_, file)| file);
        Ok(packages.chain(files).collect())
    }
}

/// Words outside comments.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|word| !word.is_empty())
}

impl Mutant {
    /// The source with the mistake in it.
    pub fn apply(&self, text: &str) -> Result<String, Failure> {
        let who = format!("mutant {}", self.name);
        replace_once(&who, &self.file, &self.find, &self.replace, text)
    }
}

impl Smaller {
    /// The source with the smaller size in it.
    pub fn apply(&self, text: &str) -> Result<String, Failure> {
        replace_once("a size", &self.file, &self.find, &self.replace, text)
    }
}

fn replace_once(
    who: &str,
    file: &str,
    find: &str,
    replace: &str,
    text: &str,
) -> Result<String, Failure> {
    let count = text.matches(find).count();
    if count == 1 {
        return Ok(text.replacen(find, replace, 1));
    }
    Err(Failure::Message(format!(
        "{TABLE}: {who} wants {find:?} once in {file}, where it stands {count} times; take a text of \
         that file as it is now"
    )))
}

impl Table {
    /// Reads the table.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let path = root.join(TABLE);
        let text = fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
        Self::parse(&text)
    }

    /// The table in `text`, if it makes sense.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let table: Self =
            toml::from_str(text).map_err(|error| Failure::Message(format!("{TABLE}: {error}")))?;
        let mut names = BTreeSet::new();
        for proof in &table.proofs {
            let name = &proof.name;
            let wrong = if !names.insert(name) {
                "is listed twice"
            } else if proof.mutants.is_empty() {
                "has no mutant: a proof that never failed shows nothing"
            } else if proof.mode == Mode::Bmc && proof.depth == 0 {
                "is bounded and has no depth"
            } else {
                continue;
            };
            return Err(Failure::Message(format!("{TABLE}: proof {name} {wrong}")));
        }
        Ok(table)
    }

    /// The proofs of these names, or all.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&Proof>, Failure> {
        let known = |name: &String| self.proofs.iter().any(|proof| proof.name == *name);
        if let Some(name) = names.iter().find(|name| !known(name)) {
            let all: Vec<&str> = self.proofs.iter().map(|p| p.name.as_str()).collect();
            return Err(Failure::Message(format!(
                "there is no proof {name}: there are {}",
                all.join(", ")
            )));
        }
        let chosen = |proof: &&Proof| names.is_empty() || names.contains(&proof.name);
        Ok(self.proofs.iter().filter(chosen).collect())
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn mutant_must_find_its_text_exactly_once() {
        let mutant = Mutant {
            name: "m".to_owned(),
            file: "f.sv".to_owned(),
            find: "a + 1".to_owned(),
            replace: "a".to_owned(),
            depth: 1,
        };
        assert_eq!(mutant.apply("x = a + 1;").expect("once"), "x = a;");
        assert!(mutant.apply("x = a;").is_err());
        assert!(mutant.apply("x = a + 1; y = a + 1;").is_err());
    }

    #[test]
    fn size_must_find_its_text_exactly_once() {
        let smaller = Smaller {
            file: "f.sv".to_owned(),
            find: "Depth = 64".to_owned(),
            replace: "Depth = 4".to_owned(),
        };
        assert_eq!(smaller.apply("Depth = 64;").expect("once"), "Depth = 4;");
        assert!(smaller.apply("Depth = 32;").is_err());
    }

    #[test]
    fn proof_without_mutant_or_depth_or_with_a_name_twice_is_refused() {
        let mutant =
            "[[proof.mutant]]\nname = \"m\"\nfile = \"f\"\nfind = \"x\"\nreplace = \"y\"\n";
        let good = format!("[[proof]]\nname = \"a\"\nmode = \"bmc\"\ndepth = 9\n{mutant}");
        assert!(Table::parse(&good).is_ok());
        for bad in [
            good.replace(mutant, ""),
            good.replace("depth = 9", ""),
            format!("{good}{good}"),
            good.replace("depth", "deep"),
        ] {
            assert!(Table::parse(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn words_in_comments_name_no_module() {
        let found: Vec<&str> = identifiers("prim_fifo #(.W(1)) u; // like prim_skid").collect();
        assert_eq!(found, ["prim_fifo", "W", "1", "u"]);
    }
}
