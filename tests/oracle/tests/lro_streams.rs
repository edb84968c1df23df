//! `resegment(LRO(stream)) == stream`, `LRO(resegment(unit)) == unit`, and off is off.

mod common;

use std::collections::BTreeSet;

use common::{Host, nightly, run, seeds};
use ferronic_oracle::lro::{Cause, Config, Lro, Profile, Unit};
use ferronic_oracle::order::{cut, same};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::stream::Traffic;
use ferronic_oracle::vectors::Arrival;
use ferronic_oracle::{Header, NEEDS_CSUM, Rng, gso, resegment};

const SEGMENTS: usize = 2500;

/// Random settings and traffic.
fn setting(seed: u64, rng: &mut Rng) -> (Config, Host, Vec<Arrival>) {
    let gap = rng.pick(&[2_000, 20_000, 1_000_000]);
    let buffer = rng.pick(&[64, 128, 300, 2048, 4096, 4096, 70_000]);
    let config = Config {
        contexts: rng.pick(&[4, 4, 16, 64, 256]),
        gap,
        hold: gap * rng.range(1, 5),
        max_bytes: rng.pick(&[65_535, 65_535, 9000, 300]),
        max_buffers: rng.pick(&[64, 64, 64, 3]),
        buffer,
        first_descriptor: rng.pick(&[buffer, buffer, 90]),
        low_water: rng.pick(&[0, 0, 20]),
        tag: rng.pick(&[None, None, Some(few as fn(&[u8]) -> u32)]),
        ..Config::default()
    };
    // The largest frame fits in any case.
    let least = config.buffers(9300);
    let host = Host {
        buffers: least + rng.pick(&[0, 10, 60, 100_000]),
        delay: rng.pick(&[0, 100, 10_000]),
    };
    let flows = rng.pick(&[1, 3, 8, 20, 70]);
    let queues = rng.range(1, 4) as u16;
    let mut traffic = Traffic::new(seed, flows, queues, gap);
    let arrivals = (0..SEGMENTS).map(|_| traffic.arrival()).collect();
    (config, host, arrivals)
}

/// A tag that flows share.
fn few(key: &[u8]) -> u32 {
    key.iter().map(|byte| u32::from(*byte)).sum::<u32>() % 16
}

/// What comes of the segments of a unit alone.
fn again(config: &Config, unit: &Unit) -> Result<(), String> {
    let frames = resegment(&unit.header, &unit.frame).map_err(|e| e.to_string())?;
    let config = Config {
        gap: u64::MAX,
        hold: u64::MAX,
        low_water: 0,
        ..config.clone()
    };
    let mut lro = Lro::new(config);
    lro.post(0, unit.queue, 10_000);
    for frame in &frames {
        lro.receive(0, unit.queue, frame);
    }
    lro.stop(0);
    match &lro.take()[..] {
        [one] if one.header == unit.header && one.frame == unit.frame => Ok(()),
        others => Err(format!(
            "{} units of {} segments",
            others.len(),
            frames.len()
        )),
    }
}

#[test]
fn random_streams_come_back_byte_for_byte_and_in_order() {
    let count = if nightly() { 400 } else { 20 };
    let mut causes = BTreeSet::new();
    let (mut merged, mut units_of_many) = (0, 0);
    for seed in seeds(count) {
        let mut rng = Rng::new(seed);
        let (config, host, arrivals) = setting(seed, &mut rng);
        let (units, counters) = run(Lro::new(config.clone()), host, &arrivals);
        let check = || {
            assert_eq!(counters.dropped, 0);
            same(&arrivals, &cut(&units)?)?;
            for unit in units.iter().filter(|unit| unit.segments > 1) {
                again(&config, unit)?;
            }
            Ok::<_, String>(())
        };
        if let Err(difference) = check() {
            panic!("{difference}\nseed {seed}: replay with FERRONIC_SEED={seed}\n{config:?}");
        }
        causes.extend(counters.closed.keys().copied());
        merged += counters.merged;
        units_of_many += units.iter().filter(|unit| unit.segments > 1).count();
    }
    println!("{merged} segments merged, {units_of_many} units of more than one");
    if std::env::var_os("FERRONIC_SEED").is_none() {
        let never: Vec<_> = Cause::ALL.iter().filter(|c| !causes.contains(c)).collect();
        assert!(never.is_empty(), "never closed by {never:?}");
        assert!(
            merged as usize > SEGMENTS * count as usize / 5,
            "only {merged} merged"
        );
    }
}

/// Buffers, too, are given back: what is taken is what the units fill.
#[test]
fn units_lie_in_as_many_buffers_as_they_fill_and_within_their_limits() {
    for seed in seeds(4) {
        let (config, host, arrivals) = setting(seed, &mut Rng::new(seed));
        let (units, counters) = run(Lro::new(config.clone()), host, &arrivals);
        for unit in &units {
            let buffers = usize::from(unit.header.num_buffers);
            assert_eq!(
                buffers,
                (12 + unit.frame.len()).div_ceil(config.buffer),
                "seed {seed}"
            );
            if unit.segments > 1 {
                assert!(buffers <= config.max_buffers, "seed {seed}");
                assert!(unit.frame.len() <= 22 + config.max_bytes, "seed {seed}");
                assert!(unit.at >= arrivals[0].at && unit.cause.is_some());
            }
        }
        assert!(units.is_sorted_by_key(|unit| unit.at), "seed {seed}");
        let segments: usize = units.iter().map(|unit| unit.segments).sum();
        assert_eq!(
            segments as u64,
            counters.passed + counters.opened + counters.merged
        );
        assert_eq!(counters.closed.values().sum::<u64>(), counters.opened);
    }
}

#[test]
fn off_is_the_identity_for_random_streams() {
    for seed in seeds(4) {
        let (config, host, arrivals) = setting(seed, &mut Rng::new(seed));
        let config = Config {
            profile: Profile::Off,
            ..config
        };
        let (units, counters) = run(Lro::new(config), host, &arrivals);
        let delivered = units.iter().map(|unit| (unit.queue, &unit.frame));
        assert!(
            arrivals.iter().map(|a| (a.queue, &a.frame)).eq(delivered),
            "seed {seed}"
        );
        assert_eq!(counters.passed as usize, SEGMENTS);
        assert!(
            units
                .iter()
                .all(|u| u.header.gso_type == 0 && u.header.flags & !2 == 0)
        );
    }
}

/// A unit as the specification of the virtio header has it, not as the merger makes it.
fn unit(rng: &mut Rng) -> Unit {
    let size = rng.pick(&[1, 2, 9, 100, 537, 1448, 1460, 8948]);
    let mut first = Segment::v4(rng.next_u64() as u32, 0);
    first.v6 = rng.chance(50);
    let any = rng.next_u64();
    first.id = any as u16;
    first.class = (any >> 16) as u8;
    first.label = (any >> 24) as u32 & 0xf_ffff;
    first.ttl = (any >> 44) as u8;
    first.window = (any >> 48) as u16;
    first.fragment = rng.pick(&[0, 0x4000, 0x8000]);
    first.options = vec![any as u8; 4 * rng.below(11) as usize];
    first.flags = flag::ACK | rng.pick(&[0, flag::ECE, flag::AE | flag::ECE, 0xe00]);
    first.flags |= rng.pick(&[0, flag::PSH]);
    first.tags = vec![[0x81, 0, 0, 9]; rng.below(3) as usize];
    let room = 65_535 - (first.tcp() - first.ip()) - 20 - first.options.len();
    let most = room.min(size * 45);
    let payload = rng.range(size as u64 + 1, most as u64);
    let whole = Segment {
        id: first.id.wrapping_sub(1),
        ..first
    }
    .next(payload as usize);

    let mut frame = whole.bytes();
    let (ip, tcp) = (whole.ip(), whole.tcp());
    let addresses = if whole.v6 {
        ip + 8..ip + 40
    } else {
        ip + 12..ip + 20
    };
    let add = |sum: u32, pair: &[u8]| sum + u32::from(pair[0]) * 256 + u32::from(pair[1]);
    let sum = frame[addresses]
        .chunks(2)
        .fold(6 + (frame.len() - tcp) as u32, add);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    frame[tcp + 16..tcp + 18].copy_from_slice(&(sum as u16).to_be_bytes());
    let header = Header {
        flags: NEEDS_CSUM,
        gso_type: if whole.v6 { gso::TCPV6 } else { gso::TCPV4 },
        hdr_len: (tcp + 20 + whole.options.len()) as u16,
        gso_size: size as u16,
        csum_start: tcp as u16,
        csum_offset: 16,
        num_buffers: (12 + frame.len()).div_ceil(4096) as u16,
    };
    Unit {
        at: 0,
        queue: rng.below(4) as u16,
        header,
        frame,
        segments: 0,
        cause: None,
    }
}

#[test]
fn random_units_are_merged_again_after_they_were_cut() {
    for seed in seeds(300) {
        let unit = unit(&mut Rng::new(seed));
        if let Err(difference) = again(&Config::default(), &unit) {
            panic!("{difference}\nseed {seed}: {:?}", unit.header);
        }
    }
}
