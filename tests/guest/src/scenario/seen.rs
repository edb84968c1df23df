//! What both ends of the PCI bus count.

use ferronic_guest_agent::{Ethtool, Interface, Request};

use super::tools::until;
use crate::{Counters, GuestError, Machine, PATIENCE};

/// Counters of both ends.
pub struct Seen {
    /// What `ethtool` tells.
    pub ethtool: Ethtool,
    /// Packets that the driver sent and received.
    pub packets: [u64; 2],
    /// Of the card.
    pub counters: Counters,
}

impl Seen {
    /// Both ends at one moment: read again if something passed meanwhile.
    pub fn of(machine: &mut Machine, interface: &Interface) -> Result<Self, GuestError> {
        until("a moment without traffic", PATIENCE, || {
            let before = machine.card.counters()?;
            let seen = Self::now(machine, interface)?;
            let still = ["frames rx", "frames tx", "doorbells"]
                .iter()
                .all(|name| before.get(name) == seen.counters.get(name));
            Ok(still.then_some(seen))
        })
    }

    fn now(machine: &mut Machine, interface: &Interface) -> Result<Self, GuestError> {
        let name = &interface.name;
        let mut packets = [0; 2];
        for (packets, direction) in packets.iter_mut().zip(["tx", "rx"]) {
            let path = format!("/sys/class/net/{name}/statistics/{direction}_packets");
            let text = machine.guest.read(&path)?;
            *packets = text
                .trim()
                .parse()
                .map_err(|_| GuestError::Check(format!("{path} holds {text:?}")))?;
        }
        Ok(Self {
            ethtool: machine.guest.ask(Request::Ethtool {
                interface: name.clone(),
            })?,
            packets,
            counters: machine.card.counters()?,
        })
    }

    /// Doorbells that the driver rang for its queues of this direction (`tx`, `rx`, or both with ``).
    pub fn kicks(&self, direction: &str) -> u64 {
        let all = self.ethtool.statistics.iter();
        all.filter(|(name, _)| name.starts_with(direction) && name.ends_with("0_kicks"))
            .map(|(_, value)| value)
            .sum()
    }
}
