//! Names of devices, and the backends they stand for.

use std::path::Path;
use std::sync::Arc;

use crate::pci::vfio_user::VfioUserFunction;
use crate::pci::{PciError, PciFunction};

/// Opens `vfio-user:/path/of/socket`.
pub fn open(name: &str) -> Result<Arc<dyn PciFunction>, PciError> {
    match name.split_once(':') {
        Some(("vfio-user", path)) if !path.is_empty() => {
            Ok(Arc::new(VfioUserFunction::connect(Path::new(path))?))
        }
        Some(("vfio", address)) => Err(PciError::Unsupported(format!(
            "`{name}`: kernel VFIO is not supported yet, so the card {address} cannot be opened; \
             use a simulated one (`ferronic-sim serve --socket PATH`) as vfio-user:PATH"
        ))),
        _ => Err(PciError::Unsupported(format!(
            "`{name}` is not the name of a device: use vfio-user:/path/of/socket"
        ))),
    }
}
