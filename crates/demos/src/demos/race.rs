//! `race`: what is left of races in safe Rust.

use crate::demo::{Case, Demo, Figures, Setup, Size};
use crate::row::Verdict::{Right, Wrong};
use crate::row::{Finding, Rows};
use crate::text::count;
use gosched::sync::{Arc, Mutex, WaitGroup};
use gosched::thread;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const DEMO: Demo = Demo {
    name: "race",
    about: "races that safe Rust allows: of the logic, not of the data",
    question: "Rust refuses shared memory without synchronisation, so there is no data race to \
        show. Each step below is atomic; a pair of them, look and then act, is not. Eight \
        goroutines add to one total; then as many as there are coins draw them from one purse, two \
        for each coin. Look at what came out and at what was right.",
    size: Size { what: "steps of each goroutine", usual: 1_000, quick: 100, most: 1_000_000 },
    wants_folder: false,
    columns: &["came_out", "right"],
    cases: &[
        Case::new(Wrong, LOAD_STORE, load_store),
        Case::new(Right, ONE_STEP, one_step),
        Case::new(Right, MUTEX, mutex),
        Case::new(Wrong, CHECK_ACT, check_then_act),
        Case::new(Right, UPDATE, update),
    ],
    explain,
};

const LOAD_STORE: &str = "total: load, then store";
const ONE_STEP: &str = "total: one atomic step";
const MUTEX: &str = "total: under a mutex";
const CHECK_ACT: &str = "purse: check, then take";
const UPDATE: &str = "purse: check and take at once";
const GOROUTINES: u64 = 8;

/// Lets all goroutines do `step` as often as they are to.
fn all(each: u64, step: impl Fn() + Send + Clone + 'static) {
    let all = WaitGroup::new();
    for _ in 0..GOROUTINES {
        let step = step.clone();
        all.go(move || (0..each).for_each(|_| step()));
    }
    all.wait();
}

fn figures(came_out: u64, right: u64) -> Result<Figures, String> {
    Ok(Figures::new().set("came_out", came_out).set("right", right))
}

fn load_store(setup: &Setup) -> Result<Figures, String> {
    let total = Arc::new(AtomicU64::new(0));
    let shared = total.clone();
    all(setup.size, move || {
        let seen = shared.load(Relaxed);
        // A longer computation, a call, a preemption: anything may come in between.
        thread::yield_now();
        shared.store(seen + 1, Relaxed);
    });
    figures(total.load(Relaxed), GOROUTINES * setup.size)
}

fn one_step(setup: &Setup) -> Result<Figures, String> {
    let total = Arc::new(AtomicU64::new(0));
    let shared = total.clone();
    all(setup.size, move || {
        shared.fetch_add(1, Relaxed);
        thread::yield_now();
    });
    figures(total.load(Relaxed), GOROUTINES * setup.size)
}

fn mutex(setup: &Setup) -> Result<Figures, String> {
    let total = Arc::new(Mutex::new(0));
    let shared = total.clone();
    all(setup.size, move || {
        *shared.lock().unwrap() += 1;
        thread::yield_now();
    });
    let total = *total.lock().unwrap();
    figures(total, GOROUTINES * setup.size)
}

/// Coins that were drawn from a purse with as many as there are steps of four goroutines, by eight.
fn draw(setup: &Setup, take: fn(&AtomicU64) -> bool) -> Result<Figures, String> {
    let coins = GOROUTINES / 2 * setup.size;
    let purse = Arc::new((AtomicU64::new(coins), AtomicU64::new(0)));
    let shared = purse.clone();
    all(setup.size, move || {
        if take(&shared.0) {
            shared.1.fetch_add(1, Relaxed);
        }
    });
    figures(purse.1.load(Relaxed), coins)
}

fn check_then_act(setup: &Setup) -> Result<Figures, String> {
    draw(setup, |purse| {
        let seen = purse.load(Relaxed);
        let may = seen > 0;
        thread::yield_now();
        if may {
            purse.store(seen - 1, Relaxed);
        }
        may
    })
}

fn update(setup: &Setup) -> Result<Figures, String> {
    draw(setup, |purse| {
        let taken = purse.fetch_update(Relaxed, Relaxed, |coins| coins.checked_sub(1));
        thread::yield_now();
        taken.is_ok()
    })
}

fn explain(rows: &Rows<'_>) -> Vec<Finding> {
    let out = |case| rows.get(case, "came_out");
    let right = |case| rows.get(case, "right");
    let is_right = |case| out(case) == right(case) && right(case) > 0;
    let lost = right(LOAD_STORE).saturating_sub(out(LOAD_STORE));
    vec![
        Finding::of(
            lost > 0,
            format!(
                "{} of {} steps were lost: whoever stores what it has loaded undoes what others \
                 added in between. The number differs from run to run.",
                count(lost),
                count(right(LOAD_STORE)),
            ),
            "No step was lost in this run, which proves nothing: nobody happened to come in between.",
        ),
        Finding::of(
            out(CHECK_ACT) > right(CHECK_ACT),
            format!(
                "{} coins were drawn from a purse with {}: the check was right when it was made, \
                 and old when it was used.",
                count(out(CHECK_ACT)),
                count(right(CHECK_ACT)),
            ),
            "No coin was drawn twice in this run, which proves nothing.",
        ),
        Finding::of(
            [ONE_STEP, MUTEX, UPDATE].into_iter().all(is_right) && lost > 0,
            "The cures make look and act one step: `fetch_add` or `fetch_update` for one number, a \
             mutex for more than one.",
            "A cure came to something else than it should, or there was nothing to cure.",
        ),
    ]
}
