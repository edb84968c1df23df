//! Checksums and segmentation on transmit (virtio 1.2, "Packet Transmission" of the network device)
//! through the whole card: what leaves is what the specification says, byte for byte, and
//! `etherparse` agrees with every sum.

use ferronic_cosim_tests::nightly;
use ferronic_cosim_tests::raw_driver::{NEXT, Raw, write};
use ferronic_cosim_tests::requests::Transmitter;
use ferronic_oracle::{Limits, Offloads, Outcome, Rng, request, transmit};
use ferronic_sim::SimConfig;
use ferronic_spec::Features;

/// Any requests over some queues, with stalls and reordered completions, up to `bytes` a seed.
fn traffic(data_w: u32, seeds: u64, bytes: usize) {
    let times = if nightly() { 20 } else { 1 };
    let (mut segments, mut largest) = (0, 0);
    for seed in 1..=seeds * times {
        println!("{data_w} bits, seed {seed}");
        let config = SimConfig {
            data_w,
            idle_skip: true,
            ..SimConfig::adversarial(seed)
        };
        let mut rng = Rng::new(seed);
        let queues = rng.range(1, 4) as u16;
        let mut card = Transmitter::open(config, Offloads::ALL, Features::empty(), queues);
        let limits = Limits {
            packet: rng.pick(&[9000, 65_535]),
            segments: 100,
        };
        let mut left = bytes;
        while left > 0 {
            let request = request::sound(&limits, card.offloads, &mut rng);
            largest = largest.max(request.frame.len());
            left = left.saturating_sub(request.frame.len());
            card.post(&request, &mut rng);
        }
        card.flush(&mut rng);
        segments += card.segments();
        card.finish(&mut rng);
    }
    println!("{segments} segments, the largest request has {largest} bytes");
    assert!(segments > 100 && largest > 60_000);
}

#[test]
fn segments_are_those_of_the_specification_at_64_bits() {
    traffic(64, 4, 400_000);
}

#[test]
fn segments_are_those_of_the_specification_at_512_bits() {
    traffic(512, 4, 1_000_000);
}

/// A frame breaks off in its third descriptor, which cannot be read or leads out of the table; how
/// many segments left before that.
fn broken(data_w: u32, seed: u64, unreadable: bool) -> usize {
    println!("{data_w} bits, seed {seed}, unreadable {unreadable}");
    let mut rng = Rng::new(seed);
    let limits = Limits {
        packet: 65_535,
        segments: 100,
    };
    let (request, segments) = loop {
        let request = request::segmented(&limits, Offloads::ALL, &mut rng);
        if let Outcome::Sent(segments) = transmit(&request.header, &request.frame, Offloads::ALL)
            && segments.len() > 10
            && request.frame.len() > 30_000
        {
            break (request, segments);
        }
    };
    let config = SimConfig {
        data_w,
        idle_skip: true,
        ..SimConfig::adversarial(seed)
    };
    let raw = Raw::new(config);
    raw.function.sim().root.memory.guard_enable();
    let offloads = Features::from_bits_retain(Offloads::ALL.bits());
    let [_rx, mut tx] = raw.pair(Features::VERSION_1 | offloads, 16);
    let buffer = request.buffer();
    write(&raw.area, 0, &buffer);
    let (area, len) = (raw.area.iova(), buffer.len() as u32);
    let first = rng.range(1, 300) as u32;
    let second = rng.range(9000, 25_000) as u32;
    let rest = len - first - second;
    tx.describe(0, area, first, NEXT, 1);
    tx.describe(1, area + u64::from(first), second, NEXT, 2);
    if unreadable {
        tx.describe(2, 0x9999_0000_0000, 500, NEXT, 3);
        tx.describe(3, area + u64::from(len - rest), rest, 0, 0);
    } else {
        tx.describe(2, area + u64::from(len - rest), 500, NEXT, 16);
    }
    tx.offer(0);
    raw.send(&tx);
    assert!(raw.breaks_within(200_000), "no DEVICE_NEEDS_RESET");
    let sent = raw.wire.take_all();
    let sent: Vec<_> = sent.iter().filter(|frame| !frame.aborted).collect();
    assert!(sent.len() < segments.len(), "all of it left");
    for (sent, wanted) in sent.iter().zip(&segments) {
        assert!(sent.data == *wanted, "a segment that is none");
    }
    raw.works();
    let faults = raw.function.sim().root.take_memory_faults();
    assert!(faults.iter().all(|fault| !fault.write), "{faults:x?}");
    sent.len()
}

#[test]
fn frame_that_breaks_off_needs_a_reset_and_no_wrong_segment_leaves() {
    let seeds = if nightly() { 100 } else { 4 };
    let mut sent = 0;
    for seed in 0..seeds {
        for data_w in [64, 512] {
            for unreadable in [false, true] {
                sent += broken(data_w, seed, unreadable);
            }
        }
    }
    assert!(sent > 15, "{sent} segments left");
}
