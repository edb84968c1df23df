//! The transport: virtio 1.2, "Virtio Over PCI Bus", and "Device Initialization" (3.1.1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use ferronic_spec::pci::{DEVICE_ID, VENDOR_ID, header};
use ferronic_spec::transport::{NO_VECTOR, Status, common};
use ferronic_spec::{Features, transport};

use crate::error::Error;
use crate::pci::caps::{Capabilities, Place};
use crate::pci::{PciError, PciFunction, RegisterIo};

/// Tries to read a configuration that does not change meanwhile.
const CONFIG_TRIES: u32 = 64;

/// A structure inside a BAR: accesses are checked against its length.
#[derive(Clone)]
pub(crate) struct Registers {
    bar: Arc<dyn RegisterIo>,
    offset: u64,
    len: u64,
}

impl Registers {
    pub(crate) fn new(
        function: &dyn PciFunction,
        what: &str,
        place: Place,
        min: u64,
    ) -> Result<Self, Error> {
        let bar = function.bar(place.bar)?;
        let (offset, len) = (u64::from(place.offset), u64::from(place.len));
        if offset + len > bar.len() {
            return Err(Error::Capabilities(format!(
                "{what} at {offset:#x}+{len:#x} is outside BAR {} of {:#x} bytes",
                place.bar,
                bar.len()
            )));
        }
        if len < min {
            return Err(Error::Capabilities(format!(
                "{what} has {len} bytes, needs {min}"
            )));
        }
        Ok(Self { bar, offset, len })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn at(&self, offset: u64, len: u64) -> Result<u64, PciError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.offset + offset),
            _ => Err(PciError::OutOfRange {
                what: "a register block",
                offset,
                len,
                size: self.len,
            }),
        }
    }

    pub(crate) fn read8(&self, offset: u64) -> Result<u8, PciError> {
        self.bar.read8(self.at(offset, 1)?)
    }
    pub(crate) fn read16(&self, offset: u64) -> Result<u16, PciError> {
        self.bar.read16(self.at(offset, 2)?)
    }
    pub(crate) fn read32(&self, offset: u64) -> Result<u32, PciError> {
        self.bar.read32(self.at(offset, 4)?)
    }
    pub(crate) fn write8(&self, offset: u64, value: u8) -> Result<(), PciError> {
        self.bar.write8(self.at(offset, 1)?, value)
    }
    pub(crate) fn write16(&self, offset: u64, value: u16) -> Result<(), PciError> {
        self.bar.write16(self.at(offset, 2)?, value)
    }
    pub(crate) fn write32(&self, offset: u64, value: u32) -> Result<(), PciError> {
        self.bar.write32(self.at(offset, 4)?, value)
    }
    /// 64-bit registers are written as two halves ("Driver Requirements: PCI Device Layout").
    pub(crate) fn write64(&self, offset: u64, value: u64) -> Result<(), PciError> {
        self.write32(offset, value as u32)?;
        self.write32(offset + 4, (value >> 32) as u32)
    }
}

/// Where a virtqueue is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueAddresses {
    /// Descriptor table.
    pub desc: u64,
    /// Available ring.
    pub driver: u64,
    /// Used ring.
    pub device: u64,
}

/// Tells the device that a queue has new buffers.
#[derive(Clone)]
pub struct Doorbell {
    bar: Arc<dyn RegisterIo>,
    offset: u64,
    queue: u16,
    with_index: bool,
}

impl Doorbell {
    /// Rings. `avail_idx` goes along if NOTIFICATION_DATA was negotiated.
    pub fn ring(&self, avail_idx: u16) -> Result<(), PciError> {
        if self.with_index {
            let data = u32::from(self.queue) | u32::from(avail_idx) << 16;
            self.bar.write32(self.offset, data)
        } else {
            self.bar.write16(self.offset, self.queue)
        }
    }
}

/// An opened virtio function.
pub struct Transport {
    function: Arc<dyn PciFunction>,
    caps: Capabilities,
    common: Registers,
    isr: Registers,
    device: Option<Registers>,
    notify: Registers,
    features: Features,
    reset_timeout: Duration,
}

impl Transport {
    /// Reads configuration space, enables memory access and bus mastering, finds the structures.
    pub fn open(function: Arc<dyn PciFunction>, reset_timeout: Duration) -> Result<Self, Error> {
        let config = config_snapshot(&*function)?;
        let identity = crate::pci::caps::Identity::parse(&config)?;
        if identity.vendor != VENDOR_ID || identity.device != DEVICE_ID || identity.revision < 1 {
            return Err(Error::WrongDevice {
                vendor: identity.vendor,
                device: identity.device,
                revision: identity.revision,
            });
        }
        enable(&*function)?;
        let caps = Capabilities::parse(&config)?;
        let f = &*function;
        Ok(Self {
            common: Registers::new(f, "common configuration", caps.common, common::LEN - 4)?,
            isr: Registers::new(f, "ISR", caps.isr, 1)?,
            device: match caps.device {
                Some(place) => Some(Registers::new(f, "device configuration", place, 8)?),
                None => None,
            },
            notify: Registers::new(f, "doorbells", caps.notify, 2)?,
            features: Features::empty(),
            reset_timeout,
            caps,
            function,
        })
    }

    /// The function below.
    pub fn function(&self) -> &Arc<dyn PciFunction> {
        &self.function
    }

    /// What configuration space said.
    pub fn capabilities(&self) -> &Capabilities {
        &self.caps
    }

    /// Features negotiated.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Device status.
    pub fn status(&self) -> Result<Status, Error> {
        Ok(Status::from_bits_retain(
            self.common.read8(common::DEVICE_STATUS)?,
        ))
    }

    fn add_status(&self, bits: Status) -> Result<(), Error> {
        let status = self.status()? | bits;
        Ok(self.common.write8(common::DEVICE_STATUS, status.bits())?)
    }

    /// Resets the device and waits until it has stopped all DMA.
    pub fn reset(&self) -> Result<(), Error> {
        self.common.write8(common::DEVICE_STATUS, 0)?;
        self.wait_for("the reset of the device", || Ok(self.status()?.is_empty()))
    }

    fn wait_for(
        &self,
        what: &'static str,
        mut done: impl FnMut() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            if done()? {
                return Ok(());
            }
            if start.elapsed() > self.reset_timeout {
                return Err(Error::Stuck {
                    what,
                    after: self.reset_timeout,
                });
            }
            self.function.poll();
            std::thread::yield_now();
        }
    }

    /// Features offered.
    pub fn offered(&self) -> Result<Features, Error> {
        let mut bits = 0;
        for half in 0..2u32 {
            self.common.write32(common::DEVICE_FEATURE_SELECT, half)?;
            bits |= u64::from(self.common.read32(common::DEVICE_FEATURE)?) << (32 * half);
        }
        Ok(Features::from_bits_retain(bits))
    }

    /// Resets the device and negotiates: what is both offered and wanted, `required` at least.
    ///
    /// Steps 1 to 6 of "Device Initialization".
    pub fn negotiate(&mut self, wanted: Features, required: Features) -> Result<Features, Error> {
        self.reset()?;
        self.add_status(Status::ACKNOWLEDGE)?;
        self.add_status(Status::DRIVER)?;
        let offered = self.offered()?;
        log::debug!("offered {offered:?}");
        if !offered.contains(required) {
            self.fail();
            return Err(Error::MissingFeatures {
                missing: required - offered,
                offered,
            });
        }
        let accepted = (offered & (wanted | required)).with_requirements();
        if !self.set_features(accepted)? {
            self.fail();
            return Err(Error::FeaturesRefused(accepted));
        }
        log::debug!("accepted {accepted:?}");
        self.features = accepted;
        Ok(accepted)
    }

    /// Writes the driver's features and FEATURES_OK; true if the device keeps the latter.
    fn set_features(&self, features: Features) -> Result<bool, Error> {
        for half in 0..2u32 {
            self.common.write32(common::DRIVER_FEATURE_SELECT, half)?;
            self.common.write32(
                common::DRIVER_FEATURE,
                (features.bits() >> (32 * half)) as u32,
            )?;
        }
        self.add_status(Status::FEATURES_OK)?;
        Ok(self.status()?.contains(Status::FEATURES_OK))
    }

    /// Resets the device and offers it `features` as they are; true if it refuses them. For tests
    /// of the device: it must not be in use, and needs a reset afterwards.
    pub fn refuses(&self, features: Features) -> Result<bool, Error> {
        self.reset()?;
        self.add_status(Status::ACKNOWLEDGE | Status::DRIVER)?;
        Ok(!self.set_features(features)?)
    }

    /// Tells the device that the driver has given up on it.
    pub fn fail(&self) {
        if let Err(e) = self.add_status(Status::FAILED) {
            log::warn!("could not set FAILED: {e}");
        }
    }

    /// Sets DRIVER_OK: the device is live.
    pub fn driver_ok(&self) -> Result<(), Error> {
        self.add_status(Status::DRIVER_OK)
    }

    /// Virtqueues that the device has.
    pub fn num_queues(&self) -> Result<u16, Error> {
        Ok(self.common.read16(common::NUM_QUEUES)?)
    }

    /// Maps configuration changes to an MSI-X vector, or to none.
    pub fn set_config_vector(&self, vector: Option<u16>) -> Result<(), Error> {
        self.set_vector(common::CONFIG_MSIX_VECTOR, vector)
    }

    fn set_vector(&self, register: u64, vector: Option<u16>) -> Result<(), Error> {
        let value = vector.unwrap_or(NO_VECTOR);
        self.common.write16(register, value)?;
        let found = self.common.read16(register)?;
        if found != value {
            return Err(Error::Setting {
                what: "the MSI-X vector",
                value: u64::from(value),
                must: format!("the device took {found:#x}: it has no resources for it"),
            });
        }
        Ok(())
    }

    /// Size of a virtqueue as the device has it now: after a reset, the largest it can be.
    pub fn queue_size(&self, queue: u16) -> Result<u16, Error> {
        self.common.write16(common::QUEUE_SELECT, queue)?;
        Ok(self.common.read16(common::QUEUE_SIZE)?)
    }

    /// Sets up and enables a virtqueue. Returns its doorbell.
    pub fn enable_queue(
        &self,
        queue: u16,
        size: u16,
        addresses: QueueAddresses,
        vector: Option<u16>,
    ) -> Result<Doorbell, Error> {
        let doorbell = self.doorbell(queue)?;
        let max = self.queue_size(queue)?;
        if size == 0 || !size.is_power_of_two() || size > max {
            return Err(Error::Setting {
                what: "the ring size",
                value: u64::from(size),
                must: format!("a power of two, at most {max}, is needed"),
            });
        }
        self.common.write16(common::QUEUE_SIZE, size)?;
        self.set_vector(common::QUEUE_MSIX_VECTOR, vector)?;
        self.common.write64(common::QUEUE_DESC, addresses.desc)?;
        self.common
            .write64(common::QUEUE_DRIVER, addresses.driver)?;
        self.common
            .write64(common::QUEUE_DEVICE, addresses.device)?;
        self.common.write16(common::QUEUE_ENABLE, 1)?;
        if self.common.read16(common::QUEUE_ENABLE)? != 1 {
            return Err(Error::Capabilities(format!(
                "queue {queue} did not become enabled"
            )));
        }
        Ok(doorbell)
    }

    /// The doorbell of a queue.
    pub fn doorbell(&self, queue: u16) -> Result<Doorbell, Error> {
        self.common.write16(common::QUEUE_SELECT, queue)?;
        let index = u64::from(self.common.read16(common::QUEUE_NOTIFY_OFF)?);
        let with_index = self.features.contains(Features::NOTIFICATION_DATA);
        let len = if with_index { 4 } else { 2 };
        let offset = index * u64::from(self.caps.notify_multiplier);
        if !offset.is_multiple_of(len) || offset + len > self.notify.len() {
            return Err(Error::Capabilities(format!(
                "the doorbell of queue {queue} at {offset:#x} is outside the notify structure of \
                 {:#x} bytes",
                self.notify.len()
            )));
        }
        Ok(Doorbell {
            bar: Arc::clone(&self.notify.bar),
            offset: self.notify.offset + offset,
            queue,
            with_index,
        })
    }

    /// Resets one virtqueue ("Virtqueue Reset"); the device no longer touches it afterwards.
    pub fn reset_queue(&self, queue: u16) -> Result<(), Error> {
        if !self.features.contains(Features::RING_RESET) {
            return Err(Error::MissingFeatures {
                missing: Features::RING_RESET,
                offered: self.features,
            });
        }
        self.common.write16(common::QUEUE_SELECT, queue)?;
        self.common.write16(common::QUEUE_RESET, 1)?;
        self.wait_for("the reset of a queue", || {
            Ok(self.common.read16(common::QUEUE_RESET)? == 0)
        })
    }

    /// Reads the ISR register, which clears it.
    pub fn isr(&self) -> Result<transport::Isr, Error> {
        Ok(transport::Isr::from_bits_retain(self.isr.read8(0)?))
    }

    /// Reads the device configuration, again if it changed meanwhile.
    pub(crate) fn device_config<T>(
        &self,
        read: impl Fn(&Registers) -> Result<T, PciError>,
    ) -> Result<T, Error> {
        let device = self
            .device
            .as_ref()
            .ok_or_else(|| Error::Capabilities("there is no device configuration".into()))?;
        for _ in 0..CONFIG_TRIES {
            let before = self.common.read8(common::CONFIG_GENERATION)?;
            let value = read(device)?;
            if self.common.read8(common::CONFIG_GENERATION)? == before {
                return Ok(value);
            }
        }
        Err(Error::UnstableConfig(CONFIG_TRIES))
    }
}

/// All of configuration space, or the conventional part if there is no more.
pub(crate) fn config_snapshot(function: &dyn PciFunction) -> Result<Vec<u8>, Error> {
    let mut config = vec![0; header::EXPRESS_LEN];
    if let Err(e) = function.config_read(0, &mut config) {
        log::debug!("no extended configuration space: {e}");
        config.truncate(header::CONVENTIONAL_LEN);
        function.config_read(0, &mut config)?;
    }
    Ok(config)
}

/// Switches memory access and bus mastering on, INTx off.
fn enable(function: &dyn PciFunction) -> Result<(), Error> {
    let mut command = [0; 2];
    function.config_read(header::COMMAND, &mut command)?;
    let value = u16::from_le_bytes(command)
        | header::COMMAND_MEMORY
        | header::COMMAND_BUS_MASTER
        | header::COMMAND_INTX_DISABLE;
    Ok(function.config_write(header::COMMAND, &value.to_le_bytes())?)
}
