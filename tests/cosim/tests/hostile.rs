//! Hostile drivers and wires: the card says DEVICE_NEEDS_RESET or drops and counts; it never hangs,
//! never writes outside what was described, and works after a reset.

use ferronic_cosim_tests::raw_driver::{
    INDIRECT, NEXT, Raw, RawQueue, WRITE, descriptor, read, write,
};
use ferronic_sim::SimConfig;
use ferronic_sim::root_complex::MemoryFault;
use ferronic_spec::pci::bar0;
use ferronic_spec::transport::{NO_VECTOR, Status, common};
use ferronic_spec::{Features, window};

const WIDTHS: [u32; 2] = [64, 512];
const SIZE: u16 = 16;
const TABLE: usize = 0x8000;
const DATA: usize = 0x1_0000;
const FEATURES: Features = Features::VERSION_1
    .union(Features::INDIRECT_DESC)
    .union(Features::MRG_RXBUF);

/// A card whose writes must all hit what was allowed.
fn guarded(data_w: u32, seed: u64) -> Raw {
    let raw = Raw::new(SimConfig {
        data_w,
        // Every cycle counts where a driver and a wire race.
        idle_skip: true,
        ..SimConfig::adversarial(seed)
    });
    raw.function.sim().root.memory.guard_enable();
    raw
}

fn refused_writes(raw: &Raw) -> Vec<MemoryFault> {
    let faults = raw.function.sim().root.take_memory_faults();
    faults.into_iter().filter(|f| f.write).collect()
}

/// One or more descriptors that no driver may write. The direction flag is put in by the test.
struct Case {
    name: &'static str,
    ring: &'static [(u16, u64, u32, u16, u16)],
    table: &'static [(u64, u32, u16, u16)],
    head: u16,
}

const fn ring(name: &'static str, ring: &'static [(u16, u64, u32, u16, u16)]) -> Case {
    Case {
        name,
        ring,
        table: &[],
        head: 0,
    }
}

const fn table(
    name: &'static str,
    ring: &'static [(u16, u64, u32, u16, u16)],
    table: &'static [(u64, u32, u16, u16)],
) -> Case {
    Case {
        name,
        ring,
        table,
        head: 0,
    }
}

/// Offsets in the area stand for addresses.
const T: u64 = TABLE as u64;
const D: u64 = DATA as u64;
const CASES: &[Case] = &[
    ring("a descriptor that names itself", &[(0, D, 20, NEXT, 0)]),
    ring("a loop of two", &[(0, D, 20, NEXT, 1), (1, D, 20, NEXT, 0)]),
    ring(
        "a loop behind a start",
        &[
            (0, D, 20, NEXT, 5),
            (5, D, 20, NEXT, 9),
            (9, D, 20, NEXT, 5),
        ],
    ),
    ring("next just beyond the table", &[(0, D, 20, NEXT, SIZE)]),
    ring("next far beyond the table", &[(0, D, 20, NEXT, 0xffff)]),
    ring("length 0", &[(0, D, 0, 0, 0)]),
    ring(
        "length 0 inside a chain",
        &[(0, D, 20, NEXT, 1), (1, D, 0, NEXT, 2), (2, D, 60, 0, 0)],
    ),
    table("an empty indirect table", &[(0, T, 0, INDIRECT, 0)], &[]),
    table(
        "an indirect table of 17 bytes",
        &[(0, T, 17, INDIRECT, 0)],
        &[(D, 100, 0, 0)],
    ),
    table(
        "an indirect table of 8 bytes",
        &[(0, T, 8, INDIRECT, 0)],
        &[(D, 100, 0, 0)],
    ),
    table(
        "an indirect table longer than the ring",
        &[(0, T, 16 * 17, INDIRECT, 0)],
        &[(D, 100, 0, 0)],
    ),
    table(
        "an indirect table of nearly 4 GiB",
        &[(0, T, 0xffff_fff0, INDIRECT, 0)],
        &[(D, 100, 0, 0)],
    ),
    table(
        "INDIRECT with NEXT",
        &[(0, T, 16, INDIRECT | NEXT, 1), (1, D, 100, 0, 0)],
        &[(D, 100, 0, 0)],
    ),
    table(
        "a table in a table",
        &[(0, T, 32, INDIRECT, 0)],
        &[(D, 20, NEXT, 1), (T, 16, INDIRECT, 0)],
    ),
    table(
        "next beyond the indirect table",
        &[(0, T, 32, INDIRECT, 0)],
        &[(D, 20, NEXT, 2), (D, 100, 0, 0)],
    ),
    table(
        "a loop in an indirect table",
        &[(0, T, 32, INDIRECT, 0)],
        &[(D, 20, NEXT, 1), (D, 20, NEXT, 0)],
    ),
    Case {
        name: "an available entry just beyond the ring",
        ring: &[],
        table: &[],
        head: SIZE,
    },
    Case {
        name: "an available entry far beyond the ring",
        ring: &[],
        table: &[],
        head: 0xffff,
    },
];

fn put(raw: &Raw, queue: &RawQueue, case: &Case, direction: u16) {
    let area = raw.area.iova();
    for &(at, addr, len, flags, next) in case.ring {
        let flags = if flags & INDIRECT == 0 {
            flags | direction
        } else {
            flags
        };
        queue.describe(at, area + addr, len, flags, next);
    }
    let table: Vec<u8> = case
        .table
        .iter()
        .flat_map(|&(addr, len, flags, next)| descriptor(area + addr, len, flags | direction, next))
        .collect();
    write(&raw.area, TABLE, &table);
}

#[test]
fn broken_chains_need_a_reset_on_transmit() {
    for data_w in WIDTHS {
        for (seed, case) in CASES.iter().enumerate() {
            println!("{data_w} bits, seed {seed}: {}", case.name);
            let raw = guarded(data_w, seed as u64);
            let [_rx, mut tx] = raw.pair(FEATURES, SIZE);
            put(&raw, &tx, case, 0);
            tx.offer(case.head);
            raw.send(&tx);
            assert!(raw.breaks_within(50_000), "no DEVICE_NEEDS_RESET");
            assert_eq!(tx.used_index(), 0);
            assert!(raw.wire.take_all().iter().all(|sent| sent.aborted));
            raw.works();
            assert_eq!(refused_writes(&raw), []);
        }
    }
}

#[test]
fn broken_chains_need_a_reset_on_receive() {
    for data_w in WIDTHS {
        for (seed, case) in CASES.iter().enumerate() {
            println!("{data_w} bits, seed {seed}: {}", case.name);
            let raw = guarded(data_w, seed as u64);
            let [mut rx, _tx] = raw.pair(FEATURES, SIZE);
            raw.allow(DATA, 100);
            put(&raw, &rx, case, WRITE);
            rx.offer(case.head);
            raw.send(&rx);
            raw.wire.push(vec![0x11; 1000]);
            assert!(raw.breaks_within(50_000), "no DEVICE_NEEDS_RESET");
            assert_eq!(rx.used_index(), 0);
            raw.works();
            assert_eq!(refused_writes(&raw), []);
        }
    }
}

#[test]
fn wrong_direction_and_indirect_without_the_feature_need_a_reset() {
    for data_w in WIDTHS {
        for case in 0..3 {
            let raw = guarded(data_w, case);
            let [mut rx, mut tx] = raw.pair(Features::VERSION_1, SIZE);
            let data = raw.area.iova() + D;
            match case {
                0 => {
                    rx.describe(0, data, 2000, 0, 0);
                    rx.offer(0);
                }
                1 => {
                    tx.describe(0, data, 100, WRITE, 0);
                    tx.offer(0);
                }
                _ => {
                    write(&raw.area, TABLE, &descriptor(data, 100, 0, 0));
                    tx.describe(0, raw.area.iova() + T, 16, INDIRECT, 0);
                    tx.offer(0);
                }
            }
            raw.send(&rx);
            raw.send(&tx);
            raw.wire.push(vec![1; 100]);
            assert!(raw.breaks_within(50_000), "case {case}");
            assert_eq!((rx.used_index(), tx.used_index()), (0, 0));
            raw.works();
            assert_eq!(refused_writes(&raw), []);
        }
    }
}

#[test]
fn lengths_of_4_gib() {
    for data_w in WIDTHS {
        let raw = guarded(data_w, 5);
        let [mut rx, mut tx] = raw.pair(Features::VERSION_1, SIZE);
        let area = raw.area.iova();
        // A receive buffer of that length is one: only the frame is written.
        rx.describe(0, area, u32::MAX, WRITE, 0);
        rx.offer(0);
        raw.allow(0, 112);
        raw.send(&rx);
        raw.wire.push(vec![7; 100]);
        raw.wait_used(&rx, 1);
        assert_eq!(rx.take_used(), [(0, 112)]);
        // Frames that long do not exist: dropped, counted, given back; the next one goes.
        for (len, first) in [
            (u32::MAX, true),
            (0x8000_0000, true),
            (9229, true),
            (9229, false),
        ] {
            if first {
                tx.describe(0, area + D, len, 0, 0);
            } else {
                tx.describe(0, area + D, 12, NEXT, 1);
                tx.describe(1, area + D, len - 12, NEXT, 2);
                tx.describe(2, area + D, u32::MAX, 0, 0);
            }
            tx.offer(0);
            raw.send(&tx);
            raw.wait_used(&tx, tx.next);
        }
        raw.transmit(&mut tx, 3, DATA, &[9; 9216]);
        raw.send(&tx);
        raw.wait_used(&tx, 5);
        assert_eq!(raw.counter(window::TX_BAD_FRAME), 4);
        raw.run(5000);
        let sent = raw.wire.take_all();
        assert_eq!(sent.iter().filter(|s| !s.aborted).count(), 1);
        assert!(!raw.needs_reset());
        raw.works();
        assert_eq!(refused_writes(&raw), []);
    }
}

#[test]
fn frames_too_short_and_offloads_that_were_not_negotiated_are_dropped_on_transmit() {
    for data_w in WIDTHS {
        let raw = guarded(data_w, 6);
        let [_rx, mut tx] = raw.pair(FEATURES, SIZE);
        let area = raw.area.iova() + D;
        let mut bad = 0;
        for len in [1, 11, 12, 13, 25] {
            tx.describe(0, area, len, 0, 0);
            tx.offer(0);
            bad += 1;
        }
        raw.send(&tx);
        raw.wait_used(&tx, bad);
        for (at, value) in [(0, 1), (1, 1), (1, 4), (1, 0x80)] {
            raw.transmit(&mut tx, 1, DATA, &[3; 100]);
            write(&raw.area, DATA + at, &[value]);
            raw.send(&tx);
            raw.wait_used(&tx, tx.next);
            bad += 1;
        }
        raw.transmit(&mut tx, 2, DATA, &[4; 14]);
        raw.send(&tx);
        raw.wait_used(&tx, bad + 1);
        raw.run(3000);
        assert_eq!(raw.counter(window::TX_BAD_FRAME), u32::from(bad));
        let sent: Vec<_> = raw.wire.take_all();
        let whole: Vec<_> = sent.iter().filter(|s| !s.aborted).collect();
        assert_eq!(whole.len(), 1);
        assert_eq!(whole[0].data, [4; 14]);
        assert!(!raw.needs_reset());
        raw.works();
    }
}

#[test]
fn available_index_ahead_by_more_than_the_ring() {
    for data_w in WIDTHS {
        for features in [FEATURES, FEATURES | Features::NOTIFICATION_DATA] {
            for (index, queue) in [
                (SIZE + 1, 0_u16),
                (SIZE + 1, 1),
                (0x7fff, 1),
                (0x8000, 1),
                (0xffff, 0),
            ] {
                println!("{data_w} bits, {features:?}, {index:#x}, queue {queue}");
                let raw = guarded(data_w, u64::from(index));
                let mut queues = raw.pair(features, SIZE);
                let q = &mut queues[usize::from(queue)];
                let flags = if queue == 0 { WRITE } else { 0 };
                for id in 0..SIZE {
                    q.describe(id, raw.area.iova() + D, 100, flags, 0);
                    q.offer(id);
                }
                raw.allow(DATA, 100);
                q.next = index;
                q.publish();
                let doorbell = u64::from(index) << 16 | u64::from(queue);
                raw.set(bar0::NOTIFY + 4 * u64::from(queue), 4, doorbell);
                raw.wire.push(vec![1; 60]);
                if index < 0x8000 {
                    assert!(raw.breaks_within(50_000), "no DEVICE_NEEDS_RESET");
                } else {
                    // Half the index space ahead is the past: nothing new is seen.
                    raw.run(20_000);
                }
                assert_eq!(queues[usize::from(queue)].used_index(), 0);
                raw.works();
                assert_eq!(refused_writes(&raw), []);
            }
        }
    }
}

#[test]
fn addresses_that_the_host_refuses() {
    for data_w in WIDTHS {
        for address in [
            0,
            0x7000,
            0xffff_fff0,
            0x9999_0000_0000,
            u64::MAX - 15,
            u64::MAX - 600,
        ] {
            println!("{data_w} bits, {address:#x}");
            let raw = guarded(data_w, address);
            let [_rx, mut tx] = raw.pair(FEATURES, SIZE);
            // Payload that cannot be read.
            tx.describe(0, address, 1000, 0, 0);
            tx.offer(0);
            raw.send(&tx);
            assert!(raw.breaks_within(50_000), "unreadable payload");
            assert!(raw.wire.take_all().iter().all(|s| s.aborted));
            raw.works();
            // A buffer that cannot be written: the card cannot know, and goes on.
            let [mut rx, _tx] = raw.pair(FEATURES, SIZE);
            rx.describe(0, address, 2000, WRITE, 0);
            rx.offer(0);
            raw.post(&mut rx, 1, 0, 2000);
            raw.send(&rx);
            raw.wire.push(vec![1; 1500]);
            raw.wire.push(vec![2; 60]);
            if address >> 32 == u64::from(u32::MAX) {
                // A buffer that could wrap around the end of the address space is refused.
                assert!(raw.breaks_within(50_000), "wrapping buffer");
                assert_eq!(rx.used_index(), 0);
                assert!(refused_writes(&raw).is_empty());
            } else {
                raw.wait_used(&rx, 2);
                assert_eq!(read(&raw.area, 12, 60), [2; 60]);
                let refused = refused_writes(&raw);
                assert!(!refused.is_empty());
                for fault in refused {
                    assert!(fault.iova.wrapping_sub(address) < 1512, "{fault:x?}");
                }
            }
            raw.works();
            // An indirect table, and the rings themselves.
            let [rx, mut tx] = raw.pair(FEATURES, SIZE);
            tx.describe(0, address, 64, INDIRECT, 0);
            tx.offer(0);
            raw.send(&tx);
            assert!(raw.breaks_within(50_000), "unreadable table");
            assert_eq!(rx.used_index(), 0);
            raw.works();
            for register in [common::QUEUE_DESC, common::QUEUE_DRIVER] {
                assert!(raw.negotiate(FEATURES));
                let mut queue = RawQueue::new(&raw.function, 1, SIZE);
                raw.select(1);
                raw.set(common::QUEUE_ENABLE, 2, 0);
                raw.set(common::QUEUE_SIZE, 2, SIZE.into());
                raw.set(common::QUEUE_DRIVER, 8, queue.avail.iova());
                raw.set(common::QUEUE_DEVICE, 8, queue.used.iova());
                raw.set(common::QUEUE_DESC, 8, queue.desc.iova());
                raw.set(register, 8, address);
                raw.set(common::QUEUE_ENABLE, 2, 1);
                raw.driver_ok();
                queue.offer(0);
                raw.send(&queue);
                assert!(raw.breaks_within(50_000), "unreadable ring");
                raw.works();
            }
            assert_eq!(refused_writes(&raw), []);
        }
    }
}

#[test]
fn frames_from_the_wire_that_are_none() {
    for data_w in WIDTHS {
        for seed in 0..4 {
            println!("{data_w} bits, seed {seed}");
            let raw = guarded(data_w, seed);
            let [mut rx, _tx] = raw.pair(FEATURES, 64);
            for id in 0..64 {
                raw.post(&mut rx, id, usize::from(id) * 4096, 4096);
            }
            raw.send(&rx);
            let good = |n: u8| vec![n; 14 + usize::from(n)];
            let (mut short, mut long, mut abort) = (0, 0, 0);
            for n in 0..20 {
                raw.wire.push(good(n));
                match (u64::from(n) + seed) % 5 {
                    0 => {
                        raw.wire.push(vec![0xbb; 1 + usize::from(n % 13)]);
                        short += 1;
                    }
                    1 => {
                        raw.wire.push(vec![0xbb; 9217 + usize::from(n) * 300]);
                        long += 1;
                    }
                    2 => {
                        raw.wire.push_aborted(vec![0xbb; 14 + usize::from(n) * 77]);
                        abort += 1;
                    }
                    3 => {
                        raw.wire.push_aborted(vec![0xbb; 1]);
                        raw.wire.push(vec![0xbb; 13]);
                        (short, abort) = (short + 1, abort + 1);
                    }
                    _ => {
                        raw.wire.push_aborted(vec![0xbb; 12_000]);
                        long += 1;
                    }
                }
            }
            raw.wait_used(&rx, 20);
            raw.run(20_000);
            let used = rx.take_used();
            for (n, (id, len)) in used.into_iter().enumerate() {
                assert_eq!((id as usize, len as usize), (n, 26 + n));
                let got = read(&raw.area, n * 4096 + 12, 14 + n);
                assert_eq!(got, good(n as u8));
            }
            // An aborted frame may be counted as such or by its length, but is counted once.
            let counters = [window::RX_SHORT, window::RX_LONG, window::RX_ABORT];
            let counted = counters.map(|c| raw.counter(c));
            println!("short, long, aborted: {counted:?}");
            assert_eq!(counted.iter().sum::<u32>(), short + long + abort);
            assert!(counted[0] >= short && counted[2] >= 1, "{counted:?}");
            raw.works();
            assert_eq!(refused_writes(&raw), []);
        }
    }
}

#[test]
fn queues_enabled_in_the_wrong_order_and_doorbells_of_disabled_ones() {
    for data_w in WIDTHS {
        let raw = guarded(data_w, 7);
        raw.reset();
        let mut tx = RawQueue::new(&raw.function, 1, SIZE);
        let mut rx = RawQueue::new(&raw.function, 0, SIZE);
        raw.transmit(&mut tx, 0, DATA, &[5; 60]);
        raw.post(&mut rx, 0, 0, 2000);
        tx.publish();
        rx.publish();
        let before = raw.function.sim().root.stats;
        let doorbells = || {
            for queue in 0..64 {
                raw.kick(queue);
                raw.set(
                    bar0::NOTIFY + 4 * u64::from(queue),
                    4,
                    0x0001_0000 | u64::from(queue),
                );
            }
            raw.run(3000);
        };
        // Doorbells before anything else; then a queue enabled before FEATURES_OK, DRIVER_OK
        // without it, and with no queue at all.
        doorbells();
        raw.enable(&tx, NO_VECTOR);
        doorbells();
        raw.set_status(Status::ACKNOWLEDGE | Status::DRIVER | Status::DRIVER_OK);
        doorbells();
        raw.wire.push(vec![1; 60]);
        let link = raw.function.sim().root.stats.since(&before);
        assert_eq!((link.up_reads.tlps, link.up_writes.tlps), (0, 0));
        assert!(raw.negotiate(FEATURES));
        raw.driver_ok();
        doorbells();
        let link = raw.function.sim().root.stats.since(&before);
        assert_eq!((link.up_reads.tlps, link.up_writes.tlps), (0, 0));
        // Enabled after DRIVER_OK, the transmit queue first: it works from the next doorbell on.
        raw.enable(&tx, NO_VECTOR);
        raw.kick(1);
        raw.wait_used(&tx, 1);
        raw.enable(&rx, NO_VECTOR);
        raw.kick(0);
        // Before that arrives a frame would find no queue and be dropped.
        raw.run(3000);
        raw.wire.push(vec![2; 60]);
        raw.wait_used(&rx, 1);
        assert!(!raw.needs_reset());
        raw.works();
        assert_eq!(refused_writes(&raw), []);
    }
}

#[test]
fn features_written_while_the_card_runs_change_nothing() {
    for data_w in WIDTHS {
        let raw = guarded(data_w, 8);
        let [mut rx, mut tx] = raw.pair(FEATURES, SIZE);
        for round in 0..20_u16 {
            raw.post(&mut rx, round % SIZE, 0, 2000);
            raw.send(&rx);
            raw.transmit(&mut tx, round % SIZE, DATA, &[5; 600]);
            raw.send(&tx);
            raw.wire.push(vec![round as u8; 100]);
            for bits in [0, u64::MAX, 1 << 29, 1 << u64::from(round)] {
                raw.accept(Features::from_bits_retain(bits));
                raw.set_status(Status::FEATURES_OK);
            }
            raw.wait_used(&rx, round + 1);
            raw.wait_used(&tx, round + 1);
            assert_eq!(read(&raw.area, 12, 100), [round as u8; 100]);
            assert_eq!(raw.accepted(), FEATURES);
        }
        raw.works();
        assert_eq!(refused_writes(&raw), []);
    }
}
