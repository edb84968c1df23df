//! Lines of memory that move between CPUs, by who has them: one writer or many readers.
//!
//! Of the choice, the driver says itself what it reads (`View::pick_probed`), at the addresses where it
//! lies; what naive layouts read and write is spelled out here. CPUs send by turns.

use std::collections::VecDeque;

use ferronic::xps::{Cpus, Mask, Packet, Socket, Xps, XpsError};
use ferronic_figures::Figure;
use ferronic_oracle::steering::lines::{Access, Caches};

pub const TITLE: &str = "\
lines of 64 bytes that move between CPUs, a packet
  pick: the choice alone, while queue 0 is stopped or started after each packet; queue0: the pointer
    to the maps beside the state of queue 0; rwlock: a lock with a count of readers; refcount: a count
    of references that each choice takes
  send: choice, queue, descriptor, counters and completion on the queue's CPU, 8 flows a CPU; hash: no
    masks; all-masks: masks of all CPUs on all queues; single: one queue";

const PACKETS: u32 = 20_000;
/// What comes to a CPU once and stays is not counted.
const WARM: u32 = 4000;
const FLOWS: u32 = 8;
const RING: usize = 256;

/// A line of its own.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Line([u64; 8]);

fn address<T>(what: &T) -> usize {
    std::ptr::from_ref(what).addr()
}

fn card(cpus: u16, masks: impl Fn(u16) -> Mask) -> Result<Xps, XpsError> {
    let xps = Xps::new(cpus, cpus, Cpus::new(cpus))?;
    for queue in 0..cpus {
        xps.set_cpus(queue, &masks(queue))?;
    }
    Ok(xps)
}

/// Queue n for CPU n.
pub fn own(cpus: u16) -> Result<Xps, XpsError> {
    card(cpus, |queue| {
        let bits = usize::from(cpus);
        Mask::of([usize::from(queue)], bits).unwrap_or_else(|_| Mask::new(bits))
    })
}

/// What a choice reads.
fn read(xps: &Xps, packet: &Packet, socket: Option<&mut Socket>) -> (u16, Vec<usize>) {
    let mut reads = Vec::new();
    let view = xps.view_probed(&mut reads);
    let pick = view.pick_probed(packet, socket, &mut reads);
    (pick.queue, reads)
}

fn per_packet(moves: u64) -> f64 {
    moves as f64 / f64::from(PACKETS)
}

fn pick(layout: &str, cpus: u16) -> Result<f64, XpsError> {
    let xps = own(cpus)?;
    let queue0 = Line::default();
    let shared = Line::default();
    let mut caches = Caches::new();
    let mut before = 0;
    for number in 0..WARM + PACKETS {
        if number == WARM {
            before = caches.moves();
        }
        let cpu = number % u32::from(cpus);
        let packet = Packet {
            cpu,
            hash: number.wrapping_mul(0x9e37_79b9),
            ..Packet::default()
        };
        let (_, reads) = read(&xps, &packet, None);
        let mut touch = |line, access| caches.touch(cpu as usize, line, access);
        let taken = match layout {
            "ferronic" => None,
            "queue0" => {
                touch(address(&queue0.0[1]), Access::Read);
                None
            }
            _ => Some(address(&shared)),
        };
        if let Some(line) = taken {
            touch(line, Access::Write);
        }
        for line in reads {
            touch(line, Access::Read);
        }
        if let Some(line) = taken {
            touch(line, Access::Write);
        }
        caches.touch(0, address(&queue0.0[0]), Access::Write);
    }
    Ok(per_packet(caches.moves() - before))
}

/// What the driver keeps of a queue.
#[derive(Clone)]
struct Queue {
    producer: Line,
    consumer: Line,
    counters: Line,
    /// Four descriptors in each line.
    descriptors: Vec<Line>,
    sent: usize,
    last: Option<u32>,
}

#[derive(Default)]
struct Sent {
    moves: u64,
    /// Packets whose queue was last used by another CPU, and those completed on another.
    owners: u64,
    foreign: u64,
}

fn send(layout: &str, cpus: u16) -> Result<Sent, XpsError> {
    let bits = usize::from(cpus);
    let xps = match layout {
        "ferronic" => own(cpus)?,
        "hash" => card(cpus, |_| Mask::new(bits))?,
        "all-masks" => card(cpus, |_| Mask::all(bits))?,
        _ => Xps::new(1, 1, Cpus::new(cpus))?,
    };
    let queue = Queue {
        producer: Line::default(),
        consumer: Line::default(),
        counters: Line::default(),
        descriptors: vec![Line::default(); RING / 4],
        sent: 0,
        last: None,
    };
    let mut queues = vec![queue; usize::from(xps.tx_queues())];
    let flows = u32::from(cpus) * FLOWS;
    let mut sockets = vec![(Line::default(), Socket::new()); flows as usize];
    let mut caches = Caches::new();
    let mut flying = VecDeque::new();
    let mut found = Sent::default();
    for number in 0..WARM + PACKETS {
        if number == WARM {
            found = Sent {
                moves: caches.moves(),
                ..Sent::default()
            };
        }
        let cpu = number % u32::from(cpus);
        let flow = number % flows;
        let packet = Packet {
            cpu,
            hash: flow.wrapping_mul(0x9e37_79b9),
            ooo_okay: true,
            ..Packet::default()
        };
        let (line, socket) = &mut sockets[flow as usize];
        let (index, reads) = read(&xps, &packet, Some(socket));
        let mut touch = |line, access| caches.touch(cpu as usize, line, access);
        for line in reads {
            touch(line, Access::Read);
        }
        let queue = &mut queues[usize::from(index)];
        let descriptor = address(&queue.descriptors[queue.sent % RING / 4]);
        queue.sent += 1;
        found.owners += u64::from(queue.last.replace(cpu).is_some_and(|last| last != cpu));
        let flight = address(line);
        for line in [
            flight,
            address(&queue.producer),
            descriptor,
            address(&queue.counters),
        ] {
            touch(line, Access::Write);
        }
        flying.push_back((cpu, usize::from(index), descriptor, flight));
        if flying.len() <= usize::from(cpus) {
            continue;
        }
        if let Some((sender, index, descriptor, flight)) = flying.pop_front() {
            let home = index % bits;
            found.foreign += u64::from(home != sender as usize);
            for line in [address(&queues[index].consumer), descriptor, flight] {
                caches.touch(home, line, Access::Write);
            }
        }
    }
    found.moves = caches.moves() - found.moves;
    Ok(found)
}

pub fn figures() -> Result<Vec<Figure>, XpsError> {
    let mut figures = Vec::new();
    for cpus in [2, 4, 16, 64] {
        for layout in ["ferronic", "queue0", "rwlock", "refcount"] {
            let value = pick(layout, cpus)?;
            figures.push(
                Figure::new("line_transfers_per_packet", value, "1")
                    .with("case", "pick")
                    .with("layout", layout)
                    .with("cpus", cpus),
            );
        }
        for layout in ["ferronic", "hash", "all-masks", "single"] {
            let sent = send(layout, cpus)?;
            for (name, count) in [
                ("line_transfers_per_packet", sent.moves),
                ("queue_owner_changes_per_packet", sent.owners),
                ("foreign_completions_per_packet", sent.foreign),
            ] {
                figures.push(
                    Figure::new(name, per_packet(count), "1")
                        .with("case", "send")
                        .with("layout", layout)
                        .with("cpus", cpus),
                );
            }
        }
    }
    Ok(figures)
}
