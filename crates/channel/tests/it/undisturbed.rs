//! Runs that nothing from outside came into, for tests of orders on one processor.

use gosched_sched::{Config, counters, run, yield_now};
use std::time::Duration;

/// Runs `tests` on one processor and without time slices: nobody is stopped because the clock went
/// on, which on a machine that stalls happens anywhere.
pub(crate) fn on_one_processor(tests: impl FnOnce() + Send + 'static) {
    let _ = Config::new().procs(1).slice(Duration::from_secs(3600)).start();
    run(tests);
}

/// What `scenario` comes to when only the scheduler chose what ran in it.
///
/// A thread that the kernel keeps (a page that is slow to come) loses its processor to another
/// thread, and a new goroutine that finds no stack ready waits for one: both change orders, rightly,
/// and both are counted.
pub(crate) fn undisturbed<T>(scenario: impl Fn() -> T) -> T {
    let disturbances = || {
        let now = counters();
        (now.undeclared_hand_offs, now.fiber_waits)
    };
    loop {
        let before = disturbances();
        let result = scenario();
        if disturbances() == before {
            return result;
        }
    }
}

/// Lets every goroutine that is ready run until it waits.
///
/// Twice, since every 61st round takes the ring's head, which may be the caller, before the one that
/// has just been made.
pub(crate) fn let_others_wait() {
    yield_now();
    yield_now();
}
