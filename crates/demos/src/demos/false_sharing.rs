//! `false-sharing`: two goroutines, each with a counter of its own, in one line of memory or in two.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use gosched::runtime;
use gosched::sync::{Arc, CachePadded};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

pub(super) const DEMO: Demo = Demo {
    name: "false-sharing",
    about: "counters of different goroutines in one line of memory",
    question: "CPUs share memory by lines of 64 bytes. Two goroutines count, each in a counter of \
        its own. Look at how far apart the counters are, and at the time of a step.",
    size: Size { what: "steps of each", usual: 20_000_000, quick: 100_000, most: 1_000_000_000 },
    wants_folder: false,
    columns: &["bytes_apart", "step_ps", "counted", "gomaxprocs"],
    cases: &[
        Case::new(Wrong, PACKED, |setup| count(setup, Packed::default())),
        Case::new(Right, PADDED, |setup| count(setup, Padded::default())),
    ],
    explain,
};

const PACKED: &str = "in one line";
const PADDED: &str = "CachePadded";

#[derive(Default)]
#[repr(align(64))]
struct Packed {
    counters: [AtomicU64; 2],
}

#[derive(Default)]
struct Padded {
    counters: [CachePadded<AtomicU64>; 2],
}

trait Counters: Send + Sync + 'static {
    fn get(&self, i: usize) -> &AtomicU64;
}

impl Counters for Packed {
    fn get(&self, i: usize) -> &AtomicU64 {
        &self.counters[i]
    }
}

impl Counters for Padded {
    fn get(&self, i: usize) -> &AtomicU64 {
        &self.counters[i]
    }
}

fn count(setup: &Setup, counters: impl Counters) -> Result<Figures, String> {
    let (counters, steps) = (Arc::new(counters), setup.size);
    let address = |i: usize| std::ptr::from_ref(counters.get(i)).addr();
    let apart = address(1) - address(0);
    let start = Instant::now();
    let both = [0, 1].map(|i| {
        let counters = counters.clone();
        gosched::go(move || {
            let counter = counters.get(i);
            for _ in 0..steps {
                counter.fetch_add(1, Relaxed);
            }
        })
    });
    both.into_iter().try_for_each(|g| g.join()).map_err(|_| "a goroutine panicked")?;
    let step_ps = start.elapsed().as_nanos() * 1_000 / u128::from(steps.max(1));
    Ok(Figures::new()
        .set("bytes_apart", apart)
        .set("step_ps", step_ps)
        .set("counted", counters.get(0).load(Relaxed) + counters.get(1).load(Relaxed))
        .set("gomaxprocs", runtime::gomaxprocs(0)))
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let times = rows.times(PACKED, PADDED, "step_ps");
    let procs = rows.get(PACKED, "gomaxprocs");
    let step = |case| rows.get(case, "step_ps") as f64 / 1e3;
    let apart = |case| rows.get(case, "bytes_apart");
    vec![
        Finding::of(
            apart(PACKED) < 64 && apart(PADDED) >= 64,
            "The goroutines share nothing; the counters are what shares a line.",
            "The counters were not laid out as meant.",
        ),
        Finding::of(
            times > 1.3,
            format!(
                "A step took {:.1} ns in one line and {:.1} ns in lines of their own, {times:.1} \
                 times as long: with each step the line goes over to the other CPU.",
                step(PACKED),
                step(PADDED),
            ),
            format!(
                "A step took {:.1} ns in one line and {:.1} ns padded. The two must run at the same \
                 time on CPUs with caches of their own for the effect to show; GOMAXPROCS was \
                 {procs}.",
                step(PACKED),
                step(PADDED),
            ),
        ),
    ]
}
