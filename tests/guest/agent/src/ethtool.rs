//! What `ethtool` asks the kernel for, and what `-i`, `-l` and `-S` show.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use ferronic_guest_agent::Ethtool;
use rustix::io::Errno;

use crate::Failure;
use crate::interface::{control, request};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GET_DRIVER: u32 = 0x03;
const GET_LINK: u32 = 0x0a;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_SIZES: u32 = 0x37;
const GET_CHANNELS: u32 = 0x3c;
/// The set of strings that names the counters.
const STATISTICS: u32 = 1;
const STRING: usize = 32;

/// Everything that is shown of an interface.
pub fn show(interface: &str) -> Result<Ethtool, Failure> {
    let asker = Asker::new(interface)?;
    // cmd, driver[32], version[32], fw_version[32], bus_info[32], and more.
    let driver = asker.ask(GET_DRIVER, &[], 196)?;
    let link = asker.ask(GET_LINK, &[], 8)?;
    // cmd, four maxima (rx, tx, other, combined), four values.
    let channels = asker.ask(GET_CHANNELS, &[], 36)?;
    Ok(Ethtool {
        driver: string(&driver[4..36]),
        bus: string(&driver[100..132]),
        link: word(&link, 1) == 1,
        max_combined: word(&channels, 4),
        combined: word(&channels, 8),
        statistics: statistics(&asker)?,
    })
}

fn statistics(asker: &Asker) -> Result<BTreeMap<String, u64>, Failure> {
    let names = asker.strings(STATISTICS)?;
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let n = u32::try_from(names.len())?;
    let values = asker.ask(GET_STATISTICS, &[n], 8 + names.len() * 8)?;
    let values = values[8..].chunks_exact(8).map(|bytes| {
        let mut value = [0; 8];
        value.copy_from_slice(bytes);
        u64::from_ne_bytes(value)
    });
    Ok(names.into_iter().zip(values).collect())
}

/// Commands about one interface.
pub struct Asker<'a> {
    socket: OwnedFd,
    interface: &'a str,
}

impl<'a> Asker<'a> {
    /// For `interface`.
    pub fn new(interface: &'a str) -> Result<Self, Failure> {
        Ok(Self {
            socket: control()?,
            interface,
        })
    }

    /// A command with its next words, in a structure of `len` bytes; the structure as it came back.
    pub fn ask(&self, command: u32, words: &[u32], len: usize) -> Result<Vec<u8>, Failure> {
        self.order(command, words, len).map(|(data, _)| data)
    }

    /// The same with the flags that the kernel returns.
    pub fn order(
        &self,
        command: u32,
        words: &[u32],
        len: usize,
    ) -> Result<(Vec<u8>, i32), Failure> {
        let mut data = vec![0_u8; len];
        for (to, word) in data
            .chunks_exact_mut(4)
            .zip(std::iter::once(&command).chain(words))
        {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let mut request = request(self.interface)?;
        request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
        // SAFETY: `data` has the size of the command's structure, with the number of entries that
        // was asked for, and outlives the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &mut request) };
        if result < 0 {
            let error = io::Error::last_os_error();
            let hint = if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) {
                ": the driver does not know it"
            } else {
                ""
            };
            return Err(format!("ethtool command {command:#x}: {error}{hint}").into());
        }
        Ok((data, result))
    }

    /// A set of names.
    pub fn strings(&self, set: u32) -> Result<Vec<String>, Failure> {
        // cmd, reserved, mask of sets (64 bits), a size a set.
        let sizes = self.ask(GET_SET_SIZES, &[0, 1 << set, 0], 20)?;
        if word(&sizes, 2) & 1 << set == 0 {
            return Ok(Vec::new());
        }
        let count = word(&sizes, 4);
        let len = 12 + count as usize * STRING;
        let names = self.ask(GET_STRINGS, &[set, count], len)?;
        Ok(names[12..].chunks_exact(STRING).map(string).collect())
    }
}

/// A word of a structure.
pub fn word(data: &[u8], index: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&data[index * 4..index * 4 + 4]);
    u32::from_ne_bytes(bytes)
}

fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
