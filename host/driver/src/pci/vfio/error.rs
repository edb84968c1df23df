//! Why a card cannot be had through the kernel's VFIO, and what helps.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::pci::PciAddress;
use crate::pci::sysfs::{Neighbour, SysfsError};

/// An error of [`super::VfioFunction`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VfioError {
    /// Sysfs says no.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// Another driver has the card.
    #[error(
        "{address} is {}, not with vfio-pci; give it over with `ferronic bind {address}` (as root)",
        driver.as_ref().map_or("without a driver".into(), |driver| format!("with `{driver}`"))
    )]
    NotBound {
        /// The card.
        address: PciAddress,
        /// The driver that has it.
        driver: Option<String>,
    },
    /// VFIO is not there.
    #[error("{} does not exist; load VFIO with `modprobe vfio-pci`", path.display())]
    NoVfio {
        /// VFIO's device file.
        path: PathBuf,
    },
    /// The group's device file is not there.
    #[error(
        "{} does not exist although {address} is with vfio-pci; is /dev the host's (containers \
         need `--device {0}`)?", path.display()
    )]
    NoGroupFile {
        /// The card.
        address: PciAddress,
        /// The group's device file.
        path: PathBuf,
    },
    /// The user may not open a device file.
    #[error(
        "{} may not be opened by this user; `sudo chown $USER {0}` gives it to you until the \
         next boot, a udev rule for good (docs/real-machine.md)", path.display()
    )]
    Permission {
        /// The file.
        path: PathBuf,
    },
    /// Another process has the group.
    #[error(
        "{} is in use: a card has one owner at a time; end the process that has it \
         (`fuser -v {0}` names it)", path.display()
    )]
    InUse {
        /// The group's device file.
        path: PathBuf,
    },
    /// Another function of the group is with a driver of the kernel's.
    #[error(
        "IOMMU group {group} of {address} is not viable: {}. All functions of a group go to VFIO \
         together; give these to vfio-pci too or take them from their drivers (`ferronic unbind` \
         does so for a card, driver/unbind in sysfs for anything), or put the card into another \
         slot",
        blocking(others)
    )]
    NotViable {
        /// The card.
        address: PciAddress,
        /// The group.
        group: u32,
        /// What is in the way.
        others: Vec<Neighbour>,
    },
    /// The kernel refused a step of the set-up.
    #[error("{address}: {what}: {source}; {remedy}")]
    Setup {
        /// The card.
        address: PciAddress,
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: vfio_ioctls::VfioError,
        /// What may help.
        remedy: &'static str,
    },
    /// Too much memory would be locked.
    #[error(
        "mapping {len} bytes for the card: this process may lock {} of memory, and the card's \
         memory is locked; raise it (`ulimit -l`, or LimitMEMLOCK= of a service, or \
         /etc/security/limits.conf), or use fewer queues or smaller rings", limit(*allowed)
    )]
    MemoryLock {
        /// Bytes to be mapped.
        len: u64,
        /// RLIMIT_MEMLOCK.
        allowed: Option<u64>,
    },
    /// A mapping was refused.
    #[error("mapping {len} bytes at {iova:#x} for the card: {source}")]
    Map {
        /// Address for the device.
        iova: u64,
        /// Bytes.
        len: u64,
        /// What the system said.
        source: vfio_ioctls::VfioError,
    },
    /// No address range is left.
    #[error(
        "the IOMMU has no free range of {len} bytes left for the card (valid ranges: {ranges})"
    )]
    NoAddress {
        /// Bytes.
        len: u64,
        /// The ranges that are valid.
        ranges: String,
    },
    /// The card reads as ones.
    #[error(
        "{address} does not answer: its configuration space reads as ones. Was it reloaded or \
         unplugged? `echo 1 > /sys/bus/pci/devices/{address}/remove`, then \
         `echo 1 > /sys/bus/pci/rescan`, finds it again"
    )]
    NoAnswer {
        /// The card.
        address: PciAddress,
    },
    /// The function cannot be reset.
    #[error("{address}: the kernel cannot reset the function: {source}")]
    Reset {
        /// The card.
        address: PciAddress,
        /// What the system said.
        source: io::Error,
    },
}

fn blocking(others: &[Neighbour]) -> String {
    if others.is_empty() {
        return "another function of it has a driver".into();
    }
    let names: Vec<_> = others
        .iter()
        .map(|other| {
            let driver = other.driver.as_deref().unwrap_or("no driver");
            format!("{} is with `{driver}`", other.address)
        })
        .collect();
    names.join(", ")
}

fn limit(allowed: Option<u64>) -> String {
    allowed.map_or("any amount".into(), |bytes| format!("{bytes} bytes"))
}
