//! What samples say.

use serde::Serialize;

/// Nearest-rank percentiles. All zero without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The smallest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// Nine of ten are not larger.
    pub p90: f64,
    /// 99 of 100 are not larger.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
}

impl Quantiles {
    pub(crate) fn of(samples: impl IntoIterator<Item = u64>) -> Quantiles {
        let mut sorted: Vec<u64> = samples.into_iter().collect();
        sorted.sort_unstable();
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Quantiles::default();
        };
        Quantiles {
            min: *min as f64,
            p50: nearest_rank(&sorted, 0.50),
            p90: nearest_rank(&sorted, 0.90),
            p99: nearest_rank(&sorted, 0.99),
            max: *max as f64,
            mean: sorted.iter().map(|sample| *sample as f64).sum::<f64>() / sorted.len() as f64,
        }
    }
}

/// `sorted` is not empty, and 0 < `p` <= 1.
fn nearest_rank(sorted: &[u64], p: f64) -> f64 {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

/// `y = offset + slope * x`, by least squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// At `x = 0`.
    pub offset: f64,
    /// For each step of `x`.
    pub slope: f64,
    /// R squared: which part of the variance of `y` the line accounts for.
    pub r2: f64,
}

impl Line {
    /// Through the points (0, `ys[0]`), (1, `ys[1]`), ...; flat through fewer than two points.
    pub(crate) fn through(ys: &[u64]) -> Line {
        let n = ys.len() as f64;
        let mean_x = (n - 1.0) / 2.0;
        let mean_y = ys.iter().map(|y| *y as f64).sum::<f64>() / n;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in ys.iter().enumerate() {
            let (dx, dy) = (x as f64 - mean_x, *y as f64 - mean_y);
            (xx, xy, yy) = (xx + dx * dx, xy + dx * dy, yy + dy * dy);
        }
        if xx == 0.0 || yy == 0.0 {
            return Line { offset: ys.first().map_or(0.0, |y| *y as f64), ..Line::default() };
        }
        let slope = xy / xx;
        Line { offset: mean_y - slope * mean_x, slope, r2: xy * xy / (xx * yy) }
    }
}

/// The largest number of intervals `[from, to)` that have an instant in common.
pub(crate) fn most_at_once(intervals: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut ends: Vec<(u64, i64)> =
        intervals.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    // At the same instant the end comes before the next beginning.
    ends.sort_unstable();
    let open = ends.iter().scan(0, |open, (_, step)| {
        *open += step;
        Some(*open)
    });
    open.max().map_or(0, |most| most.max(0) as usize)
}

#[cfg(test)]
mod tests;
