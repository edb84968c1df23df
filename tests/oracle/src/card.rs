//! What is particular to this card: how frames are spread over queues, by what contexts are found,
//! how causes are counted. The rest is for every card of these rules.

use crate::lro::{Cause, Config, Star};

/// Counters of closed contexts, one a cause or group of causes.
pub const CAUSES: usize = 26;

/// Pair that a frame of a flow hash goes to, where `pairs` receive: CRC-8 of the hash and a zero
/// byte, scaled.
pub fn pair(hash: u16, pairs: u16) -> u16 {
    let mut crc = 0_u8;
    for bit in (0..24).rev() {
        let next = bit >= 8 && hash >> (bit - 8) & 1 == 1;
        let out = crc >> 7 == 1;
        crc = crc << 1 ^ if out != next { 0x07 } else { 0 };
    }
    (u16::from(crc) * pairs) >> 8
}

/// The tag of a flow: its addresses folded, and its ports, the second rotated, so that the two
/// directions of a connection differ. VLAN tags are not in it.
pub fn tag(key: &[u8]) -> u32 {
    let ports = key.len() - 4;
    let bytes = if ports >= 34 { 32 } else { 8 };
    let half = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
    let folded = half(ports) ^ half(ports + 2).rotate_left(5);
    u32::from(addresses(&key[ports - bytes..ports])) << 16 | u32::from(folded)
}

/// What tells the addresses of a flow.
pub fn addresses(bytes: &[u8]) -> u16 {
    let halves = bytes.chunks_exact(2);
    halves.fold(0, |fold, half| {
        fold ^ u16::from_be_bytes([half[0], half[1]])
    })
}

/// The model as the card is after a reset, in cycles, but that nothing ends by time.
pub fn config() -> Config {
    Config {
        gap: u64::MAX / 4,
        hold: u64::MAX / 4,
        low_water: 0,
        star: Star::Hash(addresses),
        tag: Some(tag),
        ..Config::default()
    }
}

/// Which counter tells of a cause: `lro_cause_e` of the RTL, which does not tell one difference of
/// headers from another; another flow of the same tag is one of them, and so are headers too long for
/// a first buffer that those which are held did fit.
pub fn counter(cause: Cause) -> usize {
    use Cause::*;
    match cause {
        Untrusted => 0,
        IpOptions => 1,
        Fragment => 2,
        Extension => 3,
        Malformed => 4,
        Trailer => 5,
        Sum => 6,
        Canonical => 7,
        Control => 8,
        Empty => 9,
        Moved => 11,
        Mac | Class | Label | DontFragment | Ttl | Flags | Window | Urgent | Ack | Options
        | Tag | FirstBuffer => 12,
        Sequence => 13,
        Id => 14,
        Larger => 15,
        Length => 16,
        Buffers => 17,
        Push => 18,
        Smaller => 19,
        Evicted => 20,
        Gap => 21,
        Hold => 22,
        LowWater => 23,
        NoBuffer => 24,
        Stopped => 25,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_used_alike_and_none_beyond() {
        for pairs in [1, 3, 4, 64] {
            let mut counts = vec![0; pairs.into()];
            (0..=u16::MAX).for_each(|hash| counts[usize::from(pair(hash, pairs))] += 1);
            let most = counts.iter().max().copied().unwrap_or(0);
            let least = counts.iter().min().copied().unwrap_or(0);
            assert!(most - least <= 256 && least > 700, "{counts:?}");
        }
    }

    #[test]
    fn tags_fold_addresses_and_ports_of_both_versions() {
        let ports = 5 ^ (80 << 5);
        let plain = [8, 0, 10, 0, 0, 1, 10, 0, 0, 3, 0, 5, 0, 80];
        assert_eq!(tag(&plain), 2 << 16 | ports);
        let tagged = [&[0x81, 0, 0x20, 7], &plain[..]].concat();
        assert_eq!(tag(&tagged), 2 << 16 | ports);
        let mut v6 = vec![0x86, 0xdd];
        v6.extend([0; 31]);
        v6.extend([4, 0x80, 0, 0x88, 2]);
        let wanted = 4 << 16 | (0x8000 ^ 0x0051);
        assert_eq!(tag(&v6), wanted);
        let twice = [&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 1], &v6[..]].concat();
        assert_eq!(tag(&twice), wanted);
    }

    #[test]
    fn counters_are_in_the_order_of_causes() {
        let all = Cause::ALL.into_iter();
        assert!(
            all.filter(|cause| *cause != Cause::FirstBuffer)
                .map(counter)
                .is_sorted()
        );
        assert_eq!(Cause::ALL.map(counter).iter().max(), Some(&(CAUSES - 1)));
    }
}
