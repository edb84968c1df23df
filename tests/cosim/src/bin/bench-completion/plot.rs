//! The measurements drawn: interrupts and delays of the three workloads, fairness over senders.

use std::path::Path;

use ferronic::CompletionPolicy;
use ferronic_cosim_tests::completion::{Order, Outcome};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::{Case, Row};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Done = Result<(), Box<dyn std::error::Error>>;

fn color(policy: CompletionPolicy) -> RGBColor {
    let at = CompletionPolicy::ALL
        .iter()
        .position(|p| p.name() == policy.name());
    let (r, g, b) = Palette99::COLORS[at.unwrap_or(0)];
    RGBColor(r, g, b)
}

/// Draws all to an SVG file.
pub fn all(path: &Path, rows: &[Row]) -> Done {
    let root = SVGBackend::new(path, (1200, 1500)).into_drawing_area();
    root.fill(&WHITE)?;
    let areas = root.split_evenly((5, 2));
    let workloads = ["bulk", "ping", "ping-preload"];
    let groups: Vec<(&str, Vec<(CompletionPolicy, &Outcome)>)> = workloads
        .into_iter()
        .map(|name| {
            let of_name = rows.iter().filter(|row| row.case.name() == name);
            let found = of_name.filter_map(|row| Some((row.policy, row.outcome.as_ref().ok()?)));
            (name, found.collect())
        })
        .collect();
    bars(&areas[0], "interrupts a packet", &groups, |o| {
        o.interrupts_per_packet()
    })?;
    bars(
        &areas[1],
        "longest completion delay, log10 of us",
        &groups,
        |o| o.delay.max.max(1.0).log10(),
    )?;
    bars(&areas[2], "simulated time, log10 of us", &groups, |o| {
        o.simulated_us.max(1.0).log10()
    })?;
    bars(&areas[3], "cycles of the host a packet", &groups, |o| {
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

fn bars(
    area: &Area<'_>,
    caption: &str,
    groups: &[(&str, Vec<(CompletionPolicy, &Outcome)>)],
    value: impl Fn(&Outcome) -> f64,
) -> Done {
    let values = groups.iter().flat_map(|(_, bars)| bars.iter());
    let most = values.map(|(_, o)| value(o)).fold(1e-3, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..groups.len() as f64, 0.0..most * 1.5)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * groups.len() + 1)
        .x_label_formatter(&|x: &f64| {
            let middle = (x.fract() - 0.5).abs() < 0.1;
            let name = groups.get(*x as usize).filter(|_| middle);
            name.map_or(String::new(), |(name, _)| (*name).to_owned())
        })
        .draw()?;
    for (at, policy) in CompletionPolicy::ALL.into_iter().enumerate() {
        let style = color(policy).filled();
        let all = groups.iter().enumerate().filter_map(|(group, (_, bars))| {
            let (_, outcome) = bars
                .iter()
                .find(|(other, _)| other.name() == policy.name())?;
            let left = group as f64 + 0.1 + 0.1 * at as f64;
            Some(Rectangle::new(
                [(left, 0.0), (left + 0.09, value(outcome))],
                style,
            ))
        });
        chart
            .draw_series(all)?
            .label(policy.name())
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 10, y + 4)], style));
    }
    legend(&mut chart)
}

fn lines(
    area: &Area<'_>,
    caption: &str,
    rows: &[Row],
    order: Order,
    value: impl Fn(&Outcome) -> f64,
) -> Done {
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
        .build_cartesian_2d(0.0..widest, 0.0..most * 1.4)?;
    chart.configure_mesh().draw()?;
    for policy in CompletionPolicy::ALL {
        let color = color(policy);
        chart
            .draw_series(LineSeries::new(points(Some(policy)), color.stroke_width(2)))?
            .label(policy.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 10, y)], color));
    }
    legend(&mut chart)
}

fn legend<'a>(
    chart: &mut ChartContext<
        'a,
        SVGBackend<'a>,
        Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
    >,
) -> Done {
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(("sans-serif", 10))
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    Ok(())
}
