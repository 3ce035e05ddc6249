//! Go's package `runtime`, as far as Rust needs it.

#[doc(hidden)]
pub use gosched_sched::pause_world;
pub use gosched_sched::{
    Counters, GoroutineId, MemoryStats, NoPreempt, Preemptions, WorldStops, counters, current_node,
    goroutine_id, gosched, is_goroutine, lock_os_thread, memory_stats, num_cpu, num_goroutine,
    panics, preemptions, safepoint, set_background_gc, unlock_os_thread, world_stops,
};
use std::fmt::Write;

/// Sets how many goroutines may run at once and returns the former value. 0 only reads.
///
/// Go's `runtime.GOMAXPROCS`. The world is stopped for a moment when the number changes. Before the
/// runtime has started a positive number starts it with that many processors, and the value
/// returned is the default. More than 1,024 are clipped.
///
/// The default is the number of CPUs in the affinity mask, or the quota of CPU time, rounded up, if
/// that is less; a quota counts as 2 at least. It is the strictest of all cgroups that hold this
/// process, where Go's looks at the innermost only. The default is followed: once a second at most a
/// running program looks for a change, writes one line about it to standard error and changes the
/// number, until somebody says one here or in the environment. [`Config`](crate::Config) can switch
/// either off.
///
/// ```
/// let before = gosched::runtime::gomaxprocs(3);
/// assert_eq!(gosched::runtime::gomaxprocs(0), 3);
/// gosched::runtime::gomaxprocs(before);
/// ```
pub fn gomaxprocs(n: usize) -> usize {
    match (gosched_sched::procs(), n) {
        (0, 0) => gosched_sched::default_procs(),
        (0, n) => {
            let _ = crate::Config::new().procs(n).start();
            gosched_sched::default_procs()
        }
        (now, 0) => now,
        (_, n) => gosched_sched::set_procs(n),
    }
}

/// Sets GOMAXPROCS to its default, see [`gomaxprocs`], and has it followed from now on.
///
/// Go's `runtime.SetDefaultGOMAXPROCS`; as there the variable `GOMAXPROCS` does not count.
///
/// ```
/// use gosched::runtime;
///
/// runtime::gomaxprocs(3);
/// runtime::set_default_gomaxprocs();
/// assert!(runtime::gomaxprocs(0) <= runtime::num_cpu());
/// ```
pub fn set_default_gomaxprocs() {
    gosched_sched::set_default_procs();
}

/// Sets GOMAXPROCS until the guard is dropped, which puts the former number back, or goes on
/// following the default if that was followed. 0 means the default.
///
/// For what Go programs write as `defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))`. Guards are to
/// be dropped in the opposite order; otherwise the last one to be dropped decides.
///
/// ```
/// use gosched::runtime;
///
/// let before = runtime::gomaxprocs(0);
/// let one_at_a_time = runtime::scoped_gomaxprocs(1);
/// assert_eq!(runtime::gomaxprocs(0), 1);
/// drop(one_at_a_time);
/// assert_eq!(runtime::gomaxprocs(0), before);
/// ```
#[must_use = "the number is put back at once"]
pub fn scoped_gomaxprocs(n: usize) -> GomaxprocsGuard {
    let guard = GomaxprocsGuard(gosched_sched::FormerProcs::remember());
    match n {
        0 => set_default_gomaxprocs(),
        n => drop(gosched_sched::set_procs(n)),
    }
    guard
}

/// Puts GOMAXPROCS back when it is dropped; made by [`scoped_gomaxprocs`].
#[derive(Debug)]
pub struct GomaxprocsGuard(gosched_sched::FormerProcs);

impl Drop for GomaxprocsGuard {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// Gives memory and threads that nobody uses back to the system, and returns when it is done.
///
/// Go's `runtime.GC`. There is no garbage to trace in Rust; this is what a cycle does besides: the
/// world is stopped for a moment (counted in [`world_stops`]) to empty the processors' caches; then
/// idle stacks and thread-local blocks beyond a small reserve go back to the system, with the pages
/// that the others have touched, the free pages of libc's allocator, and idle threads beyond a
/// bound. [`Counters::collections`] counts the cycles. Parked goroutines keep what they have.
///
/// A cycle runs by itself when stacks beyond a reserve have been idle for some seconds, and every two
/// minutes while goroutines end; it gives back what was idle all the time. `GOSCHED=gc=off` and
/// [`set_background_gc`] leave everything to the program.
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
///     assert!(runtime::counters().collections > before);
/// });
/// ```
pub fn gc() {
    gosched_sched::gc();
}

/// As [`gc`], and what caches such as [`sync::Pool`](crate::sync::Pool) keep for one more cycle goes
/// as well. Go's `debug.FreeOSMemory`.
///
/// # Panics
/// As [`gc`].
///
/// ```
/// gosched::runtime::free_os_memory();
/// ```
pub fn free_os_memory() {
    gosched_sched::free_os_memory();
}

/// Sets how much memory idle stacks may hold before they are given back without waiting for a
/// collection, in bytes for each size of stacks, and returns the former limit: 32 MiB by default.
///
/// What Go's `debug.SetMemoryLimit` is for a heap. It is a soft limit: a small reserve always stays,
/// and a stack counts as two pages, whatever it has touched, until a collection.
///
/// ```
/// let former = gosched::runtime::set_cache_limit(1 << 20);
/// assert_eq!(gosched::runtime::set_cache_limit(former), 1 << 20);
/// ```
pub fn set_cache_limit(bytes: usize) -> usize {
    gosched_sched::set_cache_limit(bytes)
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

/// What goroutines do, one paragraph for all that do the same and were spawned at the same place, the
/// many first, with the frames of one of them. For finding those that nobody wakes any more; [`dump`] has
/// each by itself.
///
/// A goroutine whose channel has lost its other side does not wait: its operation returns an error. One that
/// waits where there never is another side (a channel from `never()`, a select without cases) says
/// `nobody on the other side`.
///
/// No counterpart in Go, whose goroutine profile groups by stack.
///
/// ```
/// let waits: Vec<_> = (0..3).map(|_| gosched::go(gosched::thread::park)).collect();
/// let mut text = String::new();
/// while !text.contains("3 goroutines [park]:") {
///     text.clear();
///     gosched::runtime::dump_groups(&mut text).unwrap();
/// }
/// waits.iter().for_each(|one| one.thread().unpark());
/// ```
///
/// # Errors
/// What `out` returns.
pub fn dump_groups(out: &mut impl Write) -> std::fmt::Result {
    gosched_sched::dump_groups(out)
}

/// What every goroutine does, in Go's form, one paragraph each: its state, its frames, where it was
/// spawned.
///
/// ```text
/// goroutine 7 "name" [chan receive, 2 minutes] {request: 42}:
/// app::worker(...)
///     src/main.rs:33 +0x2f
/// created by src/main.rs:12:5 in goroutine 1
/// ```
///
/// Go's `runtime.Stack(buf, true)`. Frames need the feature `frames`, which is on by default; those of the
/// runtime are left out, and a goroutine that runs on another thread says so instead. Nobody is stopped
/// for it.
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
