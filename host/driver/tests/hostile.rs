//! A card that lies: errors, never a panic, never memory that is not the driver's.

mod support;

use std::sync::Arc;

use ferronic::pci::PciFunction;
use ferronic::{Device, DeviceConfig, Error, PushResult, QueueFault, QueuePair};
use support::{Function, OFFER, SoftCard, frame, seeds};

fn open(config: DeviceConfig) -> (Arc<SoftCard>, Device, QueuePair) {
    let card = SoftCard::new(OFFER, 1, 64);
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(&card)));
    let (device, mut pairs) = Device::open(function, config).unwrap();
    (card, device, pairs.remove(0))
}

/// What the receive queue says after the card forged one used entry.
fn receive_after(id: u32, len: u32, idx: u16, header: [u8; 12]) -> Result<usize, Error> {
    let (card, _device, mut pair) = open(DeviceConfig::default());
    let mut model = card.model();
    let (_, addr, _) = model.first_buffer(0, 0);
    model.poke(addr, &header);
    model.forge_used(0, 0, id, len, idx);
    drop(model);
    let result = pair.rx.receive(64, |_| {});
    if let Err(first) = &result {
        // The queue stays stopped, with the same cause.
        let again = pair.rx.receive(64, |_| {}).expect_err("still stopped");
        assert_eq!(first.to_string(), again.to_string());
    }
    result
}

fn fault(result: Result<usize, Error>) -> QueueFault {
    match result {
        Err(Error::Queue { queue: 0, fault }) => fault,
        other => panic!("a fault of queue 0 was expected, not {other:?}"),
    }
}

const ONE: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];

fn buffers(count: u16) -> [u8; 12] {
    let mut header = ONE;
    header[10..].copy_from_slice(&count.to_le_bytes());
    header
}

#[test]
fn honest_entry_is_taken() {
    assert_eq!(receive_after(0, 12 + 60, 1, ONE).unwrap(), 1);
}

#[test]
fn used_id_out_of_range_is_a_fault() {
    for id in [64, 65_536, u32::MAX] {
        let found = fault(receive_after(id, 100, 1, ONE));
        assert_eq!(found, QueueFault::UsedIdRange { id, size: 64 });
    }
}

#[test]
fn used_id_of_a_free_descriptor_is_a_fault() {
    let config = DeviceConfig {
        rx_buffers: Some(4),
        ..Default::default()
    };
    let (card, _device, mut pair) = open(config);
    card.model().forge_used(0, 0, 5, 100, 1);
    let found = fault(pair.rx.receive(64, |_| {}));
    assert_eq!(found, QueueFault::UsedIdFree { id: 5 });
}

#[test]
fn used_id_twice_is_a_fault() {
    let (card, _device, mut pair) = open(DeviceConfig::default());
    assert_eq!(pair.tx.push(&frame(0, 60)).unwrap(), PushResult::Queued);
    assert_eq!(pair.tx.push(&frame(1, 60)).unwrap(), PushResult::Queued);
    pair.tx.flush().unwrap();
    card.model().forge_used(1, 0, 0, 0, 1);
    assert_eq!(pair.tx.reap().unwrap(), 1);
    card.model().forge_used(1, 1, 0, 0, 2);
    assert!(matches!(
        pair.tx.reap(),
        Err(Error::Queue {
            queue: 1,
            fault: QueueFault::UsedIdFree { id: 0 }
        })
    ));
}

#[test]
fn used_id_inside_a_chain_is_a_fault() {
    let config = DeviceConfig {
        rx_chain: 4,
        indirect: false,
        ..Default::default()
    };
    let (card, _device, mut pair) = open(config);
    card.model().forge_used(0, 0, 1, 100, 1);
    let found = fault(pair.rx.receive(64, |_| {}));
    assert_eq!(found, QueueFault::UsedIdFree { id: 1 });
}

#[test]
fn used_id_of_a_buffer_not_yet_published_is_a_fault() {
    let (card, _device, mut pair) = open(DeviceConfig::default());
    assert_eq!(pair.tx.push(&frame(0, 60)).unwrap(), PushResult::Queued);
    pair.tx.flush().unwrap();
    assert_eq!(pair.tx.push(&frame(1, 60)).unwrap(), PushResult::Queued);
    card.model().forge_used(1, 0, 1, 0, 1);
    assert!(matches!(
        pair.tx.reap(),
        Err(Error::Queue {
            queue: 1,
            fault: QueueFault::UsedIdFree { id: 1 }
        })
    ));
}

#[test]
fn used_length_beyond_the_buffer_is_a_fault() {
    for len in [2049, u32::MAX] {
        let found = fault(receive_after(0, len, 1, ONE));
        assert_eq!(
            found,
            QueueFault::UsedLength {
                id: 0,
                len,
                limit: 2048
            }
        );
    }
    // A transmit buffer cannot be written at all.
    let (card, _device, mut pair) = open(DeviceConfig::default());
    assert_eq!(pair.tx.push(&frame(0, 60)).unwrap(), PushResult::Queued);
    pair.tx.flush().unwrap();
    card.model().forge_used(1, 0, 0, 1, 1);
    assert!(pair.tx.reap().is_err());
}

#[test]
fn used_index_running_ahead_is_a_fault() {
    for idx in [65, 1000, 0xffff] {
        let found = fault(receive_after(0, 100, idx, ONE));
        assert_eq!(
            found,
            QueueFault::UsedIndex {
                idx,
                last: 0,
                outstanding: 64
            }
        );
    }
}

#[test]
fn used_index_going_back_is_a_fault() {
    let (card, _device, mut pair) = open(DeviceConfig::default());
    card.model().to_receive[0].push_back(frame(0, 60));
    card.run();
    assert_eq!(pair.rx.receive(64, |_| {}).unwrap(), 1);
    card.model().forge_used(0, 1, 1, 100, 0);
    assert!(matches!(
        fault(pair.rx.receive(64, |_| {})),
        QueueFault::UsedIndex { idx: 0, .. }
    ));
}

#[test]
fn frame_headers_that_lie_are_faults() {
    assert!(matches!(
        fault(receive_after(0, 11, 1, ONE)),
        QueueFault::FrameTooShort { len: 11 }
    ));
    assert!(matches!(
        fault(receive_after(0, 25, 1, ONE)),
        QueueFault::FrameTooShort { len: 25 }
    ));
    assert_eq!(
        fault(receive_after(0, 72, 1, buffers(0))),
        QueueFault::NoBuffers
    );
    assert_eq!(
        fault(receive_after(0, 72, 1, buffers(2))),
        QueueFault::MissingBuffers {
            wanted: 2,
            found: 1
        }
    );
    assert_eq!(
        fault(receive_after(0, 72, 1, buffers(0xffff))),
        QueueFault::MissingBuffers {
            wanted: 0xffff,
            found: 1
        }
    );
}

#[test]
fn queue_reset_clears_a_fault() {
    let (card, mut device, mut pair) = open(DeviceConfig::default());
    card.model().forge_used(0, 0, 99, 0, 1);
    assert!(pair.rx.receive(64, |_| {}).is_err());
    device.reset_queue_rx(&mut pair.rx).unwrap();
    card.model().to_receive[0].push_back(frame(7, 60));
    card.run();
    assert!(pair.rx.receive_vec(64).unwrap()[0].1 == frame(7, 60));
}

/// Whatever the card writes into its used ring and its headers, the driver neither panics nor
/// hands out more bytes than its buffers have.
#[test]
fn property_forged_rings_never_panic() {
    use proptest::prelude::*;
    let entry = (
        prop_oneof![0u32..70, any::<u32>()],
        prop_oneof![0u32..2100, any::<u32>()],
        prop_oneof![0u16..4, any::<u16>()],
        any::<bool>(),
    );
    let strategy = (
        prop::collection::vec(entry, 1..40),
        prop::sample::select(vec![128usize, 200, 2048]),
        1u16..4,
        any::<bool>(),
    );
    seeds::runner(300)
        .run(&strategy, |(entries, buffer_size, rx_chain, indirect)| {
            let config = DeviceConfig {
                buffer_size,
                rx_chain,
                indirect,
                ..DeviceConfig::default()
            };
            let (card, _device, mut pair) = open(config);
            let mut idx = 0u16;
            for (slot, (id, len, step, sane)) in (0u16..).zip(entries) {
                {
                    let mut model = card.model();
                    let (_, addr, _) = model.first_buffer(0, slot);
                    // Indirect: the address is that of the table, which the driver never reads.
                    if sane {
                        model.poke(addr, &buffers(step));
                    }
                    idx = idx.wrapping_add(step);
                    let (queue, id) = if sane {
                        (0, u32::from(slot))
                    } else {
                        (slot % 2, id)
                    };
                    model.forge_used(queue, slot, id, len, idx);
                }
                let mut bytes = Vec::new();
                let _ = pair.rx.receive(64, |frame| {
                    bytes.clear();
                    frame.copy_to(&mut bytes);
                    assert!(frame.len() <= usize::from(frame.num_buffers()) * buffer_size);
                });
                let _ = pair.tx.push(&frame(slot.into(), 60)).map(|_| ());
                let _ = pair.tx.flush();
                let _ = pair.tx.reap();
            }
            Ok(())
        })
        .unwrap();
}
