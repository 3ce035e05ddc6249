//! What a run is to do.

use crate::record::Cell;
use crate::variant::{self, Body, Runner, VARIANTS, Variant};
use std::time::Duration;

/// The size of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Goroutines in each cell.
    pub goroutines: usize,
    /// What each of them has to do.
    pub work: Duration,
    /// Numbers of processors, each with every variant; in ascending order.
    pub procs: Vec<usize>,
    /// Whether an execution trace is taken of a repetition of every variant with goroutines, on the
    /// first [`TRACED`] of the numbers of processors.
    pub trace: bool,
}

/// On how many numbers of processors a variant is repeated with a trace.
pub const TRACED: usize = 2;

impl Plan {
    /// The cells, variant by variant; `rounds` of computing are the work. Threads have no processors,
    /// so they can't have more than the `cpus`.
    pub(crate) fn cells(&self, rounds: u64, cpus: usize) -> Vec<Cell> {
        let makes_sense = |variant: &Variant, procs: usize| {
            variant.runner != Runner::Threads || procs <= cpus || self.procs.first() == Some(&procs)
        };
        let of_variant = |variant: &'static Variant| {
            let procs = self.procs.iter().filter(move |procs| makes_sense(variant, **procs));
            procs.map(move |procs| self.cell(variant, *procs, rounds))
        };
        VARIANTS.iter().flat_map(of_variant).collect()
    }

    /// Those that are repeated with a trace.
    pub(crate) fn traced(&self, rounds: u64) -> Vec<Cell> {
        if !self.trace {
            return Vec::new();
        }
        let procs = &self.procs[..self.procs.len().min(TRACED)];
        VARIANTS
            .iter()
            .filter(|variant| variant.runner == Runner::Goroutines)
            .flat_map(|variant| procs.iter().map(|procs| self.cell(variant, *procs, rounds)))
            .collect()
    }

    fn cell(&self, variant: &Variant, procs: usize, rounds: u64) -> Cell {
        Cell {
            variant: variant.name.to_owned(),
            procs,
            goroutines: self.goroutines,
            work_ns: self.work.as_nanos() as u64,
            rounds,
            trace: None,
        }
    }

    /// About how long the run takes when it has `cpus` for itself.
    #[must_use]
    pub fn estimate(&self, cpus: usize) -> Duration {
        let all = self.work * u32::try_from(self.goroutines).unwrap_or(u32::MAX);
        let time = |cell: &Cell| match variant::find(&cell.variant)?.body {
            Body::Compute | Body::ComputeAndYield(_) => {
                Some(all / u32::try_from(cell.procs.min(cpus)).unwrap_or(u32::MAX))
            }
            Body::Sleep | Body::Block | Body::BlockDeclared => None,
        };
        [self.cells(0, cpus), self.traced(0)].iter().flatten().filter_map(time).sum()
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
    use super::{Plan, TRACED, VARIANTS, default_procs};
    use crate::variant::THREADS;
    use std::time::Duration;

    #[test]
    fn distinct_processors() {
        assert_eq!(default_procs(1), [1, 2]);
        assert_eq!(default_procs(2), [1, 2, 4]);
        assert_eq!(default_procs(16), [1, 2, 16, 32]);
    }

    fn plan(procs: &[usize], trace: bool) -> Plan {
        let (work, procs) = (Duration::from_millis(10), procs.to_vec());
        Plan { goroutines: 1_000, work, procs, trace }
    }

    #[test]
    fn a_cell_for_each_variant_and_number() {
        let cells = plan(&[1, 4], false).cells(7, 4);
        let names = cells.iter().map(|cell| (cell.variant.as_str(), cell.procs));
        let expected = VARIANTS.iter().flat_map(|variant| [1, 4].map(|n| (variant.name, n)));
        assert_eq!(names.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(cells.iter().all(|cell| cell.rounds == 7 && cell.work_ns == 10_000_000));
        assert!(plan(&[1, 4], false).traced(7).is_empty());
    }

    #[test]
    fn threads_have_the_cpus_and_no_more() {
        let procs = |procs: &[usize]| {
            let cells = plan(procs, false).cells(7, 2).into_iter();
            cells.filter(|cell| cell.variant == THREADS).map(|cell| cell.procs).collect::<Vec<_>>()
        };
        assert_eq!(procs(&[1, 2, 4]), [1, 2]);
        assert_eq!(procs(&[4, 8]), [4]);
    }

    #[test]
    fn goroutines_are_traced_on_the_fewest_processors() {
        let traced = plan(&[1, 2, 4], true).traced(7);
        assert_eq!(traced.len(), 6 * TRACED);
        assert!(traced.iter().all(|cell| cell.procs <= 2 && cell.variant != THREADS));
    }

    #[test]
    fn the_estimate_counts_the_cpus_there_are() {
        // Four ways to compute, and threads on no more than the CPUs.
        let seconds = 4 * (10 + 5 + 5) + (10 + 5);
        assert_eq!(plan(&[1, 2, 4], false).estimate(2), Duration::from_secs(seconds));
        let traced = 3 * (10 + 5);
        assert_eq!(plan(&[1, 2, 4], true).estimate(2), Duration::from_secs(seconds + traced));
    }
}
