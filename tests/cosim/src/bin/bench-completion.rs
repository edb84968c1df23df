//! Transmit completion under each policy: the same workloads, on the RTL and a wire of 1 Gbit/s.
//!
//! Conditions are printed, and described in docs/completion-policies.md. Everything is deterministic.

#[path = "bench-completion/bounds.rs"]
mod bounds;
#[path = "bench-completion/measure.rs"]
mod measure;
#[path = "bench-completion/plot.rs"]
mod plot;
#[path = "bench-completion/table.rs"]
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use ferronic::CompletionPolicy;
use ferronic_cosim_tests::bench::{Output, exit};
use ferronic_cosim_tests::completion::{Conditions, Cost, Order, Outcome, Workload, fairness};

/// When the frames of a transmit queue are completed, by policy.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Only these policies
    #[arg(long, value_name = "NAME")]
    policy: Vec<CompletionPolicy>,
    /// Only these workloads: bulk, ping, ping-preload, fairness
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// Numbers of bulk senders beside the ping-pong, for the workload `fairness`
    #[arg(long, value_name = "N", value_delimiter = ',')]
    senders: Vec<u16>,
    /// Bytes of the send buffers in `fairness`, if not those of twelve datagrams
    #[arg(long, value_name = "BYTES")]
    send_buffer: Option<usize>,
    /// Microseconds in which the peer answers
    #[arg(long, default_value_t = 5.0, value_name = "US")]
    peer_us: f64,
    /// Another hold-off for ring-empty-holdoff, in microseconds
    #[arg(long, value_name = "US")]
    holdoff_us: Option<u64>,
    /// Another max-age for it
    #[arg(long, value_name = "US")]
    max_age_us: Option<u64>,
    /// Cycles of the kernel in each interrupt, beside those of the driver
    #[arg(long, default_value_t = 0, value_name = "CYCLES")]
    kernel_cycles: u64,
    /// Measurements at once; the figures do not depend on it
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// Count the cost of the host's work with this program, the driver's example `completion_cost`
    /// built with --release, instead of all else
    #[arg(long, value_name = "FILE")]
    measure: Option<PathBuf>,
}

/// What is measured once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    /// One of the three of the thread.
    Workload(Workload),
    /// Senders beside a ping-pong, in an order, for so many cycles.
    Fairness(u16, Order, u64),
}

impl Case {
    /// Its name in figures.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Workload(workload) => workload.name(),
            Self::Fairness(..) => "fairness",
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Workload(workload) => workload.name().to_owned(),
            Self::Fairness(n, order, _) => format!("fairness, {n} senders, {}", order.name()),
        }
    }

    fn run(&self, conditions: &Conditions) -> Result<Outcome, ferronic::Error> {
        match *self {
            Self::Workload(workload) => workload.run(conditions),
            Self::Fairness(senders, order, cycles) => fairness(conditions, senders, order, cycles),
        }
    }
}

/// A case under a policy, and what came of it; why it could not be, if it could not.
pub struct Row {
    pub case: Case,
    pub policy: CompletionPolicy,
    pub outcome: Result<Outcome, String>,
}

fn cases(arguments: &Arguments) -> Vec<Case> {
    let quick = arguments.output.quick;
    let workloads = if quick {
        [
            Workload::Bulk(1 << 19),
            Workload::Ping(300),
            Workload::Preload(400),
        ]
    } else {
        [
            Workload::Bulk(16 << 20),
            Workload::Ping(20_000),
            Workload::Preload(20_000),
        ]
    };
    let mut cases: Vec<_> = workloads.into_iter().map(Case::Workload).collect();
    let (senders, cycles) = match (&arguments.senders[..], quick) {
        // 50 ms, or 4.
        ([], true) => (vec![8], 500_000),
        (some, true) => (some.to_vec(), 500_000),
        ([], false) => ((0..=20).collect(), 6_250_000),
        (some, false) => (some.to_vec(), 6_250_000),
    };
    for order in [Order::Fair, Order::Adversarial] {
        cases.extend(senders.iter().map(|n| Case::Fairness(*n, order, cycles)));
    }
    let wanted = &arguments.workload;
    cases.retain(|case| wanted.is_empty() || wanted.iter().any(|name| name == case.name()));
    cases
}

fn policies(arguments: &Arguments) -> Vec<CompletionPolicy> {
    let given = &arguments.policy[..];
    let some = if given.is_empty() {
        &CompletionPolicy::ALL
    } else {
        given
    };
    let us = |given: Option<u64>, or| given.map_or(or, Duration::from_micros);
    let adjusted = some.iter().map(|policy| match *policy {
        CompletionPolicy::RingEmptyHoldoff { holdoff, max_age } => {
            CompletionPolicy::RingEmptyHoldoff {
                holdoff: us(arguments.holdoff_us, holdoff),
                max_age: us(arguments.max_age_us, max_age),
            }
        }
        other => other,
    });
    adjusted.collect()
}

/// Runs all cases under all policies, several at once, and says how far it is.
fn measure_all(arguments: &Arguments, cost: Cost) -> Vec<Row> {
    let policies = policies(arguments);
    let todo: Vec<_> = cases(arguments)
        .into_iter()
        .flat_map(|case| policies.iter().map(move |policy| (case, *policy)))
        .collect();
    let peer = (arguments.peer_us * 125.0).round() as u64;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rows: Mutex<Vec<_>> = Mutex::new((0..todo.len()).map(|_| None).collect());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.clamp(1, 64) {
            scope.spawn(|| {
                while let Some((case, policy)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let conditions = Conditions {
                        policy: *policy,
                        cost,
                        peer,
                        send_buffer: arguments.send_buffer,
                    };
                    let outcome = case.run(&conditions).map_err(|e| e.to_string());
                    let count = done.fetch_add(1, Ordering::Relaxed) + 1;
                    eprintln!(
                        "[{count}/{}] {} under {policy}, {:.0} s",
                        todo.len(),
                        case.describe(),
                        begin.elapsed().as_secs_f64()
                    );
                    let row = Row {
                        case: *case,
                        policy: *policy,
                        outcome,
                    };
                    let index = todo.iter().position(|other| *other == (*case, *policy));
                    if let (Ok(mut rows), Some(index)) = (rows.lock(), index) {
                        rows[index] = Some(row);
                    }
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap_or_else(|e| e.into_inner());
    rows.into_iter().flatten().collect()
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(program) = &arguments.measure {
        return Ok(measure::all(program)?);
    }
    let cost = Cost::recorded().with_kernel(arguments.kernel_cycles);
    table::conditions(&cost, arguments.peer_us, &policies(arguments));
    let rows = measure_all(arguments, cost);
    table::print(&rows);
    table::peer();
    bounds::print(&rows);
    let output = &arguments.output;
    output.write("bench completion", table::figures(&rows), |path, _| {
        plot::all(path, &rows)
    })
}

fn main() -> ExitCode {
    exit(run(&Arguments::parse()))
}
