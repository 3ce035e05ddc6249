//! What a run is to do.

use crate::record::Cell;
use crate::variant::{Body, VARIANTS, Variant};
use std::time::Duration;

/// The size of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Goroutines in each cell.
    pub goroutines: usize,
    /// What each of them has to do.
    pub work: Duration,
    /// Numbers of processors, each with every variant.
    pub procs: Vec<usize>,
}

impl Plan {
    /// The cells, variant by variant; `rounds` of computing are the work.
    pub(crate) fn cells(&self, rounds: u64) -> Vec<Cell> {
        let cell = |variant: &Variant, procs: usize| Cell {
            variant: variant.name.to_owned(),
            procs,
            goroutines: self.goroutines,
            work_ns: self.work.as_nanos() as u64,
            rounds,
        };
        VARIANTS
            .iter()
            .flat_map(|variant| self.procs.iter().map(move |procs| cell(variant, *procs)))
            .collect()
    }

    /// About how long the run takes when it has `cpus` for itself.
    #[must_use]
    pub fn estimate(&self, cpus: usize) -> Duration {
        let computing = VARIANTS
            .iter()
            .filter(|variant| matches!(variant.body, Body::Compute | Body::ComputeAndYield(_)));
        let all = self.work * u32::try_from(self.goroutines).unwrap_or(u32::MAX);
        let cell = |procs: &usize| all / u32::try_from((*procs).min(cpus)).unwrap_or(u32::MAX);
        computing.count() as u32 * self.procs.iter().map(cell).sum::<Duration>()
    }
}

/// CPUs that this process may use.
#[must_use]
pub fn cpus() -> usize {
    gosched::runtime::num_cpu()
}

/// The distinct values of 1, 2, `cpus` and twice `cpus`, in ascending order.
#[must_use]
pub fn default_procs(cpus: usize) -> Vec<usize> {
    let mut procs = vec![1, 2, cpus, 2 * cpus];
    procs.sort_unstable();
    procs.dedup();
    procs
}

#[cfg(test)]
mod tests {
    use super::{Plan, VARIANTS, default_procs};
    use std::time::Duration;

    #[test]
    fn distinct_processors() {
        assert_eq!(default_procs(1), [1, 2]);
        assert_eq!(default_procs(2), [1, 2, 4]);
        assert_eq!(default_procs(16), [1, 2, 16, 32]);
    }

    #[test]
    fn a_cell_for_each_variant_and_number() {
        let plan = Plan { goroutines: 5, work: Duration::from_millis(10), procs: vec![1, 4] };
        let cells = plan.cells(7);
        let names = cells.iter().map(|cell| (cell.variant.as_str(), cell.procs));
        let expected = VARIANTS.iter().flat_map(|variant| [1, 4].map(|n| (variant.name, n)));
        assert_eq!(names.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(cells.iter().all(|cell| cell.rounds == 7 && cell.work_ns == 10_000_000));
    }

    #[test]
    fn the_estimate_counts_the_cpus_there_are() {
        let plan =
            Plan { goroutines: 1_000, work: Duration::from_millis(10), procs: vec![1, 2, 4] };
        assert_eq!(plan.estimate(2), Duration::from_secs(3 * (10 + 5 + 5)));
    }
}
