//! What one goroutine of the many does and writes down.

use crate::record::{Cell, Task};
use crate::variant::Body;
use crate::work::spin;
use gosched::runtime::gosched;
use gosched::thread::{JoinHandle, sleep};
use gosched::{blocking, go};
use std::time::{Duration, Instant};

/// What every goroutine of a cell is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    body: Body,
    work: Duration,
    rounds: u64,
    start: Instant,
}

impl Job {
    pub(crate) fn new(body: Body, cell: &Cell, start: Instant) -> Job {
        Job { body, work: Duration::from_nanos(cell.work_ns), rounds: cell.rounds, start }
    }

    /// Since the start of the cell.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        ns_since(self.start)
    }

    /// One of the many goroutines.
    pub(crate) fn spawn(self) -> JoinHandle<Task> {
        let created_ns = self.elapsed_ns();
        go(move || self.work(created_ns))
    }

    /// Runs in the goroutine, which was created at `created_ns`.
    pub(crate) fn work(self, created_ns: u64) -> Task {
        let first_run_ns = ns_since(self.start);
        let stretches = match self.body {
            Body::Compute => self.compute(1, || ()),
            Body::ComputeAndYield(every) => self.compute(stretches(self.work, every), gosched),
            Body::Sleep => not_computing(|| sleep(self.work)),
            Body::Block => not_computing(|| block(self.work)),
            Body::BlockDeclared => not_computing(|| blocking(|| block(self.work))),
        };
        let Stretches { own_ns, rounds, count } = stretches;
        let yields = count.saturating_sub(1);
        Task { created_ns, first_run_ns, done_ns: ns_since(self.start), own_ns, rounds, yields }
    }

    /// Computes in `count` stretches, with `between` between two of them.
    fn compute(self, count: u64, between: impl Fn()) -> Stretches {
        let mut done = Stretches::default();
        for i in 0..count {
            if i > 0 {
                between();
            }
            done.add(share(self.rounds, count, i));
        }
        done
    }
}

/// Whether a trace calls a goroutine of [`Job::spawn`] so.
pub(crate) fn is_one_of_many(function: &str) -> bool {
    function.contains("::task::Job::spawn")
}

/// Sleeps in the kernel, with the thread.
fn block(time: Duration) {
    std::thread::sleep(time);
}

fn not_computing(wait: impl FnOnce()) -> Stretches {
    wait();
    Stretches::default()
}

/// What has been computed so far.
#[derive(Default)]
struct Stretches {
    own_ns: u64,
    rounds: u64,
    count: u64,
}

impl Stretches {
    fn add(&mut self, rounds: u64) {
        let began = Instant::now();
        spin(rounds);
        self.own_ns += ns_since(began);
        self.rounds += rounds;
        self.count += 1;
    }
}

pub(crate) fn ns_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// How many stretches of about `every` the work has; at least two, or nobody would give way.
fn stretches(work: Duration, every: Duration) -> u64 {
    ((work.as_nanos() / every.as_nanos().max(1)) as u64).max(2)
}

/// The rounds of part `i` of `count` equal ones; what doesn't divide goes to the first parts.
fn share(rounds: u64, count: u64, i: u64) -> u64 {
    rounds / count + u64::from(i < rounds % count)
}

#[cfg(test)]
mod tests {
    use super::{share, stretches};
    use std::time::Duration;

    #[test]
    fn shares_are_the_whole() {
        for (rounds, count) in [(10, 3), (3, 10), (1_000_003, 100), (5, 1)] {
            assert_eq!((0..count).map(|i| share(rounds, count, i)).sum::<u64>(), rounds);
        }
    }

    #[test]
    fn stretches_of_the_work() {
        let us = Duration::from_micros;
        assert_eq!(stretches(us(10_000), us(100)), 100);
        assert_eq!(stretches(us(50), us(100)), 2);
    }
}
