//! `timers_sleep`: many tasks asleep at once, for different times.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::late_ns;
use crate::tasks::{join_all, spawn};
use crate::work::mix;
use gosched::channel::{Receiver, bounded};
use gosched::thread::{current, park, sleep};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// For the last to arrive at the gate to have parked too.
const SETTLE: Duration = Duration::from_millis(200);

/// How long the tasks sleep.
#[derive(Clone, Copy)]
enum Span {
    /// 1 to 100 ms, on whole microseconds.
    Microseconds,
    /// The same on whole milliseconds.
    Milliseconds,
    /// 1 to 10 s.
    Seconds,
}

impl Span {
    fn nth_sleep(self, i: u64) -> Duration {
        match self {
            Span::Microseconds => Duration::from_micros(1_000 + mix(i) % 99_001),
            Span::Milliseconds => Duration::from_millis(1 + mix(i) % 100),
            Span::Seconds => Duration::from_micros(1_000_000 + mix(i) % 9_000_001),
        }
    }
}

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(200_000)?;
    let grain = args.choice("grain", &[("us", Span::Microseconds), ("ms", Span::Milliseconds)])?;
    let span = args.choice("span", &[("short", grain), ("long", Span::Seconds)])?;
    let is_gated = args.get("gate", 0)? != 0;
    let here = Arc::new(AtomicU64::new(0));
    let host = current();
    let (gate, opened) = bounded::<()>(0);
    let mut start = Instant::now();
    let tasks: Vec<_> = (0..n)
        .map(|i| {
            let waits = is_gated.then(|| (here.clone(), host.clone(), opened.clone()));
            spawn(move || {
                let asked = span.nth_sleep(i);
                if let Some((here, host, opened)) = waits {
                    if here.fetch_add(1, Relaxed) == n - 1 {
                        host.unpark();
                    }
                    wait(&opened);
                }
                let start = Instant::now();
                sleep(asked);
                late_ns(start, asked)
            })
        })
        .collect();
    if is_gated {
        while here.load(Relaxed) < n {
            park();
        }
        sleep(SETTLE);
        start = Instant::now();
    }
    drop(gate);
    let lateness = join_all(tasks);
    Ok(Report::new(args, n).secs(start.elapsed()).lateness(lateness))
}

fn wait(opened: &Receiver<()>) {
    assert!(opened.recv().is_err(), "nobody sends");
}
