//! A bridge in the guest between the card and an ordinary card of QEMU. The kernel cuts what the card
//! merged; the frames that come out must be those that came in.

use std::path::Path;
use std::time::{Duration, Instant};

use ferronic_guest_agent::{Interface, Request};
use ferronic_oracle::segment::flag;
use ferronic_oracle::stream::{Bulk, Traffic};
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{Segment, order, parse};
use ferronic_sim::wire::{StreamWire, Wire};

use super::super::tools::{card, kernel_is_content, load_virtio_net, until};
use super::super::{Bench, Setup};
use super::{LOOK_ON, is_negotiated, registers};
use crate::{GuestError, Iommu, Machine, ensure};

const BRIDGE: &str = "br0";
const GRO: &str = "rx-gro";
/// Frames that are under way at once: fewer than a queue of the kernel holds (1,000).
const AT_ONCE: usize = 400;
/// Payload of full segments with time stamps, MTU 1,500.
const FULL: usize = 1448;
/// Full segments of a burst before a short one that has PSH.
const BURST: usize = 9;
/// Frames, at least, of a packet, in a stream that has nothing but bulk transfers.
const BULK_MERGED: u64 = 8;
/// The longest frame that the bridge passes on: larger ones are dropped for their MTU.
const LONGEST: usize = 1514;
/// The shortest that is a segment.
const SHORTEST: usize = 54;
/// Bytes of payload of the shortest piece that Linux cuts: where segments with fewer were merged it makes
/// others of them.
const LEAST: usize = 8;
/// How long frames may stay away before they count as lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing more has to come.
const QUIET: Duration = Duration::from_millis(100);
/// How long interfaces may take to appear.
const APPEARS: Duration = Duration::from_secs(20);

/// Runs this part on a card of so many bits.
pub fn run(bench: &mut Bench, width: &'static str) -> Result<(), GuestError> {
    let (near, far) = (bench.dir.join("near"), bench.dir.join("far"));
    // Who comes second connects.
    let mut ends = Ends {
        near: listen(&near)?,
        far: listen(&far)?,
    };
    let mut setup = Setup::new("lro-bridge", Iommu::PassThrough);
    setup.card = vec!["--data-width", width];
    setup.wire = format!("stream:{}", near.display());
    setup.kernel_arguments = LOOK_ON;
    setup.qemu = [
        "-netdev",
        &format!(
            "stream,id=far,server=off,addr.type=unix,addr.path={}",
            far.display()
        ),
        "-device",
        // The other number of a virtio card, by which it is not taken for ours; nothing to boot from;
        // not the address that QEMU gives, to which the frames of the streams go.
        "virtio-net-pci,netdev=far,disable-legacy=off,disable-modern=off,romfile=,mac=52:54:00:66:00:03",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut machine = bench.boot(&setup)?;
    println!("  {width} bits");
    if let Err(error) = bridged(&mut machine, &mut ends) {
        return Err(machine.explain(&error));
    }
    machine.stop()?;
    Ok(())
}

fn listen(path: &Path) -> Result<StreamWire, GuestError> {
    StreamWire::open(path).map_err(|error| GuestError::Check(error.to_string()))
}

fn bridged(machine: &mut Machine, ends: &mut Ends) -> Result<(), GuestError> {
    // Nothing of the guest's own is to be on either wire.
    let guest = &mut machine.guest;
    guest.write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
    load_virtio_net(guest)?;
    guest.order(Request::Modules {
        names: ["llc", "stp", "bridge"].map(str::to_owned).to_vec(),
        parameters: String::new(),
    })?;
    let address = card(guest)?.address;
    let (ours, other) = until("both interfaces", APPEARS, || {
        let all: Vec<Interface> = guest.ask(Request::Interfaces)?;
        let (ours, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .filter(|i| i.pci.is_some())
            .partition(|i| i.pci.as_deref() == Some(&address));
        Ok(ours.into_iter().next().zip(others.into_iter().next()))
    })?;
    guest.order(Request::Bridge {
        name: BRIDGE.to_owned(),
        ports: vec![ours.name.clone(), other.name.clone()],
    })?;
    is_negotiated(machine, &ours, true)?;
    ends.wait(machine, &ours, &other)?;
    // Without the kernel's own merging, what is cut was merged by the card; then as it comes up.
    for gro in [false, true] {
        machine.guest.order(Request::SetOffload {
            interface: ours.name.clone(),
            name: GRO.to_owned(),
            on: gro,
        })?;
        for stream in streams().iter().filter(|stream| !gro || stream.plain) {
            let before = Counted::of(machine, &ours, &other, &address)?;
            let out = ends.pass(&stream.arrivals)?;
            let now = Counted::of(machine, &ours, &other, &address)?;
            let merged = now.merged.wrapping_sub(before.merged);
            stream.compare(&out)?;
            let (came, went) = (now.received - before.received, now.sent - before.sent);
            let frames = stream.arrivals.len() as u64;
            let gro = if gro { "on" } else { "off" };
            println!(
                "  bridged, {}, {GRO} {gro}: {frames} frames came as {came} packets, and went as they came",
                stream.name
            );
            ensure!(
                went == frames && came + u64::from(merged) == frames,
                "{}: {frames} frames of which {merged} were appended came as {came} packets and went as {went}",
                stream.name
            );
            ensure!(
                came * stream.merged <= frames,
                "{}: {frames} frames came as {came} packets: too little is merged to show anything",
                stream.name
            );
        }
    }
    let back = ends.near.next_frame(0);
    ensure!(back.is_none(), "the bridge sent something back: {back:?}");
    kernel_is_content(&mut machine.guest)
}

/// What the guest counts of both ports.
struct Counted {
    received: u64,
    sent: u64,
    merged: u32,
}

impl Counted {
    fn of(
        machine: &mut Machine,
        ours: &Interface,
        other: &Interface,
        address: &str,
    ) -> Result<Self, GuestError> {
        let [_, merged] = registers(machine, address)?;
        let mut count = |interface: &Interface, what: &str| -> Result<u64, GuestError> {
            let path = format!("/sys/class/net/{}/statistics/{what}", interface.name);
            let text = machine.guest.read(&path)?;
            let number = text.trim().parse();
            number.map_err(|_| GuestError::Check(format!("{path} holds {text:?}")))
        };
        Ok(Self {
            received: count(ours, "rx_packets")?,
            sent: count(other, "tx_packets")?,
            merged: merged as u32,
        })
    }
}

/// The wires of both cards.
struct Ends {
    near: StreamWire,
    far: StreamWire,
}

impl Ends {
    /// Waits until what goes in comes out: both cards have a carrier, and the bridge forwards.
    fn wait(
        &mut self,
        machine: &mut Machine,
        ours: &Interface,
        other: &Interface,
    ) -> Result<(), GuestError> {
        for interface in [ours, other] {
            let path = format!("/sys/class/net/{}/brport/state", interface.name);
            // 3: forwarding.
            until("a port of the bridge", APPEARS, || {
                Ok((machine.guest.read(&path)?.trim() == "3").then_some(()))
            })?;
        }
        self.poll()
    }

    fn poll(&mut self) -> Result<(), GuestError> {
        for end in [&mut self.near, &mut self.far] {
            end.poll()
                .map_err(|error| GuestError::Check(format!("a wire: {error}")))?;
        }
        Ok(())
    }

    /// Sends frames to the card, some at a time; what comes out of the other.
    fn pass(&mut self, arrivals: &[Arrival]) -> Result<Vec<Vec<u8>>, GuestError> {
        let mut out = Vec::new();
        let mut due = 0;
        for batch in arrivals.chunks(AT_ONCE) {
            batch
                .iter()
                .for_each(|a| self.near.sent(0, &a.frame, false));
            due += batch.len();
            self.take(&mut out, PATIENCE, |out| out.len() >= due)?;
        }
        self.take(&mut out, QUIET, |_| false)?;
        Ok(out)
    }

    /// Takes frames until there are enough, or none came for so long.
    fn take(
        &mut self,
        out: &mut Vec<Vec<u8>>,
        patience: Duration,
        enough: impl Fn(&Vec<Vec<u8>>) -> bool,
    ) -> Result<(), GuestError> {
        let mut last = Instant::now();
        while !enough(out) && last.elapsed() < patience {
            self.poll()?;
            let before = out.len();
            out.extend(std::iter::from_fn(|| self.far.next_frame(0)).map(|f| f.data));
            if out.len() > before {
                last = Instant::now();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

/// Frames for the bridge.
struct Stream {
    name: String,
    arrivals: Vec<Arrival>,
    /// Frames of a packet that the card must reach on average.
    merged: u64,
    /// The kernel's own merging can be undone, too. It cannot where a sum is 0xffff, for which the kernel
    /// writes 0.
    plain: bool,
}

impl Stream {
    /// Fails unless the same frames came out, those of each flow in their order.
    fn compare(&self, out: &[Vec<u8>]) -> Result<(), GuestError> {
        let out: Vec<(u16, Vec<u8>)> = out.iter().map(|frame| (0, frame.clone())).collect();
        order::same(&self.arrivals, &out)
            .map_err(|why| GuestError::Check(format!("bridged, {}: {why}", self.name)))
    }
}

fn streams() -> Vec<Stream> {
    let mut all = Vec::new();
    for v6 in [false, true] {
        for stamps in [false, true] {
            let bulk = Bulk {
                flows: 4,
                shuffled: Some(7),
                v6,
                stamps,
                segments: 200,
                ..Bulk::default()
            };
            all.push(Stream {
                name: format!(
                    "4 flows by IPv{}{}",
                    if v6 { 6 } else { 4 },
                    if stamps { " with time stamps" } else { "" }
                ),
                arrivals: bulk.arrivals(),
                merged: BULK_MERGED,
                plain: true,
            });
        }
    }
    all.push(Stream {
        name: "bursts that end with PSH, and tags".to_owned(),
        arrivals: arrivals(bursts()),
        merged: BULK_MERGED,
        plain: true,
    });
    let mut traffic = Traffic::new(6, 12, 1, 0);
    let random = std::iter::repeat_with(|| traffic.arrival().frame).filter(|frame| {
        (SHORTEST..=LONGEST).contains(&frame.len())
            && is_between_stations(frame)
            && !(1..LEAST).contains(&payload(frame))
    });
    all.push(Stream {
        name: "random traffic".to_owned(),
        arrivals: arrivals(random.take(2000).collect()),
        merged: 2,
        plain: false,
    });
    all
}

fn arrivals(frames: Vec<Vec<u8>>) -> Vec<Arrival> {
    let of_one_queue = |frame| Arrival {
        at: 0,
        queue: 0,
        frame,
    };
    frames.into_iter().map(of_one_queue).collect()
}

/// Bytes behind the headers; 0 of what is not TCP.
fn payload(frame: &[u8]) -> usize {
    parse(frame).map_or(0, |packet| frame.len().saturating_sub(packet.payload))
}

/// What a bridge passes on whatever is behind the addresses.
fn is_between_stations(frame: &[u8]) -> bool {
    frame.starts_with(&Segment::v4(0, 0).macs)
}

/// Bursts of flows by IPv4 and IPv6, some with tags, some with time stamps, each with a short segment
/// and PSH at its end.
fn bursts() -> Vec<Vec<u8>> {
    let mut flows: Vec<Segment> = (0..6_u16)
        .map(|number| {
            let mut flow = Segment::v4(u32::from(number) << 28, FULL);
            (flow.v6, flow.ports[0]) = (number % 2 == 1, 20_000 + number);
            flow.tags = match number / 2 {
                0 => Vec::new(),
                1 => vec![[0x81, 0, 0x20, 10]],
                _ => vec![[0x88, 0xa8, 0, 1], [0x81, 0, 0x10, 20]],
            };
            // With two tags full frames are longer than the bridge passes on.
            let size = FULL - 20 * usize::from(flow.v6) - 4 * flow.tags.len();
            flow.payload.truncate(size);
            // Over the end of the numbers.
            flow.id = 0xffe0;
            if number % 3 == 0 {
                flow.stamps(5, 6)
            } else {
                flow
            }
        })
        .collect();
    let mut frames = Vec::new();
    for round in 0..12 {
        for flow in &mut flows {
            let size = flow.payload.len();
            for number in 0..=BURST {
                let mut segment = flow.clone();
                if number == BURST {
                    segment.payload.truncate(100 + round);
                    segment.flags |= flag::PSH;
                }
                frames.push(segment.bytes());
                *flow = segment.next(size).flags(flag::ACK);
            }
        }
    }
    frames
}
