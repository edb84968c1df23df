//! The way from D0 to D3hot and back.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ferronic_spec::Features;
use ferronic_spec::pci::header;
use ferronic_spec::transport::Status;

use super::{Outcome, failed, open_transport, passed};
use crate::device::DeviceConfig;
use crate::error::Error;
use crate::pci::PciFunction;
use crate::pci::caps::power_capability;
use crate::virtio::config_snapshot;

/// Control and status register, from the start of the capability.
const PMCSR: u16 = 4;
/// Its power state.
const STATE: u16 = 3;
/// D3hot.
const D3HOT: u16 = 3;
/// Its bit that says that D3hot loses nothing.
const NO_SOFT_RESET: u16 = 1 << 3;
/// How long a function may take to change between D0 and D3hot (PCI PM 1.2, 5.6.1).
const CHANGE: Duration = Duration::from_millis(10);
/// Base address registers.
const BARS: std::ops::Range<u16> = 0x10..0x28;

/// D3hot and back leaves a card that works, and, if it says that it loses its state, that has.
pub(super) fn power(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let mut transport = open_transport(function, config)?;
    // Something to lose.
    transport.negotiate(config.features, Features::VERSION_1)?;
    transport.driver_ok()?;
    let before = config_snapshot(&**function)?;
    let Some(capability) = power_capability(&before)? else {
        return Ok(Outcome::Skipped("no power management capability".into()));
    };
    let control = capability + PMCSR;
    let read = || -> Result<u16, Error> {
        let mut value = [0; 2];
        function.config_read(control, &mut value)?;
        Ok(u16::from_le_bytes(value))
    };
    let awake = read()?;
    let change = |state: u16| -> Result<u16, Error> {
        let value = awake & !STATE | state;
        function.config_write(control, &value.to_le_bytes())?;
        thread::sleep(CHANGE);
        function.poll();
        Ok(read()? & STATE)
    };
    let asleep = change(D3HOT)?;
    let again = change(0)?;
    restore(&**function, &before)?;
    if (asleep, again) != (D3HOT, 0) {
        return failed(format!("states read D{asleep} and D{again}, not D3 and D0"));
    }
    let transport = open_transport(function, config)?;
    let keeps = awake & NO_SOFT_RESET != 0;
    let status = transport.status()?;
    if !keeps && status.contains(Status::DRIVER_OK) {
        return failed(format!(
            "says that D3hot loses its state, but status is {status:?} afterwards"
        ));
    }
    transport.reset()?;
    passed(if keeps {
        "D3hot and back, state kept"
    } else {
        "D3hot and back, begun afresh"
    })
}

/// Writes back what a function that begins afresh has lost, where nobody below did so.
fn restore(function: &dyn PciFunction, before: &[u8]) -> Result<(), Error> {
    let dwords = BARS.step_by(4).chain([header::COMMAND]);
    for at in dwords {
        let len = if at == header::COMMAND { 2 } else { 4 };
        let want = &before[usize::from(at)..][..len];
        let mut found = [0; 4];
        function.config_read(at, &mut found[..len])?;
        if found[..len] != *want {
            function.config_write(at, want)?;
        }
    }
    Ok(())
}
