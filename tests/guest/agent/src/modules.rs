//! Kernel modules, from files of the initramfs.

use std::ffi::CString;
use std::fs::File;

use rustix::io::Errno;

use crate::Failure;

/// Where the initramfs has them.
const DIRECTORY: &str = "/modules";

/// Loads modules in this order; one that is there already is no error. The last gets `parameters`.
pub fn load(names: &[String], parameters: &str) -> Result<(), Failure> {
    for (index, name) in names.iter().enumerate() {
        let path = format!("{DIRECTORY}/{name}.ko");
        let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        let last = index + 1 == names.len();
        let text = CString::new(if last { parameters } else { "" })?;
        match rustix::system::finit_module(&file, &text, 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(format!("loading {name}: {error}").into()),
        }
    }
    Ok(())
}

/// Removes a module.
pub fn remove(name: &str) -> Result<(), Failure> {
    let text = CString::new(name)?;
    rustix::system::delete_module(&text, 0)
        .map_err(|error| format!("removing {name}: {error}").into())
}
