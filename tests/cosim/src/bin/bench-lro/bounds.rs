//! What must hold of the card alone: what it merges against the reference model, and that it takes
//! frames as fast as without merging.

use ferronic_cosim_tests::Capture;
use ferronic_figures::Figure;
use ferronic_sim::model::WIDTHS;
use ferronic_sim::wire::Pace;

use crate::card::{self, Watched};
use crate::streams::Stream;

/// Segments that a bulk flow must have in a unit.
const BULK: f64 = 40.0;
/// Of what the model merges, how much the card must.
const OF_MODEL: f64 = 0.9;
/// What the model must of 64 flows.
const MANY: f64 = 30.0;

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "DOES NOT HOLD" }
}

fn against(what: &str, data_w: u32, found: &Watched) -> (f64, f64) {
    let card = Watched::segments_a_unit(&found.units);
    let model = Watched::segments_a_unit(&found.model);
    let same = found
        .difference
        .as_ref()
        .map_or("unit by unit the same".to_owned(), Clone::clone);
    println!("{data_w:>4} bits, {what}: {card:.2} segments a unit, the model {model:.2}; {same}");
    (card, model)
}

fn push(
    figures: &mut Vec<Figure>,
    stream: &str,
    data_w: u32,
    contexts: usize,
    of: [(&str, f64); 2],
) {
    for (by, value) in of {
        figures.push(
            Figure::new("segments_per_unit", value, "segments")
                .with("stream", stream)
                .with("data_w", data_w)
                .with("contexts", contexts)
                .with("by", by),
        );
    }
}

/// 64 flows on a card that merges as many.
pub fn many(quick: bool, figures: &mut Vec<Figure>) -> Result<(), String> {
    // Of each flow whole units and a part of one.
    let segments = if quick { 100 } else { 240 };
    let stream = Stream::synthetic(64, false, false, 1500, 64 * 1500 * segments);
    println!("\n64 flows interleaved, a segment each by turns:");
    for &data_w in WIDTHS {
        let found = card::watch(&stream, data_w, true);
        let what = format!("{} contexts", found.contexts);
        let (card, model) = against(&what, data_w, &found);
        println!(
            "{data_w:>4} bits: {:.3} of the model (bound {OF_MODEL}: {}), the model bound {MANY}: {}",
            card / model,
            verdict(card >= OF_MODEL * model),
            verdict(model >= MANY),
        );
        let of = [("card", card), ("model", model)];
        push(figures, "synthetic, 64 flows", data_w, found.contexts, of);
    }
    Ok(())
}

/// Whole captures, both directions, as fast as the data path takes them.
pub fn captured(captures: &[Capture], figures: &mut Vec<Figure>) -> Result<(), String> {
    println!("\nwhole captures, the card and the reference model:");
    for capture in captures {
        let stream = Stream {
            name: capture.name.clone(),
            flows: 0,
            timestamps: false,
            ip: 0,
            mtu: 0,
            pace: Pace::Line,
            payload: 0,
            arrivals: Stream::whole(capture),
        };
        let data_w = WIDTHS[0];
        let found = card::watch(&stream, data_w, true);
        let (card, model) = against(&capture.name, data_w, &found);
        let of = [("card", card), ("model", model)];
        push(figures, &capture.name, data_w, found.contexts, of);
    }
    Ok(())
}

/// One synthetic flow.
pub fn bulk(quick: bool, figures: &mut Vec<Figure>) -> Result<(), String> {
    // Whole units, and a few segments.
    let bytes = if quick { 10 * 67_500 } else { 30 * 67_500 };
    let stream = Stream::synthetic(1, false, false, 1500, bytes);
    println!("\none bulk flow (bound {BULK} segments a unit):");
    for &data_w in WIDTHS {
        let found = card::watch(&stream, data_w, true);
        let (card, model) = against(verdict_of(&found), data_w, &found);
        let of = [("card", card), ("model", model)];
        push(figures, "synthetic, bulk", data_w, found.contexts, of);
    }
    Ok(())
}

fn verdict_of(found: &Watched) -> &'static str {
    verdict(Watched::segments_a_unit(&found.units) >= BULK)
}

/// Cycles a frame with and without merging.
pub fn cycles(quick: bool, figures: &mut Vec<Figure>) {
    println!("\ncycles a frame of TCP with merging on and off (bound: equal):");
    let (warm, count) = if quick { (60, 300) } else { (150, 1200) };
    for &data_w in WIDTHS {
        for flows in [1, 8] {
            for frame in [64, 256, 1514, 9014] {
                let mtu = frame - 14;
                let bytes = (count + 2 * warm) * mtu;
                let stream = Stream::synthetic(flows, false, false, mtu, bytes);
                let [off, on] = [false, true]
                    .map(|on| card::cycles_per_frame(&stream.arrivals, data_w, on, warm));
                println!(
                    "{data_w:>4} bits, {flows} flows, {frame:>5} bytes: {on:.2} on, {off:.2} off, {:+.2} % ({})",
                    (on / off - 1.0) * 100.0,
                    verdict(on <= off * 1.001),
                );
                for (lro, value) in [(true, on), (false, off)] {
                    figures.push(
                        Figure::new("cycles_per_frame", value, "cycles")
                            .with("data_w", data_w)
                            .with("frame_bytes", frame)
                            .with("flows", flows)
                            .with("lro", lro),
                    );
                }
            }
        }
    }
}
