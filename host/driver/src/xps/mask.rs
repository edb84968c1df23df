//! Masks of CPUs and of queues, in the two forms in which Linux reads and prints them.

use std::fmt;

use thiserror::Error;

/// Bits of a group of the hexadecimal form.
const GROUP: usize = 32;

/// A set of CPUs or of queues, of a size that is fixed when it is made.
///
/// The hexadecimal form is that of sysfs: groups of 32 bits between commas, the highest first
/// (`ff,00000001`). The list form has numbers and ranges (`0-3,7`).
#[derive(Clone, PartialEq, Eq)]
pub struct Mask {
    bits: usize,
    /// Bit 0 of group 0 is number 0; bits from `bits` on are clear.
    groups: Vec<u32>,
}

/// Why a text is no mask.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MaskError {
    /// Something that is no hexadecimal digit.
    #[error(
        "{found:?} in a mask is no hexadecimal digit; write groups of up to 8 digits with commas \
         between them and without 0x, such as ff or 1,00000000"
    )]
    Digit {
        /// What was found.
        found: char,
    },
    /// More than 32 bits between two commas.
    #[error(
        "group {group:?} of a mask has more than 8 digits; put a comma after each 8 digits, \
         counted from the right"
    )]
    Group {
        /// The group.
        group: String,
    },
    /// More groups than the mask can have, even if they are 0.
    #[error(
        "a mask of {bits} bits has {limit} groups of 8 digits, not {groups}; leave out the first"
    )]
    Groups {
        /// Groups that were found.
        groups: usize,
        /// Groups of a mask of this size.
        limit: usize,
        /// Bits of the mask.
        bits: usize,
    },
    /// A number that is not there.
    #[error("{number} is not there: {}", range(*.bits))]
    Beyond {
        /// The number.
        number: usize,
        /// How many there are.
        bits: usize,
    },
    /// Something that is no number or range.
    #[error(
        "{region:?} in a list is no number or range; write numbers and ranges with commas between \
         them, such as 0-3,7, a pattern such as 0-15:2/4, N for the last or all"
    )]
    Region {
        /// What was found.
        region: String,
    },
    /// A number of more than 32 bits.
    #[error("a number in {region:?} is too large; the largest is 4294967295")]
    Number {
        /// What was found.
        region: String,
    },
    /// A range that ends before it begins.
    #[error("range {region:?} ends before it begins; write the smaller number first")]
    Backwards {
        /// What was found.
        region: String,
    },
    /// A pattern without a group, or with more used than the group has.
    #[error("pattern {region:?} needs a group of at least 1 and uses no more than the group has")]
    Pattern {
        /// What was found.
        region: String,
    },
}

fn range(bits: usize) -> String {
    match bits {
        0 => "there are none".to_owned(),
        1 => "there is only 0".to_owned(),
        _ => format!("there are 0 to {}", bits - 1),
    }
}

/// Linux takes white space for a comma, and several for one.
fn separates(c: char) -> bool {
    c == ',' || c == '\u{b}' || c.is_ascii_whitespace()
}

/// What Linux reads of what was written to a file: up to the end of the line.
fn line(text: &str) -> &str {
    text.split(['\n', '\0']).next().unwrap_or("")
}

fn regions(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    line(text).split(separates).filter(|part| !part.is_empty())
}

impl Mask {
    /// The empty set of numbers below `bits`.
    pub fn new(bits: usize) -> Self {
        Self {
            bits,
            groups: vec![0; bits.div_ceil(GROUP)],
        }
    }

    /// The set of all numbers below `bits`.
    pub fn all(bits: usize) -> Self {
        let mut mask = Self::new(bits);
        (0..bits).for_each(|number| mask.put(number));
        mask
    }

    /// The set of these numbers below `bits`.
    ///
    /// # Errors
    /// [`MaskError::Beyond`] for a number that is not below `bits`.
    pub fn of(numbers: impl IntoIterator<Item = usize>, bits: usize) -> Result<Self, MaskError> {
        let mut mask = Self::new(bits);
        numbers.into_iter().try_for_each(|n| mask.insert(n))?;
        Ok(mask)
    }

    /// Reads the hexadecimal form as Linux does: a group of up to 8 digits is 32 bits, groups are
    /// separated by commas or white space, an empty text is the empty set.
    ///
    /// # Errors
    /// [`MaskError`], among others for more groups than `bits` need, even if they are 0.
    pub fn from_hex(text: &str, bits: usize) -> Result<Self, MaskError> {
        let mut mask = Self::new(bits);
        let limit = mask.groups.len();
        for (index, group) in regions(text).rev().enumerate() {
            let mut value = 0;
            for found in group.chars() {
                let digit = found.to_digit(16).ok_or(MaskError::Digit { found })?;
                value = value << 4 | digit;
            }
            if group.len() > GROUP / 4 {
                let group = group.to_owned();
                return Err(MaskError::Group { group });
            }
            let Some(place) = mask.groups.get_mut(index) else {
                let groups = regions(text).count();
                return Err(MaskError::Groups {
                    groups,
                    limit,
                    bits,
                });
            };
            *place = value;
        }
        match mask.last() {
            Some(number) if number >= bits => Err(MaskError::Beyond { number, bits }),
            _ => Ok(mask),
        }
    }

    /// Reads the list form as Linux does: numbers, ranges (`4-7`), patterns (`0-15:2/4` is the first
    /// two of each four), `N` for the last number, `all`; separated by commas or white space.
    ///
    /// # Errors
    /// [`MaskError`].
    pub fn from_list(text: &str, bits: usize) -> Result<Self, MaskError> {
        let mut mask = Self::new(bits);
        for region in regions(text) {
            let Region {
                first,
                last,
                used,
                group,
            } = Region::read(region, bits)?;
            if last >= bits {
                return Err(MaskError::Beyond { number: last, bits });
            }
            for start in (first..=last).step_by(group) {
                let end = last.min(start.saturating_add(used).wrapping_sub(1));
                if used > 0 {
                    (start..=end).for_each(|number| mask.put(number));
                }
            }
        }
        Ok(mask)
    }

    /// How many numbers the set could have.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Whether it has no number.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| *group == 0)
    }

    /// Whether it has this number; false for one that it cannot have.
    pub fn contains(&self, number: usize) -> bool {
        let group = self.groups.get(number / GROUP);
        group.is_some_and(|group| group >> (number % GROUP) & 1 == 1)
    }

    /// Adds a number.
    ///
    /// # Errors
    /// [`MaskError::Beyond`] if the set cannot have it.
    pub fn insert(&mut self, number: usize) -> Result<(), MaskError> {
        let bits = self.bits;
        if number >= bits {
            return Err(MaskError::Beyond { number, bits });
        }
        self.put(number);
        Ok(())
    }

    /// Adds a number that is known to be below `bits`.
    fn put(&mut self, number: usize) {
        self.groups[number / GROUP] |= 1 << (number % GROUP);
    }

    /// Its numbers, from the smallest on.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.groups.len() * GROUP;
        all.filter(|number| self.contains(*number))
    }

    /// The largest number.
    pub fn last(&self) -> Option<usize> {
        let (index, group) = (self.groups.iter().enumerate()).rfind(|(_, group)| **group != 0)?;
        Some(index * GROUP + group.ilog2() as usize)
    }

    /// The hexadecimal form, with as many digits as the size of the set needs.
    pub fn hex(&self) -> Hex<'_> {
        Hex(self)
    }

    /// The list form; nothing for the empty set.
    pub fn list(&self) -> List<'_> {
        List(self)
    }
}

/// The hexadecimal form of a [`Mask`].
pub struct Hex<'a>(&'a Mask);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mask { bits, groups } = self.0;
        let digits = match bits % GROUP {
            0 => GROUP / 4,
            rest => rest.div_ceil(4),
        };
        for (index, group) in groups.iter().enumerate().rev() {
            if index + 1 == groups.len() {
                write!(f, "{group:0digits$x}")?;
            } else {
                write!(f, ",{group:08x}")?;
            }
        }
        Ok(())
    }
}

/// The list form of a [`Mask`].
pub struct List<'a>(&'a Mask);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        let mut numbers = self.0.iter().peekable();
        while let Some(first) = numbers.next() {
            let mut last = first;
            while numbers.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}} of {}", self.list(), self.bits)
    }
}

/// An entry of a list: of each `group` numbers from `first` on the first `used`, up to `last`.
struct Region {
    first: usize,
    last: usize,
    used: usize,
    group: usize,
}

impl Region {
    fn read(region: &str, bits: usize) -> Result<Self, MaskError> {
        let owned = || region.to_owned();
        let number = |text: &str| -> Result<usize, MaskError> {
            if text == "N" {
                let beyond = MaskError::Beyond { number: 0, bits };
                return bits.checked_sub(1).ok_or(beyond);
            }
            if text.is_empty() || !text.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(MaskError::Region { region: owned() });
            }
            let number: u32 = text
                .parse()
                .map_err(|_| MaskError::Number { region: owned() })?;
            Ok(number as usize)
        };
        let (range, pattern) = match region.split_once(':') {
            Some((range, pattern)) => (range, Some(pattern)),
            None => (region, None),
        };
        let (first, last) = if range.eq_ignore_ascii_case("all") {
            (0, number("N")?)
        } else {
            match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                // Linux has patterns of ranges only.
                None if pattern.is_some() => return Err(MaskError::Region { region: owned() }),
                None => (number(range)?, number(range)?),
            }
        };
        if first > last {
            return Err(MaskError::Backwards { region: owned() });
        }
        let (used, group) = match pattern.map(|pattern| pattern.split_once('/')) {
            None => (last + 1, last + 1),
            Some(None) => return Err(MaskError::Region { region: owned() }),
            Some(Some((used, group))) => (number(used)?, number(group)?),
        };
        if group == 0 || used > group {
            return Err(MaskError::Pattern { region: owned() });
        }
        Ok(Self {
            first,
            last,
            used,
            group,
        })
    }
}
