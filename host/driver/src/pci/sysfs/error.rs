//! What can go wrong with the kernel's view of the cards.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::pci::PciAddress;

/// An error of [`super::Sysfs`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SysfsError {
    /// There is no function of that address.
    #[error("there is no PCI function {address}; {}", cards_found(known))]
    NoDevice {
        /// The address.
        address: PciAddress,
        /// Virtio network cards that there are.
        known: Vec<PciAddress>,
    },
    /// The function is something else.
    #[error(
        "{address} is {vendor:04x}:{device:04x}, not a modern virtio network card (1af4:1041); \
         nothing was changed. `ferronic list` shows the cards"
    )]
    NotACard {
        /// The address.
        address: PciAddress,
        /// Vendor ID.
        vendor: u16,
        /// Device ID.
        device: u16,
    },
    /// The driver to bind to is not in the kernel.
    #[error(
        "the kernel has no PCI driver `{driver}`; load it with `modprobe {driver}` and try again"
    )]
    NoDriver {
        /// The driver.
        driver: String,
    },
    /// The function is in no IOMMU group.
    #[error(
        "{address} is in no IOMMU group, so it could write to any memory: switch the IOMMU on \
         (firmware: VT-d or AMD-Vi; kernel command line: intel_iommu=on). VFIO's unsafe noiommu \
         mode is not supported"
    )]
    NoIommu {
        /// The address.
        address: PciAddress,
    },
    /// The kernel's network interface on the card is up.
    #[error(
        "{address} is the network interface {interface}, which is up; take it down \
         (`ip link set {interface} down`), or use --force"
    )]
    InterfaceUp {
        /// The address.
        address: PciAddress,
        /// The interface.
        interface: String,
    },
    /// A process has the group open.
    #[error("{path} is in use; end the process first (`fuser -v {path}` names it)", path = path.display())]
    InUse {
        /// The group's device.
        path: PathBuf,
    },
    /// The kernel did not bind the driver.
    #[error(
        "{address} did not come to the driver `{wanted}` but {}; the kernel's log says why \
         (`dmesg | tail`)",
        found.as_ref().map_or("has none".into(), |found| format!("is with `{found}`"))
    )]
    NotBound {
        /// The address.
        address: PciAddress,
        /// The driver asked for.
        wanted: String,
        /// The driver that it has.
        found: Option<String>,
    },
    /// No driver of the kernel's takes the function back.
    #[error(
        "{address} is without a driver: the kernel has none for it; load one (`modprobe \
         virtio_pci`), which then takes it by itself"
    )]
    NotRestored {
        /// The address.
        address: PciAddress,
    },
    /// The driver keeps the function.
    #[error("`{driver}` does not let go of {address}; the kernel's log may say why (`dmesg`)")]
    NotFreed {
        /// The address.
        address: PciAddress,
        /// The driver.
        driver: String,
    },
    /// A write that only root may do.
    #[error("{} may only be written by root; run the command with sudo", path.display())]
    Permission {
        /// The file.
        path: PathBuf,
    },
    /// A file of sysfs could not be read or written.
    #[error("{}: {what}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

fn cards_found(known: &[PciAddress]) -> String {
    if known.is_empty() {
        return "no virtio network card is on the bus".into();
    }
    let names: Vec<_> = known.iter().map(PciAddress::to_string).collect();
    format!("the virtio network cards are {}", names.join(", "))
}
