//! Where the figures of a bench go.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ferronic_figures::{Figure, Report};

/// Options that every bench has.
#[derive(clap::Args)]
pub struct Output {
    /// A shorter measurement
    #[arg(long)]
    pub quick: bool,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw them to this file as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl Output {
    /// Writes the figures of `command` where they are wanted; `draw` draws them to a file.
    ///
    /// # Errors
    /// When a file cannot be written, with its name.
    pub fn write(
        &self,
        command: &str,
        figures: Vec<Figure>,
        draw: impl FnOnce(&Path, &Report) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let report = Report {
            command: command.to_owned(),
            figures,
        };
        let failed = |path: &Path, error: &dyn Error| {
            format!(
                "{}: {error}; choose a path that can be written",
                path.display()
            )
        };
        if let Some(path) = &self.json {
            report.write(path).map_err(|error| failed(path, &error))?;
        }
        if let Some(path) = &self.plot {
            draw(path, &report).map_err(|error| failed(path, &*error))?;
        }
        Ok(())
    }
}

/// How a bench ends: an error is said.
pub fn exit(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
