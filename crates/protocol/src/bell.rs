//! One sleeper that anyone may claim, without a lock.
//!
//! Plain threads must not take the scheduler's locks (anyone can stop them at any time), yet have
//! to wake a machine when they make a goroutine runnable. The sleeper announces itself, looks at
//! the queues once more, and sleeps; whoever publishes work afterwards claims it.
//!
//! Invariants
//! * I1. One sleeper at a time uses the bell. It announces itself, and looks, before each sleep.
//! * I2. Each announcement is ended once: by one `claim`, whose caller wakes the sleeper, or by the
//!   sleeper's own `withdraw`.
//! * I3. Work published while the sleeper is announced is seen by its look, or leads to a claim.
//!
//! Steps of the sleeper: B1 announce, B2 fence, B3 look at the queues, B4 sleep if they are empty,
//! B5 withdraw.
//! Steps of the ringer: R1 push, R2 fence, R3 claim, and if it succeeds R4 wake.
//!
//! Why I3 holds: B2 and R2 are the edge `bell-fence`: either R3 sees the announcement of B1, or B3
//! sees the push of R1. A ringer that doesn't see the announcement since another has claimed it
//! before relies on the *next* one: the sleeper is being woken, and announces itself and looks
//! again before it sleeps again; its next B2 comes after R2, so its next B3 sees the push.
//!
//! The edge `bell-claim`, from `claim` to `withdraw`, is for a sleeper that doesn't wait for the
//! wake-up on its way: it sees the work that it was claimed for. That wake-up comes nevertheless,
//! and ends a later sleep early.
//!
//! The model is `tests/loom_bell.rs`.

use crate::sync::{AtomicBool, const_unless_modelled, fence};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// Whether somebody sleeps here.
///
/// # Examples
/// ```
/// use gosched_protocol::Bell;
///
/// let bell = Bell::new();
/// assert!(!bell.claim()); // nobody sleeps
/// bell.announce(); // then the sleeper looks at the queues, and sleeps
/// assert!(bell.claim()); // whoever published work: wake the sleeper
/// assert!(!bell.claim()); // one is enough
/// assert!(!bell.withdraw()); // the sleeper is up, since it was claimed
/// ```
#[derive(Debug)]
pub struct Bell(AtomicBool);

impl Bell {
    const_unless_modelled! {
        /// Nobody sleeps.
        pub fn new() -> Bell {
            Bell(AtomicBool::new(false))
        }
    }

    /// The sleeper announces itself (B1, B2). It looks at the queues after it.
    #[inline]
    pub fn announce(&self) {
        // ORDERING: the fence is B2 of edge `bell-fence`, pairs with `claim`; makes the pushes of
        // those visible that don't see the announcement. Relaxed: a store suffices, since the
        // word is false here and nobody but the sleeper makes it true.
        self.0.store(true, Relaxed);
        fence(SeqCst);
    }

    /// The sleeper is up again, or never slept (B5). True: nobody has claimed it; false: somebody
    /// has, and wakes it or has woken it.
    #[inline]
    pub fn withdraw(&self) -> bool {
        // ORDERING: Acquire pairs with `claim` (edge `bell-claim`); makes visible what was
        // published before it.
        self.0.swap(false, Acquire)
    }

    /// For whoever published work (R2, R3). True: the caller must wake the sleeper.
    #[inline]
    #[must_use]
    pub fn claim(&self) -> bool {
        // ORDERING: the fence is R2 of edge `bell-fence`, pairs with `announce`; and as a release
        // fence it is edge `bell-claim`, pairs with `withdraw`: it makes the caller's work visible.
        // Relaxed after it: nothing to acquire, since the sleeper writes nothing for its ringer.
        // A compare-exchange, so that a claim that fails changes nothing (I2).
        fence(SeqCst);
        self.0.load(Relaxed) && self.0.compare_exchange(true, false, Relaxed, Relaxed).is_ok()
    }

    /// Whether somebody sleeps; a hint.
    #[inline]
    #[must_use]
    pub fn is_announced(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.0.load(Relaxed)
    }
}

impl Default for Bell {
    fn default() -> Bell {
        Bell::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
