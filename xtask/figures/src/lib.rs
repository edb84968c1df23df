//! Figures: what is measured, as a table for people and as JSON for programs, from one list.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// One measured number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured, one of the names that the design fixes.
    pub name: String,
    /// Under which circumstances.
    pub params: BTreeMap<String, serde_json::Value>,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

impl Figure {
    /// A figure without circumstances; [`Figure::with`] adds them.
    pub fn new(name: &str, value: f64, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            params: BTreeMap::new(),
            value,
            unit: unit.to_owned(),
        }
    }

    /// The figure with one more circumstance.
    #[must_use]
    pub fn with(mut self, param: &str, value: impl Into<serde_json::Value>) -> Self {
        self.params.insert(param.to_owned(), value.into());
        self
    }
}

/// The figures of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The command that measured them.
    pub command: String,
    /// The figures, in the order of printing.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Writes the report for programs.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(path, text + "\n")
    }

    /// The report for people: a row a figure name, a column a set of circumstances, in order of
    /// appearance; `columns` lists the parameters that tell columns apart.
    pub fn table(&self, columns: &[&str]) -> String {
        let mut heads: Vec<String> = Vec::new();
        let mut rows: Vec<(String, BTreeMap<String, String>)> = Vec::new();
        for figure in &self.figures {
            let values = columns
                .iter()
                .filter_map(|column| match figure.params.get(*column)? {
                    serde_json::Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                })
                .collect::<Vec<_>>();
            let head = values.join(" ");
            if !heads.contains(&head) {
                heads.push(head.clone());
            }
            let label = if figure.unit == "1" {
                figure.name.clone()
            } else {
                format!("{} ({})", figure.name, figure.unit)
            };
            let text = number(figure.value);
            match rows
                .iter_mut()
                .find(|(name, cells)| *name == label && !cells.contains_key(&head))
            {
                Some((_, cells)) => {
                    cells.insert(head, text);
                }
                None => rows.push((label, BTreeMap::from([(head, text)]))),
            }
        }
        let wide = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut out = format!("{:wide$}", "");
        for head in &heads {
            out += &format!("  {head:>0$}", head.len().max(12));
        }
        for (name, cells) in &rows {
            out += &format!("\n{name:wide$}");
            for head in &heads {
                let text = cells.get(head).map_or("-", String::as_str);
                out += &format!("  {text:>0$}", head.len().max(12));
            }
        }
        out
    }
}

/// Few digits, but none that matters is lost.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let digits = format!("{}", value.abs() as u64);
        let mut out = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        if value < 0.0 { format!("-{out}") } else { out }
    } else if value.abs() >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    fn figure(name: &str, direction: &str, value: f64) -> Figure {
        Figure::new(name, value, "1").with("direction", direction)
    }

    #[test]
    fn table_has_a_row_a_name_and_a_column_a_direction() {
        let report = Report {
            command: "demo".to_owned(),
            figures: vec![
                figure("frames", "rx", 1234.0),
                figure("frames", "tx", 7.0),
                figure("share", "rx", 0.5),
            ],
        };
        let table = report.table(&["direction"]);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines,
            [
                vec!["rx", "tx"],
                vec!["frames", "1,234", "7"],
                vec!["share", "0.500", "-"]
            ]
        );
    }

    #[test]
    fn figures_survive_the_way_through_a_file() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let report = Report {
            command: "demo".to_owned(),
            figures: vec![figure("frames", "rx", 3.0)],
        };
        let path = dir.path().join("figures.json");
        report.write(&path).expect("written");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(serde_json::from_str::<Report>(&text).ok(), Some(report));
    }
}
