//! What the driver needs from configuration space, taken from a snapshot of it.

use ferronic_spec::pci::dvsec;
use ferronic_spec::transport::{cap, cap_type};
use pci_driver::config::PciConfig;
use pci_driver::config::ext_caps::UnspecifiedExtendedCapability;
use pci_driver::regions::{AsPciSubregion, BackedByPciSubregion, PciMemoryRegion};

use crate::error::Error;

/// PCI capability ID of power management.
const POWER_CAPABILITY: u8 = 0x01;
/// PCI capability ID of a vendor capability.
const VENDOR_CAPABILITY: u8 = 0x09;
/// PCI capability ID of MSI-X.
const MSIX_CAPABILITY: u8 = 0x11;

/// A piece of a BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// BAR number.
    pub bar: u8,
    /// Offset in the BAR.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

/// Identification of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Revision ID.
    pub revision: u8,
    /// Subsystem vendor ID.
    pub subsystem_vendor: u16,
    /// Subsystem ID.
    pub subsystem: u16,
}

/// Where the structures of a virtio function are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Who it is.
    pub identity: Identity,
    /// Common configuration.
    pub common: Place,
    /// Doorbells.
    pub notify: Place,
    /// Bytes between doorbells.
    pub notify_multiplier: u32,
    /// ISR.
    pub isr: Place,
    /// Device configuration.
    pub device: Option<Place>,
    /// Entries of the MSI-X table.
    pub msix_vectors: u16,
    /// The card's own window, and its version in the DVSEC.
    pub window: Option<(Place, u32)>,
}

fn bytes<const N: usize>(config: &[u8], offset: usize) -> Result<[u8; N], Error> {
    config
        .get(offset..offset.saturating_add(N))
        .and_then(|b| b.try_into().ok())
        .ok_or_else(|| Error::Capabilities(format!("{offset:#x} is outside configuration space")))
}

fn u16_at(config: &[u8], offset: usize) -> Result<u16, Error> {
    bytes(config, offset).map(u16::from_le_bytes)
}

fn u32_at(config: &[u8], offset: usize) -> Result<u32, Error> {
    bytes(config, offset).map(u32::from_le_bytes)
}

fn walk_error(e: std::io::Error) -> Error {
    Error::Capabilities(e.to_string())
}

impl Identity {
    /// Reads the identification.
    pub fn parse(config: &[u8]) -> Result<Self, Error> {
        let region = PciMemoryRegion::new(config);
        let header = PciConfig::backed_by(&region);
        let read = || {
            std::io::Result::Ok(Self {
                vendor: header.vendor_id().read()?,
                device: header.device_id().read()?,
                revision: header.revision_id().read()?,
                subsystem_vendor: header.subsystem_vendor_id().read()?,
                subsystem: header.subsystem_id().read()?,
            })
        };
        read().map_err(walk_error)
    }
}

impl Capabilities {
    /// Walks the capabilities in `config`, 256 or 4,096 bytes.
    pub fn parse(config: &[u8]) -> Result<Self, Error> {
        let identity = Identity::parse(config)?;
        let region = PciMemoryRegion::new(config);
        let header = PciConfig::backed_by(&region);
        let mut common = None;
        let mut notify = None;
        let mut isr = None;
        let mut device = None;
        let mut msix_vectors = 0;
        let capabilities = header.capabilities().map_err(walk_error)?;
        for capability in &capabilities {
            let at = capability.as_subregion().offset_in_underlying_region() as usize;
            match bytes::<1>(config, at)?[0] {
                VENDOR_CAPABILITY => {}
                MSIX_CAPABILITY => {
                    msix_vectors = (u16_at(config, at + 2)? & 0x7ff) + 1;
                    continue;
                }
                _ => continue,
            }
            let [len, kind, bar] = bytes(config, at + cap::LEN)?;
            if usize::from(len) < cap::SIZE || bar > 5 {
                // Reserved BAR numbers, and vendor capabilities that are not virtio's.
                continue;
            }
            let place = Place {
                bar,
                offset: u32_at(config, at + cap::OFFSET)?,
                len: u32_at(config, at + cap::LENGTH)?,
            };
            // The first capability of a kind is the one the device prefers.
            match kind {
                cap_type::COMMON if common.is_none() => common = Some(place),
                cap_type::NOTIFY if notify.is_none() => {
                    if usize::from(len) < cap::NOTIFY_MULTIPLIER + 4 {
                        return Err(Error::Capabilities("notify capability is too short".into()));
                    }
                    notify = Some((place, u32_at(config, at + cap::NOTIFY_MULTIPLIER)?));
                }
                cap_type::ISR if isr.is_none() => isr = Some(place),
                cap_type::DEVICE if device.is_none() => device = Some(place),
                _ => {}
            }
        }
        let missing = |what: &str| Error::Capabilities(format!("there is no {what} capability"));
        let (notify, notify_multiplier) = notify.ok_or_else(|| missing("notify"))?;
        Ok(Self {
            identity,
            common: common.ok_or_else(|| missing("common configuration"))?,
            notify,
            notify_multiplier,
            isr: isr.ok_or_else(|| missing("ISR"))?,
            device,
            msix_vectors,
            window: find_window(config, &header)?,
        })
    }
}

/// Offset of the power management capability.
pub(crate) fn power_capability(config: &[u8]) -> Result<Option<u16>, Error> {
    let region = PciMemoryRegion::new(config);
    let header = PciConfig::backed_by(&region);
    let capabilities = header.capabilities().map_err(walk_error)?;
    for capability in &capabilities {
        let at = capability.as_subregion().offset_in_underlying_region();
        if bytes::<1>(config, at as usize)?[0] == POWER_CAPABILITY {
            return Ok(Some(at as u16));
        }
    }
    Ok(None)
}

/// Looks for our DVSEC. Configuration space of 256 bytes has none.
fn find_window(config: &[u8], header: &PciConfig<'_>) -> Result<Option<(Place, u32)>, Error> {
    if config.len() < ferronic_spec::pci::header::EXPRESS_LEN {
        return Ok(None);
    }
    let extended = header.extended_capabilities().map_err(walk_error)?;
    for capability in extended
        .of_type::<UnspecifiedExtendedCapability<'_>>()
        .map_err(walk_error)?
    {
        let at = capability.as_subregion().offset_in_underlying_region() as usize;
        if u16_at(config, at)? != dvsec::CAPABILITY_ID {
            continue;
        }
        let header1 = u32_at(config, at + dvsec::HEADER1)?;
        let ours = header1 & 0xffff == u32::from(dvsec::VENDOR)
            && u16_at(config, at + dvsec::HEADER2)? == dvsec::ID;
        if !ours {
            continue;
        }
        if (header1 >> 20) < dvsec::SIZE as u32 {
            return Err(Error::Capabilities("the card's DVSEC is too short".into()));
        }
        for (i, word) in dvsec::CARD_UUID.iter().enumerate() {
            let found = u32_at(config, at + dvsec::UUID + 4 * i)?;
            if found != *word {
                return Err(Error::Capabilities(format!(
                    "DW {i} of the UUID in the card's DVSEC is {found:#010x}, not {word:#010x}"
                )));
            }
        }
        let bar = u32_at(config, at + dvsec::BAR)?;
        let place = Place {
            bar: u8::try_from(bar)
                .ok()
                .filter(|bar| *bar <= 5)
                .ok_or_else(|| Error::Capabilities(format!("the window is in BAR {bar}")))?,
            offset: u32_at(config, at + dvsec::OFFSET)?,
            len: u32_at(config, at + dvsec::LENGTH)?,
        };
        return Ok(Some((place, u32_at(config, at + dvsec::VERSION)?)));
    }
    Ok(None)
}
