//! `parked_memory`: n tasks wait at once for one event; what they hold, and how fast they wake.

use super::Outcome;
use crate::args::Args;
use crate::gate::Via;
use crate::process::rss_bytes;
use crate::report::{Report, ns_per};
use crate::tasks::spawn;
use gosched::thread::{current, park, sleep};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// For the last to arrive to have parked too, and for memory to settle.
const SETTLE: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(1_000_000)?;
    let via = Via::asked(args)?;
    let (gate, waiter) = via.gate();
    let here = Arc::new(AtomicU64::new(0));
    let host = current();
    let mut tasks = Vec::with_capacity(n as usize);
    let before = rss_bytes();
    let start = Instant::now();
    for _ in 0..n {
        let (waiter, here, host) = (waiter.clone(), here.clone(), host.clone());
        tasks.push(spawn(move || {
            if here.fetch_add(1, Relaxed) == n - 1 {
                host.unpark();
            }
            drop(host);
            waiter.wait();
        }));
    }
    while here.load(Relaxed) < n {
        park();
    }
    let spawned = start.elapsed();
    sleep(SETTLE);
    let bytes = rss_bytes().saturating_sub(before);
    let start = Instant::now();
    gate.open(tasks);
    let woken = start.elapsed();
    Ok(Report::new(args, n)
        .time(spawned, n)
        .set("bytes_per_task", bytes as f64 / n as f64)
        .set("wake_ns_per_task", ns_per(woken, n))
        .set("via", via.name()))
}
