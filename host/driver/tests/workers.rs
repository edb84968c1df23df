//! Queue pairs on threads of their own.

mod support;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ferronic::pci::{PciError, PciFunction};
use ferronic::workers::{Placement, Seat, Workers, allowed_cpus};
use ferronic::{Device, DeviceConfig, Error, PushResult, QueuePair, Wait, Wakeup};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use support::{Function, OFFER, SoftCard, frame};

const PAIRS: u16 = 4;
const FRAMES: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(60);

fn open(wakeup: Wakeup) -> (Arc<SoftCard>, Device, Vec<QueuePair>) {
    let card = SoftCard::new(OFFER, PAIRS, 64);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        queue_pairs: PAIRS,
        wakeup,
        ..DeviceConfig::default()
    };
    let (device, pairs) = Device::open(function, config).unwrap();
    (card, device, pairs)
}

/// Sends [`FRAMES`] frames, and receives until it is stopped.
fn work(mut pair: QueuePair, seat: Seat) -> Result<(u64, Option<usize>), Error> {
    let mut number = 0;
    let mut received = 0;
    while !seat.stopping() || pair.tx.outstanding() > 0 {
        if number < FRAMES && pair.tx.push(&frame(number, 100))? == PushResult::Queued {
            number += 1;
        }
        pair.tx.flush()?;
        pair.tx.reap()?;
        received += pair.rx.receive(64, |_| ())? as u64;
        seat.publish(&pair);
        pair.rx.relax();
        seat.wait(Duration::ZERO)?;
    }
    Ok((received, seat.cpu()))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_pair_works_on_its_thread_and_its_counters_are_read_from_outside() {
    let (card, mut device, pairs) = open(Wakeup::Polled);
    for pair in 0..PAIRS {
        let frames = (0..u64::from(10 * (pair + 1))).map(|n| frame(n, 80));
        card.model().to_receive[usize::from(pair)].extend(frames);
    }
    let workers = Workers::start(&mut device, pairs, &Placement::Free, |_| work).unwrap();
    until("frames move", || {
        let done = workers.stats().into_iter().filter(|stats| {
            let received = u64::from(10 * (stats.pair + 1));
            stats.tx.completed == FRAMES && stats.rx.frames == received
        });
        done.count() == usize::from(PAIRS)
    });
    assert_eq!(workers.running(), usize::from(PAIRS));
    let stats = workers.stats();
    assert_eq!(
        (stats[2].tx.bytes, stats[2].rx.bytes),
        (100 * FRAMES, 30 * 80)
    );
    workers.stop();
    let results = workers.join().into_iter().map(|result| result.unwrap().0);
    assert_eq!(results.collect::<Vec<_>>(), [10, 20, 30, 40]);
    // Of each queue, in order.
    let model = card.model();
    for queue in [1, 3, 5, 7] {
        let sent = model.sent.iter().filter(|(from, _)| *from == queue);
        let numbers = sent.map(|(_, bytes)| bytes[12..].to_vec());
        let expected = (0..FRAMES).map(|n| frame(n, 100));
        assert!(numbers.eq(expected), "queue {queue}");
    }
}

#[test]
fn threads_are_on_the_cpus_that_were_named_and_elsewhere_if_they_may_not() {
    let allowed = allowed_cpus();
    assert!(!allowed.is_empty());
    let on = |placement| {
        let (_card, mut device, pairs) = open(Wakeup::Polled);
        let workers = Workers::start(&mut device, pairs, &placement, |_| {
            |pair, seat: Seat| -> Result<_, Error> {
                drop::<QueuePair>(pair);
                Ok((seat.cpu(), allowed_cpus()))
            }
        });
        let results = workers.unwrap().join().into_iter().map(Result::unwrap);
        results.collect::<Vec<_>>()
    };
    for (n, (cpu, may)) in on(Placement::Spread).into_iter().enumerate() {
        let expected = allowed[n % allowed.len()];
        assert_eq!((cpu, may), (Some(expected), vec![expected]));
    }
    let last = *allowed.last().unwrap();
    for (cpu, may) in on(Placement::Cpus(vec![last])) {
        assert_eq!((cpu, may), (Some(last), vec![last]));
    }
    // No machine has it.
    for (cpu, may) in on(Placement::Cpus(vec![1023, 1 << 20])) {
        assert_eq!((cpu, may), (None, allowed.clone()));
    }
    for (cpu, may) in on(Placement::Free) {
        assert_eq!((cpu, may), (None, allowed.clone()));
    }
}

fn readable(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
}

#[test]
fn thread_that_fails_stops_the_others_and_says_why() {
    let (_card, mut device, pairs) = open(Wakeup::Polled);
    let workers = Workers::start(&mut device, pairs, &Placement::Free, |number| {
        move |pair, seat| match number {
            1 => Err(Error::NeedsReset),
            _ => work(pair, seat),
        }
    });
    let workers = workers.unwrap();
    until("the end of a thread is told", || readable(&workers));
    until("the others follow", || workers.running() == 0);
    let results = workers.join();
    let failed = results.iter().map(|result| result.is_err());
    assert_eq!(failed.collect::<Vec<_>>(), [false, true, false, false]);
}

#[test]
fn thread_that_ends_well_leaves_the_others() {
    let (_card, mut device, pairs) = open(Wakeup::Polled);
    let workers = Workers::start(&mut device, pairs, &Placement::Free, |number| {
        move |pair, seat| match number {
            1 => Ok((0, None)),
            _ => work(pair, seat),
        }
    });
    let workers = workers.unwrap();
    until("the end of a thread is told", || readable(&workers));
    until("one has ended", || workers.running() == 3);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(workers.running(), 3);
    workers.stop();
    assert!(workers.join().iter().all(Result::is_ok));
}

#[test]
fn panic_of_a_thread_is_handed_on_when_all_have_ended() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    let (card, mut device, pairs) = open(Wakeup::Polled);
    let workers = Workers::start(&mut device, pairs, &Placement::Free, |number| {
        move |pair: QueuePair, seat| {
            assert_ne!(number, 2, "for the test");
            let result = work(pair, seat);
            ENDED.fetch_add(1, Ordering::SeqCst);
            result
        }
    });
    let workers = workers.unwrap();
    let join = std::panic::AssertUnwindSafe(|| workers.join());
    let panic = std::panic::catch_unwind(join).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("for the test"), "{said}");
    assert_eq!(ENDED.load(Ordering::SeqCst), 3);
    // The card is reset before its memory goes, as always.
    drop(device);
    assert_eq!(card.regions(), 0);
    assert_eq!(card.model().status, 0);
}

#[test]
fn workers_that_are_dropped_stop() {
    let (card, mut device, pairs) = open(Wakeup::Polled);
    drop(Workers::start(&mut device, pairs, &Placement::Free, |_| work).unwrap());
    device.close().unwrap();
    assert_eq!(card.regions(), 0);
}

/// A card in the same process is driven by one thread; nothing was started then.
#[test]
fn interrupts_that_cannot_be_parted_are_told() {
    let (card, mut device, pairs) = open(Wakeup::Interrupt);
    let result = Workers::start(&mut device, pairs, &Placement::Free, |_| work);
    let Err(Error::Pci(PciError::Unsupported(why))) = result else {
        panic!("it started");
    };
    assert!(why.contains("one thread"), "{why}");
    drop(device);
    assert_eq!(card.regions(), 0);
}
