//! Configuration space, device configuration and window of the card in software.

use ferronic::spec::pci::{
    DEVICE_ID, SUBSYSTEM_ID, SUBSYSTEM_VENDOR_ID, VENDOR_ID, bar0, dvsec, msix_vectors,
};
use ferronic::spec::transport::cap_type;
use ferronic::spec::window as w;

use super::Model;

pub const MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// All 4,096 bytes.
pub fn bytes() -> Vec<u8> {
    let mut b = vec![0; 4096];
    put(&mut b, 0x00, &VENDOR_ID.to_le_bytes());
    put(&mut b, 0x02, &DEVICE_ID.to_le_bytes());
    put(&mut b, 0x06, &0x10u16.to_le_bytes());
    b[0x08] = 1;
    put(&mut b, 0x2c, &SUBSYSTEM_VENDOR_ID.to_le_bytes());
    put(&mut b, 0x2e, &SUBSYSTEM_ID.to_le_bytes());
    b[0x34] = 0x40;
    // MSI-X, then PCI Express, then the virtio structures.
    put(&mut b, 0x40, &[0x11, 0x50]);
    put(&mut b, 0x42, &(msix_vectors(4) - 1).to_le_bytes());
    put(&mut b, 0x50, &[0x10, 0x90, 0x02, 0x00]);
    let structures = [
        (cap_type::COMMON, bar0::COMMON, 60u32),
        (cap_type::ISR, bar0::ISR, 4),
        (cap_type::DEVICE, bar0::DEVICE, 64),
        (cap_type::NOTIFY, bar0::NOTIFY, 0x1000),
    ];
    for (i, (kind, offset, len)) in structures.into_iter().enumerate() {
        let at = 0x90 + 0x10 * i;
        let notify = kind == cap_type::NOTIFY;
        let next = if notify { 0 } else { at as u8 + 0x10 };
        put(
            &mut b,
            at,
            &[0x09, next, if notify { 20 } else { 16 }, kind],
        );
        put(&mut b, at + 8, &(offset as u32).to_le_bytes());
        put(&mut b, at + 12, &len.to_le_bytes());
        if notify {
            put(&mut b, at + 16, &bar0::NOTIFY_MULTIPLIER.to_le_bytes());
        }
    }
    let d = 0x100;
    put(
        &mut b,
        d,
        &(0x0001_0000 | u32::from(dvsec::CAPABILITY_ID)).to_le_bytes(),
    );
    let header1 = (dvsec::SIZE as u32) << 20 | u32::from(dvsec::VENDOR);
    put(&mut b, d + dvsec::HEADER1, &header1.to_le_bytes());
    put(&mut b, d + dvsec::HEADER2, &dvsec::ID.to_le_bytes());
    for (i, word) in dvsec::CARD_UUID.iter().enumerate() {
        put(&mut b, d + dvsec::UUID + 4 * i, &word.to_le_bytes());
    }
    put(&mut b, d + dvsec::VERSION, &1u32.to_le_bytes());
    put(
        &mut b,
        d + dvsec::OFFSET,
        &(bar0::WINDOW as u32).to_le_bytes(),
    );
    put(
        &mut b,
        d + dvsec::LENGTH,
        &(bar0::WINDOW_LEN as u32).to_le_bytes(),
    );
    b
}

pub fn net_config() -> [u8; 64] {
    let mut b = [0; 64];
    put(&mut b, 0, &MAC);
    put(&mut b, 6, &1u16.to_le_bytes());
    put(&mut b, 10, &1500u16.to_le_bytes());
    put(&mut b, 12, &1000u32.to_le_bytes());
    b[16] = 1;
    b
}

/// What the settings of LRO are after a reset.
pub const LRO_DEFAULTS: [(u64, u32); 6] = [
    (w::LRO_CAPS, 64 << 16 | 16),
    (w::LRO_PROFILE, 1),
    (w::LRO_GAP, 12_500),
    (w::LRO_HOLD, 50_000),
    (w::LRO_MAX_BYTES, 65_535),
    (w::LRO_LOW_WATER, 0),
];

pub fn window_read(model: &Model, offset: u64, queues: u64) -> u64 {
    if let Some(card) = &model.ring_empty {
        match offset {
            w::FEATURES => return 23,
            w::TX_EMPTY.. => return card.read(offset).into(),
            _ => {}
        }
    }
    if let Some(lro) = &model.lro {
        match offset {
            w::FEATURES => return 15,
            0x100..0x200 => return lro.get(&offset).copied().unwrap_or(0).into(),
            _ => {}
        }
    }
    match offset {
        w::CLOCK_HZ => 125_000_000,
        w::UUID0 | w::UUID1 | w::UUID2 | w::UUID3 => {
            u64::from(dvsec::CARD_UUID[(offset / 4) as usize])
        }
        w::VERSION => 1,
        w::FEATURES => 7,
        w::CAPS => (queues / 2) | (8 << 8),
        w::PAIRS_IN_USE => model.pairs_in_use.into(),
        _ => 0,
    }
}

pub fn window_write(model: &mut Model, offset: u64, value: u64) {
    let pairs = model.regs.len() as u64 / 2;
    if let (w::TX_EMPTY.., Some(card)) = (offset, &mut model.ring_empty)
        && model.stuck != Some(offset)
    {
        card.write(offset, value as u32);
    }
    if let Some(lro) = &mut model.lro
        && (w::LRO_PROFILE..=w::LRO_LOW_WATER).contains(&offset)
    {
        model.lro_writes.push((offset, value as u32));
        let good = match offset {
            w::LRO_PROFILE => value <= 1,
            w::LRO_MAX_BYTES => (576..=65_535).contains(&value),
            w::LRO_LOW_WATER => value <= 64,
            _ => (1..=8_388_607).contains(&value),
        };
        if good && model.stuck != Some(offset) {
            lro.insert(offset, value as u32);
        }
    }
    if offset == w::PAIRS_IN_USE && (1..=pairs).contains(&value) {
        model.pairs_in_use = value as u32;
    }
}
