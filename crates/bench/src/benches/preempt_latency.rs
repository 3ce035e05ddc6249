//! `preempt_latency`: tasks that only compute, and one that sleeps 1 ms again and again.
//!
//! `sleeper=0` leaves that one out, to show what the hogs can do alone. `calm_ms=20` lets each hog
//! sleep for so long after every [`BURST`], so that the runtime finds it computing anew.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use crate::stats::late_ns;
use crate::tasks::spawn;
use crate::work::spin;
use gosched::runtime::preemptions;
use gosched::thread::sleep;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::sleep as sleep_thread;
use std::time::{Duration, Instant};

const ASKED: Duration = Duration::from_millis(1);
/// About 100 us of arithmetic.
const CHUNK: u64 = 25_000;
/// Chunks between two calms: about 8 ms.
const BURST: u64 = 80;
/// How long the sleeper may take to notice the end.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the sleeper, the hogs and the thread that watches them share.
#[derive(Default)]
struct Probe {
    late_ns: Mutex<Vec<u64>>,
    over: AtomicBool,
    finished: AtomicBool,
    chunks: AtomicU64,
    calm: Duration,
}

impl Probe {
    fn is_over(&self) -> bool {
        // ORDERING: Relaxed; there is nothing else to see.
        self.over.load(Relaxed)
    }

    fn sleep_again_and_again(&self) {
        while !self.is_over() {
            let start = Instant::now();
            sleep(ASKED);
            self.samples().push(late_ns(start, ASKED));
        }
        self.finish();
    }

    /// Arithmetic until the end.
    fn hog(&self) {
        let mut chunks = 0;
        while !self.is_over() {
            spin(CHUNK);
            chunks += 1;
            // ORDERING: Relaxed; a count.
            self.chunks.fetch_add(1, Relaxed);
            if !self.calm.is_zero() && chunks % BURST == 0 {
                sleep(self.calm);
            }
        }
    }

    fn samples(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.late_ns.lock().expect("nobody panics with the samples")
    }

    fn finish(&self) {
        // ORDERING: Relaxed; the samples have a lock of their own.
        self.finished.store(true, Relaxed);
    }

    /// Waits for the sleeper's end; false when it does not come.
    fn has_finished(&self) -> bool {
        let start = Instant::now();
        // ORDERING: Relaxed; as in `finish`.
        while !self.finished.load(Relaxed) && start.elapsed() < PATIENCE {
            sleep_thread(Duration::from_millis(5));
        }
        // ORDERING: Relaxed; as in `finish`.
        self.finished.load(Relaxed)
    }
}

/// Runs on a plain thread: goroutines may starve here.
pub(crate) fn run(args: &Args) -> Outcome {
    let window = args.secs("secs", 3.0)?;
    let hogs = args.get("hogs", 2 * args.procs as u64)?;
    let has_sleeper = args.get("sleeper", 1)? != 0;
    let calm = Duration::from_millis(args.get("calm_ms", 0)?);
    let probe = Arc::new(Probe { calm, ..Probe::default() });
    let start = |f: fn(&Probe)| {
        let probe = probe.clone();
        drop(spawn(move || f(&probe)));
    };
    if has_sleeper {
        start(Probe::sleep_again_and_again);
    } else {
        probe.finish();
    }
    sleep_thread(Duration::from_millis(100));
    let wakeups_before = std::mem::take(&mut *probe.samples()).len();
    let (began, before) = (Instant::now(), preemptions().in_place);
    (0..hogs).for_each(|_| start(Probe::hog));
    sleep_thread(window);
    // ORDERING: Relaxed; there is nothing else to see.
    probe.over.store(true, Relaxed);
    let (took, after) = (began.elapsed(), preemptions().in_place);
    let hung = !probe.has_finished();
    let mut late_ns = probe.samples().clone();
    let wakeups = late_ns.len();
    if hung {
        late_ns.push(took.as_nanos() as u64);
    }
    let starved = late_ns.iter().max().is_some_and(|worst| *worst >= starvation_ns(window));
    let report = Report::new(args, hogs)
        .secs(took)
        .set("wakeups", wakeups)
        .set("wakeups_before_hogs", wakeups_before)
        // ORDERING: Relaxed; a count.
        .set("hog_chunks", probe.chunks.load(Relaxed))
        .lateness(late_ns)
        .set("starved", starved)
        .set("preemptions", after - before);
    Ok(if hung { report.set("hung", true) } else { report })
}

/// A wait of this length means that the sleeper starved.
fn starvation_ns(window: Duration) -> u64 {
    1_000_000_000.min(window.as_nanos() as u64 / 2)
}
