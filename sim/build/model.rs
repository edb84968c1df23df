//! The model of the core: what Verilator and the C++ compiler are asked for.

use std::fs;
use std::path::{Path, PathBuf};

use ferronic_verilate::{Built, Sources, Toolchain, Unit, read, run};

pub struct Job {
    pub toolchain: Toolchain,
    pub sources: Sources,
    pub shim: PathBuf,
    pub queue_pairs: u32,
}

impl Job {
    /// The model for one data path width, with its shim.
    pub fn model(&self, width: u32) -> Result<Built, String> {
        let prefix = format!("Vferronic{width}");
        let mut args: Vec<String> = [
            "--cc",
            "--assert",
            "--no-timing",
            "--x-assign",
            "unique",
            "--x-initial",
            "unique",
            "-O3",
            "--output-split",
            "5000",
            "--output-split-cfuncs",
            "500",
            // Lint is a job of its own; here a warning must not stop an engineer's experiment.
            "-Wno-fatal",
            "-Wno-lint",
            "-Wno-style",
            "--top-module",
            "ferronic_core",
        ]
        .map(str::to_owned)
        .to_vec();
        args.push("--prefix".to_owned());
        args.push(prefix.clone());
        args.push(format!("-GDataW={width}"));
        args.push(format!("-GQueuePairs={}", self.queue_pairs));
        if self.toolchain.trace {
            args.extend(["--trace-fst", "--trace-structs"].map(str::to_owned));
        }
        if self.toolchain.coverage {
            args.extend(["--coverage-line", "--coverage-user"].map(str::to_owned));
        }
        for dir in &self.sources.include_dirs {
            args.push(format!("-I{}", dir.display()));
        }

        let mut hasher = self.toolchain.hasher()?;
        hasher.text(include_str!("model.rs"));
        for name in ["shim.cpp", "shim.h"] {
            hasher.bytes(&read(&self.shim.join(name))?);
        }
        args.iter().for_each(|arg| hasher.text(arg));
        for file in self.sources.files.iter().chain(&self.sources.headers) {
            hasher.text(&file.to_string_lossy());
            hasher.bytes(&read(&self.toolchain.root.join(file))?);
        }
        let name = format!("ferronic_model{width}");
        self.toolchain.cached(&hasher.finish(), &name, |dir| {
            eprintln!("Verilating ferronic_core at {width} bits");
            let mut command = self.toolchain.verilator_command()?;
            command.args(&args).arg("--Mdir").arg(dir);
            command.args(&self.sources.files);
            run(&mut command, "Verilator")?;
            self.compile_model(dir, &prefix, width, &name)
        })
    }

    fn compile_model(
        &self,
        dir: &Path,
        prefix: &str,
        width: u32,
        name: &str,
    ) -> Result<(), String> {
        // Files with `Slow` in the name run once (constructors, initial blocks).
        let mut units = Vec::new();
        for entry in fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))? {
            let path = entry.map_err(|e| format!("{}: {e}", dir.display()))?.path();
            if path.extension().is_some_and(|e| e == "cpp") {
                let slow = path.to_string_lossy().contains("__Slow");
                let mut unit = Unit::new(path, if slow { "-O0" } else { "-O2" });
                unit.header = Some(format!("{prefix}__pch.h"));
                units.push(unit);
            }
        }
        units.sort_by(|a, b| a.source.cmp(&b.source));
        let mut shim = Unit::new(self.shim.join("shim.cpp"), "-O2");
        shim.object = format!("shim{width}.o");
        shim.args = vec![
            format!("-DFERRONIC_DATA_W={width}"),
            format!("-DFERRONIC_MODEL={prefix}"),
            format!("-DFERRONIC_MODEL_HEADER=\"{prefix}.h\""),
        ];
        units.push(shim);
        self.toolchain.compile(dir, &units, name)
    }
}
