//! Netlists of the core for ECP5, by Yosys.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::area::{self, Cells, Hierarchy, Owners};
use super::workshop::{Run, json};
use crate::error::Failure;
use crate::filelist::FileList;

/// The module that is measured.
pub const TOP: &str = "ferronic_core";
/// The module around it for place and route, and its source.
const WRAPPER: &str = "ooc_wrapper";
const WRAPPER_FILE: &str = "rtl/boards/out_of_context/ooc_wrapper.sv";
const PACKAGE_FILE: &str = "rtl/common/ferronic_pkg.sv";

/// What is built: where, with which tool, with which parameters.
pub struct Build<'a> {
    /// Top of the clone.
    pub root: &'a Path,
    /// Yosys.
    pub yosys: &'a Path,
    /// The pinned versions of all tools.
    pub version: String,
    /// Bits of the data path.
    pub data_width: u32,
    /// Queue pairs.
    pub queues: u32,
    /// Large receive offload, with as many contexts as the core has by default.
    pub lro: bool,
    /// Ring-empty interrupts, max-age and markers of transmit queues.
    pub tx_empty: bool,
    /// Steering and filters of received frames.
    pub steering: bool,
}

/// The core as one netlist.
pub struct Flat {
    /// `core.json` in here is the netlist.
    pub directory: PathBuf,
    /// Its cells.
    pub cells: Cells,
    netlist: Value,
}

impl Flat {
    /// Which instance each of its cells and nets lies in.
    pub fn owners<'a>(&'a self, hierarchy: &'a Hierarchy) -> Owners<'a> {
        Owners::new(hierarchy, self.module())
    }

    /// The core in the netlist, as `write_json` writes it.
    pub fn module(&self) -> &Value {
        &self.netlist["modules"][TOP]
    }
}

impl Build<'_> {
    /// A name for runs of one kind with these parameters.
    pub fn name(&self, what: &str) -> String {
        let lro = if self.lro { "" } else { "-without-lro" };
        let empty = if self.tx_empty {
            ""
        } else {
            "-without-tx-empty"
        };
        let steering = if self.steering {
            ""
        } else {
            "-without-steering"
        };
        format!(
            "{what}-{}-{}{lro}{empty}{steering}",
            self.data_width, self.queues
        )
    }

    /// The core as one flat netlist, without latch, second driver or black box.
    pub fn flat(&self) -> Result<Flat, Failure> {
        // The checks look at the design as it was read: synthesis adds the device's own models.
        let script = format!(
            "{read}\nhierarchy -check -top {TOP}\ntee -q -o check.txt check\n\
             tee -q -o latches.txt select -list t:$dlatch t:$adlatch t:$dlatchsr\n\
             tee -q -o black_boxes.txt select -list =A:blackbox\n\
             synth_ecp5 -top {TOP}\ntee -q -o mapped.txt check\ntee -q -o stat.json stat -json\n\
             select {TOP}\nwrite_json -selected core.json\n",
            read = self.read("")?
        );
        let directory = self.run("flat", script)?;
        no_line(&directory.join("latches.txt"), "latches", |line| {
            !line.is_empty()
        })?;
        no_line(&directory.join("black_boxes.txt"), "black boxes", |line| {
            !line.is_empty()
        })?;
        for file in ["check.txt", "mapped.txt"] {
            no_line(
                &directory.join(file),
                "multiple drivers, loops or undriven nets",
                |line| line.starts_with("Warning:"),
            )?;
        }
        let modules = area::modules(&json(&directory.join("stat.json"))?);
        no_black_box(&modules)?;
        let cells = modules.get(TOP).map(Cells::of_types).unwrap_or_default();
        let netlist = json(&directory.join("core.json"))?;
        Ok(Flat {
            directory,
            cells,
            netlist,
        })
    }

    /// Every instance of the core, each synthesised by itself.
    pub fn hierarchy(&self) -> Result<Hierarchy, Failure> {
        let script = format!(
            "{read}\nsynth_ecp5 -noflatten -top {TOP}\ntee -q -o stat.json stat -json\n",
            read = self.read("--keep-hierarchy ")?
        );
        let directory = self.run("blocks", script)?;
        let modules = area::modules(&json(&directory.join("stat.json"))?);
        no_black_box(&modules)?;
        Ok(Hierarchy::new(&modules, TOP))
    }

    /// The netlist `flat` in its wrapper, which is synthesised without it: nothing of the core can
    /// be optimised again, and it is checked that nothing was. Gives the directory of `ooc.json`.
    pub fn wrapped(&self, flat: &Flat) -> Result<PathBuf, Failure> {
        // The core's parameters are in its netlist already, so those in the source are dropped.
        // abc9 takes no black box inside; for the wrapper's XORs the older abc does as well.
        let script = format!(
            "read_json core.json\n\
             read_slang --threads 1 -D SYNTHESIS --top {WRAPPER} -G DataW={width} \
             -G QueuePairs={queues} -Wno-undefined-param-override {PACKAGE_FILE} {WRAPPER_FILE}\n\
             blackbox {TOP}\n\
             synth_ecp5 -noflatten -top {WRAPPER} -run begin:map_luts\nabc -lut 4\nclean\n\
             synth_ecp5 -noflatten -top {WRAPPER} -run map_cells:\n\
             tee -q -o wrapper.json stat -json\n\
             delete ={TOP}\nread_json core.json\nhierarchy -check -top {WRAPPER}\nflatten\nclean\n\
             tee -q -o stat.json stat -json\nwrite_json ooc.json\n",
            width = self.data_width,
            queues = self.queues,
        );
        let mut inputs: Vec<(String, PathBuf)> = [PACKAGE_FILE, WRAPPER_FILE]
            .into_iter()
            .map(|file| (file.to_owned(), self.root.join(file)))
            .collect();
        inputs.push(("core.json".to_owned(), flat.directory.join("core.json")));
        let directory = self.run_with("wrapped", script, inputs)?;
        let cells = |file: &str| -> Result<Cells, Failure> {
            let modules = area::modules(&json(&directory.join(file))?);
            Ok(modules
                .get(WRAPPER)
                .map(Cells::of_types)
                .unwrap_or_default())
        };
        let (all, own) = (cells("stat.json")?, cells("wrapper.json")?);
        let mut wanted = flat.cells;
        wanted += own;
        let difference = all.difference(&wanted);
        if difference > 0.02 {
            return Err(Failure::Message(format!(
                "the core in {WRAPPER} is not the core of the table: {all:?} in place of \
                 {wanted:?}; something was trimmed"
            )));
        }
        Ok(directory)
    }

    fn read(&self, options: &str) -> Result<String, Failure> {
        let list = FileList::read(self.root)?;
        let includes: String = list
            .include_dirs
            .iter()
            .map(|dir| format!("-I {dir} "))
            .collect();
        let steering = u8::from(self.steering);
        // One thread and paths without `..`: the WebAssembly build knows neither.
        Ok(format!(
            "read_slang --threads 1 {options}-D SYNTHESIS {includes}--top {TOP} -G TimeSkip=0 \
             -G DataW={} -G QueuePairs={} -G TxEmpty={} -G Steering={steering} \
             -G Filters={steering} {}{}",
            self.data_width,
            self.queues,
            u8::from(self.tx_empty),
            // The relaxed profile does not fit the budget.
            if self.lro {
                "-G LroRelaxed=0 "
            } else {
                "-G LroContexts=0 "
            },
            list.files.join(" ")
        ))
    }

    fn run(&self, what: &str, script: String) -> Result<PathBuf, Failure> {
        let list = FileList::read(self.root)?;
        let headers = crate::docs::tracked_files(self.root, &["rtl"])?;
        let headers = headers.into_iter().filter(|file| file.ends_with(".svh"));
        let inputs = list.files.into_iter().chain(headers);
        let inputs = inputs.map(|file| {
            let path = self.root.join(&file);
            (file, path)
        });
        self.run_with(what, script, inputs.collect())
    }

    fn run_with(
        &self,
        what: &str,
        script: String,
        inputs: Vec<(String, PathBuf)>,
    ) -> Result<PathBuf, Failure> {
        let run = Run {
            name: self.name(what),
            program: self.yosys,
            arguments: ["-q", "-l", "yosys.log", "-s", "run.ys"]
                .map(str::to_owned)
                .to_vec(),
            inputs,
            script: Some(("run.ys", script)),
            version: self.version.clone(),
        };
        run.directory(self.root)
    }
}

fn no_line(path: &Path, what: &str, bad: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path).map_err(|source| Failure::io(path, source))?;
    let found: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| bad(line))
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "the core has {what}: {}",
        found.join("; ")
    )))
}

fn no_black_box(
    modules: &std::collections::BTreeMap<String, std::collections::BTreeMap<String, u64>>,
) -> Result<(), Failure> {
    let found = area::black_boxes(modules);
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "the core has black boxes: {}",
        found.join(", ")
    )))
}
