//! A collection: memory and threads that nobody uses go back to the system.
//!
//! There is no garbage to trace in Rust; what a cycle of Go's collector does besides is done here.

use crate::scheduler::SCHEDULER;
use crate::{blocking, contention, idle, start, world};
use gosched_fiber::pool;

/// Runs a collection and returns when it is done. Go's `runtime.GC`.
///
/// Stops the world briefly, see [`world_stops`](crate::world_stops): the processors' caches of
/// stacks and descriptors go to the pool. Then, while goroutines run again, idle stacks and
/// thread-local blocks beyond a small reserve are given back, together with the pages of those that
/// stay; what caches of the layers above (`sync::Pool`) did not use since the last collection is
/// dropped, on the caller; libc's allocator gives its free pages back; and idle threads beyond a bound end. Counted in
/// [`Counters::collections`](crate::Counters::collections).
///
/// From any goroutine or plain thread; it blocks, and the caller's processor is used by others.
///
/// # Panics
/// If the runtime has to be started and can't create its threads.
pub fn gc() {
    start::ensure_started();
    world::stop_briefly(flush_caches);
    contention::age_caches();
    idle::end_idle_machines();
    blocking(|| {
        pool::collect();
        trim_heap();
    });
    SCHEDULER.counts.collections.add_shared();
}

/// The world is stopped.
fn flush_caches() {
    for p in SCHEDULER.processors() {
        // SAFETY: all processors are in nobody's hands but the caller's, who is inside the runtime or
        // a plain thread.
        unsafe { p.core() }.flush();
    }
}

/// Blocks that have ended leave chunks in libc's arenas.
fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time outside the runtime.
    unsafe {
        libc::malloc_trim(0);
    }
}
