//! `yield2`, `yield100`: tasks that yield in turn on one processor.

use super::Outcome;
use crate::args::{Args, UsageError};
use crate::report::Report;
use crate::tasks::{join_all, spawn};
use gosched::runtime::gosched;
use gosched::thread::yield_now;
use std::time::Instant;

/// To which queue's tail a task goes.
#[derive(Clone, Copy)]
enum Via {
    Own,
    Global,
}

pub(crate) fn run(args: &Args, tasks: u64) -> Outcome {
    let choices = [("yield_now", Via::Own), ("gosched", Via::Global)];
    match args.choice("via", &choices)? {
        Via::Own => measure(args, tasks, yield_now),
        Via::Global => measure(args, tasks, gosched),
    }
}

fn measure(args: &Args, tasks: u64, give_way: impl Fn() + Copy + Send + 'static) -> Outcome {
    let each = each_of(args, tasks)?;
    let start = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            spawn(move || {
                for _ in 0..each {
                    give_way();
                }
                each
            })
        })
        .collect();
    let n = join_all(tasks).iter().sum();
    Ok(Report::new(args, n).time(start.elapsed(), n))
}

fn each_of(args: &Args, tasks: u64) -> Result<u64, UsageError> {
    Ok(args.n(5_000_000)?.div_ceil(tasks))
}
