//! What is about the card and not about frames: time, buffers, queues that stop.

use ferronic_oracle::lro::{Cause, Config, Lro, Unit};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::{Header, Rng, frames, parse, resegment};

fn flow(port: u16) -> Segment {
    Segment {
        ports: [port, 80],
        ..Segment::v4(0, 100)
    }
}

fn lro(change: impl FnOnce(&mut Config)) -> Lro {
    let mut config = Config::default();
    change(&mut config);
    Lro::new(config)
}

fn told(units: &[Unit]) -> Vec<(u64, usize, Option<Cause>)> {
    units
        .iter()
        .map(|unit| (unit.at, unit.segments, unit.cause))
        .collect()
}

/// Source ports, in the order of delivery.
fn ports(units: &[Unit]) -> Vec<u16> {
    let port = |unit: &Unit| u16::from_be_bytes([unit.frame[34], unit.frame[35]]);
    units.iter().map(port).collect()
}

#[test]
fn lone_segment_is_delivered_within_the_gap_time_and_a_stream_within_the_hold_time() {
    let mut lro = lro(|c| (c.gap, c.hold) = (1000, 2500));
    lro.post(0, 0, 100);
    lro.receive(10, 0, &flow(1).bytes());
    assert_eq!(lro.deadline(), Some(1010));
    lro.advance(1009);
    assert_eq!(lro.take(), []);
    lro.advance(5000);
    assert_eq!(told(&lro.take()), [(1010, 1, Some(Cause::Gap))]);
    assert_eq!(lro.deadline(), None);

    let mut segment = flow(1);
    for at in [6000, 6900, 7800] {
        lro.receive(at, 0, &segment.bytes());
        segment = segment.next(100);
    }
    assert_eq!(lro.deadline(), Some(8500));
    lro.receive(8499, 0, &segment.bytes());
    lro.advance(9000);
    assert_eq!(told(&lro.take()), [(8500, 4, Some(Cause::Hold))]);
}

#[test]
fn what_is_not_held_is_delivered_when_it_comes() {
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut icmp = flow(1).bytes();
    icmp[23] = 1;
    icmp[24..26].fill(0);
    let check = !frames::fold(frames::sum(&icmp[14..34]));
    icmp[24..26].copy_from_slice(&check.to_be_bytes());
    let syn = Segment::v4(0, 0).flags(flag::SYN).bytes();
    let mut lro = lro(|_| {});
    lro.post(0, 0, 100);
    lro.receive(1, 0, &flow(9).bytes());
    for (at, frame) in (2..).zip([arp, icmp, syn]) {
        lro.receive(at, 0, &frame);
        let units = lro.take();
        assert_eq!(told(&units), [(at, 1, None)]);
        assert_eq!(units[0].frame, frame);
    }
    assert_eq!(lro.held(), 1);
}

#[test]
fn frame_without_buffers_waits_for_its_time_and_is_dropped_and_counted() {
    let mut lro = lro(|c| (c.patience, c.gap) = (500, 10_000));
    lro.post(0, 0, 1);
    lro.receive(0, 0, &flow(1).bytes());
    lro.receive(100, 0, &flow(2).bytes());
    // The other queue has none either, and its frame is behind.
    lro.receive(150, 1, &flow(3).bytes());
    assert_eq!(told(&lro.take()), [(100, 1, Some(Cause::NoBuffer))]);
    assert_eq!((lro.waiting(), lro.deadline()), (2, Some(600)));
    lro.post(599, 1, 1);
    assert_eq!(lro.waiting(), 2);
    lro.advance(600);
    // The third has what it needs as soon as the second is gone.
    assert_eq!(
        (lro.waiting(), lro.held(), lro.counters().dropped),
        (0, 1, 1)
    );
    lro.stop(700);
    assert_eq!(ports(&lro.take()), [3]);
}

#[test]
fn second_frame_waits_as_long_as_the_first() {
    let mut lro = lro(|c| c.patience = 500);
    lro.receive(0, 0, &flow(1).bytes());
    lro.receive(10, 0, &flow(2).bytes());
    lro.advance(500);
    assert_eq!((lro.waiting(), lro.deadline()), (1, Some(1000)));
    lro.post(999, 0, 1);
    assert_eq!((lro.waiting(), lro.held()), (0, 1));
    assert_eq!(lro.counters().dropped, 1);
}

#[test]
fn frames_that_waited_are_merged_when_buffers_come() {
    let mut lro = lro(|c| (c.gap, c.hold) = (100, 400));
    let segments = [flow(1), flow(1).next(100), flow(1).next(100).next(50)];
    for (at, segment) in (0..).zip(&segments) {
        lro.receive(at, 0, &segment.bytes());
    }
    assert_eq!(lro.waiting(), 3);
    lro.post(1000, 0, 2);
    assert_eq!(told(&lro.take()), [(1000, 3, Some(Cause::Smaller))]);
    assert_eq!(lro.posted(0), 1);
}

#[test]
fn low_water_closes_one_context_of_the_queue_a_frame_oldest_first() {
    let mut lro = lro(|c| c.low_water = 8);
    lro.post(0, 0, 9);
    lro.post(0, 1, 100);
    lro.receive(0, 1, &flow(9).bytes());
    for port in 1..=4 {
        lro.receive(u64::from(port), 0, &flow(port).bytes());
    }
    // 9 and 8 are enough, 7 and 6 are not.
    let units = lro.take();
    assert_eq!(ports(&units), [1, 2]);
    assert!(units.iter().all(|unit| unit.cause == Some(Cause::LowWater)));
    assert_eq!((lro.held(), lro.posted(0)), (3, 5));
}

#[test]
fn stopped_queue_delivers_what_it_holds_and_the_others_keep_theirs() {
    let mut lro = lro(|_| {});
    for queue in 0..3 {
        lro.post(0, queue, 100);
    }
    for port in 1..=6 {
        lro.receive(u64::from(port), port % 3, &flow(port).bytes());
    }
    lro.stop_queue(10, 1);
    let units = lro.take();
    assert_eq!(ports(&units), [1, 4]);
    assert_eq!(told(&units), [(10, 1, Some(Cause::Stopped)); 2]);
    // The link goes down: all, oldest first.
    lro.stop(11);
    assert_eq!(ports(&lro.take()), [2, 3, 5, 6]);
    assert_eq!(lro.deadline(), None);
}

#[test]
fn reset_queue_publishes_nothing_and_begins_without_buffers() {
    let mut lro = lro(|_| {});
    lro.post(0, 0, 100);
    lro.post(0, 1, 100);
    lro.receive(1, 0, &flow(1).bytes());
    lro.receive(1, 1, &flow(2).bytes());
    lro.reset_queue(2, 0);
    assert_eq!((lro.take(), lro.posted(0), lro.held()), (Vec::new(), 0, 1));
    // What continues the flow begins a unit.
    lro.post(3, 0, 100);
    lro.receive(4, 0, &flow(1).next(100).bytes());
    lro.receive(5, 1, &flow(2).next(100).bytes());
    lro.stop(6);
    let sizes: Vec<usize> = lro.take().iter().map(|unit| unit.segments).collect();
    assert_eq!(sizes, [2, 1]);
}

#[test]
fn change_of_settings_delivers_first() {
    let mut lro = lro(|_| {});
    lro.post(0, 0, 100);
    lro.receive(1, 0, &flow(1).bytes());
    let config = Config {
        tso4: false,
        ..Config::default()
    };
    lro.configure(2, config);
    assert_eq!(told(&lro.take()), [(2, 1, Some(Cause::Stopped))]);
    lro.receive(3, 0, &flow(1).next(100).bytes());
    assert_eq!(told(&lro.take()), [(3, 1, None)]);
}

/// Whatever a device writes, cutting ends and says so.
#[test]
fn any_header_and_frame_is_cut_or_refused() {
    let mut rng = Rng::new(3);
    let (mut sound, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let frame = match rng.below(3) {
            0 => frames::malformed(&mut rng),
            _ => frames::frame(&mut rng),
        };
        let mut header = Header {
            flags: rng.pick(&[0, 0, 1, 2, 3, 0xff]),
            gso_type: rng.pick(&[0, 0, 0, 1, 4, 3, 5, 0x81]),
            hdr_len: rng.pick(&[0, 200]),
            gso_size: rng.pick(&[0, 0, 1, 10, 100, 0xffff]),
            csum_start: rng.pick(&[0, 34, 34, 54, 54, 0xffff]),
            csum_offset: rng.pick(&[6, 16, 16, 0xffff]),
            num_buffers: 1,
        };
        // Half of them agree with the frame as far as that is possible.
        if let Some(packet) = parse(&frame).filter(|_| rng.chance(50)) {
            header.gso_type = if packet.v6 { 4 } else { 1 };
            (header.flags, header.hdr_len) = (1, 200);
            (header.csum_start, header.csum_offset) = (packet.transport as u16, 16);
        }
        match resegment(&header, &frame) {
            Ok(frames) => {
                assert!(!frames.is_empty());
                sound += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(
        sound > 500 && refused > 5000,
        "{sound} sound, {refused} refused"
    );
}
