//! `fanout`: rounds of a few tasks, each round waited for.

use super::Outcome;
use crate::args::Args;
use crate::report::{Report, ns_per};
use crate::tasks::{join, spawn};
use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const WIDTH: usize = 16;

pub(crate) fn run(args: &Args) -> Outcome {
    let rounds = args.n(10_000)?;
    let n = rounds * WIDTH as u64;
    let count = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    for _ in 0..rounds {
        let tasks: [_; WIDTH] = array::from_fn(|_| {
            let count = count.clone();
            spawn(move || {
                count.fetch_add(1, Relaxed);
            })
        });
        tasks.into_iter().for_each(join);
    }
    let took = start.elapsed();
    assert_eq!(count.load(Relaxed), n);
    Ok(Report::new(args, rounds).time(took, rounds).set("ns_per_task", ns_per(took, n)))
}
