//! DPDK's virtio driver: testpmd receives, sends, and returns frames with their addresses swapped.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ferronic_figures::Figure;
use ferronic_guest_agent::{Exit, Request};

use super::frames::Frame;
use super::tools::{card, kernel_is_content, load_vfio_pci, until};
use super::{Bench, Setup, frames};
use crate::{Counters, Guest, GuestError, Iommu, Machine, PATIENCE, ensure};

/// Frames of each mode, at least.
const FRAMES: usize = 10_000;
/// Of 2 MiB; testpmd keeps its buffers there.
const HUGE_PAGES: u32 = 24;
const MAC: std::ops::Range<usize> = 0..6;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    let given = frames::random(FRAMES);
    let input = bench.dir.join("dpdk-in.pcap");
    frames::write(&input, &given)?;
    let files = bench.kit.dpdk()?;
    for session in [Session::ReceiveThenSend, Session::Swap] {
        let output = bench.dir.join(format!("dpdk-{}.pcap", session.name()));
        let mut setup = Setup::new("dpdk", Iommu::Strict);
        setup.wire = format!("pcap:in={},out={}", input.display(), output.display());
        // testpmd is built for SSE 4.2.
        setup.cpu = "Nehalem";
        setup.extras = files.clone();
        let mut machine = bench.boot(&setup)?;
        let result = match session {
            Session::ReceiveThenSend => with_testpmd(bench, &mut machine, receive_then_send),
            Session::Swap => with_testpmd(bench, &mut machine, swap),
        };
        let sent = match result {
            Ok(sent) => sent,
            Err(error) => return Err(machine.explain(&error)),
        };
        machine.stop()?;
        let left = frames::read(&output)?;
        ensure!(
            left.len() as u64 == sent,
            "{}: testpmd counted {sent} frames sent, the wire {}",
            session.name(),
            left.len()
        );
        if session == Session::Swap {
            same(&left, &given)?;
        }
        remove(&output)?;
    }
    remove(&input)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    ReceiveThenSend,
    Swap,
}

impl Session {
    const fn name(self) -> &'static str {
        match self {
            Self::ReceiveThenSend => "receive-then-send",
            Self::Swap => "macswap",
        }
    }
}

/// The same frames in the same order, with their addresses swapped.
fn same(left: &[Frame], given: &[Frame]) -> Result<(), GuestError> {
    for (n, (left, given)) in left.iter().zip(given).enumerate() {
        let mut want = given.clone();
        want[MAC].copy_from_slice(&given[6..12]);
        want[6..12].copy_from_slice(&given[MAC]);
        ensure!(
            *left == want,
            "frame {n} came back changed: {} bytes, {} expected",
            left.len(),
            want.len()
        );
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), GuestError> {
    fs::remove_file(path).map_err(GuestError::file(path))
}

/// testpmd, told what to do.
struct Testpmd {
    pid: u32,
}

impl Testpmd {
    /// Gives the card to vfio-pci and starts testpmd on it.
    fn start(guest: &mut Guest) -> Result<Self, GuestError> {
        load_vfio_pci(guest)?;
        let address = card(guest)?.address;
        guest.succeed(&["/bin/ferronic", "bind", &address], PATIENCE)?;
        guest.write("/proc/sys/vm/nr_hugepages", &HUGE_PAGES.to_string())?;
        let got = guest.read("/proc/sys/vm/nr_hugepages")?;
        ensure!(
            got.trim() == HUGE_PAGES.to_string(),
            "the guest has {} huge pages, {HUGE_PAGES} are needed",
            got.trim()
        );
        let argv = [
            "/usr/bin/dpdk-testpmd",
            "--iova-mode=va",
            "-m",
            "32",
            // Two threads on one processor.
            "--lcores",
            "0@0,1@0",
            "-a",
            &address,
            "--",
            "-i",
            "--total-num-mbufs=2048",
            // Frames that came before the start count too.
            "--no-flush-rx",
        ];
        let argv = argv.map(str::to_owned).to_vec();
        let pid = guest.ask(Request::Spawn { argv })?;
        Ok(Self { pid })
    }

    /// Adds what testpmd printed to an error.
    fn explain(&self, guest: &mut Guest, error: GuestError) -> GuestError {
        let ended = guest
            .order(Request::Signal {
                pid: self.pid,
                signal: 9,
            })
            .and_then(|()| {
                guest.ask(Request::Wait {
                    pid: self.pid,
                    timeout_ms: 5000,
                })
            });
        let said = ended.map_or_else(
            |error| error.to_string(),
            |exit: Exit| format!("{}{}", exit.stdout, exit.stderr),
        );
        GuestError::Check(format!("{error}\ntestpmd said:\n{said}"))
    }

    fn say(&self, guest: &mut Guest, text: &str) -> Result<(), GuestError> {
        guest.order(Request::Say {
            pid: self.pid,
            text: format!("{text}\n"),
        })
    }

    /// Ends testpmd; for each time that it was stopped, what it counted.
    fn quit(self, guest: &mut Guest) -> Result<Vec<Counted>, GuestError> {
        self.say(guest, "quit")?;
        let exit: Exit = guest.ask(Request::Wait {
            pid: self.pid,
            timeout_ms: 30_000,
        })?;
        ensure!(
            exit.code == Some(0),
            "testpmd ended with {:?}, signal {:?}:\n{}{}",
            exit.code,
            exit.signal,
            exit.stdout,
            exit.stderr
        );
        Ok(counted(&exit.stdout))
    }
}

/// Packets that testpmd counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    received: u64,
    sent: u64,
}

/// The statistics of each run, from what testpmd printed.
fn counted(text: &str) -> Vec<Counted> {
    let number = |line: &str, name: &str| -> Option<u64> {
        let rest = line.split(name).nth(1)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let mut all = Vec::new();
    let mut begun: Option<Counted> = None;
    for line in text.lines() {
        if line.contains("Forward statistics for port") {
            begun = Some(Counted::default());
        }
        let Some(counts) = &mut begun else { continue };
        if let Some(received) = number(line, "RX-packets:") {
            counts.received = received;
        }
        if let Some(sent) = number(line, "TX-packets:") {
            counts.sent = sent;
            all.push(*counts);
            begun = None;
        }
    }
    all
}

/// Waits until the wire has seen so many frames.
fn wire_has(machine: &mut Machine, name: &str, count: usize) -> Result<Counters, GuestError> {
    until(
        &format!("{count} frames ({name})"),
        Duration::from_secs(60),
        || {
            let counters = machine.card.counters()?;
            Ok((counters.get(name) >= count as f64).then_some(counters))
        },
    )
}

/// Waits until nothing passes any more.
fn quiet(machine: &mut Machine) -> Result<Counters, GuestError> {
    let mut before = machine.card.counters()?;
    until("the end of traffic", Duration::from_secs(60), || {
        std::thread::sleep(Duration::from_millis(200));
        let now = machine.card.counters()?;
        let still = ["frames rx", "frames tx", "doorbells"]
            .iter()
            .all(|name| now.get(name) == before.get(name));
        before = now.clone();
        Ok(still.then_some(now))
    })
}

/// Starts testpmd, lets `body` use it, ends it; how many frames it sent in all.
fn with_testpmd(
    bench: &mut Bench,
    machine: &mut Machine,
    body: fn(&mut Bench, &mut Machine, &Testpmd) -> Result<Check, GuestError>,
) -> Result<u64, GuestError> {
    let testpmd = Testpmd::start(&mut machine.guest)?;
    let check = match body(bench, machine, &testpmd) {
        Ok(check) => check,
        Err(error) => return Err(testpmd.explain(&mut machine.guest, error)),
    };
    let counts = testpmd.quit(&mut machine.guest)?;
    kernel_is_content(&mut machine.guest)?;
    check(&counts)?;
    Ok(counts.iter().map(|count| count.sent).sum())
}

/// What must hold of the counts of each run.
type Check = fn(&[Counted]) -> Result<(), GuestError>;

/// Both modes of one direction.
fn receive_then_send(
    bench: &mut Bench,
    machine: &mut Machine,
    testpmd: &Testpmd,
) -> Result<Check, GuestError> {
    // The wire gives its first frame when the driver is ready.
    wire_has(machine, "frames rx", 1)?;
    let boot = machine.started.elapsed().as_secs_f64();
    bench.record(Figure::new("boot_s", boot, "s").with("driver", "dpdk"));
    let guest = &mut machine.guest;
    let before = machine.card.counters()?;
    testpmd.say(guest, "set fwd rxonly")?;
    testpmd.say(guest, "start")?;
    let enough = wire_has(machine, "frames rx", FRAMES)?;
    measure(bench, &enough.since(&before), "rx");
    let received = quiet(machine)?;
    testpmd.say(&mut machine.guest, "stop")?;

    testpmd.say(&mut machine.guest, "set fwd txonly")?;
    testpmd.say(&mut machine.guest, "start")?;
    let enough = wire_has(machine, "frames tx", FRAMES)?;
    measure(bench, &enough.since(&received), "tx");
    testpmd.say(&mut machine.guest, "stop")?;
    quiet(machine)?;
    Ok(|counts| {
        let [first, second] = counts else {
            return Err(GuestError::Check(format!("testpmd counted {counts:?}")));
        };
        println!(
            "  rxonly: {} frames received; txonly: {} frames sent",
            first.received, second.sent
        );
        ensure!(
            first.received == FRAMES as u64 && second.sent >= FRAMES as u64,
            "testpmd counted {counts:?}; the wire gave {FRAMES}"
        );
        Ok(())
    })
}

/// Every frame comes back with its addresses swapped.
fn swap(bench: &mut Bench, machine: &mut Machine, testpmd: &Testpmd) -> Result<Check, GuestError> {
    let before = machine.card.counters()?;
    // A full ring is waited for: nothing may be dropped.
    testpmd.say(&mut machine.guest, "set fwd macswap retry")?;
    testpmd.say(&mut machine.guest, "set burst tx delay 100 retry 20000")?;
    testpmd.say(&mut machine.guest, "start")?;
    let enough = wire_has(machine, "frames tx", FRAMES)?;
    measure(bench, &enough.since(&before), "both");
    quiet(machine)?;
    testpmd.say(&mut machine.guest, "stop")?;
    Ok(|counts| {
        let [count] = counts else {
            return Err(GuestError::Check(format!("testpmd counted {counts:?}")));
        };
        println!(
            "  macswap: {} frames received, {} sent",
            count.received, count.sent
        );
        ensure!(
            count.received == FRAMES as u64 && count.sent == FRAMES as u64,
            "testpmd counted {count:?}, not {FRAMES} each way"
        );
        Ok(())
    })
}

fn measure(bench: &mut Bench, counters: &Counters, direction: &str) {
    let sum = |name: &str| {
        let of = |direction: &str| counters.get(&format!("{name} {direction}"));
        match direction {
            "both" => of("rx") + of("tx"),
            one => of(one),
        }
    };
    let (bytes, frames) = (sum("bytes"), sum("frames"));
    for (name, value, unit) in [
        ("mbit_s", bytes * 8e-6 / counters.get("wall_s"), "Mbit/s"),
        (
            "bytes_per_cycle",
            bytes / counters.get("outstanding_cycles"),
            "B",
        ),
        (
            "interrupts_per_frame",
            counters.get("interrupts") / frames,
            "1",
        ),
        (
            "doorbells_per_frame",
            counters.get("doorbells") / frames,
            "1",
        ),
    ] {
        bench.record(
            Figure::new(name, value, unit)
                .with("driver", "dpdk")
                .with("direction", direction)
                .with("tso", "off")
                .with("frame_bytes", (bytes / frames).round()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_each_run_are_found() {
        let text = "testpmd> \n\
            ---------------------- Forward statistics for port 0  ----------------------\n\
            RX-packets: 12             RX-dropped: 0             RX-total: 12\n\
            TX-packets: 0              TX-dropped: 0             TX-total: 0\n\
            +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++\n\
            RX-packets: 99             RX-dropped: 0             RX-total: 99\n\
            TX-packets: 98             TX-dropped: 0             TX-total: 98\n\
            ---------------------- Forward statistics for port 0  ----------------------\n\
            RX-packets: 0              RX-dropped: 0             RX-total: 0\n\
            TX-packets: 7              TX-dropped: 3             TX-total: 10\n";
        let want = |received, sent| Counted { received, sent };
        assert_eq!(counted(text), [want(12, 0), want(0, 7)]);
    }
}
