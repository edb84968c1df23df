//! A receive queue that merges, on the card in software.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::gro::GroOptions;
use ferronic::pci::PciFunction;
use ferronic::{Device, DeviceConfig, Error, RxQueue};
use ferronic_oracle::resegment_buffer;
use ferronic_oracle::segment::Segment;
use support::{Function, OFFER, SoftCard};
use zerocopy::IntoBytes;

fn open(buffer_size: usize) -> (Arc<SoftCard>, Device, RxQueue) {
    let card = SoftCard::new(OFFER, 1, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        buffer_size,
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config).unwrap();
    (card, device, pairs.remove(0).rx)
}

fn stream(first: Segment, count: usize) -> Vec<Vec<u8>> {
    let mut segment = first;
    (0..count)
        .map(|_| {
            let frame = segment.bytes();
            segment = segment.next(segment.payload.len());
            frame
        })
        .collect()
}

/// Puts frames on the wire, with what the card says of them.
fn send(card: &SoftCard, frames: &[Vec<u8>], verified: bool) {
    let mut model = card.model();
    for frame in frames {
        model
            .verdicts
            .push_back((if verified { 2 } else { 0 }, 0, 0));
        model.to_receive[0].push_back(frame.clone());
    }
    model.run();
}

/// Receives what is there; returns buffers with their virtio headers.
fn receive(rx: &mut RxQueue) -> Vec<Vec<u8>> {
    let mut units = Vec::new();
    while rx
        .receive(64, |frame| {
            let mut bytes = frame.header().as_bytes().to_vec();
            frame.copy_to(&mut bytes);
            assert_eq!(bytes.len(), 12 + frame.len());
            assert_eq!(frame.header().num_buffers.get(), frame.num_buffers());
            assert_eq!(frame.is_unit(), frame.header().gso_type != 0);
            units.push(bytes);
        })
        .unwrap()
        > 0
    {}
    units
}

fn cut(units: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let cut = units
        .iter()
        .flat_map(|unit| resegment_buffer(unit).unwrap());
    cut.collect()
}

#[test]
fn queue_that_merges_hands_out_units_and_posts_every_buffer_again() {
    for (size, verified) in [(2048, true), (2048, false), (700, true), (65_536, false)] {
        let (card, _device, mut rx) = open(size);
        rx.set_gro(Some(GroOptions::default())).unwrap();
        let posted = rx.posted();
        // More than the ring holds, some times over.
        let frames = stream(Segment::v4(1, 1448).stamps(1, 1), 1000);
        let mut units = Vec::new();
        for frames in frames.chunks(50) {
            send(&card, frames, verified);
            units.extend(receive(&mut rx));
            assert_eq!(rx.posted(), posted);
        }
        assert!(cut(&units) == frames, "{size}");
        let stats = rx.gro_stats();
        assert_eq!((stats.segments, stats.units), (1000, units.len() as u64));
        assert_eq!(stats.verified, if verified { 0 } else { 1000 });
        assert!(stats.segments_a_unit() > 10.0, "{stats:?}");
        assert_eq!(rx.stats().frames, 1000);
        rx.set_gro(None).unwrap();
        send(&card, &frames[..9], verified);
        assert_eq!(receive(&mut rx).len(), 9, "no longer merged");
    }
}

#[test]
fn held_segments_are_handed_out_when_their_time_is_over_or_by_flush() {
    let (card, mut device, mut rx) = open(2048);
    let held = |hold, gap| GroOptions {
        hold,
        gap,
        ..GroOptions::default()
    };
    let long = Duration::from_secs(100);
    rx.set_gro(Some(held(long, long))).unwrap();
    assert_eq!(rx.due(), None);
    let frames = stream(Segment::v6(1, 1000), 30);
    let posted = rx.posted();
    for frames in frames.chunks(5) {
        send(&card, frames, true);
        assert!(receive(&mut rx).is_empty(), "held");
    }
    assert_eq!(rx.posted(), posted - 30);
    assert!(rx.due().is_some_and(|due| due > long / 2));
    assert!(matches!(rx.set_gro(None), Err(Error::Setting { .. })));
    let mut count = 0;
    rx.flush(|unit| {
        assert_eq!(unit.num_buffers(), 30);
        count += 1;
    })
    .unwrap();
    assert_eq!((count, rx.posted(), rx.due()), (1, posted, None));

    let short = Duration::from_millis(5);
    rx.set_gro(Some(held(long, short))).unwrap();
    send(&card, &frames[..2], true);
    assert!(receive(&mut rx).is_empty());
    assert!(rx.due().is_some_and(|due| due <= short));
    std::thread::sleep(short);
    assert_eq!(rx.due(), Some(Duration::ZERO));
    let mut units = Vec::new();
    assert_eq!(
        rx.receive(64, |unit| units.push(unit.num_buffers()))
            .unwrap(),
        0
    );
    assert_eq!((units, rx.posted()), (vec![2], posted));

    // A reset of the queue loses what is held, as it loses what the card has.
    rx.set_gro(Some(held(long, long))).unwrap();
    send(&card, &frames[..2], true);
    assert!(receive(&mut rx).is_empty());
    device.reset_queue_rx(&mut rx).unwrap();
    assert_eq!((rx.posted(), rx.due()), (posted, None));
    send(&card, &frames[2..4], true);
    rx.receive(64, |_| ()).unwrap();
    let mut units = Vec::new();
    rx.flush(|unit| units.push(unit.num_buffers())).unwrap();
    assert_eq!(units, [2]);
}
