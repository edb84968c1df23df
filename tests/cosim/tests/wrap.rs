//! Ring indexes wrap at 65,536, in a run that goes that far.

use std::time::Duration;

use ferronic::DeviceConfig;
use ferronic_cosim_tests::card::Card;
use ferronic_sim::SimConfig;

/// Frames that all differ, in their length too.
fn numbered(n: u32) -> Vec<u8> {
    let mut frame = vec![0xa5; 60 + (n as usize % 5) * 3];
    frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
    frame[14..18].copy_from_slice(&n.to_be_bytes());
    frame
}

#[test]
fn ring_indexes_wrap_in_both_directions() {
    // Past 65,536 on both queues, with a ring that does not divide the last stretch evenly.
    const FRAMES: u32 = 66_000;
    let driver = DeviceConfig {
        ring_size: Some(256),
        ..DeviceConfig::default()
    };
    let mut card = Card::open(SimConfig::default(), driver);
    let mut next = 0;
    while next < FRAMES {
        let batch: Vec<_> = (next..FRAMES.min(next + 500)).map(numbered).collect();
        for frame in &batch {
            card.wire.push(frame.clone());
        }
        let got = card.receive_count(batch.len());
        for (got, sent) in got.iter().zip(&batch) {
            assert!(got.data == *sent, "received after frame {next}");
        }
        card.send(&batch);
        for (got, sent) in card.wire.take_all().iter().zip(&batch) {
            assert!(got.data == *sent, "sent after frame {next}");
        }
        next += batch.len() as u32;
    }
    card.pairs[0]
        .tx
        .drain(Duration::from_secs(5))
        .expect("the device behaves");
    card.device.check().expect("the card is well");
    let rx = card.pairs[0].rx.stats();
    let tx = card.pairs[0].tx.stats();
    assert_eq!(rx.frames, u64::from(FRAMES));
    assert_eq!(tx.completed, u64::from(FRAMES));
}
