//! A receiving host: the driver on a card in software that delivers a recording, and smoltcp.

use std::collections::HashMap;
use std::sync::Arc;

use ferronic::lro::{LroOptions, LroRequest};
use ferronic::pci::PciFunction;
use ferronic::phy::{Phy, PhyOptions};
use ferronic::queue::Wakeup;
use ferronic::spec::Features;
use ferronic::{Device, DeviceConfig};
use ferronic_oracle::{fold, sum};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

use crate::flow::{At, Flow, key, locate, word};
use crate::recording::Recording;
use crate::support::{Function, OFFER, SoftCard};

/// Bytes that a socket holds.
const WINDOW: usize = 512 * 1024;
/// Ring and buffers, as the card that was recorded had them.
const RING: u16 = 2048;
const BUFFERS: u16 = 1280;
const BUFFER: usize = 4096;

const SYN: u8 = 2;
const ACK: u8 = 16;

struct Host {
    card: Arc<SoftCard>,
    phy: Phy,
    interface: Interface,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    now: Instant,
    received: u64,
    _device: Device,
}

/// One round that counts.
#[inline(never)]
fn measured(host: &mut Host) -> Result<(), ferronic::Error> {
    work(host)
}

/// One round of the receiver: everything that is there through driver and stack to the application,
/// which reads without copying.
#[inline(never)]
fn work(host: &mut Host) -> Result<(), ferronic::Error> {
    host.interface
        .poll(host.now, &mut host.phy, &mut host.sockets);
    host.phy.flush()?;
    for handle in &host.handles {
        let socket = host.sockets.get_mut::<tcp::Socket<'_>>(*handle);
        while socket.can_recv() {
            let taken = socket.recv(|bytes| (bytes.len(), bytes.len()));
            host.received += taken.unwrap_or(0) as u64;
        }
    }
    host.phy.pair().rx.arm()?;
    Ok(())
}

fn open(flows: &[Flow], gro: bool) -> Result<Host, String> {
    let failed = |e: &dyn std::fmt::Display| e.to_string();
    let card = SoftCard::merging(OFFER | Features::LRO, 1, RING);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        ring_size: Some(RING),
        rx_buffers: Some(BUFFERS),
        buffer_size: BUFFER,
        lro: LroRequest::Needed(LroOptions::default()),
        wakeup: Wakeup::Interrupt,
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config).map_err(|e| failed(&e))?;
    let options = PhyOptions {
        gro,
        ..PhyOptions::default()
    };
    let mut phy = Phy::with_options(pairs.remove(0), options);
    let first = flows.first().ok_or("the recording has no frame")?;
    let mut mac = [0; 6];
    mac.copy_from_slice(&first.template[..6]);
    let config = Config::new(EthernetAddress(mac).into());
    let mut interface = Interface::new(config, &mut phy, Instant::ZERO);
    let (_, to) = addresses(first);
    let bits = if first.at.v6 { 64 } else { 24 };
    let mut room = Ok(());
    interface.update_ip_addrs(|all| room = all.push(IpCidr::new(to, bits)));
    room.map_err(|_| "no room for an address")?;
    let mut sockets = SocketSet::new(Vec::new());
    let mut handles = Vec::new();
    for flow in flows {
        let buffer = |len| tcp::SocketBuffer::new(vec![0; len]);
        let mut socket = tcp::Socket::new(buffer(WINDOW), buffer(2048));
        let port = u16::from_be_bytes([
            flow.template[flow.at.tcp + 2],
            flow.template[flow.at.tcp + 3],
        ]);
        socket.listen(port).map_err(|e| failed(&e))?;
        handles.push(sockets.add(socket));
    }
    Ok(Host {
        card,
        phy,
        interface,
        sockets,
        handles,
        now: Instant::ZERO,
        received: 0,
        _device: device,
    })
}

/// Source and destination.
fn addresses(flow: &Flow) -> (IpAddress, IpAddress) {
    let bytes = &flow.key[..flow.key.len() - 4];
    let (from, to) = bytes.split_at(bytes.len() / 2);
    let address = |bytes: &[u8]| match <[u8; 16]>::try_from(bytes) {
        Ok(v6) => IpAddress::from(std::net::Ipv6Addr::from(v6)),
        Err(_) => IpAddress::v4(bytes[0], bytes[1], bytes[2], bytes[3]),
    };
    (address(from), address(to))
}

/// An answer to the question for the sender's hardware address.
fn advertisement(flow: &Flow) -> Vec<u8> {
    let macs = &flow.template[..12];
    let address = &flow.key[..flow.key.len() - 4];
    if !flow.at.v6 {
        let to_us = [&macs[6..12], &address[..4], &macs[..6], &address[4..]].concat();
        let arp = [8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
        return [macs, &arp, &to_us].concat();
    }
    let mut frame = flow.template[..54].to_vec();
    let message = [
        &[136, 0, 0, 0, 0x60, 0, 0, 0][..],
        &address[..16],
        &[2, 1],
        &macs[6..12],
    ]
    .concat();
    frame[18..20].copy_from_slice(&(message.len() as u16).to_be_bytes());
    (frame[20], frame[21]) = (58, 255);
    let check = !fold(sum(address) + 58 + message.len() as u64 + sum(&message));
    frame.extend(message);
    frame[56..58].copy_from_slice(&check.to_be_bytes());
    frame
}

impl Host {
    /// Lets the card deliver frames, with the first ten bytes of their virtio headers.
    fn deliver(&self, frames: impl IntoIterator<Item = ([u8; 10], Vec<u8>)>) -> Result<(), String> {
        let mut model = self.card.model();
        for (header, bytes) in frames {
            model.claims.push_back(header);
            model.to_receive[0].push_back(bytes);
        }
        model.run();
        if model.to_receive[0].is_empty() {
            Ok(())
        } else {
            Err("the card has too few buffers for a burst".to_owned())
        }
    }

    fn round(&mut self, round: fn(&mut Self) -> Result<(), ferronic::Error>) -> Result<(), String> {
        self.now += smoltcp::time::Duration::from_micros(100);
        round(self).map_err(|e| e.to_string())
    }

    /// What the stack sent since the last call, without virtio headers.
    fn sent(&self) -> Vec<Vec<u8>> {
        let mut model = self.card.model();
        model.run();
        let sent = std::mem::take(&mut model.sent);
        model.layouts.clear();
        model.irqs.clear();
        sent.into_iter()
            .map(|(_, bytes)| bytes[12..].to_vec())
            .collect()
    }

    /// Opens a connection as the sender would have.
    fn connect(&mut self, flow: &mut Flow) -> Result<(), String> {
        let valid = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let begin = flow.seq.0.wrapping_sub(1);
        // Longest segment, and a window scale of 7.
        let syn = flow.segment(begin, 0, SYN, &[2, 4, 5, 0xb4, 1, 3, 3, 7]);
        self.deliver([(valid, syn)])?;
        for _ in 0..4 {
            self.round(work)?;
            for frame in self.sent() {
                match locate(&frame) {
                    Ok(At { tcp, .. }) if frame[tcp + 13] == SYN | ACK => {
                        flow.ack.1 = word(&frame, tcp + 4).wrapping_add(1);
                        let ack = flow.segment(flow.seq.0, flow.ack.1, ACK, &[]);
                        self.deliver([(valid, ack)])?;
                        self.round(work)?;
                        self.sent();
                        return Ok(());
                    }
                    _ => self.deliver([([0; 10], advertisement(flow))])?,
                }
            }
            // Questions are not asked twice within a second.
            self.now += smoltcp::time::Duration::from_secs(2);
        }
        Err("the stack does not answer".to_owned())
    }
}

/// Connections, and where each is by its addresses and ports.
type Flows = (Vec<Flow>, HashMap<Vec<u8>, usize>);

fn flows(recording: &Recording) -> Result<Flows, String> {
    let (mut flows, mut places) = (Vec::<Flow>::new(), HashMap::new());
    for frame in recording.iter().flatten() {
        let at = locate(&frame.bytes)?;
        let name = key(&frame.bytes, at);
        let seq = word(&frame.bytes, at.tcp + 4);
        let end = seq.wrapping_add((at.end - at.payload) as u32);
        let place = *places.entry(name.clone()).or_insert(flows.len());
        match flows.get_mut(place) {
            Some(flow) => {
                if (end.wrapping_sub(flow.seq.1) as i32) > 0 {
                    flow.seq.1 = end;
                }
            }
            None => flows.push(Flow {
                key: name,
                template: frame.bytes[..at.payload].to_vec(),
                at,
                seq: (seq, end),
                ack: (word(&frame.bytes, at.tcp + 8), 0),
            }),
        }
    }
    Ok((flows, places))
}

/// Receives a recording.
///
/// # Errors
/// When not every byte comes out of the stack.
pub fn receive(recording: &Recording, gro: bool) -> Result<Vec<(&'static str, u64)>, String> {
    let (mut flows, places) = flows(recording)?;
    let mut host = open(&flows, gro)?;
    for flow in &mut flows {
        host.connect(flow)?;
    }
    let opened = (host.phy.pair().rx.stats().frames, host.phy.gro_stats());
    for burst in recording {
        let mut frames = Vec::new();
        for frame in burst {
            let at = locate(&frame.bytes)?;
            let flow = &flows[places[&key(&frame.bytes, at)]];
            let mut bytes = frame.bytes.clone();
            flow.adopt(&mut bytes, at, frame.header[0] & 1 != 0);
            let mut header = [0; 10];
            header.copy_from_slice(&frame.header[..10]);
            frames.push((header, bytes));
        }
        host.deliver(frames)?;
        host.round(measured)?;
        host.sent();
    }
    let wanted: u64 = flows
        .iter()
        .map(|flow| u64::from(flow.seq.1.wrapping_sub(flow.seq.0)))
        .sum();
    if host.received != wanted {
        return Err(format!(
            "{} of {wanted} bytes came out of the stack: {:?}",
            host.received,
            host.phy.stats()
        ));
    }
    let frames = host.phy.pair().rx.stats().frames - opened.0;
    let merged = host.phy.gro_stats();
    let segments = merged.segments - opened.1.segments;
    let delivered = frames - segments + (merged.units - opened.1.units);
    Ok(vec![
        ("bytes", host.received),
        ("frames", frames),
        ("delivered", delivered),
    ])
}
