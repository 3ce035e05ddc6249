//! One sleeper that looks at the next slots again after a while, so that nobody is woken for them
//! meanwhile.
//!
//! A goroutine that is woken into an empty next slot mostly runs there at once: its waker waits for
//! something next. A machine that is woken to steal it finds, again and again, that it is late. So
//! one that has found this sleeps for a short time instead of a long one, and looks again then.
//!
//! Invariants
//! * I1. One machine at a time keeps the lookout. Its sleep has a time-out, and after it, and before
//!   it looks for work or sleeps again, it ends the lookout.
//! * I2. Whoever fills an empty next slot and is not told that a lookout is kept wakes a searcher as
//!   for any other work. Who is told relies on the look that comes after the lookout's end.
//!
//! Steps of the sleeper: L1 begin, L2 sleep, L3 end, L4 fence, L5 look at all next slots.
//! Steps of who fills one: F1 fill, F2 fence, F3 ask whether a lookout is kept.
//!
//! Who fails at L1 relies on the other's look: its own search had ended by a fence before that (S3 of
//! `Searchers`), so the other's L4 comes later, and so does its L5.
//!
//! Why I2 is enough: L4 and F2 are the edge `lookout-fence`: either F3 sees the end of L3, or L5 sees
//! what F1 has filled in. L1 needs no fence: who does not see it wakes somebody in vain.
//!
//! The model is `tests/loom_lookout.rs`.

use crate::sync::{AtomicBool, const_unless_modelled, fence};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Whether somebody will look at the next slots soon.
///
/// # Examples
/// ```
/// use gosched_protocol::Lookout;
///
/// let lookout = Lookout::new();
/// assert!(!lookout.is_kept()); // who fills a next slot wakes a searcher
/// assert!(lookout.begin()); // then the sleeper sleeps, for a short time
/// assert!(lookout.is_kept()); // who fills a next slot leaves it to the sleeper
/// lookout.end(); // then it looks at all of them
/// ```
#[derive(Debug)]
pub struct Lookout(AtomicBool);

impl Lookout {
    const_unless_modelled! {
        /// Nobody keeps it.
        pub fn new() -> Lookout {
            Lookout(AtomicBool::new(false))
        }
    }

    /// The caller is about to sleep for a short time (L1). False: another machine does.
    #[inline]
    #[must_use]
    pub fn begin(&self) -> bool {
        // ORDERING: Relaxed; see the page above. Who fails changes nothing.
        self.0.compare_exchange(false, true, Relaxed, Relaxed).is_ok()
    }

    /// It is up again (L3, L4), and looks at all next slots after this.
    #[inline]
    pub fn end(&self) {
        // ORDERING: the fence is L4 of edge `lookout-fence`, pairs with the one before `is_kept`.
        self.0.store(false, Relaxed);
        fence(SeqCst);
    }

    /// Whether somebody looks at the next slots soon (F3). The caller has filled one, and executed a
    /// sequentially consistent fence after that (F2), which pairs with `end`.
    #[inline]
    #[must_use]
    pub fn is_kept(&self) -> bool {
        // ORDERING: Relaxed; the fences order it.
        self.0.load(Relaxed)
    }
}

impl Default for Lookout {
    fn default() -> Lookout {
        Lookout::new()
    }
}
