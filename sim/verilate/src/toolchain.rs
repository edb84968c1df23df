//! Verilator and the C++ compiler, behind the cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hash::Hasher;
use crate::tools::{output, read, run};

/// Change it when the way of building changes without a change of flags.
const SCHEME: &str = "2";

/// What every library is made with.
pub struct Toolchain {
    /// The repository.
    pub root: PathBuf,
    /// See [`crate::cache_dir`].
    pub cache: PathBuf,
    /// The folder with `hooks.h` and `hooks.cpp`, included before everything else.
    pub hooks: PathBuf,
    /// See [`crate::verilator`].
    pub verilator: PathBuf,
    /// The C++ compiler.
    pub cxx: String,
    /// With FST tracing.
    pub trace: bool,
    /// With coverage.
    pub coverage: bool,
    /// C++ compilers at a time, for one library.
    pub jobs: usize,
    /// Parameters of the top module that are not what they usually are: names and values.
    pub parameters: Vec<(&'static str, u32)>,
}

/// A static library in the cache.
pub struct Built {
    /// Its directory.
    pub dir: PathBuf,
    /// Its name, without `lib` and `.a`.
    pub name: String,
}

impl Toolchain {
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
            units.push(Unit::new(self.hooks.join("hooks.cpp"), "-O2"));
            self.compile(dir, &units, &name)
        })
    }

    /// Compiles `units` into `lib<name>.a`, `self.jobs` at a time.
    pub fn compile(&self, dir: &Path, units: &[Unit], name: &str) -> Result<(), String> {
        let base = self.cxx_flags(dir)?;
        let hooks = self.hooks.join("hooks.h");
        for level in ["-O0", "-O1", "-O2"] {
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
        flags.push(format!("-I{}", self.hooks.display()));
        flags.push(format!("-I{}", include.display()));
        flags.push(format!("-I{}", include.join("vltstd").display()));
        Ok(flags)
    }

    /// What every library depends on: tools, flags and the hooks.
    pub fn hasher(&self) -> Result<Hasher, String> {
        let mut hasher = Hasher::new();
        hasher.text(SCHEME);
        hasher.text(&output(Command::new(&self.verilator).arg("--version"))?);
        hasher.text(
            &output(Command::new(&self.cxx).arg("--version")).map_err(|e| {
                format!("{e}\nA C++ compiler is needed: `./x setup` names what the system lacks.")
            })?,
        );
        hasher.text(&format!("{} {}", self.trace, self.coverage));
        for name in ["hooks.cpp", "hooks.h"] {
            hasher.bytes(&read(&self.hooks.join(name))?);
        }
        for (name, value) in &self.parameters {
            hasher.text(&format!("{name}={value}"));
        }
        Ok(hasher)
    }

    /// Verilator, to run in the repository.
    pub fn verilator_command(&self) -> Result<Command, String> {
        let mut command = Command::new(&self.verilator);
        command.current_dir(&self.root);
        for (name, value) in &self.parameters {
            command.arg(format!("-G{name}={value}"));
        }
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
    pub fn cached(
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

/// One C++ file to compile.
pub struct Unit {
    /// The file.
    pub source: PathBuf,
    /// Name of its object file.
    pub object: String,
    /// Optimisation, as the compiler's argument.
    pub level: &'static str,
    /// Precompiled header.
    pub header: Option<String>,
    /// Further arguments.
    pub args: Vec<String>,
}

impl Unit {
    /// `source`, compiled to an object of its name.
    pub fn new(source: PathBuf, level: &'static str) -> Self {
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
