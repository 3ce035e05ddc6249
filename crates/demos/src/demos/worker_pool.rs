//! `worker-pool`: a worker pool that knows its limits.

mod pool;

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::count;
use gosched::sync::Arc;
use gosched::{go, runtime, thread};
use pool::{Done, Job, Log, Monitor, Patience, WorkerPool};
use std::time::{Duration, Instant};

pub(super) const DEMO: Demo = Demo {
    name: "worker-pool",
    about: "a worker pool with a limit for what computes, and an orderly end",
    question: "Twice as many workers as processors take 20 jobs, half of which compute and half of \
        which wait; those that compute need a permit of a semaphore with one for each processor. \
        Look at what is left at the end: one goroutine, unless somebody was forgotten.",
    size: Size {
        what: "million rounds of each job that computes",
        usual: 10,
        quick: 1,
        most: 1_000,
    },
    wants_folder: false,
    columns: &["results", "refused", "late", "goroutines_before", "goroutines_after"],
    cases: &[
        Case::new(Right, GOOD, good),
        Case::new(Right, LATE, too_late),
        Case::new(Wrong, FORGOTTEN, forgotten),
    ],
    explain,
};

const GOOD: &str = "shut down in time";
const LATE: &str = "shut down too late";
const FORGOTTEN: &str = "monitor forgotten";
const JOBS: usize = 20;
const HOUR: Duration = Duration::from_secs(3600);

/// The whole demonstration, with its lines.
fn good(setup: &Setup) -> Result<Figures, String> {
    let log = logging(setup);
    log("=== Go Scheduler Configuration ===".into());
    log(format!("Go version: {}", runtime::version()));
    log(format!("GOMAXPROCS: {}", runtime::gomaxprocs(0)));
    log(format!("NumCPU: {}", runtime::num_cpu()));
    let figures = scheduler_behavior(setup, &log)?;
    log("\n=== Work Stealing Demo ===".into());
    let start = Instant::now();
    super::stealing::create_on_all(100, 100);
    log(format!("Completed uneven workload in {:?}", start.elapsed()));
    log("(Work stealing balances load across Ps)".into());
    log("\n=== Demo Complete ===".into());
    Ok(figures)
}

fn logging(setup: &Setup) -> Log {
    let say = setup.say.clone();
    Arc::new(move |line: String| say(&line))
}

/// How long things may take: with `--quick` the monitor speaks soon.
fn patience(setup: &Setup) -> Patience {
    let monitor = if setup.quick { Duration::from_millis(20) } else { Duration::from_secs(1) };
    Patience { submit: HOUR, shutdown: HOUR, monitor }
}

fn scheduler_behavior(setup: &Setup, log: &Log) -> Result<Figures, String> {
    log("\n=== Scheduler Behavior Demo ===".into());
    let procs = runtime::gomaxprocs(0);
    log(format!("GOMAXPROCS: {procs}"));
    log(format!("NumCPU: {}", runtime::num_cpu()));
    let before = runtime::num_goroutine();
    log(format!("Initial goroutines: {before}"));
    let pool = WorkerPool::new(procs * 2, patience(setup), log.clone());
    pool.start();
    let collector = collect(&pool, log);
    for id in 0..JOBS {
        let cpu_bound = id % 2 == 0;
        let work_units = if cpu_bound { setup.size } else { 10 };
        if let Err(error) = pool.submit(Job { id, cpu_bound, work_units }) {
            log(format!("Failed to submit job {id}: {error}"));
        }
    }
    pool.wait_for_monitor();
    pool.shutdown(Monitor::Ends);
    let results = collector.join().map_err(|_| "the collector panicked")?;
    let refused = pool.submit(Job { id: JOBS, cpu_bound: false, work_units: 0 });
    let after = goroutines_left(before, 0);
    log(format!("Final goroutines: {after}"));
    Ok(figures(results, u64::from(refused.is_err()), 0, before, after))
}

fn collect(pool: &WorkerPool, log: &Log) -> thread::JoinHandle<usize> {
    let (results, log) = (pool.results(), log.clone());
    go(move || {
        let mut count = 0;
        for Done { job, value, elapsed } in &results {
            if count < 5 {
                log(format!("Result: job={job} value={value} elapsed={elapsed:?}"));
            }
            count += 1;
        }
        log(format!("Total results collected: {count}"));
        count
    })
}

/// A job takes longer than the shutdown may: it is cancelled.
fn too_late(setup: &Setup) -> Result<Figures, String> {
    let before = runtime::num_goroutine();
    let late = Patience { shutdown: Duration::from_millis(1), ..patience(setup) };
    let log = logging(setup);
    log("\n=== A job that takes an hour ===".into());
    let pool = WorkerPool::new(2, late, log);
    pool.start();
    let hour = Job { id: 0, cpu_bound: false, work_units: HOUR.as_millis() as u64 };
    pool.submit(hour).map_err(|error| error.to_string())?;
    let was_late = !pool.shutdown(Monitor::Ends);
    let results = pool.results().iter().count();
    Ok(figures(results, 0, u64::from(was_late), before, goroutines_left(before, 0)))
}

/// The monitor waits for a cancellation that nobody sends, as all work has ended in time.
fn forgotten(setup: &Setup) -> Result<Figures, String> {
    let before = runtime::num_goroutine();
    let quiet: Log = Arc::new(|_| ());
    let pool = WorkerPool::new(2, patience(setup), quiet);
    pool.start();
    let job = Job { id: 0, cpu_bound: false, work_units: 1 };
    pool.submit(job).map_err(|error| error.to_string())?;
    pool.shutdown(Monitor::Forgotten);
    let results = pool.results().iter().count();
    let after = goroutines_left(before, 1);
    // Only now, as its end would cancel.
    drop(pool);
    Ok(figures(results, 0, 0, before, after))
}

fn figures(results: usize, refused: u64, late: u64, before: usize, after: usize) -> Figures {
    Figures::new()
        .set("results", results)
        .set("refused", refused)
        .set("late", late)
        .set("goroutines_before", before)
        .set("goroutines_after", after)
}

/// How many there are when those that have done their work have ended: that takes a moment more,
/// and those that wait for good (`stuck`) never do.
fn goroutines_left(before: usize, stuck: usize) -> usize {
    while runtime::num_goroutine() > before + stuck {
        thread::yield_now();
    }
    runtime::num_goroutine()
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let get = |case, figure| rows.get(case, figure);
    let left = |case| get(case, "goroutines_after").saturating_sub(get(case, "goroutines_before"));
    let results = get(GOOD, "results");
    vec![
        Finding::of(
            results == JOBS as u64 && left(GOOD) == 0,
            format!(
                "All {} jobs came back, and {} goroutine was left, as before. A job submitted after \
                 the end was an error, not a panic.",
                count(results),
                get(GOOD, "goroutines_after"),
            ),
            format!(
                "{results} of {JOBS} jobs came back, {} goroutines too many are left.",
                left(GOOD)
            ),
        ),
        Finding::of(
            get(LATE, "late") == 1 && left(LATE) == 0 && get(GOOD, "late") == 0,
            "A shutdown that took too long cancelled what still ran, and closed the results only \
             when nobody could send any more.",
            "No shutdown had to cancel anything.",
        ),
        Finding::of(
            left(FORGOTTEN) > 0,
            format!(
                "Where work ended in time and nobody cancels, the monitor waits for ever: {} \
                 goroutine more than before.",
                left(FORGOTTEN),
            ),
            "The forgotten monitor was not left behind.",
        ),
    ]
}
