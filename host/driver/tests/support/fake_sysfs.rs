//! A tree that looks like sysfs and /dev, and a thread that does what the kernel does when the
//! files for drivers are written.
#![allow(dead_code)] // each user takes a part of it

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The tree.
pub struct FakeSysfs {
    dir: tempfile::TempDir,
}

/// A function to put into it.
pub struct FakeDevice<'a> {
    pub address: &'a str,
    pub ids: (u16, u16),
    pub driver: Option<&'a str>,
    pub group: Option<u32>,
    pub config: &'a [u8],
}

impl FakeSysfs {
    /// A bus without functions, with the drivers that a machine has.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let this = Self { dir };
        for folder in ["sys/bus/pci/devices", "sys/devices", "dev/vfio"] {
            fs::create_dir_all(this.path(folder)).expect("folder");
        }
        for driver in ["virtio-pci", "vfio-pci", "igb", "pcieport"] {
            this.driver(driver);
        }
        this.file("sys/bus/pci/drivers_probe", "");
        this
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub fn root(&self) -> PathBuf {
        self.path("sys")
    }

    pub fn dev(&self) -> PathBuf {
        self.path("dev")
    }

    pub fn file(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        fs::write(path, content).expect("file");
    }

    pub fn driver(&self, name: &str) {
        self.file(&format!("sys/bus/pci/drivers/{name}/unbind"), "");
    }

    pub fn device(&self, device: &FakeDevice<'_>) {
        let address = device.address;
        let folder = format!("sys/devices/{address}");
        let file = |name: &str, content: &str| self.file(&format!("{folder}/{name}"), content);
        file("vendor", &format!("{:#06x}\n", device.ids.0));
        file("device", &format!("{:#06x}\n", device.ids.1));
        file("subsystem_vendor", "0x1af4\n");
        file("subsystem_device", "0xfe01\n");
        file("driver_override", "(null)\n");
        self.file(&format!("{folder}/config"), device.config);
        let link = self.path(&format!("sys/bus/pci/devices/{address}"));
        symlink(format!("../../../devices/{address}"), link).expect("link");
        if let Some(driver) = device.driver {
            attach(&self.root(), address, driver);
        }
        if let Some(group) = device.group {
            let group_folder = format!("sys/kernel/iommu_groups/{group}/devices");
            fs::create_dir_all(self.path(&group_folder)).expect("folder");
            let member = self.path(&format!("{group_folder}/{address}"));
            symlink(format!("../../../../devices/{address}"), member).expect("link");
            let link = self.path(&format!("{folder}/iommu_group"));
            symlink(format!("../../kernel/iommu_groups/{group}"), link).expect("link");
        }
    }

    /// A virtio network card in a group of its own.
    pub fn card(&self, address: &str, driver: Option<&str>, group: Option<u32>, config: &[u8]) {
        self.device(&FakeDevice {
            address,
            ids: (0x1af4, 0x1041),
            driver,
            group,
            config,
        });
    }

    /// A network interface of the kernel on a card.
    pub fn interface(&self, address: &str, name: &str, up: bool) {
        let flags = if up { "0x1003\n" } else { "0x1002\n" };
        self.file(
            &format!("sys/devices/{address}/virtio0/net/{name}/flags"),
            flags,
        );
    }

    pub fn driver_of(&self, address: &str) -> Option<String> {
        let link = fs::read_link(self.path(&format!("sys/devices/{address}/driver"))).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }

    pub fn override_of(&self, address: &str) -> String {
        let path = self.path(&format!("sys/devices/{address}/driver_override"));
        fs::read_to_string(path).expect("file").trim().to_owned()
    }

    /// Starts the kernel. It gives functions without an override to `default`, and refuses to
    /// bind to the drivers of `broken`.
    pub fn kernel(&self, default: &'static str, broken: &'static [&'static str]) -> Kernel {
        let stop = Arc::new(AtomicBool::new(false));
        let (root, stopped) = (self.root(), stop.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                step(&root, default, broken);
                thread::sleep(Duration::from_millis(1));
            }
        });
        Kernel {
            stop,
            thread: Some(thread),
        }
    }
}

/// Ends with the test.
pub struct Kernel {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn attach(root: &Path, address: &str, driver: &str) {
    let link = root.join(format!("devices/{address}/driver"));
    symlink(format!("../../bus/pci/drivers/{driver}"), link).expect("link");
}

/// What was written to a file, which is emptied.
fn written(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    if text.is_empty() {
        return None;
    }
    fs::write(path, "").ok()?;
    Some(text.trim().to_owned())
}

fn step(root: &Path, default: &str, broken: &[&str]) {
    let drivers = fs::read_dir(root.join("bus/pci/drivers")).expect("drivers");
    for driver in drivers.flatten() {
        if let Some(address) = written(&driver.path().join("unbind")) {
            let _ = fs::remove_file(root.join(format!("devices/{address}/driver")));
        }
    }
    let Some(address) = written(&root.join("bus/pci/drivers_probe")) else {
        return;
    };
    let folder = root.join(format!("devices/{address}"));
    let chosen = fs::read_to_string(folder.join("driver_override")).unwrap_or_default();
    let chosen = match chosen.trim() {
        "" | "(null)" => default,
        chosen => chosen,
    };
    if !broken.contains(&chosen) && fs::read_link(folder.join("driver")).is_err() {
        attach(root, &address, chosen);
    }
}
