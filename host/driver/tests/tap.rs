//! The bridge to a TAP interface, with a socket of packets in the place of the interface.

mod support;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use ferronic::gro::GroOptions;
use ferronic::pci::PciFunction;
use ferronic::spec::{Features, NetHeader};
use ferronic::tap::{Bridge, Tap, TapError};
use ferronic::{Device, DeviceConfig, Error, LroOptions, LroRequest, QueuePair, Wakeup};
use ferronic_oracle::resegment_buffer;
use ferronic_oracle::segment::Segment;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use support::units::{deliver, unit};
use support::{Function, OFFER, SoftCard, frame};
use zerocopy::{FromBytes, IntoBytes};

/// The host's end of an interface.
struct Host(OwnedFd);

impl Host {
    /// What was passed to it.
    fn take(&self) -> Vec<(NetHeader, Vec<u8>)> {
        let mut frames = Vec::new();
        let mut bytes = vec![0; 100_000];
        loop {
            match rustix::io::read(&self.0, &mut bytes) {
                Ok(len) => {
                    let (header, frame) = NetHeader::read_from_prefix(&bytes[..len]).unwrap();
                    frames.push((header, frame.to_vec()));
                }
                Err(Errno::AGAIN) => return frames,
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn give(&self, header: NetHeader, frame: &[u8]) {
        let bytes = [header.as_bytes(), frame].concat();
        assert_eq!(rustix::io::write(&self.0, &bytes), Ok(bytes.len()));
    }
}

fn open(offer: Features, ring: u16) -> (Arc<SoftCard>, Device, QueuePair) {
    let card = SoftCard::merging(offer, 1, ring);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        lro: LroRequest::IfThere(LroOptions::default()),
        wakeup: Wakeup::Interrupt,
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config).unwrap();
    (card, device, pairs.remove(0))
}

fn bridge(device: &Device, pair: QueuePair) -> (Bridge<'_>, Host) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let bridge = Bridge::new(device, vec![pair], Tap::over(a, "socket")).unwrap();
    (bridge, Host(b))
}

const MERGING: Features = OFFER.union(Features::LRO);

#[test]
fn units_of_the_card_cross_whole_with_their_header() {
    let (card, device, pair) = open(MERGING, 64);
    let (mut bridge, host) = bridge(&device, pair);
    for (first, payload, headers) in [
        (Segment::v4(1, 0), 65_535 - 40, 54),
        (Segment::v6(1, 0).stamps(1, 1), 30_000, 86),
        (Segment::v4(1, 0).stamps(1, 1), 1_449, 66),
    ] {
        let (header, frame) = unit(&first, payload, 1_448);
        deliver(&card, header, frame.clone());
        assert!(bridge.turn().unwrap());
        let got = host.take();
        let [(header, bytes)] = &got[..] else {
            panic!("{} frames", got.len());
        };
        assert!(*bytes == frame);
        // Not what the card says of it, which nobody looks at.
        assert_eq!(header.hdr_len, headers);
        assert_eq!((header.flags, header.gso_size.get()), (1, 1_448));
        // Of use to whoever cuts it: the host, for instance.
        let mut header = *header;
        header.num_buffers = 1.into();
        let cut = resegment_buffer(&[header.as_bytes(), bytes].concat()).unwrap();
        assert_eq!(cut.len(), payload.div_ceil(1_448));
    }
    assert!(!bridge.turn().unwrap(), "nothing more");
    let stats = bridge.stats();
    assert_eq!((stats.to_host, stats.units_by_card), (3, 3));
    assert_eq!(bridge.pairs()[0].rx.posted(), 64);
}

#[test]
fn what_the_card_says_crosses_only_if_it_can_be() {
    let (card, device, pair) = open(MERGING, 64);
    let (mut bridge, host) = bridge(&device, pair);
    let segment = Segment::v4(1, 900).bytes();
    let mut after = |header: [u8; 10], frame: &[u8]| {
        deliver(&card, header, frame.to_vec());
        bridge.turn().unwrap();
        let mut got = host.take();
        assert!(got.len() <= 1);
        got.pop().map(|(header, bytes)| {
            assert!(bytes == frame);
            header
        })
    };
    let plain = NetHeader::default();
    let valid = NetHeader { flags: 2, ..plain };
    assert_eq!(after([0; 10], &segment), Some(plain));
    assert_eq!(after([2, 0, 9, 9, 9, 9, 9, 9, 9, 9], &segment), Some(valid));
    let partial = [1, 0, 9, 9, 9, 9, 34, 0, 16, 0];
    assert_eq!(
        after(partial, &segment),
        Some(NetHeader {
            flags: 1,
            csum_start: 34.into(),
            csum_offset: 16.into(),
            ..plain
        })
    );
    // Lies.
    assert_eq!(after([1, 0, 0, 0, 0, 0, 0, 4, 0, 0], &segment), None);
    let (good, frame) = unit(&Segment::v4(1, 0), 4_000, 1_448);
    let mut lie = good;
    lie[6] = 30;
    assert_eq!(after(lie, &frame), None);
    lie = good;
    lie[1] = 5;
    assert_eq!(after(lie, &frame), None);
    assert!(after(good, &frame).is_some());
    let stats = bridge.stats();
    assert_eq!((stats.refused, stats.to_host, stats.not_taken), (3, 4, 0));
}

#[test]
fn units_of_the_driver_cross_as_those_of_the_card() {
    let (card, device, mut pair) = open(OFFER, 64);
    pair.rx.set_gro(Some(GroOptions::default())).unwrap();
    let (mut bridge, host) = bridge(&device, pair);
    let mut segment = Segment::v4(1, 1_000).stamps(1, 1);
    let mut frames = Vec::new();
    for verified in [2, 0] {
        for _ in 0..20 {
            frames.push(segment.bytes());
            let mut header = [0; 10];
            header[0] = verified;
            deliver(&card, header, segment.bytes());
            segment = segment.next(1_000);
        }
    }
    bridge.turn().unwrap();
    let got = host.take();
    assert_eq!(got.len(), 1, "one unit");
    let (mut header, bytes) = got[0].clone();
    header.num_buffers = 1.into();
    let cut = resegment_buffer(&[header.as_bytes(), &bytes].concat()).unwrap();
    assert!(cut == frames);
    let stats = bridge.stats();
    assert_eq!((stats.units_by_driver, stats.units_by_card), (1, 0));
}

fn tcp(payload: usize, flags: u8) -> Vec<u8> {
    let mut frame = Segment::v4(1, payload).bytes();
    frame[47] |= flags;
    frame
}

#[test]
fn what_the_host_leaves_to_its_interface_is_asked_of_the_card() {
    let (card, device, pair) = open(OFFER, 64);
    let (mut bridge, host) = bridge(&device, pair);
    let plain = NetHeader::default();
    let checksum = NetHeader {
        flags: 1,
        csum_start: 34.into(),
        csum_offset: 16.into(),
        ..plain
    };
    let cut = NetHeader {
        gso_type: 1,
        gso_size: 1_448.into(),
        // A hint of the host's, not believed.
        hdr_len: 7.into(),
        ..checksum
    };
    let cwr = NetHeader {
        gso_type: 0x81,
        ..cut
    };
    for (header, frame) in [
        (plain, frame(1, 60)),
        (checksum, tcp(1_000, 0)),
        (cut, tcp(65_535 - 40, 0)),
        (cwr, tcp(5_000, 0x80)),
    ] {
        host.give(header, &frame);
        assert!(bridge.turn().unwrap());
        card.run();
        let (_, sent) = card.model().sent.pop().expect("it was sent");
        let (got, bytes) = NetHeader::read_from_prefix(&sent).unwrap();
        assert!(bytes == frame);
        let hdr_len = if header.gso_type == 0 { 0 } else { 54 };
        let wanted = NetHeader {
            hdr_len: hdr_len.into(),
            ..header
        };
        assert_eq!(got, wanted);
    }
    let stats = bridge.stats();
    assert_eq!((stats.to_card, stats.segmented, stats.checksums), (4, 2, 1));

    // What the card would drop, or does not know, is counted and the bridge goes on.
    let unknown = NetHeader { gso_type: 3, ..cut };
    let outside = NetHeader {
        csum_start: 5_000.into(),
        ..checksum
    };
    let none = NetHeader {
        gso_size: 0.into(),
        ..cut
    };
    for (header, frame) in [
        (plain, vec![0; 13]),
        (plain, vec![0; 9_217]),
        (unknown, tcp(5_000, 0)),
        (outside, tcp(1_000, 0)),
        (none, tcp(5_000, 0)),
        (cut, frame(2, 3_000)),
        (cut, tcp(5_000, 0x80)),
        (cut, vec![0; 65_560]),
    ] {
        host.give(header, &frame);
    }
    // Not even a header.
    assert_eq!(rustix::io::write(&host.0, &[0; 5]), Ok(5));
    bridge.turn().unwrap();
    assert_eq!(bridge.stats().unsendable, 9);
    host.give(plain, &frame(3, 100));
    bridge.turn().unwrap();
    card.run();
    assert_eq!(card.model().sent.len(), 1);
}

#[test]
fn frames_of_the_host_wait_for_room_and_lose_no_order() {
    let (card, device, pair) = open(OFFER, 16);
    let (mut bridge, host) = bridge(&device, pair);
    card.model().awake = false;
    let mut rounds = 0;
    // As many as the socket holds, more than the ring does.
    let count = 100_u64;
    for number in 0..count {
        host.give(NetHeader::default(), &frame(number, 200));
    }
    for _ in 0..10 {
        bridge.turn().unwrap();
    }
    assert!(bridge.stats().to_card < count, "the ring is full");
    card.model().awake = true;
    // With waits in between, as `run` has them.
    bridge
        .run(|| {
            card.run();
            rounds += 1;
            card.model().sent.len() as u64 == count || rounds > 200
        })
        .unwrap();
    let sent: Vec<_> = card
        .model()
        .sent
        .iter()
        .map(|(_, b)| b[12..].to_vec())
        .collect();
    assert!(sent == (0..count).map(|n| frame(n, 200)).collect::<Vec<_>>());
    assert_eq!(bridge.stats().unsendable, 0);
}

#[test]
fn interface_that_is_gone_ends_the_bridge() {
    let (card, device, pair) = open(OFFER, 16);
    let (mut bridge, host) = bridge(&device, pair);
    drop(host);
    let gone = |result: Result<bool, Error>| {
        assert!(
            matches!(result, Err(Error::Tap(TapError::Gone(_)))),
            "{result:?}"
        );
    };
    gone(bridge.turn());
    deliver(&card, [0; 10], frame(1, 60));
    gone(bridge.turn());
}

#[test]
fn names_that_cannot_be_are_refused_before_anything_is_opened() {
    for name in ["", "0123456789abcdef", "a b", "a/b", "a\0"] {
        let refused = Tap::open(name, Features::empty());
        assert!(matches!(refused, Err(TapError::Name(_))), "{name:?}");
    }
    let source = io::Error::from(io::ErrorKind::PermissionDenied);
    let text = TapError::Interface {
        name: "fe0".into(),
        source,
    };
    assert!(
        text.to_string()
            .contains("ip tuntap add dev fe0 mode tap user")
    );
}

/// Sees every frame of an interface as the kernel does, with the virtio header of 10 bytes in which
/// it tells how.
struct Sniffer(OwnedFd);

impl Sniffer {
    /// Sets the interface up and looks at it.
    fn new(name: &str) -> io::Result<Self> {
        let done = |result: i32| match result {
            -1 => Err(io::Error::last_os_error()),
            value => Ok(value),
        };
        let protocol = u16::to_be(libc::ETH_P_ALL as u16);
        // SAFETY: all zeroes is a valid `ifreq` and a valid `sockaddr_ll`; each call gets the
        // structure that it reads or writes, and its length; the new descriptor is owned once.
        unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let socket = done(libc::socket(libc::AF_PACKET, kind, protocol.into()))?;
            let socket = OwnedFd::from_raw_fd(socket);
            let fd = socket.as_raw_fd();
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
                *to = *from as libc::c_char;
            }
            request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
            done(libc::ioctl(fd, libc::SIOCSIFFLAGS as _, &mut request))?;
            done(libc::ioctl(fd, libc::SIOCGIFINDEX as _, &mut request))?;
            let one = 1_i32;
            done(libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_VNET_HDR,
                (&raw const one).cast(),
                4,
            ))?;
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol;
            address.sll_ifindex = request.ifr_ifru.ifru_ifindex;
            let len = size_of::<libc::sockaddr_ll>() as u32;
            done(libc::bind(fd, (&raw const address).cast(), len))?;
            Ok(Self(socket))
        }
    }

    /// The next frame that begins with these bytes.
    fn next(&self, begin: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut bytes = vec![0; 100_000];
        while let Ok(len) = rustix::io::read(&self.0, &mut bytes) {
            let (header, frame) = bytes[..len].split_at(10);
            if frame.starts_with(begin) {
                return Some((header.to_vec(), frame.to_vec()));
            }
        }
        None
    }
}

/// A real interface in a network of this thread's own, and a look at it.
fn interface(features: Features) -> Result<(Tap, Sniffer), String> {
    // SAFETY: changes only the namespace of the calling thread, which is the test's own.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let error = io::Error::last_os_error();
        return Err(format!("no network namespace of our own: {error}"));
    }
    let tap = Tap::open("ferronic%d", features).map_err(|e| e.to_string())?;
    assert_eq!(tap.name(), "ferronic0", "the kernel has numbered it");
    let sniffer = Sniffer::new(tap.name()).map_err(|e| format!("a packet socket: {e}"))?;
    Ok((tap, sniffer))
}

#[test]
fn linux_takes_a_unit_whole_and_as_what_it_is() {
    std::thread::spawn(|| {
        let (card, device, pair) = open(MERGING, 64);
        let (tap, sniffer) = match interface(device.features()) {
            Ok(both) => both,
            Err(why) => {
                println!("skipped: {why}; this test takes root and /dev/net/tun");
                return;
            }
        };
        tap.set_mac(device.mac()).expect("the card's address");
        let mut bridge = Bridge::new(&device, vec![pair], tap).unwrap();
        for (first, payload, kind) in [
            (Segment::v4(1, 0), 65_535 - 40, 1),
            (Segment::v6(1, 0).stamps(1, 1), 40_000, 4),
            (Segment::v4(1, 0).stamps(1, 1), 1_449, 1),
        ] {
            let (header, frame) = unit(&first, payload, 1_448);
            deliver(&card, header, frame.clone());
            bridge.turn().unwrap();
            let (header, bytes) = sniffer.next(&frame[..14]).expect("Linux got it");
            assert!(bytes == frame, "{payload}");
            // NEEDS_CSUM, kind, and the size of its segments.
            assert_eq!((header[0] & 1, header[1]), (1, kind), "{header:x?}");
            assert_eq!(header[4..6], 1_448_u16.to_le_bytes());
        }
        // A frame alone, verified.
        let frame = Segment::v4(2, 500).bytes();
        deliver(&card, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0], frame.clone());
        bridge.turn().unwrap();
        let (header, bytes) = sniffer.next(&frame[..14]).expect("Linux got it");
        assert!(bytes == frame);
        assert_eq!(header[1], 0);
        let stats = bridge.stats();
        assert_eq!((stats.units_by_card, stats.not_taken), (3, 0), "{stats:?}");
    })
    .join()
    .expect("no panic");
}
