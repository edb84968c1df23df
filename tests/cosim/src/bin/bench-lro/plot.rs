//! Instructions a KB by who merges, a group for each stream.

use std::path::Path;

use ferronic::lro::Merging;
use ferronic_cosim_tests::bench::plot::{Drawn, Style, bars};
use ferronic_figures::Report;
use plotters::prelude::*;

/// Streams at data path speed with their instructions by mode, in order of appearance.
fn groups(report: &Report) -> Vec<(String, Vec<(usize, f64)>)> {
    let mut groups: Vec<(String, Vec<(usize, f64)>)> = Vec::new();
    for figure in &report.figures {
        let text = |name: &str| figure.params.get(name).and_then(|value| value.as_str());
        let number = |name: &str| figure.params.get(name).and_then(|value| value.as_u64());
        if figure.name != "instructions_per_kb" || text("speed") != Some("data path") {
            continue;
        }
        let mode = Merging::ALL
            .iter()
            .position(|mode| Some(mode.name()) == text("mode"));
        let (Some(mode), Some(stream)) = (mode, text("stream")) else {
            continue;
        };
        let stamps = figure.params.get("timestamps") == Some(&true.into());
        let name = match stream.strip_suffix(".pcap") {
            Some(name) => name.to_owned(),
            None => format!(
                "{}x v{} {}{}",
                number("flows").unwrap_or(0),
                number("ip").unwrap_or(0),
                number("mtu").unwrap_or(0),
                if stamps { " ts" } else { "" }
            ),
        };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, bars)) => bars.push((mode, figure.value)),
            None => groups.push((name, vec![(mode, figure.value)])),
        }
    }
    groups
}

/// Draws the figures of `report` to an SVG file.
pub fn instructions(path: &Path, report: &Report) -> Drawn {
    let root = SVGBackend::new(path, (1100, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let style = Style {
        caption: "instructions a KB of payload: driver, GRO and smoltcp",
        y: "instructions",
        letters: 20,
        legend: true,
    };
    bars(
        &root,
        &style,
        &Merging::ALL.map(Merging::name),
        &groups(report),
    )?;
    root.present()?;
    Ok(())
}
