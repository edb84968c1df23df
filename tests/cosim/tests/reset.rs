//! Resets at any moment leave a card that the next driver uses at once.

use std::sync::Arc;

use ferronic::pci::PciFunction;
use ferronic::{DeviceConfig, PushResult};
use ferronic_cosim_tests::card::Card;
use ferronic_sim::wire::WireQueue;
use ferronic_sim::{Sim, SimConfig, SimFunction};

fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|n| {
            let mut frame = vec![n as u8; 60 + (n * 97) % 1400];
            frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
            frame
        })
        .collect()
}

/// Puts traffic on the card in both directions and leaves it in the middle.
fn disturb(card: &mut Card, cycles: u64) {
    for frame in frames(40) {
        card.wire.push(frame.clone());
        for pair in &mut card.pairs {
            let queued = pair.tx.push(&frame).expect("a sound frame");
            assert_eq!(queued, PushResult::Queued);
        }
    }
    for pair in &mut card.pairs {
        pair.tx.flush().expect("the device behaves");
    }
    card.function.run(cycles).expect("the card runs");
}

/// After a reset no read is outstanding, and nothing is written any more.
fn assert_silent(function: &SimFunction) {
    let mut sim = function.sim();
    assert!(sim.root.dma_drained(), "reads outstanding after a reset");
    let before = sim.root.stats;
    sim.run(5_000).expect("the card runs");
    let after = sim.root.stats.since(&before);
    assert_eq!(after.up_writes.tlps, 0, "writes after a reset");
    assert_eq!(after.up_reads.tlps, 0, "reads after a reset");
}

fn works(function: SimFunction, wire: WireQueue) {
    wire.clear();
    let driver = DeviceConfig {
        queue_pairs: 4,
        ..DeviceConfig::default()
    };
    let mut card = Card::attach(function, wire, driver);
    // What was on its way out when the reset came ends aborted, or whole, never damaged.
    card.function.run(20_000).expect("the card runs");
    for old in card.wire.take_all() {
        assert!(old.aborted || frames(40).contains(&old.data));
    }
    let sent = frames(30);
    for frame in &sent {
        card.wire.push(frame.clone());
    }
    let got = card.receive_count(sent.len());
    assert!(got.iter().map(|f| &f.data).eq(sent.iter()));
    card.send(&sent);
    // Several pairs take turns, so their frames leave in any order.
    let mut out: Vec<_> = card.wire.take_all().into_iter().map(|f| f.data).collect();
    let mut want = sent;
    out.sort_unstable();
    want.sort_unstable();
    assert!(out == want);
    card.device.check().expect("the card is well");
}

fn fresh(seed: u64) -> (SimFunction, WireQueue) {
    let (wire, port) = WireQueue::new();
    let sim = Sim::with_wire(SimConfig::adversarial(seed), port).expect("the model starts");
    (SimFunction::new(sim).expect("the card enumerates"), wire)
}

/// Two seeds in CI, many at night.
fn seeds(first: u64) -> impl Iterator<Item = u64> {
    let count = if ferronic_cosim_tests::nightly() {
        40
    } else {
        2
    };
    (0..count).map(move |n| first + 101 * n)
}

fn driver() -> DeviceConfig {
    DeviceConfig {
        queue_pairs: 4,
        ..DeviceConfig::default()
    }
}

#[test]
fn virtio_reset_with_dma_in_flight() {
    for seed in seeds(11) {
        let (function, wire) = fresh(seed);
        for cycles in (0..60).map(|n| n * 83 + seed % 83) {
            println!("seed {seed}: reset after {cycles} cycles");
            let mut card = Card::attach(function.clone(), wire.clone(), driver());
            disturb(&mut card, cycles);
            drop(card.pairs);
            card.device.close().expect("the reset ends");
            wire.clear();
            assert_silent(&function);
        }
        works(function, wire);
    }
}

#[test]
fn function_level_reset_with_dma_in_flight() {
    for seed in seeds(12) {
        let (function, wire) = fresh(seed);
        for cycles in (0..60).map(|n| n * 71 + seed % 71) {
            println!("seed {seed}: FLR after {cycles} cycles");
            let mut card = Card::attach(function.clone(), wire.clone(), driver());
            disturb(&mut card, cycles);
            PciFunction::reset(&function).expect("the FLR ends");
            wire.clear();
            assert_silent(&function);
            // The driver that was robbed of its card may still touch its rings; the card does not.
            drop(card);
        }
        works(function, wire);
    }
}

#[test]
fn queue_reset_drains_and_leaves_the_others() {
    let (wire, port) = WireQueue::new();
    let sim = Sim::with_wire(SimConfig::adversarial(13), port).expect("the model starts");
    let function = SimFunction::new(sim).expect("the card enumerates");
    let mut card = Card::attach(function, wire, driver());
    for round in 0..10 {
        // Traffic on pair 1 while the queues of pair 0 are reset.
        let (first, rest) = card.pairs.split_at_mut(1);
        for frame in frames(20) {
            let queued = rest[0].tx.push(&frame).expect("a sound frame");
            assert_eq!(queued, PushResult::Queued);
        }
        rest[0].tx.flush().expect("the device behaves");
        card.function.run(round * 131).expect("the card runs");
        card.device
            .reset_queue_tx(&mut first[0].tx)
            .expect("the queue resets");
        card.device
            .reset_queue_rx(&mut first[0].rx)
            .expect("the queue resets");
        while card.wire.sent() < 20 {
            card.device.poll();
            rest[0].tx.reap().expect("the device behaves");
        }
        let sent: Vec<_> = card.wire.take_all().into_iter().map(|f| f.data).collect();
        assert_eq!(sent, frames(20));
        while rest[0].tx.reap().expect("the device behaves") > 0 {}

        for frame in frames(5) {
            card.wire.push(frame);
        }
        assert_eq!(card.receive_count(5).len(), 5);
        let (pairs, device) = (&mut card.pairs, &card.device);
        let _ = pairs[0].tx.push(&frames(1)[0]).expect("a sound frame");
        pairs[0].tx.flush().expect("the device behaves");
        while card.wire.sent() < 1 {
            device.poll();
        }
        assert_eq!(card.wire.take_all()[0].data, frames(1)[0]);
    }
    card.device.check().expect("the card is well");
}

#[test]
fn defaults_return_with_a_reset() {
    let (function, wire) = fresh(14);
    let card = Card::attach(function.clone(), wire.clone(), driver());
    let window = card.device.window().expect("our card has its window");
    assert_eq!(window.pairs_in_use().expect("the card answers"), 4);
    drop(card);
    let card = Card::attach(function, wire, DeviceConfig::default());
    let window = card.device.window().expect("our card has its window");
    assert_eq!(window.pairs_in_use().expect("the card answers"), 1);
    let seam: Arc<dyn PciFunction> = Arc::new(card.function.clone());
    seam.reset().expect("the FLR ends");
}
