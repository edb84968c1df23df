//! The registers of large receive offload on the whole card.

use ferronic::pci::PciFunction;
use ferronic_cosim_tests::raw_driver::Raw;
use ferronic_sim::SimConfig;
use ferronic_spec::pci::bar0;
use ferronic_spec::{Features, window};

const SETTINGS: [(u64, u32, u32); 5] = [
    (window::LRO_PROFILE, 1, 0),
    (window::LRO_GAP, 12_500, 25_000),
    (window::LRO_HOLD, 50_000, 8_388_607),
    (window::LRO_MAX_BYTES, 65_535, 9_000),
    (window::LRO_LOW_WATER, 0, 64),
];

fn set(raw: &Raw, register: u64, value: u32) {
    raw.set(bar0::WINDOW + register, 4, value.into());
}

fn defaults(raw: &Raw) {
    for (register, default, _) in SETTINGS {
        assert_eq!(raw.window(register), default, "{register:#x}");
    }
}

#[test]
fn lro_settings_are_kept_until_a_reset() {
    for width in [64, 512] {
        let raw = Raw::new(SimConfig {
            data_w: width,
            ..SimConfig::default()
        });
        if !raw.has_lro() {
            continue; // `card_without_lro_has_none_of_it` is about that one
        }
        assert_eq!(
            window::LRO_CAPS_MAX_BUFFERS.get(raw.window(window::LRO_CAPS)),
            64
        );
        let change = |raw: &Raw| {
            for (register, _, value) in SETTINGS {
                set(raw, register, value);
            }
            for (register, _, value) in SETTINGS {
                assert_eq!(raw.window(register), value, "{register:#x}");
            }
        };
        defaults(&raw);
        change(&raw);
        // What is not allowed leaves what is there.
        for (register, _, value) in SETTINGS {
            for wrong in [0x0100_0000, u32::MAX] {
                set(&raw, register, wrong);
                assert_eq!(raw.window(register), value, "{register:#x}");
            }
        }
        raw.reset();
        defaults(&raw);
        // In use, too; and a function reset ends it likewise.
        let pair = raw.pair(
            Features::VERSION_1 | Features::GUEST_CSUM | Features::LRO,
            8,
        );
        change(&raw);
        set(&raw, window::PAIRS_IN_USE, 2);
        assert_eq!(raw.window(window::PAIRS_IN_USE), 2);
        raw.function.reset().expect("the card answers");
        defaults(&raw);
        drop(pair);
        let mut sim = raw.function.sim();
        sim.set_bus_master(true).expect("the card answers");
        drop(sim);
        raw.works();
    }
}

#[test]
fn card_without_lro_has_none_of_it() {
    let raw = Raw::new(SimConfig::default());
    if raw.has_lro() {
        assert!(raw.offered().contains(Features::LRO));
        return;
    }
    assert!(!raw.offered().intersects(Features::LRO));
    for register in (0x100..0x200).step_by(4) {
        set(&raw, register, 1);
        assert_eq!(raw.window(register), 0, "{register:#x}");
    }
}
