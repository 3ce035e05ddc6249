//! What samples say.

use std::time::{Duration, Instant};

/// Samples in ascending order.
#[derive(Debug)]
pub(crate) struct Sorted(Vec<u64>);

impl Sorted {
    pub(crate) fn new(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        Sorted(samples)
    }

    /// The nearest-rank percentile, 0 < `p` <= 1; 0 when there are no samples.
    pub(crate) fn at(&self, p: f64) -> f64 {
        let rank = (p * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).map_or(0.0, |sample| *sample as f64)
    }
}

/// How much longer than `asked` it has been since `start`, in ns.
pub(crate) fn late_ns(start: Instant, asked: Duration) -> u64 {
    start.elapsed().saturating_sub(asked).as_nanos() as u64
}

#[cfg(test)]
mod tests;
