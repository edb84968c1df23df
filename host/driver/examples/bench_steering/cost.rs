//! Instructions of a choice, by callgrind.

use std::fs;
use std::hint::black_box;
use std::process::Command;

use ferronic::xps::{Cpus, Flow, Mask, Packet, Socket, Xps, XpsError};
use ferronic_figures::Figure;

use crate::lines::own;

pub const TITLE: &str = "\
instructions of a choice, by callgrind, of a release build
  view: to look at the maps as they are, once a burst; first: the choice by the map of a CPU with one
  queue; several: by one with four; hash: without maps; socket: again on the socket's queue; flow: the
  same of a flow, with what is in flight counted up and down";

const TIMES: u32 = 1000;

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    View,
    First,
    Several,
    Hash,
    Socket,
    Flow,
}

impl Case {
    const ALL: [(Self, &'static str); 6] = [
        (Self::View, "view"),
        (Self::First, "first"),
        (Self::Several, "several"),
        (Self::Hash, "hash"),
        (Self::Socket, "socket"),
        (Self::Flow, "flow"),
    ];

    fn card(self) -> Result<Xps, XpsError> {
        match self {
            Self::Several => {
                let xps = Xps::new(16, 16, Cpus::new(16))?;
                for queue in 0..4 {
                    xps.set_cpus(queue, &Mask::all(16))?;
                }
                Ok(xps)
            }
            Self::Hash => Xps::new(16, 16, Cpus::new(16)),
            _ => own(16),
        }
    }

    /// Does it so often.
    pub fn repeat(self) -> Result<(), Box<dyn std::error::Error>> {
        let xps = self.card()?;
        // What is done once is done.
        drop(xps.view());
        let mut flow = Flow::new(0x1234_5678);
        let (_, flight) = flow.send(&xps.view(), 3, 0);
        if self == Self::View {
            measured(|_| drop(black_box(xps.view())));
            return Ok(());
        }
        let view = xps.view();
        let mut socket = Socket::new();
        let packet = |number: u32| Packet {
            cpu: number % 16,
            hash: number.wrapping_mul(0x9e37_79b9),
            ..Packet::default()
        };
        view.pick(&packet(0), Some(&mut socket));
        match self {
            Self::Socket => measured(|number| {
                black_box(view.pick(&packet(number), Some(&mut socket)));
            }),
            Self::Flow => measured(|number| {
                drop(black_box(flow.send(&view, number % 16, 0)));
            }),
            _ => measured(|number| {
                black_box(view.pick(&packet(number), None));
            }),
        }
        drop(flight);
        Ok(())
    }
}

/// What is counted.
#[inline(never)]
fn measured(mut what: impl FnMut(u32)) {
    for number in 0..TIMES {
        what(black_box(number));
    }
}

/// Instructions once, loop and making of the packet included.
fn count(name: &str) -> Result<Option<f64>, Box<dyn std::error::Error>> {
    let out = std::env::temp_dir().join(format!("ferronic-steering-{}", std::process::id()));
    let run = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=*measured*",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args(["--repeat", name])
        .output();
    let Ok(run) = run else {
        return Ok(None);
    };
    if !run.status.success() {
        return Err(format!("valgrind: {}", String::from_utf8_lossy(&run.stderr)).into());
    }
    let text = fs::read_to_string(&out)?;
    fs::remove_file(&out)?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    let total = total.ok_or("callgrind wrote no summary")?;
    Ok(Some(total.trim().parse::<f64>()? / f64::from(TIMES)))
}

pub fn figures() -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
    let mut figures = Vec::new();
    for (_, name) in Case::ALL {
        let Some(instructions) = count(name)? else {
            println!("instructions are not counted: valgrind is not there");
            break;
        };
        figures.push(
            Figure::new("instructions_per_packet", instructions, "1")
                .with("case", name)
                .with("layout", "ferronic"),
        );
    }
    Ok(figures)
}
