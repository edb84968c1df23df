//! Looks for what stands between a process and its card, before and after the kernel says no.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use vfio_ioctls::VfioError as Call;

use super::error::VfioError;
use crate::pci::PciAddress;
use crate::pci::sysfs::{Group, Neighbour, Sysfs, SysfsError, VFIO_PCI};

/// Checks what can be checked without opening anything. Returns the number of the group.
pub(super) fn ready(sysfs: &Sysfs, address: PciAddress) -> Result<u32, VfioError> {
    let device = sysfs.device(address)?;
    let Some(group) = device.group.filter(|group| !group.noiommu) else {
        return Err(SysfsError::NoIommu { address }.into());
    };
    if device.driver.as_deref() != Some(VFIO_PCI) {
        return Err(VfioError::NotBound {
            address,
            driver: device.driver,
        });
    }
    let container = sysfs.container_file();
    if !container.exists() {
        return Err(VfioError::NoVfio { path: container });
    }
    let path = sysfs.group_file(group.id);
    if !path.exists() {
        return Err(VfioError::NoGroupFile { address, path });
    }
    let others = blocking(&group);
    if !others.is_empty() {
        return Err(VfioError::NotViable {
            address,
            group: group.id,
            others,
        });
    }
    Ok(group.id)
}

fn blocking(group: &Group) -> Vec<Neighbour> {
    let others = group.others.iter().filter(|other| other.blocks());
    others.cloned().collect()
}

/// Finds the cause of a refusal.
pub(super) fn explain(sysfs: &Sysfs, address: PciAddress, group: u32, source: Call) -> VfioError {
    let setup = |what, source, remedy| VfioError::Setup {
        address,
        what,
        source,
        remedy,
    };
    match source {
        Call::OpenContainer(ref e) => match of_file(e) {
            File::Missing => VfioError::NoVfio {
                path: sysfs.container_file(),
            },
            File::Forbidden => VfioError::Permission {
                path: sysfs.container_file(),
            },
            _ => setup("opening VFIO", source, "is the module vfio loaded?"),
        },
        Call::OpenGroup(ref e, _) => {
            let path = sysfs.group_file(group);
            match of_file(e) {
                File::Missing => VfioError::NoGroupFile { address, path },
                File::Forbidden => VfioError::Permission { path },
                File::Busy => VfioError::InUse { path },
                File::Other => setup("opening its group", source, "see `dmesg`"),
            }
        }
        Call::GroupViable => VfioError::NotViable {
            address,
            group,
            others: sysfs
                .device(address)
                .ok()
                .and_then(|device| Some(blocking(&device.group?)))
                .unwrap_or_default(),
        },
        Call::VfioExtension | Call::VfioApiVersion => setup(
            "asking for an IOMMU of type 1",
            source,
            "load it with `modprobe vfio_iommu_type1`",
        ),
        Call::ContainerSetIOMMU(_) => setup(
            "giving its group an IOMMU",
            source,
            "an IOMMU without interrupt remapping needs vfio_iommu_type1's option \
             allow_unsafe_interrupts=1 (see `dmesg`)",
        ),
        Call::GroupGetDeviceFD(_) => setup(
            "opening the function",
            source,
            "is it still with vfio-pci (`ferronic list`)? `dmesg` may say more",
        ),
        _ => setup("setting VFIO up", source, "see `dmesg`"),
    }
}

enum File {
    Missing,
    Forbidden,
    Busy,
    Other,
}

fn of_file(error: &io::Error) -> File {
    match error.kind() {
        io::ErrorKind::NotFound => File::Missing,
        io::ErrorKind::PermissionDenied => File::Forbidden,
        _ if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => File::Busy,
        _ => File::Other,
    }
}

/// Finds the cause of a refused mapping.
pub(super) fn explain_map(iova: u64, len: u64, source: Call) -> VfioError {
    match source {
        Call::IommuDmaMap(e) if e.errno() == Errno::NOMEM.raw_os_error() => VfioError::MemoryLock {
            len,
            allowed: getrlimit(Resource::Memlock).current,
        },
        source => VfioError::Map { iova, len, source },
    }
}
