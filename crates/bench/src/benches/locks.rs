//! `mutex`, `rwmutex`: a few tasks, one lock. `mutex_scaling`: the same by 1 to 64 tasks, and std's lock by
//! as many threads.
//! `lock_wait`, `rwlock_wait`: how long one waits beside others who hold the lock for 100 us again
//! and again.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join_all, spawn};
use gosched::sync::{Arc, Mutex, RwLock};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const LOCKERS: u64 = 8;

pub(crate) fn mutex(args: &Args) -> Outcome {
    let each = args.n(2_000_000)?.div_ceil(LOCKERS);
    let n = each * LOCKERS;
    let total = Arc::new(Mutex::new(0));
    let start = Instant::now();
    let tasks = (0..LOCKERS).map(|_| {
        let total = total.clone();
        spawn(move || {
            for _ in 0..each {
                *total.lock().unwrap() += 1;
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>());
    let took = start.elapsed();
    assert_eq!(*total.lock().unwrap(), n);
    Ok(Report::new(args, n).time(took, n).set("lock", "gosched::sync::Mutex"))
}

pub(crate) fn rwmutex(args: &Args) -> Outcome {
    let each = args.n(2_000_000)?.div_ceil(LOCKERS * 10) * 10;
    let n = each * LOCKERS;
    let total = Arc::new(RwLock::new(0));
    let start = Instant::now();
    let tasks = (0..LOCKERS).map(|_| {
        let total = total.clone();
        spawn(move || {
            let mut seen = 0;
            for i in 0..each {
                if i % 10 == 0 {
                    *total.write().unwrap() += 1;
                } else {
                    seen = seen.max(*total.read().unwrap());
                }
            }
            seen
        })
    });
    let seen = join_all(tasks.collect::<Vec<_>>());
    let took = start.elapsed();
    assert_eq!(*total.read().unwrap(), n / 10);
    assert!(seen.iter().all(|s| *s <= n / 10));
    Ok(Report::new(args, n).time(took, n).set("lock", "gosched::sync::RwLock"))
}

const CROWDS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Throughput by 1 to 64 tasks, the least beside the most; and that of std's lock by threads.
pub(crate) fn mutex_scaling(args: &Args) -> Outcome {
    let n = args.n(1_000_000)?;
    let mut report = Report::new(args, n);
    let ours = CROWDS.map(|tasks| {
        let (each, total) = (n / tasks, Arc::new(Mutex::new(0)));
        let start = Instant::now();
        let all = (0..tasks).map(|_| {
            let total = total.clone();
            spawn(move || (0..each).for_each(|_| *total.lock().unwrap() += 1))
        });
        join_all(all.collect::<Vec<_>>());
        let took = start.elapsed();
        assert_eq!(*total.lock().unwrap(), each * tasks);
        crate::report::ns_per(took, each * tasks)
    });
    report = report.set("least_of_peak", least_of_peak(&ours)).set("by_tasks", rows(&ours));
    let threads = CROWDS.map(|threads| {
        let (each, total) = (n / threads, std::sync::Mutex::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..each).for_each(|_| *total.lock().unwrap() += 1));
            }
        });
        let took = start.elapsed();
        assert_eq!(*total.lock().unwrap(), each * threads);
        crate::report::ns_per(took, each * threads)
    });
    let least = least_of_peak(&threads);
    Ok(report.set("threads_least_of_peak", least).set("by_threads", rows(&threads)))
}

fn least_of_peak(figures: &[f64]) -> f64 {
    let slowest = figures.iter().copied().fold(0.0, f64::max);
    figures.iter().copied().fold(f64::MAX, f64::min) / slowest
}

fn rows(figures: &[f64]) -> Vec<Report> {
    let row =
        |(tasks, ns): (&u64, &f64)| Report::default().set("tasks", *tasks).set("ns_per_op", *ns);
    CROWDS.iter().zip(figures).map(row).collect()
}

const HOLD: Duration = Duration::from_micros(100);

fn compute(d: Duration) {
    let start = Instant::now();
    while start.elapsed() < d {
        spin_loop();
    }
}

/// Waits of one that wants the lock each millisecond, beside two who hold it all the time.
pub(crate) fn lock_wait(args: &Args) -> Outcome {
    let lock = Arc::new(Mutex::new(()));
    let (holders, theirs) = (2, lock.clone());
    let hold = move || {
        let _guard = theirs.lock().unwrap();
        compute(HOLD);
    };
    let wait = move || {
        let start = Instant::now();
        let _guard = lock.lock().unwrap();
        start.elapsed()
    };
    waits(args, holders, hold, wait)
}

/// Waits of a writer, beside four readers who overlap.
pub(crate) fn rwlock_wait(args: &Args) -> Outcome {
    let lock = Arc::new(RwLock::new(()));
    let (holders, theirs) = (4, lock.clone());
    let hold = move || {
        let _guard = theirs.read().unwrap();
        compute(HOLD);
    };
    let wait = move || {
        let start = Instant::now();
        let _guard = lock.write().unwrap();
        start.elapsed()
    };
    waits(args, holders, hold, wait)
}

fn waits(
    args: &Args,
    holders: u64,
    hold: impl Fn() + Clone + Send + 'static,
    wait: impl Fn() -> Duration,
) -> Outcome {
    let n = args.n(500)?;
    let over = Arc::new(AtomicBool::new(false));
    let all: Vec<_> = (0..holders)
        .map(|_| {
            let (over, hold) = (over.clone(), hold.clone());
            spawn(move || {
                let mut held = 0_u64;
                while !over.load(Relaxed) {
                    hold();
                    held += 1;
                }
                held
            })
        })
        .collect();
    let waited = (0..n)
        .map(|_| {
            gosched::thread::sleep(Duration::from_millis(1));
            wait().as_nanos() as u64
        })
        .collect();
    over.store(true, Relaxed);
    assert!(join_all(all).iter().sum::<u64>() > n, "the others held it");
    Ok(Report::new(args, n).lateness(waited))
}
