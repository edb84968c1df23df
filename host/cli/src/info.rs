//! `ferronic info`

use clap::Args;
use ferronic::Window;
use ferronic::queue::Limits;
use ferronic::virtio::{NetConfig, Transport};

use crate::error::{CliError, Outcome};
use crate::options::{CardOptions, mac};

/// Options of `info`.
#[derive(Args)]
pub struct Info {
    #[command(flatten)]
    card: CardOptions,
}

impl Info {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let transport = Transport::open(self.card.function()?, Limits::default().reset)?;
        let caps = transport.capabilities().clone();
        let id = caps.identity;
        println!(
            "device        {:04x}:{:04x} revision {}, subsystem {:04x}:{:04x}",
            id.vendor, id.device, id.revision, id.subsystem_vendor, id.subsystem
        );
        let offered = transport.offered()?;
        let net = NetConfig::read(&transport, offered)?;
        if let Some(address) = net.mac {
            println!("MAC           {}", mac(address));
        }
        let speed = net
            .link
            .mbit_s
            .map_or(String::new(), |speed| format!(", {speed} Mbit/s"));
        println!(
            "link          {}{speed}",
            if net.link.up { "up" } else { "down" }
        );
        if let Some(mtu) = net.mtu {
            println!("MTU           {mtu}");
        }
        println!("virtqueues    {}", transport.num_queues()?);
        println!("ring size     {}", transport.queue_size(0)?);
        println!("MSI-X vectors {}", caps.msix_vectors);
        let names: Vec<_> = offered.iter_names().map(|(name, _)| name).collect();
        println!("offers        {}", names.join(" "));
        println!("status        {:?}", transport.status()?);
        match caps.window {
            None => println!("window        none: not a Ferronic card"),
            Some(_) => {
                let window = Window::attach(&transport)?;
                let (major, minor) = window.version();
                println!("window        version {major}.{minor}");
                println!(
                    "queue pairs   {}, {} in use",
                    window.pairs(),
                    window.pairs_in_use()?
                );
                println!("data path     {} bits", 8 * window.data_bytes());
                println!("{}", steering(&window)?);
                match window.lro()? {
                    None => println!("LRO           none: this card does not merge"),
                    Some(lro) => {
                        let (flows, buffers) = lro.capacity()?;
                        println!("LRO           {flows} flows, units of {buffers} buffers");
                    }
                }
            }
        }
        Ok(Outcome::Done)
    }
}

/// What the window has for many queues.
fn steering(window: &Window) -> Result<String, CliError> {
    let rss = if window.has_steering() {
        let caps = window.rss()?.caps()?;
        format!(
            "table of {} entries, hashes over {}",
            caps.table, caps.types
        )
    } else {
        "none: this card spreads frames by a hash of its own".into()
    };
    let filters = if window.has_filters() {
        format!("{} addresses, all VLANs", window.filter_room()?)
    } else {
        "none: this card takes every frame".into()
    };
    let coalescing = if window.has_coalescing() {
        "packets and time, of each queue"
    } else {
        "none"
    };
    Ok(format!(
        "RSS           {rss}\nfilters       {filters}\ncoalescing    {coalescing}"
    ))
}
