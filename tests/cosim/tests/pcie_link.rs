//! Rules that the card's own requests keep: sizes, order, credits.

use ferronic::DeviceConfig;
use ferronic::pci::PciFunction;
use ferronic_cosim_tests::card::Card;
use ferronic_cosim_tests::raw_driver::{Raw, RawQueue};
use ferronic_sim::SimConfig;
use ferronic_sim::root_complex::{CreditLimit, CreditType};
use ferronic_spec::Features;
use ferronic_spec::transport::common;

fn frames() -> Vec<Vec<u8>> {
    (0..60_usize)
        .map(|n| (0..14 + n * 150).map(|i| (i * 7 + n) as u8).collect())
        .collect()
}

/// Frames both ways at the same time; the root complex checks every TLP.
fn traffic(card: &mut Card) {
    let frames = frames();
    for frame in &frames {
        card.wire.push(frame.clone());
    }
    card.send(&frames);
    let got = card.receive_count(frames.len());
    assert!(got.iter().map(|f| &f.data).eq(frames.iter()));
    let sent = card.wire.take_all();
    assert!(sent.iter().map(|f| &f.data).eq(frames.iter()));
    card.device.check().expect("the card is well");
}

#[test]
fn payload_and_read_request_sizes_are_obeyed() {
    for data_w in [64, 512] {
        let config = SimConfig {
            data_w,
            ..SimConfig::adversarial(3)
        };
        assert!(config.root.checks);
        let driver = DeviceConfig {
            buffer_offset: 13,
            ..DeviceConfig::default()
        };
        let mut card = Card::open(config, driver);
        let pcie = card.function.sim().function().expect("enumerated").pcie;
        for (mps, mrrs) in [(0, 0), (1, 5), (2, 2), (0, 3), (2, 0)] {
            println!("MPS {}, MRRS {}", 128 << mps, 128 << mrrs);
            let control = [mps << 5, mrrs << 4];
            PciFunction::config_write(&card.function, pcie + 8, &control).expect("a write");
            let limits = card.function.sim().root.limits;
            assert_eq!(limits.max_payload, 128 << mps);
            let before = card.function.sim().root.stats;
            traffic(&mut card);
            let link = card.function.sim().root.stats.since(&before);
            // What the sizes allow is used: not more TLPs than they and the alignment cost.
            let bytes: usize = frames().iter().map(Vec::len).sum();
            let least = (bytes / (128 << mps)) as u64;
            assert!(link.up_writes.tlps >= least);
            assert!(link.up_writes.tlps < 2 * least + 60 * 6, "{link:?}");
        }
    }
}

#[test]
fn used_index_is_never_before_the_payload_and_no_interrupt_before_the_used_index() {
    for data_w in [64, 512] {
        for seed in 0..8 {
            println!("{data_w} bits, seed {seed}");
            let raw = Raw::new(SimConfig {
                data_w,
                ..SimConfig::adversarial(seed)
            });
            raw.function.sim().enable_msix(9).expect("the card answers");
            assert!(raw.negotiate(Features::VERSION_1 | Features::MRG_RXBUF));
            let mut rx = RawQueue::new(&raw.function, 0, 256);
            raw.enable(&rx, 2);
            raw.driver_ok();
            for id in 0..200 {
                raw.post(&mut rx, id, usize::from(id) * 2048 + 5, 1000);
            }
            raw.send(&rx);
            for n in 0..60_u8 {
                raw.wire.push(vec![n + 1; 60 + usize::from(n) * 31]);
            }
            let (mut checked, mut told, mut frame) = (0_u16, 0, 0_u8);
            let memory = raw.area.memory().clone();
            let last = |id: u32, len: u32| {
                let mut byte = [0];
                let at = id as usize * 2048 + 5 + len as usize - 1;
                memory.read(at, &mut byte).expect("inside the area");
                byte[0]
            };
            let mut sim = raw.function.sim();
            let mut done = false;
            while !done {
                done = sim
                    .run_until(500_000, |sim| {
                        // Whatever the index covers is there, to its last byte, in this very cycle.
                        while checked != rx.used_index() {
                            let (id, len) = rx.used_entry(checked);
                            assert_eq!(id, u32::from(checked));
                            if len < 1000 {
                                frame += 1;
                            }
                            let want = if len < 1000 { frame } else { frame + 1 };
                            assert_eq!(last(id, len), want, "used entry {checked}");
                            checked += 1;
                        }
                        if sim.root.has_message() {
                            assert_ne!(checked, told, "an interrupt without news");
                            told = checked;
                            sim.take_vector();
                        }
                        frame == 60
                    })
                    .expect("the card runs");
                assert!(done, "frames are missing");
            }
            assert!(told > 0);
        }
    }
}

#[test]
fn completion_of_a_register_read_passes_no_posted_write() {
    for data_w in [64, 512] {
        let raw = Raw::new(SimConfig {
            data_w,
            ..SimConfig::default()
        });
        let [mut rx, _tx] = raw.pair(Features::VERSION_1, 8);
        for id in 0..4 {
            raw.post(&mut rx, id, usize::from(id) * 2048, 2048);
        }
        raw.send(&rx);
        raw.run(3000);
        let mut sim = raw.function.sim();
        let until = sim.now() + 20_000;
        sim.root.starve_until(CreditType::Posted, until);
        raw.wire.push(vec![2; 1500]);
        sim.run(5000).expect("the card runs");
        let before = sim.root.stats.up_writes.tlps;
        sim.bar_read(common::NUM_QUEUES, 2).expect("a read");
        assert!(sim.now() >= until, "the answer came at {}", sim.now());
        assert!(sim.root.stats.up_writes.tlps > before);
        // Without a write in the way it comes at once.
        sim.run(5000).expect("the card runs");
        let begun = sim.now();
        sim.root.starve_until(CreditType::Posted, begun + 20_000);
        sim.bar_read(common::NUM_QUEUES, 2).expect("a read");
        assert!(sim.now() < begun + 1000);
    }
}

#[test]
fn starved_credits_of_each_type_only_delay() {
    for data_w in [64, 512] {
        for kind in [
            CreditType::Posted,
            CreditType::NonPosted,
            CreditType::Completion,
        ] {
            println!("{data_w} bits, {kind:?}");
            let config = SimConfig {
                data_w,
                ..SimConfig::adversarial(9)
            };
            let mut card = Card::open(config, DeviceConfig::default());
            for pause in [300, 3_000, 20_000] {
                let mut sim = card.function.sim();
                let until = sim.now() + pause;
                sim.root.starve_until(kind, until);
                drop(sim);
                traffic(&mut card);
            }
            // Hardly any credits at all.
            let limit = CreditLimit {
                headers: Some(1),
                data: Some(16),
            };
            card.function.sim().root.set_credits(kind, limit);
            traffic(&mut card);
        }
    }
}

#[test]
fn posted_writes_pass_reads_that_are_blocked() {
    for data_w in [64, 512] {
        let raw = Raw::new(SimConfig {
            data_w,
            ..SimConfig::default()
        });
        let [mut rx, mut tx] = raw.pair(Features::VERSION_1, 64);
        for id in 0..32 {
            raw.post(&mut rx, id, usize::from(id) * 2048, 2048);
        }
        raw.send(&rx);
        raw.run(4000);
        // From here on no read is taken; what is posted must arrive all the same.
        raw.function
            .sim()
            .root
            .starve_until(CreditType::NonPosted, u64::MAX);
        for id in 0..32 {
            raw.transmit(&mut tx, id, 0x8_0000, &[1; 1000]);
        }
        raw.send(&tx);
        for _ in 0..16 {
            raw.wire.push(vec![2; 1500]);
        }
        raw.wait_used(&rx, 16);
        assert_eq!(tx.used_index(), 0);
        // And so must completions: registers can be read.
        assert!(!raw.needs_reset());
        raw.function
            .sim()
            .root
            .set_credits(CreditType::NonPosted, CreditLimit::default());
        raw.wait_used(&tx, 32);
    }
}
