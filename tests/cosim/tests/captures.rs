//! Every capture through the whole card, both ways, at each width that is built.

use ferronic::DeviceConfig;
use ferronic_cosim_tests::card::{Card, Received};
use ferronic_cosim_tests::{Capture, captures, own_captures};
use ferronic_sim::SimConfig;
use ferronic_sim::model::{QUEUE_PAIRS, WIDTHS};

/// Order is kept from end to end on one pair, and for each flow on several.
fn assert_received(capture: &Capture, got: &[Received], pairs: u16, buffer_size: usize) {
    assert_eq!(got.len(), capture.frames.len(), "{}", capture.name);
    for frame in got {
        let total: u32 = frame.buffers.iter().sum();
        assert_eq!(total as usize, frame.data.len() + 12);
        assert_eq!(
            usize::from(frame.header.num_buffers.get()),
            frame.buffers.len()
        );
        let full = &frame.buffers[..frame.buffers.len() - 1];
        assert!(full.iter().all(|len| *len as usize == buffer_size));
    }
    if pairs == 1 {
        for (at, (got, sent)) in got.iter().zip(&capture.frames).enumerate() {
            assert!(
                got.data == *sent,
                "{}: frame {at} differs: {} bytes came, {} were sent",
                capture.name,
                got.data.len(),
                sent.len()
            );
        }
        return;
    }
    // Several pairs: each queue holds a subsequence of what was sent, and together they hold all.
    let mut left: Vec<Option<&[u8]>> = capture.frames.iter().map(|f| Some(&f[..])).collect();
    for pair in 0..pairs {
        let mut from = 0;
        for frame in got.iter().filter(|frame| frame.pair == pair) {
            let at = left[from..]
                .iter()
                .position(|sent| *sent == Some(&frame.data[..]));
            let at = from
                + at.unwrap_or_else(|| {
                    panic!("{}: pair {pair} got a frame out of order", capture.name)
                });
            left[at] = None;
            from = at;
        }
    }
    assert!(left.iter().all(Option::is_none));
}

fn through(capture: &Capture, sim: &SimConfig, driver: &DeviceConfig) {
    for &data_w in WIDTHS {
        println!("{}: {data_w} bits, seed {:#x}", capture.name, sim.seed);
        let sim = SimConfig {
            data_w,
            ..sim.clone()
        };
        through_once(capture, sim, driver.clone());
    }
}

fn through_once(capture: &Capture, sim: SimConfig, driver: DeviceConfig) {
    let pairs = driver.queue_pairs;
    let buffer_size = driver.buffer_size;
    let mut card = Card::open(sim, driver);
    for frame in &capture.frames {
        card.wire.push(frame.clone());
    }
    let got = card.receive_count(capture.frames.len());
    assert_received(capture, &got, pairs, buffer_size);

    card.send(&capture.frames);
    let sent = card.wire.take_all();
    assert_eq!(sent.len(), capture.frames.len());
    if pairs == 1 {
        for (sent, frame) in sent.iter().zip(&capture.frames) {
            assert!(!sent.aborted && sent.data == *frame, "{}", capture.name);
        }
    } else {
        let mut all: Vec<&[u8]> = sent.iter().map(|frame| &frame.data[..]).collect();
        let mut want: Vec<&[u8]> = capture.frames.iter().map(Vec::as_slice).collect();
        all.sort_unstable();
        want.sort_unstable();
        assert!(all == want, "{}", capture.name);
    }
    card.device.check().expect("the card is well");
}

#[test]
fn captures_pass_both_ways_byte_identical_and_in_order() {
    for capture in captures().unwrap() {
        through(&capture, &SimConfig::default(), &DeviceConfig::default());
    }
}

#[test]
fn captures_pass_with_stalls_and_reordering() {
    for (at, capture) in captures().unwrap().iter().enumerate() {
        let seed = 0x5eed_0000 + at as u64;
        through(
            capture,
            &SimConfig::adversarial(seed),
            &DeviceConfig::default(),
        );
    }
}

#[test]
fn captures_pass_over_all_pairs() {
    for (at, capture) in captures().unwrap().iter().enumerate() {
        let seed = 0x4000 + at as u64;
        let driver = DeviceConfig {
            queue_pairs: QUEUE_PAIRS,
            ring_size: Some(if QUEUE_PAIRS > 16 { 64 } else { 256 }),
            ..DeviceConfig::default()
        };
        through(capture, &SimConfig::adversarial(seed), &driver);
    }
}

#[test]
fn captures_pass_with_receive_buffers_of_any_size_and_alignment() {
    let sizes = [128, 131, 200, 256, 1000, 1526, 4096, 65_536];
    for capture in own_captures().unwrap() {
        for (at, buffer_size) in sizes.into_iter().enumerate() {
            let driver = DeviceConfig {
                buffer_size,
                buffer_offset: at * 9 + 1,
                rx_buffers: (buffer_size > 4096).then_some(32),
                ..DeviceConfig::default()
            };
            println!("buffers of {buffer_size}");
            through(&capture, &SimConfig::adversarial(at as u64), &driver);
        }
    }
}

#[test]
fn captures_pass_with_chained_and_indirect_buffers() {
    for capture in own_captures().unwrap() {
        for indirect in [false, true] {
            for rx_chain in [2, 3, 16] {
                let driver = DeviceConfig {
                    rx_chain,
                    indirect,
                    buffer_size: 1600,
                    ..DeviceConfig::default()
                };
                println!("{rx_chain} parts, indirect {indirect}");
                through(&capture, &SimConfig::adversarial(7), &driver);
            }
        }
    }
}
