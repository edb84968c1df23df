//! A TCP/IP stack of our own on the card, as `ping` and `tcp` have it.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use clap::Args;
use ferronic::gro::GroStats;
use ferronic::phy::{Phy, PhyStats};
use ferronic::{Device, TxStats};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Cidr};

use crate::control::Control;
use crate::control::owner::Plain;
use crate::error::CliError;

/// Longest wait for an interrupt: signals and time-outs are looked at in between.
pub const WAIT: Duration = Duration::from_millis(20);
/// MTU of a card that names none.
pub const DEFAULT_MTU: u16 = 1500;

/// Where the card is in the network.
#[derive(Args)]
pub struct AddressOptions {
    /// The card's own address and prefix.
    #[arg(long, default_value = "192.168.77.2/24", value_name = "ADDRESS/PREFIX",
          value_parser = parse_cidr)]
    local: Ipv4Cidr,
    /// Router for hosts outside the prefix.
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<Ipv4Addr>,
}

fn parse_cidr(text: &str) -> Result<Ipv4Cidr, String> {
    text.parse()
        .map_err(|()| "an address and a prefix are needed, like 192.168.77.2/24".into())
}

/// What passed between a stack and the card.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Buffers given to the card, and what they took.
    pub sent: TxStats,
    /// Frames received, by who verified them.
    pub received: PhyStats,
    /// What the driver merged of it.
    pub merged: GroStats,
    /// Frames that the card had merged.
    pub card_units: u64,
    /// The card cut what was sent into segments.
    pub tso: bool,
    /// The card made the checksums of what was sent.
    pub checksum: bool,
}

/// The stack on a queue pair.
pub struct Stack<'a> {
    // First: the socket goes before the card does.
    control: Control,
    device: &'a Device,
    phy: Phy,
    /// smoltcp's interface.
    pub interface: Interface,
    start: Instant,
}

impl<'a> Stack<'a> {
    /// A stack that can reach `address`; settings are served while it is polled.
    pub fn new(
        options: &AddressOptions,
        address: Ipv4Addr,
        device: &'a Device,
        mut phy: Phy,
        control: Control,
    ) -> Result<Self, CliError> {
        let mut config = Config::new(EthernetAddress(device.mac()).into());
        config.random_seed = std::process::id().into();
        let now = smoltcp::time::Instant::ZERO;
        let mut interface = Interface::new(config, &mut phy, now);
        interface.update_ip_addrs(|addresses| {
            // There is room for one in an empty list.
            let _ = addresses.push(IpCidr::Ipv4(options.local));
        });
        if let Some(gateway) = options.gateway {
            interface
                .routes_mut()
                .add_default_ipv4_route(gateway)
                .map_err(|e| CliError::Usage(format!("--gateway {gateway}: {e}")))?;
        } else if !options.local.contains_addr(&address) {
            return Err(CliError::Usage(format!(
                "{address} is not in {}: give --local another address, or a --gateway",
                options.local
            )));
        }
        Ok(Self {
            control,
            device,
            phy,
            interface,
            start: Instant::now(),
        })
    }

    /// What passed so far.
    pub fn traffic(&mut self) -> Traffic {
        Traffic {
            sent: self.phy.pair().tx.stats(),
            received: self.phy.stats(),
            merged: self.phy.gro_stats(),
            card_units: self.phy.pair().rx.stats().units,
            tso: self.phy.segments_up_to().is_some(),
            checksum: self.phy.makes_checksums(),
        }
    }

    fn now(&self) -> smoltcp::time::Instant {
        smoltcp::time::Instant::from_micros(self.start.elapsed().as_micros() as i64)
    }

    /// Takes what came, sends what is to be sent.
    pub fn poll(&mut self, sockets: &mut SocketSet<'_>) -> Result<(), CliError> {
        self.control.serve(&mut Plain {
            device: self.device,
            transmitting: 1,
        });
        let now = self.now();
        self.interface.poll(now, &mut self.phy, sockets);
        Ok(self.phy.flush()?)
    }

    /// Waits until a frame comes, there is room for what is to be sent, or `timeout` is over.
    pub fn wait(&mut self, sockets: &SocketSet<'_>, timeout: Duration) -> Result<(), CliError> {
        let now = self.now();
        let mut timeout = timeout.min(WAIT);
        let due = self.interface.poll_delay(now, sockets);
        let room = self.phy.has_room()?;
        let pair = self.phy.pair();
        if room && let Some(due) = due {
            timeout = timeout.min(Duration::from_micros(due.total_micros()));
        }
        let mut ready = timeout.is_zero() || pair.rx.arm()?;
        if !room {
            ready |= pair.tx.arm_after(pair.tx.outstanding() / 2)?;
        }
        if !ready {
            self.device.wait(timeout)?;
        }
        Ok(())
    }
}
