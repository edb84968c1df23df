//! Cycles per frame over frame size, one line a width and direction.

use std::collections::BTreeMap;
use std::path::Path;

use ferronic_cosim_tests::bench::plot::{Drawn, legend};
use ferronic_figures::Report;
use plotters::prelude::*;

type Lines = BTreeMap<(u64, String), Vec<(f64, f64)>>;

/// Lines of one queue at 125 cycles of read latency and MPS 256.
fn lines(report: &Report) -> Lines {
    let mut lines = Lines::new();
    for figure in &report.figures {
        let number = |name: &str| figure.params.get(name).and_then(|v| v.as_u64());
        let usual = number("queues") == Some(1)
            && number("latency_ns") == Some(1000)
            && number("mps") == Some(256)
            && !figure.params.contains_key("load");
        if figure.name != "cycles_per_frame" || !usual {
            continue;
        }
        if let (Some(width), Some(frame), Some(direction)) = (
            number("data_w"),
            number("frame_bytes"),
            figure.params.get("direction").and_then(|v| v.as_str()),
        ) {
            lines
                .entry((width, direction.to_owned()))
                .or_default()
                .push((frame as f64, figure.value));
        }
    }
    lines
}

/// Draws the figures of `report` to an SVG file.
pub fn cycles_per_frame(path: &Path, report: &Report) -> Drawn {
    let lines = lines(report);
    let root = SVGBackend::new(path, (800, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(
            "cycles per frame (1 queue, read latency 125 cycles)",
            ("sans-serif", 20),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((60f64..10_000f64).log_scale(), (4f64..4_000f64).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("bytes of a frame, without FCS")
        .y_desc("cycles")
        .draw()?;
    for (at, ((width, direction), points)) in lines.iter().enumerate() {
        let style = Palette99::pick(at).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style).point_size(3))?
            .label(format!("{width} bits, {direction}"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    // The limit of the data path: a beat in every cycle.
    for width in lines
        .keys()
        .map(|(width, _)| *width)
        .collect::<std::collections::BTreeSet<_>>()
    {
        let limit = (0..=60).map(|step| {
            let frame = 64.0 * (9014.0f64 / 64.0).powf(f64::from(step) / 60.0);
            (frame, ((frame + 12.0) / (width as f64 / 8.0)).ceil())
        });
        chart
            .draw_series(LineSeries::new(limit, BLACK.mix(0.4)))?
            .label(format!("limit at {width} bits"))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], BLACK.mix(0.4)));
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft, 12)?;
    root.present()?;
    Ok(())
}
