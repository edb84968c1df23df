//! What the host's work costs.

/// The file that the figures are fixed in.
const FILE: &str = include_str!("cost.txt");

/// Cycles of the host in one of the card, which has 125 MHz: 2.5 GHz.
pub const HOST_CYCLES: u64 = 20;

/// Cycles of the host for each of its actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// A call of a sender, with its doorbell.
    pub transmit: u64,
    /// Each KiB beyond the first in such a call, copied.
    pub copy: u64,
    /// Taking one buffer back.
    pub reclaim: u64,
    /// An interrupt, or a timer that runs out.
    pub interrupt: u64,
    /// Waking a sender.
    pub wakeup: u64,
}

impl Cost {
    /// The recorded costs.
    ///
    /// # Panics
    /// If the file does not have all of them, which a test would tell.
    pub fn recorded() -> Self {
        let get = |name: &str| {
            let mut lines = FILE.lines().filter_map(|line| line.split_once(' '));
            let value = lines.find(|(key, _)| *key == name).map(|(_, value)| value);
            let value = value.and_then(|value| value.trim().parse().ok());
            value.unwrap_or_else(|| panic!("cost.txt has no {name}"))
        };
        Self {
            transmit: get("transmit"),
            copy: get("copy"),
            reclaim: get("reclaim"),
            interrupt: get("interrupt"),
            wakeup: get("wakeup"),
        }
    }

    /// A call with a frame of so many bytes.
    pub fn call(&self, len: usize) -> u64 {
        self.transmit + self.copy * (len as u64).saturating_sub(1024) / 1024
    }

    /// The same, and so many cycles of the kernel for each interrupt, which no count of instructions
    /// of the driver sees.
    #[must_use]
    pub fn with_kernel(mut self, cycles: u64) -> Self {
        self.interrupt += cycles;
        self
    }
}
