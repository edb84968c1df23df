//! Choices a second on several CPUs at once, as ratios to other layouts in the same run.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use ferronic::xps::{Packet, Xps, XpsError};
use ferronic_figures::Figure;

use crate::lines::own;

pub const TITLE: &str = "\
choices a second of all CPUs together, ours over the layout's, in one run (host time)";

/// Choices of all threads in a while.
fn choices(cpus: usize, time: Duration, choose: impl Fn(&Packet) + Sync) -> u64 {
    let end = AtomicBool::new(false);
    let begin = Barrier::new(cpus + 1);
    let worker = |cpu: usize| {
        begin.wait();
        let mut done = 0;
        while !end.load(Ordering::Relaxed) {
            for number in 0..64 {
                choose(&Packet {
                    cpu: cpu as u32,
                    hash: number,
                    ..Packet::default()
                });
            }
            done += 64;
        }
        done
    };
    thread::scope(|scope| {
        let worker = &worker;
        let threads: Vec<_> = (0..cpus)
            .map(|cpu| scope.spawn(move || worker(cpu)))
            .collect();
        begin.wait();
        thread::sleep(time);
        end.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .sum()
    })
}

pub fn figures(quick: bool) -> Result<Vec<Figure>, XpsError> {
    let cpus = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(16);
    if cpus < 2 {
        return Ok(Vec::new());
    }
    let xps = own(16)?;
    let (locked, counted) = (RwLock::new(own(16)?), Mutex::new(Arc::new(own(16)?)));
    let pick = |xps: &Xps, packet: &Packet| {
        black_box(xps.view().pick(packet, None));
    };
    let (rounds, time) = match quick {
        true => (3, Duration::from_millis(30)),
        false => (9, Duration::from_millis(100)),
    };
    // By turns, so that what else the machine does meets all of them.
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let ours = choices(cpus, time, |packet| pick(&xps, packet));
        let rwlock = choices(cpus, time, |packet| {
            pick(
                &locked.read().unwrap_or_else(PoisonError::into_inner),
                packet,
            );
        });
        let refcount = choices(cpus, time, |packet| {
            let taken = Arc::clone(&counted.lock().unwrap_or_else(PoisonError::into_inner));
            pick(&taken, packet);
        });
        ratios[0].push(ours as f64 / rwlock as f64);
        ratios[1].push(ours as f64 / refcount as f64);
    }
    let figures = ["rwlock", "mutex"].into_iter().zip(ratios);
    Ok(figures
        .map(|(layout, mut ratios)| {
            ratios.sort_by(f64::total_cmp);
            Figure::new("packets_per_s_ratio", ratios[ratios.len() / 2], "1")
                .with("case", "pick")
                .with("layout", layout)
                .with("cpus", cpus)
        })
        .collect())
}
