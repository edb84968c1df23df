//! `tx_path`: buffers of a queue to frames on the wire (virtio 1.2, "Packet Transmission" of the
//! network device).

mod bench;
mod host;
mod segmentation;

use bench::{Bench, Fault, PAIRS};
use ferronic_block_tests::{Failure, Rng, ensure, for_seeds};
use ferronic_oracle::Offloads;

const HEADER: u64 = 12;

/// A kind of buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Frame,
    Short,
    Long,
    /// NEEDS_CSUM, or a kind of segmentation: neither was negotiated.
    Offload,
    ReadError,
}

/// A buffer of `len` bytes, header included.
fn buffer(len: u64, rng: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
    let header = HEADER.min(len) as usize;
    bytes[..header].fill(0);
    bytes
}

/// `count` frames of random sizes over random queues, with nothing negotiated.
fn random(bench: &mut Bench, count: u64, kinds: &[Kind], rng: &mut Rng) -> Result<(), Failure> {
    let post = rng.pick(&[2, 20, 100]);
    bench.ready = rng.pick(&[30, 90, 100]);
    let mut posted = 0;
    while posted < count {
        if rng.chance(post) {
            let kind = rng.pick(kinds);
            let frame = match rng.below(4) {
                0 => rng.range(14, 80),
                1 => rng.range(14, 9216),
                _ => rng.range(14, 1514),
            };
            let len = match kind {
                Kind::Short => rng.range(1, HEADER + 13),
                Kind::Long => rng.pick(&[9217, 9300, 20_000]) + HEADER,
                _ => frame + HEADER,
            };
            let mut bytes = buffer(len, rng);
            if kind == Kind::Offload {
                let (at, value) = rng.pick(&[(0, 1), (1, 1), (1, 4)]);
                bytes[at] = value;
            }
            let fault = match kind {
                Kind::ReadError => Fault::Read,
                _ => Fault::None,
            };
            let (q, pieces) = (rng.below(PAIRS) * 2 + 1, rng.range(1, 6));
            bench.post(q, "a frame", &bytes, pieces, fault, rng);
            posted += 1;
        }
        bench.cycle(rng)?;
    }
    bench.drain(rng)
}

/// At both widths, with nothing negotiated.
fn plain(seeds: u64, test: impl Fn(&mut Bench, &mut Rng) -> Result<(), Failure>) {
    for_seeds(seeds, |seed, rng| {
        for width in [64, 512] {
            test(&mut Bench::new(width, seed, Offloads::default())?, rng)?;
        }
        Ok(())
    });
}

#[test]
fn segments_of_any_size_and_alignment_become_the_frame() {
    plain(5, |bench, rng| {
        random(bench, 100, &[Kind::Frame], rng)?;
        ensure!(bench.sent == 100, "{} frames", bench.sent);
        Ok(())
    });
}

#[test]
fn frames_that_are_none_are_dropped_and_their_buffers_come_back() {
    plain(5, |bench, rng| {
        let kinds = [
            Kind::Frame,
            Kind::Frame,
            Kind::Short,
            Kind::Long,
            Kind::Offload,
        ];
        random(bench, 100, &kinds, rng)
    });
}

#[test]
fn failed_reads_drop_their_frame_alone() {
    plain(5, |bench, rng| {
        let kinds = [Kind::Frame, Kind::Frame, Kind::ReadError];
        random(bench, 80, &kinds, rng)?;
        let (errors, left) = (bench.errors, 80 - bench.sent);
        ensure!(errors == left, "{errors} queue errors for {left} frames");
        Ok(())
    });
}

#[test]
fn broken_chain_is_dropped_and_its_buffer_stays() {
    plain(3, |bench, rng| {
        bench.post(3, "broken", &buffer(500, rng), 3, Fault::Broken, rng);
        bench.drain(rng)?;
        ensure!(bench.sent == 0, "something was sent");
        ensure!(bench.pending() == 1, "its buffer is back");
        ensure!(
            bench.walker.committed.is_empty(),
            "a broken chain was committed"
        );
        Ok(())
    });
}

#[test]
fn frames_of_several_queues_leave_in_turn() {
    plain(2, |bench, rng| {
        // Queue 1 has much to do when queue 3 gets its one frame.
        bench.ready = 0;
        for _ in 0..40 {
            bench.post(1, "a frame", &buffer(300, rng), 1, Fault::None, rng);
            bench.cycle(rng)?;
        }
        bench.post(3, "a frame", &buffer(300, rng), 1, Fault::None, rng);
        bench.ready = 100;
        while !bench.is_done(3) {
            bench.cycle(rng)?;
            ensure!(bench.sent < 40, "queue 3 waits behind all of queue 1");
        }
        ensure!(bench.sent > 0, "nothing was sent");
        bench.drain(rng)
    });
}
