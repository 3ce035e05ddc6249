//! Times in buckets, counted from any thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets for each power of two, so that a bucket's end is at most a quarter beyond its beginning.
const PER_OCTAVE: usize = 4;
const BUCKETS: usize = 40 * PER_OCTAVE;

/// How often times of which size were seen.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// How often times of which size were seen: a copy of a histogram, or a sum of several.
///
/// Go's `metrics.Float64Histogram`, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Durations {
    /// How many there are in each bucket.
    pub counts: Vec<u64>,
    /// Where each bucket ends, itself not included, in nanoseconds. It begins where the one before
    /// ends, the first one at 0; what is longer than all is in the last.
    pub ends_ns: Vec<u64>,
    /// All of them together, in nanoseconds.
    pub sum_ns: u64,
}

impl Durations {
    pub(crate) fn none() -> Durations {
        Durations { counts: vec![0; BUCKETS], ends_ns: (0..BUCKETS).map(end).collect(), sum_ns: 0 }
    }

    pub(crate) fn add(&mut self, more: &Histogram) {
        // ORDERING: Relaxed for both; statistics.
        for (count, bucket) in self.counts.iter_mut().zip(&more.buckets) {
            *count += bucket.load(Relaxed);
        }
        self.sum_ns += more.sum_ns.load(Relaxed);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Histogram {
    pub(crate) const fn new() -> Histogram {
        Histogram {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn record(&self, ns: u64) {
        // ORDERING: Relaxed for all; statistics.
        self.buckets[bucket(ns)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
    }

    /// As [`record`](Histogram::record), by the only one who writes, without read-modify-write; the
    /// longest is not kept.
    pub(crate) fn record_alone(&self, ns: u64) {
        let add = |to: &AtomicU64, n: u64| {
            // ORDERING: Relaxed for both; a statistic with one writer.
            to.store(to.load(Relaxed) + n, Relaxed);
        };
        add(&self.buckets[bucket(ns)], 1);
        add(&self.sum_ns, ns);
    }

    pub(crate) fn count(&self) -> u64 {
        // ORDERING: Relaxed; as above.
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }

    pub(crate) fn longest(&self) -> Duration {
        // ORDERING: Relaxed; as above.
        Duration::from_nanos(self.longest_ns.load(Relaxed))
    }

    /// A time that so many percent of all did not exceed: a bucket's end, or the longest.
    pub(crate) fn percentile(&self, percent: u64) -> Duration {
        let mut left = (self.count() * percent).div_ceil(100);
        for (i, bucket) in self.buckets.iter().enumerate() {
            // ORDERING: Relaxed; as above.
            left = left.saturating_sub(bucket.load(Relaxed));
            if left == 0 {
                return Duration::from_nanos(end(i)).min(self.longest());
            }
        }
        self.longest()
    }
}

/// The octave, then the two bits after the leading one.
fn bucket(ns: u64) -> usize {
    let ns = ns.max(4);
    let octave = ns.ilog2() as usize;
    let quarter = (ns >> (octave - 2)) as usize & (PER_OCTAVE - 1);
    ((octave - 2) * PER_OCTAVE + quarter).min(BUCKETS - 1)
}

/// Where a bucket ends.
fn end(bucket: usize) -> u64 {
    let (octave, quarter) = (bucket / PER_OCTAVE + 2, bucket % PER_OCTAVE);
    ((PER_OCTAVE + quarter + 1) as u64) << (octave - 2)
}

#[cfg(test)]
mod tests;
