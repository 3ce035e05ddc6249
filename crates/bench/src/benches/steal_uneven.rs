//! `steal_uneven`: as many spawners as processors, each with more tasks than the one before.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join_all, spawn};
use crate::work::sum_to;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const ADDITIONS: u64 = 10_000;

pub(crate) fn run(args: &Args) -> Outcome {
    let rounds = args.n(200)?;
    let total = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks = (0..rounds).map(|_| round(args.procs as u64, &total)).sum::<u64>();
    let took = start.elapsed();
    assert_eq!(total.load(Relaxed), tasks * (ADDITIONS * (ADDITIONS - 1) / 2));
    Ok(Report::new(args, rounds).time(took, tasks).set("tasks", tasks))
}

/// Returns how many tasks there were.
fn round(spawners: u64, total: &Arc<AtomicU64>) -> u64 {
    let spawners: Vec<_> = (0..spawners)
        .map(|nth| {
            let total = total.clone();
            spawn(move || share(100 + 50 * nth, &total))
        })
        .collect();
    join_all(spawners).iter().sum()
}

fn share(tasks: u64, total: &Arc<AtomicU64>) -> u64 {
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let total = total.clone();
            spawn(move || total.fetch_add(sum_to(ADDITIONS), Relaxed))
        })
        .collect();
    join_all(tasks).len() as u64
}
