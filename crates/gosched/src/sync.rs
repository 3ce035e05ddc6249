//! Locks, groups and pools, in the shape of [`std::sync`].
//!
//! `use std::sync` becomes `use gosched::sync`. Goroutines and plain threads may meet at one lock;
//! a goroutine that waits gives its thread to others. What std lacks has Go's names: [`WaitGroup`],
//! [`Pool`], [`Map`], and [`Semaphore`], [`SingleFlight`] and [`Group`] of `golang.org/x/sync`.

pub use gosched_sync::{
    AcquireError, Arc, Barrier, BarrierWaitResult, CachePadded, Condvar, Group, LazyLock,
    LockCtxError, LockResult, Map, Mutex, MutexGuard, Once, OnceLock, OnceState, Permit,
    PoisonError, Pool, Pooled, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SingleFlight,
    TryLockError, TryLockResult, WaitCtxResult, WaitError, WaitGroup, WaitTimeoutResult, Weak,
    atomic, mpsc,
};
