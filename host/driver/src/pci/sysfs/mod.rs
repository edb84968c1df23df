//! What the kernel knows of the cards, from sysfs, and the change of their drivers.

mod bind;
mod error;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ferronic_spec::pci::{DEVICE_ID, VENDOR_ID, header};

pub use bind::{Bound, Unbound, VFIO_PCI};
pub use error::SysfsError;

use super::PciAddress;
use super::caps::Capabilities;

/// Where the kernel shows its devices.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
    dev: PathBuf,
}

/// Another function of an IOMMU group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: PciAddress,
    /// Its driver.
    pub driver: Option<String>,
}

impl Neighbour {
    /// True if VFIO gives the group to nobody while this driver has the function.
    pub fn blocks(&self) -> bool {
        // These drivers leave DMA to the owner of the group, as VFIO's own do.
        self.driver.as_deref().is_some_and(|driver| {
            !driver.contains("vfio") && !["pci-stub", "pcieport"].contains(&driver)
        })
    }
}

/// An IOMMU group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// True if it is one of VFIO's noiommu mode, without an IOMMU behind it.
    pub noiommu: bool,
    /// The other functions in it.
    pub others: Vec<Neighbour>,
}

/// What can be said about the card's own capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCapability {
    /// It is a Ferronic.
    Present,
    /// Another virtio card.
    Absent,
    /// Extended configuration space may only be read by root.
    Hidden,
}

/// A PCI function as the kernel sees it.
#[derive(Clone, Debug)]
pub struct HostDevice {
    /// Its address.
    pub address: PciAddress,
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Subsystem vendor ID.
    pub subsystem_vendor: u16,
    /// Subsystem ID.
    pub subsystem: u16,
    /// Driver that has it.
    pub driver: Option<String>,
    /// Driver that alone may have it, if one was named.
    pub driver_override: Option<String>,
    /// Its IOMMU group.
    pub group: Option<Group>,
    /// Network interfaces of the kernel on it, and whether they are up.
    pub interfaces: Vec<(String, bool)>,
    /// Whether it has the card's own capability.
    pub own: OwnCapability,
}

impl HostDevice {
    /// True for a modern virtio network card.
    pub fn is_card(&self) -> bool {
        (self.vendor, self.device) == (VENDOR_ID, DEVICE_ID)
    }
}

impl Default for Sysfs {
    /// Those of this machine.
    fn default() -> Self {
        Self::new("/sys", "/dev")
    }
}

impl Sysfs {
    /// Takes sysfs from `root` and device files from `dev`: others than the machine's in tests.
    pub fn new(root: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            dev: dev.into(),
        }
    }

    fn bus(&self) -> PathBuf {
        self.root.join("bus/pci")
    }

    /// The folder of a function.
    pub fn folder(&self, address: PciAddress) -> PathBuf {
        self.bus().join("devices").join(address.to_string())
    }

    /// The device file of VFIO itself.
    pub fn container_file(&self) -> PathBuf {
        self.dev.join("vfio/vfio")
    }

    /// The device file of a group.
    pub fn group_file(&self, group: u32) -> PathBuf {
        self.dev.join("vfio").join(group.to_string())
    }

    /// All virtio network cards.
    pub fn cards(&self) -> Result<Vec<HostDevice>, SysfsError> {
        let mut cards = Vec::new();
        for address in self.addresses()? {
            // A function may go away between two looks.
            let Ok(device) = self.device(address) else {
                continue;
            };
            if device.is_card() {
                cards.push(device);
            }
        }
        Ok(cards)
    }

    fn addresses(&self) -> Result<Vec<PciAddress>, SysfsError> {
        let folder = self.bus().join("devices");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A machine without PCI.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(cannot(&folder, "cannot be listed", e)),
        };
        let mut found: Vec<PciAddress> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        found.sort();
        Ok(found)
    }

    /// One function.
    pub fn device(&self, address: PciAddress) -> Result<HostDevice, SysfsError> {
        let folder = self.folder(address);
        if !folder.exists() {
            let known = self.cards()?.iter().map(|card| card.address).collect();
            return Err(SysfsError::NoDevice { address, known });
        }
        let number = |file: &str| -> Result<u16, SysfsError> {
            let path = folder.join(file);
            let text = fs::read_to_string(&path).map_err(|e| cannot(&path, CANNOT_READ, e))?;
            let digits = text.trim().trim_start_matches("0x");
            u16::from_str_radix(digits, 16)
                .map_err(|e| cannot(&path, "is not a number", io::Error::other(e)))
        };
        let driver_override = fs::read_to_string(folder.join("driver_override"))
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty() && text != "(null)");
        Ok(HostDevice {
            address,
            vendor: number("vendor")?,
            device: number("device")?,
            subsystem_vendor: number("subsystem_vendor")?,
            subsystem: number("subsystem_device")?,
            driver: self.driver(address),
            driver_override,
            group: self.group(address),
            interfaces: interfaces(&folder),
            own: own_capability(&folder),
        })
    }

    /// The driver that has a function.
    pub fn driver(&self, address: PciAddress) -> Option<String> {
        target_name(&self.folder(address).join("driver"))
    }

    fn group(&self, address: PciAddress) -> Option<Group> {
        let folder = self.folder(address).join("iommu_group");
        let id = target_name(&folder)?.parse().ok()?;
        let name = fs::read_to_string(folder.join("name")).unwrap_or_default();
        let mut others: Vec<_> = fs::read_dir(folder.join("devices"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|other| *other != address)
            .map(|other| Neighbour {
                address: other,
                driver: self.driver(other),
            })
            .collect();
        others.sort_by_key(|other| other.address);
        Some(Group {
            id,
            noiommu: name.trim() == "vfio-noiommu",
            others,
        })
    }

    /// Configuration space as the kernel reads it for root; 64 bytes for anybody else.
    pub fn config(&self, address: PciAddress) -> Result<Vec<u8>, SysfsError> {
        let path = self.folder(address).join("config");
        fs::read(&path).map_err(|e| cannot(&path, CANNOT_READ, e))
    }
}

const CANNOT_READ: &str = "cannot be read";

fn cannot(path: &Path, what: &'static str, source: io::Error) -> SysfsError {
    let path = path.to_owned();
    SysfsError::Io { path, what, source }
}

/// Last part of what a link points to.
fn target_name(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// The kernel's network interfaces: below the virtio device, or the function itself.
fn interfaces(folder: &Path) -> Vec<(String, bool)> {
    let names = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let virtio = names(folder).into_iter().filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("virtio"))
    });
    let mut found: Vec<_> = virtio
        .chain([folder.to_owned()])
        .flat_map(|parent| names(&parent.join("net")))
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let flags = fs::read_to_string(path.join("flags")).ok()?;
            let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok()?;
            Some((name, flags & IFF_UP != 0))
        })
        .collect();
    found.sort();
    found
}

/// An interface's flag: it was set up.
const IFF_UP: u32 = 1;

fn own_capability(folder: &Path) -> OwnCapability {
    let Ok(config) = fs::read(folder.join("config")) else {
        return OwnCapability::Hidden;
    };
    if config.len() < header::EXPRESS_LEN {
        return OwnCapability::Hidden;
    }
    match Capabilities::parse(&config) {
        Ok(found) if found.window.is_some() => OwnCapability::Present,
        _ => OwnCapability::Absent,
    }
}
