//! Instructions a KB by who merges, a group for each stream.

use std::path::Path;

use ferronic::lro::Merging;
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
pub fn instructions(path: &Path, report: &Report) -> Result<(), Box<dyn std::error::Error>> {
    let groups = groups(report);
    let values = groups.iter().flat_map(|(_, bars)| bars);
    let most = values.map(|(_, value)| *value).fold(1.0, f64::max);
    let root = SVGBackend::new(path, (1100, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(
            "instructions a KB of payload: driver, GRO and smoltcp",
            ("sans-serif", 20),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..groups.len().max(1) as f64, 0.0..most * 1.1)?;
    let names: Vec<_> = groups.iter().map(|(name, _)| name.clone()).collect();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * groups.len() + 1)
        .x_label_formatter(&|x: &f64| {
            let middle = (x.fract() - 0.5).abs() < 0.1;
            let name = names.get(*x as usize).filter(|_| middle);
            name.cloned().unwrap_or_default()
        })
        .y_desc("instructions")
        .draw()?;
    for (at, mode) in Merging::ALL.iter().enumerate() {
        let style = Palette99::pick(at).filled();
        let bars = groups.iter().enumerate().flat_map(|(group, (_, bars))| {
            let of_mode = bars.iter().filter(move |(mode, _)| *mode == at);
            of_mode.map(move |(_, value)| {
                let left = group as f64 + 0.1 + 0.2 * at as f64;
                Rectangle::new([(left, 0.0), (left + 0.18, *value)], style)
            })
        });
        chart
            .draw_series(bars)?
            .label(mode.name())
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], style));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    root.present()?;
    Ok(())
}
