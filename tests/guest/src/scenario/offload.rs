//! The offloads of the stock `virtio_net`: each is turned off and on, by IPv4 and IPv6; bulk transfers
//! with and without segmentation by the card; then everything that was on the wire is read again.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ferronic_figures::Figure;
use ferronic_guest_agent::{Interface, Offload, Request, Transfer};
use ferronic_transfer::{SINK, SOURCE};

use super::seen::Seen;
use super::tools::{
    Direction, GUEST_IPV6, PEER, PEER_V6, card, interface_up, is_whole, kernel_is_content,
    load_virtio_net, ping_to, transfer_with,
};
use super::wire::{self, Flow};
use super::{Bench, CAPTURE, Setup, crafted};
use crate::{Counters, GuestError, Iommu, Machine, ensure};

const MIB: u64 = 1 << 20;
/// Bytes of a transfer that is measured.
const BULK: u64 = 16 * MIB;
/// Bytes of one that only shows that things work.
const SOME: u64 = MIB / 8;
const MTU: usize = 1500;
/// Of the data path, in bits: the one that everything else is run at, and the best.
const WIDTHS: [&str; 2] = ["64", "512"];
const ECHO: u16 = 7;
/// Bytes of an exchange of datagrams, and of each but the last.
const DATAGRAMS: usize = 20_500;
const DATAGRAM: usize = 1000;
/// Segments that the kernel puts in a packet at least, however slow the path.
const MIN_TSO_SEGMENTS: &str = "/proc/sys/net/ipv4/tcp_min_tso_segs";
/// Nearly as many as there may be: packets of more than 64 KB the kernel would cut itself.
const SEGMENTS: &str = "40";
/// By how much available entries must fall.
const FEWER: f64 = 10.0;
/// Mbit/s of the host to aim at, at the best width.
const AIM: f64 = 40.0;

const TSO: [&str; 2] = ["tx-tcp-segmentation", "tx-tcp6-segmentation"];
const USO: &str = "tx-udp-segmentation";

/// What a stock kernel lets one change on this card.
const CHANGEABLE: [&str; 8] = [
    "tx-checksum-ip-generic",
    "tx-scatter-gather",
    "tx-generic-segmentation",
    TSO[0],
    TSO[1],
    "tx-tcp-ecn-segmentation",
    USO,
    "rx-gro",
];

type Offloads = BTreeMap<String, Offload>;

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    for width in WIDTHS {
        let mut setup = Setup::new("offload", Iommu::PassThrough);
        setup.capture = true;
        setup.card = vec!["--data-width", width];
        let mut machine = bench.boot(&setup)?;
        let capture = machine.dir.join(CAPTURE);
        let mut sent = Vec::new();
        let result = offloads(bench, &mut machine, width, &mut sent);
        if let Err(error) = result {
            return Err(machine.explain(&error));
        }
        machine.stop()?;
        let (crafted, others): (Vec<_>, Vec<_>) = wire::sent(&capture)?
            .into_iter()
            .partition(|(_, frame)| frame.get(6..12) == Some(&crafted::SOURCE));
        compare(&wire::flows(&others)?, &sent)?;
        let crafted: Vec<&[u8]> = crafted.iter().map(|(_, frame)| frame.as_slice()).collect();
        crafted::compare(&crafted::frames(), &crafted)?;
    }
    Ok(())
}

fn offloads(
    bench: &mut Bench,
    machine: &mut Machine,
    width: &str,
    sent: &mut Vec<Sent>,
) -> Result<(), GuestError> {
    load_virtio_net(&mut machine.guest)?;
    let card = card(&mut machine.guest)?;
    let interface = interface_up(&mut machine.guest, &card.address)?;
    machine.guest.order(Request::Up {
        interface: interface.name.clone(),
        address: GUEST_IPV6,
        prefix: 64,
    })?;
    let mut link = Link {
        machine,
        interface,
        sent,
        seed: 100,
    };
    let initial = link.offloads()?;
    let told: Vec<String> = initial
        .iter()
        .filter(|(_, offload)| offload.changeable || offload.on)
        .map(|(name, offload)| {
            let state = if offload.on { "on" } else { "off" };
            let fixed = if offload.changeable { "" } else { " [fixed]" };
            format!("{name} {state}{fixed}")
        })
        .collect();
    println!("  {}", told.join(", "));
    for name in CHANGEABLE {
        ensure!(
            initial.get(name).is_some_and(|offload| offload.changeable),
            "{name} cannot be changed: the card does not offer what it needs"
        );
    }
    let usual = link.machine.guest.read(MIN_TSO_SEGMENTS)?;
    let usual = usual.trim();
    link.machine.guest.write(MIN_TSO_SEGMENTS, SEGMENTS)?;
    link.exercise("as it comes up", &initial)?;
    let toggled = if width == WIDTHS[0] { initial.len() } else { 0 };
    for (name, before) in initial.iter().take(toggled) {
        // What is wanted but off lacks something that the card does not offer.
        if !before.changeable || before.wanted != before.on {
            continue;
        }
        link.toggle(name, before.on, &initial)?;
    }
    link.craft()?;
    bulk(bench, &mut link, width, usual)?;
    kernel_is_content(&mut machine.guest)
}

/// What was sent, to be found on the wire.
#[derive(Debug)]
struct Sent {
    what: String,
    v6: bool,
    tcp: bool,
    port: u16,
    bytes: usize,
    /// Bytes of each packet but the last of one that the card or the kernel cut.
    full: usize,
    /// Buffers that the driver gave to the card meanwhile.
    entries: u64,
}

/// A guest with both versions of IP.
struct Link<'a> {
    machine: &'a mut Machine,
    interface: Interface,
    sent: &'a mut Vec<Sent>,
    seed: u64,
}

/// What driver and card counted during a transfer.
struct Counted {
    /// Buffers that the driver made available for transmission.
    entries: u64,
    /// Its doorbells for them.
    kicks: u64,
    card: Counters,
}

impl Link<'_> {
    fn offloads(&mut self) -> Result<Offloads, GuestError> {
        self.machine.guest.ask(Request::Offloads {
            interface: self.interface.name.clone(),
        })
    }

    fn set(&mut self, name: &str, on: bool) -> Result<(), GuestError> {
        self.machine.guest.order(Request::SetOffload {
            interface: self.interface.name.clone(),
            name: name.to_owned(),
            on,
        })
    }

    fn seed(&mut self) -> u64 {
        self.seed += 1;
        self.seed
    }

    /// Does something and tells what was counted meanwhile.
    fn counted<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, GuestError>,
    ) -> Result<(T, Counted), GuestError> {
        let before = Seen::of(self.machine, &self.interface)?;
        let done = act(self)?;
        let after = Seen::of(self.machine, &self.interface)?;
        let counted = Counted {
            entries: after.packets[0] - before.packets[0],
            kicks: after.kicks("tx") - before.kicks("tx"),
            card: after.counters.since(&before.counters),
        };
        Ok((done, counted))
    }

    /// A transfer to the sink.
    fn send(
        &mut self,
        what: &str,
        peer: IpAddr,
        bytes: u64,
    ) -> Result<(Transfer, Counted), GuestError> {
        let seed = self.seed();
        let (done, counted) = self.counted(|link| {
            let guest = &mut link.machine.guest;
            transfer_with(guest, peer, Direction::Transmit, bytes, seed)
        })?;
        self.sent.push(Sent {
            what: what.to_owned(),
            v6: peer.is_ipv6(),
            tcp: true,
            port: SINK,
            bytes: bytes as usize,
            full: MTU,
            entries: counted.entries,
        });
        Ok((done, counted))
    }

    /// Datagrams to the echo and back.
    fn datagrams(&mut self, what: &str, peer: IpAddr) -> Result<Counted, GuestError> {
        let seed = self.seed();
        let (done, counted) = self.counted(|link| {
            link.machine.guest.ask(Request::UdpSegments {
                to: peer,
                port: ECHO,
                bytes: DATAGRAMS,
                segment: DATAGRAM as u16,
                seed,
            })
        })?;
        is_whole(&done, DATAGRAMS as u64, "UDP")?;
        let headers = if peer.is_ipv6() { 48 } else { 28 };
        self.sent.push(Sent {
            what: what.to_owned(),
            v6: peer.is_ipv6(),
            tcp: false,
            port: ECHO,
            bytes: DATAGRAMS,
            full: headers + DATAGRAM,
            entries: counted.entries,
        });
        Ok(counted)
    }

    /// All kinds of traffic; who cuts what is as the offloads say.
    fn exercise(&mut self, what: &str, state: &Offloads) -> Result<(), GuestError> {
        let on = |name: &str| state.get(name).is_some_and(|offload| offload.on);
        for (peer, tso) in [PEER, PEER_V6].into_iter().zip(TSO) {
            ping_to(&mut self.machine.guest, peer, 3, 1000, 1)?;
            let (_, tcp) = self.send(what, peer, SOME)?;
            cut_by(&tcp, on(tso), &format!("{what}: TCP to {peer}"))?;
            let udp = self.datagrams(what, peer)?;
            cut_by(&udp, on(USO), &format!("{what}: UDP to {peer}"))?;
            let seed = self.seed();
            let guest = &mut self.machine.guest;
            transfer_with(guest, peer, Direction::Receive, SOME, seed)?;
            self.sent.push(Sent {
                what: what.to_owned(),
                v6: peer.is_ipv6(),
                tcp: true,
                port: SOURCE,
                bytes: ferronic_transfer::ORDER,
                full: MTU,
                entries: 1,
            });
        }
        Ok(())
    }

    /// Frames of packet sockets, with every segmentation by the card.
    fn craft(&mut self) -> Result<(), GuestError> {
        let all = crafted::frames();
        self.set(USO, true)?;
        let ((), counted) = self.counted(|link| {
            let guest = &mut link.machine.guest;
            let interface = &link.interface;
            all.iter()
                .try_for_each(|frame| frame.send(guest, interface))
        })?;
        self.set(USO, false)?;
        // The kernel may have sent something of its own, one frame a buffer.
        let segments = crafted::segments(&all)? - all.len();
        let more = counted.card.get("frames tx") - counted.entries as f64;
        ensure!(
            more == segments as f64,
            "{more} more frames than buffers were on the wire, {segments} should be: not the card cuts"
        );
        Ok(())
    }

    /// The other way and back, with traffic after each.
    fn toggle(&mut self, name: &str, was: bool, initial: &Offloads) -> Result<(), GuestError> {
        let mut followed = Vec::new();
        for on in [!was, was] {
            self.set(name, on)?;
            let now = self.offloads()?;
            ensure!(
                now.get(name).is_some_and(|offload| offload.on == on),
                "{name} was set {}, and is not",
                word(on)
            );
            if on == was {
                ensure!(
                    now == *initial,
                    "{name} set {} again does not bring back what was: {now:?}",
                    word(on)
                );
            } else {
                let differs = |(other, offload): &(&String, &Offload)| {
                    *other != name && initial.get(*other) != Some(offload)
                };
                followed.extend(now.iter().filter(differs).map(|(other, _)| other.clone()));
            }
            self.exercise(&format!("{name} {}", word(on)), &now)?;
        }
        let followed = match followed.as_slice() {
            [] => String::new(),
            all => format!(" ({} follow)", all.join(", ")),
        };
        println!("  {name}: {} and {} again{followed}", word(!was), word(was));
        Ok(())
    }
}

const fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The driver's packets are the frames of the wire, or far fewer if the card cuts them.
fn cut_by(counted: &Counted, card: bool, what: &str) -> Result<(), GuestError> {
    let frames = counted.card.get("frames tx");
    let entries = counted.entries as f64;
    let holds = if card {
        entries * 2.0 <= frames
    } else {
        entries == frames
    };
    ensure!(
        holds,
        "{what}: {frames} frames on the wire of {entries} buffers, although the {} cuts",
        if card { "card" } else { "kernel" }
    );
    Ok(())
}

/// Transfers that count: without segmentation by the card, as the kernel comes (with its `usual` least
/// number of segments) and with large packets; then with it.
fn bulk(
    bench: &mut Bench,
    link: &mut Link<'_>,
    width: &str,
    usual: &str,
) -> Result<(), GuestError> {
    for peer in [PEER, PEER_V6] {
        let mut per_mb = Vec::new();
        for (tso, segments, bytes) in [
            (false, usual, BULK / 4),
            (false, SEGMENTS, BULK / 4),
            (true, SEGMENTS, BULK),
        ] {
            link.machine.guest.write(MIN_TSO_SEGMENTS, segments)?;
            for name in TSO {
                link.set(name, tso)?;
            }
            let what = format!("{} MiB to {peer}, TSO {}", bytes / MIB, word(tso));
            let (done, counted) = link.send(&what, peer, bytes)?;
            let row = Row {
                width,
                ip: if peer.is_ipv6() { "6" } else { "4" },
                tso: word(tso),
                segments,
            };
            per_mb.push(row.figures(bench, &done, &counted));
        }
        let (least, (on, rung)) = (per_mb[0].0.min(per_mb[1].0), per_mb[2]);
        // A card that has work is not to be rung. How often it has none is up to guest and host.
        ensure!(
            rung <= on / 2.0,
            "{peer}: {rung:.1} doorbells a MB are rung for {on:.1} available entries"
        );
        ensure!(
            least >= on * FEWER,
            "{peer}: {least:.1} available entries a MB fall to {on:.1} with TSO, which is not tenfold"
        );
    }
    Ok(())
}

/// How a transfer was made.
struct Row<'a> {
    width: &'a str,
    ip: &'a str,
    tso: &'a str,
    segments: &'a str,
}

impl Row<'_> {
    /// Prints and records the figures of a transfer; its available entries and doorbells a MB.
    fn figures(&self, bench: &mut Bench, done: &Transfer, counted: &Counted) -> (f64, f64) {
        let Self {
            width,
            ip,
            tso,
            segments,
        } = self;
        let mb = done.bytes as f64 / 1e6;
        let mbit = done.bytes as f64 * 8e-6 / done.seconds;
        let entries = counted.entries as f64 / mb;
        let doorbells = counted.kicks as f64 / mb;
        let per_cycle = counted.card.get("bytes tx") / counted.card.get("outstanding_cycles");
        let busy = counted.card.get("busy_s");
        let khz = counted.card.get("evaluated_cycles") / busy / 1e3;
        println!(
            "  {width} bits, IPv{ip}, TSO {tso}, tcp_min_tso_segs {segments}, {} MiB: {mbit:.1} Mbit/s of the \
             host (aim {AIM}), {per_cycle:.2} bytes a cycle, simulated at {khz:.0} kHz for {:.0} % of the time; \
             {entries:.1} available entries and {doorbells:.1} doorbells a MB",
            done.bytes / MIB,
            100.0 * busy / done.seconds
        );
        for (figure, value, unit) in [
            ("tcp_mbit_s", mbit, "Mbit/s"),
            ("bytes_per_cycle", per_cycle, "B"),
            ("avail_entries_per_mb", entries, "1/MB"),
            ("doorbells_per_mb", doorbells, "1/MB"),
        ] {
            bench.record(
                Figure::new(figure, value, unit)
                    .with("driver", "linux")
                    .with("data_w", *width)
                    .with("direction", "tx")
                    .with("tso", *tso)
                    .with("ip", *ip)
                    .with("min_tso_segs", *segments),
            );
        }
        (entries, doorbells)
    }
}

/// What was on the wire is what was sent, in packets as large as they may be.
fn compare(flows: &[Flow], sent: &[Sent]) -> Result<(), GuestError> {
    ensure!(
        flows.len() == sent.len(),
        "{} connections and exchanges were on the wire, {} were made",
        flows.len(),
        sent.len()
    );
    let (mut packets, mut again) = (0, 0);
    for (flow, sent) in flows.iter().zip(sent) {
        let what = &sent.what;
        ensure!(
            (flow.v6, flow.tcp, flow.port) == (sent.v6, sent.tcp, sent.port),
            "{what}: another connection was on the wire"
        );
        ensure!(
            flow.bytes() == sent.bytes,
            "{what}: {} of {} bytes were on the wire",
            flow.bytes(),
            sent.bytes
        );
        let short: Vec<_> = flow.packets.iter().filter(|d| d.len != sent.full).collect();
        let longest = flow.packets.iter().map(|data| data.len).max();
        ensure!(
            longest <= Some(sent.full),
            "{what}: a packet of {longest:?} bytes, {} at most may be",
            sent.full
        );
        // Each buffer ends with one that may be shorter, after which TCP has no more for now.
        ensure!(
            short.len() as u64 <= sent.entries && short.iter().all(|data| data.last || !sent.tcp),
            "{what}: {} of {} packets are shorter than {}, of {} buffers: {:?}",
            short.len(),
            flow.packets.len(),
            sent.full,
            sent.entries,
            short.iter().take(5).collect::<Vec<_>>()
        );
        ensure!(
            flow.leaps == 0,
            "{what}: {} IPv4 identifications do not follow the one before",
            flow.leaps
        );
        packets += flow.packets.len();
        again += flow.again;
    }
    println!(
        "  {packets} packets with data on the wire, each of MTU size or the end of a buffer, all sums \
         right; {again} bytes were sent again"
    );
    Ok(())
}
