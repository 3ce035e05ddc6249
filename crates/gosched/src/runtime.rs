//! Go's package `runtime`, as far as Rust needs it.

#[doc(hidden)]
pub use gosched_sched::pause_world;
pub use gosched_sched::{
    Counters, GoroutineId, NoPreempt, Preemptions, WorldStops, counters, goroutine_id, gosched,
    is_goroutine, lock_os_thread, num_cpu, num_goroutine, panics, preemptions, safepoint,
    unlock_os_thread, world_stops,
};
use std::fmt::Write;

/// Sets how many goroutines may run at once and returns the former value. 0 only reads.
///
/// Go's `runtime.GOMAXPROCS`. The world is stopped for a moment when the number changes. Before the
/// runtime has started a positive number starts it with that many processors, and the value
/// returned is the number of CPUs. More than 1,024 are clipped.
///
/// ```
/// let before = gosched::runtime::gomaxprocs(3);
/// assert_eq!(gosched::runtime::gomaxprocs(0), 3);
/// gosched::runtime::gomaxprocs(before);
/// ```
pub fn gomaxprocs(n: usize) -> usize {
    match (gosched_sched::procs(), n) {
        (0, 0) => num_cpu(),
        (0, n) => {
            let _ = crate::Config::new().procs(n).start();
            num_cpu()
        }
        (now, 0) => now,
        (_, n) => gosched_sched::set_procs(n),
    }
}

/// Gives memory and threads that nobody uses back to the system, and returns when it is done.
///
/// Go's `runtime.GC`. There is no garbage to trace in Rust; this is what a cycle does besides: the
/// world is stopped for a moment (counted in [`world_stops`]) to empty the processors' caches; then
/// idle stacks and thread-local blocks beyond a small reserve go back to the system, with the pages
/// that the others have touched, the free pages of libc's allocator, and idle threads beyond a
/// bound. [`Counters::collections`] counts the calls. Parked goroutines keep what they have.
///
/// It takes longer the more was used at the peak, up to seconds after a million goroutines; other
/// goroutines run meanwhile. May be called from anywhere.
///
/// # Panics
/// If the runtime has to be started for it and can't create its threads.
///
/// ```
/// use gosched::runtime;
///
/// gosched::run(|| {
///     let before = runtime::counters().collections;
///     runtime::gc();
///     assert_eq!(runtime::counters().collections, before + 1);
/// });
/// ```
pub fn gc() {
    gosched_sched::gc();
}

/// The version of this crate.
#[must_use]
pub fn version() -> &'static str {
    concat!("gosched ", env!("CARGO_PKG_VERSION"))
}

/// The name of the poller where idle machines sleep.
#[must_use]
pub fn poll_driver() -> &'static str {
    "epoll"
}

/// What every goroutine does, in Go's form, one paragraph each.
///
/// ```
/// let mut text = String::new();
/// gosched::run(|| ());
/// gosched::runtime::dump(&mut text).unwrap();
/// ```
///
/// # Errors
/// What `out` returns.
pub fn dump(out: &mut impl Write) -> std::fmt::Result {
    gosched_sched::dump(out)
}
