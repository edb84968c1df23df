//! The card as a PCI Express function: configuration space, register accesses, power states,
//! resets.

use ferronic_cosim_tests::raw_driver::Raw;
use ferronic_sim::root_complex::Completion;
use ferronic_sim::tlp::{self, Header};
use ferronic_sim::{Sim, SimConfig};
use ferronic_spec::pci::{bar0, dvsec};
use ferronic_spec::transport::common;
use ferronic_spec::{Features, window};

const UR: u8 = 1;
const CA: u8 = 4;
const CAP_PM: u8 = 1;
const CAP_VENDOR: u8 = 9;
const CAP_PCIE: u8 = 0x10;
const CAP_MSIX: u8 = 0x11;

fn config(raw: &Raw, offset: u16, len: usize) -> u32 {
    let mut bytes = [0; 4];
    raw.function
        .sim()
        .config_read(offset, &mut bytes[..len])
        .expect("the card answers");
    u32::from_le_bytes(bytes)
}

fn set_config(raw: &Raw, offset: u16, data: &[u8]) {
    let mut sim = raw.function.sim();
    sim.config_write(offset, data).expect("the card answers");
}

/// The capability list: offset, id.
fn capabilities(raw: &Raw) -> Vec<(u16, u8)> {
    let mut list = Vec::new();
    let mut at = config(raw, 0x34, 1) as u16;
    while at != 0 {
        assert!(
            at >= 0x40 && at.is_multiple_of(4) && list.len() < 48,
            "at {at:#x}"
        );
        list.push((at, config(raw, at, 1) as u8));
        at = config(raw, at + 1, 1) as u16;
    }
    list
}

fn capability(raw: &Raw, id: u8) -> u16 {
    let found = capabilities(raw).iter().find(|c| c.1 == id).copied();
    found.expect("the capability").0
}

fn raw() -> Raw {
    Raw::new(SimConfig::default())
}

/// How a request with this header ends.
fn request(sim: &mut Sim, header: Header, payload: [u8; 8]) -> Completion {
    let now = sim.now();
    let tag = sim.root.raw_request(now, header, payload);
    let mut done = None;
    sim.run_until(100_000, |sim| {
        done = sim.root.take_completion(tag);
        done.is_some()
    })
    .expect("the card runs");
    done.expect("a non-posted request must be completed")
}

fn bar(sim: &Sim) -> u64 {
    sim.function().expect("enumerated").bar.address
}

#[test]
fn header_names_the_card() {
    let raw = raw();
    assert_eq!(config(&raw, 0x00, 4), 0x1041_1af4);
    assert_eq!(config(&raw, 0x08, 4), 0x0200_0001);
    assert_eq!(config(&raw, 0x0e, 1), 0, "header type 0, one function");
    assert_eq!(config(&raw, 0x2c, 4), 0xfe01_1af4);
    assert_eq!(config(&raw, 0x06, 2) & 0x10, 0x10, "has a capability list");
    assert_eq!(config(&raw, 0x3d, 1), 0, "no INTx pin");
    // What is read-only stays.
    for offset in [0x00, 0x08, 0x2c, 0x34] {
        let before = config(&raw, offset, 4);
        set_config(&raw, offset, &[0xff; 4]);
        assert_eq!(config(&raw, offset, 4), before, "at {offset:#x}");
    }
    // Beyond what is implemented everything reads 0.
    for offset in [0x18, 0x1c, 0x20, 0x24, 0x28, 0x30, 0x200, 0xffc] {
        set_config(&raw, offset, &[0xff; 4]);
        assert_eq!(config(&raw, offset, 4), 0, "at {offset:#x}");
    }
}

#[test]
fn capability_list_holds_what_the_card_is() {
    let raw = raw();
    let ids: Vec<u8> = capabilities(&raw).iter().map(|c| c.1).collect();
    for (id, count) in [(CAP_PM, 1), (CAP_MSIX, 1), (CAP_PCIE, 1), (CAP_VENDOR, 5)] {
        assert_eq!(ids.iter().filter(|i| **i == id).count(), count, "{id:#x}");
    }
    let pcie = capability(&raw, CAP_PCIE);
    let flags = config(&raw, pcie + 2, 2);
    assert_eq!(
        (flags & 0xf, flags >> 4 & 0xf),
        (2, 0),
        "version 2, endpoint"
    );
    let device = config(&raw, pcie + 4, 4);
    assert_ne!(device & 1 << 28, 0, "function level reset");
    assert_ne!(device & 1 << 15, 0, "role-based error reporting");
    let pm = capability(&raw, CAP_PM);
    assert_eq!(config(&raw, pm + 2, 2) & 7, 3, "power management 1.2");
    assert_eq!(config(&raw, pm + 4, 2) & 8, 0, "No_Soft_Reset");
    let msix = capability(&raw, CAP_MSIX);
    assert_eq!(config(&raw, msix + 2, 2), 8, "nine vectors, disabled");
    assert_eq!(u64::from(config(&raw, msix + 4, 4)), bar0::MSIX_TABLE);
    assert_eq!(u64::from(config(&raw, msix + 8, 4)), bar0::MSIX_PBA);
}

#[test]
fn virtio_capabilities_name_the_structures() {
    let raw = raw();
    let found: Vec<_> = capabilities(&raw)
        .into_iter()
        .filter(|c| c.1 == CAP_VENDOR)
        .map(|(at, _)| {
            let [len, kind, bar] = [2, 3, 4].map(|o| config(&raw, at + o, 1));
            let [offset, length] = [8, 12].map(|o| u64::from(config(&raw, at + o, 4)));
            (at, kind, len, bar, offset, length)
        })
        .collect();
    let of = |kind| *found.iter().find(|c| c.1 == kind).expect("the structure");
    for (kind, offset, least) in [
        (1, bar0::COMMON, 60),
        (2, bar0::NOTIFY, 8 * 4),
        (3, bar0::ISR, 1),
        (4, bar0::DEVICE, 20),
    ] {
        let (_, _, len, bar, at, length) = of(kind);
        assert_eq!((bar, at), (0, offset), "structure {kind}");
        assert!(len >= 16 && length >= least, "structure {kind}");
        assert!(at + length <= bar0::SIZE);
    }
    let notify = of(2);
    assert_eq!(notify.2, 20);
    assert_eq!(config(&raw, notify.0 + 16, 4), bar0::NOTIFY_MULTIPLIER);
    assert_eq!(of(5).2, 20);
}

#[test]
fn dvsec_leads_to_the_window() {
    let raw = raw();
    let word = |offset: usize| config(&raw, 0x100 + offset as u16, 4);
    let header = word(0);
    assert_eq!(
        (header as u16, header >> 16 & 0xf),
        (dvsec::CAPABILITY_ID, 1)
    );
    assert_eq!(header >> 20, 0, "the last of the list");
    assert_eq!(word(dvsec::HEADER1) as u16, dvsec::VENDOR);
    assert_eq!(word(dvsec::HEADER1) >> 20, dvsec::SIZE as u32);
    assert_eq!(word(dvsec::HEADER2) as u16, dvsec::ID);
    for (at, part) in dvsec::CARD_UUID.iter().enumerate() {
        assert_eq!(word(dvsec::UUID + 4 * at), *part);
        assert_eq!(raw.window(4 * at as u64), *part);
    }
    assert_eq!(word(dvsec::VERSION), raw.window(window::VERSION));
    assert_eq!(word(dvsec::BAR), 0);
    assert_eq!(u64::from(word(dvsec::OFFSET)), bar0::WINDOW);
    assert_eq!(u64::from(word(dvsec::LENGTH)), bar0::WINDOW_LEN);
}

#[test]
fn bar_is_64_bits_wide_and_moves() {
    let raw = raw();
    let at = bar(&raw.function.sim());
    set_config(&raw, 0x10, &[0xff; 8]);
    assert_eq!(config(&raw, 0x10, 4), 0xffff_0004, "64 KiB, 64 bits");
    assert_eq!(config(&raw, 0x14, 4), 0xffff_ffff);
    // Below 4 GiB: three-DW headers, and nothing answers at the old place.
    let moved: u64 = 0xd012_0000;
    set_config(&raw, 0x10, &moved.to_le_bytes());
    let mut sim = raw.function.sim();
    let read = |addr| tlp::memory(false, addr, 1, (0xf, 0), 0, 0);
    let done = request(&mut sim, read(moved + bar0::WINDOW), [0; 8]);
    assert_eq!(
        (done.status, &done.data[..4]),
        (0, &0xf377_0a1c_u32.to_le_bytes()[..])
    );
    assert_eq!(
        request(&mut sim, read(at + bar0::WINDOW), [0; 8]).status,
        UR
    );
    assert_eq!(request(&mut sim, read(moved + 0x1_0000), [0; 8]).status, UR);
    assert_eq!(request(&mut sim, read(moved - 4), [0; 8]).status, UR);
}

#[test]
fn registers_are_accessed_in_every_width() {
    let raw = raw();
    let entry = bar0::MSIX_TABLE;
    raw.set(entry, 8, 0x0706_0504_0302_0100);
    assert_eq!(raw.get(entry, 8), 0x0706_0504_0302_0100);
    for at in 0..8 {
        assert_eq!(raw.get(entry + at, 1), at);
    }
    for at in [0, 2, 4, 6] {
        assert_eq!(raw.get(entry + at, 2), at | (at + 1) << 8);
    }
    assert_eq!(raw.get(entry + 4, 4), 0x0706_0504);
    // Each width writes its own bytes alone. The two lowest address bits are fixed.
    raw.set(entry + 5, 1, 0xaa);
    raw.set(entry + 2, 2, 0xbbcc);
    assert_eq!(raw.get(entry, 8), 0x0706_aa04_bbcc_0100);
    raw.set(entry + 4, 4, 0x1122_3344);
    assert_eq!(raw.get(entry, 8), 0x1122_3344_bbcc_0100);
}

#[test]
fn byte_enables_choose_bytes_inside_the_dw() {
    let raw = raw();
    let entry = bar0::MSIX_TABLE + 8;
    raw.set(entry, 4, 0x4433_2211);
    let mut sim = raw.function.sim();
    let base = bar(&sim) + entry;
    // Reads with every pattern of byte enables, with holes too; none is a flush of one byte.
    for first in 0..16 {
        let header = tlp::memory(false, base, 1, (first, 0), 0, 0);
        let done = request(&mut sim, header, [0; 8]);
        assert_eq!(done.status, 0, "byte enables {first:#x}");
        for (byte, want) in [0x11, 0x22, 0x33, 0x44].into_iter().enumerate() {
            if first >> byte & 1 == 1 {
                assert_eq!(done.data[byte], want, "byte enables {first:#x}");
            }
        }
    }
    // Writes that are not aligned: three bytes from byte 1, then two across a DW.
    let now = sim.now();
    sim.root.write(now, base + 1, &[0xa1, 0xa2, 0xa3]);
    assert_eq!(sim.bar_read(entry, 4).expect("read"), 0xa3a2_a111);
    let now = sim.now();
    sim.root.write(now, base - 1, &[0xb0, 0xb1]);
    assert_eq!(sim.bar_read(entry, 4).expect("read"), 0xa3a2_a1b1);
    assert_eq!(sim.bar_read(entry - 1, 1).expect("read"), 0xb0);
}

#[test]
fn zero_length_read_has_no_side_effect_and_flushes() {
    let raw = raw();
    let [_rx, mut tx] = raw.pair(Features::VERSION_1, 8);
    raw.transmit(&mut tx, 0, 0, &[1; 60]);
    raw.send(&tx);
    raw.wait_used(&tx, 1);
    raw.run(2000);
    let mut sim = raw.function.sim();
    let header = tlp::memory(false, bar(&sim) + bar0::ISR, 1, (0, 0), 0, 0);
    assert_eq!(request(&mut sim, header, [0; 8]).status, 0);
    assert_eq!(
        sim.bar_read(bar0::ISR, 1).expect("read"),
        1,
        "ISR was cleared"
    );
}

#[test]
fn requests_that_are_not_served_are_completed_with_an_error_and_the_card_lives() {
    for data_w in [64, 512] {
        let raw = Raw::new(SimConfig {
            data_w,
            ..SimConfig::default()
        });
        let mut sim = raw.function.sim();
        let base = bar(&sim);
        let long = |dws| tlp::memory(false, base, dws, (0xf, 0xf), 0, 0);
        for dws in [3, 4, 16, 64, 1024] {
            let status = request(&mut sim, long(dws), [0; 8]).status;
            assert!(status == CA || status == UR, "{dws} DWs: status {status}");
        }
        // Over the end of the BAR.
        let over = tlp::memory(false, base + 0xfffc, 2, (0xf, 0xf), 0, 0);
        let status = request(&mut sim, over, [0; 8]).status;
        assert!(status == CA || status == UR, "status {status}");
        // Another function of this device, type 1, I/O, locked read, fetch-and-add, swap, CAS.
        let mut other = tlp::configuration(false, 0x0101, 0, 0xf, 0, 0);
        assert_eq!(request(&mut sim, other, [0; 8]).status, UR);
        other = tlp::configuration(false, 0x0100, 0, 0xf, 0, 0);
        other[0] |= 1 << 24;
        assert_eq!(request(&mut sim, other, [0; 8]).status, UR);
        let memory = tlp::memory(false, 0x1000, 1, (0xf, 0), 0, 0);
        for fmt_type in [0x02, 0x42, 0x4c, 0x4d, 0x4e] {
            let header = [
                memory[0] & 0xff_ffff | fmt_type << 24,
                memory[1],
                memory[2],
                0,
            ];
            let done = request(&mut sim, header, [0; 8]);
            assert_eq!(done.status, UR, "format and type {fmt_type:#x}");
        }
        // Poisoned configuration write: no effect.
        let line = tlp::configuration(true, 0x0100, 0x3c, 1, 0, 0);
        assert_eq!(request(&mut sim, line, [0x5a; 8]).status, 0);
        let mut poisoned = line;
        tlp::poison(&mut poisoned);
        assert_ne!(request(&mut sim, poisoned, [0xa5; 8]).status, 0);
        let mut byte = [0];
        sim.config_read(0x3c, &mut byte).expect("the card answers");
        assert_eq!(byte, [0x5a]);
        drop(sim);
        assert_ne!(raw.counter(window::PCIE_UNSUPPORTED_REQ), 0);
        raw.works();
    }
}

#[test]
fn memory_is_unsupported_while_it_is_disabled() {
    let raw = raw();
    set_config(&raw, 4, &[0, 0]);
    let mut sim = raw.function.sim();
    let header = tlp::memory(false, bar(&sim), 1, (0xf, 0), 0, 0);
    assert_eq!(request(&mut sim, header, [0; 8]).status, UR);
    sim.config_write(4, &[6, 0]).expect("the card answers");
    drop(sim);
    raw.works();
}

#[test]
fn pci_config_access_reaches_registers() {
    let raw = raw();
    let at = capabilities(&raw)
        .into_iter()
        .find(|(at, id)| *id == CAP_VENDOR && config(&raw, at + 3, 1) == 5)
        .expect("the capability")
        .0;
    let aim = |offset: u32, len: u32| {
        set_config(&raw, at + 4, &[0]);
        set_config(&raw, at + 8, &offset.to_le_bytes());
        set_config(&raw, at + 12, &len.to_le_bytes());
    };
    let entry = bar0::MSIX_TABLE as u32;
    for (offset, data) in [
        (entry + 8, vec![0x78, 0x56, 0x34, 0x12]),
        (entry + 8, vec![0xaa]),
        (entry + 9, vec![0xbb]),
        (entry + 10, vec![0xcc, 0xdd]),
    ] {
        aim(offset, data.len() as u32);
        set_config(&raw, at + 16, &data);
    }
    assert_eq!(raw.get(bar0::MSIX_TABLE + 8, 4), 0xddcc_bbaa);
    for (offset, len, want) in [
        (8, 4, 0xddcc_bbaa),
        (8, 1, 0xaa),
        (9, 1, 0xbb),
        (11, 1, 0xdd),
        (8, 2, 0xbbaa),
        (10, 2, 0xddcc),
    ] {
        aim(entry + offset, len);
        assert_eq!(config(&raw, at + 16, len as usize), want, "{offset} {len}");
    }
    // Windows that are not possible: no access, no hang.
    for (offset, len) in [
        (entry, 0),
        (entry, 3),
        (entry + 1, 2),
        (entry + 2, 4),
        (0x1_0000, 4),
    ] {
        aim(offset, len);
        config(&raw, at + 16, 4);
        set_config(&raw, at + 16, &[0; 4]);
    }
    assert_eq!(raw.get(bar0::MSIX_TABLE + 8, 4), 0xddcc_bbaa);
}

#[test]
fn d3hot_silences_the_card_and_d0_begins_afresh() {
    let raw = raw();
    let [mut rx, _tx] = raw.pair(Features::VERSION_1, 8);
    raw.post(&mut rx, 0, 0, 2048);
    raw.send(&rx);
    raw.run(3000);
    let pm = capability(&raw, CAP_PM) + 4;
    set_config(&raw, pm, &[3]);
    assert_eq!(config(&raw, pm, 2) & 3, 3);
    {
        let mut sim = raw.function.sim();
        let before = sim.root.stats;
        let header = tlp::memory(false, bar(&sim), 1, (0xf, 0), 0, 0);
        assert_eq!(
            request(&mut sim, header, [0; 8]).status,
            UR,
            "memory in D3hot"
        );
        raw.wire.push(vec![1; 60]);
        sim.run(20_000).expect("the card runs");
        let after = sim.root.stats.since(&before);
        assert_eq!((after.up_writes.tlps, after.up_reads.tlps), (0, 0));
    }
    assert_eq!(
        config(&raw, 0, 4),
        0x1041_1af4,
        "configuration works in D3hot"
    );
    set_config(&raw, pm, &[0]);
    raw.run(5000);
    assert_eq!(config(&raw, pm, 2) & 3, 0);
    assert_eq!(config(&raw, 4, 2) & 6, 0, "the function was not reset");
    assert_eq!(rx.used_index(), 0);
    let mut sim = raw.function.sim();
    sim.program_function().expect("the card answers");
    sim.set_bus_master(true).expect("the card answers");
    drop(sim);
    assert!(raw.status().is_empty());
    raw.works();
}

#[test]
fn function_level_reset_restores_defaults() {
    let raw = raw();
    let [_rx, _tx] = raw.pair(Features::VERSION_1, 8);
    raw.set(bar0::WINDOW + window::PAIRS_IN_USE, 4, 3);
    raw.function.sim().enable_msix(9).expect("the card answers");
    let pcie = capability(&raw, CAP_PCIE);
    let msix = capability(&raw, CAP_MSIX);
    set_config(&raw, 0x3c, &[0x77]);
    set_config(&raw, pcie + 8, &[0x2f, 0x50]); // MPS 256, all reports on, MRRS 4096
    set_config(&raw, pcie + 9, &[0xd0]); // FLR
    raw.function.sim().after_function_reset().expect("it ends");
    assert_eq!(config(&raw, 0x04, 2), 0, "command");
    assert_eq!(config(&raw, 0x10, 4), 4);
    assert_eq!(config(&raw, 0x14, 4), 0);
    assert_eq!(config(&raw, 0x3c, 1), 0);
    // MRRS 512 again; Max_Payload_Size is for the link to keep.
    assert_eq!(config(&raw, pcie + 8, 2), 0x2020, "device control");
    assert_eq!(
        config(&raw, pcie + 10, 2) & 1 << 5,
        0,
        "transactions pending"
    );
    assert_eq!(config(&raw, msix + 2, 2), 8, "MSI-X control");
    let mut sim = raw.function.sim();
    sim.program_function().expect("the card answers");
    sim.set_bus_master(true).expect("the card answers");
    drop(sim);
    for vector in 0..9 {
        assert_eq!(raw.get(bar0::MSIX_TABLE + 16 * vector + 12, 4), 1);
    }
    assert!(raw.status().is_empty());
    assert_eq!(raw.window(window::PAIRS_IN_USE), 1);
    raw.select(1);
    assert_eq!(raw.get(common::QUEUE_ENABLE, 2), 0);
    assert_eq!(raw.get(common::QUEUE_SIZE, 2), 256);
    raw.works();
}
