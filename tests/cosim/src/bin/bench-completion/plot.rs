//! The measurements drawn: interrupts and delays of the three workloads, fairness over senders.

use std::path::Path;

use ferronic::CompletionPolicy;
use ferronic_cosim_tests::bench::plot::{Area, Drawn, Style, bars, key};
use ferronic_cosim_tests::completion::{Order, Outcome};
use plotters::prelude::*;

use crate::{Case, Row};

/// Size of captions.
const LETTERS: u32 = 16;

/// The place of a policy among all, whatever its settings.
fn number(policy: CompletionPolicy) -> usize {
    let mut all = CompletionPolicy::ALL.iter();
    all.position(|p| p.name() == policy.name()).unwrap_or(0)
}

/// Draws all to an SVG file.
pub fn all(path: &Path, rows: &[Row]) -> Drawn {
    let root = SVGBackend::new(path, (1200, 1500)).into_drawing_area();
    root.fill(&WHITE)?;
    let (top, rest) = root.split_vertically(40);
    let names = CompletionPolicy::ALL.map(|policy| policy.name());
    key(&top, &names, LETTERS * 7 / 8)?;
    let areas = rest.split_evenly((5, 2));
    by_workload(&areas[0], "interrupts a packet", rows, |o| {
        o.interrupts_per_packet()
    })?;
    by_workload(
        &areas[1],
        "longest completion delay, log10 of us",
        rows,
        |o| o.delay.max.max(1.0).log10(),
    )?;
    by_workload(&areas[2], "simulated time, log10 of us", rows, |o| {
        o.simulated_us.max(1.0).log10()
    })?;
    by_workload(&areas[3], "cycles of the host a packet", rows, |o| {
        o.host_cycles as f64 / o.packets.max(1) as f64
    })?;
    for (order, areas) in [
        (Order::Fair, &areas[4..7]),
        (Order::Adversarial, &areas[7..10]),
    ] {
        let name = order.name();
        lines(
            &areas[0],
            &format!("Jain's index over senders, {name}"),
            rows,
            order,
            |o| o.jain(),
        )?;
        lines(
            &areas[1],
            &format!("ping-pong rounds, {name}"),
            rows,
            order,
            |o| o.rounds as f64,
        )?;
        lines(
            &areas[2],
            &format!("longest delay, log10 of us, {name}"),
            rows,
            order,
            |o| o.delay.max.max(1.0).log10(),
        )?;
    }
    root.present()?;
    Ok(())
}

/// Bars of a value by workload.
fn by_workload(
    area: &Area<'_>,
    caption: &str,
    rows: &[Row],
    value: impl Fn(&Outcome) -> f64,
) -> Drawn {
    let groups = ["bulk", "ping", "ping-preload"].map(|name| {
        let of_name = rows.iter().filter(|row| row.case.name() == name);
        let bars = of_name.filter_map(|row| {
            let outcome = row.outcome.as_ref().ok()?;
            Some((number(row.policy), value(outcome)))
        });
        (name.to_owned(), bars.collect())
    });
    let style = Style {
        caption,
        y: "",
        letters: LETTERS,
        legend: false,
    };
    let names = CompletionPolicy::ALL.map(|policy| policy.name());
    bars(area, &style, &names, &groups)
}

fn lines(
    area: &Area<'_>,
    caption: &str,
    rows: &[Row],
    order: Order,
    value: impl Fn(&Outcome) -> f64,
) -> Drawn {
    let points = |policy: Option<CompletionPolicy>| -> Vec<(f64, f64)> {
        let of_policy = rows
            .iter()
            .filter(|row| policy.is_none_or(|p| row.policy.name() == p.name()));
        let found = of_policy.filter_map(|row| match (row.case, &row.outcome) {
            (Case::Fairness(n, o, _), Ok(outcome)) if o == order => {
                Some((f64::from(n), value(outcome)))
            }
            _ => None,
        });
        found.collect()
    };
    let all = points(None);
    let widest = all.iter().map(|(x, _)| *x).fold(1.0, f64::max);
    let most = all.iter().map(|(_, y)| *y).fold(1e-3, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..widest, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .draw()?;
    for policy in CompletionPolicy::ALL {
        let color = Palette99::pick(number(policy)).to_rgba();
        chart.draw_series(LineSeries::new(points(Some(policy)), color.stroke_width(2)))?;
    }
    Ok(())
}
