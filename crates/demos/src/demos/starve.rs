//! `starve`: a loop that only computes, and another goroutine that wants the same processor.

use crate::demo::{Case, Demo, Figures, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::time;
use gosched::{go, runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(super) const DEMO: Demo = Demo {
    name: "starve",
    about: "a loop that only computes, and another goroutine that wants its processor",
    question: "With one processor a goroutine starts another, then computes until that one has run, \
        or until it loses its patience. Look at whether the other one ran beside the loop, and how \
        long it took.",
    size: Size { what: "ms of patience", usual: 300, quick: 30, most: 60_000 },
    wants_folder: false,
    columns: &["other_ran_beside", "loop_computed_ns", "stopped"],
    cases: &[
        Case::new(Wrong, OFF, |setup| hog(Duration::from_millis(setup.size), || {}))
            .with("procs=1,asyncpreemptoff=1"),
        Case::new(Right, YIELD, |_| hog(LONG, thread::yield_now)).with("procs=1,asyncpreemptoff=1"),
        Case::new(Right, ON, |_| hog(LONG, || {})).with("procs=1,asyncpreemptoff=0"),
    ],
    explain,
};

const OFF: &str = "preemption off";
const YIELD: &str = "explicit yield";
const ON: &str = "preemption on";
/// Only where nothing stops the loop is the end in sight.
const LONG: Duration = Duration::from_secs(600);

fn hog(patience: Duration, between: fn()) -> Result<Figures, String> {
    let before = runtime::preemptions().in_place;
    let has_run = Arc::new(AtomicBool::new(false));
    let tell = has_run.clone();
    let other = go(move || tell.store(true, Relaxed));
    let start = Instant::now();
    let mut sum = 0_u64;
    while !has_run.load(Relaxed) && start.elapsed() < patience {
        sum = std::hint::black_box((0..1_000).fold(sum, |sum, i| sum.wrapping_mul(31) + i));
        between();
    }
    let (beside, computed) = (has_run.load(Relaxed), start.elapsed());
    other.join().map_err(|_| "the other goroutine panicked")?;
    Ok(Figures::new()
        .set("other_ran_beside", u64::from(beside))
        .set("loop_computed_ns", computed.as_nanos())
        .set("stopped", runtime::preemptions().in_place - before)
        .set("held_up", runtime::counters().undeclared_hand_offs))
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let beside = |case| rows.get(case, "other_ran_beside") == 1;
    let computed = |case| time(rows.get(case, "loop_computed_ns"));
    let stopped = rows.get(ON, "stopped");
    vec![
        Finding::of(
            !beside(OFF),
            format!(
                "With preemption off, as before Go 1.14, the other goroutine came after the loop, \
                 which had computed for {} and would have gone on: a server would answer nobody.",
                computed(OFF)
            ),
            if rows.get(OFF, "held_up") > 0 {
                "With preemption off the loop was held up by the kernel (a page fault, for instance), \
                 so that its processor was handed on, and nothing starved here."
            } else {
                "With preemption off the other goroutine ran beside the loop all the same, so \
                 nothing starved here."
            },
        ),
        Finding::of(
            beside(YIELD) && rows.get(YIELD, "stopped") == 0,
            format!(
                "An explicit yield lets it run after {}, but somebody has to think of it, in every \
                 loop, those of libraries included.",
                computed(YIELD)
            ),
            "The explicit yield did not help.",
        ),
        Finding::of(
            beside(ON) && stopped > 0,
            format!(
                "With preemption on, the default, the loop was stopped {stopped} times between two \
                 instructions and knew nothing of it; the other goroutine ran after {}. A slice is \
                 10 ms, and whoever was started by the loop waits for its end.",
                computed(ON)
            ),
            "With preemption on the loop was not stopped by signal; `gosched doctor` says why.",
        ),
    ]
}
