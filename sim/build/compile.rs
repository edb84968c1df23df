//! Runs Verilator and the C++ compiler, behind the cache.
//!
//! The makefile that Verilator writes is not used: the tools named in it are those of the machine
//! that Verilator was built on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hash::Hasher;
use crate::sources::Sources;

/// Change it when the way of building changes without a change of flags.
const SCHEME: &str = "1";

pub struct Job {
    pub root: PathBuf,
    pub sources: Sources,
    pub cache: PathBuf,
    pub shim: PathBuf,
    pub verilator: PathBuf,
    pub cxx: String,
    pub queue_pairs: u32,
    pub trace: bool,
    pub coverage: bool,
    pub jobs: usize,
}

/// A static library in the cache.
pub struct Built {
    pub dir: PathBuf,
    pub name: String,
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
        if self.trace {
            args.extend(["--trace-fst", "--trace-structs"].map(str::to_owned));
        }
        if self.coverage {
            args.extend(["--coverage-line", "--coverage-user"].map(str::to_owned));
        }
        for dir in &self.sources.include_dirs {
            args.push(format!("-I{}", dir.display()));
        }

        let mut hasher = self.hasher()?;
        args.iter().for_each(|arg| hasher.text(arg));
        for file in self.sources.files.iter().chain(&self.sources.headers) {
            hasher.text(&file.to_string_lossy());
            hasher.bytes(&read(&self.root.join(file))?);
        }
        let name = format!("ferronic_model{width}");
        self.cached(&hasher.finish(), &name, |dir| {
            eprintln!("Verilating ferronic_core at {width} bits");
            let mut command = self.verilator_command()?;
            command.args(&args).arg("--Mdir").arg(dir);
            command.args(&self.sources.files);
            run(&mut command, "Verilator")?;
            self.compile_model(dir, &prefix, width, &name)
        })
    }

    /// Verilator's run-time library and the hooks that carry its errors to Rust.
    pub fn runtime(&self) -> Result<Built, String> {
        let mut hasher = self.hasher()?;
        hasher.text("runtime");
        let name = "ferronic_verilated".to_owned();
        self.cached(&hasher.finish(), &name, |dir| {
            let include = self.verilator_root()?.join("include");
            let mut units = vec!["verilated.cpp", "verilated_threads.cpp"];
            if self.trace {
                units.push("verilated_fst_c.cpp");
            }
            if self.coverage {
                units.push("verilated_cov.cpp");
            }
            let mut units: Vec<Unit> = units
                .into_iter()
                .map(|unit| Unit::new(include.join(unit), "-O2"))
                .collect();
            units.push(Unit::new(self.shim.join("hooks.cpp"), "-O2"));
            self.compile(dir, &units, &name)
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
        self.compile(dir, &units, name)
    }

    /// Compiles `units` into `lib<name>.a`, `self.jobs` at a time.
    fn compile(&self, dir: &Path, units: &[Unit], name: &str) -> Result<(), String> {
        let base = self.cxx_flags(dir)?;
        let hooks = self.shim.join("hooks.h");
        for level in ["-O0", "-O2"] {
            if let Some(header) = units
                .iter()
                .find(|u| u.level == level)
                .and_then(|u| u.header.as_ref())
            {
                let mut command = Command::new(&self.cxx);
                command.current_dir(dir).args(&base).arg(level);
                command.arg("-include").arg(&hooks);
                command.args(["-x", "c++-header", header, "-o"]);
                command.arg(format!("{header}{level}.gch"));
                run(&mut command, &self.cxx)?;
            }
        }
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, units.len()) {
                scope.spawn(|| {
                    while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if failure.lock().is_ok_and(|f| f.is_some()) {
                            return;
                        }
                        let mut command = Command::new(&self.cxx);
                        command.current_dir(dir).args(&base).arg(unit.level);
                        // A precompiled header must come first; it holds the hooks already.
                        match &unit.header {
                            Some(header) => command
                                .arg("-include")
                                .arg(format!("{header}{}", unit.level)),
                            None => command.arg("-include").arg(&hooks),
                        };
                        command.args(&unit.args).arg("-c").arg(&unit.source);
                        command.arg("-o").arg(&unit.object);
                        if let Err(message) = run(&mut command, &self.cxx)
                            && let Ok(mut slot) = failure.lock()
                        {
                            slot.get_or_insert(message);
                        }
                    }
                });
            }
        });
        if let Ok(Some(message)) = failure.into_inner() {
            return Err(message);
        }
        let mut command = Command::new("ar");
        command
            .current_dir(dir)
            .args(["-rcs", &format!("lib{name}.a")]);
        command.args(units.iter().map(|unit| &unit.object));
        run(&mut command, "ar")
    }

    fn cxx_flags(&self, dir: &Path) -> Result<Vec<String>, String> {
        let include = self.verilator_root()?.join("include");
        let mut flags: Vec<String> = [
            "-std=c++17",
            "-fPIC",
            "-w",
            "-fno-strict-aliasing",
            "-DVERILATOR=1",
            "-DVM_SC=0",
            "-DVM_TIMING=0",
            "-DVM_TRACE_VCD=0",
            "-DVM_TRACE_SAIF=0",
            // Errors of the model go to hooks.cpp instead of ending the process.
            "-DVL_USER_STOP",
            "-DVL_USER_FATAL",
            "-DVL_USER_FINISH",
            "-DVL_USER_WARN",
            "-DVL_PRINTF=ferronic_printf",
        ]
        .map(str::to_owned)
        .to_vec();
        flags.push(format!("-DVM_TRACE={}", u8::from(self.trace)));
        flags.push(format!("-DVM_TRACE_FST={}", u8::from(self.trace)));
        flags.push(format!("-DVM_COVERAGE={}", u8::from(self.coverage)));
        flags.push(format!("-I{}", dir.display()));
        flags.push(format!("-I{}", self.shim.display()));
        flags.push(format!("-I{}", include.display()));
        flags.push(format!("-I{}", include.join("vltstd").display()));
        Ok(flags)
    }

    /// What every library depends on: tools, flags and the shim.
    fn hasher(&self) -> Result<Hasher, String> {
        let mut hasher = Hasher::new();
        hasher.text(SCHEME);
        hasher.text(&output(Command::new(&self.verilator).arg("--version"))?);
        hasher.text(
            &output(Command::new(&self.cxx).arg("--version")).map_err(|e| {
                format!("{e}\nA C++ compiler is needed: `./x setup` names what the system lacks.")
            })?,
        );
        hasher.text(&format!("{} {}", self.trace, self.coverage));
        hasher.text(include_str!("compile.rs"));
        for name in ["shim.cpp", "shim.h", "hooks.cpp", "hooks.h"] {
            hasher.bytes(&read(&self.shim.join(name))?);
        }
        Ok(hasher)
    }

    fn verilator_command(&self) -> Result<Command, String> {
        let mut command = Command::new(&self.verilator);
        command.current_dir(&self.root);
        Ok(command)
    }

    /// Where Verilator's own include files are.
    fn verilator_root(&self) -> Result<PathBuf, String> {
        let text = output(Command::new(&self.verilator).args(["--getenv", "VERILATOR_ROOT"]))?;
        let root = PathBuf::from(text.trim());
        if root.join("include/verilated.cpp").is_file() {
            Ok(root)
        } else {
            Err(format!(
                "{} says that its files are in {:?}, but include/verilated.cpp is not there: \
                 run `cargo xtask setup` again",
                self.verilator.display(),
                root
            ))
        }
    }

    /// Looks `key` up in the cache, or builds it in a directory of its own that is renamed when
    /// complete, so that a build that was interrupted leaves nothing behind that looks finished.
    fn cached(
        &self,
        key: &str,
        name: &str,
        build: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<Built, String> {
        let dir = self.cache.join(key);
        let built = Built {
            dir: dir.clone(),
            name: name.to_owned(),
        };
        let library = format!("lib{name}.a");
        if dir.join(&library).is_file() {
            return Ok(built);
        }
        let context = |path: &Path| format!("{}: ", path.display());
        fs::create_dir_all(&self.cache).map_err(|e| context(&self.cache) + &e.to_string())?;
        // Another build of the same content may be under way: wait for it.
        let lock_path = self.cache.join(format!("{key}.lock"));
        let lock = File::create(&lock_path).map_err(|e| context(&lock_path) + &e.to_string())?;
        lock.lock()
            .map_err(|e| context(&lock_path) + &e.to_string())?;
        if dir.join(&library).is_file() {
            return Ok(built);
        }
        let scratch = self.cache.join(format!("{key}.{}", id()));
        fs::create_dir_all(&scratch).map_err(|e| context(&scratch) + &e.to_string())?;
        let result = build(&scratch).and_then(|()| {
            fs::create_dir_all(&dir).map_err(|e| context(&dir) + &e.to_string())?;
            fs::rename(scratch.join(&library), dir.join(&library))
                .map_err(|e| context(&dir) + &e.to_string())
        });
        let _ = fs::remove_dir_all(&scratch);
        let _ = fs::remove_file(&lock_path);
        result.map(|()| built)
    }
}

struct Unit {
    source: PathBuf,
    object: String,
    level: &'static str,
    /// Precompiled header.
    header: Option<String>,
    args: Vec<String>,
}

impl Unit {
    fn new(source: PathBuf, level: &'static str) -> Self {
        let stem = source.file_stem().map(|s| s.to_string_lossy().into_owned());
        Self {
            object: format!("{}.o", stem.unwrap_or_default()),
            source,
            level,
            header: None,
            args: Vec::new(),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "{program}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{what}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{what} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}
