//! Transmit completion: our own driver is killed with every interrupt of its own on, and the stock
//! `virtio_net` goes on with the card as if it had never been. Then how often the card interrupts that
//! driver, in the workloads of `bench completion`.

use std::fs;

use ferronic_figures::Figure;
use ferronic_guest_agent::Request;
use ferronic_spec::window as w;

use super::frames::{self, Frame};
use super::tools::{
    Direction, PEER, card, interface_up, kernel_is_content, load_virtio_net, ping, ping_to,
    transfer, until,
};
use super::vfio::{FERRONIC, Ours, RESETS, SIGKILL};
use super::{Bench, Setup};
use crate::reference::bench_interrupts_per_packet;
use crate::{Content, Extra, Guest, GuestError, Iommu, Machine, PATIENCE, ensure};

const MIB: u64 = 1 << 20;
/// Kernels keep programs from the registers of a driver, unless told so.
const LOOK_ON: &str = "iomem=relaxed";
/// What our driver sends until it is killed, in the guest.
const FRAMES: &str = "/frames.pcap";
/// More than can be sent while the registers are written and read.
const COUNT: usize = 12_000;
/// Frames of it after which it is killed.
const MIDST: f64 = 300.0;

/// Settings that belong to the whole card: register, what a reset gives, another value.
const SETTINGS: [(u64, u32, u32); 5] = [
    (w::LRO_PROFILE, 1, 0),
    (w::LRO_GAP, 12_500, 777),
    (w::LRO_HOLD, 50_000, 999),
    (w::LRO_MAX_BYTES, 65_535, 9_000),
    (w::LRO_LOW_WATER, 0, 5),
];

/// Those of each transmit queue: the interrupts are off after a reset. Times are short, so that a ring that
/// is never empty is told of often.
const QUEUE_SETTINGS: [(u64, u32, u32); 3] = [
    (w::TX_EMPTY, 0, 1 << 31 | 100),
    (w::TX_MAX_AGE, 0, 500),
    (w::TX_MARKER, 0, 1),
];

/// Counters of each transmit queue, by cause.
const CAUSES: [(u64, &str); 4] = [
    (w::TX_IRQ_EMPTY, "empty"),
    (w::TX_IRQ_MAX_AGE, "max-age"),
    (w::TX_IRQ_MARKER, "marker"),
    (w::TX_OVERTAKEN, "overtaken"),
];

/// Our policies that stand beside the kernel's driver.
const POLICIES: [&str; 3] = ["ring-empty", "ring-empty-holdoff", "event-idx"];

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    let file = bench.dir.join("completion.pcap");
    frames::write(&file, &full_frames())?;
    let data = fs::read(&file).map_err(GuestError::file(&file))?;
    let mut setup = Setup::new("completion", Iommu::PassThrough);
    setup.kernel_arguments = LOOK_ON;
    setup.extras.push(Extra {
        path: FRAMES.trim_start_matches('/').to_owned(),
        content: Content::Data(data),
    });
    let mut machine = bench.boot(&setup)?;
    if let Err(error) = scenario(bench, &mut machine) {
        return Err(machine.explain(&error));
    }
    machine.stop().map(|_| ())
}

/// Frames of 1,514 bytes that nobody answers.
fn full_frames() -> Vec<Frame> {
    let mut frame = vec![0xff; 1514];
    frame[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 1]);
    // For local experiments.
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    vec![frame; COUNT]
}

fn scenario(bench: &mut Bench, machine: &mut Machine) -> Result<(), GuestError> {
    load_virtio_net(&mut machine.guest)?;
    let address = card(&mut machine.guest)?.address;
    let interface = interface_up(&mut machine.guest, &address)?.name;
    let window = Window::of(&mut machine.guest, &address)?;
    window.check(&mut machine.guest, Which::Reset, "of a new card")?;
    machine.guest.order(Request::Down { interface })?;

    killed(machine, &window)?;

    let line = [FERRONIC, "unbind", &address, "--restore"];
    machine.guest.succeed(&line, PATIENCE)?;
    interface_up(&mut machine.guest, &address)?;
    let guest = &mut machine.guest;
    window.check(guest, Which::Reset, "after a driver that was killed")?;
    let before = window.causes(guest)?;
    ping(guest, 100, 64)?;
    for (seed, direction) in (1..).zip(Direction::BOTH) {
        transfer(machine, direction, 4 * MIB, seed)?;
    }
    println!("  stock driver: pings and 4 MiB of TCP each way are complete");
    workloads(bench, machine)?;
    let guest = &mut machine.guest;
    let after = window.causes(guest)?;
    ensure!(
        before == after,
        "the card interrupted the stock driver for reasons that are not virtio's: empty, max-age, marker, \
         overtaken of each queue were {before:?}, are {after:?}"
    );
    window.check(guest, Which::Reset, "when the stock driver had worked")?;
    kernel_is_content(guest)
}

/// Our driver, with all interrupts of all queues on and LRO set otherwise, killed while it sends.
fn killed(machine: &mut Machine, window: &Window) -> Result<(), GuestError> {
    let mut ours = Ours::new(machine)?;
    ours.bind()?;
    let before = ours.counters()?;
    // It marks frames by itself.
    let pid = ours.spawn(&["send", "--read", FRAMES, "--completion", "marker"])?;
    let sent = |ours: &mut Ours<'_>, least: f64| {
        until("frames of our driver", PATIENCE, || {
            let passed = ours.counters()?.since(&before);
            Ok((passed.get("frames tx") > least).then_some(passed))
        })
    };
    sent(&mut ours, MIDST)?;
    let told = window.causes(ours.guest())?;
    window.set(ours.guest())?;
    window.check(ours.guest(), Which::Other, "under our driver")?;
    // With all of it on, and told of by more than one cause.
    let (mut seen, mut causes) = (before.clone(), Vec::new());
    until("interrupts by max-age and marker", PATIENCE, || {
        seen = ours.counters()?.since(&before);
        let now = window.causes(ours.guest())?;
        causes = now
            .iter()
            .zip(&told)
            .map(|(a, b)| a.wrapping_sub(*b))
            .collect();
        Ok((causes[1] > 10 && causes[2] > 10).then_some(()))
    })?;
    let exit = ours.end(pid, SIGKILL)?;
    ensure!(
        exit.signal == Some(SIGKILL),
        "our driver was over before it was killed: {exit:?}"
    );
    let after = ours.counters()?.since(&before);
    ensure!(
        after.get(RESETS) > seen.get(RESETS),
        "the card was not reset when its driver was killed"
    );
    let told: Vec<_> = CAUSES
        .iter()
        .zip(&causes)
        .map(|((_, name), count)| format!("{name} {count}"))
        .collect();
    println!(
        "  ours killed after {:.0} of {COUNT} frames with everything on; interrupts of its queue: {}",
        after.get("frames tx"),
        told.join(", ")
    );
    Ok(())
}

/// Which values the settings should have.
#[derive(Clone, Copy)]
enum Which {
    /// Those after a reset.
    Reset,
    /// The others.
    Other,
}

/// The card's own window, looked at beside its driver.
struct Window {
    address: String,
    pairs: u64,
}

impl Window {
    fn of(guest: &mut Guest, address: &str) -> Result<Self, GuestError> {
        let mut window = Self {
            address: address.to_owned(),
            pairs: 0,
        };
        let found = window.read(guest, &[w::UUID0, w::FEATURES, w::CAPS])?;
        let [uuid, features, caps] = found[..] else {
            return Err(GuestError::Check(format!("three registers are {found:?}")));
        };
        ensure!(
            uuid == ferronic_spec::pci::dvsec::CARD_UUID[0],
            "the card's window is not where it should be: {uuid:#x}"
        );
        for (what, field) in [("LRO", w::FEATURES_LRO), ("TX_EMPTY", w::FEATURES_TX_EMPTY)] {
            ensure!(
                features >> field.lsb & 1 == 1,
                "the card has no {what}: FEATURES is {features:#x}"
            );
        }
        window.pairs = u64::from(caps & 0xff);
        Ok(window)
    }

    fn read(&self, guest: &mut Guest, offsets: &[u64]) -> Result<Vec<u32>, GuestError> {
        guest.ask(Request::Registers {
            address: self.address.clone(),
            bar: 0,
            offsets: offsets.iter().map(|offset| w::BASE + offset).collect(),
        })
    }

    /// Every setting: where it is, what a reset gives, the other value.
    fn settings(&self) -> Vec<(u64, u32, u32)> {
        let of_queues = (0..self.pairs).flat_map(|pair| {
            let row = pair * w::TX_EMPTY_STRIDE;
            QUEUE_SETTINGS.map(|(offset, reset, other)| (offset + row, reset, other))
        });
        SETTINGS.into_iter().chain(of_queues).collect()
    }

    /// Gives every setting its other value.
    fn set(&self, guest: &mut Guest) -> Result<(), GuestError> {
        let settings = self.settings();
        let values = settings.iter().map(|(at, _, other)| (w::BASE + at, *other));
        guest.order(Request::SetRegisters {
            address: self.address.clone(),
            bar: 0,
            values: values.collect(),
        })
    }

    /// Fails unless every setting has the value that is wanted.
    fn check(&self, guest: &mut Guest, want: Which, when: &str) -> Result<(), GuestError> {
        let settings = self.settings();
        let offsets: Vec<u64> = settings.iter().map(|(at, ..)| *at).collect();
        let values = self.read(guest, &offsets)?;
        for ((at, reset, other), value) in settings.iter().zip(values) {
            let want = match want {
                Which::Reset => *reset,
                Which::Other => *other,
            };
            ensure!(
                value == want,
                "register {at:#x} of the window is {value:#x} {when}, not {want:#x}"
            );
        }
        Ok(())
    }

    /// The counters by cause, those of one queue after those of another.
    fn causes(&self, guest: &mut Guest) -> Result<Vec<u32>, GuestError> {
        let offsets: Vec<u64> = (0..self.pairs)
            .flat_map(|pair| CAUSES.map(|(offset, _)| offset + pair * w::TX_EMPTY_STRIDE))
            .collect();
        self.read(guest, &offsets)
    }
}

/// What the kernel's driver is given to do, by the names of `bench completion`.
#[derive(Clone, Copy)]
enum Workload {
    Bulk,
    Ping,
    Preload,
}

impl Workload {
    const ALL: [Self; 3] = [Self::Bulk, Self::Ping, Self::Preload];

    const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Ping => "ping",
            Self::Preload => "ping-preload",
        }
    }

    fn run(self, machine: &mut Machine) -> Result<(), GuestError> {
        let guest = &mut machine.guest;
        match self {
            Self::Bulk => transfer(machine, Direction::Transmit, 16 * MIB, 7).map(|_| ()),
            Self::Ping => ping_to(guest, PEER, 1000, 56, 1).map(|_| ()),
            Self::Preload => ping_to(guest, PEER, 1000, 1000, 120).map(|_| ()),
        }
    }
}

/// Interrupts of the transmit queue for each frame on the wire, beside what ours has.
fn workloads(bench: &mut Bench, machine: &mut Machine) -> Result<(), GuestError> {
    println!(
        "  interrupts of the transmit queue for each frame on the wire; ours as recorded of bench completion"
    );
    print!(
        "    {:13} {:>7} {:>6} {:>7}",
        "workload", "frames", "irqs", "linux"
    );
    for policy in POLICIES {
        print!(" {policy:>18}");
    }
    println!();
    for workload in Workload::ALL {
        let name = workload.name();
        let before = machine.card.counters()?;
        let irqs = output_interrupts(&machine.guest.read("/proc/interrupts")?);
        workload.run(machine)?;
        let irqs = output_interrupts(&machine.guest.read("/proc/interrupts")?) - irqs;
        let frames = machine.card.counters()?.since(&before).get("frames tx");
        let ratio = irqs as f64 / frames;
        ensure!(frames >= 1000.0, "{name}: {frames} frames were sent");
        print!("    {name:13} {frames:>7} {irqs:>6} {ratio:>7.3}");
        let figure = |driver: &str, value: f64| {
            Figure::new("interrupts_per_packet", value, "interrupts")
                .with("driver", driver)
                .with("workload", name)
        };
        bench.record(figure("linux", ratio));
        for policy in POLICIES {
            let ours = bench_interrupts_per_packet(name, policy)?;
            print!(" {ours:>18.3}");
            bench.record(figure("ferronic", ours).with("policy", policy));
        }
        println!();
    }
    Ok(())
}

/// Interrupts of the transmit queues of `virtio_net` (`virtio0-output.0`), in `/proc/interrupts`.
fn output_interrupts(text: &str) -> u64 {
    let lines = text.lines().filter(|line| line.contains("-output."));
    lines
        .flat_map(|line| {
            let counts = line.split_whitespace().skip(1);
            counts.map_while(|word| word.parse::<u64>().ok())
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_transmit_queues_are_summed() {
        let text = "           CPU0       CPU1\n \
             24:          0          1  PCI-MSIX-0000:00:04.0   0-edge      virtio0-config\n \
             25:         10         20  PCI-MSIX-0000:00:04.0   1-edge      virtio0-input.0\n \
             26:          3          4  PCI-MSIX-0000:00:04.0   2-edge      virtio0-output.0\n \
             28:          5          0  PCI-MSIX-0000:00:04.0   4-edge      virtio0-output.1\n";
        assert_eq!(output_interrupts(text), 12);
        assert_eq!(output_interrupts(""), 0);
    }
}
