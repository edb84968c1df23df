//! rtl/core.f: the sources of the core in the order in which tools read them.

use std::fs;
use std::path::Path;

use crate::error::Failure;

/// The list, with paths relative to the top of the repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileList {
    /// Sources, packages first.
    pub files: Vec<String>,
    /// Verilator's waivers, which no other tool reads.
    pub waivers: Vec<String>,
    /// Where `include finds its files.
    pub include_dirs: Vec<String>,
}

impl FileList {
    /// Reads rtl/core.f and checks that what it names exists.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let path = root.join("rtl/core.f");
        let text = fs::read_to_string(&path).map_err(|source| Failure::io(&path, source))?;
        let list = Self::parse(&text);
        let missing: Vec<&str> = list
            .files
            .iter()
            .chain(&list.waivers)
            .map(String::as_str)
            .filter(|file| !root.join(file).is_file())
            .collect();
        if !missing.is_empty() {
            return Err(Failure::Message(format!(
                "rtl/core.f names what does not exist: {}",
                missing.join(", ")
            )));
        }
        Ok(list)
    }

    fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or_default();
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(dirs) = line.strip_prefix("+incdir+") {
                list.include_dirs.extend(dirs.split('+').map(str::to_owned));
            } else if line.ends_with(".vlt") {
                list.waivers.push(line.to_owned());
            } else if !line.is_empty() {
                list.files.push(line.to_owned());
            }
        }
        if list.include_dirs.is_empty() {
            list.include_dirs.push("rtl/common".to_owned());
        }
        list
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn file_list_has_comments_and_include_directories() {
        let text =
            "// core\n+incdir+rtl/common\nrtl/w.vlt\nrtl/a_pkg.sv # first\n\nrtl/b.sv // last\n";
        let list = FileList::parse(text);
        assert_eq!(list.files, ["rtl/a_pkg.sv", "rtl/b.sv"]);
        assert_eq!(list.waivers, ["rtl/w.vlt"]);
        assert_eq!(list.include_dirs, ["rtl/common"]);
    }
}
