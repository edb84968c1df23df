//! Changes of the link (virtio 1.2, "Device configuration layout" of the network device, and
//! "Notification of Device Configuration Changes").

use ferronic_cosim_tests::raw_driver::Raw;
use ferronic_sim::SimConfig;
use ferronic_spec::Features;
use ferronic_spec::net::config;
use ferronic_spec::pci::bar0;
use ferronic_spec::transport::{Isr, NO_VECTOR, common};

const CONFIG_VECTOR: u16 = 3;
const UNKNOWN_SPEED: u64 = u32::MAX as u64;

fn config_value(raw: &Raw, offset: u64, len: usize) -> u64 {
    raw.get(bar0::DEVICE + offset, len)
}

/// A card with an interrupt for configuration changes, DRIVER_OK set.
fn ready() -> Raw {
    let raw = Raw::new(SimConfig::default());
    raw.function
        .sim()
        .enable_msix(CONFIG_VECTOR + 1)
        .expect("the card answers");
    assert!(raw.negotiate(Features::VERSION_1 | Features::STATUS | Features::SPEED_DUPLEX));
    raw.set(common::CONFIG_MSIX_VECTOR, 2, CONFIG_VECTOR.into());
    raw.driver_ok();
    raw
}

fn take_vectors(raw: &Raw) -> Vec<u16> {
    raw.run(2000);
    let mut sim = raw.function.sim();
    std::iter::from_fn(|| sim.take_vector()).collect()
}

#[test]
fn link_change_changes_configuration_and_generation_and_interrupts_once() {
    let raw = ready();
    assert_eq!(config_value(&raw, config::STATUS, 2), 1);
    assert!(take_vectors(&raw).is_empty());
    for up in [false, true, false] {
        let generation = raw.get(common::CONFIG_GENERATION, 1);
        raw.function.sim().set_link(up).expect("the card runs");
        assert_eq!(take_vectors(&raw), [CONFIG_VECTOR]);
        assert_eq!(config_value(&raw, config::STATUS, 2), u64::from(up));
        let speed = config_value(&raw, config::SPEED, 4);
        assert_eq!(speed == UNKNOWN_SPEED, !up);
        assert_eq!(
            config_value(&raw, config::DUPLEX, 1),
            if up { 1 } else { 0xff }
        );
        assert_ne!(raw.get(common::CONFIG_GENERATION, 1), generation);
        assert_eq!(raw.get(bar0::ISR, 1), u64::from(Isr::CONFIG.bits()));
        assert_eq!(raw.get(bar0::ISR, 1), 0, "reading clears");
    }
}

#[test]
fn link_change_without_a_vector_or_before_driver_ok_is_silent() {
    let raw = ready();
    raw.set(common::CONFIG_MSIX_VECTOR, 2, NO_VECTOR.into());
    raw.function.sim().set_link(false).expect("the card runs");
    assert!(take_vectors(&raw).is_empty());
    assert_eq!(config_value(&raw, config::STATUS, 2), 0);

    raw.reset();
    raw.function.sim().set_link(true).expect("the card runs");
    assert!(take_vectors(&raw).is_empty());
    assert_eq!(raw.get(bar0::ISR, 1), 0);
}
