//! `timer_churn`: timers that are armed and stopped.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use gosched::time::after_func;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(2_000_000)?;
    let start = Instant::now();
    for _ in 0..n {
        assert!(after_func(HOUR, || {}).stop());
    }
    let took = start.elapsed();
    Ok(Report::new(args, n).time(took, n).set("via", "after_func + stop"))
}
