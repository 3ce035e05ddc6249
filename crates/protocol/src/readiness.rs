//! Whether a descriptor is ready in one direction, and who waits for it.
//!
//! Go's `rg` and `wg` of a `pollDesc`. The kernel tells of a change once (edge-triggered), perhaps
//! before anybody waits: then the word keeps it.
//!
//! ```text
//!             take          wait            make_ready       time_out
//!   NONE      NONE, false   waiter, true    READY, nobody    -, false
//!   READY     NONE, true    NONE, false     READY, nobody    -, false
//!   a waiter  abort         abort           READY, waiter    NONE, true
//! ```
//!
//! Invariants
//! * I1. One user at a time takes and waits: whoever has the direction's turn.
//! * I2. Each wait is ended once, by `make_ready` or by `time_out`, and whoever ends it makes the
//!   waiter runnable.
//! * I3. A change that comes after a look at the descriptor is not lost: it is found by the `wait`
//!   that follows the look, or ends it. READY says "look again", no more; it may be stale.
//!
//! Go has a fourth state, "about to wait", since its waiter is published by another step; here the
//! waiter is suspended when `wait` is called.
//!
//! Edges: `ready`, from `make_ready` to the `take` or `wait` that finds it; `ready-wait`, from a
//! `wait` to the `make_ready` or `time_out` that ends it.
//!
//! The model is `tests/loom_readiness.rs`.

use crate::sync::{AtomicUsize, const_unless_modelled};
use gosched_base::rt_abort;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const NONE: usize = 0;
/// No waiter is 1: that is no address, nor one with a tag in its lowest bit.
const READY: usize = 1;

/// The readiness of one direction.
///
/// # Examples
/// ```
/// use gosched_protocol::Readiness;
/// use std::num::NonZeroUsize;
///
/// let readiness = Readiness::new();
/// let me = NonZeroUsize::new(0x1000).unwrap();
/// assert!(readiness.wait(me)); // suspended, until ...
/// assert_eq!(readiness.make_ready(), Some(me)); // ... the poller wakes it,
/// assert!(readiness.take()); // and it sees why it runs again
///
/// assert_eq!(readiness.make_ready(), None); // nobody waits: kept,
/// assert!(!readiness.wait(me)); // so there is no wait
/// ```
#[derive(Debug)]
pub struct Readiness(AtomicUsize);

impl Readiness {
    const_unless_modelled! {
        /// Nothing is known, and nobody waits.
        pub fn new() -> Readiness {
            Readiness(AtomicUsize::new(NONE))
        }
    }

    /// Takes the note that something has changed. Holder of the turn only, who doesn't wait.
    ///
    /// After a wait: true says that it was ended by `make_ready`, false by `time_out`.
    #[inline]
    pub fn take(&self) -> bool {
        // ORDERING: Acquire pairs with `make_ready` (edge `ready`); makes what its caller wrote
        // visible.
        match self.0.swap(NONE, Acquire) {
            NONE => false,
            READY => true,
            waiter => wrong("take", waiter),
        }
    }

    /// Says that `waiter` waits from now on. False: something has changed since the last look, and
    /// there is no wait.
    ///
    /// Called on behalf of the waiter once it is suspended; after true it may run again already.
    #[inline]
    #[must_use]
    pub fn wait(&self, waiter: NonZeroUsize) -> bool {
        // ORDERING: Release on success pairs with `make_ready` and `time_out` (edge `ready-wait`);
        // makes the suspended waiter visible. Relaxed on failure: the swap below acquires.
        match self.0.compare_exchange(NONE, waiter.get(), Release, Relaxed) {
            Ok(_) => true,
            Err(READY) => {
                // ORDERING: Acquire as in `take`. A swap, for a newer note that came meanwhile.
                self.0.swap(NONE, Acquire);
                false
            }
            Err(found) => wrong("wait", found),
        }
    }

    /// Something has changed. Returns who waits; the caller must make it runnable.
    #[inline]
    #[must_use]
    pub fn make_ready(&self) -> Option<NonZeroUsize> {
        // ORDERING: Release pairs with `take` and `wait` (edge `ready`). Acquire pairs with `wait`
        // (edge `ready-wait`); makes the suspended waiter visible.
        match self.0.swap(READY, AcqRel) {
            READY => None,
            waiter => NonZeroUsize::new(waiter),
        }
    }

    /// The wait is over without a change. True: the waiter still waited, and the caller must make
    /// it runnable.
    ///
    /// The word doesn't know one wait from the next: the timer of a wait is stopped, or has fired,
    /// before its waiter waits again.
    #[inline]
    #[must_use]
    pub fn time_out(&self) -> bool {
        // ORDERING: Relaxed look. Acquire pairs with `wait` (edge `ready-wait`); makes the
        // suspended waiter visible. Relaxed on failure: nothing is touched then.
        let found = self.0.load(Relaxed);
        found > READY && self.0.compare_exchange(found, NONE, Acquire, Relaxed).is_ok()
    }
}

#[cold]
#[inline(never)]
fn wrong(event: &str, found: usize) -> ! {
    rt_abort!("readiness: {event} while another waits (word {found:#x})")
}

impl Default for Readiness {
    fn default() -> Readiness {
        Readiness::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
