//! A bound on how many blocking calls of a kind are made at a time.

use crate::blocking::blocking;
use crate::machine::Inside;
use crate::reason::WaitReason;
use crate::rt::{Cell, Lock};
use crate::wait::{Waiter, block};
use std::fmt;
use std::ptr;

/// At most so many blocking calls at a time; the others wait in turn, without a thread.
///
/// Each blocking call takes a thread while it lasts. A limiter keeps their number down where more
/// would not help: file reads of one disk, calls into a library with a lock of its own. Go programs
/// use a buffered channel for it.
///
/// ```
/// static DISK: gosched_sched::Limiter = gosched_sched::Limiter::new(4);
/// let text = DISK.run(|| std::fs::read_to_string("/proc/self/comm")).unwrap();
/// assert!(!text.is_empty());
/// ```
pub struct Limiter {
    synced: Lock<Synced>,
}

/// What is guarded by the lock.
struct Synced {
    /// How many more calls may begin.
    free: usize,
    first: *const Waiting,
    last: *const Waiting,
}

// SAFETY: the pointers are used under the lock.
unsafe impl Send for Synced {}

/// One that waits, on its own stack. In the list until it is taken out, under the lock; from then
/// on its permission is given, and the waker touches nothing but `waiter`, which it has copied.
struct Waiting {
    waiter: Cell<Option<Waiter>>,
    next: Cell<*const Waiting>,
}

impl Limiter {
    crate::rt::const_unless_modelled! {
        /// For `calls` calls at a time.
        ///
        /// # Panics
        /// If `calls` is 0: nothing could ever run.
        #[must_use]
        pub fn new(calls: usize) -> Limiter {
            assert!(calls > 0, "Limiter::new: no call could ever run");
            let synced = Synced { free: calls, first: ptr::null(), last: ptr::null() };
            Limiter { synced: Lock::new(synced) }
        }
    }

    /// Waits for its turn, then runs `f` as [`blocking`](crate::blocking()) does.
    ///
    /// Waiting goroutines park; plain threads sleep. Those that come first go first.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        self.acquire();
        let _turn = Turn(self);
        blocking(f)
    }

    fn acquire(&self) {
        if self.inside(Synced::take) {
            return;
        }
        let waiting = Waiting { waiter: Cell::new(None), next: Cell::new(ptr::null()) };
        block(WaitReason::SemAcquire, |waiter| {
            let mut synced = self.synced.lock();
            if synced.take() {
                return false;
            }
            waiting.waiter.set(Some(waiter));
            synced.push(&waiting);
            true
        });
    }

    /// The permission goes straight to the one that has waited longest, if anybody waits.
    fn release(&self) {
        let next = self.inside(|synced| {
            let next = synced.pop();
            if next.is_none() {
                synced.free += 1;
            }
            next
        });
        if let Some(waiter) = next {
            waiter.wake();
        }
    }

    /// Calls `f` under the lock, inside the runtime: who holds it must not be stopped.
    fn inside<R>(&self, f: impl FnOnce(&mut Synced) -> R) -> R {
        let inside = Inside::enter();
        let result = f(&mut self.synced.lock());
        if let Some(inside) = inside {
            inside.leave();
        }
        result
    }
}

impl Synced {
    /// True: the caller's call may begin.
    fn take(&mut self) -> bool {
        let may = self.free > 0;
        self.free -= usize::from(may);
        may
    }

    fn push(&mut self, waiting: &Waiting) {
        // SAFETY: in the list, so its owner waits.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(waiting),
            None => self.first = waiting,
        }
        self.last = waiting;
    }

    fn pop(&mut self) -> Option<Waiter> {
        // SAFETY: as in `push`.
        let waiting = unsafe { self.first.as_ref() }?;
        self.first = waiting.next.get();
        if self.first.is_null() {
            self.last = ptr::null();
        }
        waiting.waiter.get()
    }
}

/// Gives the permission back, also when the call unwinds.
struct Turn<'a>(&'a Limiter);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
#[path = "limiter/tests.rs"]
mod tests;
