//! What this crate stands on: the runtime's lock and waits, or those of a checker.

#[cfg(not(loom))]
pub(crate) use {
    gosched_base::{CachePadded, Lock, LockGuard, barrier, os::monotonic_ns as now_ns},
    gosched_sched::{
        Cancellation, Cancels, Critical, WaitReason, Waiter, block_unless, block_until, give_way,
        give_way_if_alone, is_busy, may_spin, may_spin_briefly,
    },
    std::{
        cell::Cell,
        hint::spin_loop,
        sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, fence},
    },
};

#[cfg(loom)]
pub(crate) mod model;
#[cfg(loom)]
pub(crate) use {
    loom::{
        cell::Cell,
        hint::spin_loop,
        sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, fence},
        thread::yield_now as give_way,
    },
    model::{
        CachePadded, Cancellation, Cancels, Critical, Lock, LockGuard, WaitReason, Waiter, barrier,
        block_unless, block_until, give_way_if_alone, is_busy, may_spin, may_spin_briefly, now_ns,
    },
};

/// `const fn` but under loom, whose atomics can't be made in constants.
macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $of:ty),*) -> $ret:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        #[must_use]
        #[inline]
        $vis const fn $name($($arg: $of),*) -> $ret $body
        #[cfg(loom)]
        $(#[$meta])*
        #[must_use]
        $vis fn $name($($arg: $of),*) -> $ret $body
    };
}
pub(crate) use const_unless_modelled;
