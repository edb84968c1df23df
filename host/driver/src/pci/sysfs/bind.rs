//! Giving a card to another driver.
//!
//! `driver_override` names the only driver that may have the function; then it is taken from its
//! driver and the bus looks for one again. Nothing else on the bus is touched.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{HostDevice, Sysfs, SysfsError, cannot};
use crate::pci::PciAddress;

/// The driver that gives functions to processes.
pub const VFIO_PCI: &str = "vfio-pci";

/// Some drivers attach after the bus has returned.
const PATIENCE: Duration = Duration::from_secs(5);

/// What [`Sysfs::bind`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The driver had the function before.
    Already,
    /// It has it now; the driver that had it before.
    Now(Option<String>),
}

/// What [`Sysfs::unbind`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbound {
    /// The driver that had the function.
    pub before: Option<String>,
    /// The driver that has it now.
    pub after: Option<String>,
}

impl Sysfs {
    fn card(&self, address: PciAddress) -> Result<HostDevice, SysfsError> {
        let device = self.device(address)?;
        if device.is_card() {
            return Ok(device);
        }
        let HostDevice { vendor, device, .. } = device;
        Err(SysfsError::NotACard {
            address,
            vendor,
            device,
        })
    }

    /// Gives a card to `driver`. With `force` even if its network interface is up.
    pub fn bind(
        &self,
        address: PciAddress,
        driver: &str,
        force: bool,
    ) -> Result<Bound, SysfsError> {
        let card = self.card(address)?;
        if card.driver.as_deref() == Some(driver) {
            return Ok(Bound::Already);
        }
        // A name that leads elsewhere is no driver's.
        let known = !driver.contains('/')
            && !driver.is_empty()
            && self.bus().join("drivers").join(driver).is_dir();
        if !known {
            let driver = driver.to_owned();
            return Err(SysfsError::NoDriver { driver });
        }
        if driver == VFIO_PCI && card.group.as_ref().is_none_or(|group| group.noiommu) {
            return Err(SysfsError::NoIommu { address });
        }
        self.check_unused(&card, force)?;
        let folder = self.folder(address);
        write(&folder.join("driver_override"), driver)?;
        let bound = self
            .detach(&card)
            .and_then(|()| self.attach(address))
            .and_then(|()| self.wait_for(address, Some(driver)));
        if bound.is_err() {
            // Back to how it was, as far as that can be had.
            let before = card.driver_override.as_deref().unwrap_or("\n");
            let restored =
                write(&folder.join("driver_override"), before).and_then(|()| self.attach(address));
            if let Err(e) = restored {
                log::warn!("{e}");
            }
        }
        bound.map(|()| Bound::Now(card.driver))
    }

    /// Takes a card from its driver. With `restore` the kernel then chooses one as it does at
    /// boot; else it is left without.
    pub fn unbind(
        &self,
        address: PciAddress,
        restore: bool,
        force: bool,
    ) -> Result<Unbound, SysfsError> {
        let card = self.card(address)?;
        let own_choice = card.driver.as_deref().is_some_and(|d| d != VFIO_PCI);
        if restore && own_choice && card.driver_override.is_none() {
            return Ok(Unbound {
                before: card.driver.clone(),
                after: card.driver,
            });
        }
        self.check_unused(&card, force)?;
        self.detach(&card)?;
        if card.driver_override.is_some() {
            write(&self.folder(address).join("driver_override"), "\n")?;
        }
        if restore {
            self.attach(address)?;
            self.wait_for(address, None)?;
        }
        Ok(Unbound {
            before: card.driver,
            after: self.driver(address),
        })
    }

    /// An interface that is up, or a process that has the group, keeps its card.
    fn check_unused(&self, card: &HostDevice, force: bool) -> Result<(), SysfsError> {
        let up = card.interfaces.iter().find(|(_, up)| *up);
        if let (Some((interface, _)), false) = (up, force) {
            return Err(SysfsError::InterfaceUp {
                address: card.address,
                interface: interface.clone(),
            });
        }
        let Some(group) = &card.group else {
            return Ok(());
        };
        if card.driver.as_deref() != Some(VFIO_PCI) {
            return Ok(());
        }
        // The kernel would wait, without end, until that process lets go.
        let path = self.group_file(group.id);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Err(e) if e.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                Err(SysfsError::InUse { path })
            }
            _ => Ok(()),
        }
    }

    fn detach(&self, card: &HostDevice) -> Result<(), SysfsError> {
        if card.driver.is_none() {
            return Ok(());
        }
        let path = self.folder(card.address).join("driver/unbind");
        if let Err(e) = write(&path, &card.address.to_string()) {
            // Without a driver after all: somebody else was faster.
            return self.driver(card.address).map_or(Ok(()), |_| Err(e));
        }
        let start = Instant::now();
        while let Some(driver) = self.driver(card.address) {
            if start.elapsed() > PATIENCE {
                let address = card.address;
                return Err(SysfsError::NotFreed { address, driver });
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn attach(&self, address: PciAddress) -> Result<(), SysfsError> {
        let path = self.bus().join("drivers_probe");
        match write(&path, &address.to_string()) {
            // The kernel answers so if the driver refused the function: looked at afterwards.
            Err(SysfsError::Io { source, .. }) => {
                log::debug!("{}: {source}", path.display());
                Ok(())
            }
            other => other,
        }
    }

    /// Waits until `driver`, or any if none is named, has the function.
    fn wait_for(&self, address: PciAddress, driver: Option<&str>) -> Result<(), SysfsError> {
        let start = Instant::now();
        loop {
            let found = self.driver(address);
            if found.is_some() && driver.is_none_or(|driver| found.as_deref() == Some(driver)) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err(match driver {
                    None => SysfsError::NotRestored { address },
                    Some(wanted) => SysfsError::NotBound {
                        address,
                        wanted: wanted.to_owned(),
                        found,
                    },
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), SysfsError> {
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => SysfsError::Permission {
                path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            },
            _ => cannot(path, "cannot be written", e),
        })
}
