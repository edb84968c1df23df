//! Random changes and random packets, compared with the oracle.

use std::collections::BTreeSet;

use ferronic::xps::{Mask, Packet, Socket, Xps, XpsError};
use ferronic_oracle::Rng;
use ferronic_oracle::steering::rules::{self, Kind, Refused, Rules};

use crate::{card, support::seeds};

/// The choice of a packet of this priority.
fn driver(packet: &Packet) -> Option<u16> {
    (packet.priority % 32 == 31).then_some(packet.hash as u16 % 80)
}

struct Pair {
    ours: Xps,
    theirs: Rules,
    cpus: usize,
    selects: bool,
}

fn set(rng: &mut Rng, beyond: usize) -> BTreeSet<u32> {
    let percent = rng.pick(&[0, 5, 30, 100]);
    (0..beyond as u32).filter(|_| rng.chance(percent)).collect()
}

fn mask(set: &BTreeSet<u32>, bits: usize) -> Mask {
    Mask::of(set.iter().map(|n| *n as usize), bits).unwrap()
}

impl Pair {
    fn same(what: &str, ours: Result<(), XpsError>, theirs: Result<(), Refused>) {
        match (&ours, &theirs) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(Refused)) => assert!(error.to_string().len() > 20, "{error}"),
            _ => panic!("{what}: {ours:?}, the oracle {theirs:?}"),
        }
    }

    fn change(&mut self, rng: &mut Rng) {
        let (xps, rules) = (&self.ours, &mut self.theirs);
        let queue = rng.below(u64::from(xps.tx_queues()) + 2) as u16;
        match rng.below(20) {
            0..8 => {
                let slack = usize::from(rng.chance(5));
                let set = set(rng, self.cpus + slack);
                let ours = xps.set_cpus(queue, &mask(&set, self.cpus + slack));
                Self::same("CPUs", ours, rules.set(Kind::Cpus, queue, &set));
            }
            8..12 => {
                let bits = usize::from(xps.rx_queues());
                let set = set(rng, bits);
                let ours = xps.set_rxqs(queue, &mask(&set, bits));
                Self::same(
                    "receive queues",
                    ours,
                    rules.set(Kind::RxQueues, queue, &set),
                );
            }
            12 => {
                let ours = xps.set_queues(queue, |_| ());
                Self::same("queues", ours.map(drop), rules.set_real(queue));
            }
            13 => {
                let count = rng.pick(&[0, 0, 1, 2, 5, 16, 17]);
                Self::same("classes", xps.set_classes(count), rules.set_classes(count));
            }
            14..17 => {
                let class = rng.below(6) as u8;
                let queues = queue..queue + rng.below(6) as u16;
                let ours = xps.set_class_queues(class, queues.clone());
                Self::same("class", ours, rules.set_class_queues(class, queues));
            }
            17 => {
                let (priority, class) = (rng.below(17) as u8, rng.below(6) as u8);
                let ours = xps.set_priority(priority, class);
                Self::same("priority", ours, rules.set_priority(priority, class));
            }
            18 => {
                let set = set(rng, self.cpus);
                let ours = xps.set_online(&mask(&set, self.cpus));
                Self::same("online", ours, rules.set_online(&set));
            }
            _ => {
                self.selects = rng.chance(20);
                let select = self.selects.then_some(driver as fn(&Packet) -> Option<u16>);
                xps.set_select(select).unwrap();
            }
        }
    }

    fn compare(&self, rng: &mut Rng, sockets: &mut [(Socket, rules::Socket)]) {
        for queue in 0..self.ours.tx_queues() + 2 {
            for kind in [Kind::Cpus, Kind::RxQueues] {
                let ours = match kind {
                    Kind::Cpus => self.ours.cpus(queue),
                    Kind::RxQueues => self.ours.rxqs(queue),
                };
                let ours = ours.map(|mask| mask.iter().map(|n| n as u32).collect());
                let ours = ours.map_err(|_| Refused);
                assert_eq!(ours, self.theirs.get(kind, queue), "{kind:?} of {queue}");
            }
        }
        let view = self.ours.view();
        for _ in 0..200 {
            let packet = Packet {
                cpu: rng.below(self.cpus as u64 + 2) as u32,
                hash: rng.next_u64() as u32,
                priority: rng.below(64) as u32,
                rx_queue: rng.chance(20).then(|| rng.below(100) as u16),
                ooo_okay: rng.chance(40),
            };
            let theirs = rules::Packet {
                cpu: packet.cpu,
                hash: packet.hash,
                priority: packet.priority,
                rx_queue: packet.rx_queue,
                ooo_okay: packet.ooo_okay,
                driver: self.selects.then(|| driver(&packet)).flatten(),
            };
            if rng.chance(20) {
                let expected = self.theirs.pick(&theirs, None);
                assert_eq!(view.pick(&packet, None).queue, expected, "{packet:?}");
                continue;
            }
            let index = rng.below(sockets.len() as u64) as usize;
            let (ours, oracle) = &mut sockets[index];
            if rng.chance(20) {
                let rx_queue = rng.chance(80).then(|| rng.below(70) as u16);
                ours.record_rx(rx_queue);
                oracle.rx_queue = rx_queue.map_or(-1, i32::from);
            }
            if rng.chance(5) {
                oracle.route = !oracle.route;
                ours.set_route(oracle.route);
                if !oracle.route {
                    oracle.queue = -1;
                }
            }
            let expected = self.theirs.pick(&theirs, Some(oracle));
            assert!(expected < view.queues());
            assert_eq!(view.pick(&packet, Some(ours)).queue, expected, "{packet:?}");
            assert_eq!(ours.queue().map_or(-1, i32::from), oracle.queue);
        }
    }
}

#[test]
fn random_changes_and_packets_are_answered_as_by_the_rules() {
    let seeds = std::env::var("FERRONIC_SEED").ok();
    let seeds = match seeds.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..60,
    };
    for seed in seeds {
        println!("FERRONIC_SEED={seed}");
        let mut rng = Rng::new(seed);
        let pairs = rng.pick(&[1, 2, 3, 8, 16, 64]);
        let cpus = rng.pick(&[1, 2, 8, 64, 130]);
        let mut pair = Pair {
            ours: card(pairs, cpus),
            theirs: Rules::new(pairs, pairs, u32::from(cpus)),
            cpus: usize::from(cpus),
            selects: false,
        };
        let mut sockets: Vec<_> = (0..20)
            .map(|index| {
                let full = index % 4 > 0;
                let ours = if full {
                    Socket::new()
                } else {
                    Socket::partial()
                };
                let oracle = rules::Socket {
                    queue: -1,
                    rx_queue: -1,
                    full,
                    route: true,
                };
                (ours, oracle)
            })
            .collect();
        for _ in 0..60 {
            for _ in 0..rng.range(1, 4) {
                pair.change(&mut rng);
            }
            pair.compare(&mut rng, &mut sockets);
        }
    }
}

/// The same masks, whatever the order in which they are set and whatever was set before, give the
/// same map.
#[test]
fn property_masks_give_the_same_map_in_any_order() {
    use proptest::prelude::*;
    let masks = prop::collection::vec(prop::collection::btree_set(0u32..12, 0..12), 8);
    let order = Just((0..8u16).collect::<Vec<_>>()).prop_shuffle();
    let before = prop::collection::vec(
        (0u16..8, prop::collection::btree_set(0u32..12, 0..12)),
        0..8,
    );
    seeds::runner(300)
        .run(&(masks, order, before), |(masks, order, before)| {
            let (one, other) = (card(8, 12), card(8, 12));
            for (queue, set) in &before {
                other.set_cpus(*queue, &mask(set, 12)).unwrap();
            }
            for queue in 0..8 {
                one.set_cpus(queue, &mask(&masks[usize::from(queue)], 12))
                    .unwrap();
                let other_queue = order[usize::from(queue)];
                let set = &masks[usize::from(other_queue)];
                other.set_cpus(other_queue, &mask(set, 12)).unwrap();
            }
            for cpu in 0..12 {
                for hash in (0..64).map(|n| crate::part(n, 64)) {
                    let packet = crate::from(cpu, hash);
                    prop_assert_eq!(
                        one.view().pick(&packet, None),
                        other.view().pick(&packet, None)
                    );
                }
            }
            Ok(())
        })
        .unwrap();
}
