//! Faults that others shipped in segmentation and checksums, each as its smallest case.

use std::cell::Cell;

use ferronic_cosim_tests::raw_driver::{Raw, RawQueue, read, write};
use ferronic_cosim_tests::requests::Transmitter;
use ferronic_oracle::{
    Header, NEEDS_CSUM, Offloads, Opinion, Outcome, Protocol, Request, Rng, Shape, gso, opinion,
    request, transmit,
};
use ferronic_sim::SimConfig;
use ferronic_spec::net::HeaderFlags;
use ferronic_spec::{Features, window};

const WIDTHS: [u32; 2] = [64, 512];
const HEADER: usize = 12;
const FIN_PSH_ACK: u8 = 0x19;

/// A TCP or UDP packet without options, and the type of its segmentation.
fn packet(v6: bool, protocol: Protocol, payload: usize, rng: &mut Rng) -> (Vec<u8>, u8) {
    let shape = Shape {
        tags: 0,
        v6,
        protocol,
        ip_options: 0,
        extensions: Vec::new(),
        tcp_options: 0,
    };
    let mut frame = shape.headers(rng);
    if protocol == Protocol::Tcp {
        frame[shape.transport() + 13] = FIN_PSH_ACK;
    }
    frame.extend((0..payload).map(|i| i as u8));
    let kind = match (protocol, v6) {
        (Protocol::Udp, _) => gso::UDP_L4,
        (Protocol::Tcp, false) => gso::TCPV4,
        (Protocol::Tcp, true) => gso::TCPV6,
    };
    (frame, kind)
}

fn request(frame: Vec<u8>, gso_type: u8, gso_size: u16) -> Request {
    Request {
        kind: "segmentation",
        header: Header {
            flags: NEEDS_CSUM,
            gso_type,
            gso_size,
            ..Header::default()
        },
        frame,
    }
}

const PACKETS: [(bool, Protocol); 4] = [
    (false, Protocol::Tcp),
    (true, Protocol::Tcp),
    (false, Protocol::Udp),
    (true, Protocol::Udp),
];

fn config(data_w: u32) -> SimConfig {
    SimConfig {
        data_w,
        ..SimConfig::default()
    }
}

/// Row 17 (floodlight/ivs#321): what fits one segment was dropped when it was marked as more.
#[test]
fn packet_of_one_segment_marked_for_segmentation_leaves() {
    for data_w in WIDTHS {
        let mut rng = Rng::new(17);
        let mut card = Transmitter::open(config(data_w), Offloads::ALL, Features::empty(), 1);
        let mut count = 0;
        for (v6, protocol) in PACKETS {
            for payload in [0, 1, 2, 999, 1000] {
                for size in [payload, payload + 1, 1448, 0xffff] {
                    let (frame, kind) = packet(v6, protocol, payload, &mut rng);
                    card.post(&request(frame, kind, size.max(1) as u16), &mut rng);
                    count += 1;
                }
            }
        }
        card.flush(&mut rng);
        assert_eq!((card.frames(), card.segments()), (count, count));
        assert_eq!(card.drops(), 0);
        card.finish(&mut rng);
    }
}

/// Row 32 (netkvm#338): the number of segments came from the MTU and not from gso_size.
#[test]
fn segments_are_counted_by_gso_size_and_not_by_mtu() {
    for data_w in WIDTHS {
        for mtu in [0, 1500, 9000] {
            let mut rng = Rng::new(32);
            let mut sim = config(data_w);
            sim.strap.mtu = mtu;
            let features = if mtu == 0 {
                Features::empty()
            } else {
                Features::MTU
            };
            let mut card = Transmitter::open(sim, Offloads::ALL, features, 1);
            for (v6, protocol) in PACKETS {
                for (payload, segments) in [(5000, 10), (4999, 10), (4501, 10), (5001, 11)] {
                    let before = card.frames();
                    let (frame, kind) = packet(v6, protocol, payload, &mut rng);
                    card.post(&request(frame, kind, 500), &mut rng);
                    card.flush(&mut rng);
                    assert_eq!(card.frames() - before, segments, "{payload} bytes");
                }
            }
            card.finish(&mut rng);
        }
    }
}

/// A card whose sent frames come back to it.
struct Echo {
    raw: Raw,
    rx: RawQueue,
    tx: RawQueue,
    /// Frames that came, with what the card said of them.
    got: Vec<(Vec<u8>, Vec<u8>)>,
}

const BUFFERS: u16 = 64;
const BUFFER: usize = 4096;
const TX_AT: usize = BUFFERS as usize * BUFFER;

impl Echo {
    fn new(data_w: u32, features: Features) -> Self {
        let raw = Raw::new(config(data_w));
        raw.function.sim().root.memory.guard_enable();
        raw.wire.set_echo(true);
        let [rx, tx] = raw.pair(features | Features::VERSION_1, BUFFERS);
        let mut echo = Self {
            raw,
            rx,
            tx,
            got: Vec::new(),
        };
        for id in 0..BUFFERS {
            echo.post(id);
        }
        echo.raw.send(&echo.rx);
        echo
    }

    fn post(&mut self, id: u16) {
        let at = usize::from(id) * BUFFER;
        self.raw.post(&mut self.rx, id, at, BUFFER);
    }

    fn send(&mut self, request: &Request) {
        let buffer = request.buffer();
        write(&self.raw.area, TX_AT, &buffer);
        let address = self.raw.area.iova() + TX_AT as u64;
        self.tx.describe(0, address, buffer.len() as u32, 0, 0);
        self.tx.offer(0);
        self.raw.send(&self.tx);
        self.raw.wait_used(&self.tx, self.tx.next);
    }

    /// Waits until `count` more frames came, of one buffer each.
    fn receive(&mut self, count: usize) {
        let want = self.rx.seen.wrapping_add(count as u16);
        self.raw.wait_used(&self.rx, want);
        self.raw.run(2000);
        for (id, len) in self.rx.take_used() {
            assert!(len as usize <= BUFFER);
            let at = id as usize * BUFFER;
            let mut bytes = read(&self.raw.area, at, len as usize);
            let frame = bytes.split_off(HEADER);
            self.got.push((bytes, frame));
            self.post(id as u16);
        }
        self.raw.send(&self.rx);
    }
}

/// Row 34 (osv#1058, openvmm#4035 and its fix): segmentation was negotiated without buffers that are
/// large or mergeable, and headers asked drivers for checksums that never offered to compute any.
#[test]
fn receiver_is_told_only_what_it_negotiated_whatever_transmit_may_do() {
    let transmit_side = Features::from_bits_retain(Offloads::ALL.bits());
    for data_w in WIDTHS {
        for (receive_side, valid, merges) in [
            (Features::empty(), false, false),
            (Features::GUEST_CSUM, true, false),
            (Features::MRG_RXBUF, false, true),
            (Features::MRG_RXBUF.union(Features::GUEST_CSUM), true, true),
        ] {
            println!("{data_w} bits, {receive_side:?}");
            let mut rng = Rng::new(34);
            let mut echo = Echo::new(data_w, transmit_side | receive_side);
            let mut wanted = Vec::new();
            let claims = Cell::new(0);
            // Segments of 64 KB and of datagrams, a checksum to be completed, and a wrong one.
            for (v6, protocol) in PACKETS {
                let payload = 65_535 - 60;
                let (frame, kind) = packet(v6, protocol, payload, &mut rng);
                let large = request(frame, kind, 1448);
                let completed = request::checksum(1500, &mut rng);
                let mut broken = request::packet(1000, &mut rng);
                if let Some(last) = broken.last_mut() {
                    *last ^= 1;
                }
                for request in [large, completed, Request::plain(broken)] {
                    let Outcome::Sent(frames) =
                        transmit(&request.header, &request.frame, Offloads::ALL)
                    else {
                        panic!("a sound request");
                    };
                    echo.send(&request);
                    echo.receive(frames.len());
                    wanted.extend(frames);
                }
            }
            assert_eq!(echo.got.len(), wanted.len());
            for ((header, frame), wanted) in echo.got.iter().zip(&wanted) {
                assert!(frame == wanted, "a frame was changed");
                let flags = HeaderFlags::from_bits_retain(header[0]);
                let allowed = if valid {
                    HeaderFlags::DATA_VALID
                } else {
                    HeaderFlags::empty()
                };
                assert!(allowed.contains(flags), "{flags:?}");
                if flags == HeaderFlags::DATA_VALID {
                    assert_eq!(opinion(frame), Opinion::Right);
                    claims.set(claims.get() + 1);
                }
                // Never a frame that is to be cut up, nor offsets.
                assert_eq!(header[1..10], [0; 9]);
                assert_eq!(header[10..], [1, 0]);
            }
            assert_eq!(claims.get() > 4 * 45, valid, "{} claims", claims.get());

            // What does not fit one buffer is dropped, or merged if that was negotiated.
            let before = echo.raw.counter(window::RX_NO_BUFFER);
            let used = echo.rx.seen;
            echo.raw.wire.push(vec![7; 5000]);
            echo.raw.run(20_000);
            let buffers = echo.rx.used_index().wrapping_sub(used);
            let dropped = echo.raw.counter(window::RX_NO_BUFFER) - before;
            assert_eq!((buffers, dropped), if merges { (2, 0) } else { (0, 1) });
            assert!(!echo.raw.needs_reset());
            echo.raw.wire.set_echo(false);
            echo.raw.works();
            assert_eq!(echo.raw.function.sim().root.take_memory_faults(), []);
        }
    }
}
