//! Reads of the card that are answered wrongly: the card says so or drops and counts, loses no tag,
//! never hangs, and works after a reset.

use ferronic::pci::PciFunction;
use ferronic_cosim_tests::nightly;
use ferronic_cosim_tests::raw_driver::{NEXT, Raw, RawQueue, write};
use ferronic_sim::SimConfig;
use ferronic_sim::root_complex::{Fault, FaultRule};
use ferronic_spec::transport::NO_VECTOR;
use ferronic_spec::{Features, window};

const WIDTHS: [u32; 2] = [64, 512];

/// What the card reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Index,
    Entries,
    Descriptors,
    Chain,
    Indirect,
    Payload,
    UsedEvent,
}

const TARGETS: [Target; 7] = [
    Target::Index,
    Target::Entries,
    Target::Descriptors,
    Target::Chain,
    Target::Indirect,
    Target::Payload,
    Target::UsedEvent,
];

const SIZE: u16 = 64;
const PAYLOAD: usize = 0x1_0000;
const TABLE: usize = 0x8000;

/// A transmit queue with a vector, so that used_event is read, and nothing offered.
fn open(config: SimConfig) -> (Raw, RawQueue) {
    let raw = Raw::new(config);
    let tx = begin(&raw);
    (raw, tx)
}

fn begin(raw: &Raw) -> RawQueue {
    let features = Features::VERSION_1 | Features::EVENT_IDX | Features::INDIRECT_DESC;
    assert!(raw.negotiate(features), "the features are refused");
    raw.function.sim().enable_msix(9).expect("the card answers");
    let tx = RawQueue::new(&raw.function, 1, SIZE);
    raw.enable(&tx, 1);
    raw.driver_ok();
    // The look at every queue that DRIVER_OK causes is over.
    raw.run(3000);
    tx
}

fn config(data_w: u32, seed: u64) -> SimConfig {
    SimConfig {
        data_w,
        seed,
        ..SimConfig::default()
    }
}

/// Where the reads of `target` begin.
fn range(raw: &Raw, tx: &RawQueue, target: Target) -> std::ops::Range<u64> {
    let (avail, desc, area) = (tx.avail.iova(), tx.desc.iova(), raw.area.iova());
    let entries = avail + 4 + 2 * u64::from(SIZE);
    match target {
        Target::Index => avail + 2..avail + 4,
        Target::Entries => avail + 4..entries,
        Target::Descriptors => desc..desc + 16 * 8,
        Target::Chain => desc + 16 * 32..desc + 16 * 64,
        Target::Indirect => area + TABLE as u64..area + PAYLOAD as u64,
        Target::Payload => area + PAYLOAD as u64..area + 2 * PAYLOAD as u64,
        Target::UsedEvent => entries..entries + 2,
    }
}

/// Offers four frames: as one descriptor, as a chain, as an indirect table, as one descriptor.
fn offer(raw: &Raw, tx: &mut RawQueue) {
    let area = raw.area.iova();
    let payload = area + PAYLOAD as u64;
    write(&raw.area, PAYLOAD, &[0; 12]);
    write(&raw.area, PAYLOAD + 12, &[0x66; 1500]);
    tx.describe(0, payload, 1512, 0, 0);
    tx.describe(1, payload, 12, NEXT, 40);
    tx.describe(40, payload + 12, 700, NEXT, 50);
    tx.describe(50, payload + 712, 800, 0, 0);
    let table: Vec<u8> = [(0, 12, NEXT, 1), (12, 500, NEXT, 2), (512, 1000, 0, 0)]
        .iter()
        .flat_map(|&(at, len, flags, next)| {
            ferronic_cosim_tests::raw_driver::descriptor(payload + at, len, flags, next)
        })
        .collect();
    write(&raw.area, TABLE, &table);
    tx.describe(2, area + TABLE as u64, 48, 4, 0);
    tx.describe(3, payload, 1512, 0, 0);
    for head in 0..4 {
        tx.offer(head);
    }
    tx.set_used_event(tx.next.wrapping_sub(1));
    raw.send(tx);
}

fn errors(raw: &Raw) -> [u32; 4] {
    [
        window::PCIE_ERROR_CPL,
        window::PCIE_POISONED,
        window::PCIE_UNEXPECTED_CPL,
        window::PCIE_TIMEOUT,
    ]
    .map(|counter| raw.counter(counter))
}

/// After a reset thousands of reads go well, many at a time: no tag was lost.
fn reads_work(raw: &Raw) {
    raw.function.sim().root.faults.clear();
    let mut tx = begin(raw);
    raw.wire.take_all();
    let before = raw.function.sim().root.stats;
    for _ in 0..10 {
        for _ in 0..16 {
            offer(raw, &mut tx);
        }
        raw.wait_used(&tx, tx.next);
    }
    raw.run(3000);
    assert!(!raw.needs_reset());
    let sent = raw.wire.take_all();
    let whole = sent.iter().filter(|f| !f.aborted && f.data == [0x66; 1500]);
    assert!(whole.count() >= 10 * 64);
    let reads = raw.function.sim().root.stats.since(&before).up_reads.tlps;
    assert!(reads > 2000, "{reads} reads");
    raw.reset();
    assert!(raw.function.sim().root.dma_drained());
}

#[test]
fn refused_or_poisoned_ring_read_needs_a_reset_or_drops_the_frame() {
    for data_w in WIDTHS {
        for target in TARGETS {
            let faults = [
                (Fault::UnsupportedRequest, 0),
                (Fault::CompleterAbort, 0),
                (Fault::Poisoned, 1),
            ];
            let (raw, mut tx) = open(config(data_w, 1));
            for (fault, counter) in faults {
                println!("{data_w} bits, {target:?}, {fault:?}");
                let before = errors(&raw);
                let range = range(&raw, &tx, target);
                let rule = FaultRule::next(fault, 1).within(range);
                raw.function.sim().root.faults.add(rule);
                let injected = raw.function.sim().root.faults.injected;
                offer(&raw, &mut tx);
                let broken = raw.breaks_within(30_000);
                assert_eq!(raw.function.sim().root.faults.injected, injected + 1);
                let counted = errors(&raw);
                // A poisoned read may have more than one completion.
                assert!(counted[counter] > before[counter], "not counted");
                match target {
                    // Better an interrupt too many: the wish is unknown, the ring is not harmed.
                    Target::UsedEvent => {
                        assert!(!broken);
                        assert_eq!(tx.used_index(), tx.next);
                        let mut sim = raw.function.sim();
                        assert_eq!(sim.take_vector(), Some(1));
                    }
                    _ => {
                        assert!(broken, "DEVICE_NEEDS_RESET is not set");
                        let silent = raw.function.sim().root.stats;
                        raw.kick(1);
                        raw.run(3000);
                        let after = raw.function.sim().root.stats.since(&silent);
                        assert_eq!(after.up_reads.tlps, 0, "a broken card reads on");
                    }
                }
                // No damaged frame left, whatever happened.
                for sent in raw.wire.take_all() {
                    assert!(sent.aborted || sent.data == [0x66; 1500]);
                }
                raw.function.sim().root.faults.clear();
                tx = begin(&raw);
            }
            reads_work(&raw);
        }
    }
}

#[test]
fn surplus_and_misdirected_completions_are_dropped_and_counted() {
    for data_w in WIDTHS {
        for target in TARGETS {
            for fault in [Fault::Surplus, Fault::WrongTag] {
                println!("{data_w} bits, {target:?}, {fault:?}");
                let (raw, mut tx) = open(config(data_w, 2));
                let rule = FaultRule::next(fault, 1).within(range(&raw, &tx, target));
                raw.function.sim().root.faults.add(rule);
                offer(&raw, &mut tx);
                raw.wait_used(&tx, 4);
                raw.run(3000);
                assert_eq!(raw.function.sim().root.faults.injected, 1);
                let sent = raw.wire.take_all();
                assert_eq!(sent.len(), 4);
                for sent in sent {
                    assert!(!sent.aborted && sent.data == [0x66; 1500]);
                }
                assert!(!raw.needs_reset());
                assert_eq!(errors(&raw), [0, 0, 1, 0]);
                raw.works();
            }
        }
    }
}

#[test]
fn abort_after_the_first_completion_is_an_error_of_the_whole_read() {
    for data_w in WIDTHS {
        let (raw, mut tx) = open(config(data_w, 3));
        let rule = FaultRule::next(Fault::AbortTail, 1).within(range(&raw, &tx, Target::Payload));
        raw.function.sim().root.faults.add(rule);
        offer(&raw, &mut tx);
        assert!(raw.breaks_within(30_000));
        assert_eq!(errors(&raw)[0], 1);
        for sent in raw.wire.take_all() {
            assert!(sent.aborted || sent.data == [0x66; 1500]);
        }
        reads_work(&raw);
    }
}

#[test]
fn lost_completions_time_out_and_free_their_tags() {
    for (data_w, fault) in [(64, Fault::Lost), (512, Fault::LostTail)] {
        let (raw, mut tx) = open(config(data_w, 4));
        let rule = FaultRule::next(fault, 3).within(range(&raw, &tx, Target::Payload));
        raw.function.sim().root.faults.add(rule);
        offer(&raw, &mut tx);
        raw.run(1_200_000);
        assert!(!raw.needs_reset(), "10 ms have not passed");
        // Each lost read may take its 10 ms: they end one after the other.
        assert!(raw.breaks_within(5_000_000), "no time-out");
        raw.run(3_000_000);
        assert!(errors(&raw)[3] >= 1);
        for sent in raw.wire.take_all() {
            assert!(sent.aborted || sent.data == [0x66; 1500]);
        }
        reads_work(&raw);
    }
}

#[test]
fn reset_with_lost_completions_waits_for_the_time_out_and_ends() {
    let (raw, mut tx) = open(config(64, 5));
    let rule = FaultRule::next(Fault::Lost, 1).within(range(&raw, &tx, Target::Payload));
    raw.function.sim().root.faults.add(rule);
    offer(&raw, &mut tx);
    raw.run(2000);
    // A function level reset in the middle of it.
    PciFunction::reset(&raw.function).expect("the reset ends");
    raw.function
        .sim()
        .set_bus_master(true)
        .expect("the card answers");
    reads_work(&raw);
}

#[test]
fn random_faults_never_hang_the_card() {
    for data_w in WIDTHS {
        for seed in 0..if nightly() { 100 } else { 2 } {
            println!("{data_w} bits, seed {seed}");
            let (raw, mut tx) = open(SimConfig {
                data_w,
                ..SimConfig::adversarial(seed)
            });
            for round in 0..20_u64 {
                let fault = [
                    Fault::UnsupportedRequest,
                    Fault::CompleterAbort,
                    Fault::Poisoned,
                    Fault::AbortTail,
                    Fault::Surplus,
                    Fault::WrongTag,
                ][((seed + round) % 6) as usize];
                raw.function
                    .sim()
                    .root
                    .faults
                    .add(FaultRule::random(fault, 60));
                for _ in 0..8 {
                    offer(&raw, &mut tx);
                }
                let cycles = 500 + round * 331;
                raw.run(cycles);
                for sent in raw.wire.take_all() {
                    assert!(sent.aborted || sent.data == [0x66; 1500]);
                }
                raw.function.sim().root.faults.clear();
                tx = begin(&raw);
            }
            reads_work(&raw);
        }
    }
}

#[test]
fn receive_side_ring_faults_need_a_reset_too() {
    for data_w in WIDTHS {
        for fault in [Fault::UnsupportedRequest, Fault::Poisoned] {
            let raw = Raw::new(config(data_w, 6));
            assert!(raw.negotiate(Features::VERSION_1));
            let mut rx = RawQueue::new(&raw.function, 0, SIZE);
            raw.enable(&rx, NO_VECTOR);
            raw.driver_ok();
            raw.run(3000);
            let desc = rx.desc.iova();
            let rule = FaultRule::next(fault, 1).within(desc..desc + 1024);
            raw.function.sim().root.faults.add(rule);
            for id in 0..8 {
                raw.post(&mut rx, id, usize::from(id) * 2048, 2048);
            }
            raw.send(&rx);
            raw.wire.push(vec![1; 60]);
            assert!(raw.breaks_within(30_000));
            assert_eq!(rx.used_index(), 0);
            raw.works();
        }
    }
}
