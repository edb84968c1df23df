//! The CPUs of the machine.

use std::fs;

use super::XpsError;
use super::mask::Mask;

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// No kernel has more.
const MOST: usize = 1 << 16;

/// The CPUs that threads may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    online: Mask,
}

impl Cpus {
    /// CPUs 0 to `count` - 1, all of them online; at most 65,536.
    pub fn new(count: u16) -> Self {
        Self {
            online: Mask::all(usize::from(count)),
        }
    }

    /// As many CPUs as the mask has bits, those online that are in it.
    pub fn with_online(online: Mask) -> Self {
        Self { online }
    }

    /// The CPUs of this machine.
    ///
    /// # Errors
    /// [`XpsError::System`] if the kernel does not tell.
    pub fn of_this_machine() -> Result<Self, XpsError> {
        let read = |path, bits| {
            let error = |why| XpsError::System { path, why };
            let text = fs::read_to_string(path).map_err(|e| error(e.to_string()))?;
            Mask::from_list(&text, bits).map_err(|e| error(e.to_string()))
        };
        let possible = read(POSSIBLE, MOST)?;
        let count = possible.last().map_or(1, |last| last + 1);
        let online = read(ONLINE, count)?;
        Ok(Self { online })
    }

    /// How many CPUs there can be: one more than the largest number.
    pub fn possible(&self) -> usize {
        self.online.bits()
    }

    /// Those that run.
    pub fn online(&self) -> &Mask {
        &self.online
    }
}

/// The CPU that the caller runs on; `None` if the kernel does not tell. It may be another by the time
/// that this returns, unless the thread is bound to it.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: the call has no arguments and writes no memory of the caller's.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}
