//! Distributions as curves: which part of all samples is not larger.

use crate::svg::{self, line, text};
use crate::text::ms;
use std::fmt::Write;

/// One curve: its name and its samples in ms, in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) samples: Vec<f64>,
}

impl Curve {
    pub(crate) fn of(name: String, ns: impl Iterator<Item = u64>) -> Curve {
        let mut samples: Vec<f64> = ns.map(|ns| ns as f64 / 1e6).collect();
        samples.sort_unstable_by(f64::total_cmp);
        Curve { name, samples }
    }
}

/// How the axis of the times goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From 0.
    Linear,
    /// Each decade as wide as the next.
    Log,
}

/// A picture with some curves.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) scale: Scale,
    pub(crate) curves: Vec<Curve>,
}

pub(crate) const SIZE: (f64, f64) = (520.0, 300.0);
const LEFT: f64 = 52.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 42.0;

/// What is smaller is drawn at the left end of a logarithmic axis, in ms.
const SMALLEST: f64 = 0.001;

/// The axis of the times: what it shows, from where to where.
struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
}

impl Axis {
    fn of(scale: Scale, curves: &[Curve]) -> Option<Axis> {
        let all = || curves.iter().flat_map(|curve| &curve.samples).copied();
        let largest = all().fold(0.0, f64::max);
        if largest <= 0.0 {
            return None;
        }
        Some(match scale {
            Scale::Linear => Axis { scale, from: 0.0, to: largest * 1.02 },
            Scale::Log => {
                let smallest = all().fold(largest, f64::min).max(SMALLEST);
                let from = smallest.log10().floor();
                Axis { scale, from, to: (largest.log10() + 0.05).max(from + 1.0) }
            }
        })
    }

    fn x(&self, ms: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => ms,
            Scale::Log => ms.max(SMALLEST).log10(),
        };
        let part = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        LEFT + part * (SIZE.0 - LEFT - RIGHT)
    }

    /// What stands at a mark: decades have units, and the others the axis' own.
    fn label(&self, ms: f64) -> String {
        match self.scale {
            Scale::Linear => label(ms),
            Scale::Log if ms >= 1e3 => format!("{} s", label(ms / 1e3)),
            Scale::Log if ms < 1.0 => format!("{} us", label((ms * 1e3).round())),
            Scale::Log => format!("{} ms", label(ms)),
        }
    }

    /// Where there are marks, in ms.
    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.to);
                (0..).map(|i| f64::from(i) * step).take_while(|x| *x <= self.to).collect()
            }
            Scale::Log => {
                let (from, to) = (self.from as i32, self.to.floor() as i32);
                (from..=to).map(|decade| 10_f64.powi(decade)).collect()
            }
        }
    }
}

/// A round distance with which six marks or so reach `to`.
pub(crate) fn step(to: f64) -> f64 {
    let rough = to / 6.0;
    let decade = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|n| n * decade);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * decade)
}

fn y(part: f64) -> f64 {
    SIZE.1 - BOTTOM - part * (SIZE.1 - TOP - BOTTOM)
}

impl Chart {
    /// The drawing, without its frame; none if there is nothing to draw.
    pub(crate) fn content(&self) -> Option<String> {
        let axis = Axis::of(self.scale, &self.curves)?;
        let mut out = String::new();
        text(&mut out, (12.0, 22.0), "title", &self.title);
        self.legend(&mut out);
        frame(&mut out, &axis);
        for (i, curve) in self.curves.iter().enumerate() {
            let _ = write!(out, "<path class=\"l l{}\" d=\"{}\"/>", i % 5, path(curve, &axis));
        }
        Some(out)
    }

    fn legend(&self, out: &mut String) {
        let mut x = LEFT;
        for (i, curve) in self.curves.iter().enumerate() {
            line(out, (x, 39.0), (x + 20.0, 39.0), &format!("l l{}", i % 5));
            text(out, (x + 25.0, 43.0), "", &curve.name);
            x += 25.0 + svg::width(&curve.name) + 16.0;
        }
    }
}

fn frame(out: &mut String, axis: &Axis) {
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        line(out, (LEFT, y(part)), (SIZE.0 - RIGHT, y(part)), "grid");
        text(out, (LEFT - 6.0, y(part) + 4.0), "end soft", &format!("{:.0} %", 100.0 * part));
    }
    for tick in axis.ticks() {
        let x = axis.x(tick);
        line(out, (x, y(1.0)), (x, y(0.0) + 4.0), "grid");
        text(out, (x, y(0.0) + 18.0), "mid soft", &axis.label(tick));
    }
    line(out, (LEFT, y(0.0)), (SIZE.0 - RIGHT, y(0.0)), "axis");
    let unit = match axis.scale {
        Scale::Linear => "ms",
        Scale::Log => "logarithmic",
    };
    text(out, (SIZE.0 - RIGHT, SIZE.1 - 8.0), "end soft", unit);
}

/// A number on the axis, without zeros that say nothing.
pub(crate) fn label(x: f64) -> String {
    let text = ms(x * 1e6);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn path(curve: &Curve, axis: &Axis) -> String {
    let mut path = String::new();
    let points = steps(&curve.samples);
    let first = points.first().map(|(ms, _)| (*ms, 0.0));
    for (i, (ms, part)) in first.into_iter().chain(points).enumerate() {
        let to = if i == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{to}{:.1} {:.1}", axis.x(ms), y(part));
    }
    path
}

/// The part of samples that are not larger, for some hundred of them at most: more would not be
/// seen.
fn steps(sorted: &[f64]) -> Vec<(f64, f64)> {
    const POINTS: usize = 300;
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
    use super::{Axis, Chart, Curve, Scale, label, step, steps};

    fn curve(samples: &[u64]) -> Curve {
        Curve::of("1 processor".to_owned(), samples.iter().copied())
    }

    #[test]
    fn a_distribution_ends_with_everybody() {
        let many: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let steps = steps(&many);
        assert_eq!(steps.len(), 300);
        assert_eq!(steps.last(), Some(&(1_000.0, 1.0)));
        assert!(steps.is_sorted());
        assert_eq!(super::steps(&[5.0]), [(5.0, 1.0)]);
        assert!(super::steps(&[]).is_empty());
    }

    #[test]
    fn curves_and_their_names_are_drawn() {
        for scale in [Scale::Linear, Scale::Log] {
            let curves = vec![curve(&[1_000_000, 4_000_000, 2_000_000])];
            let chart = Chart { title: "a title".to_owned(), scale, curves };
            let content = chart.content().expect("has samples");
            for words in ["a title", "1 processor", "class=\"l l0\"", "100 %"] {
                assert!(content.contains(words), "{words}: {content}");
            }
        }
    }

    #[test]
    fn nothing_to_draw_is_no_picture() {
        for curves in [vec![], vec![curve(&[])], vec![curve(&[0, 0])]] {
            let chart = Chart { title: String::new(), scale: Scale::Log, curves };
            assert!(chart.content().is_none());
        }
    }

    #[test]
    fn marks_are_round() {
        let ticks = |scale, samples| Axis::of(scale, &[curve(samples)]).expect("some").ticks();
        assert_eq!(ticks(Scale::Linear, &[9_000_000]), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(Scale::Log, &[30_000, 7_000_000]), [0.01, 0.1, 1.0]);
        assert_eq!(ticks(Scale::Log, &[30_000, 40_000]), [0.01, 0.1]);
        let axis = Axis { scale: Scale::Log, from: -3.0, to: 4.0 };
        let labels = [0.001, 0.1, 1.0, 100.0, 1e4].map(|ms| axis.label(ms));
        assert_eq!(labels, ["1 us", "100 us", "1 ms", "100 ms", "10 s"]);
        assert_eq!([step(1.0), step(5.9), step(6.1), step(1e4)], [0.2, 1.0, 2.0, 2e3]);
        assert_eq!([0.0, 0.25, 5.0, 12.5, 2_000.0].map(label), ["0", "0.25", "5", "12.5", "2000"]);
    }
}
