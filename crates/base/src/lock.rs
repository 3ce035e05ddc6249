//! The runtime's lock: a leaf lock on a futex.
//!
//! Held for a few instructions, by threads that are inside the runtime and so cannot be stopped
//! by it. It spins shortly, then sleeps in the kernel. It does not poison: a panic while it is
//! held would be a broken invariant, and code under it does not panic.
//!
//! Taking it is one compare-exchange and giving it back is one store: that somebody sleeps is not
//! noted in the word, which would take a second locked instruction for each use (5 ns of 33 in a
//! channel operation), but in a table beside it.
//!
//! ```text
//!   holder                              waiter
//!   U1 word = FREE                      W1 sleepers[hash(word)] += 1
//!   U2 sleepers[hash(word)] == 0?       W2 membarrier: a full barrier on every CPU that runs
//!      done; else futex_wake(word)         a thread of this process
//!                                       W3 word FREE -> HELD? done (W5)
//!                                       W4 futex_wait(word, HELD), back to W3
//!                                       W5 sleepers[hash(word)] -= 1
//! ```
//!
//! Invariant: a waiter does not sleep through a release. The holder's U2 may be done before its U1
//! is visible to others, so without W2 both could miss each other. With it: if U2 came before W2,
//! so did U1, and W3 finds the word free or taken by another holder, whose release comes later. If
//! U2 came after W2 it sees W1, and wakes. The kernel compares the word once more when it puts the
//! waiter to sleep (W4). `lock/tests.rs` enumerates all interleavings with a store buffer, and that
//! without W2 one of them goes wrong.
//!
//! The word may be gone once it reads FREE (its owner may free it), so only its address is used
//! afterwards. Locks that share a place in the table cost each other a wake-up that finds nobody.
//!
//! Rejected: `std::sync::Mutex`, which goroutines may also block on through interposed futex calls
//! later; a spin lock alone, which burns a CPU while its holder is descheduled; the mutex of
//! Drepper's "Futexes Are Tricky" (2011), whose release is an exchange, used here before.

use crate::barrier;
use crate::os::{futex_wait, futex_wake};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// How often a waiter looks before it sleeps, and how long it pauses after the first look; twice as
/// long after each one (some 5 us in all).
///
/// The pauses leave the lock to its holder: one that comes back finds the lines where they were.
/// With a look at each `pause` the lines changed CPUs at every use, and four senders and four
/// receivers on two CPUs needed 310 ns for a message instead of 80.
const LOOKS: u32 = 5;
const FIRST_PAUSES: u32 = 16;

/// How many sleep, or are about to, for the locks of each hash. Never freed, unlike locks.
static SLEEPERS: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

fn sleepers(word: *const AtomicU32) -> &'static AtomicU32 {
    // Neighbouring lines differ; locks are seldom in one line.
    &SLEEPERS[(word.addr() >> 6) % SLEEPERS.len()]
}

/// A mutual-exclusion lock for runtime data.
///
/// ```
/// static COUNT: gosched_base::Lock<u32> = gosched_base::Lock::new(0);
/// *COUNT.lock() += 1;
/// assert_eq!(*COUNT.lock(), 1);
/// ```
pub struct Lock<T: ?Sized> {
    word: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands out access to the data to one thread at a time.
unsafe impl<T: ?Sized + Send> Send for Lock<T> {}
// SAFETY: as above; `&Lock` gives `&mut T` to one holder only, hence `T: Send`.
unsafe impl<T: ?Sized + Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock around `data`.
    pub const fn new(data: T) -> Lock<T> {
        Lock { word: AtomicU32::new(FREE), data: UnsafeCell::new(data) }
    }
}

impl<T: ?Sized> Lock<T> {
    /// Takes the lock, sleeping while another thread holds it.
    #[inline]
    pub fn lock(&self) -> LockGuard<'_, T> {
        if !self.take() {
            self.lock_contended();
        }
        LockGuard { lock: self }
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `LockGuard::drop`; makes the last holder's
        // writes to the data visible.
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        for look in 0..LOOKS {
            // ORDERING: Relaxed look; `take` acquires.
            if self.word.load(Relaxed) == FREE && self.take() {
                return;
            }
            for _ in 0..FIRST_PAUSES << look {
                std::hint::spin_loop();
            }
        }
        let sleepers = sleepers(&self.word);
        // ORDERING: SeqCst pairs with the fence in `LockGuard::drop`, where there is no W2.
        sleepers.fetch_add(1, SeqCst);
        // Where the kernel refuses it the holder has a fence.
        let _ = barrier::heavy();
        while !self.take() {
            let _ = futex_wait(&self.word, HELD, None);
        }
        // ORDERING: Relaxed; a holder that still counts this one wakes nobody.
        sleepers.fetch_sub(1, Relaxed);
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        self.take().then(|| LockGuard { lock: self })
    }
}

impl<T: ?Sized> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// The right to the data; gives the lock back when dropped.
pub struct LockGuard<'a, T: ?Sized> {
    lock: &'a Lock<T>,
}

impl<T: ?Sized> Deref for LockGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one; nobody else touches the data while it lives.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` keeps this guard's other borrows away.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let word: *const AtomicU32 = &self.lock.word;
        // ORDERING: Release pairs with the Acquire in `take`; publishes this holder's writes.
        self.lock.word.store(FREE, Release);
        if barrier::is_asymmetric() {
            // ORDERING: U1 before U2; the CPU's part is W2, for the compiler this is.
            barrier::light();
        } else {
            // ORDERING: U1 before U2; pairs with the SeqCst of `lock_contended`.
            fence(SeqCst);
        }
        // ORDERING: Relaxed; ordered by the barriers above.
        if sleepers(word).load(Relaxed) != 0 {
            wake(word);
        }
    }
}

#[cold]
fn wake(word: *const AtomicU32) {
    futex_wake(word, 1);
}

impl<T: ?Sized> fmt::Debug for LockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
