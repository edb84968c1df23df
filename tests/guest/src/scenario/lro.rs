//! Segments that the card merges for the stock `virtio_net`: TCP with and without, checked; what it
//! saves; then a bridge, behind which the frames must be as they came.

mod bridge;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ferronic_figures::Figure;
use ferronic_guest_agent::{Interface, Offload, Request, Transfer};
use ferronic_spec::window;

use super::seen::Seen;
use super::tools::{
    Direction, GUEST_IPV6, PEER, PEER_V6, card, interface_up, kernel_is_content, load_virtio_net,
    transfer_with, until,
};
use super::{Bench, Setup};
use crate::{GuestError, Iommu, Machine, ensure};

const MIB: u64 = 1 << 20;
/// Bytes of a transfer.
const BULK: u64 = 16 * MIB;
/// Bytes of one that opens the windows.
const SOME: u64 = MIB / 4;
/// Of the data path, in bits: the one of the first board, and the best.
const WIDTHS: [&str; 2] = ["64", "512"];
/// The one of bulk transfers.
const WIDTH: &str = WIDTHS[1];
/// Kernels keep programs from the registers of a driver, unless told so.
const LOOK_ON: &str = "iomem=relaxed";
/// GUEST_TSO4 and GUEST_TSO6, by their numbers in the specification.
const GUEST_TSO: [usize; 2] = [7, 8];
const WITHOUT: &str = "--features=-guest_tso4,-guest_tso6";
/// The kernel's name for merging by the card.
const GRO_HW: &str = "rx-gro-hw";
/// Frames of the wire, at least, of a packet that the driver gives to the stack.
const MERGED: f64 = 8.0;
/// Segments that the kernel puts in a packet at least: what is sent is to cost little here.
const MIN_TSO_SEGMENTS: (&str, &str) = ("/proc/sys/net/ipv4/tcp_min_tso_segs", "40");
/// How long the last frames may be on their way to the stack.
const SETTLES: Duration = Duration::from_secs(10);

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    let with = boot(bench, true)?;
    let without = boot(bench, false)?;
    let received = |moved: &&Moved| moved.direction == Direction::Receive;
    let pairs = with.iter().filter(received);
    for (with, without) in pairs.zip(without.iter().filter(received)) {
        let factor = without.packets_per_mb() / with.packets_per_mb();
        println!(
            "  {}: {:.0} packets a MB of the stack become {:.1}, {factor:.1} times fewer",
            with.name(),
            without.packets_per_mb(),
            with.packets_per_mb()
        );
        ensure!(
            factor >= MERGED,
            "{}: merging makes {factor:.1} times fewer packets a MB, {MERGED} were due",
            with.name()
        );
    }
    WIDTHS
        .iter()
        .try_for_each(|width| bridge::run(bench, width))
}

fn boot(bench: &mut Bench, on: bool) -> Result<Vec<Moved>, GuestError> {
    let mut setup = Setup::new("lro", Iommu::PassThrough);
    setup.card = vec!["--data-width", WIDTH];
    if !on {
        setup.card.push(WITHOUT);
    }
    setup.kernel_arguments = LOOK_ON;
    let mut machine = bench.boot(&setup)?;
    let moved = match transfers(bench, &mut machine, on) {
        Ok(moved) => moved,
        Err(error) => return Err(machine.explain(&error)),
    };
    machine.stop()?;
    Ok(moved)
}

fn transfers(bench: &mut Bench, machine: &mut Machine, on: bool) -> Result<Vec<Moved>, GuestError> {
    load_virtio_net(&mut machine.guest)?;
    let address = card(&mut machine.guest)?.address;
    let interface = interface_up(&mut machine.guest, &address)?;
    machine.guest.order(Request::Up {
        interface: interface.name.clone(),
        address: GUEST_IPV6,
        prefix: 64,
    })?;
    is_negotiated(machine, &interface, on)?;
    let (path, segments) = MIN_TSO_SEGMENTS;
    machine.guest.write(path, segments)?;
    let mut all = Vec::new();
    let mut seed = 200;
    for peer in [PEER, PEER_V6] {
        for direction in Direction::BOTH {
            seed += 2;
            transfer_with(&mut machine.guest, peer, direction, SOME, seed)?;
            let before = Counted::of(machine, &interface, &address)?;
            let done = transfer_with(&mut machine.guest, peer, direction, BULK, seed + 1)?;
            let moved = Moved {
                on,
                peer,
                direction,
                done,
                counted: Counted::after(machine, &interface, &address, &before)?,
            };
            moved.figures(bench);
            moved.is_right()?;
            all.push(moved);
        }
    }
    kernel_is_content(&mut machine.guest)?;
    Ok(all)
}

/// Fails unless driver and card agreed that segments are merged, or that none are.
fn is_negotiated(machine: &mut Machine, interface: &Interface, on: bool) -> Result<(), GuestError> {
    let name = &interface.name;
    // A character a feature, the first is number 0.
    let path = format!("/sys/class/net/{name}/device/features");
    let features = machine.guest.read(&path)?;
    let has = |bit: usize| features.as_bytes().get(bit) == Some(&b'1');
    let all = GUEST_TSO.map(has);
    ensure!(
        all == [on; 2],
        "GUEST_TSO4 and GUEST_TSO6 were negotiated as {all:?}, not both {on}: {features}"
    );
    let offloads: BTreeMap<String, Offload> = machine.guest.ask(Request::Offloads {
        interface: name.clone(),
    })?;
    let told = offloads.get(GRO_HW).map(|offload| offload.on);
    ensure!(
        told == Some(on),
        "{GRO_HW} is told to be {told:?}, not {on}"
    );
    Ok(())
}

/// What was counted since a moment, or until one.
#[derive(Clone, Debug)]
struct Counted {
    /// Frames on the wire to the card.
    frames: u64,
    /// Frames on the wire from it.
    sent: u64,
    /// Packets that the driver gave to the stack.
    packets: u64,
    /// Segments that TCP saw, after the kernel's own merging.
    segments: u64,
    /// MSI-X messages of the card.
    interrupts: u64,
    /// The card's registers: segments that began a packet, and those appended to one.
    opened: u64,
    merged: u64,
}

impl Counted {
    fn of(machine: &mut Machine, interface: &Interface, address: &str) -> Result<Self, GuestError> {
        let seen = Seen::of(machine, interface)?;
        let [opened, merged] = registers(machine, address)?;
        Ok(Self {
            frames: seen.counters.get("frames rx") as u64,
            sent: seen.counters.get("frames tx") as u64,
            packets: seen.packets[1],
            segments: segments(&machine.guest.read("/proc/net/snmp")?)?,
            interrupts: seen.counters.get("interrupts") as u64,
            opened,
            merged,
        })
    }

    /// What was counted since `before`, when each frame is in the stack: alone, or in another.
    fn after(
        machine: &mut Machine,
        interface: &Interface,
        address: &str,
        before: &Self,
    ) -> Result<Self, GuestError> {
        let mut last = String::new();
        let settled = until("every frame in the stack", SETTLES, || {
            let now = Self::of(machine, interface, address)?;
            let since = now.since(before);
            last = format!("{since:?}");
            Ok((since.frames == since.packets + since.merged).then_some(since))
        });
        settled.map_err(|error| GuestError::Check(format!("{error}: {last}")))
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            frames: self.frames - before.frames,
            sent: self.sent - before.sent,
            packets: self.packets - before.packets,
            segments: self.segments - before.segments,
            interrupts: self.interrupts - before.interrupts,
            // These wrap.
            opened: u64::from((self.opened as u32).wrapping_sub(before.opened as u32)),
            merged: u64::from((self.merged as u32).wrapping_sub(before.merged as u32)),
        }
    }
}

/// LRO_OPENED and LRO_MERGED of the card's own window.
fn registers(machine: &mut Machine, address: &str) -> Result<[u64; 2], GuestError> {
    let at = [window::UUID0, window::LRO_OPENED, window::LRO_MERGED];
    let values: Vec<u32> = machine.guest.ask(Request::Registers {
        address: address.to_owned(),
        bar: 0,
        offsets: at.map(|offset| window::BASE + offset).to_vec(),
    })?;
    match values.as_slice() {
        [uuid, opened, merged] if *uuid == ferronic_spec::pci::dvsec::CARD_UUID[0] => {
            Ok([opened, merged].map(|value| u64::from(*value)))
        }
        _ => Err(GuestError::Check(format!(
            "the card's window is not where it should be: {values:#x?}"
        ))),
    }
}

/// `InSegs` of TCP, in `/proc/net/snmp`: a line of names, then one of numbers.
fn segments(text: &str) -> Result<u64, GuestError> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let names = lines.next().unwrap_or_default().split(' ');
    let values = lines.next().unwrap_or_default().split(' ');
    names
        .zip(values)
        .find(|(name, _)| *name == "InSegs")
        .and_then(|(_, value)| value.parse().ok())
        .ok_or_else(|| GuestError::Check(format!("/proc/net/snmp has no InSegs: {text}")))
}

/// A transfer.
struct Moved {
    on: bool,
    peer: IpAddr,
    direction: Direction,
    done: Transfer,
    counted: Counted,
}

impl Moved {
    fn name(&self) -> String {
        format!("TCP {} by IPv{}", self.direction.name(), self.ip())
    }

    fn ip(&self) -> &'static str {
        if self.peer.is_ipv6() { "6" } else { "4" }
    }

    fn per_mb(&self, count: u64) -> f64 {
        count as f64 * 1e6 / self.done.bytes as f64
    }

    fn packets_per_mb(&self) -> f64 {
        self.per_mb(self.counted.packets)
    }

    /// Prints and records the figures.
    fn figures(&self, bench: &mut Bench) {
        let counted = &self.counted;
        let lro = if self.on { "on" } else { "off" };
        let mbit = self.done.bytes as f64 * 8e-6 / self.done.seconds;
        let both = (counted.frames + counted.sent) as f64;
        let per_interrupt = both / counted.interrupts as f64;
        println!(
            "  {}, {WIDTH} bits, LRO {lro}, {} MiB: {mbit:.1} Mbit/s of the host; a MB is {:.0} frames from the \
             wire, {:.1} packets for the stack, {:.1} for TCP; {per_interrupt:.1} frames an interrupt",
            self.name(),
            self.done.bytes / MIB,
            self.per_mb(counted.frames),
            self.packets_per_mb(),
            self.per_mb(counted.segments),
        );
        for (name, value, unit) in [
            ("tcp_mbit_s", mbit, "Mbit/s"),
            ("wire_frames_per_mb", self.per_mb(counted.frames), "1/MB"),
            ("packets_per_mb", self.packets_per_mb(), "1/MB"),
            ("tcp_packets_per_mb", self.per_mb(counted.segments), "1/MB"),
            ("frames_per_interrupt", per_interrupt, "1"),
            ("interrupts_per_mb", self.per_mb(counted.interrupts), "1/MB"),
        ] {
            bench.record(
                Figure::new(name, value, unit)
                    .with("driver", "linux")
                    .with("data_w", WIDTH)
                    .with("direction", self.direction.name())
                    .with("lro", lro)
                    .with("ip", self.ip()),
            );
        }
    }

    /// Fails unless the card merged, or did not, as it was told.
    fn is_right(&self) -> Result<(), GuestError> {
        let Counted {
            frames,
            packets,
            opened,
            merged,
            ..
        } = self.counted;
        let name = self.name();
        if !self.on {
            ensure!(
                (opened, merged) == (0, 0) && frames == packets,
                "{name}: nothing was to be merged: {:?}",
                self.counted
            );
        } else if self.direction == Direction::Receive {
            ensure!(
                opened > 0 && packets as f64 * MERGED <= frames as f64,
                "{name}: {frames} frames became {packets} packets, {MERGED} times fewer were due"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_tcp_are_found_among_the_kernels_counters() {
        let text =
            "Ip: InReceives InSegs\nIp: 5 6\nTcp: RtoMax InSegs OutSegs\nTcp: 1 77 3\nUdp: A\n";
        assert_eq!(segments(text).ok(), Some(77));
        assert!(segments("Ip: InSegs\nIp: 5\n").is_err());
        assert!(segments("Tcp: InSegs\nTcp: many\n").is_err());
    }
}
