//! Registers of a PCI function by sysfs: for looking on while a driver has it, and for meddling.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use crate::Failure;

/// A memory region of a function, mapped.
struct Region {
    path: String,
    base: *mut libc::c_void,
    length: usize,
}

impl Region {
    fn open(address: &str, bar: u8) -> Result<Self, Failure> {
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
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            return Err(format!("mapping {path}: {error} (a driver has it: iomem=relaxed)").into());
        }
        Ok(Self { path, base, length })
    }

    /// The register of 32 bits at `offset`; valid as long as the region is.
    fn register(&self, offset: u64) -> Result<*mut u32, Failure> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if at % 4 != 0 || self.length < 4 || at > self.length - 4 {
            return Err(format!("{} has no register at {offset:#x}", self.path).into());
        }
        // SAFETY: inside the mapping, as was just checked.
        Ok(unsafe { self.base.byte_add(at) }.cast())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`; pointers into it do not outlive the region.
        unsafe { libc::munmap(self.base, self.length) };
    }
}

/// Reads 32-bit registers of a memory region, at `offsets`.
pub fn read(address: &str, bar: u8, offsets: &[u64]) -> Result<Vec<u32>, Failure> {
    let region = Region::open(address, bar)?;
    let read = |offset: &u64| {
        let register = region.register(*offset)?;
        // SAFETY: aligned and inside the mapping, which is still there; `base` is that of a page.
        Ok(unsafe { register.read_volatile() })
    };
    offsets.iter().map(read).collect()
}

/// Writes 32-bit registers of a memory region.
pub fn write(address: &str, bar: u8, values: &[(u64, u32)]) -> Result<(), Failure> {
    let region = Region::open(address, bar)?;
    for (offset, value) in values {
        let register = region.register(*offset)?;
        // SAFETY: as in `read`; what the register does is the caller's business.
        unsafe { register.write_volatile(*value) };
    }
    Ok(())
}
