//! The network device's configuration space.

use ferronic_spec::Features;
use ferronic_spec::net::{LinkStatus, config};

use super::Transport;
use crate::error::Error;

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// A carrier is there.
    pub up: bool,
    /// Speed, if known.
    pub mbit_s: Option<u32>,
    /// Full duplex, if known.
    pub full_duplex: Option<bool>,
}

/// What the configuration space says, all read in one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetConfig {
    /// MAC address, with the MAC feature.
    pub mac: Option<[u8; 6]>,
    /// Largest MTU, with the MTU feature.
    pub mtu: Option<u16>,
    /// The link.
    pub link: Link,
}

impl NetConfig {
    /// Reads the fields that belong to `features`: those offered or negotiated.
    pub fn read(transport: &Transport, features: Features) -> Result<Self, Error> {
        transport.device_config(|registers| {
            let mut mac = [0; 6];
            if features.contains(Features::MAC) {
                for (offset, byte) in (config::MAC..).zip(mac.iter_mut()) {
                    *byte = registers.read8(offset)?;
                }
            }
            let up = !features.contains(Features::STATUS)
                || LinkStatus::from_bits_retain(registers.read16(config::STATUS)?)
                    .contains(LinkStatus::LINK_UP);
            let mtu = match features.contains(Features::MTU) {
                true => Some(registers.read16(config::MTU)?),
                false => None,
            };
            let (mut mbit_s, mut full_duplex) = (None, None);
            if features.contains(Features::SPEED_DUPLEX) {
                mbit_s = Some(registers.read32(config::SPEED)?).filter(|speed| *speed != u32::MAX);
                full_duplex = match registers.read8(config::DUPLEX)? {
                    0 => Some(false),
                    1 => Some(true),
                    _ => None,
                };
            }
            Ok(Self {
                mac: features.contains(Features::MAC).then_some(mac),
                mtu,
                link: Link {
                    up,
                    mbit_s,
                    full_duplex,
                },
            })
        })
    }
}
