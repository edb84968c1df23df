//! Headers by the million, sound and malformed: no panic, no wrong claim, no request that the card
//! would drop. The fuzz target `headers` in `fuzz/` judges by the same function.

#[path = "support/judge.rs"]
mod judge;

use ferronic_oracle::{Rng, frames};
use judge::{Met, PREFIX, headers};

/// Inputs of one test; there are four, which run side by side.
const INPUTS: usize = 260_000;
/// Of them, those of which a new frame is made; the others change one bit or field more.
const CHANGES: usize = 6;

/// Changes something: mostly in the headers.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let len = bytes.len() as u64;
    let near = |rng: &mut Rng| rng.below(len.min(90)) as usize;
    match rng.below(8) {
        0 => bytes.truncate(rng.below(len) as usize + 1),
        1 => {
            // Now and then more than the card takes, or can segment.
            let more = match rng.below(300) {
                0 => rng.below(70_000),
                _ => rng.below(40),
            } as usize;
            bytes.resize(len as usize + more, 0);
        }
        2 => {
            let at = rng.below(len) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        3 => {
            // A protocol, an extension header, an EtherType.
            let at = near(rng);
            bytes[at] = rng.pick(&[0, 6, 17, 43, 44, 51, 58, 59, 60, 0x08, 0x81, 0x86, 0xdd]);
        }
        4 => {
            // A length, or none at all.
            let at = near(rng);
            bytes[at] = rng.pick(&[0, 1, 4, 5, 7, 8, 15, 0x45, 0x46, 0x4f, 0x60, 0x7f, 0xff]);
        }
        _ => {
            let at = near(rng);
            bytes[at] = rng.next_u64() as u8;
        }
    }
}

/// The part of an input in front of the frame.
fn prefix(len: usize, rng: &mut Rng) -> [u8; PREFIX] {
    let mut prefix = [0; PREFIX];
    let around = |rng: &mut Rng| match rng.below(4) {
        0 => rng.next_u64() as u16,
        1 => (len as u16).wrapping_sub(rng.below(20) as u16),
        _ => rng.below(100) as u16,
    };
    prefix[0] = rng.pick(&[0, 0, 1, 2, 3, 0xff]);
    prefix[1..3].copy_from_slice(&around(rng).to_le_bytes());
    prefix[3..5].copy_from_slice(&around(rng).to_le_bytes());
    let any = rng.next_u64() as u16;
    let size = rng.pick(&[0, 1, 7, 100, 536, 1448, 9216, 0xffff, any]);
    prefix[5..7].copy_from_slice(&size.to_le_bytes());
    prefix[7] = rng.pick(&[0, 1, 2, 0x80, 0x81, 0x82]);
    prefix[8] = rng.pick(&[63, 63, 63, 0, 11, 12, 13, 56]);
    prefix[9] = rng.pick(&[63, 63, 63, 0, 11, 12, 13, 56]);
    prefix
}

fn run(number: u64) {
    let seed = std::env::var("FERRONIC_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1_u64);
    let nightly =
        std::env::var_os("FERRONIC_NIGHTLY").is_some_and(|value| !value.is_empty() && value != "0");
    let inputs = if nightly { 20 * INPUTS } else { INPUTS };
    println!("FERRONIC_SEED={seed}");
    let mut rng = Rng::new(seed.wrapping_mul(4).wrapping_add(number));
    let (mut right, mut wrong, mut unverifiable, mut granted) = (0, 0, 0, 0);
    let mut input = Vec::new();
    for i in 0..inputs {
        if i % CHANGES == 0 {
            input = vec![0; PREFIX];
            input.extend(frames::frame(&mut rng));
        } else {
            let mut frame = input.split_off(PREFIX);
            mutate(&mut frame, &mut rng);
            input.append(&mut frame);
        }
        let prefix = prefix(input.len() - PREFIX, &mut rng);
        input[..PREFIX].copy_from_slice(&prefix);
        let met = match headers(&input) {
            Ok(met) => met,
            Err(why) => panic!("input {i}: {why}\n{input:02x?}"),
        };
        let Met {
            right: r,
            wrong: w,
            unverifiable: u,
            granted: g,
        } = met;
        right += usize::from(r);
        wrong += usize::from(w);
        unverifiable += usize::from(u);
        granted += usize::from(g);
    }
    println!("{right} right, {wrong} wrong, {unverifiable} unverifiable, {granted} granted");
    let least = inputs / 50;
    assert!(
        right > least && wrong > least && unverifiable > least && granted > least,
        "{right} right, {wrong} wrong, {unverifiable} unverifiable and {granted} granted of \
         {inputs} show little"
    );
}

#[test]
fn malformed_headers_first_quarter() {
    run(0);
}

#[test]
fn malformed_headers_second_quarter() {
    run(1);
}

#[test]
fn malformed_headers_third_quarter() {
    run(2);
}

#[test]
fn malformed_headers_fourth_quarter() {
    run(3);
}
