//! What the driver touches on the data path: memory and doorbells, never a register read.

use ferronic::DeviceConfig;
use ferronic::queue::Wakeup;
use ferronic_cosim_tests::card::Card;
use ferronic_cosim_tests::own_captures;
use ferronic_sim::SimConfig;

#[test]
fn data_path_reads_no_register() {
    for wakeup in [Wakeup::Polled, Wakeup::Interrupt] {
        for capture in own_captures().unwrap() {
            let driver = DeviceConfig {
                queue_pairs: 4,
                wakeup,
                ..DeviceConfig::default()
            };
            let mut card = Card::open(SimConfig::default(), driver);
            let before = card.function.sim().root.stats;
            for frame in &capture.frames {
                card.wire.push(frame.clone());
            }
            card.receive_count(capture.frames.len());
            card.send(&capture.frames);
            let link = card.function.sim().root.stats.since(&before);
            assert_eq!(link.down_reads.tlps, 0, "register reads");
            assert_eq!(link.down_config.tlps, 0, "configuration accesses");
            // Doorbells: at most one a burst of 64 on transmit, and one for each time that receive
            // buffers were posted.
            assert!(link.down_writes.tlps > 0);
            assert!(link.down_writes.tlps < 2 * capture.frames.len() as u64);
        }
    }
}

#[test]
fn doorbell_only_if_the_event_index_asks_for_it() {
    let mut card = Card::open(SimConfig::default(), DeviceConfig::default());
    let frames: Vec<Vec<u8>> = (0..2000).map(|_| vec![7; 64]).collect();
    card.send(&frames);
    let tx = card.pairs[0].tx.stats();
    assert_eq!(tx.frames, 2000);
    assert!(
        tx.doorbells < tx.bursts,
        "{} of {}",
        tx.doorbells,
        tx.bursts
    );
}
