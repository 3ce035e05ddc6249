//! Made-up cells for tests: what the theory expects, and its opposite.

use crate::record::{Cell, Counts, Measured, Sample, Task};
use crate::traced::{ProcessorEvents, Role, Span, Stretch, Traced, TracedSleep};

pub(crate) const WORK: u64 = 10_000_000;
const SLICE: u64 = 100_000;
const STRETCHES: u64 = WORK / SLICE;

pub(crate) fn cell(variant: &str, procs: usize, tasks: Vec<Task>, late_ns: &[u64]) -> Measured {
    let elapsed_ns = tasks.iter().map(|task| task.done_ns).max().unwrap_or(0);
    let goroutines = tasks.len();
    Measured {
        cell: Cell {
            variant: variant.to_owned(),
            procs,
            goroutines,
            work_ns: WORK,
            rounds: 1_000,
            trace: None,
        },
        gomaxprocs: procs,
        elapsed_ns,
        cpu_ns: tasks.iter().map(|task| task.own_ns).sum(),
        peak_rss_bytes: 4 << 20,
        tasks,
        alone_late_ns: vec![60_000; 50],
        probe: late_ns.iter().map(|late_ns| Sample { at_ns: 0, late_ns: *late_ns }).collect(),
        counts: Counts::default(),
    }
}

fn task(first_run_ns: u64, done_ns: u64) -> Task {
    Task { created_ns: 0, first_run_ns, done_ns, own_ns: WORK, rounds: 1_000, yields: 0 }
}

/// One after another on each processor.
pub(crate) fn queue(count: u64, procs: u64) -> Vec<Task> {
    let first = |k: u64| k / procs * WORK;
    (0..count).map(|k| task(first(k), first(k) + WORK)).collect()
}

/// In turns, all of them.
pub(crate) fn in_turns(count: u64, procs: u64) -> Vec<Task> {
    let last = count * WORK / procs;
    let turn = |k: u64| Task {
        yields: STRETCHES - 1,
        ..task(k * SLICE / procs, last - (count - 1 - k) * SLICE / procs)
    };
    (0..count).map(turn).collect()
}

/// One after another on one processor, and each `every`-th is stopped just before it is done and goes
/// on when all others are.
pub(crate) fn stopped(count: u64, every: u64) -> Vec<Task> {
    let end = count * WORK;
    let late = |k: u64| {
        let done = end + k * SLICE;
        Task { own_ns: done - k * WORK, ..task(k * WORK, done) }
    };
    let in_time = |k: u64| task(k * WORK, (k + 1) * WORK);
    (0..count).map(|k| if k % every == 0 { late(k) } else { in_time(k) }).collect()
}

/// Beside each other, a microsecond apart.
pub(crate) fn asleep(count: u64) -> Vec<Task> {
    let sleeper = |k: u64| Task { own_ns: 0, rounds: 0, ..task(k * 1_000, k * 1_000 + WORK) };
    (0..count).map(sleeper).collect()
}

/// Without work for the CPU, one after another.
pub(crate) fn asleep_in_a_queue(count: u64) -> Vec<Task> {
    let sleeper = |task: Task| Task { own_ns: 0, rounds: 0, ..task };
    queue(count, 1).into_iter().map(sleeper).collect()
}

/// A trace in which one of the many runs for 10 ms on each processor, while the probe waits.
pub(crate) fn traced(variant: &str, procs: usize) -> Traced {
    let events = |p: Option<u64>| ProcessorEvents {
        p,
        busy_ns: WORK,
        held_ns: WORK,
        events: [("GoStart", 3), ("ProcStart", 1), ("GoSyscallBegin", 1)].into(),
    };
    let run = |p: u64| Stretch { p, role: Role::Many(p), from_ns: 0, to_ns: WORK as i64 };
    let span = |what: &str| Span { what: what.to_owned(), from_ns: 20_000_000, took_ns: 7_000 };
    let sleep = TracedSleep { from_ns: -500_000, ready_ns: 700_000, ran_ns: 10_000_000 };
    Traced {
        variant: variant.to_owned(),
        procs,
        file: format!("{variant}-{procs}.trace"),
        bytes: 1_000,
        elapsed_ns: WORK,
        cpu_ns: WORK * procs as u64,
        span_ns: 2 * WORK,
        generations: 1,
        events: 5 * (procs as u64 + 1),
        most_running: procs,
        goroutines: procs,
        processors: [None].into_iter().chain((0..procs as u64).map(Some)).map(events).collect(),
        stops: vec![span("GOMAXPROCS")],
        collections: vec![span("collection")],
        procs_changes: vec![(0, procs as u64)],
        given_up: [("preempted".to_owned(), 5)].into(),
        sleeps: vec![sleep],
        runs: (0..procs as u64).map(run).collect(),
    }
}
