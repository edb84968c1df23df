//! The halves of a queue pair on two threads.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic::completion::Push;
use ferronic::pci::PciFunction;
use ferronic::{
    CompletionPolicy, Device, DeviceConfig, PushResult, QueuePair, TxOffload, TxPart, TxPort,
};
use support::{Function, OFFER, SoftCard};

const FRAMES: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn frame(number: u32) -> Vec<u8> {
    let len = 60 + number as usize % 900;
    let mut frame: Vec<u8> = (0..len).map(|i| (i as u32 * 5 + number) as u8).collect();
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Row 11 of the list of others' faults: the receive side cleaned the transmit ring while the
/// transmit side posted to it. Here each half has its ring for itself, and only its owner takes
/// buffers back.
#[test]
fn halves_of_a_pair_run_on_two_threads_and_touch_nothing_of_each_other() {
    let card = SoftCard::new(OFFER, 1, 16);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    // A small ring: it is full, and taken back from, all the time.
    let (_device, mut pairs) = Device::open(function, DeviceConfig::default()).unwrap();
    let QueuePair { mut rx, mut tx, .. } = pairs.remove(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut number = 0;
            while number < FRAMES {
                match tx.push(&frame(number)).unwrap() {
                    PushResult::Queued => number += 1,
                    PushResult::Full => tx.relax(),
                }
                assert!(start.elapsed() < PATIENCE, "{number} sent");
            }
            tx.drain(PATIENCE).unwrap();
            assert_eq!(tx.stats().completed, u64::from(FRAMES));
        });
        scope.spawn(|| {
            let mut given = 0;
            let mut number = 0;
            while number < FRAMES {
                let ahead = 16.min(FRAMES - given);
                if given - number < ahead {
                    let mut model = card.model();
                    model.to_receive[0].extend((given..given + ahead).map(frame));
                    given += ahead;
                }
                let got = rx.receive(64, |received| {
                    let mut bytes = Vec::new();
                    received.copy_to(&mut bytes);
                    assert!(bytes == frame(number), "frame {number} came changed");
                    number += 1;
                });
                if got.unwrap() == 0 {
                    rx.relax();
                }
                assert!(start.elapsed() < PATIENCE, "{number} received");
            }
        });
    });
    let model = card.model();
    assert_eq!(model.sent.len(), FRAMES as usize);
    for (number, (queue, bytes)) in (0..).zip(&model.sent) {
        assert_eq!(*queue, 1);
        assert!(bytes[12..] == frame(number), "frame {number} left changed");
    }
}

// Ports next to each other share no cache line.
const _: () = assert!(align_of::<TxPort>() >= 64 && size_of::<TxPort>().is_multiple_of(64));

/// S2-R8: completion is the work of the thread that sends. Each port is moved to a thread, which finds
/// what its senders sent, and nothing of it is touched by the other thread: there is no lock and no word
/// that both write, so no cache line goes from one processor to the other for a completion.
#[test]
fn frames_are_completed_by_the_thread_that_sent_them() {
    let card = SoftCard::new(OFFER, 2, 16);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        queue_pairs: 2,
        ..DeviceConfig::default()
    };
    let (device, pairs) = Device::open(function, config).unwrap();
    let period = Duration::from_micros(10);
    std::thread::scope(|scope| {
        for QueuePair { mut tx, .. } in pairs {
            device
                .set_completion(&mut tx, CompletionPolicy::Timer { period })
                .unwrap();
            scope.spawn(move || {
                let mut port = TxPort::new(tx);
                let sender = port.open(8 * 1024);
                let start = Instant::now();
                let mut number = 0;
                while number < FRAMES / 4 {
                    let bytes = frame(number);
                    let parts = [TxPart::Bytes(&bytes)];
                    match port.send(sender, &parts, TxOffload::None).unwrap() {
                        Push::Queued => number += 1,
                        _ => port.queue().relax(),
                    }
                    port.flush().unwrap();
                    port.tick(start.elapsed()).unwrap();
                    assert!(start.elapsed() < PATIENCE, "{number} sent");
                }
                while port.charged(sender).unwrap() > 0 {
                    port.queue().relax();
                    port.tick(start.elapsed()).unwrap();
                    assert!(start.elapsed() < PATIENCE, "not completed");
                }
                assert_eq!(port.queue().stats().completed, u64::from(FRAMES / 4));
            });
        }
    });
    for queue in [1, 3] {
        let model = card.model();
        let sent = model.sent.iter().filter(|(from, _)| *from == queue);
        let mut count = 0;
        for (number, (_, bytes)) in (0..).zip(sent) {
            assert!(
                bytes[12..] == frame(number),
                "queue {queue}, frame {number}"
            );
            count += 1;
        }
        assert_eq!(count, FRAMES / 4);
    }
}
