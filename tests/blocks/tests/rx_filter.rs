//! `rx_filter` against virtio's receive modes and the VLAN filter (virtio 1.2, "Packet Receive
//! Filtering", "Setting MAC Address Filtering" and "VLAN Filtering").

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds, layout, nightly};

const BROADCAST: [u8; 6] = [0xff; 6];

#[derive(Clone, Copy, Debug, Default)]
struct Modes {
    promiscuous: bool,
    all_multicast: bool,
    all_unicast: bool,
    no_multicast: bool,
    no_unicast: bool,
    no_broadcast: bool,
    vlan: bool,
}

struct Bench {
    block: Block,
    lanes: usize,
    modes: Modes,
    rows: [Option<[u8; 6]>; 16],
    vlans: [bool; 4096],
}

impl Bench {
    fn new(width: usize, seed: u64) -> Result<Self, Failure> {
        Ok(Self {
            block: Block::new(&format!("rx_filter_{width}"), seed)?,
            lanes: width / 8,
            modes: Modes::default(),
            rows: [None; 16],
            vlans: [false; 4096],
        })
    }

    fn modes(&mut self, modes: Modes) {
        self.modes = modes;
        let fields = [
            ("promiscuous", modes.promiscuous),
            ("all_multicast", modes.all_multicast),
            ("all_unicast", modes.all_unicast),
            ("no_multicast", modes.no_multicast),
            ("no_unicast", modes.no_unicast),
            ("no_broadcast", modes.no_broadcast),
            ("vlan", modes.vlan),
        ]
        .map(|(name, on)| (name, u64::from(on)));
        self.block
            .set("cfg_i", layout("filter_cfg_t").pack(&fields));
    }

    fn write(&mut self, fields: &[(&str, u64)]) -> Result<(), Failure> {
        let write = layout("filter_write_t").pack(fields);
        self.block.set("write_i", write);
        self.block.tick()?;
        self.block.set("write_i", Bits::ZERO);
        self.block.tick()?;
        self.block.tick()
    }

    fn row(&mut self, row: usize, address: Option<[u8; 6]>) -> Result<(), Failure> {
        let bytes = address.unwrap_or([2, 0, 0, 0, 0, 9]);
        let data = (0..6).map(|i| u64::from(bytes[i]) << (8 * i)).sum();
        self.rows[row] = address;
        self.write(&[
            ("address_we", 1),
            ("row", row as u64),
            ("used", address.is_some().into()),
            ("data", data),
        ])
    }

    fn vlan_row(&mut self, row: usize, bits: u32) -> Result<(), Failure> {
        for bit in 0..32 {
            self.vlans[32 * row + bit] = bits >> bit & 1 != 0;
        }
        self.write(&[("vlan_we", 1), ("row", row as u64), ("data", bits.into())])
    }

    fn takes(&self, frame: &[u8]) -> bool {
        let m = self.modes;
        let address: [u8; 6] = frame[..6].try_into().unwrap_or_default();
        let listed = self.rows.iter().flatten().any(|row| *row == address);
        let by_address = m.promiscuous
            || if address == BROADCAST {
                !m.no_broadcast
            } else if address[0] & 1 != 0 {
                !m.no_multicast && (m.all_multicast || listed)
            } else {
                !m.no_unicast && (m.all_unicast || listed)
            };
        let tag = (frame.len() >= 16 && frame[12..14] == [0x81, 0])
            .then(|| usize::from(frame[14] & 15) << 8 | usize::from(frame[15]));
        by_address && (!m.vlan || tag.is_none_or(|id| self.vlans[id]))
    }

    /// Whether a frame is dropped, and how many cycles it waited.
    fn send(&mut self, frame: &[u8], rng: &mut Rng) -> Result<(bool, u64), Failure> {
        let gaps = rng.pick(&[0, 0, 0, 40]);
        let beats: Vec<&[u8]> = frame.chunks(self.lanes).collect();
        let mut waited = 0;
        let mut dropped = false;
        for (i, beat) in beats.iter().enumerate() {
            while rng.chance(gaps) {
                self.block.set("offer_i", false);
                self.block.set("store_i", false);
                self.block.tick()?;
            }
            let last = i + 1 == beats.len();
            let mut data = beat.to_vec();
            data.resize(self.lanes, 0);
            self.block.set("offer_i", true);
            self.block.set("first_i", i == 0);
            self.block.set("data_i", Bits::from_bytes(&data));
            loop {
                self.block.set("store_i", false);
                self.block.settle()?;
                // The FIFO may have no room for a while.
                let room = !rng.chance(gaps);
                let store = room && (self.block.is("ready_o") || !last);
                self.block.set("store_i", store);
                self.block.settle()?;
                dropped = self.block.is("drop_o");
                self.block.tick()?;
                if store {
                    break;
                }
                waited += u64::from(room);
                ensure!(waited < 40, "not ready after 40 cycles");
            }
        }
        self.block.set("offer_i", false);
        self.block.set("store_i", false);
        if rng.chance(50) {
            self.block.tick()?;
        }
        Ok((dropped, waited))
    }
}

fn address(rng: &mut Rng) -> [u8; 6] {
    // Some differ in one bit only.
    let mut address = [2, 0, 0, 0, 0, rng.below(20) as u8];
    address[rng.below(6) as usize] ^= 1 << rng.below(8);
    address
}

fn random(seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let (mut taken, mut dropped) = (0, 0);
    for width in [64, 512] {
        let mut bench = Bench::new(width, seed)?;
        for row in 0..128 {
            let bits = rng.next_u64() as u32;
            bench.vlan_row(row, bits)?;
        }
        for _ in 0..60 {
            for row in 0..16 {
                if rng.chance(30) {
                    let address = rng.chance(70).then(|| address(rng));
                    bench.row(row, address)?;
                }
            }
            let row = rng.below(128) as usize;
            let bits = rng.next_u64() as u32;
            bench.vlan_row(row, bits)?;
            bench.modes(Modes {
                promiscuous: rng.chance(20),
                all_multicast: rng.chance(20),
                all_unicast: rng.chance(20),
                no_multicast: rng.chance(20),
                no_unicast: rng.chance(20),
                no_broadcast: rng.chance(40),
                vlan: rng.chance(50),
            });
            for _ in 0..60 {
                // At 64 bits frames of one beat are too short to be any.
                let len = rng.pick(&[14, 15, 16, 17, 60, 64, 70, 130]);
                let mut frame: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
                let known = bench.rows[rng.below(16) as usize];
                let destination = match rng.below(8) {
                    0 => BROADCAST,
                    1..5 => known.unwrap_or([2, 0, 0, 0, 0, 9]),
                    _ => address(rng),
                };
                frame[..6].copy_from_slice(&destination);
                let kind = rng.pick(&[[0x81, 0], [0x81, 0], [0x88, 0xa8], [8, 0]]);
                if len >= 16 {
                    frame[12..14].copy_from_slice(&kind);
                }
                let (drop, _) = bench.send(&frame, rng)?;
                let want = bench.takes(&frame);
                ensure!(
                    drop != want,
                    "{width} bits, {:?}: drop {drop}: {frame:02x?}",
                    bench.modes
                );
                taken += u32::from(want);
                dropped += u32::from(!want);
            }
        }
    }
    ensure!(
        taken > 500 && dropped > 500,
        "{taken} taken, {dropped} dropped"
    );
    Ok(())
}

#[test]
fn frames_are_taken_as_the_receive_modes_say() {
    for_seeds(if nightly() { 100 } else { 3 }, random);
}

/// What is promiscuous waits for nothing; otherwise as long as the header of the block says.
#[test]
fn a_frame_waits_no_longer_than_it_must() {
    for_seeds(1, |seed, rng| {
        for (width, ways) in [(64, 2), (512, 4)] {
            let mut bench = Bench::new(width, seed)?;
            let of = |row: usize| [2, 0, 0, 0, 1, row as u8];
            for row in 0..16 {
                bench.row(row, Some(of(row)))?;
            }
            for promiscuous in [true, false] {
                bench.modes(Modes {
                    promiscuous,
                    ..Modes::default()
                });
                for row in 0..16 {
                    let mut frame = vec![0; 64];
                    frame[..6].copy_from_slice(&of(row));
                    let mut worst = 0;
                    for _ in 0..20 {
                        worst = worst.max(bench.send(&frame, rng)?.1);
                    }
                    let beats = (64 * 8 / width) as u64;
                    let most = (3 + row as u64 / ways + 1).saturating_sub(beats);
                    let most = if promiscuous { 0 } else { most };
                    ensure!(worst <= most, "row {row}: {worst} cycles instead of {most}");
                }
            }
        }
        Ok(())
    });
}
