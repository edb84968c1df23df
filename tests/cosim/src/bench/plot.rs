//! Charts that several benches draw.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

/// Where a chart goes.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing ends in.
pub type Drawn = Result<(), Box<dyn Error>>;

/// What a chart says beside its values, and how large its letters are.
pub struct Style<'a> {
    /// Above it.
    pub caption: &'a str,
    /// Beside its vertical axis.
    pub y: &'a str,
    /// Size of the caption, in pixels.
    pub letters: u32,
    /// A legend inside, which needs room above the highest value.
    pub legend: bool,
}

/// Bars in groups: a group is a name and its bars, each the number of its series and a value.
///
/// # Errors
/// When the file cannot be written.
pub fn bars(
    area: &Area<'_>,
    style: &Style<'_>,
    series: &[&str],
    groups: &[(String, Vec<(usize, f64)>)],
) -> Drawn {
    let values = groups.iter().flat_map(|(_, bars)| bars);
    let most = values.map(|(_, value)| *value).fold(1e-3, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(style.caption, ("sans-serif", style.letters))
        .margin(10)
        .x_label_area_size(32)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..groups.len().max(1) as f64, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(2 * groups.len() + 1)
        .x_label_formatter(&|x: &f64| {
            let middle = (x.fract() - 0.5).abs() < 0.1;
            let name = groups.get(*x as usize).filter(|_| middle);
            name.map_or_else(String::new, |(name, _)| name.clone())
        })
        .y_desc(style.y)
        .draw()?;
    let width = 0.8 / series.len().max(1) as f64;
    for (at, name) in series.iter().enumerate() {
        let fill = Palette99::pick(at).filled();
        let all = groups.iter().enumerate().flat_map(|(group, (_, bars))| {
            let of_series = bars.iter().filter(move |(series, _)| *series == at);
            of_series.map(move |(_, value)| {
                let left = group as f64 + 0.1 + width * at as f64;
                Rectangle::new([(left, 0.0), (left + width * 0.9, *value)], fill)
            })
        });
        chart
            .draw_series(all)?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 10, y + 4)], fill));
    }
    if style.legend {
        let letters = style.letters * 3 / 4;
        legend(&mut chart, SeriesLabelPosition::UpperRight, letters)?;
    }
    Ok(())
}

/// Draws the legend of a chart whose series have labels.
///
/// # Errors
/// When the file cannot be written.
pub fn legend<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    position: SeriesLabelPosition,
    letters: u32,
) -> Drawn
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(("sans-serif", letters))
        .position(position)
        .draw()?;
    Ok(())
}

/// Draws the names and colours of all series in a line, for charts that have no legend of their own.
///
/// # Errors
/// When the file cannot be written.
pub fn key(area: &Area<'_>, series: &[&str], letters: u32) -> Drawn {
    let (width, height) = area.dim_in_pixel();
    let step = width as i32 / series.len().max(1) as i32;
    let middle = height as i32 / 2;
    for (at, name) in series.iter().enumerate() {
        let left = at as i32 * step + 12;
        let fill = Palette99::pick(at).filled();
        let bar = [(left, middle - 5), (left + 12, middle + 5)];
        area.draw(&Rectangle::new(bar, fill))?;
        let place = (left + 16, middle - letters as i32 / 2);
        area.draw(&Text::new(*name, place, ("sans-serif", letters)))?;
    }
    Ok(())
}
