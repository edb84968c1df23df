//! What can be tested without a card that the kernel has: registers on a file in memory, and the
//! causes of refusals on a tree that looks like sysfs.

#[path = "../../../tests/support/fake_sysfs.rs"]
mod fake_sysfs;

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use vmm_sys_util::errno::Error as Errno;

use self::fake_sysfs::{FakeDevice, FakeSysfs};
use super::*;

const PAGE: u64 = 4096;
const CARD: &str = "0000:01:00.0";

/// A file of `pages` pages, each byte of which is its offset plus its page.
fn file(pages: u64) -> Arc<File> {
    let fd = rustix::fs::memfd_create("bar", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let content: Vec<u8> = (0..pages * PAGE).map(|i| (i + i / PAGE) as u8).collect();
    rustix::io::pwrite(&fd, &content, 0).unwrap();
    Arc::new(File::from(fd))
}

/// A BAR of two pages that begins on page 1 of the file.
const REGION: RegionInfo = RegionInfo {
    index: 0,
    offset: PAGE,
    size: 2 * PAGE,
};

#[test]
fn registers_are_accessed_in_their_width_mapped_or_not() {
    for areas in [&[][..], &[(0, 2 * PAGE)], &[(PAGE, PAGE)], &[(0, PAGE)]] {
        let file = file(4);
        let bar = Bar::new(file.clone(), REGION, areas);
        assert_eq!(bar.len(), 2 * PAGE);
        assert_eq!(bar.read8(3).unwrap(), 4);
        assert_eq!(bar.read16(2).unwrap(), 0x0403);
        assert_eq!(bar.read32(PAGE + 4).unwrap(), 0x0908_0706);
        assert_eq!(bar.read64(PAGE).unwrap(), 0x0908_0706_0504_0302);
        // Only the bytes of the register change.
        bar.write8(1, 0xa1).unwrap();
        bar.write16(4, 0xb2b1).unwrap();
        bar.write32(PAGE + 8, 0xc4c3_c2c1).unwrap();
        bar.write64(2 * PAGE - 8, 0xd8d7_d6d5_d4d3_d2d1).unwrap();
        let mut bytes = vec![0; 2 * PAGE as usize];
        rustix::io::pread(&*file, &mut bytes, PAGE).unwrap();
        let page = PAGE as usize;
        assert_eq!(bytes[..8], [1, 0xa1, 3, 4, 0xb1, 0xb2, 7, 8]);
        assert_eq!(bytes[page + 7..page + 13], [9, 0xc1, 0xc2, 0xc3, 0xc4, 14]);
        assert_eq!(bytes[2 * page - 9..][..3], [0xf9, 0xd1, 0xd2], "{areas:?}");
    }
}

#[test]
fn accesses_outside_or_unaligned_are_refused_mapped_or_not() {
    for areas in [&[][..], &[(0, 2 * PAGE)]] {
        let bar = Bar::new(file(4), REGION, areas);
        for offset in [2 * PAGE, u64::MAX - 3, u64::MAX] {
            assert!(matches!(
                bar.read32(offset),
                Err(PciError::OutOfRange { .. })
            ));
            assert!(matches!(
                bar.write8(offset, 0),
                Err(PciError::OutOfRange { .. })
            ));
        }
        assert!(matches!(bar.read16(1), Err(PciError::Misaligned { .. })));
        assert!(matches!(
            bar.write64(4, 0),
            Err(PciError::Misaligned { .. })
        ));
    }
}

#[test]
fn areas_that_cannot_be_are_left_to_calls() {
    let areas = [(0, 0), (PAGE, 2 * PAGE), (u64::MAX, 1), (1, PAGE)];
    let bar = Bar::new(file(4), REGION, &areas);
    assert_eq!(bar.read8(2 * PAGE - 1).unwrap(), 1);
    // A file that ends early: the call says so, where a mapping would end the process.
    let short = Bar::new(file(2), REGION, &[]);
    assert!(matches!(short.read32(PAGE), Err(PciError::Protocol { .. })));
}

/// A doorbell by a plain store to a mapping must not overtake what it announces (rows 5, 6 and 9
/// of the list of others' faults are of this kind).
#[test]
fn doorbell_never_overtakes_what_was_written_before_it() {
    const ROUNDS: u32 = 200_000;
    let bars = file(4);
    let bar = Bar::new(bars.clone(), REGION, &[(0, 2 * PAGE)]);
    let memory = DmaMemory::new(4096).unwrap();
    let device = MmapDevice::new(&bars);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) || last != ROUNDS {
                let rung = device.doorbell().load(Ordering::Acquire);
                let mut payload = [0; 8];
                memory.read(128, &mut payload).unwrap();
                let payload = u64::from_le_bytes(payload);
                assert!(payload >= rung.into(), "{payload} is older than {rung}");
                last = rung;
            }
        });
        bar.write32(64, 0).unwrap();
        for round in 1..=ROUNDS {
            memory.write(128, &u64::from(round).to_le_bytes()).unwrap();
            bar.write32(64, round).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// The doorbell page as the device sees it.
struct MmapDevice(memmap2::MmapRaw);

impl MmapDevice {
    fn new(file: &File) -> Self {
        let map = memmap2::MmapOptions::new()
            .offset(PAGE)
            .len(PAGE as usize)
            .map_raw(file)
            .unwrap();
        let this = Self(map);
        this.doorbell().store(0, Ordering::Relaxed);
        this
    }

    fn doorbell(&self) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned, and only accessed atomically or volatile.
        unsafe { AtomicU32::from_ptr(self.0.as_mut_ptr().add(64).cast()) }
    }
}

#[test]
fn hidden_capabilities_are_laid_over_what_was_read() {
    let extended: Vec<u8> = (0..4096).map(|i| (i >> 4) as u8).collect();
    let mut all = vec![0xee; 4096];
    overlay(&mut all, 0, &extended, 0x100..0x1000);
    assert_eq!((all[0xff], all[0x100], all[0xfff]), (0xee, 0x10, 0xff));
    let mut some = [0xee; 4];
    overlay(&mut some, 0xfe, &extended, 0x100..0x1000);
    assert_eq!(some, [0xee, 0xee, 0x10, 0x10]);
    let mut low = [0xee; 4];
    overlay(&mut low, 0x40, &extended, 0x100..0x1000);
    assert_eq!(low, [0xee; 4]);
}

fn address() -> PciAddress {
    CARD.parse().unwrap()
}

/// Why a card is not to be had.
fn cause(fake: &FakeSysfs) -> String {
    let sysfs = Sysfs::new(fake.root(), fake.dev());
    match check::ready(&sysfs, address()) {
        Ok(group) => format!("group {group}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn every_step_to_a_card_is_asked_for_in_turn() {
    let fake = FakeSysfs::new();
    assert!(cause(&fake).contains("no virtio network card is on the bus"));
    fake.card(CARD, Some("virtio-pci"), None, &[]);
    assert!(cause(&fake).contains("noiommu mode is not supported"));
    // The same words where noiommu mode is on and made a group.
    let fake = FakeSysfs::new();
    fake.card(CARD, Some("vfio-pci"), Some(0), &[]);
    fake.file("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
    assert!(cause(&fake).contains("noiommu mode is not supported"));
    let fake = FakeSysfs::new();
    fake.card(CARD, Some("virtio-pci"), Some(7), &[]);
    let text = cause(&fake);
    assert!(text.contains("`virtio-pci`") && text.contains("ferronic bind 0000:01:00.0"));
    let fake = FakeSysfs::new();
    fake.card(CARD, Some("vfio-pci"), Some(7), &[]);
    assert!(cause(&fake).contains("modprobe vfio-pci"));
    fake.file("dev/vfio/vfio", "");
    let text = cause(&fake);
    assert!(text.contains("vfio/7 does not exist"), "{text}");
    fake.file("dev/vfio/7", "");
    assert_eq!(cause(&fake), "group 7");
    // A bridge and another card with vfio-pci are no obstacle, another driver's function is.
    let neighbour = |address, driver| {
        fake.device(&FakeDevice {
            address,
            ids: (0x8086, 0x1533),
            driver: Some(driver),
            group: Some(7),
            config: &[],
        });
    };
    neighbour("0000:00:01.0", "pcieport");
    neighbour("0000:01:00.1", "vfio-pci");
    assert_eq!(cause(&fake), "group 7");
    neighbour("0000:01:00.2", "igb");
    let text = cause(&fake);
    assert!(
        text.contains("group 7") && text.contains("0000:01:00.2 is with `igb`"),
        "{text}"
    );
}

#[test]
fn refusals_of_the_kernel_are_explained() {
    use io::Error;
    use vfio_ioctls::VfioError as Call;
    let fake = FakeSysfs::new();
    fake.card(CARD, Some("vfio-pci"), Some(7), &[]);
    let sysfs = Sysfs::new(fake.root(), fake.dev());
    let explain = |call| check::explain(&sysfs, address(), 7, call).to_string();
    let os = |errno: rustix::io::Errno| Error::from_raw_os_error(errno.raw_os_error());
    let denied = os(rustix::io::Errno::ACCESS);
    assert!(explain(Call::OpenContainer(os(rustix::io::Errno::NOENT))).contains("modprobe"));
    let text = explain(Call::OpenGroup(denied, "7".into()));
    assert!(text.contains("chown") && text.contains("vfio/7"), "{text}");
    let text = explain(Call::OpenGroup(os(rustix::io::Errno::BUSY), "7".into()));
    assert!(text.contains("one owner"), "{text}");
    assert!(explain(Call::GroupViable).contains("not viable"));
    let text = explain(Call::ContainerSetIOMMU(Errno::new(1)));
    assert!(text.contains("allow_unsafe_interrupts"), "{text}");
    assert!(explain(Call::VfioExtension).contains("vfio_iommu_type1"));
    let nomem = rustix::io::Errno::NOMEM.raw_os_error();
    let text = check::explain_map(0, 4096, Call::IommuDmaMap(Errno::new(nomem))).to_string();
    assert!(text.contains("ulimit -l"), "{text}");
    let text = check::explain_map(0x1000, 4096, Call::IommuDmaMap(Errno::new(22))).to_string();
    assert!(text.contains("at 0x1000"), "{text}");
}
