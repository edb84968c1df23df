//! Cards in a tree that looks like sysfs, and the change of their drivers.

#[path = "support/fake_sysfs.rs"]
mod fake_sysfs;
mod support;

use fake_sysfs::{FakeDevice, FakeSysfs};
use ferronic::pci::PciAddress;
use ferronic::pci::sysfs::{Bound, OwnCapability, Sysfs, SysfsError, Unbound};
use support::config_space;

const CARD: &str = "0000:01:00.0";

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

fn sysfs(fake: &FakeSysfs) -> Sysfs {
    Sysfs::new(fake.root(), fake.dev())
}

fn with_card(driver: Option<&str>) -> (FakeSysfs, Sysfs) {
    let fake = FakeSysfs::new();
    fake.card(CARD, driver, Some(7), &config_space::bytes());
    let sysfs = sysfs(&fake);
    (fake, sysfs)
}

#[test]
fn cards_are_found_with_driver_group_and_capability() {
    let (fake, sysfs) = with_card(Some("virtio-pci"));
    fake.interface(CARD, "eth1", true);
    fake.card("0000:02:00.0", None, None, &config_space::bytes()[..64]);
    let mut other = config_space::bytes();
    other[0x100..0x104].fill(0);
    fake.card("0000:03:00.0", Some("vfio-pci"), Some(8), &other);
    fake.device(&FakeDevice {
        address: "0000:01:00.1",
        ids: (0x8086, 0x1533),
        driver: Some("igb"),
        group: Some(7),
        config: &[],
    });
    fake.file("sys/devices/0000:03:00.0/driver_override", "vfio-pci\n");
    let cards = sysfs.cards().unwrap();
    let found: Vec<_> = cards.iter().map(|card| card.address.to_string()).collect();
    assert_eq!(found, [CARD, "0000:02:00.0", "0000:03:00.0"]);
    let [ours, bare, foreign] = &cards[..] else {
        unreachable!()
    };
    assert_eq!(ours.own, OwnCapability::Present);
    assert_eq!((ours.subsystem_vendor, ours.subsystem), (0x1af4, 0xfe01));
    assert_eq!(ours.driver.as_deref(), Some("virtio-pci"));
    assert_eq!(ours.driver_override, None);
    assert_eq!(ours.interfaces, [("eth1".to_owned(), true)]);
    let group = ours.group.as_ref().unwrap();
    assert_eq!((group.id, group.noiommu), (7, false));
    assert_eq!(group.others.len(), 1);
    assert_eq!(group.others[0].address, address("0000:01:00.1"));
    assert!(group.others[0].blocks());
    assert_eq!(
        (bare.own, bare.group.as_ref()),
        (OwnCapability::Hidden, None)
    );
    assert_eq!(foreign.own, OwnCapability::Absent);
    assert_eq!(foreign.driver_override.as_deref(), Some("vfio-pci"));
}

#[test]
fn bus_without_cards_is_no_error() {
    let fake = FakeSysfs::new();
    assert!(sysfs(&fake).cards().unwrap().is_empty());
    assert!(
        Sysfs::new("/nonexistent", "/dev")
            .cards()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn bind_and_unbind_move_a_card_and_are_idempotent() {
    let (fake, sysfs) = with_card(Some("virtio-pci"));
    let _kernel = fake.kernel("virtio-pci", &[]);
    let card = address(CARD);
    let before = Some("virtio-pci".to_owned());
    assert_eq!(
        sysfs.bind(card, "vfio-pci", false).unwrap(),
        Bound::Now(before.clone())
    );
    assert_eq!(fake.driver_of(CARD).as_deref(), Some("vfio-pci"));
    assert_eq!(fake.override_of(CARD), "vfio-pci");
    assert_eq!(sysfs.bind(card, "vfio-pci", false).unwrap(), Bound::Already);
    let restored = sysfs.unbind(card, true, false).unwrap();
    assert_eq!(restored.before.as_deref(), Some("vfio-pci"));
    assert_eq!(restored.after, before);
    assert_eq!(fake.override_of(CARD), "");
    // Again: it is where the kernel would put it.
    let again = sysfs.unbind(card, true, false).unwrap();
    assert_eq!(
        (again.before.as_ref(), again.after.as_ref()),
        (before.as_ref(), before.as_ref())
    );
    let none = sysfs.unbind(card, false, false).unwrap();
    assert_eq!(
        none,
        Unbound {
            before,
            after: None
        }
    );
    assert_eq!(fake.driver_of(CARD), None);
    let none = sysfs.unbind(card, false, false).unwrap();
    assert_eq!(
        none,
        Unbound {
            before: None,
            after: None
        }
    );
}

#[test]
fn bind_that_the_kernel_refuses_gives_the_card_back() {
    let (fake, sysfs) = with_card(Some("virtio-pci"));
    let _kernel = fake.kernel("virtio-pci", &["vfio-pci"]);
    let error = sysfs.bind(address(CARD), "vfio-pci", false).unwrap_err();
    assert!(matches!(error, SysfsError::NotBound { .. }), "{error}");
    assert!(error.to_string().contains("dmesg"), "{error}");
    for _ in 0..1000 {
        if fake.driver_of(CARD).is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(fake.driver_of(CARD).as_deref(), Some("virtio-pci"));
    assert_eq!(fake.override_of(CARD), "");
}

#[test]
fn restore_without_a_driver_to_restore_to_says_so() {
    let (fake, sysfs) = with_card(Some("vfio-pci"));
    fake.file(&format!("sys/devices/{CARD}/driver_override"), "vfio-pci\n");
    let _kernel = fake.kernel("virtio-pci", &["virtio-pci"]);
    let error = sysfs.unbind(address(CARD), true, false).unwrap_err();
    assert!(error.to_string().contains("modprobe virtio_pci"), "{error}");
    assert_eq!(
        (fake.driver_of(CARD), fake.override_of(CARD)),
        (None, String::new())
    );
}

#[test]
fn refusals_name_cause_and_remedy_and_change_nothing() {
    let (fake, sysfs) = with_card(Some("virtio-pci"));
    fake.interface(CARD, "eth1", true);
    fake.card("0000:02:00.0", Some("virtio-pci"), None, &[]);
    fake.device(&FakeDevice {
        address: "0000:03:00.0",
        ids: (0x8086, 0x1533),
        driver: Some("igb"),
        group: Some(9),
        config: &[],
    });
    let refused = |address_: &str, driver: &str, words: &[&str]| {
        let error = sysfs.bind(address(address_), driver, false).unwrap_err();
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    refused("0000:09:00.0", "vfio-pci", &["no PCI function", CARD]);
    refused(
        "0000:03:00.0",
        "vfio-pci",
        &["8086:1533", "nothing was changed"],
    );
    refused(
        CARD,
        "vfio-pci",
        &["eth1", "ip link set eth1 down", "--force"],
    );
    refused(CARD, "vfio-user", &["modprobe vfio-user"]);
    refused(CARD, "../drivers/igb", &["no PCI driver"]);
    refused(
        "0000:02:00.0",
        "vfio-pci",
        &["IOMMU", "intel_iommu=on", "noiommu"],
    );
    for card in [CARD, "0000:02:00.0"] {
        assert_eq!(fake.driver_of(card).as_deref(), Some("virtio-pci"));
        assert_eq!(fake.override_of(card), "(null)");
    }
    assert_eq!(fake.driver_of("0000:03:00.0").as_deref(), Some("igb"));
    let _kernel = fake.kernel("virtio-pci", &[]);
    sysfs.bind(address(CARD), "vfio-pci", true).unwrap();
}
