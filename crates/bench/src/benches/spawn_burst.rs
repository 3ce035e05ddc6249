//! `spawn_burst`: one task starts all the others, each of which counts itself.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000_000)?;
    let count = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..n)
        .map(|_| {
            let count = count.clone();
            spawn(move || {
                count.fetch_add(1, Relaxed);
            })
        })
        .collect();
    tasks.into_iter().for_each(join);
    let took = start.elapsed();
    assert_eq!(count.load(Relaxed), n);
    Ok(Report::new(args, n).time(took, n))
}
