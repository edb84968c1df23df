//! The straps of the card: what a board would fix in its non-volatile memory.

/// Features that the card offers unless told otherwise (those it does not know are masked in RTL).
pub const DEFAULT_FEATURES: u64 = u64::MAX;

/// `strap_t` of `rtl/common/ferronic_pkg.sv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strap {
    /// Station address.
    pub mac: [u8; 6],
    /// Features that may be offered.
    pub features: u64,
    /// Speed that the card reports, in Mbit/s.
    pub speed_mbps: u32,
    /// MTU that the card offers; 0: none.
    pub mtu: u16,
    /// Virtqueue size at reset, a power of two of at most 2,048.
    pub queue_size: u16,
    /// Link state.
    pub link_up: bool,
    /// Received frames wait for buffers rather than being dropped.
    pub rx_lossless: bool,
}

impl Default for Strap {
    fn default() -> Self {
        Self {
            mac: [0x02, 0xfe, 0x01, 0x00, 0x00, 0x01],
            features: DEFAULT_FEATURES,
            speed_mbps: 1000,
            mtu: 0,
            queue_size: 256,
            link_up: true,
            rx_lossless: true,
        }
    }
}

impl Strap {
    /// The packed struct, least significant word first.
    pub fn words(&self) -> [u32; 6] {
        let mut bits = Bits::default();
        // From the last field (bit 0) to the first.
        bits.push(u64::from(self.rx_lossless), 1);
        bits.push(u64::from(self.link_up), 1);
        bits.push(u64::from(self.queue_size), 16);
        bits.push(u64::from(self.mtu), 16);
        bits.push(u64::from(self.speed_mbps), 32);
        bits.push(self.features & 0xffff_ffff, 32);
        bits.push(self.features >> 32, 32);
        let mac = self.mac.iter().fold(0, |v, b| v << 8 | u64::from(*b));
        bits.push(mac, 48);
        bits.words
    }
}

#[derive(Default)]
struct Bits {
    words: [u32; 6],
    used: usize,
}

impl Bits {
    fn push(&mut self, value: u64, width: usize) {
        for i in 0..width {
            let bit = (value >> i & 1) as u32;
            self.words[self.used / 32] |= bit << (self.used % 32);
            self.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_the_packed_struct() {
        let strap = Strap {
            mac: [0xaa, 1, 2, 3, 4, 0x55],
            features: 0x8000_0000_0000_0001,
            speed_mbps: 0,
            mtu: 0,
            queue_size: 0,
            link_up: true,
            rx_lossless: false,
        };
        let words = strap.words();
        assert_eq!(words[0], 2);
        // features occupy bits 66 to 129, the address 130 to 177.
        assert_eq!(words[2], 1 << 2);
        assert_eq!(words[4], 1 << 1 | 0x0203_0455 << 2);
        assert_eq!(words[5], 0xaa01 << 2);
    }
}
