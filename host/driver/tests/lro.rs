//! Large receive offload: asking for it, its settings, and units that are what they say, or not.

mod support;

use std::sync::Arc;
use std::time::Duration;

use ferronic::gro::GroOptions;
use ferronic::lro::{LroError, Profile};
use ferronic::offload::{Refused, UnitFault};
use ferronic::pci::PciFunction;
use ferronic::spec::{Features, window as w};
use ferronic::{
    Device, DeviceConfig, Error, LroOptions, LroRequest, Merging, QueueFault, QueuePair,
};
use ferronic_oracle::segment::Segment;
use ferronic_oracle::{Rng, frames, resegment_buffer};
use support::units::{deliver, unit};
use support::{Function, OFFER, SoftCard};
use zerocopy::IntoBytes;

const MERGING: Features = OFFER.union(Features::LRO);

fn open(card: &Arc<SoftCard>, config: DeviceConfig) -> Result<(Device, QueuePair), Error> {
    let function: Arc<dyn PciFunction> = Arc::new(Function(Arc::clone(card)));
    let (device, mut pairs) = Device::open(function, config)?;
    Ok((device, pairs.remove(0)))
}

fn wish(lro: LroRequest) -> DeviceConfig {
    DeviceConfig {
        lro,
        ..DeviceConfig::default()
    }
}

const NEEDED: fn() -> LroRequest = || LroRequest::Needed(LroOptions::default());
const IF_THERE: fn() -> LroRequest = || LroRequest::IfThere(LroOptions::default());

fn why<T>(result: Result<T, Error>) -> LroError {
    match result {
        Err(Error::Lro(why)) => why,
        Err(other) => panic!("an error of LRO was expected, not {other}"),
        Ok(_) => panic!("an error of LRO was expected"),
    }
}

#[test]
fn merging_is_negotiated_only_when_asked_for() {
    for (request, merges) in [
        (LroRequest::Off, false),
        (IF_THERE(), true),
        (NEEDED(), true),
        (
            LroRequest::Needed(LroOptions {
                profile: Profile::Off,
                ..LroOptions::default()
            }),
            false,
        ),
    ] {
        let card = SoftCard::merging(MERGING, 1, 64);
        let (device, _pair) = open(&card, wish(request)).unwrap();
        assert_eq!(device.features().contains(Features::LRO), merges);
        assert_eq!(device.features() - Features::LRO, OFFER);
        let options = merges.then(LroOptions::default);
        assert_eq!(device.lro().unwrap(), options, "{request:?}");
        assert_eq!(card.model().lro_writes.is_empty(), !merges);
    }
    // One IP version, if the other is switched off.
    let card = SoftCard::merging(MERGING, 1, 64);
    let config = DeviceConfig {
        features: DeviceConfig::default().features - Features::GUEST_TSO4,
        ..wish(NEEDED())
    };
    let (device, _pair) = open(&card, config).unwrap();
    assert_eq!(device.features() & Features::LRO, Features::GUEST_TSO6);
}

#[test]
fn card_that_cannot_merge_is_done_without_or_is_an_error_with_its_cause() {
    let all = DeviceConfig::default().features;
    for (has, offer, wanted, cause) in [
        (false, OFFER, all, LroError::NotThere),
        // A device that merges by rules that nobody knows.
        (false, MERGING, all, LroError::NotThere),
        (true, OFFER, all, LroError::NotOffered),
        (true, MERGING, all - Features::LRO, LroError::NotOffered),
        (
            true,
            MERGING,
            all - Features::GUEST_CSUM,
            LroError::Needs(Features::GUEST_CSUM),
        ),
        (
            true,
            MERGING - Features::MRG_RXBUF,
            all,
            LroError::Needs(Features::MRG_RXBUF),
        ),
    ] {
        let card = || match has {
            true => SoftCard::merging(offer, 1, 64),
            false => SoftCard::new(offer, 1, 64),
        };
        let config = |lro| DeviceConfig {
            features: wanted,
            ..wish(lro)
        };
        let found = why(open(&card(), config(NEEDED())));
        assert_eq!(found, cause);
        let (device, _pair) = open(&card(), config(IF_THERE())).unwrap();
        assert!(!device.features().intersects(Features::LRO), "{cause}");
        assert_eq!(device.lro().unwrap(), None);
    }
    let text = LroError::NotThere.to_string();
    assert!(text.contains("FEATURES.lro") && text.contains("GRO"));
}

#[test]
fn settings_are_written_in_cycles_and_read_back() {
    let card = SoftCard::merging(MERGING, 1, 64);
    let options = LroOptions {
        gap: Duration::from_micros(250),
        hold: Duration::from_millis(8),
        max_bytes: 9_000,
        low_water: 8,
        ..LroOptions::default()
    };
    let (device, _pair) = open(&card, wish(LroRequest::Needed(options))).unwrap();
    let registers = |card: &SoftCard| {
        let lro = card.model().lro.clone().unwrap();
        [
            w::LRO_PROFILE,
            w::LRO_GAP,
            w::LRO_HOLD,
            w::LRO_MAX_BYTES,
            w::LRO_LOW_WATER,
        ]
        .map(|at| lro[&at])
    };
    assert_eq!(registers(&card), [1, 31_250, 1_000_000, 9_000, 8]);
    assert_eq!(device.lro().unwrap(), Some(options));
    let window = device.window().unwrap();
    assert_eq!(window.lro().unwrap().unwrap().capacity().unwrap(), (16, 64));
    // The shortest time is a cycle, the longest 67 ms.
    let edge = LroOptions {
        gap: Duration::from_nanos(1),
        hold: Duration::from_nanos(67_108_856),
        max_bytes: 576,
        low_water: 64,
        ..options
    };
    device.set_lro(&edge).unwrap();
    assert_eq!(registers(&card), [1, 1, 8_388_607, 576, 64]);
    let before = card.model().lro_writes.len();
    for wrong in [
        LroOptions {
            gap: Duration::ZERO,
            ..edge
        },
        LroOptions {
            hold: Duration::from_millis(68),
            ..edge
        },
        LroOptions {
            hold: Duration::MAX,
            ..edge
        },
        LroOptions {
            max_bytes: 575,
            ..edge
        },
        LroOptions {
            max_bytes: 65_536,
            ..edge
        },
        LroOptions {
            low_water: 65,
            ..edge
        },
    ] {
        let why = why(device.set_lro(&wrong));
        assert!(
            matches!(
                why,
                LroError::Time { .. } | LroError::Length(_) | LroError::LowWater(65)
            ),
            "{why}"
        );
    }
    assert_eq!(card.model().lro_writes.len(), before, "nothing is written");
    // Off and on again while it is in use.
    let off = LroOptions {
        profile: Profile::Off,
        ..edge
    };
    device.set_lro(&off).unwrap();
    assert_eq!(device.lro().unwrap(), None);
    device.set_lro(&options).unwrap();
    assert_eq!(device.lro().unwrap(), Some(options));
}

#[test]
fn settings_that_the_card_does_not_keep_are_errors() {
    let relaxed = LroOptions {
        profile: Profile::Relaxed,
        ..LroOptions::default()
    };
    let card = SoftCard::merging(MERGING, 1, 64);
    let found = why(open(&card, wish(LroRequest::Needed(relaxed))));
    assert_eq!(found, LroError::Profile(Profile::Relaxed));
    assert!(found.to_string().contains("`relaxed`"));
    assert_eq!(card.model().status, 0, "the card is left reset");
    for register in [w::LRO_GAP, w::LRO_HOLD, w::LRO_MAX_BYTES, w::LRO_LOW_WATER] {
        let card = SoftCard::merging(MERGING, 1, 64);
        card.model().stuck = Some(register);
        let options = LroOptions {
            gap: Duration::from_micros(1),
            hold: Duration::from_micros(2),
            max_bytes: 1_000,
            low_water: 1,
            ..LroOptions::default()
        };
        let error = open(&card, wish(LroRequest::Needed(options))).err();
        assert!(matches!(error, Some(Error::Readback(_))), "{error:?}");
    }
    // Not negotiated, or not there: only `off` is possible.
    let card = SoftCard::merging(MERGING, 1, 64);
    let (device, _pair) = open(&card, wish(LroRequest::Off)).unwrap();
    let on = LroOptions::default();
    assert_eq!(why(device.set_lro(&on)), LroError::NotNegotiated);
    let off = LroOptions {
        profile: Profile::Off,
        ..on
    };
    device.set_lro(&off).unwrap();
    let card = SoftCard::new(OFFER, 1, 64);
    let (device, _pair) = open(&card, wish(LroRequest::Off)).unwrap();
    assert_eq!(why(device.set_lro(&on)), LroError::NotThere);
}

#[test]
fn counters_are_read_by_cause() {
    let card = SoftCard::merging(MERGING, 1, 64);
    let (device, _pair) = open(&card, wish(NEEDED())).unwrap();
    let mut model = card.model();
    let lro = model.lro.as_mut().unwrap();
    lro.insert(w::LRO_OPENED, 7);
    lro.insert(w::LRO_MERGED, u32::MAX);
    for (cause, offset) in (0..26).zip((w::LRO_CLOSED_UNTRUSTED..).step_by(4)) {
        lro.insert(offset, 100 + cause);
    }
    drop(model);
    let window = device.window().unwrap();
    let counters = window.lro().unwrap().unwrap().counters().unwrap();
    assert_eq!((counters.opened, counters.merged), (7, u32::MAX));
    assert_eq!(counters.closed.len(), 26);
    let of = |name| counters.closed.iter().find(|(cause, _)| *cause == name);
    for (name, register) in [
        ("untrusted", w::LRO_CLOSED_UNTRUSTED),
        ("header", w::LRO_CLOSED_HEADER),
        ("push", w::LRO_CLOSED_PUSH),
        ("gap", w::LRO_CLOSED_GAP),
        ("low_water", w::LRO_CLOSED_LOW_WATER),
        ("stopped", w::LRO_CLOSED_STOPPED),
    ] {
        let number = 100 + (register - w::LRO_CLOSED_UNTRUSTED) as u32 / 4;
        assert_eq!(of(name), Some(&(name, number)));
    }
}

#[test]
fn units_of_64_kb_arrive_whole_over_any_buffers() {
    for size in [1_100, 2_048, 4_096, 65_536] {
        let card = SoftCard::merging(MERGING, 1, 256);
        let config = DeviceConfig {
            buffer_size: size,
            ..wish(NEEDED())
        };
        let (_device, mut pair) = open(&card, config).unwrap();
        let posted = pair.rx.posted();
        for round in 0..20 {
            let first = match round % 2 {
                0 => Segment::v4(1, 0),
                _ => Segment::v6(1, 0).stamps(1, 1),
            };
            let payload = [65_535 - 92, 1_449, 40_000][round % 3];
            let (header, frame) = unit(&first, payload, 1_448);
            deliver(&card, header, frame.clone());
            let mut seen = 0;
            let got = pair
                .rx
                .receive(64, |got| {
                    let mut bytes = Vec::new();
                    got.copy_to(&mut bytes);
                    assert!(bytes == frame, "{size} {round}");
                    assert!(got.is_unit() && got.is_merged_by_card() && !got.is_verified());
                    assert_eq!(got.header().gso_size, 1_448);
                    let buffers = (12 + frame.len()).div_ceil(size);
                    assert_eq!(usize::from(got.num_buffers()), buffers);
                    // Cut back as anybody would.
                    let mut unit = got.header().as_bytes().to_vec();
                    unit.extend(&bytes);
                    seen = resegment_buffer(&unit).unwrap().len();
                })
                .unwrap();
            assert_eq!((got, seen), (1, payload.div_ceil(1_448)));
            assert_eq!(pair.rx.posted(), posted, "every buffer is posted again");
        }
        assert_eq!(pair.rx.stats().units, 20);
    }
}

/// Delivers a frame with a header; what the driver makes of it.
fn judge(card: &SoftCard, pair: &mut QueuePair, header: [u8; 10], frame: &[u8]) -> Judged {
    deliver(card, header, frame.to_vec());
    let mut judged = None;
    pair.rx
        .receive(64, |got| {
            let mut bytes = Vec::new();
            got.copy_to(&mut bytes);
            assert!(bytes == frame, "what arrived is as it was");
            judged = Some((got.is_unit(), got.admit(&mut bytes).err()));
        })
        .unwrap();
    judged.expect("the frame was received")
}

type Judged = (bool, Option<Refused>);

#[test]
fn frame_that_is_not_the_unit_it_is_called_is_refused() {
    for gro in [None, Some(GroOptions::default())] {
        let card = SoftCard::merging(MERGING, 1, 64);
        let (_device, mut pair) = open(&card, wish(NEEDED())).unwrap();
        pair.rx.set_gro(gro).unwrap();
        let (good, frame) = unit(&Segment::v4(1, 0), 5_000, 1_448);
        assert_eq!(judge(&card, &mut pair, good, &frame), (true, None));
        let lie = |at: usize, value: u8| {
            let mut header = good;
            header[at] = value;
            header
        };
        for header in [
            lie(0, 0),
            lie(0, 2),
            lie(0, 5),
            lie(1, 2),
            lie(1, 3),
            lie(1, 4),
            lie(1, 5),
            lie(1, 0x81),
            lie(6, 33),
            lie(7, 0xff),
            lie(8, 6),
            lie(9, 0xff),
        ] {
            let (unit, refused) = judge(&card, &mut pair, header, &frame);
            assert!(!unit, "{header:x?}");
            assert!(
                matches!(refused, Some(Refused::Unit(_))),
                "{header:x?}: {refused:?}"
            );
        }
        let mut header = good;
        header[4..6].fill(0);
        assert_eq!(
            judge(&card, &mut pair, header, &frame),
            (false, Some(Refused::Unit(UnitFault::SegmentSize)))
        );
        // Longer and shorter than its packet.
        let mut long = frame.clone();
        long.push(0);
        for bytes in [
            &long[..],
            &frame[..frame.len() - 1],
            &frame[..54],
            &frame[..30],
        ] {
            let (unit, refused) = judge(&card, &mut pair, good, bytes);
            assert!(!unit && refused.is_some(), "{} bytes", bytes.len());
        }
        // `hdr_len` is a hint, whatever it says.
        assert_eq!(judge(&card, &mut pair, lie(2, 0), &frame), (true, None));
        assert_eq!(pair.rx.stats().units, 2);
    }
    // Where it was not negotiated nothing is a unit.
    let card = SoftCard::merging(MERGING, 1, 64);
    let (_device, mut pair) = open(&card, wish(LroRequest::Off)).unwrap();
    let (good, frame) = unit(&Segment::v4(1, 0), 5_000, 1_448);
    let (unit, refused) = judge(&card, &mut pair, good, &frame);
    assert!(!unit && matches!(refused, Some(Refused::Unit(UnitFault::Type(1)))));
}

#[test]
fn random_headers_and_frames_are_taken_without_a_panic() {
    let seed = std::env::var("FERRONIC_SEED").ok();
    let seed = seed.and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("FERRONIC_SEED={seed}");
    let mut rng = Rng::new(seed);
    for gro in [None, Some(GroOptions::default())] {
        let card = SoftCard::merging(MERGING, 1, 64);
        let (_device, mut pair) = open(&card, wish(NEEDED())).unwrap();
        pair.rx.set_gro(gro).unwrap();
        let mut units = 0;
        for _ in 0..20_000 {
            let (mut header, frame) = match rng.below(3) {
                0 => unit(&Segment::v4(1, 0), 1 + rng.below(3_000) as usize, 500),
                1 => unit(&Segment::v6(1, 0), 1 + rng.below(3_000) as usize, 500),
                _ => ([0; 10], frames::malformed(&mut rng)),
            };
            for _ in 0..rng.below(4) {
                header[rng.below(10) as usize] = rng.below(256) as u8;
            }
            if frame.len() >= 14 && frame.len() < 60_000 {
                deliver(&card, header, frame);
            }
            pair.rx
                .receive(64, |got| {
                    let mut bytes = Vec::new();
                    got.copy_to(&mut bytes);
                    let _ = got.admit(&mut bytes);
                    units += u64::from(got.is_unit());
                })
                .unwrap();
        }
        assert!(units > 1_000, "{units}");
        assert!(pair.rx.stats().units >= units);
    }
}

#[test]
fn frame_longer_than_any_is_a_fault() {
    let card = SoftCard::merging(MERGING, 1, 64);
    let (_device, mut pair) = open(&card, wish(NEEDED())).unwrap();
    // Over every buffer there is: 64 of 2,048 bytes.
    deliver(&card, [0; 10], vec![0; 100_000]);
    match pair.rx.receive(64, |_| {}) {
        Err(Error::Queue { queue: 0, fault }) => {
            assert!(matches!(fault, QueueFault::FrameTooLong { .. }), "{fault}");
        }
        other => panic!("a fault was expected, not {other:?}"),
    }
}

#[test]
fn ways_of_merging_have_names_and_settings() {
    for mode in Merging::ALL {
        assert_eq!(mode.name().parse(), Ok(mode));
        let card = SoftCard::merging(MERGING, 1, 64);
        let config = wish(mode.lro(LroOptions::default()));
        let (device, mut pair) = open(&card, config).unwrap();
        pair.rx.set_gro(mode.gro(GroOptions::default())).unwrap();
        let lro = matches!(mode, Merging::Lro | Merging::LroGro);
        assert_eq!(device.lro().unwrap().is_some(), lro, "{mode}");
        // Two segments that the card left alone.
        let first = Segment::v4(1, 1_000);
        for frame in [first.bytes(), first.next(1_000).bytes()] {
            deliver(&card, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0], frame);
        }
        let mut delivered = 0;
        pair.rx.receive(64, |_| delivered += 1).unwrap();
        let gro = matches!(mode, Merging::Gro | Merging::LroGro);
        assert_eq!(delivered, if gro { 1 } else { 2 }, "{mode}");
    }
    assert!("rsc".parse::<Merging>().is_err());
}
