//! Many large frames in flight over several queues, with stalls everywhere and completions in any
//! order; resets in the middle of them.

use std::collections::VecDeque;

use ferronic::spec::net::HEADER_WINDOW;
use ferronic::{DeviceConfig, PushResult, TxOffload, TxPart};
use ferronic_cosim_tests::card::{Card, PATIENCE};
use ferronic_cosim_tests::nightly;
use ferronic_oracle::{Header, Limits, Offloads, Outcome, Rng, gso, request, transmit};
use ferronic_sim::SimConfig;
use ferronic_sim::model::WIDTHS;
use ferronic_spec::Features;
use zerocopy::IntoBytes;

/// A frame, what the driver asks for it, and what must leave.
struct Job {
    frame: Vec<u8>,
    offload: TxOffload,
    wire: Vec<Vec<u8>>,
}

/// A random request that the driver grants.
fn job(limits: &Limits, rng: &mut Rng) -> Job {
    loop {
        let request = request::sound(limits, Offloads::ALL, rng);
        let frame = request.frame;
        let mut head = frame.clone();
        let len = frame.len();
        let offload = match (
            request.header.gso_type & !gso::ECN,
            request.header.flags & 1,
        ) {
            (gso::NONE, 0) => TxOffload::None,
            (gso::NONE, _) => TxOffload::Checksum {
                start: request.header.csum_start,
                offset: request.header.csum_offset,
            },
            _ => match TxOffload::segment(&mut head, len, request.header.gso_size) {
                Ok(offload) => offload,
                Err(_) => continue,
            },
        };
        let head = &frame[..len.min(HEADER_WINDOW)];
        let Ok(header) = offload.header(Features::TX_OFFLOADS, head, len) else {
            continue;
        };
        let header = Header::read(header.as_bytes()).expect("12 bytes");
        if let Outcome::Sent(wire) = transmit(&header, &frame, Offloads::ALL) {
            return Job {
                frame,
                offload,
                wire,
            };
        }
    }
}

/// Cuts a frame into a few parts at random places.
fn parts<'a>(frame: &'a [u8], rng: &mut Rng) -> Vec<TxPart<'a>> {
    let mut rest = frame;
    let mut parts = Vec::new();
    for _ in 0..rng.below(5) {
        let (part, more) = rest.split_at(rng.below(rest.len() as u64 + 1) as usize);
        parts.push(TxPart::Bytes(part));
        rest = more;
    }
    parts.push(TxPart::Bytes(rest));
    parts
}

fn run(data_w: u32, seed: u64) {
    let mut rng = Rng::new(seed);
    let pairs = 1 + rng.below(4) as usize;
    let sim = SimConfig {
        data_w,
        ..SimConfig::adversarial(seed)
    };
    let driver = DeviceConfig {
        queue_pairs: pairs as u16,
        ring_size: Some(rng.pick(&[8, 16, 64, 256])),
        indirect: rng.chance(50),
        buffer_offset: rng.below(64) as usize,
        ..DeviceConfig::default()
    };
    println!("{data_w} bits, seed {seed}: {driver:?}");
    let mut card = Card::open(sim, driver);
    let limits = Limits {
        packet: rng.pick(&[3000, 20_000, 65_535]),
        segments: 60,
    };
    let mut jobs: Vec<Job> = (0..60).map(|_| job(&limits, &mut rng)).collect();
    let mut expected: Vec<VecDeque<Vec<Vec<u8>>>> = vec![VecDeque::new(); pairs];
    let mut left: usize = jobs.iter().map(|job| job.wire.len()).sum();
    // The frame that is on its way out, and how many of its segments were seen.
    let mut current: Option<(usize, usize)> = None;
    let mut last = card.function.now();
    jobs.reverse();
    while left > 0 {
        while let Some(job) = jobs.last() {
            let pair = rng.below(pairs as u64) as usize;
            let tx = &mut card.pairs[pair].tx;
            let pushed = tx.push_parts(&parts(&job.frame, &mut rng), job.offload);
            if pushed.expect("a sound request") == PushResult::Full {
                break;
            }
            if rng.chance(60) {
                tx.flush().expect("the device behaves");
            }
            let job = jobs.pop().expect("there is one");
            expected[pair].push_back(job.wire);
        }
        for pair in &mut card.pairs {
            pair.tx.flush().expect("the device behaves");
            pair.tx.reap().expect("the device behaves");
        }
        card.device.poll();
        while let Some(out) = card.wire.take() {
            assert!(!out.aborted);
            let (queue, seen) = current.unwrap_or_else(|| {
                let is_next = |q: &VecDeque<Vec<Vec<u8>>>| {
                    q.front().is_some_and(|frame| frame[0] == out.data)
                };
                let found = expected.iter().position(is_next);
                (
                    found.unwrap_or_else(|| panic!("not asked for: {:02x?}", out.data)),
                    0,
                )
            });
            let frame = &expected[queue][0];
            assert!(
                frame[seen] == out.data,
                "segment {seen} of {} of queue {queue}:\n{:02x?}\n{:02x?}",
                frame.len(),
                out.data,
                frame[seen]
            );
            current = Some((queue, seen + 1)).filter(|(_, seen)| *seen < frame.len());
            if current.is_none() {
                expected[queue].pop_front();
            }
            left -= 1;
            last = card.function.now();
        }
        let silent = card.function.now() - last;
        assert!(silent < PATIENCE, "{left} frames did not leave");
    }
    for pair in &mut card.pairs {
        let timeout = std::time::Duration::from_secs(20);
        pair.tx.drain(timeout).expect("all buffers come back");
    }
    card.device.check().expect("the card is well");
    let stats = card.device.card_stats().expect("counters");
    assert!(stats.queues.iter().all(|queue| queue.drops == 0));
}

#[test]
fn frames_of_all_kinds_leave_whole_and_in_order_with_stalls_and_reordering() {
    let seeds = if nightly() { 60 } else { 6 };
    for seed in 0..seeds {
        for &data_w in WIDTHS {
            run(data_w, seed);
        }
    }
}

/// A TCP frame of 64 KB that is told from others by its addresses.
fn large(number: u8) -> (Vec<u8>, TxOffload) {
    let mut frame = vec![0x5a; 14 + 65_535];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, number, 10, 0, 0, 2]);
    frame[46..48].copy_from_slice(&[0x50, 0x18]);
    let len = frame.len();
    let offload = TxOffload::segment(&mut frame, len, 1460).expect("TCP");
    (frame, offload)
}

/// What left of the first large frame is aborted or whole, never damaged.
fn undamaged(card: &Card) {
    let (frame, offload) = large(1);
    let header = offload.header(Features::TX_OFFLOADS, &frame[..HEADER_WINDOW], frame.len());
    let header = Header::read(header.expect("TCP").as_bytes()).expect("12 bytes");
    let Outcome::Sent(want) = transmit(&header, &frame, Offloads::ALL) else {
        panic!("the oracle drops a sound frame");
    };
    for out in card.wire.take_all() {
        assert!(out.aborted || want.contains(&out.data), "{:02x?}", out.data);
    }
}

/// Three large frames are on their way, for so many cycles.
fn begin(card: &mut Card, cycles: u64) {
    let (frame, offload) = large(1);
    for _ in 0..3 {
        let pushed = card.pairs[0].tx.push_offload(&frame, offload);
        assert_eq!(pushed.expect("sound"), PushResult::Queued);
    }
    card.pairs[0].tx.flush().expect("the device behaves");
    card.function.run(cycles).expect("the card runs");
}

/// Sends one large frame and returns what is on the wire then.
fn send(card: &mut Card, pair: usize, mark: u8) -> Vec<ferronic_sim::wire::SentFrame> {
    let (frame, offload) = large(mark);
    let tx = &mut card.pairs[pair].tx;
    let pushed = tx.push_offload(&frame, offload);
    assert_eq!(pushed.expect("sound"), PushResult::Queued);
    tx.drain(std::time::Duration::from_secs(20))
        .expect("it completes");
    card.function.run(100_000).expect("the card runs");
    card.wire.take_all()
}

#[test]
fn queue_reset_in_the_middle_of_a_large_frame_leaves_a_queue_that_works() {
    for &data_w in WIDTHS {
        for seed in 0..6 {
            let sim = SimConfig {
                data_w,
                ..SimConfig::adversarial(seed)
            };
            let driver = DeviceConfig {
                queue_pairs: 2,
                ..DeviceConfig::default()
            };
            let mut card = Card::open(sim, driver);
            begin(&mut card, 200 + 1371 * seed);
            let tx = &mut card.pairs[0].tx;
            card.device.reset_queue_tx(tx).expect("the queue is reset");
            // What was taken may still leave; then both queues work as before.
            card.function.run(100_000).expect("the card runs");
            undamaged(&card);
            for pair in 0..2 {
                let out = send(&mut card, pair, 2 + pair as u8);
                assert_eq!(out.len(), 45, "{data_w} bits, seed {seed}, pair {pair}");
                let own = |out: &ferronic_sim::wire::SentFrame| out.data[29] == 2 + pair as u8;
                assert!(out.iter().all(own));
            }
            card.device.check().expect("the card is well");
        }
    }
}

#[test]
fn device_reset_in_the_middle_of_a_large_frame_leaves_a_card_that_works() {
    for &data_w in WIDTHS {
        for seed in 0..6 {
            let sim = SimConfig {
                data_w,
                ..SimConfig::adversarial(seed)
            };
            let mut card = Card::open(sim, DeviceConfig::default());
            begin(&mut card, 200 + 1371 * seed);
            let Card {
                function,
                wire,
                device,
                pairs,
            } = card;
            device.close().expect("the card is reset");
            drop(pairs);
            let mut card = Card::attach(function, wire, DeviceConfig::default());
            card.function.run(20_000).expect("the card runs");
            undamaged(&card);
            let out = send(&mut card, 0, 9);
            assert_eq!(out.len(), 45, "{data_w} bits, seed {seed}");
            assert!(out.iter().all(|out| !out.aborted && out.data[29] == 9));
            card.device.check().expect("the card is well");
        }
    }
}
