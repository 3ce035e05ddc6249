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
    longest_ns: AtomicU64,
}

impl Histogram {
    pub(crate) const fn new() -> Histogram {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], longest_ns: AtomicU64::new(0) }
    }

    pub(crate) fn record(&self, ns: u64) {
        // ORDERING: Relaxed for both; statistics.
        self.buckets[bucket(ns)].fetch_add(1, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
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
