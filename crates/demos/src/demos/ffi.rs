//! `ffi`: blocking calls in goroutines, bare, declared, and limited in number.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Plain, Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::time;
use gosched::{Limiter, blocking, go, runtime, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(super) const DEMO: Demo = Demo {
    name: "ffi",
    about: "calls that block the thread: bare, declared, and limited in number",
    question: "Goroutines call a foreign function that sleeps in the kernel for 10 ms, as a C \
        library that waits for a disk would, all at once. Beside them a goroutine wakes every \
        millisecond. Look at the threads, and at how late the ticker is.",
    size: Size { what: "calls", usual: 100, quick: 20, most: 5_000 },
    wants_folder: false,
    columns: &[
        "calls",
        "took_ns",
        "threads",
        "declared_hand_offs",
        "undeclared_hand_offs",
        "ticker_late_ns",
    ],
    cases: &[
        Case::new(Wrong, BARE, |setup| show(setup, foreign)),
        Case::new(Plain, DECLARED, |setup| show(setup, || blocking(foreign))),
        Case::new(Right, LIMITED, |setup| show(setup, || FOUR.run(foreign))),
    ],
    explain,
};

const BARE: &str = "bare";
const DECLARED: &str = "blocking(f)";
const LIMITED: &str = "Limiter, four at once";
const LASTS: Duration = Duration::from_millis(10);
static FOUR: Limiter = Limiter::new(4);

/// It knows nothing of goroutines.
fn foreign() {
    std::thread::sleep(LASTS);
}

fn show(setup: &Setup, call: fn()) -> Result<Figures, String> {
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let ticker = go(move || latest_tick(&seen));
    let before = runtime::counters();
    let start = Instant::now();
    let calls: Vec<_> = (0..setup.size).map(|_| go(call)).collect();
    let done = calls.into_iter().filter_map(|call| call.join().ok()).count();
    let took = start.elapsed();
    let after = runtime::counters();
    over.store(true, Relaxed);
    let latest = ticker.join().map_err(|_| "the ticker panicked")?;
    Ok(Figures::new()
        .set("calls", done)
        .set("took_ns", took.as_nanos())
        .set("threads", after.machines)
        .set("declared_hand_offs", after.declared_hand_offs - before.declared_hand_offs)
        .set("undeclared_hand_offs", after.undeclared_hand_offs - before.undeclared_hand_offs)
        .set("ticker_late_ns", latest.as_nanos()))
}

fn latest_tick(over: &AtomicBool) -> Duration {
    const TICK: Duration = Duration::from_millis(1);
    let mut latest = Duration::ZERO;
    while !over.load(Relaxed) {
        let start = Instant::now();
        thread::sleep(TICK);
        latest = latest.max(start.elapsed().saturating_sub(TICK));
    }
    latest
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let get = |case, figure| rows.get(case, figure);
    let (bare, limited) = (get(BARE, "threads"), get(LIMITED, "threads"));
    let late = |case| time(get(case, "ticker_late_ns"));
    let took = |case| time(get(case, "took_ns"));
    let calls = get(BARE, "calls");
    let worst = [BARE, DECLARED, LIMITED].map(|case| get(case, "ticker_late_ns")).into_iter().max();
    vec![
        Finding::of(
            get(BARE, "undeclared_hand_offs") > 0 && get(DECLARED, "declared_hand_offs") > 0,
            format!(
                "Nobody else stood still. The processors of the bare calls were handed on {} times, \
                 when the monitor had seen their threads asleep; the declared ones are known from \
                 the start ({} times). The ticker was at most {} late beside bare calls and {} \
                 beside declared ones.",
                get(BARE, "undeclared_hand_offs"),
                get(DECLARED, "declared_hand_offs"),
                late(BARE),
                late(DECLARED),
            ),
            "No processor had to be handed on: the calls did not block, or nobody else wanted to run.",
        ),
        Finding::of(
            bare > limited,
            format!(
                "Each call has a thread while it lasts: {bare} threads for {calls} bare calls, \
                 {limited} with the limiter. It needs {} instead of {}, which is the price, and \
                 what a database with four connections would charge anyway.",
                took(LIMITED),
                took(BARE),
            ),
            format!("The limiter saved no threads here ({bare} and {limited})."),
        ),
        Finding::of(
            worst.is_some_and(|ns| ns < LASTS.as_nanos() as u64) && bare > limited,
            format!("In no case was the ticker as late as one call lasts ({LASTS:?})."),
            format!(
                "The ticker was up to {} late, as long as a call lasts or longer: this machine was \
                 busy with something else as well.",
                time(worst.unwrap_or(0))
            ),
        ),
    ]
}
