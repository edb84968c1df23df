//! Verilates `rtl/ferronic_core.sv` once per data path width asked for and links the models.
//!
//! A model is compiled once per content (sources, flags, tools) and kept under
//! `.tools/cache/verilated/<hash>`, so that a build without a change to the RTL costs nothing.

mod model;

use std::env;
use std::path::PathBuf;
use std::process::exit;

use ferronic_verilate::{Built, Toolchain};

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

    let toolchain = Toolchain {
        cache: ferronic_verilate::cache_dir(&root),
        hooks: manifest.join("shim"),
        verilator: ferronic_verilate::verilator(&root)?,
        cxx: env::var("CXX").unwrap_or_else(|_| "g++".to_owned()),
        trace: feature("TRACE"),
        coverage: feature("COVERAGE"),
        jobs: env::var("NUM_JOBS")
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(2),
        root: root.clone(),
    };
    let job = model::Job {
        sources: ferronic_verilate::collect(&root)?,
        shim: manifest.join("shim"),
        toolchain,
        queue_pairs,
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
        link(&built);
    }
    // After the models: they use it.
    let runtime = job.toolchain.runtime()?;
    link(&runtime);
    println!("cargo::rustc-link-lib=dylib=stdc++");
    if job.toolchain.trace {
        println!("cargo::rustc-link-lib=dylib=lz4");
        println!("cargo::rustc-link-lib=dylib=z");
    }
    Ok(())
}

fn link(built: &Built) {
    println!("cargo::rustc-link-search=native={}", built.dir.display());
    println!("cargo::rustc-link-lib=static={}", built.name);
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
