//! S3-R8 on real queues: a flow's frames are in flight until the card has them.

use std::sync::Arc;

use ferronic::completion::CompletionPolicy;
use ferronic::pci::PciFunction;
use ferronic::spec::net::HEADER_LEN;
use ferronic::xps::{Flow, Lane, Rule, Sent, Xps};
use ferronic::{Device, DeviceConfig, Error, TxOffload, TxPart, Wakeup};

use crate::support::{Function, OFFER, SoftCard, frame};
use crate::{card, list};

const LEN: usize = 100;

struct Bench {
    card: Arc<SoftCard>,
    device: Device,
    lanes: Vec<Lane>,
    xps: Xps,
    sent: u64,
}

/// A card with two pairs; CPU 0 has queue 0, CPU 1 queue 1, and queue 0 is slow.
fn bench(policy: Option<CompletionPolicy>, ring: u16) -> Bench {
    let soft = SoftCard::telling(OFFER, 2, 256);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&soft)));
    let config = DeviceConfig {
        queue_pairs: 2,
        wakeup: Wakeup::Interrupt,
        ring_size: Some(ring),
        ..DeviceConfig::default()
    };
    let (device, pairs) = Device::open(function, config).unwrap();
    let lanes = pairs.into_iter().map(|pair| {
        let mut tx = pair.tx;
        if let Some(policy) = policy {
            device.set_completion(&mut tx, policy).unwrap();
        }
        Lane::new(tx)
    });
    let lanes = lanes.collect();
    soft.model().held = Some(1);
    let xps = card(2, 2);
    xps.set_cpus(0, &list("0", 2)).unwrap();
    xps.set_cpus(1, &list("1", 2)).unwrap();
    Bench {
        card: soft,
        device,
        lanes,
        xps,
        sent: 0,
    }
}

impl Bench {
    fn send(&mut self, flow: &mut Flow, cpu: u32) -> (u16, Rule) {
        let (pick, flight) = flow.send(&self.xps.view(), cpu, 0);
        let bytes = frame(self.sent, LEN);
        self.sent += 1;
        let lane = &mut self.lanes[usize::from(pick.queue)];
        let sent = lane.send(flight, &[TxPart::Bytes(&bytes)], TxOffload::None);
        assert!(matches!(sent, Ok(Sent::Queued)), "{sent:?}");
        lane.flush().unwrap();
        (pick.queue, pick.by)
    }

    fn work(&mut self) {
        self.card.run();
        for lane in &mut self.lanes {
            lane.service().unwrap();
        }
    }

    /// The slow queue goes on.
    fn release(&mut self) {
        self.card.model().held = None;
        self.work();
    }
}

/// Two frames on a slow queue, the sender moves, and a third must not overtake: under every policy,
/// those among them that give the sender's bytes back when a frame is queued.
#[test]
fn s3_r8_third_frame_does_not_overtake_two_on_a_slow_queue_under_any_policy() {
    let policies = CompletionPolicy::ALL.into_iter().map(Some);
    for policy in policies.chain([None]) {
        let mut bench = bench(policy, 64);
        let mut flow = Flow::new(3);
        assert_eq!(bench.send(&mut flow, 0), (0, Rule::CpuMap), "{policy:?}");
        assert_eq!(bench.send(&mut flow, 0), (0, Rule::Socket), "{policy:?}");
        bench.work();
        assert_eq!(bench.send(&mut flow, 1), (0, Rule::Socket), "{policy:?}");
        bench.work();
        // Another flow is not held up.
        let other = bench.send(&mut Flow::new(3), 1);
        assert_eq!(other, (1, Rule::CpuMap), "{policy:?}");
        bench.work();
        assert_eq!((flow.in_flight(), bench.lanes[0].in_flight()), (3, 3));
        bench.release();
        assert_eq!(
            (flow.in_flight(), bench.lanes[0].in_flight()),
            (0, 0),
            "{policy:?}"
        );
        assert_eq!(bench.send(&mut flow, 1), (1, Rule::CpuMap), "{policy:?}");
        bench.work();
        let model = bench.card.model();
        let numbers = model.sent.iter().map(|(_, bytes)| bytes[HEADER_LEN]);
        let numbers: Vec<u8> = numbers.collect();
        assert_eq!(numbers, [3, 0, 1, 2, 4], "{policy:?}");
    }
}

#[test]
fn frame_that_finds_the_ring_full_keeps_its_place() {
    let mut bench = bench(None, 4);
    let mut flow = Flow::new(3);
    for _ in 0..4 {
        bench.send(&mut flow, 0);
    }
    let (pick, flight) = flow.send(&bench.xps.view(), 1, 0);
    assert_eq!(pick.queue, 0);
    let bytes = frame(9, LEN);
    let parts = [TxPart::Bytes(&bytes)];
    let Ok(Sent::Full(flight)) = bench.lanes[0].send(flight, &parts, TxOffload::None) else {
        panic!("there was room");
    };
    assert_eq!((flow.in_flight(), bench.lanes[0].in_flight()), (5, 4));
    bench.release();
    assert_eq!(flow.in_flight(), 1);
    let sent = bench.lanes[0].send(flight, &parts, TxOffload::None);
    assert!(matches!(sent, Ok(Sent::Queued)));
    bench.lanes[0].flush().unwrap();
    bench.work();
    assert_eq!(flow.in_flight(), 0);
}

#[test]
fn frames_that_are_refused_or_reset_are_not_in_flight() {
    let mut bench = bench(None, 8);
    let mut flow = Flow::new(3);
    let (_, flight) = flow.send(&bench.xps.view(), 0, 0);
    let refused = bench.lanes[0].send(flight, &[TxPart::Bytes(&[0; 3])], TxOffload::None);
    assert!(matches!(refused, Err(Error::FrameLength { .. })));
    assert_eq!((flow.in_flight(), bench.lanes[0].in_flight()), (0, 0));
    bench.send(&mut flow, 0);
    bench.send(&mut flow, 0);
    assert_eq!(flow.in_flight(), 2);
    bench
        .device
        .reset_queue_tx(bench.lanes[0].queue_mut())
        .unwrap();
    bench.lanes[0].service().unwrap();
    assert_eq!((flow.in_flight(), bench.lanes[0].in_flight()), (0, 0));
}

/// The card may still send what a lane that is gone had in its ring.
#[test]
fn flow_of_a_lane_that_is_gone_stays_where_it_is() {
    let mut bench = bench(None, 8);
    let mut flow = Flow::new(3);
    bench.send(&mut flow, 0);
    drop(bench.lanes.remove(0));
    let (pick, _flight) = flow.send(&bench.xps.view(), 1, 0);
    assert_eq!((pick.queue, pick.by), (0, Rule::Socket));
}
