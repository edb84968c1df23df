//! Registers written at random, at any moment: the card never hangs and works after a reset.

use ferronic_cosim_tests::nightly;
use ferronic_cosim_tests::raw_driver::Raw;
use ferronic_sim::rng::Rng;
use ferronic_sim::root_complex::LinkLimits;
use ferronic_sim::{Sim, SimConfig, SimError};
use ferronic_spec::Features;

/// Whatever configuration says in between: the checks of the link know no random writes of it.
const ANYTHING: LinkLimits = LinkLimits {
    bus_master: true,
    max_payload: 512,
    max_read: 4096,
    ext_tag: true,
};

/// An access may be refused, but it must end, and the card must keep the rules.
fn ended(result: Result<(), SimError>) {
    match result {
        Ok(()) | Err(SimError::Completion { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn value(rng: &mut Rng, iovas: &[u64]) -> u64 {
    match rng.below(6) {
        0 => 0,
        1 => 1 << rng.below(64),
        2 => rng.below(16),
        3 => u64::MAX,
        4 => iovas[rng.below(iovas.len() as u64) as usize],
        _ => rng.next_u64(),
    }
}

fn register(rng: &mut Rng) -> u64 {
    let (base, len) = match rng.below(16) {
        0..=6 => (0x0000, 0x40),
        7 => (0x1000, 8),
        8 => (0x2000, 0x20),
        9 | 10 => (0x3000, 0x28),
        11 | 12 => (0x4000, 0xa0),
        13 => (0x5000, 0x10),
        14 => (0x8000, 0x100),
        _ => (0, 0x1_0000),
    };
    base + rng.below(len)
}

fn access(sim: &mut Sim, rng: &mut Rng, iovas: &[u64]) {
    let len = 1_usize << rng.below(4);
    let at = register(rng) & !(len as u64 - 1);
    match rng.below(200) {
        // Configuration, the BAR aside: without it nothing more would be reached.
        0 => {
            let at = [
                0x04, 0x0c, 0x3c, 0x44, 0x50, 0x68, 0x88, 0xe8, 0xec, 0xf0, 0xf4,
            ][rng.below(11) as usize];
            let bytes = value(rng, iovas).to_le_bytes();
            ended(sim.config_write(at, &bytes[..4]));
            sim.root.limits = ANYTHING;
        }
        1 => {
            let mut bytes = [0; 4];
            let at = rng.below(1024) as u16 * 4;
            ended(sim.config_read(at, &mut bytes));
        }
        2..=20 => ended(sim.bar_read(at, len).map(|_| ())),
        21 => ended(sim.run(rng.below(300))),
        _ => ended(sim.bar_write(at, len, value(rng, iovas))),
    }
}

fn storm(data_w: u32, seed: u64, accesses: u64) {
    println!("{data_w} bits, seed {seed}, {accesses} accesses");
    let raw = Raw::new(SimConfig {
        data_w,
        idle_skip: true,
        ..SimConfig::adversarial(seed)
    });
    raw.function.sim().root.memory.guard_enable();
    let mut rng = Rng::new(seed ^ 0x5707);
    let mut done = 0;
    while done < accesses {
        {
            let mut sim = raw.function.sim();
            sim.function_level_reset().expect("the reset ends");
            sim.set_bus_master(true).expect("the card answers");
        }
        let features = Features::VERSION_1 | Features::MRG_RXBUF | Features::EVENT_IDX;
        let [mut rx, mut tx] = raw.pair(features, 64);
        for id in 0..64 {
            raw.post(&mut rx, id, usize::from(id) * 2048, 2048);
            raw.transmit(&mut tx, id, 0x8_0000, &[1; 300]);
            raw.wire.push(vec![3; 60 + usize::from(id)]);
        }
        raw.send(&rx);
        raw.send(&tx);
        let area = raw.area.iova();
        let iovas = [
            area,
            rx.desc.iova(),
            rx.avail.iova(),
            tx.used.iova(),
            area + 7,
        ];
        let mut sim = raw.function.sim();
        sim.enable_msix(9).expect("the card answers");
        sim.root.limits = ANYTHING;
        for _ in 0..20_000.min(accesses - done) {
            access(&mut sim, &mut rng, &iovas);
            done += 1;
        }
        drop(sim);
        raw.wire.clear();
        raw.wire.take_all();
    }
    {
        let mut sim = raw.function.sim();
        sim.function_level_reset().expect("the reset ends");
        sim.set_bus_master(true).expect("the card answers");
        sim.root.take_memory_faults();
    }
    raw.works();
    let refused = raw.function.sim().root.take_memory_faults();
    assert_eq!(refused, []);
}

/// A million accesses over both widths and some seeds; twenty times as many nightly.
fn storms(data_w: u32, seeds: u64, accesses: u64) {
    let times = if nightly() { 20 } else { 1 };
    for seed in 0..seeds * times {
        storm(data_w, seed, accesses);
    }
}

#[test]
fn random_register_accesses_at_64_bits() {
    storms(64, 3, 200_000);
}

#[test]
fn random_register_accesses_at_512_bits() {
    storms(512, 4, 100_000);
}
