//! What is done with a request, on the thread that owns the card.

use std::time::Duration;

use ferronic::filter::{Address, Modes, VLANS, Vlans};
use ferronic::lro::Profile;
use ferronic::rss::{key_text, parse_key};
use ferronic::spec::Features;
use ferronic::xps::{Mask, Xps};
use ferronic::{Coalescing, Device, Direction, LroOptions, RssOptions, Window};
use serde_json::Value;

use super::message::{
    Coalesce, CoalesceChange, Filter, FilterChange, Offload, OffloadChange, Queues, Request, Rss,
    RssChange, Table, Thread, XpsChange, XpsQueue,
};
use crate::error::CliError;
use crate::options::mac;
use crate::stats;

/// Features of segmentation.
const TSO: Features = Features::HOST_TSO4
    .union(Features::HOST_TSO6)
    .union(Features::HOST_ECN)
    .union(Features::HOST_USO);

/// A command that has a card, seen by those who ask for something.
pub trait Owner {
    /// The card.
    fn device(&self) -> &Device;

    /// Pairs by which it sends.
    fn transmitting(&self) -> u16;

    /// How it chooses among them, if it does so by masks.
    fn xps(&self) -> Option<&Xps> {
        None
    }

    /// Counters of its threads, if it has any.
    fn threads(&self) -> Vec<Thread> {
        Vec::new()
    }

    /// Changes the number of pairs in use.
    fn set_queues(&mut self, pairs: u16) -> Result<(), CliError> {
        Ok(self.device().set_receiving_pairs(pairs)?)
    }

    /// What may be asked of the card for frames that are sent.
    fn transmit_offloads(&self) -> Features {
        self.device().features() & Features::TX_OFFLOADS
    }

    /// Changes that; `None` if it cannot.
    fn set_transmit_offloads(&mut self, offloads: Features) -> Option<Result<(), CliError>> {
        let _ = offloads;
        None
    }
}

/// A command that only has the card.
pub struct Plain<'a> {
    /// The card.
    pub device: &'a Device,
    /// Pairs by which it sends.
    pub transmitting: u16,
}

impl Owner for Plain<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn transmitting(&self) -> u16 {
        self.transmitting
    }
}

/// Does what is asked for; the state afterwards.
pub fn handle(owner: &mut dyn Owner, request: &Request) -> Result<Value, CliError> {
    let value = match request {
        Request::Stats => Ok(stats::report(&owner.device().card_stats()?)),
        Request::Queues(change) => serde_json::to_value(queues(owner, *change)?),
        Request::Rss(change) => serde_json::to_value(rss(owner.device(), change.as_ref())?),
        Request::Coalesce(change) => {
            serde_json::to_value(coalesce(owner.device(), change.as_ref())?)
        }
        Request::Filter(change) => serde_json::to_value(filter(owner.device(), change.as_ref())?),
        Request::Offload(change) => serde_json::to_value(offload(owner, change.as_ref())?),
        Request::Xps(change) => serde_json::to_value(xps(owner, change.as_ref())?),
    };
    value.map_err(|e| CliError::Incomplete(format!("the state cannot be told: {e}")))
}

fn queues(owner: &mut dyn Owner, change: Option<u16>) -> Result<Queues, CliError> {
    if let Some(pairs) = change {
        owner.set_queues(pairs)?;
    }
    let device = owner.device();
    let opened = device.queue_pairs();
    Ok(Queues {
        card: device.window().map_or(opened, Window::pairs),
        opened,
        receiving: device.receiving_pairs()?,
        transmitting: owner.transmitting(),
        threads: owner.threads(),
    })
}

fn rss(device: &Device, change: Option<&RssChange>) -> Result<Rss, CliError> {
    if let Some(change) = change {
        change_rss(device, change)?;
    }
    let follow = device.follow()?;
    let table = device.rss()?.map(|options| Table {
        key: key_text(options.key()),
        entries: options.table().to_vec(),
        types: options.types().to_string(),
        unclassified: options.unclassified(),
    });
    Ok(Rss {
        table,
        follow: follow.on,
        follow_us: follow.period.as_micros() as u64,
    })
}

fn change_rss(device: &Device, change: &RssChange) -> Result<(), CliError> {
    let RssChange {
        off,
        key,
        equal,
        weights,
        table,
        types,
        unclassified,
        follow,
        follow_us,
    } = change;
    let of_tables = [equal.is_some(), weights.is_some(), table.is_some()];
    let tables = of_tables.into_iter().filter(|given| *given).count();
    let sets = tables > 0 || key.is_some() || types.is_some() || unclassified.is_some();
    if tables > 1 || *off && sets {
        return Err(CliError::Usage(
            "a table is given once: by equal shares, by weights or by its entries; and nothing of it \
             together with off"
                .into(),
        ));
    }
    if *off {
        device.set_rss(None)?;
    } else if sets {
        let mut options = match device.rss()? {
            Some(options) => options,
            None => RssOptions::equal(device.receiving_pairs()?).map_err(ferronic::Error::from)?,
        };
        options = with(options, change).map_err(ferronic::Error::from)?;
        device.set_rss(Some(&options))?;
    }
    if follow.is_some() || follow_us.is_some() {
        let mut options = device.follow()?;
        options.on = follow.unwrap_or(options.on);
        options.period = follow_us.map_or(options.period, Duration::from_micros);
        device.set_follow(&options)?;
    }
    Ok(())
}

/// The options with what is to be changed.
fn with(mut options: RssOptions, change: &RssChange) -> Result<RssOptions, ferronic::RssError> {
    if let Some(pairs) = change.equal {
        options = options.with_table(RssOptions::equal(pairs)?.table().to_vec())?;
    }
    if let Some(weights) = &change.weights {
        options = options.with_weights(weights)?;
    }
    if let Some(table) = &change.table {
        options = options.with_table(table.clone())?;
    }
    if let Some(key) = &change.key {
        options = options.with_key(parse_key(key)?);
    }
    if let Some(types) = &change.types {
        options = options.with_types(types.parse()?);
    }
    if let Some(pair) = change.unclassified {
        options = options.with_unclassified(pair)?;
    }
    Ok(options)
}

fn coalesce(device: &Device, change: Option<&CoalesceChange>) -> Result<Vec<Coalesce>, CliError> {
    if let Some(change) = change {
        let coalescing = Coalescing {
            packets: change.packets,
            time: Duration::from_micros(change.usecs),
        };
        for (direction, wanted) in [
            (Direction::Receive, change.rx),
            (Direction::Transmit, change.tx),
        ] {
            match change.queue {
                _ if !wanted => {}
                Some(pair) => device.set_coalescing(pair, direction, &coalescing)?,
                None => device.set_all_coalescing(direction, &coalescing)?,
            }
        }
    }
    let micros = |coalescing: &Coalescing| coalescing.time.as_nanos() as f64 / 1e3;
    (0..device.queue_pairs())
        .map(|queue| {
            let rx = device.coalescing(queue, Direction::Receive)?;
            let tx = device.coalescing(queue, Direction::Transmit)?;
            Ok(Coalesce {
                queue,
                rx_packets: rx.packets,
                rx_usecs: micros(&rx),
                tx_packets: tx.packets,
                tx_usecs: micros(&tx),
            })
        })
        .collect()
}

/// Modes by name, and whether their bit says no.
const MODES: [(&str, Modes, bool); 6] = [
    ("promiscuous", Modes::PROMISCUOUS, false),
    ("all-multicast", Modes::ALL_MULTICAST, false),
    ("all-unicast", Modes::ALL_UNICAST, false),
    ("multicast", Modes::NO_MULTICAST, true),
    ("unicast", Modes::NO_UNICAST, true),
    ("broadcast", Modes::NO_BROADCAST, true),
];

fn filter(device: &Device, change: Option<&FilterChange>) -> Result<Filter, CliError> {
    let mut options = device.filter()?;
    if let Some(change) = change {
        for (name, on) in &change.modes {
            let known = MODES.into_iter().find(|(known, ..)| known == name);
            let Some((_, mode, no)) = known else {
                let names = MODES.map(|(name, ..)| name).join(", ");
                return Err(CliError::Usage(format!(
                    "{name:?} is no mode; there are {names}"
                )));
            };
            options.modes.set(mode, *on != no);
        }
        for text in &change.add {
            let address = address(text)?;
            if !options.addresses.contains(&address) {
                options.addresses.push(address);
            }
        }
        for text in &change.remove {
            let address = address(text)?;
            options.addresses.retain(|other| *other != address);
        }
        let promiscuous = options.modes.contains(Modes::PROMISCUOUS);
        if !promiscuous && options.addresses.is_empty() && change.remove.is_empty() {
            // Else nothing that is meant for it would arrive.
            options.addresses.push(device.mac());
        }
        match change.vlans.as_deref() {
            None => {}
            Some("all") => options.vlans = None,
            Some(list) => options.vlans = Some(vlans(list)?),
        }
        device.set_filter(&options)?;
    }
    let modes = MODES.into_iter();
    let on = modes.filter(|(_, mode, no)| options.modes.contains(*mode) != *no);
    Ok(Filter {
        modes: on.map(|(name, ..)| name.to_owned()).collect(),
        addresses: options.addresses.iter().copied().map(mac).collect(),
        vlans: options.vlans.as_ref().map(|vlans| {
            let ids = vlans.iter().map(usize::from);
            let mask = Mask::of(ids, VLANS.into());
            mask.map_or_else(|e| e.to_string(), |mask| mask.list().to_string())
        }),
        room: device.window().map_or(Ok(0), Window::filter_room)?,
    })
}

/// Reads an Ethernet address.
pub fn address(text: &str) -> Result<Address, CliError> {
    let bytes: Option<Vec<u8>> = text
        .split(':')
        .map(|byte| (byte.len() == 2).then(|| u8::from_str_radix(byte, 16).ok())?)
        .collect();
    let address = bytes.and_then(|bytes| Address::try_from(bytes).ok());
    address.ok_or_else(|| {
        CliError::Usage(format!(
            "{text:?} is no Ethernet address; write six bytes like 02:fe:01:00:00:01"
        ))
    })
}

fn vlans(list: &str) -> Result<Vlans, CliError> {
    let mask =
        Mask::from_list(list, VLANS.into()).map_err(|e| CliError::Usage(format!("VLANs: {e}")))?;
    let ids = mask.iter().filter_map(|id| u16::try_from(id).ok());
    Ok(Vlans::of(ids).map_err(ferronic::Error::from)?)
}

fn offload(owner: &mut dyn Owner, change: Option<&OffloadChange>) -> Result<Offload, CliError> {
    if let Some(change) = change {
        change_offload(owner, change)?;
    }
    let features = owner.device().features();
    let transmit = owner.transmit_offloads();
    // Whether it is there at all; nothing is changed by what is.
    let tx_fixed = owner.set_transmit_offloads(transmit).is_none();
    let device = owner.device();
    let lro = lro_options(device)?;
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    Ok(Offload {
        lro: lro
            .map_or(Profile::Off, |lro| lro.profile)
            .name()
            .to_owned(),
        lro_gap_us: lro.map_or(0.0, |lro| micros(lro.gap)),
        lro_hold_us: lro.map_or(0.0, |lro| micros(lro.hold)),
        lro_fixed: lro.is_none(),
        rx_checksum: features.contains(Features::GUEST_CSUM),
        tx_checksum: transmit.contains(Features::CSUM),
        tso: [Features::HOST_TSO4, Features::HOST_TSO6, Features::HOST_USO]
            .map(|one| transmit.contains(one)),
        tx_fixed,
    })
}

/// The settings of merging, off ones too; `None` if merging was not negotiated.
fn lro_options(device: &Device) -> Result<Option<LroOptions>, CliError> {
    if !device.features().intersects(Features::LRO) {
        return Ok(None);
    }
    let lro = device.window().map(Window::lro).transpose()?.flatten();
    Ok(lro.map(|lro| lro.options()).transpose()?)
}

fn change_offload(owner: &mut dyn Owner, change: &OffloadChange) -> Result<(), CliError> {
    let fixed = |what: &str, option: &str| {
        CliError::Usage(format!(
            "{what} is negotiated when the card is opened, and stays as it is; start the command \
             {option}"
        ))
    };
    let features = owner.device().features();
    if let Some(on) = change.rx_checksum
        && on != features.contains(Features::GUEST_CSUM)
    {
        return Err(fixed(
            "rx-checksum",
            "with or without `--without guest_csum`",
        ));
    }
    if change.lro.is_some() || change.lro_gap_us.is_some() || change.lro_hold_us.is_some() {
        let Some(mut options) = lro_options(owner.device())? else {
            if change.lro.as_deref() == Some("off") {
                return Ok(());
            }
            return Err(fixed("lro", "with `--lro strict`, on a card that has it"));
        };
        let profiles = [Profile::Off, Profile::Strict, Profile::Relaxed];
        if let Some(name) = &change.lro {
            let known = profiles.into_iter().find(|profile| profile.name() == name);
            options.profile = known.ok_or_else(|| {
                CliError::Usage(format!(
                    "{name:?} is no profile; there are off, strict, relaxed"
                ))
            })?;
        }
        options.gap = change.lro_gap_us.map_or(options.gap, Duration::from_micros);
        options.hold = change
            .lro_hold_us
            .map_or(options.hold, Duration::from_micros);
        owner.device().set_lro(&options)?;
    }
    let mut wanted = owner.transmit_offloads();
    let before = wanted;
    for (set, of) in [(change.tx_checksum, Features::CSUM), (change.tso, TSO)] {
        match set {
            Some(true) => wanted |= of & features,
            Some(false) => wanted -= of,
            None => {}
        }
        if set == Some(true) && !features.intersects(of) {
            return Err(fixed("it", "without `--without`, on a card that offers it"));
        }
    }
    // Segmentation needs checksums.
    let wanted = wanted.with_requirements() & wanted;
    if wanted == before {
        return Ok(());
    }
    owner.set_transmit_offloads(wanted).unwrap_or_else(|| {
        Err(fixed(
            "what is asked of the card for frames that this command sends",
            "with `--without csum` or `--without host_tso4,host_tso6`",
        ))
    })
}

fn xps(owner: &dyn Owner, change: Option<&XpsChange>) -> Result<Vec<XpsQueue>, CliError> {
    let Some(xps) = owner.xps() else {
        return Err(CliError::Usage(format!(
            "this command does not choose transmit queues by masks (it sends by {}): `ferronic send` \
             does",
            owner.transmitting()
        )));
    };
    if let Some(change) = change {
        let bits = match change.cpus {
            true => xps.cpus(change.queue)?.bits(),
            false => xps.rxqs(change.queue)?.bits(),
        };
        let mask = match change.hex {
            true => Mask::from_hex(&change.mask, bits),
            false => Mask::from_list(&change.mask, bits),
        };
        let mask = mask.map_err(|e| CliError::Usage(format!("{:?}: {e}", change.mask)))?;
        match change.cpus {
            true => xps.set_cpus(change.queue, &mask)?,
            false => xps.set_rxqs(change.queue, &mask)?,
        }
    }
    let both = |mask: Mask| [mask.list().to_string(), mask.hex().to_string()];
    (0..xps.queues())
        .map(|queue| {
            Ok(XpsQueue {
                queue,
                cpus: both(xps.cpus(queue)?),
                rxqs: both(xps.rxqs(queue)?),
            })
        })
        .collect()
}
