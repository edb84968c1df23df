//! Segmentation and checksums: what leaves is what the specification says, byte for byte.

use ferronic_block_tests::{Failure, Rng, ensure, for_seeds, nightly};
use ferronic_oracle::{Header, Limits, NEEDS_CSUM, Offloads, gso, request};

use crate::bench::{Bench, Fault, PAIRS};

/// What a driver may have negotiated.
fn negotiated(rng: &mut Rng) -> Offloads {
    let mut bit = || rng.chance(50);
    let some = Offloads {
        csum: true,
        tso4: bit(),
        tso6: bit(),
        ecn: bit(),
        uso: bit(),
    };
    let some = Offloads {
        ecn: some.ecn && (some.tso4 || some.tso6),
        ..some
    };
    rng.pick(&[Offloads::ALL, Offloads::ALL, Offloads::ALL, some])
}

/// What is to be mixed, in hundredths; the rest is sound.
#[derive(Clone, Copy)]
struct Mix {
    malformed: u64,
    faults: u64,
    /// Thousandths of the cycles.
    pauses: u64,
}

const SOUND: Mix = Mix {
    malformed: 0,
    faults: 0,
    pauses: 0,
};

/// So many seeds, and many more at night.
fn seeds(count: u64) -> u64 {
    if nightly() { 40 * count } else { count }
}

/// Posts until `bytes` of buffers were, over some queues; the number of those that cannot be read.
fn traffic(bench: &mut Bench, bytes: usize, mix: Mix, rng: &mut Rng) -> Result<u64, Failure> {
    let queues = rng.range(1, PAIRS);
    let most = rng.pick(&[1, 4, 20]);
    let packets = rng.pick(&[1500, 9000, 65_535]);
    bench.ready = rng.pick(&[30, 90, 100, 100]);
    let limits = Limits {
        packet: packets,
        segments: rng.pick(&[12, 70]),
    };
    let (mut posted, mut failed, mut paused) = (0, 0, false);
    while posted < bytes {
        if bench.pending() < most && rng.chance(30) {
            let q = rng.below(queues) * 2 + 1;
            let (request, fault) = if rng.chance(mix.malformed) {
                (request::malformed(bench.offloads, rng), Fault::None)
            } else {
                let fault = if rng.chance(mix.faults) {
                    failed += 1;
                    Fault::Read
                } else {
                    Fault::None
                };
                (request::sound(&limits, bench.offloads, rng), fault)
            };
            let mut buffer = request.buffer();
            if rng.chance(mix.malformed / 10) {
                // Not even a header.
                buffer.truncate(rng.range(1, 11) as usize);
            }
            posted += buffer.len();
            let pieces = rng.pick(&[1, 2, 3, 8, 40]);
            bench.post(q, request.kind, &buffer, pieces, fault, rng);
        }
        if paused || rng.below(1000) < mix.pauses {
            // What was begun ends, and nothing more is; then it goes on.
            paused = !paused || !bench.block.is("idle_o") || rng.chance(90);
            bench.block.set("pause_i", paused);
        }
        bench.cycle(rng)?;
    }
    Ok(failed)
}

fn both_widths(bytes: usize, mix: Mix, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    for width in [64, 512] {
        let mut bench = Bench::new(width, seed, negotiated(rng))?;
        let failed = traffic(&mut bench, bytes, mix, rng)?;
        bench.drain(rng)?;
        ensure!(
            bench.errors == failed,
            "{} queue errors for {failed} failed reads",
            bench.errors
        );
    }
    Ok(())
}

#[test]
fn segments_are_those_of_the_specification() {
    for_seeds(seeds(10), |seed, rng| {
        both_widths(100_000, SOUND, seed, rng)
    });
}

#[test]
fn malformed_requests_among_others_are_dropped_and_counted() {
    let mix = Mix {
        malformed: 70,
        ..SOUND
    };
    for_seeds(seeds(10), |seed, rng| both_widths(60_000, mix, seed, rng));
}

#[test]
fn failed_reads_end_a_frame_between_two_segments() {
    let mix = Mix {
        faults: 30,
        ..SOUND
    };
    for_seeds(seeds(6), |seed, rng| both_widths(100_000, mix, seed, rng));
}

#[test]
fn pauses_between_frames_lose_nothing() {
    let mix = Mix { pauses: 2, ..SOUND };
    for_seeds(seeds(4), |seed, rng| both_widths(80_000, mix, seed, rng));
}

#[test]
fn function_reset_at_any_moment_leaves_nothing_behind() {
    let mix = Mix {
        malformed: 20,
        ..SOUND
    };
    for_seeds(seeds(4), |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed, Offloads::ALL)?;
            for _ in 0..8 {
                let bytes = rng.range(100, 60_000) as usize;
                traffic(&mut bench, bytes, mix, rng)?;
                for _ in 0..rng.below(2000) {
                    bench.cycle(rng)?;
                }
                bench.reset(rng)?;
            }
            traffic(&mut bench, 30_000, mix, rng)?;
            bench.drain(rng)?;
        }
        Ok(())
    });
}

/// A buffer of `len` bytes: TCP over IPv4 behind two tags, to be cut into segments of `size` bytes.
fn tcp4(len: usize, size: u16, rng: &mut Rng) -> Vec<u8> {
    let header = Header {
        flags: NEEDS_CSUM,
        gso_type: gso::TCPV4,
        gso_size: size,
        ..Header::default()
    };
    let mut frame = vec![0; 12];
    frame.extend([
        0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6,
    ]);
    frame.resize(22 + 20, 1);
    frame.extend([0; 12]);
    frame.extend([0x50, 0x19, 0, 0, 0, 0, 0, 0]);
    let mut bytes = [&header.bytes()[..], &frame].concat();
    bytes.extend((bytes.len()..len).map(|_| rng.next_u64() as u8));
    bytes
}

#[test]
fn largest_buffer_is_cut_and_larger_ones_are_dropped() {
    const MOST: usize = 12 + 22 + 65_535;
    for_seeds(1, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed, Offloads::ALL)?;
            for len in [MOST - 1, MOST, MOST + 1, MOST + 5000, 3 * MOST] {
                let bytes = tcp4(len, 1448, rng);
                let pieces = rng.pick(&[1, 2, 30]);
                bench.post(1, "large", &bytes, pieces, Fault::None, rng);
                bench.cycle(rng)?;
            }
            bench.post(1, "small", &tcp4(100, 1448, rng), 2, Fault::None, rng);
            bench.drain(rng)?;
            ensure!(bench.sent >= 2 * 46, "{} segments", bench.sent);
        }
        Ok(())
    });
}

#[test]
fn segments_of_one_byte_are_as_many_as_there_are_bytes() {
    for_seeds(1, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed, Offloads::ALL)?;
            let headers = tcp4(0, 1, rng).len();
            bench.post(
                1,
                "bytes",
                &tcp4(headers + 1500, 1, rng),
                3,
                Fault::None,
                rng,
            );
            bench.drain(rng)?;
            ensure!(bench.sent == 1500, "{} segments", bench.sent);
        }
        Ok(())
    });
}

#[test]
fn chain_that_breaks_off_in_a_frame_that_is_being_cut_stops_its_queue_alone() {
    for_seeds(seeds(2), |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed, Offloads::ALL)?;
            let bytes = tcp4(40_000, 1448, rng);
            bench.post(1, "broken", &bytes, 9, Fault::Broken, rng);
            for _ in 0..20 {
                for _ in 0..200 {
                    bench.cycle(rng)?;
                }
                let bytes = tcp4(rng.range(100, 9000) as usize, 700, rng);
                bench.post(3, "sound", &bytes, 3, Fault::None, rng);
            }
            bench.drain(rng)?;
            ensure!(bench.pending() == 1, "the broken buffer is back");
        }
        Ok(())
    });
}

/// Queue 1 has frames of 64 KB to be cut, queue 3 frames of 1,514 bytes: each gets half of the wire.
#[test]
fn queues_are_charged_by_bytes_on_the_wire() {
    for_seeds(1, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, seed, Offloads::ALL)?;
            let plain = [&[0; 12][..], &[0x5a; 1514]].concat();
            let large = tcp4(65_000, 1448, rng);
            let total = |bench: &Bench| bench.bytes.values().sum::<u64>();
            while total(&bench) < 800_000 {
                if bench.pending_of(1) < 3 {
                    bench.post(1, "large", &large, 1, Fault::None, rng);
                } else if bench.pending_of(3) < 60 {
                    bench.post(3, "plain", &plain, 1, Fault::None, rng);
                }
                bench.cycle(rng)?;
            }
            let of = |q: u64| bench.bytes.get(&q).copied().unwrap_or(0);
            let (large, plain) = (of(1), of(3));
            ensure!(
                large * 10 < plain * 15 && plain * 10 < large * 15,
                "{large} bytes of queue 1, {plain} of queue 3"
            );
            bench.drain(rng)?;
        }
        Ok(())
    });
}
