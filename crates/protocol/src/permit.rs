//! The token of `park` and `unpark`.
//!
//! Three states, as std's parker: no token, a token, and "the owner waits".
//!
//! ```text
//!             take           park           unpark              time_out
//!   EMPTY     -, No          PARKED, No     NOTIFIED, false     -, false
//!   NOTIFIED  EMPTY, Yes     EMPTY, Yes     NOTIFIED, false     -, false
//!   PARKED    abort          abort          NOTIFIED, true      EMPTY, true
//! ```
//!
//! Invariants
//! * I1. Each PARKED is left once, by `unpark` or by `time_out`, and whoever leaves it makes the
//!   owner runnable. Hence the owner is made runnable once for each wait.
//! * I2. What was written before `unpark` is visible to the owner when it takes the token, that of
//!   earlier `unpark`s whose tokens were merged into this one included.
//!
//! Edges: `permit`, from `unpark` to `take` and to a `park` that finds the token; `permit-park`,
//! from a `park` that waits to the `unpark` or `time_out` that ends the wait. Every change is a
//! read-modify-write, so an edge reaches across other changes that come in between.
//!
//! The model is `tests/loom_permit.rs`.

use crate::sync::{AtomicU8, const_unless_modelled};
use gosched_base::rt_abort;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const EMPTY: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// Whether a token was there.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitTaken {
    /// It was, and is taken.
    Yes,
    /// It was not; the owner may wait.
    No,
}

/// One waiter's token.
///
/// The owner is the one that waits; everybody else unparks it. Tokens don't add up.
///
/// # Examples
/// ```
/// use gosched_protocol::{Permit, PermitTaken};
///
/// let permit = Permit::new();
/// assert_eq!(permit.take(), PermitTaken::No);
/// assert_eq!(permit.park(), PermitTaken::No); // the owner waits now
/// assert!(permit.unpark()); // and this caller makes it runnable
/// assert_eq!(permit.take(), PermitTaken::Yes); // what the owner does when it runs again
///
/// assert!(!permit.unpark()); // nobody waits: the token is kept
/// assert_eq!(permit.park(), PermitTaken::Yes); // so there is no wait
/// ```
#[derive(Debug)]
pub struct Permit(AtomicU8);

impl Permit {
    const_unless_modelled! {
        /// Without a token.
        pub fn new() -> Permit {
            Permit(AtomicU8::new(EMPTY))
        }
    }

    /// Takes the token if it is there. Owner only.
    ///
    /// Also what an owner does that runs again after it waited: `Yes` says that it was unparked,
    /// `No` that its time was out.
    #[inline]
    pub fn take(&self) -> PermitTaken {
        // ORDERING: Acquire pairs with `unpark` (edge `permit`); makes what was written before it
        // visible.
        match self.0.swap(EMPTY, Acquire) {
            NOTIFIED => PermitTaken::Yes,
            EMPTY => PermitTaken::No,
            found => wrong("take", found),
        }
    }

    /// Throws away a token that was meant for an earlier owner. Owner only, and never after `No`
    /// from [`park`](Permit::park).
    #[inline]
    pub fn clear(&self) {
        // ORDERING: Relaxed; a token that comes now is as good as one that comes a moment later.
        if self.0.load(Relaxed) != EMPTY {
            let _ = self.take();
        }
    }

    /// Says that the owner waits from now on. `Yes`: a token came first, and is taken.
    ///
    /// Called by the owner, or on its behalf once it is suspended. After `No` the owner may run
    /// again already, and the caller touches nothing of it.
    #[inline]
    pub fn park(&self) -> PermitTaken {
        // ORDERING: Release on success pairs with `unpark` and `time_out` (edge `permit-park`);
        // makes the suspended owner visible. Relaxed on failure: the swap below acquires.
        match self.0.compare_exchange(EMPTY, PARKED, Release, Relaxed) {
            Ok(_) => PermitTaken::No,
            Err(NOTIFIED) => {
                // ORDERING: Acquire as in `take`. A swap, since the token may have been merged
                // with a newer one that must be seen too.
                self.0.swap(EMPTY, Acquire);
                PermitTaken::Yes
            }
            Err(found) => wrong("park", found),
        }
    }

    /// Leaves a token. True: the owner waits, and the caller must make it runnable.
    #[inline]
    #[must_use]
    pub fn unpark(&self) -> bool {
        // ORDERING: Release pairs with `take` and `park` (edge `permit`); makes what the caller
        // wrote visible. Acquire pairs with `park` (edge `permit-park`); makes the suspended owner
        // visible.
        self.0.swap(NOTIFIED, AcqRel) == PARKED
    }

    /// The wait is over without a token. True: the owner still waited, and the caller must make it
    /// runnable; false: a token came first.
    ///
    /// The word doesn't know one wait from the next, so a late call would end the wrong one. The
    /// owner must not park again before the timer of its last wait was stopped or has fired.
    #[inline]
    #[must_use]
    pub fn time_out(&self) -> bool {
        // ORDERING: Acquire pairs with `park` (edge `permit-park`); makes the suspended owner
        // visible. Relaxed on failure: nothing is touched then.
        self.0.compare_exchange(PARKED, EMPTY, Acquire, Relaxed).is_ok()
    }
}

#[cold]
#[inline(never)]
fn wrong(event: &str, found: u8) -> ! {
    rt_abort!("permit: {event} by an owner that waits (word {found})")
}

impl Default for Permit {
    fn default() -> Permit {
        Permit::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
