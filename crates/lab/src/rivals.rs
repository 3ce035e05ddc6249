//! The same work without goroutines: a thread for each piece, and a pool of threads.
//!
//! The runtime does not run in these processes. Each has its probe: one more thread that sleeps, or a
//! job that a timer hands to the pool.

use crate::cell::HEAD_START;
use crate::probe::{self, Sleep};
use crate::record::{Cell, Counts, Measured, Task};
use crate::task::{Job, ns_since};
use crate::usage;
use crate::variant::Body;
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One thread for each, on as many CPUs as the cell has processors.
pub(crate) fn threads(cell: Cell, body: Body) -> Result<Measured, String> {
    let cpus = confine(cell.procs).map_err(|error| format!("can't choose CPUs: {error}"))?;
    let alone = probe::alone(thread::sleep);
    let (stop, stopped) = channel();
    let probe = thread::spawn(move || probe::until(&stopped, thread::sleep));
    let run = |job: Job| {
        let mut threads: Vec<JoinHandle<Task>> = Vec::with_capacity(cell.goroutines);
        for _ in 0..cell.goroutines {
            let created_ns = job.elapsed_ns();
            let thread = thread::Builder::new().spawn(move || job.work(created_ns));
            threads.push(thread.map_err(|error| format!("can't start a thread: {error}"))?);
        }
        threads.into_iter().map(|thread| join(thread, "a thread")).collect()
    };
    measured(&cell, cpus, body, alone, run, || {
        drop(stop);
        join(probe, "the probe")
    })
}

/// A pool of as many threads as the cell has processors.
pub(crate) fn pool(cell: Cell, body: Body) -> Result<Measured, String> {
    let pool = ThreadPoolBuilder::new().num_threads(cell.procs).build();
    let pool = Arc::new(pool.map_err(|error| format!("can't start a pool: {error}"))?);
    let alone = probe::alone(|period| take_turn(&pool, period));
    let (stop, stopped) = channel();
    let for_probe = pool.clone();
    let probe = thread::spawn(move || probe_of_pool(&stopped, &for_probe));
    let run = |job: Job| {
        let (sender, receiver) = channel();
        for i in 0..cell.goroutines {
            let (created_ns, sender) = (job.elapsed_ns(), sender.clone());
            pool.spawn(move || {
                // Nobody listens any more if the cell has failed.
                let _ = sender.send((i, job.work(created_ns)));
            });
        }
        drop(sender);
        let mut tasks: Vec<(usize, Task)> = receiver.iter().collect();
        tasks.sort_unstable_by_key(|(i, _)| *i);
        Ok(tasks.into_iter().map(|(_, task)| task).collect())
    };
    measured(&cell, pool.current_num_threads(), body, alone, run, || {
        drop(stop);
        join(probe, "the probe")
    })
}

fn probe_of_pool(stop: &Receiver<()>, pool: &ThreadPool) -> Vec<Sleep> {
    probe::until(stop, |period| take_turn(pool, period))
}

/// Sleeps, and then waits for its turn as a job of the pool.
fn take_turn(pool: &ThreadPool, period: Duration) {
    thread::sleep(period);
    let (sender, receiver) = channel();
    pool.spawn(move || {
        // It listens.
        let _ = sender.send(());
    });
    // Fails if the job panicked, which it can't.
    let _ = receiver.recv();
}

fn measured(
    cell: &Cell,
    gomaxprocs: usize,
    body: Body,
    alone_late_ns: Vec<u64>,
    run: impl FnOnce(Job) -> Result<Vec<Task>, String>,
    end: impl FnOnce() -> Result<Vec<Sleep>, String>,
) -> Result<Measured, String> {
    thread::sleep(HEAD_START);
    let (cpu, start) = (usage::cpu_time(), Instant::now());
    let tasks = run(Job::new(body, cell, start))?;
    let (elapsed_ns, cpu) = (ns_since(start), usage::cpu_time() - cpu);
    Ok(Measured {
        cell: cell.clone(),
        gomaxprocs,
        elapsed_ns,
        cpu_ns: cpu.as_nanos() as u64,
        peak_rss_bytes: usage::peak_rss(),
        tasks,
        alone_late_ns,
        probe: probe::samples(&end()?, start),
        counts: Counts::default(),
    })
}

fn join<T>(thread: JoinHandle<T>, who: &str) -> Result<T, String> {
    thread.join().map_err(|_| format!("{who} panicked"))
}

/// Lets this thread and those that it starts run on the first `count` of its CPUs only, and says how
/// many those are.
fn confine(count: usize) -> rustix::io::Result<usize> {
    let all = sched_getaffinity(None)?;
    let mut chosen = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).take(count).for_each(|cpu| chosen.set(cpu));
    sched_setaffinity(None, &chosen)?;
    Ok(chosen.count() as usize)
}
