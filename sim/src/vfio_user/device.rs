//! The simulated card as a vfio-user device.
//!
//! The client never owns the card's BARs, MSI-X table and link settings: they are this server's,
//! as they are the kernel's with VFIO. The client sees shadows of what it wrote there.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::mapping::FileMaps;
use super::messages::MessageLog;
use super::protocol::{DmaMap, MAX_DMA_MAPS, vfio};
use super::session::Device;
use crate::root_complex::{Access, MapError};
use crate::sim::{FunctionInfo, Sim, SimError};

const BAR_REGION: u32 = 0;
const COMMAND: u16 = 0x04;
const COMMAND_MEMORY: u8 = 1 << 1;
const BARS: std::ops::Range<u16> = 0x10..0x28;
const CAPABILITY_PM: u8 = 0x01;
/// PAIRS_IN_USE in the card's own window.
const PAIRS_IN_USE: u64 = 0x802c;

/// What the client wrote to fields that the server keeps for itself.
#[derive(Clone, Debug, Default)]
struct Shadow {
    command: u8,
    bar: [u32; 2],
    device_control: [u8; 2],
    msix_control: u8,
}

/// The device behind one client at a time.
pub struct SimDevice {
    sim: Sim,
    info: FunctionInfo,
    power_management: Option<u16>,
    shadow: Shadow,
    maps: FileMaps,
    eventfds: Vec<Option<OwnedFd>>,
    msix_enabled: bool,
    max_pairs: u64,
    /// The simulation cannot go on.
    failed: Option<SimError>,
}

impl SimDevice {
    /// Enumerates the card.
    pub fn new(mut sim: Sim) -> Result<Self, SimError> {
        let info = sim.enumerate()?;
        let power_management = sim.capability(CAPABILITY_PM)?;
        let vectors = usize::from(info.msix.vectors);
        let mut device = Self {
            sim,
            info,
            power_management,
            shadow: Shadow::default(),
            maps: FileMaps::default(),
            eventfds: std::iter::repeat_with(|| None).take(vectors).collect(),
            msix_enabled: false,
            max_pairs: u64::MAX,
            failed: None,
        };
        device.fresh_shadow();
        Ok(device)
    }

    /// No client may use more queue pairs than `pairs`: a larger PAIRS_IN_USE is ignored, as the
    /// card ignores one beyond what it has.
    pub fn limit_pairs(&mut self, pairs: u16) {
        self.max_pairs = u64::from(pairs);
    }

    /// The simulation.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The simulation.
    pub fn sim_mut(&mut self) -> &mut Sim {
        &mut self.sim
    }

    /// The error that ended the simulation, if one did.
    pub fn failure(&self) -> Option<&SimError> {
        self.failed.as_ref()
    }

    /// The client is gone: the card is reset and knows none of its memory.
    pub fn release(&mut self) -> Result<(), SimError> {
        self.drop_eventfds();
        self.sim.function_level_reset()?;
        self.sim.root.memory.clear();
        self.sim.root.take_memory_faults();
        self.maps = FileMaps::default();
        self.msix_enabled = false;
        self.fresh_shadow();
        self.sim.port.wire_mut().restart();
        Ok(())
    }

    /// Writes the eventfds of vectors that fired.
    pub fn deliver_interrupts(&mut self, mut log: Option<&mut MessageLog>) {
        while let Some(vector) = self.sim.take_vector() {
            if let Some(log) = &mut log {
                log.interrupt(self.sim.now(), vector);
            }
            if let Err(error) = self.signal(usize::from(vector)) {
                log::warn!("signalling vector {vector}: {error}");
            }
        }
    }

    fn signal(&self, vector: usize) -> Result<(), Errno> {
        let Some(Some(fd)) = self.eventfds.get(vector) else {
            return Ok(());
        };
        match rustix::io::write(fd, &1_u64.to_ne_bytes()) {
            // Full: the client has not looked at it for 2^64 interrupts, or it is no eventfd.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn drop_eventfds(&mut self) {
        self.eventfds.iter_mut().for_each(|fd| *fd = None);
    }

    fn fresh_shadow(&mut self) {
        self.shadow = Shadow {
            command: COMMAND_MEMORY,
            ..Shadow::default()
        };
    }

    fn run<T>(&mut self, result: Result<T, SimError>) -> Result<T, Errno> {
        result.map_err(|error| match error {
            SimError::Completion { .. } => Errno::IO,
            SimError::Access { .. } => Errno::INVAL,
            error => {
                log::error!("{error}");
                if self.sim.check().is_err() {
                    self.failed.get_or_insert(error);
                }
                Errno::IO
            }
        })
    }

    // ------------------------------------------------------------------ configuration space

    fn config_read(&mut self, offset: u16, data: &mut [u8]) -> Result<(), SimError> {
        // A client reads all 4 KiB at once; nobody measures how long that takes on the link.
        let latency = self.sim.root.config.read_latency;
        if data.len() > 64 {
            self.sim.root.config.read_latency = 0;
        }
        let result = self.sim.config_read(offset, data);
        self.sim.root.config.read_latency = latency;
        result?;
        for (at, byte) in (offset..).zip(data.iter_mut()) {
            *byte = self.shadowed(at, *byte);
        }
        Ok(())
    }

    fn shadowed(&self, at: u16, byte: u8) -> u8 {
        let control = self.info.pcie + 8;
        if at == COMMAND {
            byte & !COMMAND_MEMORY | self.shadow.command & COMMAND_MEMORY
        } else if BARS.contains(&at) {
            let index = usize::from((at - BARS.start) / 4);
            let value = self.shadow.bar.get(index).copied().unwrap_or(0);
            let value = if index == 0 { value | 0x4 } else { value };
            value.to_le_bytes()[usize::from(at & 3)]
        } else if at == control {
            byte & 0x1f | self.shadow.device_control[0] & 0xe0
        } else if at == control + 1 {
            byte & 0x0e | self.shadow.device_control[1] & 0x71
        } else if at == self.info.msix.capability + 3 {
            byte & 0x3f | self.shadow.msix_control
        } else {
            byte
        }
    }

    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), SimError> {
        // One DW at a time, as requests on the link are.
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u16;
            let n = (4 - usize::from(at & 3)).min(data.len() - done);
            self.config_write_dw(at, &data[done..done + n])?;
            done += n;
        }
        Ok(())
    }

    /// Bytes of one DW.
    fn config_write_dw(&mut self, at: u16, data: &[u8]) -> Result<(), SimError> {
        let control = self.info.pcie + 8;
        let mut out = [0; 4];
        let out = &mut out[..data.len()];
        out.copy_from_slice(data);
        let mut flr = false;
        for (at, byte) in (at..).zip(out.iter_mut()) {
            if at == COMMAND {
                self.shadow.command = *byte;
                *byte |= COMMAND_MEMORY;
            } else if BARS.contains(&at) {
                self.write_bar(at, *byte);
            } else if at == control || at == control + 1 {
                let high = at == control + 1;
                flr |= high && *byte & 0x80 != 0;
                self.shadow.device_control[usize::from(high)] = *byte;
                let both = u16::from(*byte) << if high { 8 } else { 0 };
                let both = Sim::link_device_control(both, self.sim.config().data_w);
                *byte = both.to_le_bytes()[usize::from(high)];
            } else if at == self.info.msix.capability + 3 {
                self.shadow.msix_control = *byte & 0xc0;
                *byte = self.card_msix_control();
            }
        }
        if BARS.contains(&at) {
            return Ok(());
        }
        let from_d3 = self.leaves_d3(at, out)?;
        self.sim.config_write(at, out)?;
        if flr || from_d3 {
            self.after_reset()?;
        }
        Ok(())
    }

    fn write_bar(&mut self, at: u16, byte: u8) {
        let index = usize::from((at - BARS.start) / 4);
        let mask = (self.info.bar.size - 1) as u32;
        if let Some(bar) = self.shadow.bar.get_mut(index) {
            let mut bytes = bar.to_le_bytes();
            bytes[usize::from(at & 3)] = byte;
            *bar = u32::from_le_bytes(bytes);
            if index == 0 {
                *bar &= !mask;
            }
        }
    }

    fn card_msix_control(&self) -> u8 {
        if self.msix_enabled { 0x80 } else { 0 }
    }

    /// True if a write takes the function from D3hot to D0, which resets it.
    fn leaves_d3(&mut self, at: u16, data: &[u8]) -> Result<bool, SimError> {
        let Some(status) = self.power_management.map(|c| c + 4) else {
            return Ok(false);
        };
        if at != status || data.first().is_none_or(|b| b & 3 != 0) {
            return Ok(false);
        }
        let mut now = [0];
        self.sim.config_read(status, &mut now)?;
        Ok(now[0] & 3 == 3)
    }

    /// The function was reset by the client: give it back what is the server's.
    fn after_reset(&mut self) -> Result<(), SimError> {
        self.sim.after_function_reset()?;
        self.sim.program_function()?;
        self.restore()
    }

    fn restore(&mut self) -> Result<(), SimError> {
        self.fresh_shadow();
        if self.msix_enabled {
            // The client's eventfds stay, as with the kernel's VFIO.
            self.enable_msix()?;
        }
        Ok(())
    }

    // ------------------------------------------------------------------ interrupts

    fn enable_msix(&mut self) -> Result<(), SimError> {
        for vector in 0..self.info.msix.vectors {
            let unmasked = self
                .eventfds
                .get(usize::from(vector))
                .is_some_and(Option::is_some);
            self.sim.program_vector(vector, unmasked)?;
        }
        self.sim.set_msix_enable(true)?;
        self.msix_enabled = true;
        Ok(())
    }

    // ------------------------------------------------------------------ registers

    fn bar_read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), SimError> {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let n = widest(at, data.len() - done);
            let value = self.sim.bar_read(at, n)?;
            data[done..done + n].copy_from_slice(&value.to_le_bytes()[..n]);
            done += n;
        }
        Ok(())
    }

    fn bar_write(&mut self, offset: u64, data: &[u8]) -> Result<(), SimError> {
        let table = self.info.msix.table;
        let table = table..table + 16 * u64::from(self.info.msix.vectors);
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let n = widest(at, data.len() - done);
            let mut value = [0; 8];
            value[..n].copy_from_slice(&data[done..done + n]);
            let value = u64::from_le_bytes(value);
            if table.contains(&at) {
                log::debug!("a write of the client to the MSI-X table was ignored");
            } else if at == PAIRS_IN_USE && value > self.max_pairs {
                log::info!("PAIRS_IN_USE {value} is above --queues: ignored");
            } else {
                self.sim.bar_write(at, n, value)?;
            }
            done += n;
        }
        Ok(())
    }
}

/// The widest register access at `at` of at most `left` bytes.
fn widest(at: u64, left: usize) -> usize {
    [8, 4, 2]
        .into_iter()
        .find(|n| at.is_multiple_of(*n as u64) && left >= *n)
        .unwrap_or(1)
}

impl Device for SimDevice {
    fn region_size(&self, index: u32) -> u64 {
        match index {
            BAR_REGION => self.info.bar.size,
            vfio::CONFIG_REGION => vfio::CONFIG_SIZE,
            _ => 0,
        }
    }

    fn irq_count(&self, index: u32) -> u32 {
        if index == vfio::MSIX_IRQ {
            u32::from(self.info.msix.vectors)
        } else {
            0
        }
    }

    fn region_read(&mut self, index: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        let result = if index == BAR_REGION {
            self.bar_read(offset, data)
        } else {
            self.config_read(offset as u16, data)
        };
        self.run(result)
    }

    fn region_write(&mut self, index: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let result = if index == BAR_REGION {
            self.bar_write(offset, data)
        } else {
            self.config_write(offset as u16, data)
        };
        self.run(result)
    }

    fn dma_map(&mut self, map: &DmaMap, fd: Option<OwnedFd>) -> Result<(), Errno> {
        let Some(fd) = fd else {
            // ROMs of QEMU come so. The card cannot reach them and needs not.
            log::debug!("a map without descriptor at {:#x}", map.address);
            return Ok(());
        };
        if self.sim.root.memory.mappings() >= MAX_DMA_MAPS {
            return Err(Errno::NOSPC);
        }
        let access = Access {
            read: map.flags & vfio::DMA_READ != 0,
            write: map.flags & vfio::DMA_WRITE != 0,
        };
        let end = map.offset.checked_add(map.size).ok_or(Errno::INVAL)?;
        let (backing, writable) = self.maps.get(&fd, end)?;
        if access.write && !writable {
            return Err(Errno::ACCESS);
        }
        let memory = &mut self.sim.root.memory;
        memory
            .map(map.address, map.size, &backing, map.offset, access)
            .map_err(|error| map_error(&error))
    }

    fn dma_unmap(&mut self, address: u64, size: u64) -> Result<(), Errno> {
        let result = self.sim.drain_dma();
        self.run(result)?;
        self.sim
            .root
            .memory
            .unmap(address, size)
            .map(|_| ())
            .map_err(|error| map_error(&error))
    }

    fn dma_unmap_all(&mut self) -> Result<(), Errno> {
        let result = self.sim.drain_dma();
        self.run(result)?;
        self.sim.root.memory.clear();
        Ok(())
    }

    fn set_eventfds(&mut self, start: u32, fds: Vec<Option<OwnedFd>>) -> Result<(), Errno> {
        let mut vectors = Vec::new();
        for (vector, fd) in (start as usize..).zip(fds) {
            let slot = self.eventfds.get_mut(vector).ok_or(Errno::INVAL)?;
            *slot = fd;
            vectors.push((vector as u16, slot.is_some()));
        }
        let result = if self.msix_enabled {
            vectors
                .into_iter()
                .try_for_each(|(vector, given)| self.sim.mask_vector(vector, !given))
        } else {
            self.enable_msix()
        };
        self.run(result)
    }

    fn disable_irqs(&mut self) -> Result<(), Errno> {
        if !self.msix_enabled {
            return Ok(());
        }
        self.msix_enabled = false;
        let result = self.sim.disable_msix();
        while self.sim.take_vector().is_some() {}
        self.drop_eventfds();
        self.run(result)
    }

    fn trigger(&mut self, vector: u32) -> Result<(), Errno> {
        self.signal(vector as usize)
    }

    fn reset(&mut self) -> Result<(), Errno> {
        // As the kernel does for VFIO_DEVICE_RESET: configuration is kept, the rest is lost.
        let command = self.shadow.command;
        let result = self
            .sim
            .function_level_reset()
            .and_then(|()| self.restore())
            .and_then(|()| self.config_write(COMMAND, &[command]));
        self.run(result)
    }
}

fn map_error(error: &MapError) -> Errno {
    log::debug!("{error}");
    match error {
        MapError::Overlap { .. } => Errno::EXIST,
        MapError::Range { .. } | MapError::Cut { .. } => Errno::INVAL,
    }
}
