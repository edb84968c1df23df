//! Packets that overtake others of their flow: senders that move over 64 queues of different speeds.

use ferronic::xps::{Flow, InFlight, Packet, Socket, XpsError};
use ferronic_figures::Figure;
use ferronic_oracle::Rng;
use ferronic_oracle::steering::queues::{Order, Queues};

use crate::lines::own;

pub const TITLE: &str = "\
packets that came behind a later one of their flow: 500 flows over 64 queues, a packet takes 1 to 200 us
  by queue, one packet in 20 is sent from another CPU than the one before; orphan: the sender's bytes
  come back at once, so that nothing seems to be in flight; stateless: no socket";

const CPUS: u16 = 64;
const FLOWS: usize = 500;
/// Packets that a queue holds; its senders wait then.
const DEPTH: usize = 32;
const SEED: u64 = 8;

struct Frame {
    flow: usize,
    number: u64,
    _flight: Option<InFlight>,
}

struct Sender {
    flow: Flow,
    socket: Socket,
    cpu: u32,
    sent: u64,
    on: Option<u16>,
}

/// Packets that were overtaken, and changes of a flow's queue.
fn measure(layout: &str, packets: u64) -> Result<(u64, u64), XpsError> {
    let xps = own(CPUS)?;
    let mut rng = Rng::new(SEED);
    let periods: Vec<u64> = (0..CPUS).map(|_| rng.range(1, 200)).collect();
    let mut queues = Queues::new(periods);
    let mut order = Order::default();
    let mut changes = 0;
    let cpu = |rng: &mut Rng| rng.below(u64::from(CPUS)) as u32;
    let mut senders: Vec<Sender> = (0..FLOWS)
        .map(|_| Sender {
            flow: Flow::new(rng.next_u64() as u32),
            socket: Socket::new(),
            cpu: cpu(&mut rng),
            sent: 0,
            on: None,
        })
        .collect();
    let mut advance = |queues: &mut Queues<Frame>, until| {
        while let Some((_, frame)) = queues.leave(until) {
            order.arrive(frame.flow, frame.number);
        }
    };
    for _ in 0..packets {
        let flow = rng.below(FLOWS as u64) as usize;
        let sender = &mut senders[flow];
        if rng.chance(5) {
            sender.cpu = cpu(&mut rng);
        }
        let packet = Packet {
            cpu: sender.cpu,
            hash: sender.flow.hash(),
            ooo_okay: true,
            ..Packet::default()
        };
        let view = xps.view();
        let (pick, flight) = match layout {
            "ferronic" => {
                let (pick, flight) = sender.flow.send(&view, sender.cpu, 0);
                (pick, Some(flight))
            }
            "orphan" => (view.pick(&packet, Some(&mut sender.socket)), None),
            _ => (view.pick(&packet, None), None),
        };
        changes += u64::from(
            sender
                .on
                .replace(pick.queue)
                .is_some_and(|on| on != pick.queue),
        );
        let frame = Frame {
            flow,
            number: sender.sent,
            _flight: flight,
        };
        sender.sent += 1;
        let queue = usize::from(pick.queue);
        while queues.len(queue) >= DEPTH {
            let until = queues.now() + 1;
            advance(&mut queues, until);
        }
        queues.send(queue, frame);
        let until = queues.now() + rng.below(4);
        advance(&mut queues, until);
    }
    advance(&mut queues, u64::MAX);
    Ok((order.reordered(), changes))
}

pub fn figures(quick: bool) -> Result<Vec<Figure>, XpsError> {
    let packets = if quick { 100_000 } else { 1_000_000 };
    let mut figures = Vec::new();
    for layout in ["ferronic", "orphan", "stateless"] {
        let (reordered, changes) = measure(layout, packets)?;
        for (name, value) in [("reordered", reordered), ("queue_changes", changes)] {
            figures.push(
                Figure::new(name, value as f64, "1")
                    .with("case", "migrate")
                    .with("layout", layout)
                    .with("cpus", CPUS)
                    .with("packets", packets),
            );
        }
    }
    Ok(figures)
}
