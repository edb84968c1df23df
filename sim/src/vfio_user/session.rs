//! Commands and their replies, for any [`Device`].

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::connection::Message;
use super::protocol::{
    DmaMap, DmaUnmap, Fields, HEADER, Header, MAX_DMA_MAPS, MAX_FDS, MAX_TRANSFER, RegionAccess,
    SetIrqs, command, flag, vfio,
};

/// What a device offers to a client.
pub trait Device {
    /// Size of region `index`; 0: there is none.
    fn region_size(&self, index: u32) -> u64;
    /// Vectors of interrupt `index`.
    fn irq_count(&self, index: u32) -> u32;
    /// Reads from a region. The range is inside it.
    fn region_read(&mut self, index: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno>;
    /// Writes to a region. The range is inside it.
    fn region_write(&mut self, index: u32, offset: u64, data: &[u8]) -> Result<(), Errno>;
    /// Makes memory of the client reachable; without a descriptor it is known but unreachable.
    fn dma_map(&mut self, map: &DmaMap, fd: Option<OwnedFd>) -> Result<(), Errno>;
    /// Ends it; returns when nothing is under way any more.
    fn dma_unmap(&mut self, address: u64, size: u64) -> Result<(), Errno>;
    /// Ends it for everything.
    fn dma_unmap_all(&mut self) -> Result<(), Errno>;
    /// Gives MSI-X vectors from `start` on their eventfds; `None` takes one away.
    fn set_eventfds(&mut self, start: u32, fds: Vec<Option<OwnedFd>>) -> Result<(), Errno>;
    /// Takes all eventfds away.
    fn disable_irqs(&mut self) -> Result<(), Errno>;
    /// Fires a vector as if the device had.
    fn trigger(&mut self, vector: u32) -> Result<(), Errno>;
    /// Resets the function.
    fn reset(&mut self) -> Result<(), Errno>;
}

/// One client's protocol state.
#[derive(Debug, Default)]
pub struct Session {
    negotiated: bool,
}

/// The answer to VERSION.
const CAPABILITIES: &str = concat!(
    r#"{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"#,
    r#""max_dma_maps":65535,"pgsizes":4096}}"#
);

impl Session {
    /// A session with a client that has said nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles a message. The reply to send, if there is one.
    pub fn handle(&mut self, device: &mut dyn Device, message: Message) -> Option<Vec<u8>> {
        let header = message.header;
        if header.flags & flag::TYPE_MASK != flag::TYPE_COMMAND {
            // We send no commands, so there is nothing to be replied to.
            log::warn!("a message that is no command was ignored: {header:?}");
            return None;
        }
        let result = if message.too_long {
            Err(Errno::TOOBIG)
        } else {
            self.command(device, message)
        };
        if let Err(error) = result {
            log::debug!("command {} refused: {error}", header.command);
        }
        if header.is_posted() {
            return None;
        }
        Some(reply(&header, &result))
    }

    fn command(&mut self, device: &mut dyn Device, message: Message) -> Result<Vec<u8>, Errno> {
        let Message {
            header,
            payload,
            fds,
            ..
        } = message;
        if header.command != command::VERSION && !self.negotiated {
            return Err(Errno::INVAL);
        }
        match header.command {
            command::VERSION => self.version(&payload),
            command::DMA_MAP => dma_map(device, &payload, fds),
            command::DMA_UNMAP => dma_unmap(device, &payload),
            command::DEVICE_GET_INFO => device_info(&payload),
            command::DEVICE_GET_REGION_INFO => region_info(device, &payload),
            command::DEVICE_GET_IRQ_INFO => irq_info(device, &payload),
            command::DEVICE_SET_IRQS => set_irqs(device, &payload, fds),
            command::REGION_READ => region_read(device, &payload),
            command::REGION_WRITE => region_write(device, &payload),
            command::DEVICE_RESET => device.reset().map(|()| Vec::new()),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn version(&mut self, payload: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut fields = Fields(payload);
        let major = fields.u16().ok_or(Errno::INVAL)?;
        let _minor = fields.u16().ok_or(Errno::INVAL)?;
        // Capabilities are optional; we need none of the client's, but they must be JSON.
        let text = fields.rest();
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        if major != 0
            || (!text.is_empty() && serde_json::from_slice::<serde_json::Value>(text).is_err())
        {
            return Err(Errno::INVAL);
        }
        self.negotiated = true;
        let mut reply = vec![0; 4];
        reply.extend_from_slice(CAPABILITIES.as_bytes());
        reply.push(0);
        Ok(reply)
    }
}

fn reply(header: &Header, result: &Result<Vec<u8>, Errno>) -> Vec<u8> {
    let (payload, flags, error) = match result {
        Ok(payload) => (payload.as_slice(), flag::TYPE_REPLY, 0),
        Err(error) => (
            [].as_slice(),
            flag::TYPE_REPLY | flag::ERROR,
            error.raw_os_error().unsigned_abs(),
        ),
    };
    let size = HEADER + payload.len();
    let mut message = Vec::with_capacity(size);
    Header {
        id: header.id,
        command: header.command,
        size: size as u32,
        flags,
        error,
    }
    .put(&mut message);
    message.extend_from_slice(payload);
    message
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn dma_map(
    device: &mut dyn Device,
    payload: &[u8],
    mut fds: Vec<OwnedFd>,
) -> Result<Vec<u8>, Errno> {
    let map = DmaMap::parse(payload).ok_or(Errno::INVAL)?;
    let access = vfio::DMA_READ | vfio::DMA_WRITE;
    if map.size == 0 || map.address.checked_add(map.size - 1).is_none() || fds.len() > 1 {
        return Err(Errno::INVAL);
    }
    if map.flags & !access != 0 {
        return Err(Errno::INVAL);
    }
    device.dma_map(&map, fds.pop()).map(|()| Vec::new())
}

fn dma_unmap(device: &mut dyn Device, payload: &[u8]) -> Result<Vec<u8>, Errno> {
    let unmap = DmaUnmap::parse(payload).ok_or(Errno::INVAL)?;
    if unmap.flags & vfio::UNMAP_DIRTY_BITMAP != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if unmap.flags & vfio::UNMAP_ALL != 0 {
        if unmap.address != 0 || unmap.size != 0 {
            return Err(Errno::INVAL);
        }
        device.dma_unmap_all()?;
    } else {
        device.dma_unmap(unmap.address, unmap.size)?;
    }
    let mut reply = Vec::new();
    unmap.put(&mut reply);
    Ok(reply)
}

fn device_info(payload: &[u8]) -> Result<Vec<u8>, Errno> {
    Fields(payload).u32().ok_or(Errno::INVAL)?;
    let flags = vfio::DEVICE_RESET | vfio::DEVICE_PCI;
    Ok(words(&[16, flags, vfio::REGIONS, vfio::IRQS]))
}

fn region_info(device: &mut dyn Device, payload: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut fields = Fields(payload);
    let (_argsz, _flags) = (fields.u32(), fields.u32());
    let index = fields.u32().ok_or(Errno::INVAL)?;
    if index >= vfio::REGIONS {
        return Err(Errno::INVAL);
    }
    let size = device.region_size(index);
    let flags = if size == 0 {
        0
    } else {
        vfio::REGION_READ | vfio::REGION_WRITE
    };
    let mut reply = words(&[32, flags, index, 0]);
    reply.extend_from_slice(&size.to_ne_bytes());
    reply.extend_from_slice(&0_u64.to_ne_bytes());
    Ok(reply)
}

fn irq_info(device: &mut dyn Device, payload: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut fields = Fields(payload);
    let (_argsz, _flags) = (fields.u32(), fields.u32());
    let index = fields.u32().ok_or(Errno::INVAL)?;
    if index >= vfio::IRQS {
        return Err(Errno::INVAL);
    }
    let count = device.irq_count(index);
    let flags = if count == 0 {
        0
    } else {
        vfio::IRQ_EVENTFD | vfio::IRQ_NORESIZE
    };
    Ok(words(&[16, flags, index, count]))
}

fn set_irqs(device: &mut dyn Device, payload: &[u8], fds: Vec<OwnedFd>) -> Result<Vec<u8>, Errno> {
    let (irqs, data) = SetIrqs::parse(payload).ok_or(Errno::INVAL)?;
    if irqs.index >= vfio::IRQS {
        return Err(Errno::INVAL);
    }
    let available = device.irq_count(irqs.index);
    let inside = irqs
        .start
        .checked_add(irqs.count)
        .is_some_and(|end| end <= available);
    let kind = irqs.flags & 7;
    if irqs.count == 0 {
        // "Disable everything of this index"; harmless for an index without vectors.
        if irqs.flags != vfio::SET_ACTION_TRIGGER | vfio::SET_DATA_NONE || irqs.start != 0 {
            return Err(Errno::INVAL);
        }
        if irqs.index == vfio::MSIX_IRQ {
            device.disable_irqs()?;
        }
        return Ok(Vec::new());
    }
    // Masking is done in the table, which is ours.
    if !inside || irqs.flags & !7 != vfio::SET_ACTION_TRIGGER {
        return Err(Errno::INVAL);
    }
    match kind {
        vfio::SET_DATA_EVENTFD => {
            let count = irqs.count as usize;
            let fds: Vec<Option<OwnedFd>> = match fds.len() {
                // No descriptors: none for these vectors.
                0 => (0..count).map(|_| None).collect(),
                n if n == count && n <= MAX_FDS => fds.into_iter().map(Some).collect(),
                _ => return Err(Errno::INVAL),
            };
            device.set_eventfds(irqs.start, fds)?;
        }
        vfio::SET_DATA_NONE => {
            for vector in irqs.start..irqs.start + irqs.count {
                device.trigger(vector)?;
            }
        }
        vfio::SET_DATA_BOOL => {
            let data = data.get(..irqs.count as usize).ok_or(Errno::INVAL)?;
            for (vector, fire) in (irqs.start..).zip(data) {
                if *fire != 0 {
                    device.trigger(vector)?;
                }
            }
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(Vec::new())
}

fn check_access(device: &dyn Device, access: &RegionAccess) -> Result<(), Errno> {
    if access.region >= vfio::REGIONS || access.count as usize > MAX_TRANSFER {
        return Err(Errno::INVAL);
    }
    let size = device.region_size(access.region);
    match access.offset.checked_add(u64::from(access.count)) {
        Some(end) if end <= size && access.count > 0 => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

fn region_read(device: &mut dyn Device, payload: &[u8]) -> Result<Vec<u8>, Errno> {
    let (access, _) = RegionAccess::parse(payload).ok_or(Errno::INVAL)?;
    check_access(device, &access)?;
    let mut reply = Vec::new();
    access.put(&mut reply);
    let at = reply.len();
    reply.resize(at + access.count as usize, 0);
    device.region_read(access.region, access.offset, &mut reply[at..])?;
    Ok(reply)
}

fn region_write(device: &mut dyn Device, payload: &[u8]) -> Result<Vec<u8>, Errno> {
    let (access, data) = RegionAccess::parse(payload).ok_or(Errno::INVAL)?;
    check_access(device, &access)?;
    if data.len() != access.count as usize {
        return Err(Errno::INVAL);
    }
    device.region_write(access.region, access.offset, data)?;
    let mut reply = Vec::new();
    access.put(&mut reply);
    Ok(reply)
}

const _: () = assert!(MAX_DMA_MAPS == 65_535 && MAX_FDS == 16 && MAX_TRANSFER == 1_048_576);
