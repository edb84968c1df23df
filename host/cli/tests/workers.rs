//! Queue pairs on threads of their own, woken by the interrupts of a served card.

mod served;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ferronic::pci::vfio_user::VfioUserFunction;
use ferronic::workers::{Placement, Seat, Workers};
use ferronic::{Device, DeviceConfig, Error, Event, PushResult, QueuePair, Wait, Wakeup};
use served::{PATIENCE, Served, assert_same};

const PAIRS: u16 = 4;
const FRAMES: u32 = 200;

/// A frame of IPv4 whose addresses tell it from all others.
fn frame(pair: u16, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 99]);
    let [.., high, low] = number.to_be_bytes();
    bytes[26..34].copy_from_slice(&[10, pair as u8, high, low, 192, 168, low, pair as u8]);
    let words = bytes[14..34].as_chunks::<2>().0;
    let sum: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// What a thread got, and by which interrupts it was woken.
type Got = (Vec<Vec<u8>>, BTreeSet<u16>);

/// Sends its frames, and receives until it is stopped; sleeps when there is nothing to do.
fn work(mut pair: QueuePair, seat: Seat) -> Result<Got, Error> {
    let (mut got, mut woken) = (Vec::new(), BTreeSet::new());
    let mut number = 0;
    while !seat.stopping() {
        while number < FRAMES && pair.tx.push(&frame(pair.index, number))? == PushResult::Queued {
            number += 1;
        }
        pair.tx.flush()?;
        pair.tx.reap()?;
        let count = pair.rx.receive(64, |frame| {
            let mut bytes = Vec::new();
            frame.copy_to(&mut bytes);
            got.push(bytes);
        })?;
        seat.publish(&pair);
        let room = number == FRAMES || pair.tx.has_room()?;
        if count > 0 || pair.rx.arm()? || !room && pair.tx.arm_after(1)? {
            continue;
        }
        match seat.wait(Duration::from_millis(50))? {
            Some(Event::Receive(of) | Event::Transmit(of)) => drop(woken.insert(of)),
            Some(Event::Config) => drop(woken.insert(u16::MAX)),
            None => {}
        }
    }
    Ok((got, woken))
}

#[test]
fn threads_are_woken_by_their_own_interrupts_and_lose_no_frame() {
    let served = Served::start("loopback");
    let function = VfioUserFunction::connect(&served.socket()).expect("connected");
    let config = DeviceConfig {
        queue_pairs: PAIRS,
        ring_size: Some(64),
        wakeup: Wakeup::Interrupt,
        ..DeviceConfig::default()
    };
    let (mut device, pairs) = Device::open(std::sync::Arc::new(function), config).expect("open");
    let workers = Workers::start(&mut device, pairs, &Placement::Free, |_| work).expect("threads");
    let all = u64::from(PAIRS) * u64::from(FRAMES);
    let begin = Instant::now();
    loop {
        let stats = workers.stats();
        let received: u64 = stats.iter().map(|thread| thread.rx.frames).sum();
        if received == all {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{received} of {all}: {stats:?}");
        assert_eq!(workers.running(), usize::from(PAIRS));
        // Theirs are not told here.
        let event = device
            .wait(Duration::from_millis(5))
            .expect("the card is well");
        assert!(matches!(event, None | Some(Event::Config)), "{event:?}");
    }
    workers.stop();
    let (mut got, mut sleepers) = (Vec::new(), 0);
    for (pair, result) in (0..).zip(workers.join()) {
        let (frames, woken) = result.expect("no error");
        assert!(!frames.is_empty(), "pair {pair} received nothing");
        // Of others' it heard nothing; that it was always awake cannot be ruled out.
        assert!(woken.iter().all(|of| *of == pair), "pair {pair}: {woken:?}");
        sleepers += woken.len();
        got.extend(frames);
    }
    assert!(sleepers > 0, "nobody was woken");
    got.sort();
    let mut sent: Vec<_> = (0..PAIRS)
        .flat_map(|pair| (0..FRAMES).map(move |number| frame(pair, number)))
        .collect();
    sent.sort();
    assert_same(&got, &sent, "what came back");
    device.close().expect("closed");
}
