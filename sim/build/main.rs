//! Verilates `rtl/ferronic_core.sv` once per data path width asked for and links the models.
//!
//! A model is compiled once per content (sources, flags, tools) and kept under
//! `.tools/cache/verilated/<hash>`, so that a build without a change to the RTL costs nothing.

mod model;

use std::env;
use std::ops::RangeInclusive;
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
        "FERRONIC_LRO_CONTEXTS",
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
        parameters: lro_contexts()?.into_iter().collect(),
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
    Ok(number("FERRONIC_QUEUE_PAIRS", 1..=64)?.unwrap_or(4))
}

/// Flows that are merged at once, where it is not the RTL's own default.
fn lro_contexts() -> Result<Option<(&'static str, u32)>, String> {
    let contexts = number("FERRONIC_LRO_CONTEXTS", 0..=256)?;
    if let Some(contexts) = contexts
        && contexts != 0
        && !(contexts >= 4 && contexts.is_power_of_two())
    {
        return Err(format!(
            "FERRONIC_LRO_CONTEXTS is {contexts}: it must be 0 or a power of two from 4 to 256"
        ));
    }
    Ok(contexts.map(|contexts| ("LroContexts", contexts)))
}

fn number(name: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, String> {
    let Ok(text) = env::var(name) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(Some(number)),
        _ => Err(format!(
            "{name} is {text:?}: it must be a number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}
