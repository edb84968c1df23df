//! DATA_VALID (virtio 1.2, "Processing of Incoming Packets" of the network device) on real traffic:
//! said of frames whose checksums smoltcp finds right too, and of no others.

use ferronic::DeviceConfig;
use ferronic_cosim_tests::card::{Card, Received};
use ferronic_cosim_tests::{Capture, captures};
use ferronic_sim::SimConfig;
use ferronic_sim::model::WIDTHS;
use ferronic_spec::Features;
use ferronic_spec::net::HeaderFlags;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket,
    UdpPacket,
};

/// Are a frame's IP header and its TCP or UDP checksum right, by smoltcp?
fn sums_are_right(frame: &[u8]) -> bool {
    // It does not know VLAN tags.
    let mut frame = frame.to_vec();
    for _ in 0..2 {
        if matches!(frame[12..14], [0x81, 0x00] | [0x88, 0xa8]) && frame.len() >= 18 {
            frame.drain(12..16);
        }
    }
    let Ok(ethernet) = EthernetFrame::new_checked(&frame[..]) else {
        return false;
    };
    let (source, destination, protocol, payload): (IpAddress, IpAddress, IpProtocol, &[u8]) =
        match ethernet.ethertype() {
            EthernetProtocol::Ipv4 => {
                let Ok(ip) = Ipv4Packet::new_checked(ethernet.payload()) else {
                    return false;
                };
                if !ip.verify_checksum() || ip.more_frags() || ip.frag_offset() != 0 {
                    return false;
                }
                let (source, destination) = (ip.src_addr(), ip.dst_addr());
                (
                    source.into(),
                    destination.into(),
                    ip.next_header(),
                    ip.payload(),
                )
            }
            EthernetProtocol::Ipv6 => {
                let Ok(ip) = Ipv6Packet::new_checked(ethernet.payload()) else {
                    return false;
                };
                let (source, destination) = (ip.src_addr(), ip.dst_addr());
                (
                    source.into(),
                    destination.into(),
                    ip.next_header(),
                    ip.payload(),
                )
            }
            _ => return false,
        };
    match protocol {
        IpProtocol::Tcp => TcpPacket::new_checked(payload)
            .is_ok_and(|tcp| tcp.verify_checksum(&source, &destination)),
        IpProtocol::Udp => UdpPacket::new_checked(payload)
            .is_ok_and(|udp| udp.checksum() != 0 && udp.verify_checksum(&source, &destination)),
        _ => false,
    }
}

fn receive(capture: &Capture, data_w: u32, features: Features) -> Vec<Received> {
    let sim = SimConfig {
        data_w,
        ..SimConfig::default()
    };
    let driver = DeviceConfig {
        features,
        ..DeviceConfig::default()
    };
    let mut card = Card::open(sim, driver);
    for frame in &capture.frames {
        card.wire.push(frame.clone());
    }
    let got = card.receive_count(capture.frames.len());
    card.device.check().expect("the card is well");
    got
}

#[test]
fn captures_are_said_to_be_valid_if_they_are() {
    let (mut right, mut wrong) = (0, 0);
    for mut capture in captures().unwrap() {
        // Every third frame is broken in its last byte, which is inside the packet if it is long.
        for frame in capture.frames.iter_mut().step_by(3) {
            if let Some(last) = frame.last_mut() {
                *last ^= 0x40;
            }
        }
        for &data_w in WIDTHS {
            for got in receive(&capture, data_w, Features::CARD) {
                let said = HeaderFlags::from_bits_retain(got.header.flags);
                let want = if sums_are_right(&got.data) {
                    HeaderFlags::DATA_VALID
                } else {
                    HeaderFlags::empty()
                };
                assert_eq!(
                    said, want,
                    "{data_w} bits, {}: {:02x?}",
                    capture.name, got.data
                );
                assert_eq!(got.verified, want == HeaderFlags::DATA_VALID);
                right += usize::from(said == HeaderFlags::DATA_VALID);
                wrong += usize::from(said.is_empty());
            }
        }
    }
    assert!(
        right > 100 && wrong > 100,
        "{right} right and {wrong} wrong show little"
    );
}

#[test]
fn nothing_is_said_to_a_driver_that_did_not_ask() {
    for capture in captures().unwrap().iter().take(1) {
        for &data_w in WIDTHS {
            let got = receive(capture, data_w, Features::CARD - Features::GUEST_CSUM);
            assert!(got.iter().all(|f| f.header.flags == 0 && !f.verified));
        }
    }
}
