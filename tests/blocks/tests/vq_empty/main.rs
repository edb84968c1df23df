//! `vq_empty` against a model: no interrupt without a reason, none that is due is missing, and every
//! cause is counted as what it was.

mod bench;

use bench::{Bench, Rates};
use ferronic_block_tests::{Bits, Failure, Rng, ensure, for_seeds, layout, nightly};
use ferronic_spec::window as w;

const ROW: u64 = w::TX_EMPTY_STRIDE;
const LONGEST: u32 = 8_388_607;

/// Until nothing is under way and nothing is due.
fn settle(bench: &mut Bench, rng: &mut Rng) -> Result<(), Failure> {
    bench.rates.post = 0;
    bench.rates.wish = 0;
    let mut calm = 0;
    for _ in 0..200_000 {
        bench.cycle(rng)?;
        bench.skip();
        let still = bench
            .queues
            .iter()
            .all(|queue| queue.posted == queue.published);
        calm = if still && bench.block.is("idle_o") {
            calm + 1
        } else {
            0
        };
        if calm > 400 && !bench.block.is("timer_armed_o") {
            return Ok(());
        }
    }
    Err(Failure::Contract(format!(
        "it never becomes idle: {:x?}",
        bench.queues
    )))
}

/// Compares the counters of each queue with what was seen.
fn counted(bench: &mut Bench, rng: &mut Rng) -> Result<(), Failure> {
    for q in 0..bench.queues.len() {
        let mut all = 0;
        for (cause, register) in [w::TX_IRQ_EMPTY, w::TX_IRQ_MAX_AGE, w::TX_IRQ_MARKER]
            .into_iter()
            .enumerate()
        {
            let value = u64::from(bench.access(ROW * q as u64 + register, None, 15, rng)?);
            let (least, most) = bench.queues[q].by_cause[cause];
            ensure!(
                (least..=most).contains(&value),
                "{q}: cause {cause} counts {value}, {least} to {most} are right"
            );
            all += value;
        }
        let told = bench.queues[q].told;
        ensure!(all == told, "{q}: {all} interrupts counted, {told} sent");
        let overtaken = bench.access(ROW * q as u64 + w::TX_OVERTAKEN, None, 15, rng)?;
        let (least, most) = bench.queues[q].overtaken;
        ensure!(
            (least..=most).contains(&u64::from(overtaken)),
            "{q}: overtaken {overtaken} times, {least} to {most} are right"
        );
    }
    Ok(())
}

fn random(name: &str, pairs: usize, seed: u64, rng: &mut Rng) -> Result<u64, Failure> {
    let mut bench = Bench::new(name, pairs, seed, rng)?;
    for round in 0..12 {
        bench.rates = Rates {
            post: rng.pick(&[1, 5, 40, 200]),
            ready: rng.pick(&[20, 70, 100]),
            wish: rng.pick(&[0, 10, 80]),
            marker: rng.pick(&[0, 10, 50]),
            doorbell: rng.pick(&[0, 50, 100]),
            latency: rng.pick(&[12, 60, 200]),
        };
        bench.soon = 600 + 100 * pairs as u64;
        for _ in 0..rng.pick(&[1, 3, 2 * pairs as u64]) {
            let q = rng.below(pairs as u64) as usize;
            let holdoff = rng.pick(&[0, 1, 40, 300, 2000, LONGEST]);
            let (word, value) = match rng.below(4) {
                0 => (w::TX_EMPTY, rng.pick(&[0, 77])),
                1 => (w::TX_EMPTY, 1 << 31 | holdoff),
                2 => (w::TX_MAX_AGE, rng.pick(&[0, 100, 900, 5000, LONGEST])),
                _ => (w::TX_MARKER, rng.below(2) as u32),
            };
            bench.set(q, word, value, rng)?;
        }
        for _ in 0..1500 {
            bench.cycle(rng)?;
            if rng.chance(3) {
                bench.skip();
            }
        }
        if round % 4 == 3 {
            settle(&mut bench, rng)?;
            counted(&mut bench, rng)?;
        }
    }
    let queues = bench.queues.iter();
    Ok(queues.map(|queue| queue.told + queue.overtaken.1).sum())
}

#[test]
fn interrupts_have_a_reason_and_none_that_is_due_is_missing() {
    let told = std::cell::Cell::new(0);
    for_seeds(if nightly() { 600 } else { 60 }, |seed, rng| {
        told.set(told.get() + random("vq_empty", 4, seed, rng)?);
        Ok(())
    });
    println!("{} interrupts, and times overtaken", told.get());
}

#[test]
fn interrupts_of_one_queue_and_of_many_are_right_too() {
    for_seeds(if nightly() { 200 } else { 15 }, |seed, rng| {
        random("vq_empty_1", 1, seed, rng)?;
        random("vq_empty_16", 16, seed, rng)?;
        Ok(())
    });
}

#[test]
fn hold_off_of_any_length_costs_no_cycles_and_ends_when_it_should() {
    for_seeds(10, |seed, rng| {
        let mut bench = Bench::new("vq_empty", 4, seed, rng)?;
        bench.rates.post = 0;
        bench.rates.wish = 0;
        bench.queues[2].vector = true;
        for (holdoff, age) in [
            (LONGEST, 0),
            (1 << 20, 0),
            (0, LONGEST),
            (LONGEST, LONGEST - 5000),
        ] {
            let on = if holdoff == 0 { 0 } else { 1 << 31 | holdoff };
            bench.set(2, w::TX_EMPTY, on, rng)?;
            bench.set(2, w::TX_MAX_AGE, age, rng)?;
            let told = bench.queues[2].told;
            bench.queues[2].posted += 1;
            bench.queues[2].known += 1;
            let (mut cycles, begin) = (0, bench.time);
            while bench.queues[2].told == told {
                bench.cycle(rng)?;
                bench.skip();
                cycles += 1;
                ensure!(cycles < 3000, "{cycles} cycles for a hold-off of {holdoff}");
            }
            let took = bench.time - begin;
            let least = if age == 0 { holdoff } else { age };
            // From the post to the publication, a question and an interrupt.
            ensure!(
                (u64::from(least).saturating_sub(1100)..u64::from(least) + 1000).contains(&took),
                "{took} cycles for a hold-off of {holdoff} and a max-age of {age}"
            );
        }
        counted(&mut bench, rng)
    });
}

#[test]
fn registers_keep_whole_sound_words_until_a_reset() {
    for_seeds(10, |seed, rng| {
        let mut bench = Bench::new("vq_empty", 4, seed, rng)?;
        bench.rates.post = 0;
        let mut model = [[0u32; 8]; 4];
        for _ in 0..300 {
            let (q, word) = (rng.below(6), rng.below(8));
            let any = (rng.next_u64() as u32) >> rng.below(32);
            let value = rng.pick(&[
                0,
                1,
                2,
                LONGEST,
                LONGEST + 1,
                0x8000_0000,
                0x8000_0000 | LONGEST,
                0xc000_0000,
                u32::MAX,
                any,
            ]);
            let be = if rng.chance(70) { 15 } else { rng.below(15) };
            bench.access(ROW * q + 4 * word + w::TX_EMPTY, Some(value), be, rng)?;
            let sound = match word {
                0 => value & 0x7f80_0000 == 0,
                1 => value <= LONGEST,
                2 => value <= 1,
                _ => false,
            };
            if sound && be == 15 && q < 4 {
                model[q as usize][word as usize] = value;
            }
        }
        check(&mut bench, &model, rng)?;
        // A reset of one queue, then of the function. That of a receive queue is nobody's business.
        for q in [2, 5] {
            for area in 0..4u64 {
                let clear = layout("vq_clear_t").pack(&[("valid", 1), ("q", q)]);
                bench.block.set("clear_i", clear);
                bench.block.set("clear_area_i", area);
                bench.cycle(rng)?;
            }
            bench.block.set("clear_i", Bits::ZERO);
        }
        model[2] = [0; 8];
        check(&mut bench, &model, rng)
    });
}

fn check(bench: &mut Bench, model: &[[u32; 8]; 4], rng: &mut Rng) -> Result<(), Failure> {
    for q in 0..64u64 {
        for word in 0..8u64 {
            let value = bench.access(w::TX_EMPTY + ROW * q + 4 * word, None, 15, rng)?;
            let row = model.get(q as usize);
            let wanted = row.map_or(0, |row| row[word as usize]);
            ensure!(
                value == wanted,
                "word {word} of {q} is {value:#x}, not {wanted:#x}"
            );
        }
    }
    for offset in (0x1800..0x2000).step_by(4) {
        let value = bench.access(offset, None, 15, rng)?;
        let wanted = if offset == w::TX_EMPTY_CAPS { 14 } else { 0 };
        ensure!(value == wanted, "{offset:#x} reads {value:#x}");
    }
    Ok(())
}

#[test]
fn queue_that_was_reset_is_not_interrupted_for_what_was_used_before() {
    for_seeds(10, |seed, rng| {
        let mut bench = Bench::new("vq_empty", 4, seed, rng)?;
        bench.rates.post = 0;
        bench.rates.wish = 0;
        bench.set(1, w::TX_EMPTY, 1 << 31 | 5000, rng)?;
        bench.set(1, w::TX_MAX_AGE, 9000, rng)?;
        bench.queues[1].posted += 1;
        bench.queues[1].known += 1;
        for _ in 0..1000 {
            bench.cycle(rng)?;
        }
        for area in 0..4u64 {
            let clear = layout("vq_clear_t").pack(&[("valid", 1), ("q", 3)]);
            bench.block.set("clear_i", clear);
            bench.block.set("clear_area_i", area);
            bench.cycle(rng)?;
        }
        bench.block.set("clear_i", Bits::ZERO);
        let queue = &mut bench.queues[1];
        (queue.empty, queue.max_age, queue.oldest) = (0, 0, None);
        // Turned on once more there is nothing to tell.
        bench.set(1, w::TX_EMPTY, 1 << 31, rng)?;
        bench.set(1, w::TX_MAX_AGE, 50, rng)?;
        for _ in 0..2000 {
            bench.cycle(rng)?;
            ensure!(!bench.block.is("tell_valid_o"), "an interrupt");
        }
        ensure!(
            bench.block.is("idle_o") && !bench.block.is("timer_armed_o"),
            "something waits"
        );
        Ok(())
    });
}
