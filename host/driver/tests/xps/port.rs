//! S3-R8 where senders share a queue: each has a send buffer, and flows that move.

use std::sync::Arc;

use ferronic::completion::{CompletionPolicy, PushFlow, SenderId};
use ferronic::pci::PciFunction;
use ferronic::spec::net::HEADER_LEN;
use ferronic::xps::{Flow, Rule, Xps};
use ferronic::{Device, DeviceConfig, Error, TxOffload, TxPart, TxPort, Wakeup};

use crate::support::{Function, OFFER, SoftCard, frame};
use crate::{card, list};

const LEN: usize = 100;

struct Bench {
    card: Arc<SoftCard>,
    device: Device,
    ports: Vec<TxPort>,
    xps: Xps,
    sent: u64,
}

/// A card with two pairs; CPU 0 has queue 0, CPU 1 queue 1, and queue 0 is slow.
fn bench(policy: CompletionPolicy, ring: u16) -> Bench {
    let soft = SoftCard::telling(OFFER, 2, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&soft)));
    let config = DeviceConfig {
        queue_pairs: 2,
        wakeup: Wakeup::Interrupt,
        ring_size: Some(ring),
        ..DeviceConfig::default()
    };
    let (device, pairs) = Device::open(function, config).unwrap();
    let ports = pairs.into_iter().map(|mut pair| {
        device.set_completion(&mut pair.tx, policy).unwrap();
        TxPort::new(pair.tx)
    });
    let ports = ports.collect();
    soft.model().held = Some(1);
    let xps = card(2, 2);
    xps.set_cpus(0, &list("0", 2)).unwrap();
    xps.set_cpus(1, &list("1", 2)).unwrap();
    Bench {
        card: soft,
        device,
        ports,
        xps,
        sent: 0,
    }
}

/// A sender has a place on each port.
type Sender = [SenderId; 2];

impl Bench {
    fn open(&mut self, budget: usize) -> Sender {
        [0, 1].map(|port: usize| self.ports[port].open(budget))
    }

    fn push(&mut self, sender: Sender, flow: &mut Flow, cpu: u32) -> (u16, Rule, PushFlow) {
        let (pick, flight) = flow.send(&self.xps.view(), cpu, 0);
        let bytes = frame(self.sent, LEN);
        let port = usize::from(pick.queue);
        let parts = [TxPart::Bytes(&bytes)];
        let pushed = self.ports[port].send_flow(sender[port], flight, &parts, TxOffload::None);
        self.ports[port].flush().unwrap();
        (pick.queue, pick.by, pushed.unwrap())
    }

    fn send(&mut self, sender: Sender, flow: &mut Flow, cpu: u32) -> (u16, Rule) {
        let (queue, by, pushed) = self.push(sender, flow, cpu);
        assert!(matches!(pushed, PushFlow::Queued), "{pushed:?}");
        self.sent += 1;
        (queue, by)
    }

    fn work(&mut self) {
        self.card.run();
        for port in &mut self.ports {
            port.service().unwrap();
        }
    }

    fn release(&mut self) {
        self.card.model().held = None;
        self.work();
    }
}

/// Two senders on a slow queue, one of them moves; its third frame must not overtake, and the other is
/// not held up by it: under every policy, those too that give bytes back when a frame is queued.
#[test]
fn s3_r8_third_frame_of_a_sender_that_shares_its_queue_does_not_overtake_under_any_policy() {
    for policy in CompletionPolicy::ALL {
        let mut bench = bench(policy, 64);
        let (a, b) = (bench.open(10_000), bench.open(10_000));
        let (mut flow, mut other) = (Flow::new(3), Flow::new(5));
        assert_eq!(bench.send(a, &mut flow, 0), (0, Rule::CpuMap), "{policy}");
        assert_eq!(bench.send(b, &mut other, 0), (0, Rule::CpuMap), "{policy}");
        assert_eq!(bench.send(a, &mut flow, 0), (0, Rule::Socket), "{policy}");
        bench.work();
        assert_eq!(bench.send(a, &mut flow, 1), (0, Rule::Socket), "{policy}");
        // Another flow of the same sender may go another way.
        let new = bench.send(a, &mut Flow::new(3), 1);
        assert_eq!(new, (1, Rule::CpuMap), "{policy}");
        bench.work();
        assert_eq!((flow.in_flight(), other.in_flight()), (3, 1), "{policy}");
        bench.release();
        assert_eq!((flow.in_flight(), other.in_flight()), (0, 0), "{policy}");
        assert_eq!(bench.send(a, &mut flow, 1), (1, Rule::CpuMap), "{policy}");
        bench.work();
        for port in &mut bench.ports {
            let charged = [a, b].map(|sender| sender.map(|id| port.charged(id).unwrap_or(0)));
            assert_eq!(charged, [[0; 2]; 2], "{policy}");
        }
        let model = bench.card.model();
        let numbers = model.sent.iter().map(|(_, bytes)| bytes[HEADER_LEN]);
        assert_eq!(numbers.collect::<Vec<_>>(), [4, 0, 1, 2, 3, 5], "{policy}");
    }
}

#[test]
fn frame_that_finds_no_budget_or_no_room_keeps_its_place() {
    let mut bench = bench(CompletionPolicy::DEFAULT, 4);
    let (poor, rich) = (bench.open(2 * LEN), bench.open(10_000));
    let mut flow = Flow::new(3);
    bench.send(poor, &mut flow, 0);
    bench.send(poor, &mut flow, 0);
    let (queue, _, pushed) = bench.push(poor, &mut flow, 1);
    let PushFlow::NoBudget(flight) = pushed else {
        panic!("{pushed:?}");
    };
    assert_eq!((queue, flow.in_flight()), (0, 3));
    let mut second = Flow::new(5);
    bench.send(rich, &mut second, 0);
    bench.send(rich, &mut second, 0);
    let (queue, _, pushed) = bench.push(rich, &mut second, 1);
    let PushFlow::NoRoom(waits) = pushed else {
        panic!("{pushed:?}");
    };
    assert_eq!((queue, second.in_flight()), (0, 3));
    bench.release();
    assert_eq!((flow.in_flight(), second.in_flight()), (1, 1));
    // Both go on, on the queue where they waited.
    let ready = [(); 2].map(|()| bench.ports[0].next_ready());
    assert!(ready.contains(&Some(poor[0])) && ready.contains(&Some(rich[0])));
    let bytes = frame(9, LEN);
    let parts = [TxPart::Bytes(&bytes)];
    for (sender, flight) in [(poor, flight), (rich, waits)] {
        let sent = bench.ports[0].send_flow(sender[0], flight, &parts, TxOffload::None);
        assert!(matches!(sent, Ok(PushFlow::Queued)), "{sent:?}");
    }
    bench.ports[0].flush().unwrap();
    bench.work();
    assert_eq!((flow.in_flight(), second.in_flight()), (0, 0));
}

#[test]
fn frames_that_are_refused_reset_or_dropped_are_not_in_flight() {
    let mut bench = bench(CompletionPolicy::DEFAULT, 8);
    let sender = bench.open(1_000);
    let mut flow = Flow::new(3);
    for bytes in [&[0; 3][..], &[0; 2000]] {
        let (_, flight) = flow.send(&bench.xps.view(), 0, 0);
        let parts = [TxPart::Bytes(bytes)];
        let refused = bench.ports[0].send_flow(sender[0], flight, &parts, TxOffload::None);
        assert!(matches!(
            refused,
            Err(Error::FrameLength { .. } | Error::Completion(_))
        ));
        assert_eq!(flow.in_flight(), 0);
    }
    assert_eq!(bench.ports[0].charged(sender[0]).unwrap(), 0);
    bench.send(sender, &mut flow, 0);
    bench.send(sender, &mut flow, 0);
    assert_eq!(flow.in_flight(), 2);
    let queue = bench.ports[0].queue_mut();
    bench.device.reset_queue_tx(queue).unwrap();
    bench.ports[0].service().unwrap();
    assert_eq!(flow.in_flight(), 0);
    assert_eq!(bench.ports[0].charged(sender[0]).unwrap(), 0);
}

/// The card may still send what a port that is gone had in its ring.
#[test]
fn flow_of_a_port_that_is_gone_stays_where_it_is() {
    let mut bench = bench(CompletionPolicy::DEFAULT, 8);
    let sender = bench.open(1_000);
    let mut flow = Flow::new(3);
    bench.send(sender, &mut flow, 0);
    let _queue = bench.ports.remove(0).into_queue();
    let (pick, _flight) = flow.send(&bench.xps.view(), 1, 0);
    assert_eq!((pick.queue, pick.by), (0, Rule::Socket));
}
