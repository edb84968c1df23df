//! What several scenarios do.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use ferronic_guest_agent::{Interface, PciFunction, Pings, Request, Transfer};
use ferronic_transfer::{SINK, SOURCE};

use crate::{Counters, Guest, GuestError, Machine, ensure};

/// The guest's address, and one of the peer, which answers for all others.
pub const GUEST: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 2);
/// The peer.
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);

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

/// Loads virtio_net.
pub fn load_virtio_net(guest: &mut Guest) -> Result<(), GuestError> {
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
    let pings: Pings = guest.ask(Request::Ping {
        to: PEER,
        count,
        size,
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
    match direction {
        Direction::Transmit => Request::TcpSend {
            to: PEER,
            port: SINK,
            bytes,
            seed,
        },
        Direction::Receive => Request::TcpReceive {
            from: PEER,
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
    let request = transfer_request(direction, bytes, seed);
    let transfer: Transfer = machine.guest.ask(request)?;
    let counters = machine.card.counters()?.since(&before);
    ensure!(
        transfer.bytes == bytes,
        "{} of {bytes} bytes arrived ({})",
        transfer.bytes,
        direction.name()
    );
    ensure!(
        transfer.sent == transfer.received,
        "what arrived is not what was sent ({}): SHA-256 {} became {}",
        direction.name(),
        transfer.sent,
        transfer.received
    );
    Ok((transfer, counters))
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
