//! `std_mutex`: many goroutines and one lock of std, and as many threads of the system with another.

use super::Outcome;
use crate::args::Args;
use crate::report::{Report, ns_per};
use crate::tasks::{join, spawn};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Who contends.
#[derive(Clone, Copy)]
enum Impl {
    Both,
    Goroutines,
    Threads,
}

/// `n` tasks, which lock and count `locks` times each. Every `yields`-th lock is kept across a yield
/// (never: 0), so that the others find it taken.
pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000)?;
    let locks = args.get("locks", 200)?;
    let yields = args.get("yields", 16)?;
    let who = args.choice(
        "impl",
        &[("both", Impl::Both), ("goroutines", Impl::Goroutines), ("threads", Impl::Threads)],
    )?;
    let mut report = Report::new(args, n).set("locks", locks).set("yields", yields);
    let mut figures = [None; 2];
    if !matches!(who, Impl::Threads) {
        let before = gosched::runtime::counters();
        let took = goroutines(n, locks, yields);
        let after = gosched::runtime::counters();
        figures[0] = Some(ns_per(took, n * locks));
        report = report
            .time(took, n * locks)
            .set("machines", after.machines)
            .set("futex_waits", after.futex_waits - before.futex_waits);
    }
    if !matches!(who, Impl::Goroutines) {
        let ns = ns_per(threads(n, locks, yields), n * locks);
        figures[1] = Some(ns);
        report = report.set("threads_ns_per_op", ns);
    }
    if let [Some(ours), Some(theirs)] = figures {
        report = report.set("times_threads", ours / theirs);
    }
    Ok(report)
}

fn goroutines(n: u64, locks: u64, yields: u64) -> Duration {
    let count = Arc::new(Mutex::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..n)
        .map(|_| {
            let count = count.clone();
            spawn(move || contend(&count, locks, yields, gosched::thread::yield_now))
        })
        .collect();
    tasks.into_iter().for_each(join);
    let took = start.elapsed();
    check(&count, n * locks);
    took
}

/// From a plain thread, so that none of them is made by a goroutine.
fn threads(n: u64, locks: u64, yields: u64) -> Duration {
    let all = std::thread::spawn(move || {
        let count = Arc::new(Mutex::new(0));
        let start = Instant::now();
        let threads: Vec<_> = (0..n)
            .map(|_| {
                let count = count.clone();
                let builder = std::thread::Builder::new().stack_size(64 << 10);
                let task = move || contend(&count, locks, yields, std::thread::yield_now);
                builder.spawn(task).expect("a thread")
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a thread panicked"));
        let took = start.elapsed();
        check(&count, n * locks);
        took
    });
    all.join().expect("it panicked")
}

fn contend(count: &Mutex<u64>, locks: u64, yields: u64, yield_now: fn()) {
    for _ in 0..locks {
        let mut count = count.lock().expect("nobody panics");
        *count += 1;
        if yields > 0 && count.is_multiple_of(yields) {
            yield_now();
        }
    }
}

fn check(count: &Mutex<u64>, expected: u64) {
    assert_eq!(*count.lock().expect("nobody panics"), expected);
}
