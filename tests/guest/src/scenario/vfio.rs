//! Our own driver over the kernel's VFIO, with a strict IOMMU: on a wire with a peer, then on one
//! that replays frames and records what comes.

mod transfers;

use std::path::Path;
use std::time::Duration;

use ferronic_figures::Figure;
use ferronic_guest_agent::{Exit, Request};
use serde_json::Value;

use super::frames::{self, Frame};
use super::tools::{
    Direction, GUEST, PEER, card, interface_up, kernel_is_content, load_vfio_pci, load_virtio_net,
    ping, until,
};
use super::{Bench, Setup};
use crate::{Content, Counters, Extra, Guest, GuestError, Iommu, Machine, PATIENCE, ensure};
use transfers::Expected;

/// Our command, in the guest.
pub(super) const FERRONIC: &str = "/bin/ferronic";
/// Pings that count.
const PINGS: &str = "200";
/// Frames that the wire replays.
const FRAMES: usize = 4000;
/// Those that the first capture takes.
const FIRST: usize = 800;
/// Frames of a transfer after which its driver is killed.
const MIDST: f64 = 100.0;

/// What a user is told who may not open the group's device.
const MAY_NOT_OPEN: &str = "may not be opened by this user";

/// The simulator's counter of function level resets.
pub(super) const RESETS: &str = "function_resets";

const SIGTERM: i32 = 15;
pub(super) const SIGKILL: i32 = 9;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    let mut setup = Setup::new("vfio", Iommu::Strict);
    setup.extras.push(Extra {
        path: "etc/passwd".to_owned(),
        content: Content::Data(b"user:x:1000:1000::/tmp:/bin/sh\n".to_vec()),
    });
    let mut machine = bench.boot(&setup)?;
    let result = with_peer(bench, &mut machine);
    if let Err(error) = result {
        return Err(machine.explain(&error));
    }
    machine.stop()?;

    let all = frames::random(FRAMES);
    let (input, output) = (
        bench.dir.join("vfio-in.pcap"),
        bench.dir.join("vfio-out.pcap"),
    );
    frames::write(&input, &all)?;
    let mut setup = Setup::new("vfio-frames", Iommu::Strict);
    setup.wire = format!("pcap:in={},out={}", input.display(), output.display());
    let mut machine = bench.boot(&setup)?;
    let kept = match with_frames(bench, &mut machine) {
        Ok(kept) => kept,
        Err(error) => return Err(machine.explain(&error)),
    };
    // The file is whole once the simulator has ended.
    machine.stop()?;
    all_are_whole(&all, &kept, &output)
}

/// The card in the hands of our command.
pub(super) struct Ours<'a> {
    machine: &'a mut Machine,
    pub(super) address: String,
}

impl<'a> Ours<'a> {
    /// Loads VFIO; the card stays with its driver.
    pub(super) fn new(machine: &'a mut Machine) -> Result<Self, GuestError> {
        load_vfio_pci(&mut machine.guest)?;
        let address = card(&mut machine.guest)?.address;
        Ok(Self { machine, address })
    }

    pub(super) fn guest(&mut self) -> &mut Guest {
        &mut self.machine.guest
    }

    pub(super) fn counters(&mut self) -> Result<Counters, GuestError> {
        self.machine.card.counters()
    }

    /// The command line of our command on the card.
    fn line(&self, arguments: &[&str]) -> Vec<String> {
        let device = ["--device", &self.address];
        let all = [FERRONIC].into_iter().chain(arguments.iter().copied());
        all.chain(device).map(str::to_owned).collect()
    }

    /// Runs our command on the card.
    fn ferronic(&mut self, arguments: &[&str]) -> Result<Exit, GuestError> {
        let line = self.line(arguments);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        self.guest().run(&line, PATIENCE)
    }

    /// Runs our command on the card, which must succeed.
    pub(super) fn succeed(&mut self, arguments: &[&str]) -> Result<Exit, GuestError> {
        let exit = self.ferronic(arguments)?;
        ensure!(
            exit.code == Some(0),
            "ferronic {arguments:?} ended in {:?}: {}{}",
            exit.code,
            exit.stdout,
            exit.stderr
        );
        Ok(exit)
    }

    /// Runs our command, which must fail and say so.
    fn refused(&mut self, arguments: &[&str], words: &str) -> Result<(), GuestError> {
        let line: Vec<&str> = [FERRONIC].iter().chain(arguments).copied().collect();
        let exit = self.guest().run(&line, PATIENCE)?;
        ensure!(
            exit.code == Some(1) && exit.stderr.contains(words),
            "ferronic {arguments:?} ended in {:?} and did not say `{words}`: {}{}",
            exit.code,
            exit.stdout,
            exit.stderr
        );
        Ok(())
    }

    /// Starts our command on the card, to be ended by a signal.
    pub(super) fn spawn(&mut self, arguments: &[&str]) -> Result<u32, GuestError> {
        let argv = self.line(arguments);
        self.guest().ask(Request::Spawn { argv })
    }

    pub(super) fn end(&mut self, pid: u32, signal: i32) -> Result<Exit, GuestError> {
        self.guest().order(Request::Signal { pid, signal })?;
        let timeout_ms = 60_000;
        self.guest().ask(Request::Wait { pid, timeout_ms })
    }

    /// Starts our command and kills it in the midst of a transfer. The kernel resets the card.
    fn killed(&mut self, arguments: &[&str], counter: &str) -> Result<(), GuestError> {
        let before = self.counters()?;
        let pid = self.spawn(arguments)?;
        let seen = until("a transfer", PATIENCE, || {
            let passed = self.counters()?.since(&before);
            Ok((passed.get(counter) > MIDST).then_some(passed))
        })?;
        let exit = self.end(pid, SIGKILL)?;
        ensure!(
            exit.signal == Some(SIGKILL),
            "ferronic {arguments:?} was over before it was killed: {exit:?}"
        );
        let resets = count(&self.counters()?.since(&before), RESETS);
        ensure!(
            resets > count(&seen, RESETS),
            "the card was not reset when its driver was killed"
        );
        println!(
            "  {} killed after {:.0} frames",
            arguments[0],
            seen.get(counter)
        );
        Ok(())
    }

    fn path(&self, file: &str) -> String {
        format!("/sys/bus/pci/devices/{}/{file}", self.address)
    }

    /// Gives the card to vfio-pci.
    pub(super) fn bind(&mut self) -> Result<(), GuestError> {
        let address = self.address.clone();
        let line = [FERRONIC, "bind", &address];
        for words in ["is with vfio-pci now", "is with vfio-pci already"] {
            let said = self.guest().succeed(&line, PATIENCE)?;
            ensure!(said.contains(words), "bind says {said:?}, not `{words}`");
        }
        Ok(())
    }
}

fn with_peer(bench: &mut Bench, machine: &mut Machine) -> Result<(), GuestError> {
    load_virtio_net(&mut machine.guest)?;
    let found = card(&mut machine.guest)?;
    let interface = interface_up(&mut machine.guest, &found.address)?;
    ping(&mut machine.guest, 20, 64)?;

    let mut ours = Ours::new(machine)?;
    let list = listed(&mut ours)?;
    ensure!(
        list["driver"] == "virtio-pci" && list["ferronic"] == true && list["iommu_group"].is_u64(),
        "list tells {list}"
    );
    let address = ours.address.clone();
    ours.refused(&["info", "--device", &address], "ferronic bind")?;
    ours.refused(&["bind", &address], "ip link set")?;
    ours.guest().order(Request::Down {
        interface: interface.name,
    })?;
    ours.bind()?;
    let list = listed(&mut ours)?;
    ensure!(
        list["driver"] == "vfio-pci" && list["driver_override"] == "vfio-pci",
        "list tells {list}"
    );

    open_and_close(&mut ours)?;
    selftest(&mut ours)?;
    pings(bench, &mut ours)?;
    transfers::tcp(bench, &mut ours)?;
    one_owner(&mut ours)?;
    if bench.kit.busybox.is_some() {
        without_root(&mut ours)?;
    } else {
        println!("  not run without root: there is no busybox in the kit");
    }
    let peer = PEER.to_string();
    let local = format!("{GUEST}/24");
    let flood = [
        "ping",
        &peer,
        "--local",
        &local,
        "--count",
        "60000",
        "--interval-ms",
        "0",
    ];
    ours.killed(&flood, "frames rx")?;

    // At once, and nothing is left of what was under way.
    let line = [FERRONIC, "unbind", &address, "--restore"];
    let said = ours.guest().succeed(&line, PATIENCE)?;
    ensure!(
        said.contains("is with virtio-pci now"),
        "unbind says {said:?}"
    );
    kernel_is_content(ours.guest())?;
    interface_up(&mut machine.guest, &address)?;
    for size in [64, 1400] {
        ping(&mut machine.guest, 20, size)?;
    }
    kernel_is_content(&mut machine.guest)
}

/// The card as `ferronic list` has it.
fn listed(ours: &mut Ours<'_>) -> Result<Value, GuestError> {
    let text = ours
        .guest()
        .succeed(&[FERRONIC, "list", "--json"], PATIENCE)?;
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| GuestError::Check(format!("list --json: {error}: {text}")))?;
    let cards = report["cards"].as_array();
    match cards.map(Vec::as_slice) {
        Some([card]) if card["address"] == ours.address => Ok(card.clone()),
        _ => Err(GuestError::Check(format!("list tells {report}"))),
    }
}

/// An unused card sleeps; it is reset when it is opened, and when it is closed.
fn open_and_close(ours: &mut Ours<'_>) -> Result<(), GuestError> {
    let state = ours.path("power_state");
    let asleep = |ours: &mut Ours<'_>| {
        until("D3hot of the unused card", Duration::from_secs(20), || {
            let text = ours.guest().read(&state)?;
            Ok((text.trim() == "D3hot").then_some(()))
        })
    };
    asleep(ours)?;
    let before = ours.counters()?;
    let info = ours.succeed(&["info"])?;
    ensure!(
        info.stdout.contains("window        version"),
        "info does not see the card's window: {}",
        info.stdout
    );
    let resets = count(&ours.counters()?.since(&before), RESETS);
    ensure!(
        resets >= 2,
        "{resets} function level resets while the card was opened and closed"
    );
    asleep(ours)
}

/// Every check passes that can be made on this wire, and the refusals are seen at both ends.
fn selftest(ours: &mut Ours<'_>) -> Result<(), GuestError> {
    let before = ours.counters()?;
    let exit = ours.succeed(&["selftest", "--faults"])?;
    for line in exit.stdout.lines() {
        println!("    {line}");
    }
    ensure!(
        exit.stdout.contains("11 passed, 0 failed, 2 not run"),
        "the self-test did not run as it should"
    );
    let refused = count(&ours.counters()?.since(&before), "dma_refused");
    ensure!(
        refused > 0,
        "no access to memory that was unmapped was refused"
    );
    kernel_is_content(ours.guest())
}

fn pings(bench: &mut Bench, ours: &mut Ours<'_>) -> Result<(), GuestError> {
    let (peer, local) = (PEER.to_string(), format!("{GUEST}/24"));
    let file = "/tmp/ping.json";
    for (size, count) in [("56", PINGS), ("1400", "50")] {
        ours.counters()?;
        ours.succeed(&[
            "ping",
            &peer,
            "--local",
            &local,
            "--count",
            count,
            "--size",
            size,
            "--interval-ms",
            "0",
            "--json",
            file,
        ])?;
        let cycles = ours.counters()?.get("doorbell_to_interrupt_median");
        let report = transfers::report(ours, file)?;
        ensure!(
            transfers::value(&report, "pings_answered").to_string() == count,
            "not every ping of {size} bytes was answered: {report}"
        );
        let ms = transfers::value(&report, "ping_ms_median");
        println!("  {count} pings of {size} bytes: median {ms:.2} ms, {cycles:.0} cycles");
        if size == "56" {
            for (name, value, unit) in [
                ("ping_ms_median", ms, "ms"),
                ("ping_cycles_median", cycles, "cycles"),
            ] {
                bench.record(Figure::new(name, value, unit).with("driver", "ferronic"));
            }
        }
    }
    Ok(())
}

/// A card has one owner, which ends well on a signal.
fn one_owner(ours: &mut Ours<'_>) -> Result<(), GuestError> {
    let before = ours.counters()?;
    let pid = ours.spawn(&["capture", "--write", "/tmp/owner.pcap"])?;
    let state = ours.path("power_state");
    until("the capture", PATIENCE, || {
        let resets = count(&ours.counters()?.since(&before), RESETS);
        let text = ours.guest().read(&state)?;
        Ok((resets > 0 && text.trim() == "D0").then_some(()))
    })?;
    let address = ours.address.clone();
    ours.refused(&["info", "--device", &address], "is in use")?;
    ours.refused(&["unbind", &address], "is in use")?;
    let exit = ours.end(pid, SIGTERM)?;
    ensure!(
        exit.code == Some(0) && exit.stderr.contains("captured"),
        "a capture ended by SIGTERM: {exit:?}"
    );
    Ok(())
}

/// A user who owns the group's device and may lock enough memory needs no more.
fn without_root(ours: &mut Ours<'_>) -> Result<(), GuestError> {
    let group = listed(ours)?["iommu_group"].to_string();
    let device = format!("/dev/vfio/{group}");
    let capture = [
        "capture",
        "--write",
        "/tmp/user.pcap",
        "--idle-timeout-ms",
        "10",
    ];
    let command = ours.line(&capture)[1..].join(" ");
    let mut as_user = |kib: u32, code: i32, words: &str| {
        let script = format!(
            "ulimit -l {kib}; exec busybox start-stop-daemon -S -c 1000:1000 -x {FERRONIC} -- \
             {command}"
        );
        let exit = ours.guest().run(&["/bin/sh", "-c", &script], PATIENCE)?;
        ensure!(
            exit.code == Some(code) && exit.stderr.contains(words),
            "a capture by a user who may lock {kib} KiB ended in {:?}, not {code}: {}",
            exit.code,
            exit.stderr
        );
        if words == MAY_NOT_OPEN {
            let chown = ["/bin/busybox", "chown", "1000", &device];
            ours.guest().succeed(&chown, PATIENCE)?;
        }
        Ok(())
    };
    as_user(65_536, 1, MAY_NOT_OPEN)?;
    as_user(64, 1, "this process may lock 65536 bytes of memory")?;
    as_user(65_536, 0, "captured 0 frames")
}

/// What the guest says of the frames that it got.
struct Kept {
    /// Frames in the last capture.
    last: usize,
}

/// Frames in, and out again, with drivers that are killed in between.
fn with_frames(bench: &mut Bench, machine: &mut Machine) -> Result<Kept, GuestError> {
    let mut ours = Ours::new(machine)?;
    ours.bind()?;
    let (first, last) = ("/tmp/first.pcap", "/tmp/last.pcap");
    let count = FIRST.to_string();
    let line = ["capture", "--write", first, "--count", &count];
    let frames = Expected {
        direction: Direction::Receive,
        frames: FIRST,
        mtu: None,
        first: true,
    };
    let exit = transfers::measured(bench, &mut ours, &line, &frames)?;
    ensure!(
        captured(&exit) == Some(FIRST),
        "a capture of {FIRST} frames says {}",
        exit.stderr
    );
    ours.killed(&["capture", "--write", "/tmp/killed.pcap"], "frames rx")?;
    let exit = ours.succeed(&["capture", "--write", last, "--idle-timeout-ms", "1500"])?;
    let kept = captured(&exit).unwrap_or(0);
    ensure!(
        kept > FRAMES / 4,
        "only {kept} frames were left for the last capture"
    );
    let frames = Expected {
        direction: Direction::Transmit,
        first: false,
        ..frames
    };
    transfers::measured(bench, &mut ours, &["send", "--read", first], &frames)?;
    ours.killed(&["send", "--read", last], "frames tx")?;
    ours.succeed(&["send", "--read", last, "--pieces", "3"])?;
    kernel_is_content(ours.guest())?;
    Ok(Kept { last: kept })
}

/// A counter of events.
fn count(counters: &Counters, name: &str) -> u64 {
    counters.get(name) as u64
}

/// How many frames a capture says it took.
fn captured(exit: &Exit) -> Option<usize> {
    let line = exit
        .stderr
        .lines()
        .rfind(|line| line.starts_with("captured"))?;
    line.split(' ').nth(1)?.parse().ok()
}

/// What went through the guest and came out is what went in: the first capture, the begin of the
/// last one, whose driver was killed, and all of it.
fn all_are_whole(all: &[Frame], kept: &Kept, output: &Path) -> Result<(), GuestError> {
    let came = frames::read(output)?;
    let last = &all[all.len() - kept.last..];
    ensure!(
        came.len() > FIRST + last.len(),
        "{} frames came out, {FIRST} and {} and some were sent",
        came.len(),
        last.len()
    );
    let (head, rest) = came.split_at(FIRST);
    let (part, tail) = rest.split_at(rest.len() - last.len());
    ensure!(part.len() < last.len(), "the killed driver had sent all");
    for (what, got, want) in [
        ("the first capture", head, &all[..FIRST]),
        ("what a killed driver sent", part, &last[..part.len()]),
        ("the last capture", tail, last),
    ] {
        let differs = got.iter().zip(want).position(|(got, want)| got != want);
        ensure!(
            differs.is_none(),
            "frame {differs:?} of {what} came changed"
        );
    }
    println!(
        "  {} frames went in and came out byte-identical, {} more of a killed driver",
        FIRST + last.len(),
        part.len()
    );
    Ok(())
}
