//! `hogs_share`: tasks that each compute for 50 ms, all at once, and the same work one after the
//! other.
//!
//! Between two pieces of about 20 us a task has lost its processor if somebody else computed on its
//! thread, or it is on another one: `stopped_min` is how often that happened to whom it happened
//! least.

use super::Outcome;
use crate::args::Args;
use crate::process::thread_id;
use crate::report::Report;
use crate::tasks::{join_all, spawn};
use crate::work::{calibrate, spin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PIECE: Duration = Duration::from_micros(20);

/// Who computed last on each thread, by the thread's number.
static LAST: [AtomicU64; 4096] = [const { AtomicU64::new(u64::MAX) }; 4096];

/// What one task saw.
struct Seen {
    stopped: u64,
    threads: usize,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000)?;
    let busy = Duration::from_millis(args.get("ms", 50)?);
    let rounds = calibrate(PIECE);
    let pieces = (busy.as_nanos() / PIECE.as_nanos()) as u64;
    // One after the other on each processor: `procs` plain threads that are not preempted by us.
    let alone = sequential(n, args.procs as u64, pieces, rounds);
    let before = gosched::runtime::preemptions().in_place;
    let start = Instant::now();
    let seen = join_all((0..n).map(|i| spawn(move || task(i, pieces, rounds))).collect::<Vec<_>>());
    let took = start.elapsed();
    let moved = seen.iter().filter(|seen| seen.threads > 1).count();
    Ok(Report::new(args, n)
        .secs(took)
        .set("sequential_secs", alone.as_secs_f64())
        .set("overhead_percent", (took.as_secs_f64() / alone.as_secs_f64() - 1.0) * 100.0)
        .set("preemptions", gosched::runtime::preemptions().in_place - before)
        .set("stopped_min", seen.iter().map(|seen| seen.stopped).min().unwrap_or(0))
        .set("moved_percent", 100.0 * moved as f64 / n as f64)
        .set("machines", gosched::runtime::counters().machines))
}

fn task(i: u64, pieces: u64, rounds: u64) -> Seen {
    let mut before = thread_id();
    let (mut stopped, mut threads) = (0, vec![before]);
    note(i, before);
    for _ in 0..pieces {
        spin(rounds);
        let now = thread_id();
        let was_mine = note(i, now);
        stopped += u64::from(now != before || !was_mine);
        if !threads.contains(&now) {
            threads.push(now);
        }
        before = now;
    }
    Seen { stopped, threads: threads.len() }
}

/// Whether task `i` was the last on the thread.
fn note(i: u64, thread: i32) -> bool {
    // ORDERING: Relaxed; only one task at a time is on a thread.
    LAST[thread as usize % LAST.len()].swap(i, Relaxed) == i
}

/// `n` tasks' work on as many threads as there are processors, each its share in one go.
fn sequential(n: u64, threads: u64, pieces: u64, rounds: u64) -> Duration {
    let start = Instant::now();
    let threads: Vec<_> = (0..threads)
        .map(|i| {
            let share = n / threads + u64::from(i < n % threads);
            std::thread::spawn(move || {
                (0..share).map(|i| task(i, pieces, rounds).stopped).sum::<u64>()
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it only computes");
    }
    start.elapsed()
}
