//! Checksums and segmentation on transmit (virtio 1.2, "Packet Transmission" of the network device)
//! through the whole card: what leaves is what the specification says, byte for byte, and
//! `etherparse` agrees with every sum.

use ferronic_cosim_tests::nightly;
use ferronic_cosim_tests::requests::Transmitter;
use ferronic_oracle::{Limits, Offloads, Rng, request};
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
