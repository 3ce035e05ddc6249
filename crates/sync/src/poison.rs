//! Whether a panic has happened while a lock was held, as std's.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{LockResult, PoisonError};
use std::thread;

/// A lock's mark. It orders nothing: the lock does.
#[derive(Debug)]
pub(crate) struct Poison(AtomicBool);

/// Whether its holder unwound already when it took the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwinding(bool);

impl Poison {
    pub(crate) const fn new() -> Poison {
        Poison(AtomicBool::new(false))
    }

    /// For the one who has just taken the lock.
    #[inline]
    pub(crate) fn enter(&self) -> Unwinding {
        Unwinding(thread::panicking())
    }

    /// For the one who is about to let go of it.
    #[inline]
    pub(crate) fn leave(&self, since: Unwinding) {
        if thread::panicking() && !since.0 {
            // ORDERING: Relaxed; under the lock.
            self.0.store(true, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // ORDERING: Relaxed; who has the lock sees what was stored under it.
        self.0.load(Relaxed)
    }

    pub(crate) fn clear(&self) {
        // ORDERING: Relaxed; as in `leave`.
        self.0.store(false, Relaxed);
    }

    #[inline]
    pub(crate) fn result<G>(&self, guard: G) -> LockResult<G> {
        if self.is_set() { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }
}
