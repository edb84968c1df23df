//! A machine: the card, QEMU, and the agent in its guest.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ferronic_guest_agent::{Hello, Request};
use rustix::process::Signal;

use crate::GuestError;
use crate::card::{Card, Counters};
use crate::child::Helper;
use crate::guest::Guest;
use crate::kit::Kit;

/// How long a boot may take on a machine under load.
const BOOT: Duration = Duration::from_secs(120);
/// A periodic tick. A kernel that arms its timer anew for each event was seen to lose one where the
/// host was so busy that the clock seemed to leap, and then to sleep for seconds.
const TICK: &str = "nohz=off highres=off";
const OFF: Duration = Duration::from_secs(30);

/// How the guest treats DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iommu {
    /// Every buffer is mapped for the time of its use.
    Strict,
    /// Drivers of the kernel see all memory; VFIO still maps.
    PassThrough,
}

/// What a machine is made of.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// QEMU and the kernel.
    pub kit: &'a Kit,
    /// The initramfs.
    pub initramfs: &'a [u8],
    /// The program whose `serve` command is the simulator.
    pub simulator: &'a Path,
    /// More arguments of `serve`.
    pub card: Vec<String>,
    /// Treatment of DMA.
    pub iommu: Iommu,
    /// Model of the processor.
    pub cpu: &'a str,
    /// Processors.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// More arguments of the kernel.
    pub kernel_arguments: &'a str,
    /// More arguments of QEMU.
    pub qemu: &'a [String],
    /// Where sockets and logs are.
    pub dir: &'a Path,
}

/// A running machine.
pub struct Machine {
    /// The agent.
    pub guest: Guest,
    // Goes before the card: without its device QEMU aborts.
    qemu: Helper,
    /// The card.
    pub card: Card,
    console: PathBuf,
    log: PathBuf,
    /// Where its sockets, logs and captures are.
    pub dir: PathBuf,
    /// Host time from the start of QEMU to the agent's first word.
    pub boot: Duration,
    /// When QEMU was started.
    pub started: Instant,
    /// What the agent said of its kernel.
    pub hello: Hello,
}

impl Machine {
    /// Boots.
    pub fn boot(plan: &Plan) -> Result<Self, GuestError> {
        let card = Card::start(plan.simulator, plan.dir, &plan.card)?;
        let initramfs = plan.dir.join("initramfs");
        fs::write(&initramfs, plan.initramfs).map_err(GuestError::file(&initramfs))?;
        let agent = plan.dir.join("agent.sock");
        let _ = fs::remove_file(&agent);
        let (console, log) = (plan.dir.join("console.log"), plan.dir.join("qemu.log"));
        let mut command = plan.kit.qemu.command();
        let memory = plan.memory_mib;
        let iommu = match plan.iommu {
            Iommu::Strict => "intel_iommu=on iommu.strict=1",
            Iommu::PassThrough => "intel_iommu=on iommu=pt",
        };
        command
            .args(["-machine", "q35,accel=tcg,memory-backend=mem"])
            .arg("-object")
            // The card must be able to map the guest's memory.
            .arg(format!(
                "memory-backend-memfd,id=mem,size={memory}M,share=on"
            ))
            .args(["-m", &format!("{memory}M"), "-cpu", plan.cpu])
            .args(["-smp", &plan.cpus.to_string()])
            .args(["-nodefaults", "-display", "none"])
            .arg("-kernel")
            .arg(&plan.kit.kernel)
            .arg("-initrd")
            .arg(&initramfs)
            .args(["-append"])
            .arg(format!(
                "console=ttyS0 quiet panic=-1 {TICK} {iommu} {}",
                plan.kernel_arguments
            ))
            .args([
                "-chardev",
                &format!("file,id=console,path={}", text(&console)?),
            ])
            .args(["-serial", "chardev:console"])
            .args([
                "-chardev",
                &format!("socket,id=agent,server=on,wait=on,path={}", text(&agent)?),
            ])
            .args(["-serial", "chardev:agent"])
            .args(["-device", "intel-iommu,caching-mode=on"])
            .arg("-device")
            // The card may take its time: a guest waits in the middle of an instruction.
            .arg(format!(
                "{{\"driver\":\"vfio-user-pci\",\"x-msg-timeout\":600000,\
                 \"socket\":{{\"type\":\"unix\",\"path\":\"{}\"}}}}",
                text(card.socket())?
            ));
        command.args(plan.qemu);
        let errors = File::create(&log).map_err(GuestError::file(&log))?;
        let out = errors.try_clone().map_err(GuestError::file(&log))?;
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        let started = Instant::now();
        let qemu = Helper::start("QEMU", &mut command)?;
        let guest = Guest::connect(&agent).map_err(|error| ended(&error, &log, &console))?;
        let hello = guest
            .hello(BOOT)
            .map_err(|error| ended(&error, &log, &console))?;
        Ok(Self {
            guest,
            qemu,
            card,
            console,
            log,
            dir: plan.dir.to_path_buf(),
            boot: started.elapsed(),
            started,
            hello,
        })
    }

    /// Starts the guest again and waits until it is up.
    pub fn reboot(&mut self) -> Result<(), GuestError> {
        self.guest.leave(Request::Reboot)?;
        self.started = Instant::now();
        self.hello = self
            .guest
            .hello(BOOT)
            .map_err(|error| ended(&error, &self.log, &self.console))?;
        self.boot = self.started.elapsed();
        Ok(())
    }

    /// Turns the guest off, then the simulator, in this order: without its device QEMU aborts.
    pub fn stop(mut self) -> Result<Counters, GuestError> {
        self.guest.leave(Request::PowerOff)?;
        let status = self.qemu.wait(OFF)?;
        if !status.success() {
            let error = GuestError::program("QEMU", status);
            return Err(ended(&error, &self.log, &self.console));
        }
        self.card.stop()
    }

    /// Kills QEMU, and leaves the card to others.
    pub fn kill(self) -> Result<Card, GuestError> {
        self.qemu.signal(Signal::KILL)?;
        Ok(self.card)
    }

    /// The failure with what the machine said last.
    pub fn explain(&self, error: &GuestError) -> GuestError {
        ended(error, &self.log, &self.console)
    }
}

fn text(path: &Path) -> Result<&str, GuestError> {
    let plain = |text: &&str| !text.contains([',', '"', '\\']);
    path.to_str().filter(plain).ok_or_else(|| {
        GuestError::Check(format!(
            "{}: QEMU cannot be given this path; use a plain one (TMPDIR, --trace)",
            path.display()
        ))
    })
}

fn ended(error: &GuestError, log: &Path, console: &Path) -> GuestError {
    let mut text = error.to_string();
    for path in [log, console] {
        let said = fs::read(path).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        for line in &lines[lines.len().saturating_sub(20)..] {
            text += &format!("\n  {line}");
        }
    }
    GuestError::Check(text)
}
