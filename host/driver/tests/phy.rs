//! A TCP/IP stack over the card: two cards in software, wired to each other.

mod support;

use std::sync::Arc;

use ferronic::pci::PciFunction;
use ferronic::phy::{Phy, PhyOptions};
use ferronic::spec::Features;
use ferronic::{Device, DeviceConfig, LroOptions, LroRequest};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};
use support::packets::{Packet, on_the_wire};
use support::{Function, OFFER, SoftCard};

/// Bytes of a socket's buffers.
const BUFFER: usize = 200_000;

struct Host {
    card: Arc<SoftCard>,
    _device: Device,
    phy: Phy,
    interface: Interface,
    sockets: SocketSet<'static>,
    /// Lengths of the frames that left on its wire.
    wire: Vec<usize>,
}

fn host(number: u8, offer: Features, options: PhyOptions) -> Host {
    let config = DeviceConfig {
        buffer_size: 256,
        ..DeviceConfig::default()
    };
    host_on(SoftCard::new(offer, 1, 64), number, config, options)
}

fn host_on(card: Arc<SoftCard>, number: u8, config: DeviceConfig, options: PhyOptions) -> Host {
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let (device, mut pairs) = Device::open(function, config).unwrap();
    let mut phy = Phy::with_options(pairs.remove(0), options);
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
        wire: Vec::new(),
    }
}

impl Host {
    fn tcp(&mut self) -> smoltcp::iface::SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
        self.sockets.add(tcp::Socket::new(buffer(), buffer()))
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.phy, &mut self.sockets);
        self.phy.flush().unwrap();
        self.card.run();
    }

    /// Hands what was sent to the other host as if its card had merged it again: with the header
    /// that asked for segmentation.
    fn deliver_merged_to(&mut self, other: &Self) {
        let sent = std::mem::take(&mut self.card.model().sent);
        let mut model = other.card.model();
        for (_, bytes) in sent {
            let (header, frame) = bytes.split_at(12);
            let mut claim: [u8; 10] = header[..10].try_into().unwrap();
            // The sum of what is not merged was made on the way, and verified.
            let mut frame = frame.to_vec();
            if claim[1] == 0 {
                claim = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                frame = on_the_wire(&bytes).remove(0);
            }
            self.wire.push(frame.len());
            model.claims.push_back(claim);
            model.to_receive[0].push_back(frame);
        }
        drop(model);
        other.card.run();
    }

    /// Puts what was sent on the other card's wire, changed by `change`.
    fn deliver_to(&mut self, other: &Self, change: &mut dyn FnMut(&mut Vec<u8>)) {
        let sent = std::mem::take(&mut self.card.model().sent);
        for mut frame in sent.iter().flat_map(|(_, bytes)| on_the_wire(bytes)) {
            self.wire.push(frame.len());
            change(&mut frame);
            other.card.model().to_receive[0].push_back(frame);
        }
        other.card.run();
    }
}

/// Moves a stream from one host to another; `change` sees each frame on its way there.
fn transfer((a, b): (&mut Host, &mut Host), total: usize, change: &mut dyn FnMut(&mut Vec<u8>)) {
    transfer_by((a, b), total, &mut |a, b| a.deliver_to(b, change));
}

/// Moves a stream from one host to another, whose frames `deliver` brings there.
fn transfer_by(
    (a, b): (&mut Host, &mut Host),
    total: usize,
    deliver: &mut dyn FnMut(&mut Host, &mut Host),
) {
    let (from, to) = (a.tcp(), b.tcp());
    b.sockets.get_mut::<tcp::Socket<'_>>(to).listen(80).unwrap();
    let context = a.interface.context();
    let remote = (Ipv4Address::new(10, 0, 0, 2), 80);
    a.sockets
        .get_mut::<tcp::Socket<'_>>(from)
        .connect(context, remote, 49_152)
        .unwrap();
    let data: Vec<u8> = (0..total).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut sent = 0;
    let mut received = Vec::new();
    for round in 0..100_000 {
        let now = Instant::from_millis(5 * round);
        a.poll(now);
        deliver(a, b);
        b.poll(now);
        b.deliver_to(a, &mut |_| ());
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
        if received.len() == total {
            break;
        }
    }
    assert!(received == data, "{} of {total} bytes", received.len());
}

const TOTAL: usize = 1_000_000;

#[test]
fn tcp_stream_arrives_whole_over_two_cards() {
    let none = OFFER - Features::TX_OFFLOADS;
    let default = PhyOptions::default;
    let off = PhyOptions {
        segmentation: false,
        ..default()
    };
    let soft = PhyOptions {
        checksum: false,
        ..default()
    };
    let small = PhyOptions {
        mtu: Some(576),
        ..default()
    };
    for (offer, options, checksum, segmented) in [
        (OFFER, default(), true, true),
        (OFFER - Features::INDIRECT_DESC, default(), true, true),
        (OFFER, small, true, true),
        (OFFER, off, true, false),
        (OFFER, soft, false, false),
        (OFFER - Features::HOST_TSO4, default(), true, false),
        (OFFER - Features::GUEST_CSUM, default(), true, true),
        (none, default(), false, false),
    ] {
        let (mut a, mut b) = (host(1, offer, options), host(2, offer, options));
        assert_eq!(a.phy.makes_checksums(), checksum, "{offer:?} {options:?}");
        assert_eq!(a.phy.segments_up_to(), segmented.then_some(65_549));
        transfer((&mut a, &mut b), TOTAL, &mut |_| ());
        // What leaves is of MTU size, and few buffers were needed for it where the card segments.
        let most = usize::from(options.mtu.unwrap_or(1500)) + 14;
        assert_eq!(a.wire.iter().max(), Some(&most));
        let stats = a.phy.pair().tx.stats();
        assert_eq!(stats.segmented > 0, segmented);
        let frames = a.wire.len() as u64;
        assert!(
            !segmented || stats.frames * 10 < frames,
            "{stats:?}, {frames} on the wire"
        );
        assert!(segmented || stats.frames == frames);
        // Nobody but the driver verified what came, and nothing was wrong with it.
        let got = b.phy.stats();
        assert_eq!((got.by_card, got.refused), (0, 0));
        assert!(got.verified >= TOTAL as u64 / 1460, "{got:?}");
    }
}

#[test]
fn stack_takes_units_that_the_driver_merged() {
    let options = PhyOptions {
        gro: true,
        ..PhyOptions::default()
    };
    for offer in [OFFER, OFFER - Features::GUEST_CSUM] {
        let (mut a, mut b) = (host(1, offer, options), host(2, offer, options));
        let (mut count, mut broken) = (0, 0);
        transfer((&mut a, &mut b), TOTAL, &mut |frame| {
            count += 1;
            if frame.len() > 100 && count % 31 == 0 {
                frame[90] ^= 4;
                broken += 1;
            }
        });
        let (got, merged) = (b.phy.stats(), b.phy.gro_stats());
        assert_eq!((got.refused, got.completed), (broken, 0));
        assert!(got.units > 50 && got.units <= merged.units, "{got:?}");
        assert!(merged.segments_a_unit() > 4.0, "{merged:?}");
    }
}

#[test]
fn stack_takes_units_that_the_card_merged() {
    let merging = OFFER | Features::LRO;
    for gro in [false, true] {
        let options = PhyOptions {
            gro,
            ..PhyOptions::default()
        };
        let config = DeviceConfig {
            lro: LroRequest::Needed(LroOptions::default()),
            // 33 buffers for the longest unit, and less than one for the shortest.
            buffer_size: 2048,
            ..DeviceConfig::default()
        };
        let mut a = host(1, OFFER, options);
        let mut b = host_on(SoftCard::merging(merging, 1, 128), 2, config, options);
        transfer_by((&mut a, &mut b), TOTAL, &mut |a, b| a.deliver_merged_to(b));
        let (got, card) = (b.phy.stats(), b.phy.pair().rx.stats());
        assert_eq!((got.refused, got.completed, got.verified), (0, 0, 0));
        assert!(
            got.units > 10 && got.units == card.units,
            "{got:?} {card:?}"
        );
        assert!(*a.wire.iter().max().unwrap() > 60_000, "the longest");
        assert_eq!(b.phy.gro_stats().verified, 0, "nothing is summed");
    }
}

#[test]
fn frames_that_the_card_did_not_verify_are_verified_or_dropped() {
    let options = PhyOptions::default();
    for offer in [OFFER, OFFER - Features::TX_OFFLOADS - Features::GUEST_CSUM] {
        let (mut a, mut b) = (host(1, offer, options), host(2, offer, options));
        let (mut count, mut broken) = (0, 0);
        transfer((&mut a, &mut b), TOTAL, &mut |frame| {
            count += 1;
            if frame.len() > 100 && count % 29 == 0 {
                // In the IP header, in that of TCP, in the payload; or made a fragment.
                let (at, bit) = [(22, 1), (48, 2), (90, 4), (20, 0x20)][broken % 4];
                frame[at] ^= bit;
                broken += 1;
            }
        });
        let got = b.phy.stats();
        assert!(
            broken > 20 && got.refused == broken as u64,
            "{broken} broken, {got:?}"
        );
        assert_eq!(a.phy.stats().refused, 0);
    }
}

#[test]
fn what_the_card_says_of_a_frame_decides_only_if_it_may_say_it() {
    let good = Packet::default().frame();
    let mut bad = good.clone();
    bad[100] ^= 1;
    let mut partial = good.clone();
    partial[50..52].copy_from_slice(&[0x12, 0x34]);
    let (needs, valid) = (1, 2);
    // What the frame is, flags, csum_start and csum_offset, and which counter moves with GUEST_CSUM
    // and without.
    let cases = [
        (&good, (0, 0, 0), "verified", "verified"),
        (&bad, (0, 0, 0), "refused", "refused"),
        (&good, (valid, 0, 0), "by_card", "verified"),
        (&bad, (valid, 0, 0), "by_card", "refused"),
        (&partial, (needs, 34, 16), "completed", "refused"),
        (&partial, (needs | valid, 34, 16), "completed", "refused"),
        (&good, (needs, 34, 0xffff), "refused", "verified"),
        (&good, (needs, 1053, 0), "refused", "verified"),
        (&good, (needs, 1052, 0), "completed", "verified"),
    ];
    for (guest_csum, offer) in [(true, OFFER), (false, OFFER - Features::GUEST_CSUM)] {
        let mut host = host(2, offer, PhyOptions::default());
        for (number, (frame, says, with, without)) in cases.iter().enumerate() {
            let before = host.phy.stats();
            host.card.model().verdicts.push_back(*says);
            host.card.model().to_receive[0].push_back((*frame).clone());
            host.card.run();
            host.poll(Instant::from_millis(number as i64));
            let after = host.phy.stats();
            let moved = [
                ("by_card", after.by_card - before.by_card),
                ("verified", after.verified - before.verified),
                ("completed", after.completed - before.completed),
                ("refused", after.refused - before.refused),
            ];
            let moved: Vec<_> = moved.iter().filter(|(_, by)| *by > 0).collect();
            let want = if guest_csum { with } else { without };
            assert_eq!(moved, [&(*want, 1)], "case {number}, {guest_csum}");
        }
    }
}
