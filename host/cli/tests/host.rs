//! `list`, `bind` and `unbind` on a tree that looks like sysfs.

#[path = "../../driver/tests/support/fake_sysfs.rs"]
mod fake_sysfs;

use std::process::{Command, Output};

use fake_sysfs::{FakeDevice, FakeSysfs};

const CARD: &str = "0000:01:00.0";

fn ferronic(fake: &FakeSysfs, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferronic"))
        .args(arguments)
        .env("FERRONIC_SYSFS", fake.root())
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

/// Standard output of a command that succeeds.
fn says(fake: &FakeSysfs, arguments: &[&str]) -> String {
    let output = ferronic(fake, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that fails.
fn fails(fake: &FakeSysfs, arguments: &[&str]) -> String {
    let output = ferronic(fake, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn list_shows_cards_as_table_and_as_json() {
    let fake = FakeSysfs::new();
    assert!(says(&fake, &["list"]).contains("no virtio network card"));
    fake.card(CARD, Some("virtio-pci"), Some(7), &[0; 64]);
    fake.interface(CARD, "eth1", true);
    fake.device(&FakeDevice {
        address: "0000:01:00.1",
        ids: (0x8086, 0x1533),
        driver: Some("igb"),
        group: Some(7),
        config: &[],
    });
    let table = says(&fake, &["list"]);
    for words in [CARD, "1af4:fe01", "virtio-pci", "eth1 (up)", "ask root"] {
        assert!(table.contains(words), "{table}");
    }
    assert!(
        table.contains("0000:01:00.1 (igb): keeps the group"),
        "{table}"
    );
    let report = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let printed = report(&says(&fake, &["list", "--json"]));
    let card = &printed["cards"][0];
    assert_eq!(card["address"], CARD);
    assert_eq!(
        (&card["iommu_group"], &card["driver"]),
        (&7.into(), &"virtio-pci".into())
    );
    assert_eq!(card["group_others"][0]["blocks"], true);
    assert!(card["ferronic"].is_null() && card["driver_override"].is_null());
    let file = fake.path("list.json");
    assert_eq!(says(&fake, &["list", "--json", file.to_str().unwrap()]), "");
    assert_eq!(report(&std::fs::read_to_string(file).unwrap()), printed);
}

#[test]
fn bind_and_unbind_say_what_they_did_and_can_be_repeated() {
    let fake = FakeSysfs::new();
    fake.card(CARD, Some("virtio-pci"), Some(7), &[]);
    let _kernel = fake.kernel("virtio-pci", &[]);
    let (now, already) = (
        "is with vfio-pci now (virtio-pci before)",
        "vfio-pci already",
    );
    assert!(says(&fake, &["bind", CARD]).contains(now));
    assert!(says(&fake, &["bind", "01:00.0"]).contains(already));
    assert!(says(&fake, &["list"]).contains("reserved for vfio-pci"));
    let back = "is with virtio-pci now (vfio-pci before)";
    assert!(says(&fake, &["unbind", CARD, "--restore"]).contains(back));
    assert!(says(&fake, &["unbind", CARD, "--restore"]).contains("virtio-pci already"));
    assert!(says(&fake, &["unbind", CARD]).contains("is with no driver now"));
    assert!(says(&fake, &["bind", CARD, "--driver", "virtio-pci"]).contains("(no driver before)"));
    assert_eq!(fake.driver_of(CARD).as_deref(), Some("virtio-pci"));
}

#[test]
fn bind_explains_its_refusals() {
    let fake = FakeSysfs::new();
    fake.card(CARD, Some("virtio-pci"), None, &[]);
    assert!(fails(&fake, &["bind", CARD]).contains("intel_iommu=on"));
    assert!(fails(&fake, &["bind", "02:00.0"]).contains(CARD));
    assert!(fails(&fake, &["bind", CARD, "--driver", "x"]).contains("modprobe x"));
    fake.interface(CARD, "eth1", true);
    assert!(fails(&fake, &["unbind", CARD]).contains("ip link set eth1 down"));
    let output = ferronic(&fake, &["bind", "eth1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("like 0000:01:00.0"));
    assert_eq!(fake.driver_of(CARD).as_deref(), Some("virtio-pci"));
}
