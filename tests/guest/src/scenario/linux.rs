//! The stock `virtio_net`: first behind a strict IOMMU, for correctness, then with `iommu=pt`, for
//! rates.

use std::collections::BTreeMap;

use ferronic_figures::Figure;
use ferronic_guest_agent::{Interface, Offload, PciFunction, Pings, Request, Transfer};

use super::seen::Seen;
use super::tools::{
    Direction, PEER, VIRTIO_PCI, card, interface_up, kernel_is_content, load_virtio_net, median,
    ping, transfer, transfer_request, until,
};
use super::{Bench, Setup};
use crate::reference::bench_bytes_per_cycle;
use crate::{Counters, GuestError, Iommu, Machine, PATIENCE, ensure};

const MIB: u64 = 1 << 20;
/// Bytes of a transfer that counts.
const BULK: u64 = 4 * MIB;
/// Bytes of one that only shows that things work.
const SOME: u64 = MIB / 4;
/// Bytes of transfers that are broken off, by direction. What is sent is made beforehand.
const ENDLESS: [u64; 2] = [4 * MIB, 16 * MIB];
/// Bytes on the wire, each way, by which they are on their way.
const UNDER_WAY: f64 = 150e3;
/// Times that the driver is taken away.
const ROUNDS: u64 = 4;
const PINGS: u32 = 200;
const JUMBO: u32 = 9000;
const USUAL: u32 = 1500;
const LEAST: u32 = 1280;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    for iommu in [Iommu::Strict, Iommu::PassThrough] {
        let mut machine = bench.boot(&Setup::new("linux", iommu))?;
        let result = match iommu {
            Iommu::Strict => correctness(bench, &mut machine),
            Iommu::PassThrough => rates(bench, &mut machine),
        };
        if let Err(error) = result {
            return Err(machine.explain(&error));
        }
        machine.stop()?;
    }
    Ok(())
}

fn correctness(bench: &mut Bench, machine: &mut Machine) -> Result<(), GuestError> {
    let (card, interface) = start(machine)?;
    let boot = machine.started.elapsed().as_secs_f64();
    ensure!(
        card.group.is_some(),
        "the card is in no IOMMU group: {card:?}"
    );
    println!("  link up {boot:.1} s after the start of QEMU");
    bench.record(Figure::new("boot_s", boot, "s").with("driver", "linux"));

    for size in [64, 1400] {
        let pings = ping(&mut machine.guest, PINGS, size)?;
        println!(
            "  {PINGS} pings of {size} bytes: median {:.2} ms",
            median(&pings.us) / 1e3
        );
    }
    for (seed, direction) in (1..).zip(Direction::BOTH) {
        let (transfer, _) = transfer(machine, direction, BULK, seed)?;
        said(&transfer, direction, "");
    }
    ethtool(machine, &card, &interface)?;
    mtu(machine, &interface)?;
    down_and_up(machine, &card, &interface)?;
    unbind_under_traffic(machine, &card)?;
    kernel_is_content(&mut machine.guest)?;

    machine.reboot()?;
    println!(
        "  up again {:.1} s after a reboot",
        machine.boot.as_secs_f64()
    );
    start(machine)?;
    ping(&mut machine.guest, 20, 64)?;
    for (seed, direction) in (11..).zip(Direction::BOTH) {
        transfer(machine, direction, SOME, seed)?;
    }
    kernel_is_content(&mut machine.guest)
}

/// Loads the driver and takes the interface up.
fn start(machine: &mut Machine) -> Result<(PciFunction, Interface), GuestError> {
    load_virtio_net(&mut machine.guest)?;
    let card = card(&mut machine.guest)?;
    let interface = interface_up(&mut machine.guest, &card.address)?;
    Ok((card, interface))
}

/// What `ethtool -i`, `-l` and `-S` tell is so: kicks are doorbells, packets are frames on the wire.
fn ethtool(
    machine: &mut Machine,
    card: &PciFunction,
    interface: &Interface,
) -> Result<(), GuestError> {
    let before = Seen::of(machine, interface)?;
    ping(&mut machine.guest, 50, 1000)?;
    let after = Seen::of(machine, interface)?;
    let told = &after.ethtool;
    ensure!(
        told.driver == "virtio_net" && told.bus.ends_with(&card.address) && told.link,
        "ethtool -i tells {told:?}"
    );
    ensure!(
        told.combined >= 1 && told.max_combined >= told.combined,
        "ethtool -l tells {told:?}"
    );
    let counters = after.counters.since(&before.counters);
    let kicked = after.kicks("") - before.kicks("");
    ensure!(
        kicked as f64 == counters.get("doorbells") && kicked >= 50,
        "ethtool -S counted {kicked} kicks, the card {} doorbells",
        counters.get("doorbells")
    );
    for (direction, before, after) in [
        ("tx", before.packets[0], after.packets[0]),
        ("rx", before.packets[1], after.packets[1]),
    ] {
        let passed = counters.get(&format!("frames {direction}"));
        ensure!(
            (after - before) as f64 == passed && passed >= 50.0,
            "the driver counted {} packets ({direction}), the wire {passed}",
            after - before
        );
    }
    Ok(())
}

/// Frames as large as the MTU pass, whatever it is.
fn mtu(machine: &mut Machine, interface: &Interface) -> Result<(), GuestError> {
    const HEADERS: u32 = 28;
    for (seed, mtu) in (21..).zip([LEAST, JUMBO, USUAL]) {
        machine.guest.order(Request::Mtu {
            interface: interface.name.clone(),
            mtu,
        })?;
        ping(&mut machine.guest, 20, (mtu - HEADERS) as usize)?;
        for direction in Direction::BOTH {
            let bytes = if mtu == JUMBO { BULK } else { SOME };
            let (done, counters) = transfer(machine, direction, bytes, seed)?;
            said(&done, direction, &format!(", MTU {mtu}"));
            let name = direction.name();
            let (bytes, frames) = (
                counters.get(&format!("bytes {name}")),
                counters.get(&format!("frames {name}")),
            );
            // Frames as large as they may be, but for those at the ends.
            let mean = bytes / frames;
            let most = f64::from(mtu) + 14.0;
            ensure!(
                mean > most * 0.6 && mean <= most,
                "frames have {mean:.0} bytes on average with an MTU of {mtu}"
            );
        }
    }
    Ok(())
}

fn down_and_up(
    machine: &mut Machine,
    card: &PciFunction,
    interface: &Interface,
) -> Result<(), GuestError> {
    for _ in 0..3 {
        machine.guest.order(Request::Down {
            interface: interface.name.clone(),
        })?;
        let lost: Pings = machine.guest.ask(Request::Ping {
            to: PEER,
            count: 1,
            size: 64,
            at_once: 1,
            timeout_ms: 50,
        })?;
        ensure!(
            lost.received == 0,
            "a ping was answered while the interface was down"
        );
        interface_up(&mut machine.guest, &card.address)?;
        ping(&mut machine.guest, 10, 64)?;
    }
    println!("  down and up again");
    Ok(())
}

/// The driver goes while frames are on their way in both directions, and comes back.
fn unbind_under_traffic(machine: &mut Machine, card: &PciFunction) -> Result<(), GuestError> {
    for round in 0..ROUNDS {
        let before = machine.card.counters()?;
        let mut traffic = Vec::new();
        for (direction, bytes) in Direction::BOTH.into_iter().zip(ENDLESS) {
            let request = transfer_request(direction, bytes, round);
            traffic.push(machine.guest.start(request)?);
        }
        until("traffic", PATIENCE, || {
            let passed = machine.card.counters()?.since(&before);
            let both = ["bytes rx", "bytes tx"].map(|name| passed.get(name));
            let enough = both.iter().all(|bytes| *bytes > UNDER_WAY);
            Ok(enough.then_some(()))
        })?;
        machine
            .guest
            .write(&format!("{VIRTIO_PCI}/unbind"), &card.address)?;
        machine
            .guest
            .write(&format!("{VIRTIO_PCI}/bind"), &card.address)?;
        interface_up(&mut machine.guest, &card.address)?;
        // The address is there again, so the connections would go on.
        machine.guest.order(Request::Disconnect)?;
        for pending in traffic {
            // Broken off, or through before that.
            let _: Result<Transfer, GuestError> = pending.wait(PATIENCE);
        }
        ping(&mut machine.guest, 20, 1400)?;
    }
    transfer(machine, Direction::Receive, SOME, 31)?;
    println!("  {ROUNDS} times unbound and bound again under traffic");
    Ok(())
}

fn rates(bench: &mut Bench, machine: &mut Machine) -> Result<(), GuestError> {
    let (_, interface) = start(machine)?;
    machine.card.counters()?;
    let pings = ping(&mut machine.guest, PINGS, 64)?;
    let counters = machine.card.counters()?;
    let ms = median(&pings.us) / 1e3;
    let cycles = counters.get("doorbell_to_interrupt_median");
    println!(
        "  ping of 64 bytes: median {ms:.2} ms of the host (limit {PING_MS}), {cycles:.0} cycles"
    );
    bench.record(Figure::new("ping_ms_median", ms, "ms").with("driver", "linux"));
    bench.record(Figure::new("ping_cycles_median", cycles, "cycles").with("driver", "linux"));
    ensure!(
        ms < PING_MS,
        "a ping takes {ms:.2} ms of the host, {PING_MS} at most are due"
    );
    let offloads: BTreeMap<String, Offload> = machine.guest.ask(Request::Offloads {
        interface: interface.name.clone(),
    })?;
    let cuts = offloads.get("tx-tcp-segmentation").is_some_and(|o| o.on);
    let tso = if cuts { "on" } else { "off" };
    for mtu in [USUAL, JUMBO] {
        machine.guest.order(Request::Mtu {
            interface: interface.name.clone(),
            mtu,
        })?;
        for (seed, direction) in (41..).zip(Direction::BOTH) {
            // The first opens the windows.
            transfer(machine, direction, SOME, seed)?;
            for attempt in 1.. {
                let (done, counters) = transfer(machine, direction, 2 * BULK, seed + 10)?;
                match rate(bench, &done, &counters, (direction, mtu, tso)) {
                    // How often a ring runs empty is up to a host that has other things to do.
                    Err(error) if attempt == ATTEMPTS => return Err(error),
                    Err(error) => println!("  once more: {error}"),
                    Ok(()) => break,
                }
            }
        }
    }
    kernel_is_content(&mut machine.guest)
}

/// What a stock driver must reach of what ours reaches in the bench.
const SHARE: f64 = 0.6;
/// Times that it may miss it.
const ATTEMPTS: u32 = 3;
/// Longest median of a ping, in ms of the host.
const PING_MS: f64 = 5.0;
/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

fn rate(
    bench: &mut Bench,
    done: &Transfer,
    counters: &Counters,
    (direction, mtu, tso): (Direction, u32, &str),
) -> Result<(), GuestError> {
    let name = direction.name();
    let frames = counters.get(&format!("frames {name}"));
    let all = counters.get("frames rx") + counters.get("frames tx");
    let bytes = counters.get(&format!("bytes {name}"));
    let mbit = done.bytes as f64 * 8e-6 / done.seconds;
    let per_cycle = bytes / counters.get("outstanding_cycles");
    let share = per_cycle / bench_bytes_per_cycle(name, mtu + ETHERNET)?;
    let interrupts = counters.get("interrupts") / all;
    let doorbells = counters.get("doorbells") / all;
    println!(
        "  TCP {name}, MTU {mtu}: {mbit:.1} Mbit/s of the host, {per_cycle:.2} bytes a cycle \
         ({:.0} % of bench cosim, limit {:.0} %; {frames:.0} frames), {interrupts:.3} interrupts and \
         {doorbells:.3} doorbells a frame",
        100.0 * share,
        100.0 * SHARE
    );
    ensure!(
        share >= SHARE,
        "{name}, MTU {mtu}: {per_cycle:.2} bytes a cycle is {:.0} % of what the bench reaches",
        100.0 * share
    );
    for (figure, value, unit) in [
        ("tcp_mbit_s", mbit, "Mbit/s"),
        ("bytes_per_cycle", per_cycle, "B"),
        ("share_of_bench", share, "1"),
        ("interrupts_per_frame", interrupts, "1"),
        ("doorbells_per_frame", doorbells, "1"),
    ] {
        bench.record(
            Figure::new(figure, value, unit)
                .with("driver", "linux")
                .with("direction", name)
                .with("tso", tso)
                .with("mtu", mtu),
        );
    }
    Ok(())
}

fn said(done: &Transfer, direction: Direction, more: &str) {
    println!(
        "  {:.1} MiB of TCP {}{more}: {:.1} Mbit/s",
        done.bytes as f64 / MIB as f64,
        direction.name(),
        done.bytes as f64 * 8e-6 / done.seconds
    );
}
