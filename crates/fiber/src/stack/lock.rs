//! A leaf lock on one futex word, for state of the stack allocator.
//!
//! It allocates nothing, never poisons and never panics. Code that holds it must not be stopped by
//! the scheduler: callers are inside the runtime, or have raised their no-preempt depth.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::sys;

const FREE: u32 = 0;
/// Held, nobody sleeps.
const HELD: u32 = 1;
/// Held, and somebody may sleep on the word.
const CONTENDED: u32 = 2;

const SPINS: u32 = 64;

/// Mutual exclusion for `T`.
pub(super) struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is reached only through a `Guard`, and at most one exists at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    pub(super) fn lock(&self) -> Guard<'_, T> {
        // ORDERING: pairs with `Guard::drop`; makes what the last holder wrote visible.
        if self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            self.lock_contended();
        }
        Guard { lock: self }
    }

    #[cold]
    fn lock_contended(&self) {
        for _ in 0..SPINS {
            // ORDERING: pairs with `Guard::drop`; makes what the last holder wrote visible.
            if self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok() {
                return;
            }
            spin_loop();
        }
        // ORDERING: pairs with `Guard::drop`; makes what the last holder wrote visible.
        while self.word.swap(CONTENDED, Acquire) != FREE {
            sys::futex_wait(&self.word, CONTENDED);
        }
    }
}

/// Proof that the lock is held.
pub(super) struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only way to the value while it lives.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only way to the value while it lives, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // ORDERING: pairs with `Lock::lock`; publishes what this holder wrote.
        if self.lock.word.swap(FREE, Release) == CONTENDED {
            sys::futex_wake_one(&self.lock.word);
        }
    }
}
