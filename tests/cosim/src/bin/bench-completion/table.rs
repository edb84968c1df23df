//! What was measured, as tables and as figures.

use ferronic::CompletionPolicy;
use ferronic::completion::{HOLDOFF, MARK, MAX_AGE, PACKETS, PERIOD};
use ferronic_cosim_tests::completion::{Cost, HOST_CYCLES, Outcome, RING, SMALL_BUDGET};
use ferronic_figures::Figure;

use crate::{Case, Row};

pub fn conditions(cost: &Cost, peer_us: f64, policies: &[CompletionPolicy]) {
    let (mut holdoff, mut max_age) = (HOLDOFF, MAX_AGE);
    for policy in policies {
        if let CompletionPolicy::RingEmptyHoldoff {
            holdoff: h,
            max_age: a,
        } = *policy
        {
            (holdoff, max_age) = (h, a);
        }
    }
    println!(
        "conditions: the driver on the RTL, 64 bits, 125 MHz; PCIe read latency 1 us; ring of {RING}; wire of \
         1 Gbit/s with preamble, gap and FCS; a peer that answers after {peer_us} us; one processor of \
         {} MHz\ncycles of the host: a transmit call {} and {} a KiB beyond the first, a buffer taken back {}, an interrupt or timer {}, a \
         wake-up {}\nsettings: hold-off {} us, max-age {} us, coalesced {PACKETS} frames or {} us, marker every \
         {MARK}, timer {} ms; send buffers 212,992 bytes, {SMALL_BUDGET} for ping-preload, 12 datagrams for \
         fairness\ndelay: from the used entry in host memory to the buffer taken back, us; close: the longest \
         wait to close a sender, us; irqs: interrupts of the transmit queue",
        125 * HOST_CYCLES,
        cost.transmit,
        cost.copy,
        cost.reclaim,
        cost.interrupt,
        cost.wakeup,
        holdoff.as_micros(),
        max_age.as_micros(),
        MAX_AGE.as_micros(),
        PERIOD.as_millis(),
    );
}

/// Simulated time and time of the host's processor, in microseconds.
pub fn total(outcome: &Outcome) -> f64 {
    outcome.simulated_us + outcome.host_cycles as f64 / (125 * HOST_CYCLES) as f64
}

/// The best of all policies: simulated time, cycles of the host, and the sum of both as times.
pub fn best(rows: &[Row], case: Case) -> Option<(f64, f64, f64)> {
    let outcomes = || {
        let of_case = rows.iter().filter(move |row| row.case == case);
        of_case.filter_map(|row| row.outcome.as_ref().ok())
    };
    let time = outcomes().map(|o| o.simulated_us).reduce(f64::min)?;
    let cycles = outcomes().map(|o| o.host_cycles as f64).reduce(f64::min)?;
    let sum = outcomes().map(total).reduce(f64::min)?;
    Some((time, cycles, sum))
}

pub fn print(rows: &[Row]) {
    let mut last: Option<Case> = None;
    for row in rows {
        let fair = matches!(row.case, Case::Fairness(..));
        let new = match (last, row.case) {
            (Some(Case::Fairness(..)), Case::Fairness(..)) => false,
            (Some(before), now) => before != now,
            (None, _) => true,
        };
        if new && fair {
            println!(
                "\nfairness\n{:>2} {:<11} {:<18} {:>7} {:>7} {:>6} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6}",
                "n",
                "order",
                "policy",
                "packets",
                "irqs",
                "irq/p",
                "mean",
                "p99",
                "max",
                "close",
                "min B",
                "max B",
                "jain",
                "rounds"
            );
        } else if new {
            println!(
                "\n{}\n{:<18} {:>11} {:>10} {:>7} {:>7} {:>6} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>10}",
                row.case.name(),
                "policy",
                "sim us",
                "host kcyc",
                "packets",
                "irqs",
                "irq/p",
                "timers",
                "mean",
                "p99",
                "max",
                "close",
                "time",
                "cycles",
                "total"
            );
        }
        last = Some(row.case);
        match (&row.outcome, row.case) {
            (Err(why), _) => println!("{:<18} {why}", row.policy.name()),
            (Ok(outcome), Case::Fairness(n, order, _)) => fairness(row, outcome, n, order.name()),
            (Ok(outcome), case) => workload(row, outcome, best(rows, case)),
        }
    }
}

fn workload(row: &Row, o: &Outcome, best: Option<(f64, f64, f64)>) {
    let over = |value: f64, best: f64| format!("{:+.1} %", (value / best - 1.0) * 100.0);
    let (time, cycles, sum) = best.unwrap_or((o.simulated_us, o.host_cycles as f64, total(o)));
    println!(
        "{:<18} {:>11.1} {:>10.1} {:>7} {:>7} {:>6.3} {:>7} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>10} {:>8} {:>10}",
        row.policy.name(),
        o.simulated_us,
        o.host_cycles as f64 / 1000.0,
        o.packets,
        o.interrupts,
        o.interrupts_per_packet(),
        o.timers,
        o.delay.mean,
        o.delay.p99,
        o.delay.max,
        o.close_us_max,
        over(o.simulated_us, time),
        over(o.host_cycles as f64, cycles),
        over(total(o), sum),
    );
}

fn fairness(row: &Row, o: &Outcome, n: u16, order: &str) {
    println!(
        "{n:>2} {order:<11} {:<18} {:>7} {:>7} {:>6.3} {:>8.2} {:>8.2} {:>9.2} {:>9.2} {:>9} {:>9} {:>6.3} {:>6}",
        row.policy.name(),
        o.packets,
        o.interrupts,
        o.interrupts_per_packet(),
        o.delay.mean,
        o.delay.p99,
        o.delay.max,
        o.close_us_max,
        o.shares.iter().min().unwrap_or(&0),
        o.shares.iter().max().unwrap_or(&0),
        o.jain(),
        o.rounds,
    );
}

pub fn figures(rows: &[Row]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for row in rows {
        let Ok(o) = &row.outcome else { continue };
        let mut push = |name: &str, value: f64, unit: &str, stat: Option<&str>| {
            let mut figure = Figure::new(name, value, unit)
                .with("policy", row.policy.name())
                .with("workload", row.case.name());
            if let Case::Fairness(senders, order, _) = row.case {
                figure = figure.with("senders", senders).with("order", order.name());
            }
            if let Some(stat) = stat {
                figure = figure.with("stat", stat);
            }
            figures.push(figure);
        };
        push("simulated_us", o.simulated_us, "us", None);
        push("host_cycles", o.host_cycles as f64, "cycles", None);
        push("packets", o.packets as f64, "packets", None);
        push("interrupts", o.interrupts as f64, "interrupts", None);
        let ratio = o.interrupts_per_packet();
        push("interrupts_per_packet", ratio, "interrupts", None);
        let delay = [
            ("mean", o.delay.mean),
            ("p99", o.delay.p99),
            ("max", o.delay.max),
        ];
        for (stat, value) in delay {
            push("completion_delay_us", value, "us", Some(stat));
        }
        push("close_us_max", o.close_us_max, "us", None);
        if let Case::Fairness(senders, ..) = row.case {
            if senders > 0 {
                let (min, max) = (o.shares.iter().min(), o.shares.iter().max());
                let sum: u64 = o.shares.iter().sum();
                let mean = sum as f64 / f64::from(senders);
                let shares = [
                    ("min", min.map(|x| *x as f64)),
                    ("mean", Some(mean)),
                    ("max", max.map(|x| *x as f64)),
                ];
                for (stat, value) in shares {
                    push("sender_bytes", value.unwrap_or(0.0), "bytes", Some(stat));
                }
                push("jain", o.jain(), "1", None);
            }
            push("pingpong_rounds", o.rounds as f64, "rounds", None);
        }
    }
    figures
}

/// The table of the thread that asked for the ring-empty interrupt.
pub fn peer() {
    println!(
        "\nfor comparison, the thread of 2009 that asked for it (guest to host over virtio, 1 GiB of TCP; 1,000,000 \
         pings; 1,000,000 pings of 1,000 bytes, 120 preloaded), seconds / packets / interrupts:\n  \
         interrupt at ring empty     3.76 / 32833 / 32758   111 / 1000008 / 997463   55 / 1000007 / 488920\n  \
         timer (100 ms), no orphan   3.64 / 32806 / 1       106 / 1000008 / 1        68 / 1000005 / 1\n  \
         orphan                      3.86 / 32821 / 1       102 / 1000007 / 1        43 / 1000005 / 1\n  \
         interrupts a packet at ring empty: 0.998, 0.997, 0.489; its fairness program showed no difference"
    );
}
