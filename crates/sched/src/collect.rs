//! A collection: memory and threads that nobody uses go back to the system.
//!
//! There is no garbage to trace in Rust; what a cycle of Go's collector does besides is done here.
//! Cycles that nobody asked for are `background`'s.

use crate::scheduler::SCHEDULER;
use crate::{
    NoPreempt, background, blocking, blocks, contention, idle, shrink, slab, start, trace, world,
};
use gosched_fiber::{pool, stack};

/// Runs a collection and returns when it is done. Go's `runtime.GC`.
///
/// Stops the world briefly, see [`world_stops`](crate::world_stops): the processors' caches of
/// stacks, descriptors and tasks' memory go to where they are given back from. Goroutines that wait lose the pages below their stack
/// pointers, a few in each of further stops, if that is 16 KiB or more. Then, while goroutines run again, idle stacks and
/// thread-local blocks beyond a small reserve are given back, together with the pages of those that
/// stay, and pages with descriptors of none but ended goroutines; what caches of the layers above
/// (`sync::Pool`) did not use since the last collection is dropped, on the caller; libc's allocator
/// gives its free pages back; and idle threads beyond a bound end. Counted in
/// [`Counters::collections`](crate::Counters::collections).
///
/// From any goroutine or plain thread; it blocks, and the caller's processor is used by others.
///
/// # Panics
/// If the runtime has to be started and can't create its threads.
pub fn gc() {
    start::ensure_started();
    cycle(false, || {
        pool::collect();
        trim_heap();
    });
}

/// As [`gc`], and nothing that caches keep stays. Go's `debug.FreeOSMemory`.
///
/// # Panics
/// As [`gc`].
pub fn free_os_memory() {
    start::ensure_started();
    // What caches keep for one cycle is dropped by the second.
    contention::age_caches();
    gc();
}

/// A cycle that nobody has asked for: what was idle for a while goes. Of a busy program only stacks
/// do: the rest of the cycle goes through whatever the program has, and through libc's arenas with
/// their locks held, for what is wanted again at once.
pub(crate) fn run_in_background(is_busy: bool) {
    if is_busy {
        counted(|| {
            contention::age_caches();
            blocking(pool::collect_surplus);
        });
    } else {
        cycle(true, || {
            pool::collect_surplus();
            if background::is_trim_owed() {
                trim_heap();
            }
        });
    }
    SCHEDULER.counts.background_collections.add_shared();
}

fn cycle(are_old_only: bool, give_back: impl FnOnce()) {
    counted(|| {
        world::stop_to_collect(flush_caches);
        shrink::waiting_stacks(are_old_only);
        contention::age_caches();
        unstopped(idle::end_idle_machines);
        blocking(|| {
            unstopped(slab::bare::give_back);
            blocks::give_back();
            give_back();
        });
    });
}

fn counted(collect: impl FnOnce()) {
    let said = trace::collection_begins();
    collect();
    trace::collection_ends(said);
    SCHEDULER.counts.collections.add_shared();
}

/// Takes locks of the runtime's outside of it: whoever stopped the goroutine meanwhile would stop
/// everybody.
fn unstopped<T>(f: impl FnOnce() -> T) -> T {
    let _no_preempt = NoPreempt::new();
    f()
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
    background::note_trim();
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time outside the runtime.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Sets how much idle stacks may hold before they are given back without waiting for a collection,
/// in bytes for each size of stacks, and returns the former limit. A soft limit: 32 MiB by default,
/// and never less than a small reserve.
pub fn set_cache_limit(bytes: usize) -> usize {
    start::ensure_started();
    pool::set_idle_limit(bytes)
}

/// What the runtime holds for goroutines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Stacks of goroutines that have begun and not ended, and of idle ones that are kept.
    pub stacks: usize,
    /// Those of them in which nothing runs, kept for the next goroutines; what processors have at
    /// hand is not counted.
    pub idle_stacks: usize,
    /// Stacks that were given back since the start.
    pub stacks_given_back: u64,
    /// How often a waiting goroutine's deep pages were given back.
    pub shrunk_stacks: u64,
    /// Address space reserved for stacks; memory is what of it was touched.
    pub reserved_bytes: usize,
    /// Collections, asked for or not.
    pub collections: u64,
    /// Those that nobody asked for.
    pub background_collections: u64,
}

/// What the runtime holds for goroutines. What of Go's `runtime.MemStats` has a meaning here.
#[must_use]
pub fn memory_stats() -> MemoryStats {
    let (stats, idle_stacks) = unstopped(|| (stack::stats(), pool::idle_count()));
    MemoryStats {
        stacks: stats.live,
        idle_stacks,
        stacks_given_back: pool::given_back(),
        shrunk_stacks: SCHEDULER.counts.shrunk_stacks.get(),
        reserved_bytes: stats.reserved_bytes,
        collections: SCHEDULER.counts.collections.get(),
        background_collections: SCHEDULER.counts.background_collections.get(),
    }
}
