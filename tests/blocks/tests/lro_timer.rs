//! `lro_timer`: what is due is so by its own times, is found soon whatever comes to others, and no
//! time is skipped over it.

use ferronic_block_tests::{Block, Failure, Rng, ensure, for_seeds, nightly};

const CONTEXTS: usize = 16;
/// Cycles after which a deadline is found: all are looked at in turn.
const SOON: u64 = 3 * CONTEXTS as u64;

fn run(seed: u64, rng: &mut Rng) -> Result<(), Failure> {
    let mut block = Block::new("lro_timer", seed)?;
    let longest = (1 << 23) - 1;
    let gap = rng.pick(&[1, 5, 40, 300, 100_000, longest]);
    let hold = rng.pick(&[1, 5, 100, 1000, 200_000, longest]);
    block.set("gap_i", gap);
    block.set("hold_i", hold);
    let mut time = rng.next_u64() & 0x1ff_ffff;
    // Of each open context: when its first and its last segment came.
    let mut open: [Option<(u64, u64)>; CONTEXTS] = [None; CONTEXTS];
    // For how long each was overdue and nothing said to be due; when the last one closed.
    let mut seen = [0; CONTEXTS];
    let mut closed_at = u64::MAX;
    let rate = rng.pick(&[1, 2, 20, 100]);
    for step in 0..6000 {
        block.set("time_i", time & 0x1ff_ffff);
        let mask = (0..CONTEXTS).filter(|i| open[*i].is_some());
        block.set("open_i", mask.map(|i| 1 << i).sum::<u64>());
        let touches = rng.chance(if step % 2000 < 1000 { rate } else { 1 });
        let touch = touches.then(|| rng.below(CONTEXTS as u64) as usize);
        block.set("touch_i", touches);
        if let Some(context) = touch {
            block.set("first_i", open[context].is_none());
            block.set("ctx_i", context as u64);
        }
        block.settle()?;
        let end = |(first, last): (u64, u64)| (first + hold).min(last + gap);
        let due = block.is("due_o").then(|| block.word("due_ctx_o") as usize);
        if let Some((context, times)) = due.and_then(|i| open[i].map(|times| (i, times))) {
            ensure!(
                time >= end(times) || touch == Some(context),
                "{context} is due {} cycles early",
                end(times) - time
            );
            let by_hold = times.0 + hold <= times.1 + gap;
            ensure!(
                block.is("due_hold_o") == by_hold,
                "{context} is due by the other time"
            );
        }
        ensure!(
            due.is_none_or(|i| open[i].is_some() || closed_at == step - 1),
            "{due:?} is not open"
        );
        // Some context is due if one has been for long.
        for context in 0..CONTEXTS {
            let over = open[context].is_some_and(|times| time >= end(times));
            seen[context] = if over && due.is_none() {
                seen[context] + 1
            } else {
                0
            };
            ensure!(seen[context] <= SOON, "{context} is not found to be due");
        }
        let next = open.iter().flatten().map(|times| end(*times)).min();
        let (settled, left) = (block.is("settled_o"), block.word("left_o"));
        block.tick()?;
        match (touch, due.filter(|i| open[*i].is_some())) {
            (Some(context), _) => {
                let first = open[context].map_or(time, |(first, _)| first);
                open[context] = Some((first, time));
            }
            (None, Some(context)) if rng.chance(30) => {
                open[context] = None;
                closed_at = step;
            }
            _ => {}
        }
        // Idle time is skipped, never over a deadline.
        if settled && touch.is_none() && due.is_none() && rng.chance(30) {
            let skip = match next {
                None => rng.below(1 << 20),
                Some(next) => {
                    let truly = next.saturating_sub(time);
                    ensure!(left <= truly, "{left} cycles are left, truly {truly}");
                    left
                }
            };
            time += skip.saturating_sub(1);
        }
        time += 1;
    }
    Ok(())
}

#[test]
fn what_is_due_is_found_soon_and_no_time_is_skipped_over_it() {
    for_seeds(if nightly() { 10_000 } else { 1000 }, run);
}
