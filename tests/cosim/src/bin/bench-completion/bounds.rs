//! What must hold of the default policy, and whether it does.

use ferronic::CompletionPolicy;
use ferronic::completion::MAX_AGE;
use ferronic_cosim_tests::completion::Order;

use crate::{Case, Row, table};

/// Interrupts a packet on the wire.
const BULK: f64 = 0.05;
const PRELOAD: f64 = 0.5;
/// Beyond max-age, in microseconds.
const MARGIN: f64 = 10.0;
/// Of the best policy's cost.
const COST: f64 = 1.02;
const JAIN: f64 = 0.95;

fn say(what: &str, value: f64, bound: f64, holds: bool) {
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    println!("  {what}: {value:.3} (bound {bound:.3}): {verdict}");
}

pub fn print(rows: &[Row]) {
    let ours = |row: &&Row| row.policy.name() == CompletionPolicy::DEFAULT.name();
    let mut max_age = MAX_AGE;
    let mut delay: f64 = 0.0;
    let mut jain: f64 = 1.0;
    let mut any = false;
    println!("\n{}:", CompletionPolicy::DEFAULT);
    for row in rows.iter().filter(ours) {
        let Ok(o) = &row.outcome else { continue };
        any = true;
        if let CompletionPolicy::RingEmptyHoldoff { max_age: age, .. } = row.policy {
            max_age = age;
        }
        delay = delay.max(o.delay.max);
        match row.case {
            Case::Fairness(_, Order::Adversarial, _) => jain = jain.min(o.jain()),
            Case::Fairness(..) => {}
            Case::Workload(workload) => {
                let name = workload.name();
                let bound = match name {
                    "bulk" => Some(BULK),
                    "ping-preload" => Some(PRELOAD),
                    _ => None,
                };
                if let Some(bound) = bound {
                    let value = o.interrupts_per_packet();
                    say(
                        &format!("{name}, interrupts a packet"),
                        value,
                        bound,
                        value <= bound,
                    );
                }
                if let Some((time, cycles, sum)) = table::best(rows, row.case) {
                    for (what, value) in [
                        ("simulated and processor time", table::total(o) / sum),
                        ("simulated time alone", o.simulated_us / time),
                        ("cycles of the host alone", o.host_cycles as f64 / cycles),
                    ] {
                        let what = format!("{name}, {what} of the best's");
                        say(&what, value, COST, value <= COST);
                    }
                }
            }
        }
    }
    if any {
        let bound = max_age.as_micros() as f64 + MARGIN;
        say("longest delay of all, us", delay, bound, delay <= bound);
        say(
            "least Jain index, adversarial order",
            jain,
            JAIN,
            jain >= JAIN,
        );
    } else {
        println!("  not measured");
    }
}
