//! Ten thousand frames that lie in their headers, each way: the card never hangs, says DATA_VALID of
//! frames whose sums are right and of no others, sends what the specification has for a request or drops and
//! counts it, and goes on.

use ferronic_cosim_tests::nightly;
use ferronic_cosim_tests::raw_driver::{Raw, read};
use ferronic_cosim_tests::requests::Transmitter;
use ferronic_oracle::{Offloads, Opinion, Rng, frames, opinion, request};
use ferronic_sim::SimConfig;
use ferronic_spec::Features;
use ferronic_spec::net::HeaderFlags;

const FRAMES: usize = 10_000;
const HEADER: usize = 12;

fn config(data_w: u32, seed: u64) -> SimConfig {
    SimConfig {
        data_w,
        idle_skip: true,
        ..SimConfig::adversarial(seed)
    }
}

fn seeds() -> u64 {
    if nightly() { 20 } else { 1 }
}

/// Receives malformed frames; what is said of them must be so.
fn receive(data_w: u32, seed: u64) {
    const BUFFERS: u16 = 256;
    const BYTES: usize = 2048;
    println!("{data_w} bits, seed {seed}");
    let mut rng = Rng::new(seed);
    let raw = Raw::new(config(data_w, seed));
    raw.function.sim().root.memory.guard_enable();
    let features = Features::VERSION_1 | Features::GUEST_CSUM | Features::MRG_RXBUF;
    let [mut rx, _tx] = raw.pair(features, BUFFERS);
    let (mut claims, mut done) = (0, 0);
    while done < FRAMES {
        let sent: Vec<_> = (0..BUFFERS).map(|_| frames::malformed(&mut rng)).collect();
        for (id, frame) in (0..).zip(&sent) {
            raw.post(&mut rx, id, usize::from(id) * BYTES, BYTES);
            raw.wire.push(frame.clone());
        }
        raw.send(&rx);
        raw.wait_used(&rx, rx.next);
        for ((id, len), frame) in rx.take_used().into_iter().zip(&sent) {
            let got = read(&raw.area, id as usize * BYTES, len as usize);
            assert_eq!(got[HEADER..], *frame, "the frame was changed");
            let flags = HeaderFlags::from_bits_retain(got[0]);
            let mut header = [0; HEADER];
            header[0] = flags.bits();
            header[10] = 1;
            assert_eq!(got[..HEADER], header, "{frame:02x?}");
            let right = frames::verdict(frame).sum_ok;
            let want = if right {
                HeaderFlags::DATA_VALID
            } else {
                HeaderFlags::empty()
            };
            assert_eq!(flags, want, "{frame:02x?}");
            if right {
                assert!(!matches!(opinion(frame), Opinion::Wrong(_)), "{frame:02x?}");
                claims += 1;
            }
        }
        done += sent.len();
    }
    println!("{claims} of {done} frames were said to be valid");
    assert!(claims > done / 10 && claims < done / 10 * 9);
    assert!(!raw.needs_reset());
    raw.works();
    assert_eq!(raw.function.sim().root.take_memory_faults(), []);
}

#[test]
fn malformed_frames_from_the_wire_are_passed_without_a_wrong_claim_at_64_bits() {
    (1..=seeds()).for_each(|seed| receive(64, seed));
}

#[test]
fn malformed_frames_from_the_wire_are_passed_without_a_wrong_claim_at_512_bits() {
    (1..=seeds()).for_each(|seed| receive(512, seed));
}

/// Transmits malformed requests, some with a right one behind.
fn transmit(data_w: u32, seed: u64, requests: usize) {
    println!("{data_w} bits, seed {seed}");
    let mut rng = Rng::new(seed);
    let offloads = [
        Offloads::ALL,
        Offloads {
            csum: true,
            tso4: true,
            ..Offloads::default()
        },
        Offloads::default(),
    ];
    let (mut drops, mut done) = (0, 0);
    // Most of them where all can go wrong.
    for (offloads, share) in offloads.into_iter().zip([80, 10, 10]) {
        let count = requests * share / 100;
        let config = config(data_w, seed);
        let mut card = Transmitter::open(config, offloads, Features::empty(), 2);
        card.pieces = &[1, 1, 2, 3, 8];
        for _ in 0..count {
            // The types of what was not negotiated come too.
            card.post(&request::malformed(Offloads::ALL, &mut rng), &mut rng);
            if rng.chance(5) {
                card.post(&request::plain(300, &mut rng), &mut rng);
            }
        }
        card.flush(&mut rng);
        drops += card.drops() as usize;
        done += card.requests();
        card.finish(&mut rng);
    }
    println!("{drops} of {done} requests were dropped");
    assert!(drops > requests / 2 && drops < done);
}

#[test]
fn malformed_requests_are_dropped_or_done_right_at_64_bits() {
    (1..=seeds()).for_each(|seed| transmit(64, seed, FRAMES));
}

#[test]
fn malformed_requests_are_dropped_or_done_right_at_512_bits() {
    (1..=seeds()).for_each(|seed| transmit(512, seed, FRAMES));
}
