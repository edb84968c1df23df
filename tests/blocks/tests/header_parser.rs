//! `header_parser` against a reading of the specifications in Rust, and against `etherparse`, which
//! shares nothing with either.

use std::collections::VecDeque;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use ferronic_block_tests::frames::{self, Verdict, frame, verdict};
use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds};

const FRAMES: usize = 3000;

/// Streams frames word by word, with gaps, and collects a verdict for each.
fn run(
    block: &mut Block,
    frames: &[Vec<u8>],
    window: usize,
    rng: &mut Rng,
) -> Result<Vec<(bool, u16, u16)>, Failure> {
    let mut verdicts = Vec::new();
    let mut collect = |block: &mut Block| {
        if block.is("result_valid_o") {
            verdicts.push((
                block.is("sum_ok_o"),
                block.word("addr_hash_o") as u16,
                block.word("port_hash_o") as u16,
            ));
        }
    };
    for frame in frames {
        // Sometimes a frame is cut off, as the wire does; the next one begins.
        if rng.chance(5) {
            offer(block, &frame[..8.min(frame.len())], true, None)?;
            collect(block);
        }
        let gaps = rng.pick(&[0, 0, 30]);
        let walked = &frame[..frame.len().min(window)];
        let tail = &frame[walked.len()..];
        let words: Vec<&[u8]> = walked.chunks(8).collect();
        for (i, word) in words.iter().enumerate() {
            while rng.chance(gaps) {
                block.set("valid_i", false);
                block.tick()?;
                collect(block);
            }
            let last = (i + 1 == words.len()).then_some(tail);
            offer(block, word, i == 0, last)?;
            collect(block);
        }
    }
    block.set("valid_i", false);
    for _ in 0..8 {
        block.tick()?;
        collect(block);
    }
    Ok(verdicts)
}

fn offer(block: &mut Block, word: &[u8], first: bool, last: Option<&[u8]>) -> Result<(), Failure> {
    // They mean nothing but with the last word.
    let tail = last.unwrap_or(&[0x5a; 9]);
    block.set("valid_i", true);
    block.set("first_i", first);
    block.set("last_i", last.is_some());
    block.set("bytes_i", word.len() as u64);
    block.set("data_i", Bits::from_bytes(word));
    block.set("tail_len_i", tail.len() as u64);
    block.set("tail_sum_i", u64::from(frames::fold(frames::sum(tail))));
    block.tick()
}

fn check(window: usize, seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut block = Block::new("header_parser", seed)?;
    let frames: Vec<Vec<u8>> = (0..FRAMES).map(|_| frame(rng)).collect();
    let mut expected: VecDeque<Verdict> = frames.iter().map(|f| verdict(f)).collect();
    let seen = run(&mut block, &frames, window, rng)?;
    ensure!(
        seen.len() == frames.len(),
        "{} verdicts for {} frames",
        seen.len(),
        frames.len()
    );
    let (mut claims, mut refused) = (0, 0);
    for (i, (ok, addresses, ports)) in seen.into_iter().enumerate() {
        let Some(want) = expected.pop_front() else {
            break;
        };
        ensure!(
            (ok, addresses, ports) == (want.sum_ok, want.addresses, want.ports),
            "frame {i}: claim {ok}, hashes {addresses:#06x} and {ports:#06x} instead of {want:x?}: {:02x?}",
            frames[i]
        );
        claims += usize::from(ok);
        refused += usize::from(!ok);
        ensure!(
            !ok || agrees(&frames[i]),
            "frame {i}: etherparse does not agree with the claim: {:02x?}",
            frames[i]
        );
    }
    ensure!(
        claims > FRAMES / 5 && refused > FRAMES / 5,
        "{claims} claims and {refused} refusals show little"
    );
    Ok(())
}

/// Does etherparse find the frame's checksums right?
fn agrees(frame: &[u8]) -> bool {
    let Ok(packet) = SlicedPacket::from_ethernet(frame) else {
        return false;
    };
    let source = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            if header.calc_header_checksum() != header.header_checksum {
                return false;
            }
            Ok((header.source, header.destination))
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header().to_header();
            Err((header.source, header.destination))
        }
        _ => return false,
    };
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let header = tcp.to_header();
            let sum = match source {
                Ok((s, d)) => header.calc_checksum_ipv4_raw(s, d, tcp.payload()),
                Err((s, d)) => header.calc_checksum_ipv6_raw(s, d, tcp.payload()),
            };
            sum.ok() == Some(header.checksum)
        }
        Some(TransportSlice::Udp(udp)) => {
            let header = udp.to_header();
            let sum = match source {
                Ok((s, d)) => header.calc_checksum_ipv4_raw(s, d, udp.payload()),
                Err((s, d)) => header.calc_checksum_ipv6_raw(s, d, udp.payload()),
            };
            sum.ok() == Some(header.checksum)
        }
        _ => false,
    }
}

#[test]
fn claims_and_hashes_are_those_of_the_specifications() {
    for_seeds(4, |seed, rng| check(usize::MAX, seed, rng));
}

#[test]
fn a_window_and_a_sum_of_the_rest_give_the_same() {
    for_seeds(4, |seed, rng| check(frames::WINDOW, seed, rng));
}
