//! What several scenarios do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use ferronic_guest_agent::{Interface, PciFunction, Pings, Request, Transfer};
use ferronic_sim::wire::PEER_IPV6;
use ferronic_transfer::{SINK, SOURCE};

use crate::{Counters, Guest, GuestError, Machine, ensure};

/// The guest's address, and one of the peer, which answers for all others.
pub const GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 66, 0, 2));
/// The peer.
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 66, 0, 1));
/// The guest's address in IPv6, where it has one.
pub const GUEST_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 2));
/// The peer's.
pub const PEER_V6: IpAddr = IpAddr::V6(PEER_IPV6);

const VENDOR: u16 = 0x1af4;
const DEVICE: u16 = 0x1041;
/// The driver of virtio's PCI functions.
pub const VIRTIO_PCI: &str = "/sys/bus/pci/drivers/virtio-pci";

/// How long an interface may take to appear, or its carrier.
const APPEARS: Duration = Duration::from_secs(20);

/// The card on the guest's bus.
pub fn card(guest: &mut Guest) -> Result<PciFunction, GuestError> {
    let functions: Vec<PciFunction> = guest.ask(Request::Pci)?;
    let mut ours = functions
        .into_iter()
        .filter(|function| (function.vendor, function.device) == (VENDOR, DEVICE));
    match (ours.next(), ours.next()) {
        (Some(card), None) => Ok(card),
        _ => Err(GuestError::Check(
            "the guest does not see one card".to_owned(),
        )),
    }
}

/// Loads virtio_net. Its interfaces get a plain queue: the kernel's own choice (fq_codel) drops packets
/// that wait too long by the clock of a host that has other things to do.
pub fn load_virtio_net(guest: &mut Guest) -> Result<(), GuestError> {
    guest.write("/proc/sys/net/core/default_qdisc", "pfifo_fast")?;
    guest.order(Request::Modules {
        names: ["failover", "net_failover", "virtio_net"]
            .map(str::to_owned)
            .to_vec(),
        parameters: String::new(),
    })
}

/// Loads vfio-pci.
pub fn load_vfio_pci(guest: &mut Guest) -> Result<(), GuestError> {
    guest.order(Request::Modules {
        names: [
            "irqbypass",
            "vfio",
            "vfio_iommu_type1",
            "vfio-pci-core",
            "vfio-pci",
        ]
        .map(str::to_owned)
        .to_vec(),
        parameters: String::new(),
    })
}

/// Asks again and again until there is something.
pub fn until<T>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<Option<T>, GuestError>,
) -> Result<T, GuestError> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if begin.elapsed() > patience {
            return Err(GuestError::Timeout {
                what: what.to_owned(),
                seconds: patience.as_secs(),
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The interface of the card at `address`, waited for, taken up, with a carrier.
pub fn interface_up(guest: &mut Guest, address: &str) -> Result<Interface, GuestError> {
    let find = |guest: &mut Guest| -> Result<Option<Interface>, GuestError> {
        let all: Vec<Interface> = guest.ask(Request::Interfaces)?;
        Ok(all.into_iter().find(|i| i.pci.as_deref() == Some(address)))
    };
    let found = until("the card's interface", APPEARS, || find(guest))?;
    guest.order(Request::Up {
        interface: found.name,
        address: GUEST,
        prefix: 24,
    })?;
    until("the carrier", APPEARS, || {
        Ok(find(guest)?.filter(|interface| interface.carrier))
    })
}

/// Echo requests that must all be answered.
pub fn ping(guest: &mut Guest, count: u32, size: usize) -> Result<Pings, GuestError> {
    ping_to(guest, PEER, count, size, 1)
}

/// The same, to this host, so many of them at once.
pub fn ping_to(
    guest: &mut Guest,
    to: IpAddr,
    count: u32,
    size: usize,
    at_once: u32,
) -> Result<Pings, GuestError> {
    let pings: Pings = guest.ask(Request::Ping {
        to,
        count,
        size,
        at_once,
        timeout_ms: 5000,
    })?;
    ensure!(
        pings.received == pings.sent && pings.sent == count,
        "{} of {} pings of {size} bytes were answered",
        pings.received,
        pings.sent
    );
    Ok(pings)
}

/// The value in the middle.
pub fn median(values: &[u32]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => 0.0,
        Some(upper) if sorted.len() % 2 == 1 => f64::from(*upper),
        Some(upper) => (f64::from(*upper) + f64::from(sorted[middle - 1])) / 2.0,
    }
}

/// Direction of a transfer, as the card sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the guest.
    Transmit,
    /// To the guest.
    Receive,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Transmit, Self::Receive];

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transmit => "tx",
            Self::Receive => "rx",
        }
    }
}

/// The request for a transfer of so many bytes.
pub fn transfer_request(direction: Direction, bytes: u64, seed: u64) -> Request {
    transfer_request_to(PEER, direction, bytes, seed)
}

fn transfer_request_to(peer: IpAddr, direction: Direction, bytes: u64, seed: u64) -> Request {
    match direction {
        Direction::Transmit => Request::TcpSend {
            to: peer,
            port: SINK,
            bytes,
            seed,
        },
        Direction::Receive => Request::TcpReceive {
            from: peer,
            port: SOURCE,
            bytes,
            seed,
        },
    }
}

/// A transfer that must arrive whole, with what the card counted meanwhile.
pub fn transfer(
    machine: &mut Machine,
    direction: Direction,
    bytes: u64,
    seed: u64,
) -> Result<(Transfer, Counters), GuestError> {
    let before = machine.card.counters()?;
    let done = transfer_with(&mut machine.guest, PEER, direction, bytes, seed)?;
    let counters = machine.card.counters()?.since(&before);
    Ok((done, counters))
}

/// A transfer to or from this host that must arrive whole.
pub fn transfer_with(
    guest: &mut Guest,
    peer: IpAddr,
    direction: Direction,
    bytes: u64,
    seed: u64,
) -> Result<Transfer, GuestError> {
    let transfer = guest.ask(transfer_request_to(peer, direction, bytes, seed))?;
    is_whole(&transfer, bytes, direction.name())?;
    Ok(transfer)
}

/// Fails unless all bytes arrived as they were sent.
pub fn is_whole(transfer: &Transfer, bytes: u64, what: &str) -> Result<(), GuestError> {
    ensure!(
        transfer.bytes == bytes,
        "{} of {bytes} bytes arrived ({what})",
        transfer.bytes
    );
    ensure!(
        transfer.sent == transfer.received,
        "what arrived is not what was sent ({what}): SHA-256 {} became {}",
        transfer.sent,
        transfer.received
    );
    Ok(())
}

/// Messages of a kernel in trouble.
const TROUBLE: [&str; 8] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "Call Trace",
    "DMAR: [DMA",
    "NETDEV WATCHDOG",
    "Unexpected TXQ",
    "bad gso",
];

/// Fails if the kernel complained.
pub fn kernel_is_content(guest: &mut Guest) -> Result<(), GuestError> {
    let lines: Vec<String> = guest.ask(Request::KernelLog)?;
    let bad: Vec<&String> = lines
        .iter()
        .filter(|line| TROUBLE.iter().any(|word| line.contains(word)))
        .collect();
    ensure!(bad.is_empty(), "the guest's kernel complains: {bad:#?}");
    Ok(())
}
