//! Senders that share a transmit queue: their budgets, their waiting, their memory.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::completion::{CompletionError, CompletionPolicy, Push, SenderId, TxPort};
use ferronic::pci::PciFunction;
use ferronic::spec::net::HEADER_LEN;
use ferronic::{Device, DeviceConfig, DmaBuffer, Error, TxOffload, TxPart, Wakeup};
use support::{Function, OFFER, SoftCard, frame};

const RING: u16 = 64;
const LEN: usize = 100;

/// Numbers that look random, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Bench {
    card: Arc<SoftCard>,
    device: Device,
    port: TxPort,
    sent: u64,
}

fn under(policy: CompletionPolicy) -> Bench {
    let card = SoftCard::telling(OFFER, 1, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let config = DeviceConfig {
        wakeup: Wakeup::Interrupt,
        ring_size: Some(RING),
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(function, config).unwrap();
    let mut tx = pairs.remove(0).tx;
    device.set_completion(&mut tx, policy).unwrap();
    Bench {
        card,
        device,
        port: TxPort::new(tx),
        sent: 0,
    }
}

/// Policies by what they do with a sender's bytes.
fn holding() -> impl Iterator<Item = CompletionPolicy> {
    let all = CompletionPolicy::ALL.into_iter();
    all.filter(|policy| !policy.name().starts_with("orphan"))
}

impl Bench {
    fn try_send(&mut self, id: SenderId) -> Push {
        let bytes = frame(self.sent, LEN);
        let push = self
            .port
            .send(id, &[TxPart::Bytes(&bytes)], TxOffload::None);
        let push = push.unwrap();
        self.sent += u64::from(push == Push::Queued);
        push
    }

    /// Sends until something stands in the way; how many frames went, and what it was.
    fn fill(&mut self, id: SenderId) -> (u64, Push) {
        let before = self.sent;
        loop {
            match self.try_send(id) {
                Push::Queued => {}
                other => return (self.sent - before, other),
            }
        }
    }

    /// Fills the ring with the first one's frames, and has all of them wait.
    fn fill_from(&mut self, ids: &[SenderId]) {
        assert_eq!(self.fill(ids[0]).1, Push::NoRoom);
        for id in &ids[1..] {
            assert_eq!(self.try_send(*id), Push::NoRoom);
        }
    }

    fn asleep(self) -> Self {
        self.card.model().awake = false;
        self
    }

    /// Lets the card complete everything, and the driver find it, as the policy has it.
    fn complete(&mut self) {
        self.port.flush().unwrap();
        self.card.model().awake = true;
        let due = self.port.tick(Duration::ZERO).unwrap();
        if let Some(card) = &mut self.card.model().ring_empty {
            card.aged = true;
        }
        match self.device.wait(Duration::from_secs(1)).unwrap() {
            Some(_) => drop(self.port.service().unwrap()),
            None => drop(
                self.port
                    .tick(due.expect("no interrupt and no timer"))
                    .unwrap(),
            ),
        }
        while let Some(due) = self.port.tick(Duration::ZERO).unwrap() {
            self.port.tick(due).unwrap();
        }
    }

    fn ready(&mut self) -> Vec<SenderId> {
        std::iter::from_fn(|| self.port.next_ready()).collect()
    }
}

#[test]
fn budget_holds_a_sender_until_half_of_it_is_back() {
    for policy in holding() {
        let mut bench = under(policy).asleep();
        let one = bench.port.open(10 * LEN + 99);
        let two = bench.port.open(2 * LEN);
        assert_eq!(bench.fill(one), (10, Push::NoBudget), "{policy}");
        assert_eq!(bench.port.charged(one).unwrap(), 10 * LEN);
        // The other is not held by that.
        assert_eq!(bench.fill(two), (2, Push::NoBudget));
        assert_eq!(bench.ready(), []);
        // Two frames complete: not yet worth a wake-up.
        bench.port.flush().unwrap();
        bench.card.model().awake = true;
        bench.card.model().tx_per_run = 2;
        bench.card.run();
        bench.card.model().awake = false;
        bench.port.service().unwrap();
        assert_eq!(bench.port.charged(one).unwrap(), 8 * LEN);
        assert_eq!(bench.ready(), []);
        bench.card.model().tx_per_run = usize::MAX;
        bench.complete();
        assert_eq!(bench.ready(), [one, two], "{policy}");
        assert_eq!(bench.port.charged(one).unwrap(), 0);
        assert_eq!(bench.card.model().sent.len(), 12);
    }
}

/// The default does not let a sender wait for the queue to run empty, nor for a timer.
#[test]
fn sender_that_waits_is_told_in_the_middle_by_the_default() {
    let mut bench = under(CompletionPolicy::DEFAULT).asleep();
    let (one, two) = (bench.port.open(10 * LEN), bench.port.open(6 * LEN));
    assert_eq!(bench.fill(one), (10, Push::NoBudget));
    assert_eq!(bench.fill(two), (6, Push::NoBudget));
    bench.card.model().awake = true;
    bench.card.model().tx_per_run = 1;
    let mut told = Vec::new();
    for used in 1..=17 {
        if bench.device.wait(Duration::from_secs(1)).unwrap().is_some() {
            bench.port.service().unwrap();
            told.push((used, bench.ready()));
        }
    }
    // Half of 10, when the first had to wait. The other needs half of its 6, which are the last of 11;
    // then 2 of its last 5. The last are told of when the queue was found empty.
    let expected = [(5, vec![one]), (11, vec![]), (13, vec![two]), (17, vec![])];
    assert_eq!(told, expected);
    // Who closes waits, too.
    bench.card.model().awake = false;
    assert_eq!(bench.fill(two), (6, Push::NoBudget));
    assert!(!bench.port.close(two).unwrap());
    bench.card.model().awake = true;
    bench.card.model().tx_per_run = 5;
    assert!(bench.device.wait(Duration::from_secs(1)).unwrap().is_some());
    // One is not enough of three, so it is not told of.
    let mut bench = under(CompletionPolicy::DEFAULT).asleep();
    let three = bench.port.open(3 * LEN + 10);
    assert_eq!(bench.fill(three), (3, Push::NoBudget));
    bench.card.model().awake = true;
    bench.card.model().tx_per_run = 1;
    assert_eq!(bench.device.wait(Duration::from_secs(1)).unwrap(), None);
    assert!(bench.device.wait(Duration::from_secs(1)).unwrap().is_some());
    bench.port.service().unwrap();
    assert_eq!(bench.ready(), [three]);
}

/// S2-R1: whoever runs first holds his budget and no more.
#[test]
fn greedy_sender_holds_no_more_than_its_budget() {
    for policy in holding() {
        let mut bench = under(policy);
        bench.card.model().tx_per_run = 8;
        let budget = 16 * LEN;
        let ids: Vec<_> = (0..3).map(|_| bench.port.open(budget)).collect();
        let mut counts = [0; 3];
        for _ in 0..400 {
            for (id, count) in ids.iter().zip(&mut counts) {
                // Always in the same order, as much as goes.
                *count += bench.fill(*id).0;
                assert!(bench.port.charged(*id).unwrap() <= budget);
            }
            bench.port.flush().unwrap();
            bench.card.run();
            bench.port.service().unwrap();
        }
        let sum: u64 = counts.iter().sum();
        let squares: u64 = counts.iter().map(|c| c * c).sum();
        let jain = (sum * sum) as f64 / (3 * squares) as f64;
        assert!(jain >= 0.95, "{policy}: {counts:?}");
    }
}

/// What the brake is worth: without it the first one takes everything.
#[test]
fn orphaned_frames_let_the_first_sender_take_the_ring() {
    let mut bench = under("orphan".parse().unwrap()).asleep();
    let ids: Vec<_> = (0..3).map(|_| bench.port.open(16 * LEN)).collect();
    assert_eq!(bench.fill(ids[0]), (u64::from(RING), Push::NoRoom));
    assert_eq!(bench.fill(ids[1]), (0, Push::NoRoom));
    assert_eq!(bench.port.charged(ids[0]).unwrap(), 0);
    // Unless more than half of the ring is taken.
    let mut bench = under("orphan-half".parse().unwrap()).asleep();
    let ids: Vec<_> = (0..3).map(|_| bench.port.open(16 * LEN)).collect();
    let half = u64::from(RING) / 2 + 1;
    assert_eq!(bench.fill(ids[0]), (half + 16, Push::NoBudget));
    assert_eq!(bench.fill(ids[1]), (64 - half - 16, Push::NoRoom));
}

#[test]
fn full_ring_stops_senders_and_wakes_them_in_their_order() {
    for policy in CompletionPolicy::ALL {
        let mut bench = under(policy).asleep();
        let ids: Vec<_> = (0..4).map(|_| bench.port.open(1 << 20)).collect();
        assert_eq!(bench.fill(ids[2]), (u64::from(RING), Push::NoRoom));
        for id in [2, 0, 3, 0, 1] {
            assert_eq!(bench.try_send(ids[id]), Push::NoRoom, "{policy}");
        }
        assert_eq!(bench.ready(), []);
        bench.card.model().awake = true;
        // By an interrupt, even of those that otherwise have none.
        let event = bench.device.wait(Duration::from_secs(1)).unwrap();
        assert!(event.is_some(), "{policy}: nobody wakes them");
        bench.port.service().unwrap();
        assert_eq!(bench.ready(), [2, 0, 3, 1].map(|id| ids[id]), "{policy}");
        for id in ids {
            assert_eq!(bench.try_send(id), Push::Queued);
        }
    }
}

/// Send buffers that are larger than the ring, and a scheduler that always runs the first one first.
#[test]
fn ring_that_is_too_small_for_all_is_shared_alike_by_the_default() {
    let jain = |policy: CompletionPolicy| {
        let mut bench = under(policy);
        bench.card.model().tx_per_run = 8;
        let ids: Vec<_> = (0..5).map(|_| bench.port.open(1 << 20)).collect();
        let mut counts = [0u64; 5];
        let mut runnable = [true; 5];
        for _ in 0..600 {
            while let Some(at) = runnable.iter().position(|run| *run) {
                match bench.try_send(ids[at]) {
                    Push::Queued => counts[at] += 1,
                    _ => runnable[at] = false,
                }
                bench.port.flush().unwrap();
            }
            bench.card.run();
            if bench.device.wait(Duration::from_secs(1)).unwrap().is_some() {
                bench.port.service().unwrap();
            }
            for id in bench.ready() {
                runnable[ids.iter().position(|other| *other == id).unwrap()] = true;
            }
            assert!(
                bench.port.queue().outstanding() > 0,
                "{policy}: all wait for ever"
            );
        }
        let sum: u64 = counts.iter().sum();
        assert!(sum >= 600 * 8 / 2, "{policy}: {counts:?}");
        let squares: u64 = counts.iter().map(|c| c * c).sum();
        (sum * sum) as f64 / (5 * squares) as f64
    };
    assert!(jain(CompletionPolicy::DEFAULT) >= 0.95);
    assert!(jain(CompletionPolicy::RingEmpty) < 0.6);
}

/// Room that is kept for one that does not come back is given to others.
#[test]
fn turn_that_is_not_taken_holds_nobody_for_long() {
    let mut bench = under(CompletionPolicy::DEFAULT).asleep();
    let ids: Vec<_> = (0..4).map(|_| bench.port.open(1 << 20)).collect();
    bench.fill_from(&ids);
    bench.card.model().awake = true;
    bench.card.model().tx_per_run = 4;
    let mut sent = 0;
    for _ in 0..200 {
        if bench.device.wait(Duration::from_secs(1)).unwrap().is_some() {
            bench.port.service().unwrap();
        }
        // The others never send again; one of them is closed.
        for id in bench.ready() {
            if id == ids[3] {
                sent += bench.fill(id).0;
            }
        }
        bench.port.flush().unwrap();
    }
    assert!(sent >= 300, "{sent}");
    assert!(bench.port.close(ids[0]).is_ok());
}

#[test]
fn closing_waits_for_the_bytes_of_the_sender_and_no_longer() {
    for policy in holding() {
        let mut bench = under(policy).asleep();
        let (one, two) = (bench.port.open(1000), bench.port.open(1000));
        for id in [one, two, two] {
            assert_eq!(bench.try_send(id), Push::Queued);
        }
        assert!(!bench.port.close(one).unwrap());
        assert_eq!(bench.port.next_closed(), None);
        let gone = bench
            .port
            .send(one, &[TxPart::Bytes(&frame(0, LEN))], TxOffload::None);
        assert!(matches!(
            gone,
            Err(Error::Completion(CompletionError::NoSender))
        ));
        assert!(bench.port.close(one).is_err(), "twice");
        // The first frame is all it waits for; the others are still with the card.
        bench.card.model().awake = true;
        bench.card.model().tx_per_run = 1;
        bench.card.run();
        bench.card.model().awake = false;
        bench.port.service().unwrap();
        assert_eq!(bench.port.next_closed(), Some(one), "{policy}");
        assert_eq!(bench.port.charged(two).unwrap(), 2 * LEN);
        // Its place can be had, its name cannot.
        let three = bench.port.open(1000);
        assert_ne!(three, one);
        assert!(bench.port.charged(one).is_err());
        assert_eq!(bench.port.charged(three).unwrap(), 0);
        bench.card.model().tx_per_run = usize::MAX;
        bench.complete();
        assert!(bench.port.close(two).unwrap() && bench.port.close(three).unwrap());
    }
}

#[test]
fn orphaned_sender_closes_at_once() {
    let mut bench = under("orphan".parse().unwrap()).asleep();
    let one = bench.port.open(1000);
    assert_eq!(bench.try_send(one), Push::Queued);
    assert!(bench.port.close(one).unwrap());
    bench.complete();
    assert_eq!(bench.card.model().sent.len(), 1);
}

fn payload(buffer: &DmaBuffer, byte: u8) {
    buffer.write(0, &[byte; 500]).unwrap();
}

/// Bug-log row 14, S2-R6: whoever has his bytes back writes to his memory at once.
#[test]
fn overwriting_a_buffer_whose_bytes_are_back_changes_nothing() {
    for policy in CompletionPolicy::ALL {
        let mut bench = under(policy);
        bench.card.model().tx_per_run = 3;
        let buffer = bench.device.buffer(4096).unwrap();
        let one = bench.port.open(514);
        let head = frame(1, 14);
        for byte in 0..200 {
            payload(&buffer, byte);
            let parts = [
                TxPart::Bytes(&head),
                TxPart::Shared(buffer.slice(0, 500).unwrap()),
            ];
            let mut now = Duration::ZERO;
            while bench.port.send(one, &parts, TxOffload::None).unwrap() != Push::Queued {
                bench.card.run();
                bench.port.service().unwrap();
            }
            bench.port.flush().unwrap();
            while bench.port.charged(one).unwrap() > 0 {
                now += Duration::from_secs(1);
                bench.card.run();
                bench.port.service().unwrap();
                bench.port.tick(now).unwrap();
            }
            payload(&buffer, 0xee);
        }
        for _ in 0..100 {
            bench.card.run();
        }
        bench.port.service().unwrap();
        let sent = std::mem::take(&mut bench.card.model().sent);
        assert_eq!(sent.len(), 200, "{policy}");
        for ((_, bytes), byte) in sent.iter().zip(0u8..) {
            let body = &bytes[HEADER_LEN + 14..];
            assert!(body.iter().all(|b| *b == byte), "{policy}: frame {byte}");
        }
    }
}

/// The memory of a frame that is charged stays the card's, whoever lets go of it.
#[test]
fn shared_memory_is_kept_until_the_card_has_read_it() {
    for policy in CompletionPolicy::ALL {
        let mut bench = under(policy).asleep();
        let one = bench.port.open(1000);
        let regions = bench.card.regions();
        let buffer = bench.device.buffer(4096).unwrap();
        payload(&buffer, 7);
        let head = frame(1, 14);
        let parts = [
            TxPart::Bytes(&head),
            TxPart::Shared(buffer.slice(0, 500).unwrap()),
        ];
        let push = bench.port.send(one, &parts, TxOffload::None).unwrap();
        assert_eq!(push, Push::Queued);
        drop(buffer);
        let kept = usize::from(!policy.name().starts_with("orphan"));
        assert_eq!(bench.card.regions(), regions + kept, "{policy}");
        bench.complete();
        assert_eq!(bench.card.regions(), regions, "{policy}");
        assert!(bench.card.model().sent[0].1[HEADER_LEN + 14..] == [7; 500]);
    }
}

#[test]
fn bytes_come_back_with_a_reset_and_after_errors() {
    let mut bench = under(CompletionPolicy::DEFAULT).asleep();
    let one = bench.port.open(1000);
    let short = bench
        .port
        .send(one, &[TxPart::Bytes(&[0; 5])], TxOffload::None);
    assert!(matches!(short, Err(Error::FrameLength { .. })));
    assert_eq!(bench.port.charged(one).unwrap(), 0);
    let long = bench
        .port
        .send(one, &[TxPart::Bytes(&[0; 1001])], TxOffload::None);
    assert!(matches!(
        long,
        Err(Error::Completion(CompletionError::Budget {
            len: 1001,
            budget: 1000
        }))
    ));
    assert_eq!(bench.fill(one), (10, Push::NoBudget));
    bench.port.flush().unwrap();
    bench.device.reset_queue_tx(bench.port.queue_mut()).unwrap();
    bench.port.service().unwrap();
    assert_eq!(bench.ready(), [one]);
    assert_eq!(bench.port.charged(one).unwrap(), 0);
    assert_eq!(bench.try_send(one), Push::Queued);
    bench.complete();
    assert_eq!(bench.card.model().sent.len(), 1);
}

/// Many senders come and go; nothing is lost, and nobody gets another's bytes.
#[test]
fn accounts_balance_after_any_history() {
    for policy in CompletionPolicy::ALL {
        let mut bench = under(policy);
        bench.card.model().tx_per_run = 5;
        let mut seed = Random(7);
        let mut open: Vec<SenderId> = Vec::new();
        let mut closing = 0;
        for step in 0..4000u64 {
            match seed.below(8) {
                0 if open.len() < 12 => open.push(bench.port.open(300 + 50 * LEN)),
                1 if !open.is_empty() => {
                    let id = open.swap_remove(seed.below(open.len() as u64) as usize);
                    closing += usize::from(!bench.port.close(id).unwrap());
                }
                2 => bench.card.run(),
                3 => drop(bench.port.service().unwrap()),
                4 => drop(bench.port.tick(Duration::from_millis(step)).unwrap()),
                _ if !open.is_empty() => {
                    let id = open[seed.below(open.len() as u64) as usize];
                    let _ = bench.try_send(id);
                }
                _ => {}
            }
            bench.port.flush().unwrap();
            closing -= std::iter::from_fn(|| bench.port.next_closed()).count();
        }
        for _ in 0..100 {
            bench.card.run();
            bench.port.service().unwrap();
        }
        closing -= std::iter::from_fn(|| bench.port.next_closed()).count();
        assert_eq!(closing, 0, "{policy}");
        for id in open {
            assert_eq!(bench.port.charged(id).unwrap(), 0, "{policy}");
        }
        assert_eq!(bench.card.model().sent.len() as u64, bench.sent);
        assert_eq!(bench.port.queue().outstanding(), 0);
    }
}
