//! Verilates the blocks of `blocks.rs` and writes the table by which the tests find them.

mod blocks;

use std::collections::VecDeque;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Mutex;

use blocks::{BLOCKS, Block};
use ferronic_verilate::{Built, Sources, Toolchain, Unit, closure, read, run};

fn main() {
    if let Err(message) = build() {
        // Cargo shows standard error of a failed build script in full.
        eprintln!("\nerror: {message}\n");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    let manifest = PathBuf::from(var("CARGO_MANIFEST_DIR")?);
    let root = manifest
        .ancestors()
        .nth(2)
        .ok_or("tests/blocks has no grandparent directory")?
        .to_path_buf();
    for name in ["FERRONIC_VERILATOR", "FERRONIC_CACHE", "CXX"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let hooks = root.join("sim/shim");
    for path in [manifest.join("build"), manifest.join("shim"), hooks.clone()] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let toolchain = Toolchain {
        cache: ferronic_verilate::cache_dir(&root),
        hooks,
        verilator: ferronic_verilate::verilator(&root)?,
        cxx: env::var("CXX").unwrap_or_else(|_| "g++".to_owned()),
        trace: false,
        coverage: false,
        jobs: 1, // Blocks are small: each is one C++ file, and several are built at a time.
        root: root.clone(),
        parameters: Vec::new(),
    };
    let sources = ferronic_verilate::collect(&root)?;
    let jobs = var("NUM_JOBS")?.parse().unwrap_or(2usize);

    let queue: Mutex<VecDeque<&Block>> = Mutex::new(BLOCKS.iter().collect());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, BLOCKS.len()) {
            scope.spawn(|| {
                while let Some(block) = queue.lock().ok().and_then(|mut q| q.pop_front()) {
                    let result = model(&toolchain, &sources, &manifest, block);
                    if let Ok(mut results) = results.lock() {
                        results.push(result);
                    }
                }
            });
        }
    });
    for result in results.into_inner().map_err(|e| e.to_string())? {
        link(&result?);
    }
    // After the models: they use it.
    link(&toolchain.runtime()?);
    println!("cargo::rustc-link-lib=dylib=stdc++");
    table(&PathBuf::from(var("OUT_DIR")?).join("models.rs"))
}

/// Verilates one block and compiles it with its shim.
fn model(
    toolchain: &Toolchain,
    sources: &Sources,
    manifest: &Path,
    block: &Block,
) -> Result<Built, String> {
    let needed = closure(&toolchain.root, sources, block.top)?;
    let prefix = format!("V{}", block.name);
    let mut args: Vec<String> = [
        "--cc",
        "--assert",
        "--no-timing",
        "--x-assign",
        "unique",
        "--x-initial",
        "unique",
        "-O2",
        "--output-split",
        "5000",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "--top-module",
        block.top,
        "--prefix",
        &prefix,
    ]
    .map(str::to_owned)
    .to_vec();
    args.extend(
        block
            .parameters
            .iter()
            .map(|(name, value)| format!("-G{name}={value}")),
    );
    args.extend(
        needed
            .include_dirs
            .iter()
            .map(|dir| format!("-I{}", dir.display())),
    );

    let shim = manifest.join("shim/block.cpp");
    let mut hasher = toolchain.hasher()?;
    args.iter().for_each(|arg| hasher.text(arg));
    hasher.text(include_str!("main.rs"));
    hasher.bytes(&read(&shim)?);
    for file in needed.files.iter().chain(&needed.headers) {
        hasher.text(&file.to_string_lossy());
        hasher.bytes(&read(&toolchain.root.join(file))?);
    }
    let name = format!("ferronic_block_{}", block.name);
    toolchain.cached(&hasher.finish(), &name, |dir| {
        let mut command = toolchain.verilator_command()?;
        command
            .args(&args)
            .arg("--Mdir")
            .arg(dir)
            .args(&needed.files);
        run(&mut command, "Verilator")?;

        let header = dir.join(format!("{prefix}.h"));
        let header = String::from_utf8_lossy(&read(&header)?).into_owned();
        let mut all = String::new();
        let mut files: Vec<String> = fs::read_dir(dir)
            .map_err(|e| format!("{}: {e}", dir.display()))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".cpp"))
            .collect();
        files.sort();
        for file in files {
            let _ = writeln!(all, "#include \"{file}\"");
        }
        let _ = writeln!(all, "#define BLOCK_NAME {}", block.name);
        let _ = writeln!(all, "#define BLOCK_MODEL {prefix}");
        let _ = writeln!(all, "#define BLOCK_PORTS {}", ports(&header)?);
        let _ = writeln!(all, "#include \"{}\"", shim.display());
        let path = dir.join("all.cpp");
        fs::write(&path, all).map_err(|e| format!("{}: {e}", path.display()))?;
        toolchain.compile(dir, &[Unit::new(path, "-O1")], &name)
    })
}

/// The ports in the header that Verilator wrote, as calls of the shim's macros: its lines are
/// `VL_IN8(&clk_i,0,0);` with 8, 16, nothing (32), 64 or W, which has the number of words behind.
fn ports(header: &str) -> Result<String, String> {
    let mut ports = String::new();
    for line in header.lines().map(str::trim) {
        let Some((kind, rest)) = line.split_once("(&") else {
            continue;
        };
        let output = match kind.get(..5) {
            Some("VL_IN") => 0,
            Some("VL_OU") => 1,
            _ => continue,
        };
        let fields: Vec<&str> = rest.trim_end_matches(");").split(',').collect();
        let number = |i: usize| {
            fields
                .get(i)
                .and_then(|text| text.trim().parse::<u32>().ok())
        };
        let (Some(name), Some(high), Some(low)) = (fields.first(), number(1), number(2)) else {
            return Err(format!("a port in a form that is not known: {line}"));
        };
        let wide = if kind.ends_with('W') {
            "WIDE"
        } else {
            "NARROW"
        };
        let _ = write!(ports, "BLOCK_{wide}({name}, {}, {output}) ", high + 1 - low);
    }
    if ports.is_empty() {
        return Err("no port was found in what Verilator wrote".to_owned());
    }
    Ok(ports)
}

/// The Rust table of models.
fn table(path: &Path) -> Result<(), String> {
    let mut text = String::from("unsafe extern \"C\" {\n");
    for block in BLOCKS {
        let _ = writeln!(
            text,
            "    fn ferronic_block_{}() -> *const Api;",
            block.name
        );
    }
    text += "}\n\nconst MODELS: &[(&str, unsafe extern \"C\" fn() -> *const Api)] = &[\n";
    for block in BLOCKS {
        let _ = writeln!(text, "    (\"{0}\", ferronic_block_{0}),", block.name);
    }
    text += "];\n";
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn link(built: &Built) {
    println!("cargo::rustc-link-search=native={}", built.dir.display());
    println!("cargo::rustc-link-lib=static={}", built.name);
}

fn var(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
