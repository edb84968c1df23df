//! What firmware and an operating system do to a card before a driver sees it.

use super::{Sim, SimError};
use crate::root_complex::LinkLimits;

/// Where the register BAR is put: above 4 GiB, so that it needs the long header.
const BAR_ADDRESS: u64 = 0x20_0000_0000;

/// Cycles that a function has to finish a reset.
const RESET_CYCLES: u64 = 2_000_000;

const COMMAND: u16 = 0x04;
const COMMAND_MEMORY: u16 = 1 << 1;
const COMMAND_BUS_MASTER: u16 = 1 << 2;
const BAR0: u16 = 0x10;
const CAPABILITIES: u16 = 0x34;
const CAP_PCIE: u8 = 0x10;
const CAP_MSIX: u8 = 0x11;
const DEVICE_CONTROL: u16 = 8;
const DEVICE_CONTROL_FLR: u16 = 1 << 15;

/// A memory BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Where it was put.
    pub address: u64,
    /// Its size.
    pub size: u64,
}

/// The MSI-X capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsixInfo {
    /// Offset of the capability.
    pub capability: u16,
    /// Entries of the table.
    pub vectors: u16,
    /// Offset of the table in the register BAR.
    pub table: u64,
    /// Offset of the pending bits in the register BAR.
    pub pba: u64,
}

/// What enumeration found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// The register BAR (BAR 0, 64 bits).
    pub bar: Bar,
    /// Offset of the PCIe capability.
    pub pcie: u16,
    /// The MSI-X capability.
    pub msix: MsixInfo,
}

impl Sim {
    fn config_u16(&mut self, offset: u16) -> Result<u16, SimError> {
        let mut bytes = [0; 2];
        self.config_read(offset, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    fn config_u32(&mut self, offset: u16) -> Result<u32, SimError> {
        let mut bytes = [0; 4];
        self.config_read(offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Finds the card, sizes and places its BAR, enables memory accesses, and programs MPS 256
    /// and MRRS 512. Bus mastering is left to the driver, as by the kernel's VFIO.
    pub fn enumerate(&mut self) -> Result<FunctionInfo, SimError> {
        let vendor = self.config_u16(0)?;
        let device = self.config_u16(2)?;
        let size = self.size_bar()?;
        let pcie = self
            .capability(CAP_PCIE)?
            .ok_or_else(|| SimError::Enumeration("no PCIe capability".to_owned()))?;
        let msix = self.find_msix()?;
        let info = FunctionInfo {
            vendor,
            device,
            bar: Bar {
                address: BAR_ADDRESS,
                size,
            },
            pcie,
            msix,
        };
        self.root.pcie_capability = Some(pcie);
        self.function = Some(info.clone());
        self.program_function()?;
        Ok(info)
    }

    /// Programs BAR, memory enable, MPS and MRRS as after enumeration.
    pub fn program_function(&mut self) -> Result<(), SimError> {
        let Some(info) = self.function.clone() else {
            return self.enumerate().map(|_| ());
        };
        let address = info.bar.address;
        self.config_write(BAR0, &(address as u32).to_le_bytes())?;
        self.config_write(BAR0 + 4, &((address >> 32) as u32).to_le_bytes())?;
        let control = self.device_control(info.pcie)?;
        self.config_write(info.pcie + DEVICE_CONTROL, &control.to_le_bytes())?;
        self.config_write(COMMAND, &COMMAND_MEMORY.to_le_bytes())
    }

    /// Device Control with the payload and read sizes of this link.
    pub fn device_control(&mut self, pcie: u16) -> Result<u16, SimError> {
        let control = self.config_u16(pcie + DEVICE_CONTROL)?;
        Ok(Self::link_device_control(control, self.config.data_w))
    }

    /// `control` with MPS 256, MRRS 512 and, for a wide data path, eight-bit tags.
    pub fn link_device_control(control: u16, data_w: u32) -> u16 {
        const MPS_256: u16 = 1 << 5;
        const MRRS_512: u16 = 2 << 12;
        const EXT_TAG: u16 = 1 << 8;
        let tags = if data_w >= 256 { EXT_TAG } else { 0 };
        control & !(7 << 5 | 7 << 12 | EXT_TAG) | MPS_256 | MRRS_512 | tags
    }

    /// Turns bus mastering on or off.
    pub fn set_bus_master(&mut self, on: bool) -> Result<(), SimError> {
        let command = self.config_u16(COMMAND)?;
        let command = if on {
            command | COMMAND_BUS_MASTER
        } else {
            command & !COMMAND_BUS_MASTER
        };
        self.config_write(COMMAND, &command.to_le_bytes())
    }

    /// Function level reset; simulates until the card is through with it, then programs the
    /// function as after enumeration. Interrupts that were under way are forgotten.
    pub fn function_level_reset(&mut self) -> Result<(), SimError> {
        let info = match self.function.clone() {
            Some(info) => info,
            None => self.enumerate()?,
        };
        let offset = info.pcie + DEVICE_CONTROL;
        let control = self.config_u16(offset)? | DEVICE_CONTROL_FLR;
        self.config_write(offset, &control.to_le_bytes())?;
        self.after_function_reset()?;
        self.program_function()
    }

    /// Waits for the end of a function level reset that was just begun.
    pub fn after_function_reset(&mut self) -> Result<(), SimError> {
        self.set_driver_ready(false);
        // The card drains its DMA first. Completions are on their way for a while; the
        // specification gives a function 100 ms, this one needs microseconds.
        let quiet = |sim: &mut Self| sim.root.is_idle() && sim.outputs.idle == 1;
        if !self.run_until(RESET_CYCLES, quiet)? {
            return Err(SimError::Timeout {
                what: "the end of a function level reset",
                cycles: RESET_CYCLES,
            });
        }
        self.run(64)?;
        self.root.limits = LinkLimits::default();
        while self.root.take_message().is_some() {}
        Ok(())
    }

    /// Programs MSI-X vectors `0..count` with messages that carry the vector number, unmasks them
    /// and enables MSI-X. The other vectors are masked.
    pub fn enable_msix(&mut self, count: u16) -> Result<(), SimError> {
        let msix = self.msix()?;
        for vector in 0..msix.vectors {
            self.program_vector(vector, vector < count)?;
        }
        self.set_msix_enable(true)
    }

    /// Disables MSI-X and masks every vector.
    pub fn disable_msix(&mut self) -> Result<(), SimError> {
        let msix = self.msix()?;
        self.set_msix_enable(false)?;
        for vector in 0..msix.vectors {
            self.mask_vector(vector, true)?;
        }
        Ok(())
    }

    /// Programs one entry of the MSI-X table.
    pub fn program_vector(&mut self, vector: u16, unmasked: bool) -> Result<(), SimError> {
        let entry = self.msix()?.table + 16 * u64::from(vector);
        self.mask_vector(vector, true)?;
        self.bar_write(entry, 4, crate::root_complex::MSI_WINDOW.start)?;
        self.bar_write(entry + 4, 4, 0)?;
        self.bar_write(entry + 8, 4, u64::from(vector))?;
        self.mask_vector(vector, !unmasked)
    }

    /// Masks or unmasks a vector.
    pub fn mask_vector(&mut self, vector: u16, masked: bool) -> Result<(), SimError> {
        let entry = self.msix()?.table + 16 * u64::from(vector);
        self.bar_write(entry + 12, 4, u64::from(masked))
    }

    /// Enables or disables MSI-X, without function mask.
    pub fn set_msix_enable(&mut self, enable: bool) -> Result<(), SimError> {
        let offset = self.msix()?.capability + 2;
        let control = self.config_u16(offset)? & 0x3fff;
        let control = control | if enable { 0x8000 } else { 0 };
        self.config_write(offset, &control.to_le_bytes())
    }

    fn msix(&self) -> Result<MsixInfo, SimError> {
        self.function
            .as_ref()
            .map(|f| f.msix)
            .ok_or_else(|| SimError::Config("the card was not enumerated".to_owned()))
    }

    fn size_bar(&mut self) -> Result<u64, SimError> {
        self.config_write(BAR0, &[0xff; 8])?;
        let low = self.config_u32(BAR0)?;
        let high = self.config_u32(BAR0 + 4)?;
        if low & 0x7 != 0x4 {
            return Err(SimError::Enumeration(format!(
                "BAR 0 reads {low:#010x} while being sized: not a 64-bit memory BAR"
            )));
        }
        let mask = u64::from(high) << 32 | u64::from(low & !0xf);
        let size = mask.wrapping_neg();
        if !size.is_power_of_two() {
            return Err(SimError::Enumeration(format!(
                "BAR 0 has the size mask {mask:#x}: not a power of two"
            )));
        }
        Ok(size)
    }

    /// Offset of the first capability with id `wanted`.
    pub fn capability(&mut self, wanted: u8) -> Result<Option<u16>, SimError> {
        let mut at = self.config_u16(CAPABILITIES)? & 0xfc;
        // A broken list must not loop.
        for _ in 0..48 {
            if at < 0x40 {
                break;
            }
            let header = self.config_u16(at)?;
            if header as u8 == wanted {
                return Ok(Some(at));
            }
            at = header >> 8 & 0xfc;
        }
        Ok(None)
    }

    fn find_msix(&mut self) -> Result<MsixInfo, SimError> {
        let capability = self
            .capability(CAP_MSIX)?
            .ok_or_else(|| SimError::Enumeration("no MSI-X capability".to_owned()))?;
        let control = self.config_u16(capability + 2)?;
        let table = self.config_u32(capability + 4)?;
        let pba = self.config_u32(capability + 8)?;
        if table & 7 != 0 || pba & 7 != 0 {
            return Err(SimError::Enumeration(
                "the MSI-X table is not in BAR 0".to_owned(),
            ));
        }
        Ok(MsixInfo {
            capability,
            vectors: (control & 0x7ff) + 1,
            table: u64::from(table),
            pba: u64::from(pba),
        })
    }
}
