//! Locks, groups and pools, in the shape of `std::sync`, and contexts.
//!
//! Layer: `sync`. Uses `base`, `sched` and `channel`. Unsafe: waiters on stacks, and data behind
//! locks.
//!
//! Everything works from goroutines and from plain threads, which may meet at one lock. A goroutine
//! that waits gives its machine to another one; nothing is allocated for a wait.
//!
//! Reading order: who waits leaves a record (`node`) in a list (`queue`). The locks without data
//! (`raw`) are a word each and such a list; [`Mutex`], [`RwLock`], [`Condvar`], [`Once`] and
//! [`Semaphore`] put data, guards and poisoning around them. The rest stands on these.

#[cfg(not(loom))]
mod barrier;
mod condvar;
#[cfg(not(loom))]
pub mod context;
#[cfg(not(loom))]
mod group;
#[cfg(not(loom))]
mod lazy_lock;
#[cfg(not(loom))]
mod map;
#[cfg(not(loom))]
pub mod mpsc;
mod mutex;
mod node;
mod once;
#[cfg(not(loom))]
mod once_lock;
#[cfg_attr(not(loom), allow(unreachable_pub, reason = "public for the models"))]
mod parts;
mod poison;
#[cfg(not(loom))]
mod pool;
mod profile;
mod queue;
mod raw;
mod rt;
mod rw_lock;
mod semaphore;
#[cfg(not(loom))]
mod single_flight;
mod wait_group;

#[cfg(not(loom))]
pub use {
    barrier::{Barrier, BarrierWaitResult},
    gosched_base::CachePadded,
    group::Group,
    lazy_lock::LazyLock,
    map::Map,
    once_lock::OnceLock,
    pool::{Pool, Pooled},
    single_flight::SingleFlight,
};

pub use condvar::{Condvar, WaitCtxResult, WaitTimeoutResult};
pub use mutex::{LockCtxError, Mutex, MutexGuard};
pub use once::{Once, OnceState};
#[doc(hidden)]
#[cfg(not(loom))]
pub use profile::{WaitEvent, WaitSide, set_wait_hook};
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{AcquireError, Permit, Semaphore};
pub use wait_group::{WaitError, WaitGroup};
#[cfg(loom)]
#[doc(hidden)]
pub use {
    parts::{Aged, Parts},
    rt::model::{Cancellation, World},
};

pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak, atomic};
