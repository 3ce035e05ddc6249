//! What this crate stands on: the runtime's lock and waits, or those of a checker.

#[cfg(not(loom))]
pub(crate) use {
    gosched_base::{Lock, LockGuard, Stride, rt_abort},
    gosched_sched::{Critical, WaitReason, Waiter, block, block_until, prefetch},
    std::{
        cell::Cell,
        hint::spin_loop as pause,
        sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

#[cfg(loom)]
mod model;
#[cfg(loom)]
pub(crate) use {
    loom::{
        cell::Cell,
        hint::spin_loop as pause,
        sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    model::{
        Critical, Lock, LockGuard, Stride, WaitReason, Waiter, block, block_until, next_number,
        prefetch, random,
    },
    std::panic as rt_abort,
};

/// A random number for the order of a select. Each goroutine and thread has a generator.
#[cfg(not(loom))]
pub(crate) fn random() -> u64 {
    use gosched_base::Rng;
    use std::cell::RefCell;

    static SEED: AtomicU64 = AtomicU64::new(0);

    thread_local! {
        // ORDERING: Relaxed; only a number that nobody else has.
        static RNG: RefCell<Rng> = RefCell::new(Rng::new(SEED.fetch_add(1, Ordering::Relaxed)));
    }
    RNG.with_borrow_mut(Rng::next_u64)
}
