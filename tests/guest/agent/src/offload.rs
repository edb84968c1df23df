//! What `ethtool -k` shows and `-K` changes.

use std::collections::BTreeMap;

use ferronic_guest_agent::Offload;

use crate::Failure;
use crate::ethtool::{Asker, word};

const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// The set of strings that names them, a bit each.
const FEATURES: u32 = 4;
/// In what a change returns: some bit can never be changed.
const UNSUPPORTED: i32 = 1;
/// Words of a block of 32: those that can be changed, are wanted, are on, and can never be changed.
const STATE: usize = 4;
/// Words of a block of a change: which, and how.
const CHANGE: usize = 2;

/// All offloads of an interface.
pub fn list(interface: &str) -> Result<BTreeMap<String, Offload>, Failure> {
    let asker = Asker::new(interface)?;
    let names = asker.strings(FEATURES)?;
    let blocks = names.len().div_ceil(32);
    let head = [u32::try_from(blocks)?];
    let state = asker.ask(GET_FEATURES, &head, 8 + blocks * STATE * 4)?;
    let bit =
        |at: usize, which: usize| word(&state, 2 + at / 32 * STATE + which) & 1 << (at % 32) != 0;
    Ok((0..)
        .zip(names)
        .filter(|(_, name)| !name.is_empty())
        .map(|(at, name)| {
            let offload = Offload {
                changeable: bit(at, 0) && !bit(at, 3),
                wanted: bit(at, 1),
                on: bit(at, 2),
            };
            (name, offload)
        })
        .collect())
}

/// Turns one on or off.
pub fn set(interface: &str, name: &str, on: bool) -> Result<(), Failure> {
    let asker = Asker::new(interface)?;
    let names = asker.strings(FEATURES)?;
    let at = names.iter().position(|known| known == name);
    let at = at.ok_or_else(|| format!("the kernel knows no offload {name}"))?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 1 + blocks * CHANGE];
    words[0] = u32::try_from(blocks)?;
    words[1 + at / 32 * CHANGE] = 1 << (at % 32);
    words[2 + at / 32 * CHANGE] = u32::from(on) << (at % 32);
    let (_, flags) = asker.order(SET_FEATURES, &words, 8 + blocks * CHANGE * 4)?;
    if flags & UNSUPPORTED != 0 {
        return Err(format!("{name} cannot be changed").into());
    }
    Ok(())
}
