//! Verilates `rtl/ferronic_core.sv` once per data path width asked for and links the models.
//!
//! A model is compiled once per content (sources, flags, tools) and kept under
//! `.tools/cache/verilated/<hash>`, so that a build without a change to the RTL costs nothing.

mod compile;
mod hash;
mod sources;

use std::env;
use std::path::{Path, PathBuf};
use std::process::exit;

const WIDTHS: [u32; 4] = [64, 128, 256, 512];

fn main() {
    if let Err(message) = run() {
        // Cargo shows standard error of a failed build script in full.
        eprintln!("\nerror: {message}\n");
        exit(1);
    }
}

fn run() -> Result<(), String> {
    let manifest = PathBuf::from(var("CARGO_MANIFEST_DIR")?);
    let root = manifest
        .parent()
        .ok_or("the sim crate has no parent directory")?
        .to_path_buf();
    for name in [
        "FERRONIC_VERILATOR",
        "FERRONIC_CACHE",
        "FERRONIC_QUEUE_PAIRS",
        "CXX",
    ] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    for path in ["build", "shim"] {
        println!("cargo::rerun-if-changed={}", manifest.join(path).display());
    }

    let queue_pairs = queue_pairs()?;
    println!("cargo::rustc-env=FERRONIC_QUEUE_PAIRS={queue_pairs}");

    let job = compile::Job {
        sources: sources::collect(&root)?,
        cache: cache_dir(&root),
        shim: manifest.join("shim"),
        verilator: verilator(&root)?,
        cxx: env::var("CXX").unwrap_or_else(|_| "g++".to_owned()),
        queue_pairs,
        trace: feature("TRACE"),
        coverage: feature("COVERAGE"),
        jobs: env::var("NUM_JOBS")
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(2),
        root,
    };
    let widths: Vec<u32> = WIDTHS
        .into_iter()
        .filter(|w| feature(&format!("W{w}")))
        .collect();
    if widths.is_empty() {
        return Err(
            "no data path width is built: enable one of the features w64, w128, w256, w512"
                .to_owned(),
        );
    }
    for width in &widths {
        let built = job.model(*width)?;
        link(&built.dir, &built.name);
    }
    // After the models: they use it.
    let runtime = job.runtime()?;
    link(&runtime.dir, &runtime.name);
    println!("cargo::rustc-link-lib=dylib=stdc++");
    if job.trace {
        println!("cargo::rustc-link-lib=dylib=lz4");
        println!("cargo::rustc-link-lib=dylib=z");
    }
    Ok(())
}

fn link(dir: &Path, name: &str) {
    println!("cargo::rustc-link-search=native={}", dir.display());
    println!("cargo::rustc-link-lib=static={name}");
}

fn var(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}

fn feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn queue_pairs() -> Result<u32, String> {
    match env::var("FERRONIC_QUEUE_PAIRS") {
        Err(_) => Ok(4),
        Ok(text) => text
            .parse()
            .ok()
            .filter(|n| (1..=64).contains(n))
            .ok_or(format!(
                "FERRONIC_QUEUE_PAIRS is {text:?}: it must be a number from 1 to 64"
            )),
    }
}

fn cache_dir(root: &Path) -> PathBuf {
    match env::var_os("FERRONIC_CACHE") {
        Some(dir) => PathBuf::from(dir),
        None => root.join(".tools/cache"),
    }
    .join("verilated")
}

/// The Verilator launcher: the environment's choice, the one that set-up made, or the system's.
fn verilator(root: &Path) -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("FERRONIC_VERILATOR") {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!(
                "FERRONIC_VERILATOR names {}, which is not a file",
                path.display()
            ))
        };
    }
    let own = root.join(".tools/bin/verilator");
    println!("cargo::rerun-if-changed={}", own.display());
    if own.is_file() {
        return Ok(own);
    }
    env::var_os("PATH")
        .iter()
        .flat_map(env::split_paths)
        .map(|dir| dir.join("verilator"))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            "Verilator was not found: run `cargo xtask setup` (it goes into .tools/), or put \
             `verilator` 5.032 or later on PATH, or name it in FERRONIC_VERILATOR"
                .to_owned()
        })
}
