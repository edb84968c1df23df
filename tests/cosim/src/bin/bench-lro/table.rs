//! What is measured of a stream, as a row for each of the four ways.

use ferronic::lro::Merging;
use ferronic_figures::Figure;

use crate::card::{self, BUFFER, BUFFERS, Driven, GAP, HOLD, RING, WAKE, Watched};
use crate::count::{CACHE, Count, Counter};
use crate::streams::Stream;

const KB: f64 = 1024.0;
const MB: f64 = KB * KB;
const DATA_W: u32 = 64;

/// The instructions that merging in the driver may take for a segment.
const GRO_BOUND: f64 = 150.0;
/// What merging by the card may cost, of merging in the driver and of none.
const OF_GRO: f64 = 0.6;
const OF_NONE: f64 = 0.2;

/// One of the four ways.
pub struct Row {
    pub mode: Merging,
    pub goodput: f64,
    /// Delivered to the stack, each a MB.
    pub frames: Option<f64>,
    pub interrupts: f64,
    pub tlps: f64,
    pub pcie_bytes: f64,
    pub segments_a_unit: Option<f64>,
    pub instructions: Option<f64>,
    pub lines: Option<f64>,
    /// Mean and most, in cycles.
    pub delay: Option<(f64, u64)>,
    pub evicted: u32,
}

/// Instructions of merging in the driver alone, for those rows that are of it.
fn gro_alone(row: &Row, found: &Found) -> Option<f64> {
    found
        .gro_segment
        .filter(|_| matches!(row.mode, Merging::Gro))
}

/// What was found of a stream.
pub struct Found {
    pub rows: Vec<Row>,
    /// Instructions of merging in the driver alone for a segment.
    pub gro_segment: Option<f64>,
}

pub fn conditions() {
    println!(
        "conditions: card of {DATA_W} bits, ring {RING}, {BUFFERS} buffers of {BUFFER} bytes, gap {} us, \
         hold {} us, DATA_VALID used in all; the host takes what is there {} us after an interrupt, in \
         bursts of 64, and merges within a burst; KB and MB of payload, {KB} and {MB} bytes; cache lines: \
         data misses of a cache of {CACHE} (bytes, ways, line); GRO/seg: instructions of the driver's merging \
         alone for a segment; delay: cycles that a segment is \
         published later than without merging, mean and most",
        GAP / 125,
        HOLD / 125,
        WAKE / 125
    );
    println!(
        "{:<18} {:>5} {:>2} {:>2} {:>5} {:>9} {:>7} {:>6} {:>9} {:>7} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "stream",
        "flows",
        "ts",
        "ip",
        "mtu",
        "speed",
        "mode",
        "Gbit/s",
        "frames/MB",
        "irqs/MB",
        "TLPs/MB",
        "PCIe B/MB",
        "seg/unit",
        "instr/KB",
        "GRO/seg",
        "lines/KB",
        "delay",
        "most",
        "evicted"
    );
}

/// Measures all four.
pub fn measure(stream: &Stream, counter: Option<&Counter>) -> Result<Found, String> {
    let driven = [false, true].map(|lro| card::drive(stream, DATA_W, lro));
    let watched = [false, true].map(|lro| card::watch(stream, DATA_W, lro));
    let delay = card::delays(&watched[1].units, &watched[0].units)?;
    let mut rows = Vec::new();
    let mut gro_segment = None;
    let mut recordings = Vec::new();
    if let Some(counter) = counter {
        for (name, driven) in ["alone", "merged"].into_iter().zip(&driven) {
            recordings.push(counter.record(name, driven).map_err(|e| e.to_string())?);
        }
        let count = counter.run(&recordings[0], "merging", "gro")?;
        let segments = count.said.get("segments").copied().unwrap_or(0);
        gro_segment = count
            .instructions
            .filter(|_| segments > 0)
            .map(|all| all as f64 / segments as f64);
    }
    for mode in Merging::ALL {
        let lro = usize::from(matches!(mode, Merging::Lro | Merging::LroGro));
        let gro = matches!(mode, Merging::Gro | Merging::LroGro);
        let count = match counter {
            Some(counter) => {
                let how = if gro { "gro" } else { "plain" };
                Some(counter.run(&recordings[lro], "stack", how)?)
            }
            None => None,
        };
        let watched = &watched[lro];
        let mut row = row(stream, mode, &driven[lro], watched, count.as_ref());
        if lro == 1 {
            row.delay = Some(delay);
        }
        rows.push(row);
    }
    Ok(Found { rows, gro_segment })
}

fn row(
    stream: &Stream,
    mode: Merging,
    driven: &Driven,
    watched: &Watched,
    count: Option<&Count>,
) -> Row {
    let megabytes = stream.payload as f64 / MB;
    let delivered = match (mode, count) {
        (Merging::Gro | Merging::LroGro, Some(count)) => {
            count.said.get("delivered").map(|frames| *frames as f64)
        }
        (Merging::Gro | Merging::LroGro, None) => None,
        _ => Some(driven.bursts.iter().map(Vec::len).sum::<usize>() as f64),
    };
    let kilobytes = stream.payload as f64 / KB;
    let per = |n: Option<u64>| n.map(|n| n as f64 / kilobytes);
    Row {
        mode,
        goodput: stream.payload as f64 / driven.cycles as f64,
        frames: delivered.map(|frames| frames / megabytes),
        interrupts: driven.link.interrupts as f64 / megabytes,
        tlps: driven.link.tlps() as f64 / megabytes,
        pcie_bytes: driven.link.wire_bytes() as f64 / megabytes,
        segments_a_unit: delivered.map(|frames| stream.arrivals.len() as f64 / frames),
        instructions: count.and_then(|count| per(count.instructions)),
        lines: count.and_then(|count| per(count.lines)),
        delay: None,
        evicted: watched.evicted,
    }
}

fn text(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

pub fn print(stream: &Stream, found: &Found) {
    for row in &found.rows {
        println!(
            "{:<18} {:>5} {:>2} {:>2} {:>5} {:>9} {:>7} {:>6.3} {:>9} {:>7.1} {:>7.0} {:>9.0} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}",
            stream.name,
            stream.flows,
            if stream.timestamps { "+" } else { "-" },
            stream.ip,
            stream.mtu,
            stream.speed(),
            row.mode.name(),
            row.goodput,
            text(row.frames, 1),
            row.interrupts,
            row.tlps,
            row.pcie_bytes,
            text(row.segments_a_unit, 1),
            text(row.instructions, 1),
            text(gro_alone(row, found), 1),
            text(row.lines, 2),
            text(row.delay.map(|(mean, _)| mean), 0),
            text(row.delay.map(|(_, most)| most as f64), 0),
            row.evicted,
        );
    }
}

fn with(figure: Figure, stream: &Stream) -> Figure {
    figure
        .with("stream", stream.name.clone())
        .with("flows", stream.flows)
        .with("timestamps", stream.timestamps)
        .with("ip", stream.ip)
        .with("mtu", stream.mtu)
        .with("speed", stream.speed())
}

pub fn figures(stream: &Stream, found: &Found, figures: &mut Vec<Figure>) {
    for row in &found.rows {
        let delay = row.delay;
        for (name, value, unit) in [
            ("goodput_gbit_s", Some(row.goodput), "Gbit/s"),
            ("frames_per_mb", row.frames, "frames"),
            ("interrupts_per_mb", Some(row.interrupts), "interrupts"),
            ("tlps_per_mb", Some(row.tlps), "TLPs"),
            ("pcie_bytes_per_mb", Some(row.pcie_bytes), "bytes"),
            ("segments_per_unit", row.segments_a_unit, "segments"),
            ("instructions_per_kb", row.instructions, "instructions"),
            ("cache_lines_per_kb", row.lines, "lines"),
            ("delay_cycles", delay.map(|(mean, _)| mean), "cycles"),
            (
                "delay_cycles_max",
                delay.map(|(_, most)| most as f64),
                "cycles",
            ),
            ("contexts_evicted", Some(row.evicted.into()), "contexts"),
        ] {
            if let Some(value) = value {
                let figure = Figure::new(name, value, unit).with("mode", row.mode.name());
                figures.push(with(figure, stream));
            }
        }
    }
    if let Some(value) = found.gro_segment {
        let figure = Figure::new("gro_instructions_per_segment", value, "instructions");
        figures.push(with(figure, stream));
    }
}

/// What merging by the card costs of what the others do, and what merging in the driver does.
pub fn ratios(rows: &[(Stream, Found)], figures: &mut Vec<Figure>) {
    println!("\ninstructions a KB, the card merging, of what others take (data path speed):");
    for (stream, found) in rows {
        // More flows than the card has contexts for are another question.
        if stream.speed() == "1G" || stream.flows > 16 {
            continue;
        }
        let of = |mode: Merging| {
            let row = found.rows.iter().find(|row| row.mode == mode);
            row.and_then(|row| row.instructions)
        };
        let (Some(none), Some(gro), Some(lro)) =
            (of(Merging::None), of(Merging::Gro), of(Merging::Lro))
        else {
            continue;
        };
        let gro_segment = found.gro_segment.unwrap_or(0.0);
        let verdict = |holds: bool| if holds { "holds" } else { "DOES NOT HOLD" };
        println!(
            "{:<18} {:>2} flows, time stamps {}, IPv{}, MTU {}: {:.3} of GRO (bound {OF_GRO}: {}), {:.3} of none \
             (bound {OF_NONE}: {}); GRO alone {:.0} a segment (bound {GRO_BOUND}: {})",
            stream.name,
            stream.flows,
            if stream.timestamps { "+" } else { "-" },
            stream.ip,
            stream.mtu,
            lro / gro,
            verdict(lro / gro <= OF_GRO),
            lro / none,
            verdict(lro / none <= OF_NONE),
            gro_segment,
            verdict(gro_segment <= GRO_BOUND),
        );
        for (other, value) in [("gro", lro / gro), ("none", lro / none)] {
            let figure = Figure::new("instructions_lro_ratio", value, "1").with("of", other);
            figures.push(with(figure, stream));
        }
    }
}

/// The comparison that started it: service demand of the receiver, us a KB.
pub fn peer() {
    println!(
        "\nfor comparison, a 10 Gbit/s card of 2009 (myri10ge, Opteron 252, netperf TCP_SENDFILE; merging by \
         its driver's LRO against the kernel's GRO, CPU time of the receiver):\n  \
         time stamps +: LRO 1.535 us/KB, GRO 1.739 us/KB; LRO 0.883 of GRO; 8,279 and 8,053 Mbit/s\n  \
         time stamps -: LRO 1.565 us/KB, GRO 1.839 us/KB; LRO 0.851 of GRO; 7,754 and 7,535 Mbit/s"
    );
}
