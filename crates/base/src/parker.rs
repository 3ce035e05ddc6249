//! One thread sleeps until another says so.
//!
//! Go's `note`, and std's parker. The permit is kept: a wake before the sleep is not lost.
//! Its model is `tests/loom_parker.rs`.

use crate::os::{Errno, futex_wait, futex_wait_until, futex_wake, monotonic_ns};
use crate::rt::{AtomicU32, const_unless_modelled};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
/// The owner sleeps or is about to.
const PARKED: u32 = 2;

/// A place for one thread to sleep.
///
/// ```
/// let parker = gosched_base::Parker::new();
/// parker.wake();
/// parker.sleep(); // returns at once, the permit was there
/// ```
#[derive(Debug, Default)]
pub struct Parker {
    word: AtomicU32,
}

impl Parker {
    const_unless_modelled! {
        /// Without a permit.
        #[must_use]
        pub fn new() -> Parker {
            Parker { word: AtomicU32::new(EMPTY) }
        }
    }

    /// Sleeps until there is a permit and takes it. Only the owner may call this.
    pub fn sleep(&self) {
        if self.take_or_announce() {
            return;
        }
        loop {
            let _ = futex_wait(&self.word, PARKED, None);
            if self.take() {
                return;
            }
        }
    }

    /// As [`sleep`](Parker::sleep), but stays awake for the first `patience_ns`: for a wake that is
    /// expected sooner than the kernel could deliver it.
    pub fn sleep_patiently(&self, patience_ns: u64) {
        let until = monotonic_ns() + patience_ns;
        // Relaxed: a look before `take`, which would write to the line each time.
        while self.word.load(Relaxed) != NOTIFIED {
            if monotonic_ns() > until {
                break;
            }
            std::hint::spin_loop();
        }
        self.sleep();
    }

    /// As [`sleep`](Parker::sleep), at most until `deadline_ns` on the monotonic clock.
    /// Returns whether a permit was taken.
    pub fn sleep_until(&self, deadline_ns: u64) -> bool {
        if self.take_or_announce() {
            return true;
        }
        loop {
            let result = futex_wait_until(&self.word, PARKED, deadline_ns);
            if self.take() {
                return true;
            }
            if result == Err(Errno(libc::ETIMEDOUT)) {
                // ORDERING: Acquire as in `take`: a wake may have come in between.
                return self.word.swap(EMPTY, Acquire) == NOTIFIED;
            }
        }
    }

    /// As [`sleep_until`](Parker::sleep_until) without sleeping: for what comes sooner than the kernel
    /// could bring a sleeper back. Calls `pause` again and again meanwhile.
    pub fn stay_awake_until(&self, deadline_ns: u64, pause: impl Fn()) -> bool {
        loop {
            // Relaxed: a look before `take`, which would write to the line each time.
            if self.word.load(Relaxed) == NOTIFIED && self.take() {
                return true;
            }
            if monotonic_ns() >= deadline_ns {
                return false;
            }
            pause();
        }
    }

    /// As [`sleep`](Parker::sleep), at most for `timeout`. Returns whether a permit was taken.
    pub fn sleep_for(&self, timeout: Duration) -> bool {
        let ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        match monotonic_ns().checked_add(ns) {
            Some(deadline) => self.sleep_until(deadline),
            None => {
                self.sleep();
                true
            }
        }
    }

    /// Gives a permit, waking the sleeper if there is one. Permits do not add up.
    ///
    /// The parker may be freed by its owner as soon as the permit is visible; only its address is
    /// used after that.
    #[inline]
    pub fn wake(&self) {
        let word: *const AtomicU32 = &self.word;
        // ORDERING: Release pairs with the Acquires of the sleeper (edge `parker-permit`); makes
        // what was written before the wake visible to it.
        if self.word.swap(NOTIFIED, Release) == PARKED {
            futex_wake(word, 1);
        }
    }

    /// True if a permit was there; else the word says that the owner sleeps.
    fn take_or_announce(&self) -> bool {
        // ORDERING: Acquire pairs with `wake` (edge `parker-permit`). EMPTY -> PARKED needs
        // nothing: it publishes no data.
        match self.word.compare_exchange(EMPTY, PARKED, Relaxed, Acquire) {
            Ok(_) => false,
            Err(_) => {
                // ORDERING: Acquire, as above: the permit may be newer than the one just seen.
                self.word.swap(EMPTY, Acquire);
                true
            }
        }
    }

    fn take(&self) -> bool {
        // ORDERING: Acquire pairs with `wake` (edge `parker-permit`).
        self.word.compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
#[path = "parker/tests.rs"]
mod tests;
