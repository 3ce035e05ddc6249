//! `idle`: parked tasks and nothing to do; what that costs.

use super::Outcome;
use crate::args::Args;
use crate::gate::Via;
use crate::process::Usage;
use crate::report::Report;
use crate::tasks::spawn;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// For all tasks to have parked.
const SETTLE: Duration = Duration::from_millis(200);

/// Runs on a plain thread, and sleeps there: the runtime has nothing at all to do.
pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(10_000)?;
    let via = Via::asked(args)?;
    let asleep = args.secs("secs", 3.0)?;
    let (gate, waiter) = via.gate();
    let tasks = gosched::run(move || {
        let tasks = (0..n).map(|_| {
            let waiter = waiter.clone();
            spawn(move || waiter.wait())
        });
        tasks.collect()
    });
    sleep(SETTLE);
    let (start, before) = (Instant::now(), Usage::now());
    sleep(asleep);
    let (took, after) = (start.elapsed(), Usage::now());
    gate.open(tasks);
    Ok(Report::new(args, n)
        .secs(took)
        .set("cpu_ms", (after.cpu - before.cpu).as_secs_f64() * 1e3)
        .set("ctx_voluntary", after.voluntary - before.voluntary)
        .set("ctx_involuntary", after.involuntary - before.involuntary)
        .set("via", via.name()))
}
