//! The idle protocol: when a machine may sleep, and who must wake one.
//!
//! A machine *searches* if it has a processor and looks for work that it doesn't own. Work must
//! never lie in a queue while a processor is idle and nobody searches.
//!
//! Invariants
//! * I1. `count` is the number of searching machines, those being woken as such included.
//! * I2. A machine that finds nothing of its own starts to search only while fewer than half of the
//!   busy processors do (Go's throttle; a heuristic, two may start at once).
//! * I3. If work lies in a queue and a processor is idle, then somebody searches or is on the way
//!   to look: a publisher before P4, a searcher or an idler before S5.
//!
//! Steps of a publisher: P1 push, P2 fence, P3 raise `count` from 0 to 1 or stop, P4 take an idle
//! processor and wake a machine that searches with it; if there is none, lower `count` again
//! *before the lock of the idle list is released*.
//! Steps of a searcher that gives up: S1 put the processor among the idle, S2 lower `count`,
//! S3 fence, S4 look at every queue again; if there is work, S5 take an idle processor and search.
//! Steps of a machine that goes idle without having searched: the same without S2.
//! Steps of a searcher that finds work: F1 take it, F2 lower `count`; if that made it 0, P2 to P4.
//!
//! P2 and S3 are the edge `idle-fence`, the lock of the idle list is the edge `idle-list`. The
//! proof is in `README.md` of this crate, the models in `tests/loom_searchers.rs`.
//!
//! Rejected: waking on every push (threads thrash); handing the processor over (loses locality);
//! Go's flag `needspinning` instead of S4 for machines that didn't search (a second word to prove,
//! to save a look before a sleep).

use crate::sync::{AtomicU32, const_unless_modelled, fence};
use gosched_base::rt_abort;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// How many machines search. Go: `sched.nmspinning`.
///
/// # Examples
/// ```
/// use gosched_protocol::Searchers;
///
/// let searchers = Searchers::new();
/// assert!(searchers.summon()); // after a push: wake a machine, or call it off
/// assert!(!searchers.summon()); // after another push: one searches already
/// assert!(searchers.found()); // it found the first: summon another for the second
/// assert!(searchers.summon());
/// searchers.give_up(); // after putting its processor among the idle; then it looks again
/// assert_eq!(searchers.count(), 0);
/// ```
#[derive(Debug)]
pub struct Searchers {
    count: AtomicU32,
}

impl Searchers {
    const_unless_modelled! {
        /// Nobody searches.
        pub fn new() -> Searchers {
            Searchers { count: AtomicU32::new(0) }
        }
    }

    /// How many search now; a hint.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        // ORDERING: Relaxed; a hint.
        self.count.load(Relaxed)
    }

    /// For whoever published work (P2, P3): true if the caller is to wake a machine, which
    /// searches from then on. If there is no idle processor, [`call_off`](Searchers::call_off).
    #[inline]
    #[must_use]
    pub fn summon(&self) -> bool {
        // ORDERING: the fence is P2 of edge `idle-fence`, pairs with `give_up` and `sit_out`: they
        // come later in the order of `count` or of the idle list, so their caller sees the push.
        // Relaxed: `count` itself makes nothing visible.
        fence(SeqCst);
        self.count.load(Relaxed) == 0 && self.count.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
    }

    /// Undoes a `summon` that found no idle processor (P4).
    ///
    /// Called under the lock under which the idle list was seen empty. Otherwise a processor may
    /// become idle in between, while publishers rely on the machine that never comes.
    #[inline]
    pub fn call_off(&self) {
        // ORDERING: Relaxed; the lock (edge `idle-list`) puts it before the look of whoever puts
        // the next processor there.
        self.lower();
    }

    /// A machine that found nothing of its own starts to search, if not too many do (I2).
    ///
    /// `busy` is the number of processors that are not idle, the caller's included.
    #[inline]
    #[must_use]
    pub fn join(&self, busy: u32) -> bool {
        // ORDERING: Relaxed; the throttle is a heuristic.
        if 2 * self.count.load(Relaxed) >= busy {
            return false;
        }
        self.count.fetch_add(1, Relaxed);
        true
    }

    /// As [`join`](Searchers::join), unconditionally: the caller knows of work (S5).
    #[inline]
    pub fn join_for_sure(&self) {
        // ORDERING: Relaxed; as in `summon`.
        self.count.fetch_add(1, Relaxed);
    }

    /// A searcher found work (F2). True: it was the last, and the caller is to summon another,
    /// since publishers that saw it search have left their work to it.
    #[inline]
    #[must_use]
    pub fn found(&self) -> bool {
        // ORDERING: Relaxed; the work it found is its own now, and `summon` has the fence.
        self.lower() == 1
    }

    /// A searcher gives up (S2, S3). The caller has put its processor among the idle before, and
    /// looks at every queue after it.
    #[inline]
    pub fn give_up(&self) {
        // ORDERING: the fence is S3 of edge `idle-fence`, pairs with `summon`; makes the pushes of
        // those visible that saw this searcher in `count`.
        self.lower();
        fence(SeqCst);
    }

    /// A machine goes idle without having searched, for instance since too many did (S3). The
    /// caller has put its processor among the idle before, and looks at every queue after it.
    #[inline]
    pub fn sit_out(&self) {
        // ORDERING: the fence is S3 of edge `idle-fence`, pairs with `summon`; makes the pushes of
        // those visible that didn't find this processor among the idle.
        fence(SeqCst);
    }

    /// One searcher less. Returns how many there were.
    #[inline]
    fn lower(&self) -> u32 {
        // ORDERING: Relaxed; see the callers.
        let before = self.count.fetch_sub(1, Relaxed);
        if before == 0 {
            nobody_searched();
        }
        before
    }
}

#[cold]
#[inline(never)]
fn nobody_searched() -> ! {
    rt_abort!("searchers: one less than none")
}

impl Default for Searchers {
    fn default() -> Searchers {
        Searchers::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
