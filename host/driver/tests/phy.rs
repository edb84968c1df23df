//! A TCP/IP stack over the card: two cards in software, wired to each other.

mod support;

use std::sync::Arc;

use ferronic::pci::PciFunction;
use ferronic::phy::Phy;
use ferronic::spec::net::HEADER_LEN;
use ferronic::{Device, DeviceConfig};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};
use support::{Function, OFFER, SoftCard};

struct Host {
    card: Arc<SoftCard>,
    _device: Device,
    phy: Phy,
    interface: Interface,
    sockets: SocketSet<'static>,
}

fn host(number: u8) -> Host {
    let card = SoftCard::new(OFFER, 1, 64);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        buffer_size: 256,
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config).unwrap();
    let mut phy = Phy::new(pairs.remove(0), device.mtu());
    let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, number]).into());
    let mut interface = Interface::new(config, &mut phy, Instant::ZERO);
    let address = Ipv4Address::new(10, 0, 0, number);
    interface.update_ip_addrs(|all| all.push(IpCidr::new(address.into(), 24)).unwrap());
    Host {
        card,
        _device: device,
        phy,
        interface,
        sockets: SocketSet::new(Vec::new()),
    }
}

impl Host {
    fn tcp(&mut self) -> smoltcp::iface::SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; 16_384]);
        self.sockets.add(tcp::Socket::new(buffer(), buffer()))
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.phy, &mut self.sockets);
        self.phy.flush().unwrap();
        self.card.run();
    }

    fn deliver_to(&self, other: &Self) {
        let sent = std::mem::take(&mut self.card.model().sent);
        let frames = sent
            .into_iter()
            .map(|(_, bytes)| bytes[HEADER_LEN..].to_vec());
        other.card.model().to_receive[0].extend(frames);
        other.card.run();
    }
}

#[test]
fn tcp_stream_arrives_whole_over_two_cards() {
    const TOTAL: usize = 300_000;
    let (mut a, mut b) = (host(1), host(2));
    let (from, to) = (a.tcp(), b.tcp());
    b.sockets.get_mut::<tcp::Socket<'_>>(to).listen(80).unwrap();
    let context = a.interface.context();
    let remote = (Ipv4Address::new(10, 0, 0, 2), 80);
    a.sockets
        .get_mut::<tcp::Socket<'_>>(from)
        .connect(context, remote, 49_152)
        .unwrap();
    let data: Vec<u8> = (0..TOTAL).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut sent = 0;
    let mut received = Vec::new();
    for round in 0..100_000 {
        let now = Instant::from_millis(round);
        a.poll(now);
        a.deliver_to(&b);
        b.poll(now);
        b.deliver_to(&a);
        let socket = a.sockets.get_mut::<tcp::Socket<'_>>(from);
        if socket.can_send() {
            sent += socket.send_slice(&data[sent..]).unwrap();
        }
        let socket = b.sockets.get_mut::<tcp::Socket<'_>>(to);
        if socket.can_recv() {
            socket
                .recv(|bytes| {
                    received.extend_from_slice(bytes);
                    (bytes.len(), ())
                })
                .unwrap();
        }
        if received.len() == TOTAL {
            break;
        }
    }
    assert!(received == data, "{} of {TOTAL} bytes", received.len());
}
