//! Names of devices, and the backends they stand for.

use std::path::Path;
use std::sync::Arc;

use crate::pci::vfio::VfioFunction;
use crate::pci::vfio_user::VfioUserFunction;
use crate::pci::{PciError, PciFunction};

/// Opens `vfio-user:/path/of/socket`, or the card `vfio:0000:01:00.0` (also without `vfio:`).
pub fn open(name: &str) -> Result<Arc<dyn PciFunction>, PciError> {
    if let Ok(address) = name.strip_prefix("vfio:").unwrap_or(name).parse() {
        return Ok(Arc::new(VfioFunction::open(address)?));
    }
    match name.split_once(':') {
        Some(("vfio-user", path)) if !path.is_empty() => {
            Ok(Arc::new(VfioUserFunction::connect(Path::new(path))?))
        }
        _ => Err(PciError::Unsupported(format!(
            "`{name}` is not the name of a device: use the PCI address of a card, like \
             0000:01:00.0 (`ferronic list` shows them), or vfio-user:/path/of/socket"
        ))),
    }
}
