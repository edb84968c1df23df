//! S3-R8: packets of a flow do not overtake each other, whoever sends them and wherever.

use std::collections::VecDeque;

use ferronic::xps::{Flow, InFlight, Mask, Packet, Rule, Socket, Xps};
use ferronic_oracle::Rng;
use ferronic_oracle::steering::queues::{Order, Queues};

use crate::{card, from, list};

/// CPU 0 sends on queue 0, which is slow, CPU 1 on queue 1.
fn slow_and_fast() -> Xps {
    let xps = card(2, 2);
    xps.set_cpus(0, &list("0", 2)).unwrap();
    xps.set_cpus(1, &list("1", 2)).unwrap();
    xps
}

#[test]
fn s3_r8_sender_that_moves_stays_on_its_queue_until_nothing_is_in_flight() {
    let xps = slow_and_fast();
    let mut queues = Queues::new([100, 1]);
    let mut flow = Flow::new(0xdead_beef);
    let mut order = Order::default();
    let mut send = |queues: &mut Queues<(u64, InFlight)>, number, cpu| {
        let (pick, flight) = flow.send(&xps.view(), cpu, 0);
        queues.send(usize::from(pick.queue), (number, flight));
        (pick.queue, pick.by)
    };
    assert_eq!(send(&mut queues, 0, 0), (0, Rule::CpuMap));
    assert_eq!(send(&mut queues, 1, 0), (0, Rule::Socket));
    // The sender has moved.
    assert_eq!(send(&mut queues, 2, 1), (0, Rule::Socket));
    let (queue, (number, flight)) = queues.leave(100).unwrap();
    assert_eq!((queue, number), (0, 0));
    order.arrive(0, number);
    drop(flight);
    // Two are on their way.
    assert_eq!(send(&mut queues, 3, 1), (0, Rule::Socket));
    while let Some((_, (number, flight))) = queues.leave(400) {
        order.arrive(0, number);
        drop(flight);
    }
    // None is.
    assert_eq!(send(&mut queues, 4, 1), (1, Rule::CpuMap));
    assert_eq!(send(&mut queues, 5, 0), (1, Rule::Socket));
    while let Some((_, (number, flight))) = queues.leave(1000) {
        order.arrive(0, number);
        drop(flight);
    }
    assert_eq!(order.reordered(), 0);
}

/// What the kernel does with a sender whose bytes were given back at once: it seems to have nothing
/// in flight, and the third frame overtakes. The model shows it, so that the test above means something.
#[test]
fn s3_r8_bytes_given_back_early_are_no_sign_that_nothing_is_in_flight() {
    let xps = slow_and_fast();
    let mut queues = Queues::new([100, 1]);
    let mut socket = Socket::new();
    let mut order = Order::default();
    for (number, cpu) in [(0, 0), (1, 0), (2, 1)] {
        let orphaned = Packet {
            ooo_okay: true,
            ..from(cpu, 0xdead_beef)
        };
        let pick = xps.view().pick(&orphaned, Some(&mut socket));
        queues.send(usize::from(pick.queue), number);
    }
    while let Some((_, number)) = queues.leave(1000) {
        order.arrive(0, number);
    }
    assert_eq!(order.reordered(), 2);
}

#[test]
fn s3_r8_only_the_first_segment_of_a_burst_may_change_the_queue() {
    let xps = slow_and_fast();
    let mut flow = Flow::new(1);
    drop(flow.send(&xps.view(), 0, 0));
    assert_eq!((flow.socket().queue(), flow.in_flight()), (Some(0), 0));
    // The sender moves, and moves back while the segments are being queued.
    let view = xps.view();
    let cpus = [1, 0, 0, 1];
    let burst: Vec<_> = cpus.map(|cpu| flow.send(&view, cpu, 0)).into();
    let chosen = burst.iter().map(|(pick, _)| (pick.queue, pick.by));
    let stay = (1, Rule::Socket);
    assert_eq!(
        chosen.collect::<Vec<_>>(),
        [(1, Rule::CpuMap), stay, stay, stay]
    );
    assert_eq!(flow.in_flight(), 4);
    drop(burst);
    assert_eq!(flow.in_flight(), 0);
}

struct Sender {
    flow: Flow,
    cpu: u32,
    sent: u64,
}

struct Frame {
    flow: usize,
    number: u64,
    flight: InFlight,
}

/// A million packets of 500 flows over 64 queues of different speeds. Senders move, masks change,
/// receive queues are recorded, queues go out of use and come back.
#[test]
fn s3_r8_million_packets_over_64_queues_keep_their_order() {
    const QUEUES: u16 = 64;
    let seed = 20;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let xps = card(QUEUES, QUEUES);
    let periods = (0..QUEUES).map(|_| rng.range(1, 200));
    let mut queues = Queues::new(periods.collect::<Vec<_>>());
    let mut order = Order::default();
    let mut senders: Vec<Sender> = (0..500)
        .map(|_| Sender {
            flow: Flow::new(rng.next_u64() as u32),
            cpu: rng.below(u64::from(QUEUES)) as u32,
            sent: 0,
        })
        .collect();
    let (mut arrived, mut flushed, mut changed) = (0u64, 0u64, 0u64);
    let mut used = [0u64; QUEUES as usize];
    let mut last = vec![None; senders.len()];
    let mut arrive = |queue: usize, frame: Frame, order: &mut Order| {
        order.arrive(frame.flow, frame.number);
        used[queue] += 1;
        changed += u64::from(last[frame.flow].replace(queue).is_some_and(|q| q != queue));
        drop(frame.flight);
    };
    for step in 0..1_000_000u64 {
        if rng.below(2000) == 0 {
            let bits = usize::from(QUEUES);
            let some = (0..bits).filter(|_| rng.chance(10)).collect::<Vec<_>>();
            let mask = Mask::of(some, bits).unwrap();
            let queue = rng.below(u64::from(xps.queues())) as u16;
            match rng.below(3) {
                0 => xps.set_rxqs(queue, &mask).unwrap(),
                _ => xps.set_cpus(queue, &mask).unwrap(),
            }
        }
        if rng.below(50_000) == 0 {
            let count = rng.range(1, u64::from(QUEUES)) as u16;
            xps.set_queues(count, |dead| {
                for queue in dead {
                    flushed += queues.flush(usize::from(queue)).count() as u64;
                }
            })
            .unwrap();
        }
        let index = rng.below(senders.len() as u64) as usize;
        let sender = &mut senders[index];
        if rng.chance(5) {
            sender.cpu = rng.below(u64::from(QUEUES)) as u32;
        }
        if rng.chance(2) {
            let rx_queue = rng.chance(70).then(|| rng.below(u64::from(QUEUES)) as u16);
            sender.flow.socket_mut().record_rx(rx_queue);
        }
        let (pick, flight) = sender.flow.send(&xps.view(), sender.cpu, 0);
        assert!(pick.queue < xps.queues(), "step {step}");
        let frame = Frame {
            flow: index,
            number: sender.sent,
            flight,
        };
        sender.sent += 1;
        // A queue that is full makes its sender wait.
        while queues.len(usize::from(pick.queue)) >= 32 {
            let until = queues.now() + 1;
            if let Some((queue, frame)) = queues.leave(until) {
                arrived += 1;
                arrive(queue, frame, &mut order);
            }
        }
        queues.send(usize::from(pick.queue), frame);
        let until = queues.now() + rng.below(4);
        while let Some((queue, frame)) = queues.leave(until) {
            arrived += 1;
            arrive(queue, frame, &mut order);
        }
    }
    while let Some((queue, frame)) = queues.leave(u64::MAX) {
        arrived += 1;
        arrive(queue, frame, &mut order);
    }
    assert_eq!(order.reordered(), 0, "seed {seed}");
    assert_eq!(arrived + flushed, 1_000_000);
    // It was no small thing: all queues were used, flows changed theirs, some packets were flushed.
    assert!(used.iter().all(|count| *count > 0), "{used:?}");
    assert!(
        changed > 10_000 && flushed > 0,
        "{changed} changes, {flushed} flushed"
    );
    assert!(senders.iter().all(|sender| sender.flow.in_flight() == 0));
}

/// The count is right whichever thread completes a packet.
#[test]
fn s3_r8_packets_may_be_completed_by_another_thread() {
    let xps = slow_and_fast();
    let (give, take) = std::sync::mpsc::channel::<VecDeque<InFlight>>();
    std::thread::scope(|scope| {
        scope.spawn(move || take.into_iter().for_each(drop));
        let mut flow = Flow::new(7);
        for round in 0..2000 {
            let before = flow.socket().queue();
            let mut batch = VecDeque::new();
            for _ in 0..5 {
                let (pick, flight) = flow.send(&xps.view(), round % 2, 0);
                if flow.in_flight() > 1 && batch.len() > 1 {
                    assert_eq!(Some(pick.queue), flow.socket().queue());
                }
                batch.push_back(flight);
            }
            assert!(before.is_none() || flow.in_flight() >= 5);
            give.send(batch).unwrap();
            if round % 64 == 0 {
                while flow.in_flight() > 0 {
                    std::thread::yield_now();
                }
            }
        }
        drop(give);
        while flow.in_flight() > 0 {
            std::thread::yield_now();
        }
    });
}
