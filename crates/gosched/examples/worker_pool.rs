//! A worker pool that knows its limits.
//!
//! Twice as many workers as processors take jobs from a queue; those that compute need a permit of
//! a semaphore, of which there are as many as processors, so that some workers are always left for
//! jobs that wait. Submitting gives up after a second, and after a shutdown. A shutdown lets the
//! queue run empty; when that takes too long it cancels. Either way the monitor ends too, and the
//! results are closed only when nobody can send any more.
//!
//! `cargo run --release --example worker_pool`

use gosched::channel::{Receiver, Sender, bounded, tick};
use gosched::context::{self, Cancel, Context};
use gosched::sync::{Arc, Semaphore, WaitGroup};
use gosched::{runtime, select};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Where lines go.
pub(crate) type Log = Arc<dyn Fn(String) + Send + Sync>;

#[derive(Debug, Default)]
struct Stats {
    goroutines: AtomicI64,
    completed: AtomicI64,
    cpu_bound_ops: AtomicI64,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [goroutines, completed, cpu_ops] =
            [&self.goroutines, &self.completed, &self.cpu_bound_ops].map(|n| n.load(Relaxed));
        write!(f, "goroutines={goroutines} completed={completed} cpu_ops={cpu_ops}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) id: usize,
    pub(crate) cpu_bound: bool,
    pub(crate) work_units: u64,
}

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) job: usize,
    pub(crate) value: i64,
    pub(crate) elapsed: Duration,
}

/// A job was not taken.
#[derive(Debug, PartialEq)]
pub(crate) enum SubmitError {
    /// The pool is, or was, shut down.
    Closed,
    /// There was no room in the queue for too long.
    Full,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubmitError::Closed => "the pool is shut down",
            SubmitError::Full => "job queue full",
        })
    }
}

impl Error for SubmitError {}

/// What the workers share.
struct Shared {
    ctx: Context,
    stats: Stats,
    /// As many compute at a time as there are processors.
    cpu: Semaphore,
    log: Log,
}

pub(crate) struct WorkerPool {
    shared: Arc<Shared>,
    /// How long a job waits for room in the queue.
    patience: Duration,
    cancel: Cancel,
    workers: usize,
    running: WaitGroup,
    monitor: WaitGroup,
    jobs: (Sender<Job>, Receiver<Job>),
    results: (Sender<Done>, Receiver<Done>),
}

impl WorkerPool {
    pub(crate) fn new(workers: usize, patience: Duration, log: Log) -> WorkerPool {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let cpu = Semaphore::new(runtime::gomaxprocs(0));
        WorkerPool {
            shared: Arc::new(Shared { ctx, stats: Stats::default(), cpu, log }),
            patience,
            cancel,
            workers,
            running: WaitGroup::new(),
            monitor: WaitGroup::new(),
            jobs: bounded(workers * 2),
            results: bounded(workers * 2),
        }
    }

    pub(crate) fn start(&self) {
        let (procs, cpus) = (runtime::gomaxprocs(0), runtime::num_cpu());
        let workers = self.workers;
        (self.shared.log)(format!(
            "Starting pool: workers={workers} GOMAXPROCS={procs} NumCPU={cpus}"
        ));
        for id in 0..workers {
            let (shared, jobs) = (self.shared.clone(), self.jobs.1.clone());
            let results = self.results.0.clone();
            shared.stats.goroutines.fetch_add(1, Relaxed);
            self.running.go(move || {
                shared.work(id, &jobs, &results);
                shared.stats.goroutines.fetch_sub(1, Relaxed);
            });
        }
        let shared = self.shared.clone();
        self.monitor.go(move || shared.monitor());
    }

    /// Gives up when there is no room for too long.
    pub(crate) fn submit(&self, job: Job) -> Result<(), SubmitError> {
        select! {
            send(self.jobs.0, job) -> sent => sent.map_err(|_| SubmitError::Closed),
            recv(self.shared.ctx.done()) -> _ => Err(SubmitError::Closed),
            default(self.patience) => Err(SubmitError::Full),
        }
    }

    pub(crate) fn results(&self) -> Receiver<Done> {
        self.results.1.clone()
    }

    pub(crate) fn shutdown(&self, timeout: Duration) {
        let log = &self.shared.log;
        log("Shutting down worker pool...".into());
        // Those who submit now get an error.
        self.jobs.0.close();
        if self.running.wait_timeout(timeout).is_ok() {
            log("All workers finished".into());
        } else {
            log("Shutdown timeout, cancelling...".into());
        }
        // Ends the monitor, and workers that are late: no sender is left when the results close.
        self.cancel.cancel();
        self.running.wait();
        self.monitor.wait();
        self.results.0.close();
    }
}

impl Shared {
    fn work(&self, id: usize, jobs: &Receiver<Job>, results: &Sender<Done>) {
        loop {
            select! {
                recv(self.ctx.done()) -> _ => {
                    return (self.log)(format!("Worker {id}: shutting down"));
                }
                recv(jobs) -> job => {
                    let Ok(job) = job else { return };
                    let start = Instant::now();
                    let Some(value) = self.process(job) else { return };
                    let done = Done { job: job.id, value, elapsed: start.elapsed() };
                    if results.send_ctx(&self.ctx, done).is_err() {
                        return;
                    }
                    self.stats.completed.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// `None` if it was cancelled.
    fn process(&self, job: Job) -> Option<i64> {
        if job.cpu_bound {
            let _permit = self.cpu.acquire_ctx(&self.ctx).ok()?;
            self.stats.cpu_bound_ops.fetch_add(1, Relaxed);
            return Some(compute(job.work_units));
        }
        // As a call of a database would.
        self.ctx.sleep(Duration::from_millis(job.work_units)).ok()?;
        i64::try_from(job.work_units).ok()
    }

    fn monitor(&self) {
        let ticker = tick(Duration::from_secs(1));
        while ticker.recv_ctx(&self.ctx).is_ok() {
            let all = runtime::num_goroutine();
            (self.log)(format!("Monitor: total_goroutines={all} pool_stats={}", self.stats));
        }
    }
}

/// Computes without a pause; it is preempted all the same.
fn compute(units: u64) -> i64 {
    (0..units as i64 * 1_000_000).fold(0, |sum, i| sum + std::hint::black_box(i * i % 1000))
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// A job's wait for room in the queue.
    pub(crate) submit: Duration,
    /// The rest of the jobs after a shutdown.
    pub(crate) shutdown: Duration,
}

/// A mixed workload of 20 jobs, half of which compute `cpu_units`. Returns how many results came.
pub(crate) fn demo(log: &Log, cpu_units: u64, patience: Patience) -> usize {
    log("=== Scheduler Behavior Demo ===".into());
    log(format!("GOMAXPROCS: {}", runtime::gomaxprocs(0)));
    log(format!("NumCPU: {}", runtime::num_cpu()));
    let initial = runtime::num_goroutine();
    log(format!("Initial goroutines: {initial}"));
    let pool = WorkerPool::new(runtime::gomaxprocs(0) * 2, patience.submit, log.clone());
    pool.start();
    let collector = gosched::go({
        let (results, log) = (pool.results(), log.clone());
        move || {
            let mut count = 0;
            for Done { job, value, elapsed } in &results {
                if count < 5 {
                    log(format!("Result: job={job} value={value} elapsed={elapsed:?}"));
                }
                count += 1;
            }
            log(format!("Total results collected: {count}"));
            count
        }
    });
    for id in 0..20 {
        let cpu_bound = id % 2 == 0;
        let work_units = if cpu_bound { cpu_units } else { 10 };
        if let Err(error) = pool.submit(Job { id, cpu_bound, work_units }) {
            log(format!("Failed to submit job {id}: {error}"));
        }
    }
    pool.shutdown(patience.shutdown);
    let count = collector.join().unwrap_or(0);
    // What is done has been counted down before its goroutine has ended: a moment more.
    let begun = Instant::now();
    while runtime::num_goroutine() > initial && begun.elapsed() < patience.shutdown {
        gosched::thread::sleep(Duration::from_millis(1));
    }
    log(format!("Final goroutines: {}", runtime::num_goroutine()));
    count
}

#[gosched::main]
fn main() {
    let log: Log = Arc::new(|line| println!("{line}"));
    log("=== Scheduler Configuration ===".into());
    log(format!("Version: {}", runtime::version()));
    let patience = Patience { submit: Duration::from_secs(1), shutdown: Duration::from_secs(5) };
    demo(&log, 10, patience);
    log("=== Demo Complete ===".into());
}
