//! `spawn_join`: empty tasks in waves, each wave waited for.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::tasks::{join, spawn};
use std::time::Instant;

const WAVE: u64 = 1_000;

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000_000)?;
    let start = Instant::now();
    let mut joined = 0;
    while joined < n {
        let wave = WAVE.min(n - joined);
        let tasks: Vec<_> = (0..wave).map(|_| spawn(|| ())).collect();
        for task in tasks {
            join(task);
            joined += 1;
        }
    }
    Ok(Report::new(args, n).time(start.elapsed(), n))
}
