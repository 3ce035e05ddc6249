//! `forkjoin_fib`: Fibonacci numbers, one branch of each call in a new task.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join, spawn};
use crate::work::{fib, opaque};
use std::time::Instant;

/// Below it, no tasks.
const SEQUENTIAL: u64 = 10;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(27)?;
    let reps = args.get("reps", 50)?;
    let (truth, tasks) = (fib(n), reps * spawns(n));
    let start = Instant::now();
    for _ in 0..reps {
        assert_eq!(task(n), truth);
    }
    let took = start.elapsed();
    Ok(Report::new(args, n)
        .time(took, tasks)
        .set("reps", reps)
        .set("secs_per_rep", took.as_secs_f64() / reps as f64))
}

fn task(n: u64) -> u64 {
    if n < SEQUENTIAL {
        return fib(opaque(n));
    }
    let left = spawn(move || task(n - 1));
    let right = task(n - 2);
    join(left) + right
}

/// How many tasks `task(n)` starts.
fn spawns(n: u64) -> u64 {
    if n < SEQUENTIAL { 0 } else { 1 + spawns(n - 1) + spawns(n - 2) }
}
