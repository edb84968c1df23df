//! What is done with a guest. Each scenario boots machines of its own and leaves nothing behind.

mod completion;
mod crafted;
mod dpdk;
mod frames;
mod hostile;
mod linux;
mod lro;
mod offload;
mod seen;
mod tools;
mod vfio;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ferronic_figures::Figure;

use crate::{Extra, GuestError, Iommu, Kit, Machine, Plan, Programs, initramfs};

/// Every scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// The kernel's own virtio_net
    Linux,
    /// Its checksum and segmentation offloads, by IPv4 and IPv6
    Offload,
    /// Segments that the card merges, and a bridge that cuts them again
    Lro,
    /// Our own driver over the kernel's VFIO
    Vfio,
    /// The kernel's virtio_net after our own driver was killed with everything on; transmit completion
    Completion,
    /// DPDK's testpmd over vfio-pci
    Dpdk,
    /// Memory taken away from under the card, and a machine that is killed
    Hostile,
}

impl Scenario {
    /// All of them, in the order of running.
    pub const ALL: [Self; 7] = [
        Self::Linux,
        Self::Offload,
        Self::Lro,
        Self::Vfio,
        Self::Completion,
        Self::Dpdk,
        Self::Hostile,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Offload => "offload",
            Self::Lro => "lro",
            Self::Vfio => "vfio",
            Self::Completion => "completion",
            Self::Dpdk => "dpdk",
            Self::Hostile => "hostile",
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When something is not as it must be.
    pub fn run(self, bench: &mut Bench) -> Result<(), GuestError> {
        let begin = Instant::now();
        println!("guest {}", self.name());
        match self {
            Self::Linux => linux::run(bench),
            Self::Offload => offload::run(bench),
            Self::Lro => lro::run(bench),
            Self::Vfio => vfio::run(bench),
            Self::Completion => completion::run(bench),
            Self::Dpdk => dpdk::run(bench),
            Self::Hostile => hostile::run(bench),
        }?;
        println!(
            "guest {}: passed in {:.1} s",
            self.name(),
            begin.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

/// Where scenarios run: the kit, our programs, a directory, and the figures so far.
pub struct Bench {
    kit: Kit,
    programs: Programs,
    simulator: PathBuf,
    dir: PathBuf,
    trace: bool,
    boots: u32,
    /// What was measured.
    pub figures: Vec<Figure>,
}

impl Bench {
    /// Gets the kit of the clone at `root` and builds what runs in a guest. `simulator` is a program
    /// with the `serve` command of `ferronic-sim`; sockets and logs go to `dir`, with `trace` also
    /// waveforms, captures and the messages of vfio-user.
    ///
    /// # Errors
    /// [`GuestError::Unavailable`] where guests cannot be run.
    pub fn new(root: &Path, simulator: &Path, dir: &Path, trace: bool) -> Result<Self, GuestError> {
        fs::create_dir_all(dir).map_err(GuestError::file(dir))?;
        let kit = Kit::get(root)?;
        let programs = Programs::build(root)?;
        Ok(Self {
            kit,
            programs,
            simulator: simulator.to_path_buf(),
            dir: dir.to_path_buf(),
            trace,
            boots: 0,
            figures: Vec::new(),
        })
    }

    /// QEMU's version.
    pub fn qemu_version(&self) -> &str {
        &self.kit.qemu.version
    }

    /// Boots a machine as `setup` says, in a directory of its own.
    fn boot(&mut self, setup: &Setup) -> Result<Machine, GuestError> {
        self.boots += 1;
        let dir = self.dir.join(format!("{}-{}", setup.name, self.boots));
        fs::create_dir_all(&dir).map_err(GuestError::file(&dir))?;
        let initramfs = initramfs::build(&self.kit, &self.programs, &setup.extras)?;
        let mut card: Vec<String> = ["--wire", &setup.wire].map(str::to_owned).to_vec();
        card.extend(setup.card.iter().map(|argument| (*argument).to_owned()));
        let mut options = Vec::new();
        if self.trace || setup.capture {
            options.push(("--pcap", CAPTURE));
        }
        if self.trace {
            options.push(("--messages", "vfio-user.log"));
            if cfg!(feature = "trace") {
                options.push(("--trace", "card.fst"));
            }
            println!("  traces in {}", dir.display());
        }
        for (option, file) in options {
            card.push(option.to_owned());
            card.push(dir.join(file).display().to_string());
        }
        let machine = Machine::boot(&Plan {
            kit: &self.kit,
            initramfs: &initramfs,
            simulator: &self.simulator,
            card,
            iommu: setup.iommu,
            cpu: setup.cpu,
            cpus: 1,
            memory_mib: setup.memory_mib,
            kernel_arguments: setup.kernel_arguments,
            qemu: &setup.qemu,
            dir: &dir,
        })?;
        println!(
            "  {} up after {:.1} s (Linux {}, {})",
            setup.name,
            machine.boot.as_secs_f64(),
            machine.hello.kernel,
            match setup.iommu {
                Iommu::Strict => "IOMMU strict",
                Iommu::PassThrough => "iommu=pt",
            }
        );
        Ok(machine)
    }

    fn record(&mut self, figure: Figure) {
        self.figures.push(figure);
    }
}

/// What passed on the wire, in the directory of a machine.
const CAPTURE: &str = "wire.pcap";

/// What a scenario wants of its machine.
struct Setup {
    name: &'static str,
    iommu: Iommu,
    wire: String,
    card: Vec<&'static str>,
    /// Write [`CAPTURE`].
    capture: bool,
    cpu: &'static str,
    memory_mib: u32,
    kernel_arguments: &'static str,
    /// More arguments of QEMU.
    qemu: Vec<String>,
    extras: Vec<Extra>,
}

impl Setup {
    fn new(name: &'static str, iommu: Iommu) -> Self {
        Self {
            name,
            iommu,
            wire: "peer".to_owned(),
            card: Vec::new(),
            capture: false,
            cpu: "qemu64",
            memory_mib: 256,
            kernel_arguments: "",
            qemu: Vec::new(),
            extras: Vec::new(),
        }
    }
}
