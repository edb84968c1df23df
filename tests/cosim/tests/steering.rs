//! Transmit steering on the whole card: flows whose senders move between its queues.

use ferronic::completion::{CompletionPolicy, HOLDOFF, MAX_AGE, PERIOD};
use ferronic::xps::{Cpus, Flow, InFlight, Lane, Mask, Packet, Sent, Xps};
use ferronic::{DeviceConfig, TxOffload, TxPart, Wakeup};
use ferronic_cosim_tests::card::{Card, PATIENCE};
use ferronic_oracle::Rng;
use ferronic_oracle::steering::queues::Order;
use ferronic_sim::SimConfig;

const PAIRS: u16 = 4;
const FLOWS: usize = 6;

/// Four lanes, each that of one CPU.
struct Bench {
    card: Card,
    lanes: Vec<Lane>,
    xps: Xps,
    rng: Rng,
}

impl Bench {
    fn new(seed: u64, policy: Option<CompletionPolicy>) -> Self {
        let driver = DeviceConfig {
            queue_pairs: PAIRS,
            ring_size: Some(32),
            wakeup: Wakeup::Interrupt,
            ..DeviceConfig::default()
        };
        let mut card = Card::open(SimConfig::adversarial(seed), driver);
        let pairs = std::mem::take(&mut card.pairs);
        let lanes = pairs.into_iter().map(|pair| {
            let mut tx = pair.tx;
            if let Some(policy) = policy {
                card.device.set_completion(&mut tx, policy).unwrap();
            }
            Lane::new(tx)
        });
        let lanes = lanes.collect();
        let xps = Xps::new(PAIRS, PAIRS, Cpus::new(PAIRS)).unwrap();
        for queue in 0..PAIRS {
            let own = Mask::of([usize::from(queue)], usize::from(PAIRS)).unwrap();
            xps.set_cpus(queue, &own).unwrap();
        }
        Self {
            card,
            lanes,
            xps,
            rng: Rng::new(seed),
        }
    }

    /// What is not the flows' own: it makes a queue slow for a while.
    fn load(&mut self) {
        let queue = self.rng.below(u64::from(PAIRS)) as usize;
        let mut other = Flow::new(queue as u32);
        for _ in 0..self.rng.below(12) {
            let (_, flight) = other.send(&self.xps.view(), queue as u32, 0);
            let sent =
                self.lanes[queue].send(flight, &[TxPart::Bytes(&[0xff; 4000])], TxOffload::None);
            // One that finds no room is not sent.
            drop(sent.unwrap());
        }
    }

    fn service(&mut self) {
        self.card.device.poll();
        for lane in &mut self.lanes {
            lane.flush().unwrap();
            lane.service().unwrap();
        }
    }

    /// Waits until nothing is in flight.
    fn settle(&mut self) {
        let begin = self.card.function.now();
        while self.lanes.iter().any(|lane| lane.in_flight() > 0) {
            self.service();
            assert!(
                self.card.function.now() - begin < PATIENCE,
                "frames stay in flight"
            );
        }
    }

    /// Sends frames of flows whose senders move; the order in which they arrive, and how often a flow
    /// changed its queue. `watched`: by what the card has completed; else as if that were all.
    fn run(&mut self, frames: u32, watched: bool) -> (Order, u32) {
        let mut flows: Vec<_> = (0..FLOWS).map(|n| (Flow::new(n as u32), 0, 0)).collect();
        let mut on = [None; FLOWS];
        let mut changes = 0;
        for _ in 0..frames {
            if self.rng.chance(5) {
                self.load();
            }
            let index = self.rng.below(FLOWS as u64) as usize;
            let (flow, cpu, sent) = &mut flows[index];
            if self.rng.chance(25) {
                *cpu = self.rng.below(u64::from(PAIRS)) as u32;
            }
            let (pick, flight) = flow.send(&self.xps.view(), *cpu, 0);
            let queue = if watched {
                pick.queue
            } else {
                let packet = Packet {
                    cpu: *cpu,
                    ..Packet::default()
                };
                self.xps.view().pick(&packet, None).queue
            };
            changes += u32::from(on[index].replace(queue).is_some_and(|on| on != queue));
            let mut frame = vec![index as u8; 60 + self.rng.below(200) as usize];
            frame[14..22].copy_from_slice(&u64::to_le_bytes(*sent));
            *sent += 1;
            self.push(usize::from(queue), flight, &frame);
            if self.rng.chance(30) {
                self.service();
            }
            // Now and then all is quiet, and flows may go where their senders are.
            if self.rng.chance(4) {
                self.settle();
            }
        }
        self.settle();
        let mut order = Order::default();
        let mut arrived = 0;
        let begin = self.card.function.now();
        while arrived < frames {
            self.service();
            for frame in self.card.wire.take_all() {
                if frame.data[0] < 0xff {
                    let number: [u8; 8] = frame.data[14..22].try_into().unwrap();
                    order.arrive(usize::from(frame.data[0]), u64::from_le_bytes(number));
                    arrived += 1;
                }
            }
            assert!(
                self.card.function.now() - begin < PATIENCE,
                "{arrived} came"
            );
        }
        (order, changes)
    }

    fn push(&mut self, queue: usize, mut flight: InFlight, frame: &[u8]) {
        let begin = self.card.function.now();
        loop {
            let sent = self.lanes[queue].send(flight, &[TxPart::Bytes(frame)], TxOffload::None);
            match sent.unwrap() {
                Sent::Queued => return,
                Sent::Full(again) => flight = again,
            }
            self.service();
            assert!(self.card.function.now() - begin < PATIENCE, "no room");
        }
    }
}

#[test]
fn flows_whose_senders_move_between_four_queues_keep_their_order() {
    let policies = [
        None,
        Some(CompletionPolicy::RingEmptyHoldoff {
            holdoff: HOLDOFF,
            max_age: MAX_AGE,
        }),
        Some(CompletionPolicy::Orphan { period: PERIOD }),
    ];
    for (seed, policy) in (0..).zip(policies) {
        println!("seed {seed}, {policy:?}");
        let mut bench = Bench::new(seed, policy);
        let (order, changes) = bench.run(1500, true);
        assert_eq!(order.reordered(), 0, "seed {seed}, {policy:?}");
        assert!(changes > 50, "{changes} changes, seed {seed}, {policy:?}");
    }
}

/// The same without regard to what is in flight: the card's queues do overtake each other.
#[test]
fn flows_that_change_their_queue_with_frames_in_flight_are_reordered_by_the_card() {
    let (order, _) = Bench::new(0, None).run(1500, false);
    assert!(order.reordered() > 10, "{}", order.reordered());
}
