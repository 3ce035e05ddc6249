//! The pool: workers take jobs from a queue, a semaphore bounds what computes, a monitor tells.
//!
//! Submitting gives up when there is no room for too long, and after a shutdown. A shutdown lets
//! the queue run empty; when that takes too long it cancels. Either way the monitor ends too, and
//! the results are closed only when nobody can send any more.

use gosched::channel::{Receiver, Sender, bounded, tick};
use gosched::context::{self, Cancel, Context};
use gosched::sync::{Arc, Semaphore, WaitGroup};
use gosched::{runtime, select};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Where lines go.
pub(super) type Log = Arc<dyn Fn(String) + Send + Sync>;

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
pub(super) struct Job {
    pub(super) id: usize,
    pub(super) cpu_bound: bool,
    /// A million rounds each if it computes, else milliseconds.
    pub(super) work_units: u64,
}

#[derive(Debug)]
pub(super) struct Done {
    pub(super) job: usize,
    pub(super) value: i64,
    pub(super) elapsed: Duration,
}

/// A job was not taken.
#[derive(Debug, PartialEq)]
pub(super) enum SubmitError {
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

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// A job's wait for room in the queue.
    pub(super) submit: Duration,
    /// The rest of the jobs after a shutdown.
    pub(super) shutdown: Duration,
    /// Between two lines of the monitor.
    pub(super) monitor: Duration,
}

/// What becomes of the monitor when all work has ended in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Monitor {
    Ends,
    Forgotten,
}

/// What the workers share.
struct Shared {
    ctx: Context,
    stats: Stats,
    /// As many compute at a time as there are processors.
    cpu: Semaphore,
    log: Log,
}

pub(super) struct WorkerPool {
    shared: Arc<Shared>,
    patience: Patience,
    cancel: Cancel,
    workers: usize,
    running: WaitGroup,
    monitor: WaitGroup,
    /// Disconnects when the monitor has spoken.
    spoken: (Sender<()>, Receiver<()>),
    jobs: (Sender<Job>, Receiver<Job>),
    results: (Sender<Done>, Receiver<Done>),
}

impl WorkerPool {
    pub(super) fn new(workers: usize, patience: Patience, log: Log) -> WorkerPool {
        let (ctx, cancel) = context::with_cancel(&context::background());
        let cpu = Semaphore::new(runtime::gomaxprocs(0));
        WorkerPool {
            shared: Arc::new(Shared { ctx, stats: Stats::default(), cpu, log }),
            patience,
            cancel,
            workers,
            running: WaitGroup::new(),
            monitor: WaitGroup::new(),
            spoken: bounded(0),
            jobs: bounded(workers * 2),
            results: bounded(workers * 2),
        }
    }

    pub(super) fn start(&self) {
        let (procs, cpus) = (runtime::gomaxprocs(0), runtime::num_cpu());
        let workers = self.workers;
        let line = format!("Starting pool: workers={workers} GOMAXPROCS={procs} NumCPU={cpus}");
        (self.shared.log)(line);
        for id in 0..workers {
            let (shared, jobs) = (self.shared.clone(), self.jobs.1.clone());
            let results = self.results.0.clone();
            shared.stats.goroutines.fetch_add(1, Relaxed);
            self.running.go(move || {
                shared.work(id, &jobs, &results);
                shared.stats.goroutines.fetch_sub(1, Relaxed);
            });
        }
        let (shared, spoken) = (self.shared.clone(), self.spoken.0.clone());
        let period = self.patience.monitor;
        self.monitor.go(move || shared.monitor(period, &spoken));
    }

    /// Gives up when there is no room for too long.
    pub(super) fn submit(&self, job: Job) -> Result<(), SubmitError> {
        select! {
            send(self.jobs.0, job) -> sent => sent.map_err(|_| SubmitError::Closed),
            recv(self.shared.ctx.done()) -> _ => Err(SubmitError::Closed),
            default(self.patience.submit) => Err(SubmitError::Full),
        }
    }

    pub(super) fn results(&self) -> Receiver<Done> {
        self.results.1.clone()
    }

    /// Returns when the monitor has said a line.
    pub(super) fn wait_for_monitor(&self) {
        // It closes the channel and sends nothing.
        let _ = self.spoken.1.recv();
    }

    /// Whether all work ended in time.
    pub(super) fn shutdown(&self, monitor: Monitor) -> bool {
        let log = &self.shared.log;
        log("Shutting down worker pool...".into());
        // Those who submit now get an error.
        self.jobs.0.close();
        let in_time = self.running.wait_timeout(self.patience.shutdown).is_ok();
        if in_time {
            log("All workers finished".into());
        } else {
            log("Shutdown timeout, cancelling...".into());
        }
        if monitor == Monitor::Ends {
            // And workers that are late: no sender is left when the results close.
            self.cancel.cancel();
            self.running.wait();
            self.monitor.wait();
        }
        self.results.0.close();
        in_time
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

    fn monitor(&self, period: Duration, spoken: &Sender<()>) {
        let ticker = tick(period);
        while ticker.recv_ctx(&self.ctx).is_ok() {
            let all = runtime::num_goroutine();
            (self.log)(format!("Monitor: total_goroutines={all} pool_stats={}", self.stats));
            spoken.close();
        }
    }
}

/// Computes without a pause; it is preempted all the same.
fn compute(units: u64) -> i64 {
    (0..units as i64 * 1_000_000).fold(0, |sum, i| sum + std::hint::black_box(i * i % 1000))
}

#[cfg(test)]
mod tests;
