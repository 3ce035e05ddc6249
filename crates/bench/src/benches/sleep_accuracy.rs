//! `sleep_accuracy`: one task sleeps again and again while nothing else happens.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::late_ns;
use gosched::thread::sleep;
use std::time::{Duration, Instant};

const ASKED: Duration = Duration::from_millis(1);

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000)?;
    let start = Instant::now();
    let lateness = (0..n)
        .map(|_| {
            let start = Instant::now();
            sleep(ASKED);
            late_ns(start, ASKED)
        })
        .collect();
    Ok(Report::new(args, n).secs(start.elapsed()).lateness(lateness))
}
