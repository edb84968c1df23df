//! `prim_fifo`, `prim_skid` and `prim_slice` against a queue.

use std::collections::VecDeque;

use ferronic_block_tests::{Bits, Block, Failure, Rng, ensure, for_seeds};

const CYCLES: u64 = 4000;

/// The stream ports of a block with one input and one output.
struct Ports {
    in_valid: &'static str,
    in_ready: &'static str,
    in_data: &'static str,
    out_valid: &'static str,
    out_ready: &'static str,
    out_data: &'static str,
}

const FIFO: Ports = Ports {
    in_valid: "wr_valid_i",
    in_ready: "wr_ready_o",
    in_data: "wr_data_i",
    out_valid: "rd_valid_o",
    out_ready: "rd_ready_i",
    out_data: "rd_data_o",
};

const SKID: Ports = Ports {
    in_valid: "in_valid_i",
    in_ready: "in_ready_o",
    in_data: "in_data_i",
    out_valid: "out_valid_o",
    out_ready: "out_ready_i",
    out_data: "out_data_o",
};

/// Random words in and out; what comes out is what went in, `capacity` words are held, a word in an
/// empty block comes out in the next cycle, and `clr_i` empties it.
fn stream(
    block: &mut Block,
    ports: &Ports,
    width: u32,
    capacity: usize,
    rng: &mut Rng,
) -> Result<(), Failure> {
    let mut model: VecDeque<Bits> = VecDeque::new();
    let (mut in_rate, mut out_rate) = (50, 50);
    let mut offered: Option<Bits> = None;
    for cycle in 0..CYCLES {
        if cycle % 64 == 0 {
            in_rate = rng.pick(&[0, 20, 50, 100]);
            out_rate = rng.pick(&[0, 20, 50, 100]);
        }
        if offered.is_none() && rng.chance(in_rate) {
            let mut word = Bits::ZERO;
            word.set(0, width.min(64), rng.next_u64());
            if width > 64 {
                word.set(64, width - 64, rng.next_u64());
            }
            offered = Some(word);
        }
        let clear = rng.below(300) == 0;
        block.set(ports.in_valid, offered.is_some());
        block.set(ports.in_data, offered.unwrap_or_default());
        block.set(ports.out_ready, rng.chance(out_rate));
        block.set("clr_i", clear);
        block.settle()?;

        let level = model.len();
        ensure!(
            block.is(ports.out_valid) != model.is_empty(),
            "cycle {cycle}: it holds {level} words and valid is {}",
            block.is(ports.out_valid)
        );
        ensure!(
            block.is(ports.in_ready) == (level < capacity),
            "cycle {cycle}: it holds {level} of {capacity} words and ready is {}",
            block.is(ports.in_ready)
        );
        if block.is(ports.out_valid) {
            let (got, wanted) = (block.get(ports.out_data), model[0]);
            ensure!(
                got == wanted,
                "cycle {cycle}: {got:x?} instead of {wanted:x?}"
            );
        }
        let (pushed, popped) = (
            block.fires(ports.in_valid, ports.in_ready),
            block.fires(ports.out_valid, ports.out_ready),
        );
        block.tick()?;
        if popped {
            model.pop_front();
        }
        if pushed && let Some(word) = offered.take() {
            model.push_back(word);
        }
        if clear {
            model.clear();
        }
    }
    Ok(())
}

#[test]
fn fifo_keeps_order_and_loses_nothing() {
    for_seeds(10, |seed, rng| {
        let mut block = Block::new("prim_fifo", seed)?;
        stream(&mut block, &FIFO, 40, 8, rng)
    });
}

#[test]
fn fifo_counts_what_it_holds() {
    for_seeds(5, |seed, rng| {
        let mut block = Block::new("prim_fifo", seed)?;
        let mut level = 0;
        for cycle in 0..CYCLES {
            block.set("wr_valid_i", rng.chance(50));
            block.set("rd_ready_i", rng.chance(50));
            block.settle()?;
            let shown = block.word("level_o");
            ensure!(shown == level, "cycle {cycle}: {shown} instead of {level}");
            level += u64::from(block.fires("wr_valid_i", "wr_ready_o"));
            level -= u64::from(block.fires("rd_valid_o", "rd_ready_i"));
            block.tick()?;
        }
        Ok(())
    });
}

#[test]
fn skid_keeps_order_and_loses_nothing() {
    for_seeds(10, |seed, rng| {
        let mut block = Block::new("prim_skid", seed)?;
        stream(&mut block, &SKID, 100, 2, rng)
    });
}

#[test]
fn slice_keeps_order_and_loses_nothing() {
    for_seeds(10, |seed, rng| {
        let mut block = Block::new("prim_slice", seed)?;
        stream(&mut block, &SKID, 100, 1, rng)
    });
}

#[test]
fn streams_take_a_word_a_cycle() {
    for_seeds(1, |seed, _| {
        for (name, ports) in [("prim_fifo", FIFO), ("prim_skid", SKID)] {
            let mut block = Block::new(name, seed)?;
            block.set(ports.in_valid, true);
            block.set(ports.out_ready, true);
            let mut taken = 0;
            for _ in 0..100 {
                block.settle()?;
                taken += u64::from(block.fires(ports.out_valid, ports.out_ready));
                block.tick()?;
            }
            ensure!(
                taken == 99,
                "{name}: {taken} words in 100 cycles, latency 1"
            );
        }
        Ok(())
    });
}

#[test]
fn assertion_of_the_rtl_is_an_error_that_names_it() {
    let failed = (|| {
        let mut block = Block::new("vq_walker", 1)?;
        // The contract says that these never come together.
        block.set("commit_i", true);
        block.set("rewind_i", true);
        block.tick()
    })();
    match failed {
        Err(Failure::Assertion { messages, .. }) => {
            assert!(messages.contains("OneAtATime"), "{messages}");
        }
        other => panic!("{other:?}"),
    }
}
