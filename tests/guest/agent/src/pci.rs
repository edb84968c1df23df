//! The PCI bus by sysfs.

use std::fs;
use std::path::Path;

use ferronic_guest_agent::PciFunction;

use crate::Failure;

const DEVICES: &str = "/sys/bus/pci/devices";

/// Every function, by address.
pub fn functions() -> Result<Vec<PciFunction>, Failure> {
    let mut functions = Vec::new();
    for entry in fs::read_dir(DEVICES)? {
        let path = entry?.path();
        let name = |link: &str| {
            let target = fs::read_link(path.join(link)).ok()?;
            Some(target.file_name()?.to_string_lossy().into_owned())
        };
        functions.push(PciFunction {
            address: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            vendor: number(&path.join("vendor"))?,
            device: number(&path.join("device"))?,
            driver: name("driver"),
            group: name("iommu_group").and_then(|group| group.parse().ok()),
        });
    }
    functions.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(functions)
}

/// A file that holds `0x1af4`.
fn number(path: &Path) -> Result<u16, Failure> {
    let text = fs::read_to_string(path)?;
    let digits = text.trim().trim_start_matches("0x");
    Ok(u16::from_str_radix(digits, 16)?)
}
