//! A cell in a few numbers: what tables show and findings read.

use crate::probe;
use crate::record::{Counts, Measured, Task};
use crate::stats::{Line, Quantiles, most_at_once};
use serde::Serialize;

/// The numbers of one cell. Times are in ns, since the start of the cell unless said otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The name of the variant.
    pub variant: String,
    /// GOMAXPROCS.
    pub procs: usize,
    /// How many goroutines had the work to do.
    pub goroutines: usize,
    /// What each of them had to do.
    pub work_ns: f64,
    /// From each one's creation to its first instruction.
    pub wait: Quantiles,
    /// How long each one's computing took by the clock.
    pub own: Quantiles,
    /// How long each one took to compute a stretch, on average.
    pub turn: Quantiles,
    /// After its first instruction, neither computing nor done.
    pub rest: Quantiles,
    /// When each one was done.
    pub done: Quantiles,
    /// How late the probe woke, sleep by sleep.
    pub late: Quantiles,
    /// The same as if it had gone to sleep every ms however late it was: what a sleeper meets that
    /// is due at any time.
    pub late_any_time: Quantiles,
    /// The same before the start, with nothing else to run.
    pub alone: Quantiles,
    /// How often the probe slept beside the goroutines.
    pub probe_samples: usize,
    /// First instructions in the order in which they came, against their place in that order.
    pub queue: Line,
    /// The most goroutines that had begun and were not done.
    pub open_at_once: usize,
    /// Goroutines that were not done when one was that had begun after them.
    pub overtaken: usize,
    /// From the start until the last goroutine was joined.
    pub elapsed_ns: f64,
    /// CPU time of the process meanwhile.
    pub cpu_ns: f64,
    /// The most memory that the process had resident.
    pub peak_rss_bytes: u64,
    /// What the scheduler did.
    pub counts: Counts,
}

impl Summary {
    /// Summarises one cell.
    #[must_use]
    pub fn of(measured: &Measured) -> Summary {
        let tasks = &measured.tasks;
        let mut first_runs: Vec<u64> = tasks.iter().map(|task| task.first_run_ns).collect();
        first_runs.sort_unstable();
        Summary {
            variant: measured.cell.variant.clone(),
            procs: measured.cell.procs,
            goroutines: measured.cell.goroutines,
            work_ns: measured.cell.work_ns as f64,
            wait: Quantiles::of(tasks.iter().map(|task| task.wait_ns())),
            own: Quantiles::of(tasks.iter().map(|task| task.own_ns)),
            turn: Quantiles::of(tasks.iter().map(|task| task.turn_ns())),
            rest: Quantiles::of(tasks.iter().map(|task| task.rest_ns())),
            done: Quantiles::of(tasks.iter().map(|task| task.done_ns)),
            late: Quantiles::of(measured.probe.iter().map(|sample| sample.late_ns)),
            late_any_time: Quantiles::of(probe::any_time(&measured.probe)),
            alone: Quantiles::of(measured.alone_late_ns.iter().copied()),
            probe_samples: measured.probe.len(),
            queue: Line::through(&first_runs),
            open_at_once: most_at_once(tasks.iter().map(|task| (task.first_run_ns, task.done_ns))),
            overtaken: overtaken(tasks),
            elapsed_ns: measured.elapsed_ns as f64,
            cpu_ns: measured.cpu_ns as f64,
            peak_rss_bytes: measured.peak_rss_bytes,
            counts: measured.counts,
        }
    }
}

/// How many were not done when one was that had begun after them.
fn overtaken(tasks: &[Task]) -> usize {
    let mut by_first_run: Vec<_> =
        tasks.iter().map(|task| (task.first_run_ns, task.done_ns)).collect();
    by_first_run.sort_unstable();
    let mut earliest_later = u64::MAX;
    let mut count = 0;
    for (_, done_ns) in by_first_run.into_iter().rev() {
        count += usize::from(earliest_later < done_ns);
        earliest_later = earliest_later.min(done_ns);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::overtaken;
    use crate::synthetic::{in_turns, queue, stopped};

    #[test]
    fn nobody_is_overtaken_in_a_queue_or_in_turns() {
        assert_eq!(overtaken(&queue(100, 1)), 0);
        assert_eq!(overtaken(&in_turns(100, 1)), 0);
    }

    #[test]
    fn who_is_stopped_for_others_is_overtaken() {
        assert_eq!(overtaken(&stopped(100, 10)), 10);
        assert_eq!(overtaken(&[]), 0);
    }
}
