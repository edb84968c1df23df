//! Memory of the client, mapped from the descriptors that it sends.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, Weak};

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::root_complex::Backing;

struct MappedFile {
    base: *mut u8,
    len: usize,
    writable: bool,
}

// SAFETY: only the address is kept; the memory is accessed through `Backing`.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    fn map(fd: &OwnedFd, len: usize) -> Result<Self, Errno> {
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let map = |access| {
            // SAFETY: a new mapping at an address of the kernel's choice.
            unsafe { mmap(ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0) }
        };
        let (base, writable) = match map(both) {
            Ok(base) => (base, true),
            Err(Errno::ACCESS | Errno::PERM) => (map(ProtFlags::READ)?, false),
            Err(error) => return Err(error),
        };
        Ok(Self {
            base: base.cast(),
            len,
            writable,
        })
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, unmapped once; nobody uses it without holding the Arc.
        let result = unsafe { munmap(self.base.cast(), self.len) };
        if let Err(error) = result {
            log::error!("unmapping memory of the client: {error}");
        }
    }
}

/// Every file is mapped whole and once, however many descriptors of it the client sends: QEMU
/// sends a new one with each 4 KiB map.
#[derive(Default)]
pub struct FileMaps(HashMap<(u64, u64), Weak<MappedFile>>);

impl FileMaps {
    /// The memory of `fd`, which must have at least `need` bytes, and whether it can be written.
    pub fn get(&mut self, fd: &OwnedFd, need: u64) -> Result<(Backing, bool), Errno> {
        let stat = fstat(fd)?;
        let size = u64::try_from(stat.st_size).map_err(|_| Errno::INVAL)?;
        if size < need {
            return Err(Errno::INVAL);
        }
        let len = usize::try_from(size).map_err(|_| Errno::NOMEM)?;
        let key = (stat.st_dev, stat.st_ino);
        let known = self
            .0
            .get(&key)
            .and_then(Weak::upgrade)
            .filter(|map| map.len >= len);
        let map = match known {
            Some(map) => map,
            None => {
                let map = Arc::new(MappedFile::map(fd, len)?);
                self.0.retain(|_, weak| weak.strong_count() > 0);
                self.0.insert(key, Arc::downgrade(&map));
                map
            }
        };
        let (base, len, writable) = (map.base, map.len, map.writable);
        // SAFETY: the Arc keeps the memory mapped. It is readable, and whoever asks for write
        // access is told whether it is writable. The client can shrink the file and thereby kill
        // this process by SIGBUS; memfds of QEMU and of our driver are sealed or stay as they are.
        Ok((unsafe { Backing::new(base, len, map) }, writable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    #[test]
    fn two_descriptors_of_one_file_share_a_mapping() {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&fd, 8192).expect("size");
        let mut maps = FileMaps::default();
        let (first, writable) = maps.get(&fd, 8192).expect("map");
        assert!(writable);
        let again = fd.try_clone().expect("dup");
        let (second, _) = maps.get(&again, 4096).expect("map");
        assert_eq!(maps.0.len(), 1);
        let strong = maps.0.values().next().map(Weak::strong_count);
        assert_eq!(strong, Some(2));
        drop((first, second));
        assert_eq!(maps.0.values().next().map(Weak::strong_count), Some(0));
    }

    #[test]
    fn a_range_beyond_the_file_is_refused() {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&fd, 4096).expect("size");
        assert_eq!(FileMaps::default().get(&fd, 4097).err(), Some(Errno::INVAL));
    }
}
