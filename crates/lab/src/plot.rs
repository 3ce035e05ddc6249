//! Plots: distributions as SVG, one line for each number of processors.

use crate::probe::any_time;
use crate::report::CellResult;
use crate::text::{count, ms};
use crate::variant::VARIANTS;
use plotters::prelude::*;
use std::ops::Range;

/// A picture for the notes.
pub(crate) struct Plot {
    pub(crate) file: String,
    pub(crate) title: String,
    pub(crate) svg: String,
}

/// One line: its name and its samples in ms.
struct Curve {
    name: String,
    samples: Vec<f64>,
}

/// The family and size of everything but the title.
const FONT: (&str, i32) = ("sans-serif", 15);

const SIZE: (u32, u32) = (800, 400);

/// Readable on white, and apart for those who see few colours.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
];

/// Completion and the probe's lateness of every variant that has numbers.
pub(crate) fn all(cells: &[CellResult]) -> Vec<Plot> {
    let names = VARIANTS.iter().map(|variant| variant.name);
    names.flat_map(|name| variant(cells, name)).collect()
}

fn variant(cells: &[CellResult], name: &str) -> Vec<Plot> {
    let cells: Vec<&CellResult> =
        cells.iter().filter(|cell| cell.measured.cell.variant == name).collect();
    let completion =
        |cell: &&CellResult| curve(cell, cell.measured.tasks.iter().map(|task| task.done_ns));
    let lateness = |cell: &&CellResult| curve(cell, any_time(&cell.measured.probe));
    let done: Vec<Curve> = cells.iter().map(completion).collect();
    let late: Vec<Curve> = cells.iter().map(lateness).collect();
    let plots = [
        plot(
            format!("completion-{name}.svg"),
            format!("{name}: completion since the start"),
            &done,
        ),
        plot(
            format!("lateness-{name}.svg"),
            format!("{name}: how late a sleeper wakes that is due at any time"),
            &late,
        ),
    ];
    plots.into_iter().flatten().collect()
}

fn curve(cell: &CellResult, ns: impl Iterator<Item = u64>) -> Curve {
    let mut samples: Vec<f64> = ns.map(|ns| ns as f64 / 1e6).collect();
    samples.sort_unstable_by(f64::total_cmp);
    Curve { name: count(cell.measured.cell.procs, "processor"), samples }
}

/// None if there is nothing to draw.
fn plot(file: String, title: String, curves: &[Curve]) -> Option<Plot> {
    let largest = curves.iter().filter_map(|curve| curve.samples.last()).copied();
    let largest = largest.fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    // Drawing into a string can't fail; a picture less is not worth an error.
    draw(&mut svg, &title, curves, 0.0..largest * 1.02).ok()?;
    Some(Plot { file, title, svg })
}

fn draw(
    svg: &mut String,
    title: &str,
    curves: &[Curve],
    x: Range<f64>,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(10)
        .margin_right(25)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(x, 0.0..1.0)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("ms")
        .x_label_formatter(&tick)
        .label_style(FONT)
        .y_desc("part of all")
        .draw()?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(steps(&curve.samples), colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .label_font(FONT)
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// A number on the axis, without zeros that say nothing.
fn tick(x: &f64) -> String {
    let text = ms(x * 1e6);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The share of samples that are not larger, for some hundred of them at most: more would not be
/// seen.
fn steps(sorted: &[f64]) -> Vec<(f64, f64)> {
    const POINTS: usize = 400;
    let n = sorted.len();
    let points = n.min(POINTS);
    let point = |i: usize| {
        let rank = (i + 1) * n / points;
        (sorted[rank - 1], rank as f64 / n as f64)
    };
    (0..points).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::{Curve, plot, steps, tick};

    #[test]
    fn a_distribution_ends_with_everybody() {
        let many: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let steps = steps(&many);
        assert_eq!(steps.len(), 400);
        assert_eq!(steps.last(), Some(&(1_000.0, 1.0)));
        assert!(steps.is_sorted());
        assert_eq!(super::steps(&[5.0]), [(5.0, 1.0)]);
        assert!(super::steps(&[]).is_empty());
    }

    #[test]
    fn a_picture_is_svg() {
        let curve = Curve { name: "1 processor".to_owned(), samples: vec![1.0, 2.0, 4.0] };
        let plot = plot("f.svg".to_owned(), "title".to_owned(), &[curve]).expect("has samples");
        assert!(plot.svg.starts_with("<svg") && plot.svg.contains("1 processor"));
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(
            [0.0, 0.25, 5.0, 12.5, 2_000.0].map(|x| tick(&x)),
            ["0", "0.25", "5", "12.5", "2000"]
        );
    }

    #[test]
    fn nothing_to_draw_is_no_picture() {
        assert!(plot("f.svg".to_owned(), "title".to_owned(), &[]).is_none());
    }
}
