//! Registers of a PCI function by sysfs: for looking on while a driver has it.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use crate::Failure;

/// Reads 32-bit registers of a memory region, at `offsets`.
pub fn read(address: &str, bar: u8, offsets: &[u64]) -> Result<Vec<u32>, Failure> {
    let path = format!("/sys/bus/pci/devices/{address}/resource{bar}");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_SYNC)
        .open(&path)
        .map_err(|error| format!("{path}: {error}"))?;
    let length = usize::try_from(file.metadata()?.len())?;
    // SAFETY: a new mapping at an address of the kernel's choice, of a file that is open.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        return Err(format!("mapping {path}: {error} (a driver has it: iomem=relaxed)").into());
    }
    let values = offsets.iter().map(|offset| {
        let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
        if offset % 4 != 0 || offset > length - 4 {
            return Err(format!("{path} has no register at {offset:#x}").into());
        }
        // SAFETY: aligned and inside the mapping, as was just checked; `base` is that of a page.
        Ok(unsafe { base.byte_add(offset).cast::<u32>().read_volatile() })
    });
    let values = values.collect();
    // SAFETY: the mapping from above, which nothing refers to any more.
    unsafe { libc::munmap(base, length) };
    values
}
