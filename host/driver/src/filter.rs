//! Filters of received frames: by destination address and by VLAN.
//!
//! A card that was not told otherwise takes every frame. [`FilterOptions`] is what it is to take, by
//! the modes of virtio's receive control, a list of addresses and a set of VLANs;
//! [`Device::set_filter`] changes it in such an order that a frame which both the old and the new
//! setting take is never lost. More addresses than the card holds make it promiscuous.

use bitflags::bitflags;
use ferronic_spec::window as w;
use thiserror::Error as ThisError;

use crate::device::Device;
use crate::error::Error;
use crate::readback::{reach, write_back};
use crate::stats::Window;

/// VLAN identifiers that there are: 0 to 4,095.
pub const VLANS: u16 = 4096;
const ROWS: usize = VLANS as usize / 32;

/// An Ethernet address.
pub type Address = [u8; 6];

bitflags! {
    /// Modes of reception, as virtio has them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Modes: u32 {
        /// Every destination address is taken, whatever the other modes say.
        const PROMISCUOUS = 1;
        /// Every multicast address is taken, except broadcast.
        const ALL_MULTICAST = 1 << 1;
        /// Every unicast address is taken.
        const ALL_UNICAST = 1 << 2;
        /// No multicast address is taken, except broadcast; goes before `ALL_MULTICAST`.
        const NO_MULTICAST = 1 << 3;
        /// No unicast address is taken; goes before `ALL_UNICAST`.
        const NO_UNICAST = 1 << 4;
        /// Broadcast is not taken.
        const NO_BROADCAST = 1 << 5;
    }
}

/// A set of VLAN identifiers, 0 to 4,095.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlans {
    rows: Box<[u32; ROWS]>,
}

impl Default for Vlans {
    /// The empty set: with it only frames without a tag are taken.
    fn default() -> Self {
        Self {
            rows: Box::new([0; ROWS]),
        }
    }
}

impl Vlans {
    /// The set of these.
    ///
    /// # Errors
    /// [`FilterError::Vlan`].
    pub fn of(ids: impl IntoIterator<Item = u16>) -> Result<Self, FilterError> {
        let mut vlans = Self::default();
        ids.into_iter().try_for_each(|id| vlans.insert(id))?;
        Ok(vlans)
    }

    /// Adds one.
    ///
    /// # Errors
    /// [`FilterError::Vlan`].
    pub fn insert(&mut self, id: u16) -> Result<(), FilterError> {
        let row = self.rows.get_mut(usize::from(id / 32));
        *row.ok_or(FilterError::Vlan(id))? |= 1 << (id % 32);
        Ok(())
    }

    /// Whether it has this one.
    pub fn contains(&self, id: u16) -> bool {
        let row = self.rows.get(usize::from(id / 32));
        row.is_some_and(|row| row >> (id % 32) & 1 == 1)
    }

    /// Those that it has, from the smallest on.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (0..VLANS).filter(|id| self.contains(*id))
    }
}

/// Which received frames are taken; the card counts those that are not (`rx_filtered`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterOptions {
    /// Modes.
    pub modes: Modes,
    /// Destination addresses that are taken beside what the modes take. In
    /// [`Modes::PROMISCUOUS`] they mean nothing.
    pub addresses: Vec<Address>,
    /// Of frames with a VLAN tag (type 8100) only those are taken that are in this; `None`: all.
    pub vlans: Option<Vlans>,
}

impl Default for FilterOptions {
    /// As a card does it that was not told otherwise: everything is taken.
    fn default() -> Self {
        Self {
            modes: Modes::PROMISCUOUS,
            addresses: Vec::new(),
            vlans: None,
        }
    }
}

impl FilterOptions {
    /// What a station of this address takes: its own, and broadcast.
    pub fn station(mac: Address) -> Self {
        Self {
            modes: Modes::empty(),
            addresses: vec![mac],
            vlans: None,
        }
    }

    /// The same with another address.
    pub fn with_address(mut self, address: Address) -> Self {
        self.addresses.push(address);
        self
    }

    /// The same with more modes.
    pub fn with_modes(mut self, modes: Modes) -> Self {
        self.modes |= modes;
        self
    }

    /// The same with only these VLANs.
    pub fn with_vlans(mut self, vlans: Vlans) -> Self {
        self.vlans = Some(vlans);
        self
    }
}

/// Why the card does not filter as it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum FilterError {
    /// The card cannot.
    #[error(
        "this card does not filter received frames (FEATURES.filters of its window is 0, or it has \
         no window); it takes every frame, and who receives leaves out what is not for him"
    )]
    NotThere,
    /// A VLAN that there is not.
    #[error("VLAN {0} is not possible; identifiers are 0 to 4095")]
    Vlan(u16),
}

/// How far a card does what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtered {
    /// As asked.
    AsAsked,
    /// There are more addresses than the card holds: it takes every destination address instead.
    Promiscuous {
        /// Addresses that were asked for.
        wanted: usize,
        /// Addresses that the card holds.
        room: usize,
    },
}

/// What the write-only rows hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    addresses: Vec<Option<Address>>,
    vlans: Vlans,
}

impl Device {
    /// Which received frames are taken.
    ///
    /// # Errors
    /// [`Error::Filter`] if the card cannot filter.
    pub fn filter(&self) -> Result<FilterOptions, Error> {
        let window = self.window().ok_or(FilterError::NotThere)?;
        window.filter_room()?;
        Ok(window.kept().filter.clone())
    }

    /// Changes which received frames are taken, from the next frame on.
    ///
    /// # Errors
    /// [`Error::Filter`] if the card cannot filter; [`Error::Readback`].
    pub fn set_filter(&self, options: &FilterOptions) -> Result<Filtered, Error> {
        let window = self.window().ok_or(FilterError::NotThere)?;
        window.set_filter(options)
    }
}

impl Window {
    /// Addresses that the card's filters hold.
    ///
    /// # Errors
    /// [`FilterError::NotThere`], and when the card says that it has them, but cannot.
    pub fn filter_room(&self) -> Result<usize, Error> {
        if !self.has_filters() {
            return Err(FilterError::NotThere.into());
        }
        reach(self.registers(), "filters", w::RX_VLAN + 4 * ROWS as u64)?;
        let caps = self.registers().read32(w::RX_FILTER_CAPS)?;
        Ok(w::RX_FILTER_CAPS_ADDRESSES.get(caps) as usize)
    }

    fn set_filter(&self, options: &FilterOptions) -> Result<Filtered, Error> {
        let room = self.filter_room()?;
        let mut wanted = options.addresses.clone();
        wanted.sort_unstable();
        wanted.dedup();
        let fits = wanted.len() <= room;
        let mut modes = options.modes;
        modes.set(
            Modes::PROMISCUOUS,
            modes.contains(Modes::PROMISCUOUS) || !fits,
        );
        let value = w::RX_FILTER_VLAN.set(modes.bits(), options.vlans.is_some().into());
        let mut kept = self.kept();
        if !fits {
            // Before any row goes that the old setting needs.
            write_back(self.registers(), "RX_FILTER", w::RX_FILTER, value)?;
            wanted.clear();
        }
        kept.rows.addresses.resize(room, None);
        self.write_addresses(&mut kept.rows.addresses, &wanted)?;
        if let Some(vlans) = &options.vlans {
            self.write_vlans(&mut kept.rows.vlans, vlans)?;
        }
        if fits {
            write_back(self.registers(), "RX_FILTER", w::RX_FILTER, value)?;
        }
        kept.filter = options.clone();
        Ok(match fits {
            true => Filtered::AsAsked,
            false => Filtered::Promiscuous {
                wanted: options.addresses.len(),
                room,
            },
        })
    }

    /// An address that stays keeps its row, so that its frames are taken all the time.
    fn write_addresses(
        &self,
        rows: &mut [Option<Address>],
        wanted: &[Address],
    ) -> Result<(), Error> {
        let mut new = wanted.iter().filter(|a| !rows.contains(&Some(**a)));
        let mut next: Vec<_> = rows.to_vec();
        for row in &mut next {
            if !row.is_some_and(|address| wanted.contains(&address)) {
                *row = new.next().copied();
            }
        }
        for (number, (row, next)) in (0u64..).zip(rows.iter_mut().zip(next)) {
            if *row == next {
                continue;
            }
            let low = w::RX_ADDRESS_LO + w::RX_ADDRESS_LO_STRIDE * number;
            let high = w::RX_ADDRESS_HI + w::RX_ADDRESS_HI_STRIDE * number;
            let [a, b, c, d, e, f] = next.unwrap_or_default();
            let bytes = w::RX_ADDRESS_HI_BYTES.set(0, u16::from_le_bytes([e, f]).into());
            let used = w::RX_ADDRESS_HI_USED.set(bytes, next.is_some().into());
            self.registers()
                .write32(low, u32::from_le_bytes([a, b, c, d]))?;
            self.registers().write32(high, used)?;
            *row = next;
        }
        Ok(())
    }

    fn write_vlans(&self, rows: &mut Vlans, wanted: &Vlans) -> Result<(), Error> {
        let pairs = rows.rows.iter_mut().zip(&*wanted.rows);
        for (number, (row, next)) in (0u64..).zip(pairs) {
            if row != next {
                let offset = w::RX_VLAN + w::RX_VLAN_STRIDE * number;
                self.registers().write32(offset, *next)?;
                *row = *next;
            }
        }
        Ok(())
    }
}
