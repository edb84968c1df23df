//! The calls that `vfio-ioctls` does not offer, or whose result it keeps to itself.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;

use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_INFO_PGSIZES, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE,
    VFIO_TYPE, vfio_iommu_type1_info,
};
use vmm_sys_util::ioctl::{ioctl, ioctl_with_mut_ptr};
use vmm_sys_util::ioctl_io_nr;

ioctl_io_nr!(VFIO_DEVICE_RESET, VFIO_TYPE.into(), VFIO_BASE + 11);
ioctl_io_nr!(VFIO_IOMMU_GET_INFO, VFIO_TYPE.into(), VFIO_BASE + 12);

/// Largest answer that is believed: far more ranges than any machine has.
const MAX_INFO: usize = 64 * 1024;

/// What an IOMMU can do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IommuInfo {
    /// Page sizes, a bit each; 0 if the kernel does not say.
    pub(super) page_sizes: u64,
    /// Addresses that a device may be given; empty if the kernel does not say.
    pub(super) ranges: Vec<RangeInclusive<u64>>,
}

/// Function level reset.
pub(super) fn reset(device: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the call takes no argument, and the descriptor is a VFIO device's.
    match unsafe { ioctl(device, VFIO_DEVICE_RESET()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks the container for its page sizes and valid ranges.
pub(super) fn iommu_info(container: &impl AsRawFd) -> io::Result<IommuInfo> {
    let mut words = vec![0_u64; size_of::<vfio_iommu_type1_info>() / 8];
    loop {
        let len = words.len() * 8;
        words.fill(0);
        words[0] = len as u64; // argsz in the lower half, flags in the upper
        // SAFETY: the kernel writes at most `argsz` bytes, which is the size of the buffer.
        let result =
            unsafe { ioctl_with_mut_ptr(container, VFIO_IOMMU_GET_INFO(), words.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // The kernel answers with the size that it needs, and leaves the capabilities out if they
        // do not fit.
        let needed = words[0] as u32 as usize;
        if needed <= len || needed > MAX_INFO {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            return Ok(parse(&bytes));
        }
        words.resize(needed.div_ceil(8), 0);
    }
}

/// Reads a `vfio_iommu_type1_info` with its capabilities. What does not fit is left out.
fn parse(bytes: &[u8]) -> IommuInfo {
    let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let mut info = IommuInfo::default();
    let flags = u32_at(4).unwrap_or(0);
    if flags & VFIO_IOMMU_INFO_PGSIZES != 0 {
        info.page_sizes = u64_at(8).unwrap_or(0);
    }
    if flags & VFIO_IOMMU_INFO_CAPS == 0 {
        return info;
    }
    let mut at = u32_at(16).unwrap_or(0) as usize;
    // Capabilities follow each other; one that points back ends the walk.
    while at >= size_of::<vfio_iommu_type1_info>() {
        let (Some(id), Some(next)) = (u16_at(at), u32_at(at + 4)) else {
            break;
        };
        if u32::from(id) == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE {
            let count = u32_at(at + 8).unwrap_or(0) as usize;
            let ranges = (0..count).map_while(|i| {
                let entry = at + 16 + 16 * i;
                Some(u64_at(entry)?..=u64_at(entry + 8)?)
            });
            info.ranges.extend(ranges.filter(|range| !range.is_empty()));
        }
        if next as usize <= at {
            break;
        }
        at = next as usize;
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(flags: u32, cap_offset: u32, caps: &[u64]) -> Vec<u8> {
        let len = 24 + 8 * caps.len() as u64;
        let head = [len | u64::from(flags) << 32, 0x4020_1000, cap_offset.into()];
        head.iter()
            .chain(caps)
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    /// id, version, next; then the number of ranges.
    fn cap(id: u64, next: u64, ranges: &[(u64, u64)]) -> Vec<u64> {
        let mut words = vec![id | 1 << 16 | next << 32, ranges.len() as u64];
        words.extend(ranges.iter().flat_map(|(start, end)| [*start, *end]));
        words
    }

    #[test]
    fn ranges_and_page_sizes_are_read() {
        let low = (0, 0xfedf_ffff);
        let high = (0xfef0_0000, 0x7f_ffff_ffff);
        let mut caps = cap(3, 24 + 16, &[]);
        caps.extend(cap(1, 0, &[low, high]));
        let found = parse(&info(3, 24, &caps));
        assert_eq!(found.page_sizes, 0x4020_1000);
        assert_eq!(found.ranges, [low.0..=low.1, high.0..=high.1]);
        let old = parse(&info(1, 0, &[]));
        assert_eq!((old.page_sizes, old.ranges.len()), (0x4020_1000, 0));
        assert_eq!(parse(&info(0, 24, &caps)), IommuInfo::default());
    }

    #[test]
    fn answers_that_make_no_sense_end_the_walk() {
        let one = (0x1000, 0x1fff);
        // More ranges than there are bytes; a loop; an end before its start; an offset inside the
        // head; nothing at all.
        let mut many = cap(1, 0, &[one]);
        many[1] = 1 << 31;
        assert_eq!(parse(&info(3, 24, &many)).ranges, [0x1000..=0x1fff]);
        assert_eq!(parse(&info(3, 24, &cap(1, 24, &[one]))).ranges.len(), 1);
        assert!(parse(&info(3, 24, &cap(1, 0, &[(2, 1)]))).ranges.is_empty());
        assert!(parse(&info(3, 8, &cap(1, 0, &[one]))).ranges.is_empty());
        assert!(parse(&info(3, u32::MAX, &[])).ranges.is_empty());
        assert_eq!(parse(&[]), IommuInfo::default());
    }
}
